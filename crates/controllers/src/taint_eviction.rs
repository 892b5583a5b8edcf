//! Pods leave a node that does not want them any more, as soon as they must.

mod plan;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright::informer::Change;
use kubewright::predicate::Predicate;
use kubewright::{Action, Context, Controller, Error, Event, ObjectKey, Reconciler};

use crate::part;
use crate::part::text;
use plan::Stay;

const AT_ONCE: usize = 8;

pub(crate) fn controller() -> Controller<Pod, TaintEviction> {
    let may_matter = Predicate::new(|old: &Pod, new: &Pod| {
        let traits = |pod: &Pod| {
            let spec = pod.spec.as_ref();
            spec.map(|spec| (spec.node_name.clone(), spec.tolerations.clone()))
        };
        traits(old) != traits(new)
    });
    let is_concerned = |change: &Change<Node>, pod: &Pod| {
        let Change::Applied { object: node, old, .. } = change else { return false };
        let before = old.as_ref().map(|old| plan::taints(old)).unwrap_or_default();
        before != plan::taints(node) && plan::node(pod) == text(&node.metadata.name)
    };
    part::controller("taint-eviction-controller", TaintEviction::default())
        .depends_on::<Node>(is_concerned)
        .when(may_matter)
        .at_once(AT_ONCE)
}

/// The controller of pods on nodes with taints.
#[derive(Default)]
pub(crate) struct TaintEviction {
    /// Since when pods that must leave are borne.
    leaving: Mutex<HashMap<ObjectKey, Timestamp>>,
}

impl Reconciler<Pod> for TaintEviction {
    async fn reconcile(&self, pod: &mut Pod, ctx: &Context) -> Result<Action, Error> {
        let key = ObjectKey::of(&pod.metadata);
        let node = match plan::node(pod) {
            "" => None,
            name => ctx.get::<Node>(None, name).await?,
        };
        let stay = node.map_or(Stay::Forever, |node| plan::stay(pod, &node));
        let now = ctx.now();
        let left = match stay {
            Stay::Forever => {
                if self.leaving().remove(&key).is_some() {
                    let note = format!("Cancelling deletion of Pod {key}");
                    ctx.event(Event::normal("TaintManagerEviction", note));
                }
                return Ok(Action::Done);
            }
            Stay::For(time) => {
                let since = *self.leaving().entry(key.clone()).or_insert(now);
                time - now.duration_since(since)
            }
        };
        if left.is_positive() {
            return Ok(Action::RequeueAfter(Duration::try_from(left).unwrap_or_default()));
        }
        let note = format!("Marking for deletion Pod {key}");
        ctx.event(Event::normal("TaintManagerEviction", note));
        evict(ctx, pod, now).await?;
        self.leaving().remove(&key);
        Ok(Action::Done)
    }

    fn gone(&self, key: &ObjectKey) {
        self.leaving().remove(key);
    }
}

impl TaintEviction {
    fn leaving(&self) -> MutexGuard<'_, HashMap<ObjectKey, Timestamp>> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn evict(ctx: &Context, pod: &Pod, now: Timestamp) -> Result<(), Error> {
    if let Some(status) = plan::status(pod, now) {
        match ctx.edit(pod, |pod| pod.status = Some(status)).await {
            Err(error) if error.code() == Some(404) => return Ok(()),
            written => drop(written?),
        }
    }
    Ok(ctx.delete(pod).await?)
}
