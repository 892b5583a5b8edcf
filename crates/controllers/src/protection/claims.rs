//! A claim waits for the pods that use it.
//!
//! Only pods that are on a node count: no node starts a pod whose claim is deleted already. So
//! whether a claim is free can change for two reasons, and metadata shows both: a pod is gone, or
//! its node has let go of it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, ObjectMeta};
use kube::{Client, Error};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{is_unsettled, settle};
use crate::answer::Refusal as _;
use crate::controller::{Change, Controller, text};
use crate::kinds::Kind;
use crate::queue::{self, Outcome, Queue};

const FINALIZER: &str = "kubernetes.io/pvc-protection";
const NAMESPACES_AT_ONCE: usize = 8;

/// The controller of all claims.
pub(crate) struct Claims {
    client: Client,
    /// The claims that may need something, by namespace.
    unsettled: Mutex<HashMap<String, HashSet<String>>>,
    /// Namespaces to look at: their claims share one list of pods.
    queue: Queue<String>,
}

impl Claims {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, unsettled: Mutex::default(), queue: Queue::new() }
    }

    async fn work(&self, namespace: String) -> Outcome {
        match self.reconcile(&namespace).await {
            Ok(()) => Outcome::Done,
            Err(error) if error.is_conflict() => Outcome::Failed,
            Err(error) => {
                warn!(namespace, error = error.text(), "a claim's protection is not settled");
                Outcome::Failed
            }
        }
    }

    async fn reconcile(&self, namespace: &str) -> Result<(), Error> {
        if !self.unsettled().contains_key(namespace) {
            return Ok(());
        }
        let claims = ApiResource::erase::<PersistentVolumeClaim>(&());
        let claims: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &claims);
        let all = ListParams::default();
        let mut unsettled = claims.list(&all).await?.items;
        unsettled.retain(|claim| is_unsettled(&claim.metadata, FINALIZER));
        if unsettled.is_empty() {
            return Ok(());
        }
        // After the claims: a pod that is not on a node by now gets none of those deleted.
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let pods = pods.list(&all).await?.items;
        let mut outcome = Ok(());
        for claim in unsettled {
            let in_use = pods.iter().any(|pod| uses(pod, &claim.metadata));
            outcome = outcome.and(settle(&claims, claim, FINALIZER, in_use).await);
        }
        outcome
    }

    fn note(&self, claim: &ObjectMeta) {
        let (namespace, name) = (text(&claim.namespace).to_owned(), text(&claim.name).to_owned());
        if is_unsettled(claim, FINALIZER) {
            self.unsettled().entry(namespace.clone()).or_default().insert(name);
            self.queue.add(namespace);
        } else {
            self.forget(claim);
        }
    }

    fn forget(&self, claim: &ObjectMeta) {
        let mut unsettled = self.unsettled();
        let namespace = text(&claim.namespace);
        let Some(names) = unsettled.get_mut(namespace) else { return };
        names.remove(text(&claim.name));
        if names.is_empty() {
            unsettled.remove(namespace);
        }
    }

    fn unsettled(&self) -> MutexGuard<'_, HashMap<String, HashSet<String>>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a pod is on a node with this claim of its namespace.
pub(super) fn uses(pod: &Pod, claim: &ObjectMeta) -> bool {
    let Some(spec) = &pod.spec else { return false };
    if text(&spec.node_name).is_empty() {
        return false;
    }
    let volumes = spec.volumes.as_deref().unwrap_or_default();
    volumes.iter().any(|volume| {
        let source = &volume.persistent_volume_claim;
        let is_named = source.as_ref().is_some_and(|it| it.claim_name == text(&claim.name));
        is_named
            || volume.ephemeral.is_some()
                && text(&claim.name) == format!("{}-{}", text(&pod.metadata.name), volume.name)
                && is_controlled(claim, &pod.metadata)
                && !is_shut_down(&pod.metadata)
    })
}

fn is_controlled(object: &ObjectMeta, owner: &ObjectMeta) -> bool {
    let mut owners = object.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    controller.is_some_and(|controller| controller.uid == text(&owner.uid))
}

/// Whether a pod is over for its node, or was given up. It may then wait for what was made for it:
/// a claim that waited for the pod in turn would never end.
fn is_shut_down(pod: &ObjectMeta) -> bool {
    pod.deletion_timestamp.is_some() && pod.deletion_grace_period_seconds == Some(0)
}

impl Controller for Claims {
    fn wants(&self, kind: &Kind) -> bool {
        kind.is("", "persistentvolumeclaims") || kind.is("", "pods")
    }

    fn observe(&self, change: &Change<'_>) {
        let freed = match change {
            Change::Applied(kind, claim) if kind.is("", "persistentvolumeclaims") => {
                return self.note(claim);
            }
            Change::Deleted(kind, claim) if kind.is("", "persistentvolumeclaims") => {
                return self.forget(claim);
            }
            Change::Applied(_, pod) if is_shut_down(pod) => pod,
            Change::Deleted(_, pod) => pod,
            Change::Applied(..) | Change::Kinds(_) => return,
        };
        let namespace = text(&freed.namespace);
        if self.unsettled().contains_key(namespace) {
            self.queue.add(namespace.to_owned());
        }
    }

    fn run(self: Arc<Self>, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            queue::work(&self.queue, NAMESPACES_AT_ONCE, &shutdown, |namespace| {
                self.work(namespace)
            })
            .await;
        })
    }
}
