//! How long a pod may stay on a node with taints.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition, PodStatus, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright::placement::tolerates;

use crate::part::text;

/// How long a pod may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stay {
    Forever,
    For(SignedDuration),
}

/// How long a pod may stay on its node: as long as it bears each taint, and not at all if there is
/// one that it does not bear.
pub(super) fn stay(pod: &Pod, node: &Node) -> Stay {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref());
    let tolerations = tolerations.unwrap_or_default();
    let mut least = Stay::Forever;
    for taint in taints(node) {
        let Some(toleration) = tolerations.iter().find(|it| tolerates(it, taint)) else {
            return Stay::For(SignedDuration::ZERO);
        };
        if let Some(seconds) = toleration.toleration_seconds {
            let time = SignedDuration::from_secs(seconds.max(0));
            least = match least {
                Stay::For(known) => Stay::For(known.min(time)),
                Stay::Forever => Stay::For(time),
            };
        }
    }
    least
}

/// What the status of a pod should say before it is evicted, if it does not.
pub(super) fn status(pod: &Pod, now: Timestamp) -> Option<PodStatus> {
    let mut status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.get_or_insert_default();
    let known = conditions.iter().position(|it| it.type_ == "DisruptionTarget");
    let condition = PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: Some("DeletionByTaintManager".to_owned()),
        message: Some("Taint manager: deleting due to NoExecute taint".to_owned()),
        last_transition_time: Some(Time(now)),
        ..PodCondition::default()
    };
    match known.map(|position| &mut conditions[position]) {
        Some(known) if known.status == condition.status && known.reason == condition.reason => {
            return None;
        }
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
    Some(status)
}

/// The taints of a node that pods leave for.
pub(super) fn taints(node: &Node) -> Vec<&Taint> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.filter(|taint| taint.effect == "NoExecute").collect()
}

/// The node that a pod is on; empty if it is on none.
pub(super) fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().map_or("", |spec| text(&spec.node_name))
}
