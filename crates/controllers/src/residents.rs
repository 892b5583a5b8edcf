//! Objects that every active namespace has: its default service account, and the certificate by
//! which its pods know the server.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Error, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::answer::Refusal as _;
use crate::controller::{Change, Controller, text};
use crate::kinds::Kind;
use crate::queue::{self, Outcome, Queue};

const AT_ONCE: usize = 8;

/// Sees to it that a service account `default` is in each namespace.
pub(crate) fn service_account(clients: (Client, Client)) -> Residents<ServiceAccount> {
    Residents::new(clients, "serviceaccounts", "default", Box::new(plan_service_account))
}

/// Sees to it that the certificate is in each namespace, unchanged.
pub(crate) fn root_ca(clients: (Client, Client), pem: String) -> Residents<ConfigMap> {
    let plan = move |found: Option<ConfigMap>| plan_root_ca(&pem, found);
    Residents::new(clients, "configmaps", ROOT_CA, Box::new(plan))
}

const ROOT_CA: &str = "kube-root-ca.crt";
const CERTIFICATE: &str = "ca.crt";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
     endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
     guaranteed across distributions of Kubernetes clusters.",
);

/// What to do in one namespace.
#[derive(Debug, PartialEq)]
enum Plan<K> {
    Keep,
    Create(K),
    Replace(K),
}

fn plan_service_account(found: Option<ServiceAccount>) -> Plan<ServiceAccount> {
    match found {
        Some(_) => Plan::Keep,
        None => Plan::Create(ServiceAccount { metadata: named("default"), ..Default::default() }),
    }
}

fn plan_root_ca(pem: &str, found: Option<ConfigMap>) -> Plan<ConfigMap> {
    let data = Some(BTreeMap::from([(CERTIFICATE.to_owned(), pem.to_owned())]));
    let (key, value) = DESCRIPTION;
    let Some(mut found) = found else {
        let mut metadata = named(ROOT_CA);
        metadata.annotations = Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
        return Plan::Create(ConfigMap { metadata, data, ..Default::default() });
    };
    let annotations = found.metadata.annotations.get_or_insert_default();
    if found.data == data && annotations.get(key).is_some_and(|found| found == value) {
        return Plan::Keep;
    }
    annotations.insert(key.to_owned(), value.to_owned());
    found.data = data;
    Plan::Replace(found)
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

type Planner<K> = Box<dyn Fn(Option<K>) -> Plan<K> + Send + Sync>;

/// The controller of one such object.
pub(crate) struct Residents<K> {
    /// Writes only: its account may not read, since all controllers share their watches.
    client: Client,
    reader: Client,
    /// Of the core group.
    plural: &'static str,
    name: &'static str,
    plan: Planner<K>,
    active: Mutex<HashSet<String>>,
    /// Namespaces to look at.
    queue: Queue<String>,
}

impl<K> Residents<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize,
{
    fn new(
        (client, reader): (Client, Client),
        plural: &'static str,
        name: &'static str,
        plan: Planner<K>,
    ) -> Self {
        Self { client, reader, plural, name, plan, active: Mutex::default(), queue: Queue::new() }
    }

    async fn work(&self, namespace: String) -> Outcome {
        match self.reconcile(&namespace).await {
            Ok(()) => Outcome::Done,
            Err(error) => {
                let (name, error) = (self.name, error.text());
                warn!(name, namespace, error, "a namespace lacks an object");
                Outcome::Failed
            }
        }
    }

    async fn reconcile(&self, namespace: &str) -> Result<(), Error> {
        if !self.active().contains(namespace) {
            return Ok(());
        }
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let parameters = PostParams::default();
        let read: Api<K> = Api::namespaced(self.reader.clone(), namespace);
        let written = match (self.plan)(read.get_opt(self.name).await?) {
            Plan::Keep => return Ok(()),
            Plan::Create(object) => api.create(&parameters, &object).await,
            Plan::Replace(object) => api.replace(self.name, &parameters, &object).await,
        };
        match written {
            // The namespace is going, or somebody was faster.
            Err(error) if error.is_terminating() || error.is_absent() || error.already_exists() => {
                Ok(())
            }
            written => written.map(drop),
        }
    }

    fn active(&self) -> MutexGuard<'_, HashSet<String>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Controller for Residents<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static,
{
    fn wants(&self, kind: &Kind) -> bool {
        kind.is("", "namespaces") || kind.is("", self.plural)
    }

    fn observe(&self, change: &Change<'_>) {
        match change {
            Change::Applied(kind, object) if kind.is("", "namespaces") => {
                let name = text(&object.name).to_owned();
                if object.deletion_timestamp.is_some() {
                    self.active().remove(&name);
                } else if self.active().insert(name.clone()) {
                    self.queue.add(name);
                }
            }
            Change::Deleted(kind, object) if kind.is("", "namespaces") => {
                self.active().remove(text(&object.name));
            }
            Change::Applied(_, object) | Change::Deleted(_, object)
                if text(&object.name) == self.name =>
            {
                self.queue.add(text(&object.namespace).to_owned());
            }
            Change::Kinds(_) | Change::Applied(..) | Change::Deleted(..) => {}
        }
    }

    fn run(self: Arc<Self>, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            queue::work(&self.queue, AT_ONCE, &shutdown, |namespace| self.work(namespace)).await;
        })
    }
}
