//! A cluster with the operator at work, and one team.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::request::Parts;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kubewright::condition::{Conditions as _, READY};
use kubewright::informer::Object;
use kubewright_testing::{Cluster, Running, on_cluster, yaml};
use serde_json::{Value, json};
use tenancy::{AcmeNamespace, Services, operator};
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio::time::Instant;

pub(crate) struct Site<'c> {
    pub(crate) cluster: &'c Cluster,
    services: Services,
    running: Option<Running>,
    webhooks: Option<Running>,
    _turn: Option<MutexGuard<'static, ()>>,
}

/// An operator looks at the teams of a whole cluster, and tests may share one.
static TURN: Mutex<()> = Mutex::const_new(());

/// Runs a test on a cluster with the operator at work, and no services.
pub(crate) fn on_site(test: impl AsyncFnOnce(&mut Site<'_>)) {
    on_cluster(async |cluster| {
        let mut site = Site::start(cluster, Services::default()).await;
        test(&mut site).await;
        site.end().await;
    });
}

/// The same beside services, as time goes by: sockets do not wait for virtual time.
pub(crate) async fn beside(services: Services, test: impl AsyncFnOnce(&mut Site<'_>)) {
    let cluster = Cluster::from_env().await;
    let mut site = Site::start(&cluster, services).await;
    test(&mut site).await;
    site.end().await;
    cluster.shutdown().await;
}

impl<'c> Site<'c> {
    async fn start(cluster: &'c Cluster, services: Services) -> Self {
        let turn = if cluster.is_virtual() { None } else { Some(TURN.lock().await) };
        let mut site = Site { cluster, services, running: None, webhooks: None, _turn: turn };
        site.run().await;
        site
    }

    pub(crate) async fn run(&mut self) {
        self.running = Some(self.cluster.run(operator(&self.services)).await);
    }

    /// Ends the operator in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    pub(crate) async fn stop(&mut self) {
        self.running.take().expect("it runs").stop().await;
    }

    /// Runs the operator beside other services from now on.
    pub(crate) async fn change(&mut self, services: Services) {
        self.stop().await;
        if let Some(webhooks) = self.webhooks.take() {
            webhooks.stop().await;
            self.services = services;
            self.call_webhooks().await;
        } else {
            self.services = services;
        }
        self.run().await;
    }

    pub(crate) async fn call_webhooks(&mut self) {
        self.webhooks = Some(self.cluster.call_webhooks(operator(&self.services)).await);
    }

    /// What the team is called.
    pub(crate) fn team(&self) -> String {
        format!("{}-team", self.cluster.namespace())
    }

    /// What its namespace is called.
    pub(crate) fn home(&self) -> String {
        format!("{}-app", self.cluster.namespace())
    }

    pub(crate) fn teams(&self) -> Api<AcmeNamespace> {
        Api::all(self.cluster.client())
    }

    pub(crate) fn namespaces(&self) -> Api<Namespace> {
        Api::all(self.cluster.client())
    }

    /// The sample, under names that are this test's, and changed so.
    pub(crate) fn sample(&self, spec: Value) -> AcmeNamespace {
        let mut sample = yaml(include_str!("../../samples/team-x.yaml")).remove(0);
        sample["metadata"]["name"] = self.team().into();
        sample["spec"]["namespaceName"] = self.home().into();
        for (field, value) in spec.as_object().expect("fields") {
            sample["spec"][field] = value.clone();
        }
        serde_json::from_value(sample).expect("an AcmeNamespace")
    }

    pub(crate) async fn try_create(&self, spec: Value) -> Result<AcmeNamespace, kube::Error> {
        self.teams().create(&PostParams::default(), &self.sample(spec)).await
    }

    pub(crate) async fn create(&self) {
        self.try_create(json!({})).await.expect("created");
    }

    pub(crate) async fn try_edit(&self, spec: Value) -> Result<AcmeNamespace, kube::Error> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.teams().patch(&self.team(), &PatchParams::default(), &patch).await
    }

    pub(crate) async fn edit(&self, spec: Value) {
        self.try_edit(spec).await.expect("edited");
    }

    pub(crate) async fn delete(&self) {
        self.teams().delete(&self.team(), &DeleteParams::default()).await.expect("deleted");
    }

    /// Waits until the team is so.
    pub(crate) async fn until(
        &self,
        is_so: impl Fn(Option<&AcmeNamespace>) -> bool,
    ) -> Option<Arc<AcmeNamespace>> {
        self.cluster.eventually(None, &self.team(), is_so).await
    }

    /// Waits until the operator has said this of the team as it is described now.
    pub(crate) async fn told(&self, kind: &str, status: &str, reason: &str) -> Arc<AcmeNamespace> {
        let is_told = |team: Option<&AcmeNamespace>| {
            let Some(team) = team else { return false };
            let condition = team.status.as_ref().and_then(|status| status.conditions.find(kind));
            condition.is_some_and(|it| {
                (it.status.as_str(), it.reason.as_str()) == (status, reason)
                    && it.observed_generation == team.metadata.generation
            })
        };
        self.until(is_told).await.expect("a team")
    }

    pub(crate) async fn created(&self) -> Arc<AcmeNamespace> {
        self.told(READY, "True", "Created").await
    }

    /// Waits until an object in the team's namespace is so.
    pub(crate) async fn child<K>(
        &self,
        name: &str,
        is_so: impl Fn(Option<&K>) -> bool,
    ) -> Option<Arc<K>>
    where
        K: Object<DynamicType = ()> + Debug,
    {
        self.cluster.eventually(Some(&self.home()), name, is_so).await
    }

    /// Waits until the team and its namespace are gone.
    pub(crate) async fn gone(&self) {
        self.until(|team| team.is_none()).await;
        let home = self.home();
        self.cluster.eventually::<Namespace>(None, &home, |namespace| namespace.is_none()).await;
    }

    /// Fails some requests of the operator, for as long as is wanted.
    pub(crate) fn refuse(&self, which: impl Fn(&Parts) -> bool + Send + 'static) -> Refusal {
        let (is_on, tried) = (Arc::new(AtomicBool::new(true)), watch::Sender::new(Vec::new()));
        let (watched, still) = (tried.subscribe(), Arc::clone(&is_on));
        self.cluster.faults().answer(500, usize::MAX, move |request| {
            let is_refused = which(request) && still.load(Ordering::SeqCst);
            if is_refused {
                tried.send_modify(|tried| tried.push(Instant::now()));
            }
            is_refused
        });
        Refusal { is_on, tried: watched }
    }

    /// Leaves the cluster as it was.
    async fn end(mut self) {
        if self.running.is_none() {
            self.run().await;
        }
        if let Some(webhooks) = self.webhooks.take() {
            webhooks.stop().await;
        }
        let _ = self.teams().delete(&self.team(), &DeleteParams::default()).await;
        self.gone().await;
        self.stop().await;
    }
}

pub(crate) struct Refusal {
    is_on: Arc<AtomicBool>,
    tried: watch::Receiver<Vec<Instant>>,
}

impl Refusal {
    /// Waits until it was tried so often, and says when.
    pub(crate) async fn tried(&mut self, times: usize) -> Vec<Instant> {
        let tried = self.tried.wait_for(|tried| tried.len() >= times).await;
        tried.expect("its sender is in the faults").clone()
    }

    pub(crate) fn end(self) {
        self.is_on.store(false, Ordering::SeqCst);
    }
}
