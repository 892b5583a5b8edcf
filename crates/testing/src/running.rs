//! Operators at work in a cluster.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use kube::{Client, Resource as _};
use kubewright::manifest::{Manifest, Names, Package, Part};
use kubewright::webhook::Registration;
use kubewright::{Cache, ObjectKey, Operator, webhook};
use kubewright_apimachinery::patch::merge;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Cluster;

/// An operator that runs. Dropped, it stops in the middle of whatever it does, as if it were
/// killed.
#[must_use = "the operator is killed when this is dropped"]
pub struct Running {
    shutdown: CancellationToken,
    task: JoinSet<()>,
    called: Option<Called>,
}

/// How much is told of each controller: about the key that is asked for, and about others.
const TOLD_MAX: usize = 8;

/// The operators that run in a cluster, for those who wonder what they did.
#[derive(Default)]
pub(crate) struct Operators(Mutex<Vec<Weak<Operator>>>);

/// How often webhooks are asked whether they have what they read.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What every namespace is labelled with.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Webhooks that the cluster calls, by their operator.
struct Called {
    client: Client,
    operator: String,
    /// How long the cluster may take to hear of them, and that they are no more.
    lag: Duration,
}

impl Cluster {
    /// Runs an operator as it would run when it is installed: its definitions are there, and it has
    /// no rights but those that its manifests give it. What it has not declared fails.
    ///
    /// # Panics
    /// If its manifests are refused.
    pub async fn run(&self, operator: Operator) -> Running {
        let package = operator.package();
        let manifests = package.render().unwrap_or_else(|error| panic!("{error}"));
        let is_needed =
            |it: &&Manifest| matches!(it.part, Part::Namespace | Part::Crds | Part::Rbac);
        for manifest in manifests.iter().filter(is_needed) {
            self.apply(&manifest.object).await;
        }
        for definition in &package.definitions {
            self.served(definition.metadata.name.as_deref().unwrap_or_default()).await;
        }
        let client = self.client_of(&package);
        let (clock, shutdown) = (self.clock(), CancellationToken::new());
        let mut task = JoinSet::new();
        let stop = shutdown.clone();
        // In somebody else's cluster it keeps to the test's own namespace; but objects that are in
        // no namespace may have children in any.
        let operator = match self.is_virtual() || is_everywhere(&package) {
            true => operator,
            false => operator.only_in([self.namespace()]),
        };
        let operator = self.operators().add(operator);
        task.spawn(async move { operator.run(client, clock, stop).await });
        Running::new(shutdown, task)
    }

    /// Has the cluster call the webhooks of an operator, which are served by this process and have
    /// the rights that its manifests give it. Its definitions must be there. For tests in real time:
    /// a paused clock does not wait for sockets.
    ///
    /// # Panics
    /// If they cannot be served, or the cluster does not take them.
    pub async fn call_webhooks(&self, operator: Operator) -> Running {
        let mut name = operator.name().to_owned();
        let package = operator.package();
        let client = self.client_of(&package);
        let (cache, run_cache) = Cache::of_texts(client.clone());
        let namespaces = match self.is_virtual() || is_everywhere(&package) {
            true => BTreeSet::new(),
            false => BTreeSet::from([self.namespace().to_owned()]),
        };
        let webhooks = operator.into_webhooks().client(client).informed(&cache, &namespaces);
        let webhooks = Arc::new(webhooks);
        let metrics = Arc::new(webhook::Metrics::new(&mut Registry::default()));
        let now = self.clock().now();
        let served = webhook::Server::local(Arc::clone(&webhooks), metrics, now).await;
        let (server, place, trust) = served.unwrap_or_else(|error| panic!("webhooks: {error}"));
        let (listed, shutdown, mut task) =
            (webhooks.listed(), CancellationToken::new(), JoinSet::new());
        let serving = server.run(shutdown.clone());
        task.spawn(run_cache);
        task.spawn(async move {
            serving.await;
            // What is read is followed until then.
            drop(cache);
        });
        let mut registrations: Vec<Registration> = webhooks.registrations().cloned().collect();
        if !self.is_virtual() && !is_everywhere(&package) {
            // Others use the cluster, too: they are not to be judged by this test.
            name = format!("{name}-{}", self.namespace());
            for registration in &mut registrations {
                let selector = registration.namespace_selector.get_or_insert_default();
                let labels = selector.match_labels.get_or_insert_default();
                labels.insert(NAME_LABEL.to_owned(), self.namespace().to_owned());
            }
        }
        let client = self.plain_client();
        let installed = webhook::install(&client, &name, &registrations, &place, &trust).await;
        installed.unwrap_or_else(|error| panic!("{error:?}"));
        let called = Called { client, operator: name, lag: self.lag() };
        while listed.ask().await.is_err() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        tokio::time::sleep(called.lag).await;
        Running { shutdown, task, called: Some(called) }
    }

    /// Waits until a definition is served.
    pub async fn served(&self, definition: &str) {
        let is_served = |it: Option<&CustomResourceDefinition>| it.is_some_and(is_established);
        self.eventually(None, definition, is_served).await;
    }

    /// Applies an object, whatever its kind. One without a namespace that needs one comes to the
    /// test's own.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn apply(&self, object: &Value) {
        let (resource, namespace) = self.place_of(object).await;
        let client = self.plain_client();
        let api: Api<DynamicObject> = match &namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        let name = object["metadata"]["name"].as_str().expect("a name");
        let params = PatchParams::apply("test").force();
        let applied = api.patch(name, &params, &Patch::Apply(object)).await;
        applied.unwrap_or_else(|error| panic!("{} {name} is refused: {error}", resource.kind));
    }

    /// What whoever creates an object with this change to it is told, in the way that kubectl does
    /// it: fields that nobody knows are refused. Nothing is created.
    ///
    /// # Panics
    /// If it is taken.
    pub async fn refusal(&self, object: &Value, change: Value) -> String {
        let object = merge::apply(object.clone(), change).expect("an object");
        let (resource, namespace) = self.place_of(&object).await;
        let path = DynamicObject::url_path(&resource, namespace.as_deref());
        let request = Request::post(format!("{path}?dryRun=All&fieldValidation=Strict"))
            .header(CONTENT_TYPE, "application/json")
            .body(object.to_string().into_bytes())
            .expect("a request");
        match self.plain_client().request::<Value>(request).await {
            Err(kube::Error::Api(status)) => status.message,
            Err(error) => panic!("it could not be tried: {error}"),
            Ok(taken) => panic!("it is taken: {taken}"),
        }
    }
}

impl Cluster {
    /// A client with the rights that an operator has.
    pub(crate) fn client_of(&self, package: &Package) -> Client {
        let (namespace, account) = (&package.namespace, package.names().service_account());
        let groups = [
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ];
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        self.client_as(&format!("system:serviceaccount:{namespace}:{account}"), &groups)
    }

    /// The resource of an object, and the namespace that it is in: the test's, unless it says.
    async fn place_of(&self, object: &Value) -> (ApiResource, Option<String>) {
        let types: TypeMeta = serde_json::from_value(object.clone()).expect("a kind");
        let gvk = GroupVersionKind::try_from(&types).expect("a version");
        let namespace = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Some(namespace.to_owned()),
            None => self.is_namespaced(&gvk).await.then(|| self.namespace().to_owned()),
        };
        (ApiResource::from_gvk(&gvk), namespace)
    }

    async fn is_namespaced(&self, gvk: &GroupVersionKind) -> bool {
        let found = kube::discovery::pinned_kind(&self.plain_client(), gvk).await;
        let (_, capabilities) = found.unwrap_or_else(|error| panic!("{}: {error}", gvk.kind));
        capabilities.scope == kube::discovery::Scope::Namespaced
    }
}

impl Operators {
    fn add(&self, operator: Operator) -> Arc<Operator> {
        let operator = Arc::new(operator);
        self.all().push(Arc::downgrade(&operator));
        operator
    }

    /// What their controllers did last, a line for each reconcile: first what they did about a key,
    /// each time the last one first.
    pub(crate) fn report(&self, key: &ObjectKey) -> String {
        let (mut told, mut others) = (String::new(), String::new());
        for operator in self.all().iter().filter_map(Weak::upgrade) {
            for controller in operator.report().as_array().into_iter().flatten() {
                let recent = controller["recent"].as_array().into_iter().flatten();
                let (about, rest): (Vec<&Value>, Vec<&Value>) =
                    recent.partition(|it| it["key"] == key.as_str());
                for (lines, recent) in [(&mut told, about), (&mut others, rest)] {
                    for it in recent.into_iter().take(TOLD_MAX) {
                        let part = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
                        *lines += &format!(
                            "{} reconciled {}: {} (because of {})\n",
                            controller["name"].as_str().unwrap_or_default(),
                            part("key"),
                            part("ended"),
                            part("causes"),
                        );
                    }
                }
            }
        }
        told + &others
    }

    fn all(&self) -> MutexGuard<'_, Vec<Weak<Operator>>> {
        // Nothing that holds it panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    pub(crate) fn new(shutdown: CancellationToken, task: JoinSet<()>) -> Self {
        Running { shutdown, task, called: None }
    }

    /// Stops the operator as a signal would: what is under way ends. Webhooks for admission are not
    /// called any more.
    pub async fn stop(mut self) {
        if let Some(called) = &self.called {
            called.forget().await;
        }
        self.shutdown.cancel();
        while self.task.join_next().await.is_some() {}
    }
}

impl Called {
    async fn forget(&self) {
        let (names, params) = (Names::of(&self.operator), DeleteParams::default());
        // There may be none of a kind.
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let _ = mutating.delete(&names.mutating_configuration(), &params).await;
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let _ = validating.delete(&names.validating_configuration(), &params).await;
        tokio::time::sleep(self.lag).await;
    }
}

/// Whether it has objects that are in no namespace.
fn is_everywhere(package: &Package) -> bool {
    package.definitions.iter().any(|it| it.spec.scope == "Cluster")
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.iter().flat_map(|status| &status.conditions).flatten();
    let mut established = conditions.filter(|condition| condition.type_ == "Established");
    established.any(|condition| condition.status == "True")
}
