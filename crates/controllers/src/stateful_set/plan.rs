//! What should happen next to the pods of a StatefulSet.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};

use super::identity::{self, ordinal, revision};
use crate::part::{count, seconds};
use crate::pods::{is_available, is_over, is_ready, phase};

/// A StatefulSet and all that it looks at.
pub(super) struct View<'v> {
    pub(super) set: &'v StatefulSet,
    pub(super) pods: &'v [Arc<Pod>],
    /// The template that pods had before the present update, or have, and its revision's name.
    pub(super) current: (&'v PodTemplateSpec, &'v str),
    /// The template that pods should have, and its revision's name.
    pub(super) update: (&'v PodTemplateSpec, &'v str),
    pub(super) now: Timestamp,
}

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Makes a pod, and its claims before it.
    Create(Box<Pod>),
    /// Sees to it that a pod that is wanted is what its number says, and its claims are there.
    Tend(Arc<Pod>),
    /// Sees to the claims of a pod that is not wanted any more.
    Release(Arc<Pod>),
    Delete(Arc<Pod>),
}

/// What should be done next.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// How many pods of the present update's predecessor are deleted for the update.
    pub(super) outdated: i32,
}

/// A pod of a number that is wanted.
enum Replica {
    There(Arc<Pod>),
    Missing(Box<Pod>),
}

impl View<'_> {
    pub(super) fn replicas(&self) -> i32 {
        self.set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
    }

    fn start(&self) -> i32 {
        let ordinals = self.set.spec.as_ref().and_then(|spec| spec.ordinals.as_ref());
        ordinals.and_then(|ordinals| ordinals.start).unwrap_or_default()
    }

    pub(super) fn is_wanted(&self, pod: &Pod) -> bool {
        let wanted = self.start()..self.start() + self.replicas();
        ordinal(pod).is_some_and(|ordinal| wanted.contains(&ordinal))
    }

    /// Whether pods come and go one by one.
    fn is_ordered(&self) -> bool {
        let policy = self.set.spec.as_ref().and_then(|spec| spec.pod_management_policy.as_deref());
        policy != Some("Parallel")
    }

    fn strategy(&self) -> &str {
        let strategy = self.set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
        strategy.and_then(|strategy| strategy.type_.as_deref()).unwrap_or("RollingUpdate")
    }

    /// The number below which pods are not updated, if the update says.
    fn partition(&self) -> Option<i32> {
        let strategy = self.set.spec.as_ref()?.update_strategy.as_ref()?;
        Some(strategy.rolling_update.as_ref()?.partition.unwrap_or_default())
    }

    fn min_ready(&self) -> Duration {
        seconds(self.set.spec.as_ref().and_then(|spec| spec.min_ready_seconds))
    }

    fn is_available(&self, pod: &Pod) -> bool {
        is_available(pod, self.min_ready(), self.now)
    }

    /// Whether a pod can be counted on.
    fn serves(&self, pod: &Pod) -> bool {
        self.is_available(pod) && !is_deleting(pod)
    }

    /// A pod that is missing, of the template that its number should have now.
    fn missing(&self, ordinal: i32) -> Pod {
        let status = self.set.status.as_ref();
        let before = match (self.partition(), self.strategy()) {
            (Some(partition), _) => partition,
            (None, "RollingUpdate") => {
                status.and_then(|status| status.current_replicas).unwrap_or_default()
            }
            _ => 0,
        };
        let (template, revision) = match ordinal < self.start() + before {
            true => self.current,
            false => self.update,
        };
        identity::pod(self.set, template, revision, ordinal)
    }

    /// The pods that are wanted, by their numbers.
    fn wanted(&self) -> Vec<Replica> {
        let numbers = self.start()..self.start() + self.replicas();
        let replica = |number| match self.pods.iter().find(|pod| ordinal(pod) == Some(number)) {
            Some(pod) if !phase(pod).is_empty() => Replica::There(Arc::clone(pod)),
            // One without a phase was never seen by the server: it would have given it one.
            _ => Replica::Missing(Box::new(self.missing(number))),
        };
        numbers.map(replica).collect()
    }

    /// The pods that are not wanted any more, the highest number first.
    fn condemned(&self) -> Vec<Arc<Pod>> {
        let mut condemned: Vec<_> = self
            .pods
            .iter()
            .filter(|pod| ordinal(pod).is_some() && !self.is_wanted(pod))
            .cloned()
            .collect();
        condemned.sort_by_key(|pod| std::cmp::Reverse(ordinal(pod)));
        condemned
    }
}

/// Pods that are wanted come first, then those that are not go, then those that are outdated.
pub(super) fn plan(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    if view.set.metadata.deletion_timestamp.is_some() {
        return plan;
    }
    let (wanted, condemned) = (view.wanted(), view.condemned());
    let is_settled =
        grow(view, &wanted, &mut plan.steps) && shrink(view, &wanted, &condemned, &mut plan.steps);
    if is_settled && view.strategy() != "OnDelete" {
        update(view, &wanted, &mut plan);
    }
    plan
}

/// Sees to pods that are wanted. Whether one may go on to others.
fn grow(view: &View<'_>, wanted: &[Replica], steps: &mut Vec<Step>) -> bool {
    let is_ordered = view.is_ordered();
    for replica in wanted {
        let is_settled = match replica {
            Replica::Missing(pod) => {
                steps.push(Step::Create(pod.clone()));
                false
            }
            Replica::There(pod) if is_over(pod) => {
                if !is_deleting(pod) {
                    steps.push(Step::Delete(Arc::clone(pod)));
                }
                false
            }
            Replica::There(pod) => {
                let is_settled = view.serves(pod) && phase(pod) == "Running";
                if is_settled || !is_ordered || phase(pod) == "Pending" {
                    steps.push(Step::Tend(Arc::clone(pod)));
                }
                is_settled
            }
        };
        if is_ordered && !is_settled {
            return false;
        }
    }
    true
}

/// Deletes pods that are not wanted. Whether one may go on to others.
fn shrink(
    view: &View<'_>,
    wanted: &[Replica],
    condemned: &[Arc<Pod>],
    steps: &mut Vec<Step>,
) -> bool {
    steps.extend(condemned.iter().map(|pod| Step::Release(Arc::clone(pod))));
    if !view.is_ordered() {
        let live = condemned.iter().filter(|pod| !is_deleting(pod));
        steps.extend(live.map(|pod| Step::Delete(Arc::clone(pod))));
        return true;
    }
    let Some(next) = condemned.first() else { return true };
    // In order, a pod goes only when all before it serve; but the first that does not may.
    let first_unavailable = wanted
        .iter()
        .filter_map(|replica| match replica {
            Replica::There(pod) => Some(pod),
            Replica::Missing(_) => None,
        })
        .chain(condemned.iter().rev())
        .find(|pod| !view.serves(pod));
    let is_first = first_unavailable.is_some_and(|first| Arc::ptr_eq(first, next));
    let is_running = phase(next) == "Running" && view.is_available(next);
    if !is_deleting(next) && (is_running || is_first) {
        steps.push(Step::Delete(Arc::clone(next)));
    }
    false
}

/// Deletes the highest pod that is not of the present template, once all above it serve.
fn update(view: &View<'_>, wanted: &[Replica], plan: &mut Plan) {
    let kept = usize::try_from(view.partition().unwrap_or_default()).unwrap_or_default();
    for replica in wanted.iter().skip(kept).rev() {
        let Replica::There(pod) = replica else { return };
        if revision(pod) != view.update.1 && !is_deleting(pod) {
            let known =
                |step: &Step| matches!(step, Step::Delete(other) if Arc::ptr_eq(other, pod));
            if !plan.steps.iter().any(known) {
                plan.steps.push(Step::Delete(Arc::clone(pod)));
            }
            plan.outdated += 1;
            return;
        }
        if !view.serves(pod) {
            return;
        }
    }
}

/// What the StatefulSet says of itself, after so many pods were deleted for an update.
pub(super) fn status(view: &View<'_>, outdated: i32, collisions: i32) -> StatefulSetStatus {
    let number = |holds: &dyn Fn(&Pod) -> bool| {
        i32::try_from(view.pods.iter().filter(|pod| holds(pod)).count()).unwrap_or(i32::MAX)
    };
    let is_created = |pod: &Pod| !phase(pod).is_empty();
    let of =
        |name: &str| number(&|pod| is_created(pod) && !is_deleting(pod) && revision(pod) == name);
    let is_running = |pod: &Pod| phase(pod) == "Running" && is_ready(pod);
    let (replicas, ready) = (number(&is_created), number(&is_running));
    let available = number(&|pod| is_running(pod) && view.is_available(pod));
    let (mut current, updated) = (of(view.current.1) - outdated, of(view.update.1));
    let mut current_revision = view.current.1;
    let is_all = |count: i32| count == view.replicas();
    if view.strategy() == "RollingUpdate" && is_all(updated) && is_all(ready) && is_all(replicas) {
        (current, current_revision) = (updated, view.update.1);
    }
    StatefulSetStatus {
        observed_generation: view.set.metadata.generation,
        replicas,
        ready_replicas: count(ready),
        // Go writes this one also when it is zero.
        available_replicas: Some(available),
        current_replicas: count(current),
        updated_replicas: count(updated),
        current_revision: Some(current_revision.to_owned()),
        update_revision: Some(view.update.1.to_owned()),
        collision_count: Some(collisions),
        conditions: view.set.status.as_ref().and_then(|status| status.conditions.clone()),
    }
}

/// How long until the next pod becomes available, if nothing else happens.
pub(super) fn next_available(view: &View<'_>) -> Option<Duration> {
    let pods = view.pods.iter().map(Arc::as_ref);
    crate::pods::next_available(pods, view.min_ready(), view.now)
}

fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}
