//! Pods that nobody else will delete.
//!
//! Those on a node that is gone, those that were deleted before they had a node or whose node is out
//! of service, and of those that are over the oldest, when there are very many.

mod plan;

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, Preconditions};
use kubewright::informer::Change;
use kubewright::predicate::Predicate;
use kubewright::{Action, Context, Controller, Error, ObjectKey, Reconciler};

use crate::part;
use crate::part::text;
use plan::{Fate, Home};

const AT_ONCE: usize = 5;
/// How many pods that are over may stay.
const OVER_MAX: usize = 12_500;
/// How long a node may be missing before it is gone: pods may be heard of before their node is.
const QUARANTINE: SignedDuration = SignedDuration::from_secs(40);

pub(crate) fn controller() -> Controller<Pod, PodGc> {
    let may_matter = Predicate::new(|old: &Pod, new: &Pod| {
        old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
            || plan::node(old) != plan::node(new)
            || plan::is_over(old) != plan::is_over(new)
    });
    let is_lost = |change: &Change<Node>, pod: &Pod| {
        let (node, may_matter) = match change {
            Change::Deleted(node) => (node, true),
            Change::Applied { object: node, .. } => (node, plan::is_out_of_service(node)),
        };
        may_matter && plan::node(pod) == text(&node.metadata.name)
    };
    part::controller("pod-garbage-collector", PodGc::default())
        .depends_on::<Node>(is_lost)
        .when(may_matter)
        .at_once(AT_ONCE)
        .until_gone()
}

/// The controller of pods that are left over.
#[derive(Default)]
pub(crate) struct PodGc {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Since when pods miss their node. By pod: others may be put on a node that was missed before.
    missing: HashMap<ObjectKey, Timestamp>,
    /// The pods that are over.
    over: HashSet<ObjectKey>,
}

impl Reconciler<Pod> for PodGc {
    async fn reconcile(&self, pod: &mut Pod, ctx: &Context) -> Result<Action, Error> {
        let key = ObjectKey::of(&pod.metadata);
        let are_too_many = {
            let mut state = self.state();
            match plan::is_over(pod) {
                true => state.over.insert(key),
                false => state.over.remove(&key),
            };
            state.over.len() > OVER_MAX
        };
        if are_too_many {
            self.forget_oldest(ctx).await?;
        }
        let node = ctx.get::<Node>(None, plan::node(pod)).await?;
        let missing_for = match &node {
            Some(_) => {
                self.state().missing.remove(&ObjectKey::of(&pod.metadata));
                None
            }
            None => self.missing_for(pod, ctx.now()),
        };
        let home = match (&node, missing_for) {
            (Some(node), _) => Home::There(node),
            (None, Some(missing)) if missing >= QUARANTINE => match self.is_gone(pod, ctx).await? {
                true => Home::Gone,
                false => Home::Unknown,
            },
            (None, _) => Home::Unknown,
        };
        match plan::fate(pod, home) {
            Fate::Stays => Ok(match missing_for {
                Some(missing) if missing < QUARANTINE => Action::RequeueAfter(
                    Duration::try_from(QUARANTINE - missing).unwrap_or_default(),
                ),
                _ => Action::Done,
            }),
            fate => {
                delete(ctx, pod, fate).await?;
                Ok(Action::Done)
            }
        }
    }

    fn gone(&self, key: &ObjectKey) {
        let mut state = self.state();
        state.over.remove(key);
        state.missing.remove(key);
    }
}

impl PodGc {
    /// How long the node of a pod is missing, if the pod is on one.
    fn missing_for(&self, pod: &Pod, now: Timestamp) -> Option<SignedDuration> {
        if plan::node(pod).is_empty() {
            return None;
        }
        let key = ObjectKey::of(&pod.metadata);
        let since = *self.state().missing.entry(key).or_insert(now);
        Some(now.duration_since(since))
    }

    /// Whether the server does not know the node of a pod either.
    async fn is_gone(&self, pod: &Pod, ctx: &Context) -> Result<bool, Error> {
        let nodes: Api<Node> = Api::all(ctx.client().clone());
        let is_gone = nodes.get_opt(plan::node(pod)).await?.is_none();
        if !is_gone {
            self.state().missing.remove(&ObjectKey::of(&pod.metadata));
        }
        Ok(is_gone)
    }

    async fn forget_oldest(&self, ctx: &Context) -> Result<(), Error> {
        let pods = ctx.list::<Pod>().await?;
        let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
        for pod in plan::oldest(&pods, OVER_MAX) {
            delete(ctx, pod, Fate::Goes).await?;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deletes a pod at once, which has failed if it was not over.
async fn delete(ctx: &Context, pod: &Pod, fate: Fate) -> Result<(), Error> {
    if let Some(status) = plan::status(pod, fate, ctx.now()) {
        match ctx.edit(pod, |pod| pod.status = Some(status)).await {
            Err(error) if error.code() == Some(404) => return Ok(()),
            written => drop(written?),
        }
    }
    let pods: Api<Pod> = Api::namespaced(ctx.client().clone(), text(&pod.metadata.namespace));
    let uid = Preconditions { uid: pod.metadata.uid.clone(), ..Preconditions::default() };
    let params = DeleteParams::default().grace_period(0).preconditions(uid);
    match pods.delete(text(&pod.metadata.name), &params).await {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
        deleted => drop(deleted?),
    }
    Ok(())
}
