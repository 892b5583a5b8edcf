//! Operators at work in a cluster.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use kubewright::manifest::{Manifest, Part};
use kubewright::{Operator, webhook};
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
        let namespace = &package.namespace;
        let account = package.names().service_account();
        let groups = [
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ];
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let client =
            self.client_as(&format!("system:serviceaccount:{namespace}:{account}"), &groups);
        let (clock, shutdown) = (self.clock(), CancellationToken::new());
        let mut task = JoinSet::new();
        let stop = shutdown.clone();
        let namespace = (!self.is_virtual()).then(|| self.namespace().to_owned());
        let operator = operator.only_in(namespace);
        task.spawn(async move { operator.run(client, clock, stop).await });
        Running { shutdown, task }
    }

    /// Has the cluster call the webhooks of an operator, which are served by this process. Its
    /// definitions must be there. For tests in real time: a paused clock does not wait for sockets.
    ///
    /// # Panics
    /// If they cannot be served, or the cluster does not take them.
    pub async fn call_webhooks(&self, operator: Operator) -> Running {
        let name = operator.name().to_owned();
        let webhooks = Arc::new(operator.into_webhooks());
        let metrics = Arc::new(webhook::Metrics::new(&mut Registry::default()));
        let now = self.clock().now();
        let served = webhook::Server::local(Arc::clone(&webhooks), metrics, now).await;
        let (server, place, trust) = served.unwrap_or_else(|error| panic!("webhooks: {error}"));
        let (shutdown, mut task) = (CancellationToken::new(), JoinSet::new());
        task.spawn(server.run(shutdown.clone()));
        let registrations = webhooks.registrations();
        let installed =
            webhook::install(&self.plain_client(), &name, registrations, &place, &trust).await;
        installed.unwrap_or_else(|error| panic!("{error:?}"));
        Running { shutdown, task }
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
        let types: TypeMeta = serde_json::from_value(object.clone()).expect("a kind");
        let gvk = GroupVersionKind::try_from(&types).expect("a version");
        let resource = ApiResource::from_gvk(&gvk);
        let metadata = &object["metadata"];
        let client = self.plain_client();
        let api: Api<DynamicObject> = match metadata["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None if self.is_namespaced(&gvk).await => {
                Api::default_namespaced_with(client, &resource)
            }
            None => Api::all_with(client, &resource),
        };
        let name = metadata["name"].as_str().expect("a name");
        let params = PatchParams::apply("test").force();
        let applied = api.patch(name, &params, &Patch::Apply(object)).await;
        applied.unwrap_or_else(|error| panic!("{} {name} is refused: {error}", types.kind));
    }
}

impl Cluster {
    async fn is_namespaced(&self, gvk: &GroupVersionKind) -> bool {
        let found = kube::discovery::pinned_kind(&self.plain_client(), gvk).await;
        let (_, capabilities) = found.unwrap_or_else(|error| panic!("{}: {error}", gvk.kind));
        capabilities.scope == kube::discovery::Scope::Namespaced
    }
}

impl Running {
    /// Stops the operator as a signal would: what is under way ends.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        while self.task.join_next().await.is_some() {}
    }
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.iter().flat_map(|status| &status.conditions).flatten();
    let mut established = conditions.filter(|condition| condition.type_ == "Established");
    established.any(|condition| condition.status == "True")
}
