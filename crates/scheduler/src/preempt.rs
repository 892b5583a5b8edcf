//! Who must go for a pod that fits nowhere: pure, as the search itself.
//!
//! On each node all pods of lower priority are taken away in thought. If that helps, as many as
//! possible are brought back, those first that a PodDisruptionBudget protects, and then the more
//! important ones. Of all nodes the one is chosen where the harm is least.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use kubewright::ObjectKey;

use crate::cycle::{Attempt, Diagnosis};
use crate::node::Node;
use crate::plugin::{Preemption, Rejection};
use crate::pod::Pod;
use crate::selector;
use crate::snapshot::Snapshot;

const NO_VICTIMS: &str = "No preemption victims found for incoming pod";
const NO_HELP: &str = "Preemption is not helpful for scheduling";
/// What pods are told that go for others.
pub(crate) const DISRUPTION_TARGET: &str = "DisruptionTarget";
pub(crate) const PREEMPTION_REASON: &str = "PreemptionByScheduler";

/// Up to `wanted` nodes on which room could be made, and by whose going.
///
/// # Errors
/// There is none; it says why, as a pod's condition does.
pub(crate) fn candidates(
    attempt: &Attempt<'_>,
    wanted: usize,
) -> Result<Vec<Preemption>, Box<Diagnosis>> {
    let names = attempt.diagnosis.resolvable();
    let mut why = Diagnosis::new(attempt.snapshot.len());
    why.absent = Rejection::unresolvable(NO_HELP);
    let (mut harmless, mut violating) = (Vec::new(), Vec::new());
    for step in 0..names.len() {
        let name = names[(attempt.offset + step) % names.len()];
        let Some(node) = attempt.snapshot.node(name) else { continue };
        match on_node(attempt, node) {
            Ok(found) if found.violations == 0 => harmless.push(found),
            Ok(found) => violating.push(found),
            Err(rejection) => why.note(name, rejection),
        }
        if !harmless.is_empty() && harmless.len() + violating.len() >= wanted {
            break;
        }
    }
    harmless.append(&mut violating);
    match harmless.is_empty() {
        true => Err(Box::new(why)),
        false => Ok(harmless),
    }
}

/// The candidate that harms least: the fewest broken budgets, then the lowest of the highest
/// priorities, the lowest sum of them, the fewest pods, and those that have run for the shortest.
pub(crate) fn best(candidates: Vec<Preemption>) -> Option<Preemption> {
    candidates.into_iter().min_by_key(|it| {
        let priorities = || it.victims.iter().map(|victim| i64::from(victim.priority));
        let highest = priorities().max().unwrap_or(i64::MIN);
        // Shifted, so that a pod of negative priority is still one more.
        let sum: i64 = priorities().map(|priority| priority + i64::from(i32::MAX) + 1).sum();
        let important = it.victims.iter().filter(|it| i64::from(it.priority) == highest);
        let earliest = important.map(|victim| started(victim)).min();
        (it.violations, highest, sum, it.victims.len(), Reverse(earliest))
    })
}

/// Whether a pod is going because another needed its place.
pub(crate) fn is_preempted(pod: &Pod) -> bool {
    let conditions = pod.object.status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.is_deleted()
        && conditions
            .filter(|it| it.type_ == DISRUPTION_TARGET)
            .any(|it| it.status == "True" && it.reason.as_deref() == Some(PREEMPTION_REASON))
}

/// Who would go on a node.
fn on_node(attempt: &Attempt<'_>, node: &Node) -> Result<Preemption, Rejection> {
    let mut rest = node.clone();
    let mut filters = attempt.filters.copy();
    let is_lower = |other: &&Arc<Pod>| other.priority < attempt.pod.priority;
    let mut potential: Vec<Arc<Pod>> = node.pods.iter().filter(is_lower).cloned().collect();
    if potential.is_empty() {
        return Err(Rejection::unresolvable(NO_VICTIMS));
    }
    for victim in &potential {
        rest.remove(&victim.uid);
        filters.remove(victim, &rest);
    }
    filters.check(&rest).map_err(|(_, rejection)| rejection)?;
    potential.sort_by_key(|pod| importance(pod));
    let (protected, free) = by_budget(potential, attempt.snapshot);
    let (mut victims, mut violations) = (Vec::new(), 0);
    for (pod, is_protected) in
        protected.into_iter().map(|pod| (pod, true)).chain(free.into_iter().map(|pod| (pod, false)))
    {
        rest.add(Arc::clone(&pod));
        filters.add(&pod, &rest);
        if filters.check(&rest).is_err() {
            rest.remove(&pod.uid);
            filters.remove(&pod, &rest);
            violations += usize::from(is_protected);
            victims.push(pod);
        }
    }
    victims.sort_by_key(|pod| importance(pod));
    Ok(Preemption { node: Arc::clone(&node.name), victims, violations })
}

/// The more important pod is the lesser: higher priority, or longer running.
fn importance(pod: &Pod) -> (Reverse<i32>, Timestamp) {
    (Reverse(pod.priority), started(pod))
}

/// One that has not started yet has started last.
fn started(pod: &Pod) -> Timestamp {
    pod.start_time().unwrap_or(Timestamp::MAX)
}

/// Those whose going would break a budget, and the others.
fn by_budget(pods: Vec<Arc<Pod>>, snapshot: &Snapshot) -> (Vec<Arc<Pod>>, Vec<Arc<Pod>>) {
    let mut allowed: HashMap<&ObjectKey, i32> = HashMap::new();
    pods.into_iter().partition(|pod| {
        let mut is_broken = false;
        for (key, budget) in &snapshot.budgets {
            let (spec, status) = (budget.spec.as_ref(), budget.status.as_ref());
            if key.namespace() != Some(pod.namespace()) || pod.labels().is_empty() {
                continue;
            }
            let selector = selector::labels(spec.and_then(|spec| spec.selector.as_ref()));
            if !selector.is_ok_and(|it| !it.is_everything() && it.matches(pod.labels())) {
                continue;
            }
            // It counts as gone already.
            let disrupted = status.and_then(|status| status.disrupted_pods.as_ref());
            if disrupted.is_some_and(|disrupted| disrupted.contains_key(pod.key.name())) {
                continue;
            }
            let left = allowed.entry(key).or_insert_with(|| {
                status.and_then(|status| status.disruptions_allowed).unwrap_or_default()
            });
            *left -= 1;
            is_broken |= *left < 0;
        }
        is_broken
    })
}
