//! DaemonSets: a pod on each node that fits.

mod backoff;
mod nodes;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::ObjectMeta;
use kubewright::context::WriteError;
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Event, Reconciler};
use kubewright_apimachinery::selector::label::Selector;
use serde_json::Value;

use self::backoff::Backoffs;
use self::nodes::{Fit, aim, fit, tolerations};
use self::plan::{Plan, View};
use crate::revisions::{self, HASH};
use crate::selection::{self, frees, selects};
use crate::{hash, names, part, pods};

const AT_ONCE: usize = 2;
/// So many pods are made or deleted before what came of it is looked at.
const BURST_MAX: usize = 250;

/// The controller of DaemonSets.
pub(crate) fn daemon_sets() -> Controller<DaemonSet, DaemonSets> {
    part::controller(names::DAEMON_SET, DaemonSets::default())
        .owns::<Pod>()
        .owns::<ControllerRevision>()
        .depends_on(|change: &Change<Pod>, own: &DaemonSet| frees(change, || selector(own)))
        .depends_on(|change: &Change<ControllerRevision>, own: &DaemonSet| {
            frees(change, || selector(own))
        })
        .depends_on(node_matters)
        .at_once(AT_ONCE)
}

/// Whether a change of a node makes it another one to a DaemonSet.
fn node_matters(change: &Change<Node>, set: &DaemonSet) -> bool {
    match change {
        Change::Applied { object, old: Some(old), .. } => {
            let taints = |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.clone());
            let is_same =
                old.metadata.labels == object.metadata.labels && taints(old) == taints(object);
            !is_same && fit(set, old) != fit(set, object)
        }
        Change::Applied { object, old: None, .. } => fit(set, object) == Fit::Wanted,
        Change::Deleted(last) => fit(set, last) == Fit::Wanted,
    }
}

fn selector(set: &DaemonSet) -> Selector {
    selection::selector(set.spec.as_ref().map(|spec| &spec.selector))
}

#[derive(Default)]
pub(crate) struct DaemonSets {
    failed: Mutex<Backoffs>,
}

impl Reconciler<DaemonSet> for DaemonSets {
    async fn reconcile(&self, set: &mut DaemonSet, ctx: &Context) -> Result<Action, Error> {
        let spec = set.spec.clone().unwrap_or_default();
        if spec.selector == LabelSelector::default() {
            let note = "This daemon set is selecting all pods. A non-empty selector is required.";
            ctx.event(Event::warning("SelectingAll", note));
            return Ok(Action::Done);
        }
        let selector = selector(set);
        let pods = ctx.claim::<Pod>(|_| true, |pod| selects(&selector, &pod.metadata)).await?;
        let (current, old) = self.history(set, &pods, ctx).await?;
        let hash = revisions::label(&current, HASH).to_owned();
        let nodes = ctx.list::<Node>().await?;
        let view = View::new(set, &nodes, &pods, &hash, ctx.now());

        let managed = self.manage(&view, ctx).await;
        let wait = managed.as_ref().ok().copied().flatten();
        let forgotten = match &managed {
            Ok(_) => forget(set, &pods, old, ctx).await,
            Err(_) => Ok(()),
        };
        let next = plan::next_available(&view).into_iter().chain(wait).min();
        set.status = Some(plan::status(&view));
        managed?;
        forgotten?;
        Ok(next.map_or(Action::Done, Action::RequeueAfter))
    }
}

impl DaemonSets {
    /// Does what is to be done about pods. Gives how long until more can be.
    async fn manage(
        &self,
        view: &View<'_>,
        ctx: &Context,
    ) -> Result<Option<std::time::Duration>, WriteError> {
        let subject = backoff::subject(view.set);
        let plan = {
            let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            plan::manage(view, |node| failed.remaining(&subject, node, view.now))
        };
        for (node, pod) in &plan.ended {
            self.note_ended(view, node, pod, ctx);
        }
        let wait = plan.wait;
        let plan = match plan.is_empty() && plan::is_rolling(view.set) {
            true => plan::roll(view),
            false => plan,
        };
        carry_out(view, plan, ctx).await?;
        Ok(wait)
    }

    fn note_ended(&self, view: &View<'_>, node: &str, pod: &Pod, ctx: &Context) {
        let place = |field: &Option<String>| field.clone().unwrap_or_default();
        let (namespace, name) = (place(&pod.metadata.namespace), place(&pod.metadata.name));
        if pods::phase(pod) == "Failed" {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.note(&backoff::subject(view.set), node, view.now);
            let note = format!(
                "Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it"
            );
            ctx.event(Event::warning("FailedDaemonPod", note));
        } else {
            let note = format!(
                "Found succeeded daemon pod {namespace}/{name} on node {node}, will try to delete it"
            );
            ctx.event(Event::normal("SucceededDaemonPod", note));
        }
    }

    /// The revision of the present template, which is made if there is none, and all others.
    async fn history(
        &self,
        set: &mut DaemonSet,
        pods: &[Arc<Pod>],
        ctx: &Context,
    ) -> Result<(Arc<ControllerRevision>, Vec<Arc<ControllerRevision>>), Error> {
        let selector = selector(set);
        let is_selected = |revision: &ControllerRevision| selects(&selector, &revision.metadata);
        let all = ctx.claim::<ControllerRevision>(|_| true, is_selected).await?;
        let template = set.spec.clone().unwrap_or_default().template;
        let patch = revisions::patch(&template);
        let (mut same, old): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|revision| revisions::is_of(revision, &patch));
        let number = revisions::next_number(&old);
        same.sort_by_key(|revision| revision.revision);
        let Some(kept) = same.pop() else {
            return Ok((snapshot(set, &template, patch, number, ctx).await?, old));
        };
        // There may be several by an accident of the past: all pods are of the one that is kept.
        for other in same {
            let hash = revisions::label(&kept, HASH);
            let of_other = |pod: &&Arc<Pod>| {
                let labels = pod.metadata.labels.as_ref();
                labels.and_then(|labels| labels.get(HASH)).is_none_or(|own| own != hash)
            };
            for pod in pods.iter().filter(of_other) {
                let relabel = ctx.edit(pod.as_ref(), |pod| {
                    let labels = pod.metadata.labels.get_or_insert_default();
                    labels.insert(HASH.to_owned(), hash.to_owned());
                });
                relabel.await?;
            }
            ctx.delete(other.as_ref()).await?;
        }
        if kept.revision >= number {
            return Ok((kept, old));
        }
        let renumbered = ctx.replace(kept.as_ref(), |revision| revision.revision = number);
        Ok((renumbered.await?, old))
    }
}

/// Keeps the present template.
async fn snapshot(
    set: &mut DaemonSet,
    template: &PodTemplateSpec,
    patch: Value,
    number: i64,
    ctx: &Context,
) -> Result<Arc<ControllerRevision>, Error> {
    let collisions = set.status.as_ref().and_then(|status| status.collision_count);
    let hash = hash::template(template, collisions);
    let name = format!("{}-{hash}", set.metadata.name.as_deref().unwrap_or_default());
    let described = template.metadata.clone().unwrap_or_default();
    let mut labels = described.labels.unwrap_or_default();
    labels.insert(HASH.to_owned(), hash);
    let revision = ControllerRevision {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(labels),
            annotations: set.metadata.annotations.clone(),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(patch.clone())),
        revision: number,
    };
    match ctx.create(revision).await {
        Ok(created) => Ok(created),
        Err(error) if error.reason() == Some("AlreadyExists") => {
            let found = ctx.get::<ControllerRevision>(None, &name).await?;
            match found.filter(|found| revisions::is_of(found, &patch)) {
                Some(found) => Ok(found),
                None => {
                    // Another template with the same hash: next time another one is taken.
                    let status = set.status.get_or_insert_default();
                    *status.collision_count.get_or_insert_default() += 1;
                    Err(error.into())
                }
            }
        }
        Err(error) => Err(error.into()),
    }
}

async fn carry_out(view: &View<'_>, mut plan: Plan, ctx: &Context) -> Result<(), WriteError> {
    plan.create.truncate(BURST_MAX);
    plan.delete.truncate(BURST_MAX);
    let owner = view.set.metadata.name.as_deref().unwrap_or_default();
    let template = template(view.set, view.hash);
    let created = pods::slow_start(plan.create.len(), |number| {
        let mut pod = pods::from_template(&template, owner);
        if let Some(spec) = &mut pod.spec {
            spec.affinity = Some(aim(spec.affinity.take(), &plan.create[number]));
        }
        pods::create(ctx, pod)
    });
    let created = created.await;
    let deleted = plan.delete.iter().map(|pod| pods::delete(ctx, pod));
    let deleted: Result<(), _> = futures::future::join_all(deleted).await.into_iter().collect();
    created.and(deleted)
}

/// The template of a DaemonSet's pods, with what all of them have.
fn template(set: &DaemonSet, hash: &str) -> PodTemplateSpec {
    let mut template = set.spec.clone().unwrap_or_default().template;
    if let Some(spec) = &mut template.spec {
        spec.tolerations = Some(tolerations(spec));
    }
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.extend(plan::generation_label(set));
    labels.insert(HASH.to_owned(), hash.to_owned());
    template
}

/// Deletes old revisions that no pod is of and that are more than are to be kept.
async fn forget(
    set: &DaemonSet,
    pods: &[Arc<Pod>],
    mut old: Vec<Arc<ControllerRevision>>,
    ctx: &Context,
) -> Result<(), WriteError> {
    let kept = set.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(10);
    let surplus = old.len().saturating_sub(usize::try_from(kept).unwrap_or_default());
    let live: BTreeSet<_> =
        pods.iter().filter_map(|pod| pod.metadata.labels.as_ref()?.get(HASH)).collect();
    old.sort_by_key(|revision| revision.revision);
    let idle = old.iter().filter(|it| !live.contains(&revisions::label(it, HASH).to_owned()));
    for revision in idle.take(surplus) {
        ctx.delete(revision.as_ref()).await?;
    }
    Ok(())
}
