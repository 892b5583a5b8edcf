//! A claim waits for the pods that use it.
//!
//! Only pods that are on a node count: no node starts a pod whose claim is deleted already. So
//! whether a claim is free can change for two reasons: a pod is gone, or its node has let go of it.
//! Whether it is free is asked of live pods: the cache may not know yet who was put on a node.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{Api, ListParams, ObjectMeta};
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Reconciler};

use super::plan;
use crate::part::text;
use crate::{names, part};

const FINALIZER: &str = "kubernetes.io/pvc-protection";
const CLAIMS_AT_ONCE: usize = 8;

/// The controller of all claims.
pub(crate) fn claims() -> Controller<PersistentVolumeClaim, Claims> {
    part::controller(names::CLAIM_PROTECTION, Claims)
        .until_gone()
        .depends_on(|change: &Change<Pod>, claim: &PersistentVolumeClaim| {
            let is_freed = match change {
                Change::Applied { object, .. } => is_shut_down(&object.metadata),
                Change::Deleted(_) => true,
            };
            is_freed && claim.metadata.deletion_timestamp.is_some()
        })
        .at_once(CLAIMS_AT_ONCE)
}

pub(crate) struct Claims;

impl Reconciler<PersistentVolumeClaim> for Claims {
    async fn reconcile(
        &self,
        claim: &mut PersistentVolumeClaim,
        ctx: &Context,
    ) -> Result<Action, Error> {
        let Some(mut finalizers) = plan(&claim.metadata, FINALIZER, false) else {
            return Ok(Action::Done);
        };
        if claim.metadata.deletion_timestamp.is_some() {
            let namespace = text(&claim.metadata.namespace);
            let pods: Api<Pod> = Api::namespaced(ctx.client().clone(), namespace);
            let pods = pods.list(&ListParams::default()).await?.items;
            let in_use = pods.iter().any(|pod| uses(pod, &claim.metadata));
            match plan(&claim.metadata, FINALIZER, in_use) {
                Some(planned) => finalizers = planned,
                None => return Ok(Action::Done),
            }
        }
        claim.metadata.finalizers = Some(finalizers);
        Ok(Action::Done)
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
