//! Room is made for a pod by taking pods of lower priority away, as few and as unimportant ones as
//! will do.

use crate::cycle::Attempt;
use crate::plugin::{Code, Plugin, Point, Remedy};
use crate::preempt;

const NEVER: &str = "preemption: not eligible due to preemptionPolicy=Never.";
const TERMINATING: &str =
    "preemption: not eligible due to a terminating pod on the nominated node.";

/// How many nodes are compared: a share of all, but not too few.
#[derive(Debug, Clone)]
pub(crate) struct DefaultPreemption {
    pub(crate) percentage_min: usize,
    pub(crate) nodes_min: usize,
}

impl DefaultPreemption {
    pub(crate) const NAME: &str = "DefaultPreemption";
}

impl Plugin for DefaultPreemption {
    fn name(&self) -> &str {
        DefaultPreemption::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::PostFilter, Point::PreEnqueue]
    }

    fn post_filter(&self, attempt: &Attempt<'_>) -> Option<Remedy> {
        let policy = attempt.pod.spec().and_then(|spec| spec.preemption_policy.as_deref());
        if policy == Some("Never") {
            return Some(Remedy::Nothing(NEVER.to_owned()));
        }
        if is_under_way(attempt) {
            return Some(Remedy::Nothing(TERMINATING.to_owned()));
        }
        let nodes = attempt.diagnosis.resolvable().len();
        let wanted = (nodes * self.percentage_min / 100).max(self.nodes_min).min(nodes);
        Some(match preempt::candidates(attempt, wanted) {
            Ok(candidates) => Remedy::Preempt(candidates),
            Err(why) => Remedy::NoUse(format!("preemption: {why}")),
        })
    }
}

/// Whether pods are going already, on the node where room is made for this one.
fn is_under_way(attempt: &Attempt<'_>) -> bool {
    let Some(name) = attempt.pod.nominated_node() else { return false };
    if attempt.diagnosis.rejection(name).code == Code::Unresolvable {
        return false;
    }
    let Some(node) = attempt.snapshot.node(name) else { return false };
    node.pods
        .iter()
        .any(|other| other.priority < attempt.pod.priority && preempt::is_preempted(other))
}
