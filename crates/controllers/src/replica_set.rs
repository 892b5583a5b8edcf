//! ReplicaSets and ReplicationControllers: so many pods of a kind, always.
//!
//! Both are the same controller over two kinds, which `replicated` gives one face.

mod plan;
mod replicated;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use kube::api::ObjectMeta;
use kubewright::context::{ReadError, WriteError};
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Reconciler};

use self::plan::{Failure, Plan, plan};
use self::replicated::Replicated;
use crate::pods::{self, Doubling};
use crate::selection::{frees, selects};
use crate::{names, part};

const AT_ONCE: usize = 5;

/// The controller of ReplicaSets.
pub(crate) fn replica_sets() -> Controller<ReplicaSet, Replicas<ReplicaSet>> {
    controller(names::REPLICA_SET).reporter("replicaset-controller")
}

/// The controller of ReplicationControllers.
pub(crate) fn replication_controllers()
-> Controller<ReplicationController, Replicas<ReplicationController>> {
    controller(names::REPLICATION_CONTROLLER).reporter("replication-controller")
}

fn controller<K: Replicated>(name: &str) -> Controller<K, Replicas<K>> {
    part::controller(name, Replicas::<K>(PhantomData))
        .until_gone()
        .owns::<Pod>()
        .depends_on(|change: &Change<Pod>, own: &K| frees(change, || own.selector()))
        .at_once(AT_ONCE)
}

pub(crate) struct Replicas<K>(PhantomData<fn() -> K>);

impl<K: Replicated> Reconciler<K> for Replicas<K> {
    async fn reconcile(&self, object: &mut K, ctx: &Context) -> Result<Action, Error> {
        let selector = object.selector();
        let is_selected = |pod: &Pod| selects(&selector, &pod.metadata);
        let active = ctx.claim::<Pod>(pods::is_active, is_selected).await?;
        let mut terminating = ctx.children::<Pod>().await?;
        terminating.retain(|pod| pods::is_terminating(pod) && is_selected(pod));

        let managed = match object.meta().deletion_timestamp {
            None => manage(object, &active, ctx).await,
            Some(_) => Ok(()),
        };
        let (now, wanted) = (ctx.now(), object.wanted());
        let failure = managed.as_ref().err().map(|error| Failure {
            reason: if active.len() < wanted.replicas { "FailedCreate" } else { "FailedDelete" },
            message: pods::message(error),
        });
        let counts = plan::count(&wanted, &active, terminating.len(), now);
        let next = pods::next_available(active.iter().map(Arc::as_ref), wanted.min_ready, now);
        object.report(&counts, failure, now);
        managed?;
        Ok(next.map_or(Action::Done, Action::RequeueAfter))
    }
}

/// Makes the pods that are missing, or deletes those that are too many.
async fn manage<K: Replicated>(
    object: &K,
    active: &[Arc<Pod>],
    ctx: &Context,
) -> Result<(), WriteError> {
    let wanted = object.wanted();
    let doubling = match active.len() > wanted.replicas {
        true => doubling(object, ctx)?,
        false => Doubling::default(),
    };
    match plan(wanted.replicas, active, &doubling, ctx.now()) {
        Plan::Nothing => Ok(()),
        Plan::Create(count) => {
            let Some(template) = wanted.template else { return Ok(()) };
            let owner = object.meta().name.as_deref().unwrap_or_default();
            let pod = pods::from_template(template, owner);
            pods::slow_start(count, |_| pods::create(ctx, pod.clone())).await
        }
        Plan::Delete(surplus) => {
            let deleted = surplus.iter().map(|pod| pods::delete(ctx, pod));
            futures::future::join_all(deleted).await.into_iter().collect()
        }
    }
}

/// Where the pods are of all that the same owner has, as the ReplicaSets of a Deployment.
fn doubling<K: Replicated>(object: &K, ctx: &Context) -> Result<Doubling, ReadError> {
    let metadata = object.meta();
    let (Some(owner), Some(namespace)) = (controller_uid(metadata), &metadata.namespace) else {
        return Ok(Doubling::default());
    };
    let siblings = ctx.informer::<K>()?.list_in(namespace)?;
    let siblings = siblings.iter().filter(|other| controller_uid(other.meta()) == Some(owner));
    let selectors: Vec<_> = siblings.map(|sibling| sibling.selector()).collect();
    let pods = ctx.informer::<Pod>()?.list_in(namespace)?;
    let related = pods
        .iter()
        .map(Arc::as_ref)
        .filter(|pod: &&Pod| selectors.iter().any(|selector| selects(selector, &pod.metadata)));
    Ok(Doubling::new(related))
}

fn controller_uid(metadata: &ObjectMeta) -> Option<&str> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
}
