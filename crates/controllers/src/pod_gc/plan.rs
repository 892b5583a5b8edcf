//! Which pods go.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::part::text;

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// What becomes of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Stays,
    Goes,
    /// It goes because its node is gone.
    Orphan,
}

/// Where a pod is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Home<'a> {
    There(&'a Node),
    /// On no node, or on one that may yet be heard of.
    Unknown,
    Gone,
}

pub(super) fn fate(pod: &Pod, home: Home<'_>) -> Fate {
    let is_deleted = pod.metadata.deletion_timestamp.is_some();
    match home {
        Home::Gone => Fate::Orphan,
        Home::There(node) if is_deleted && is_out_of_service(node) && !is_ready(node) => Fate::Goes,
        Home::Unknown if is_deleted && node(pod).is_empty() => Fate::Goes,
        Home::There(_) | Home::Unknown => Fate::Stays,
    }
}

/// What the status of a pod should be before it goes, if it should be another.
pub(super) fn status(pod: &Pod, fate: Fate, now: Timestamp) -> Option<PodStatus> {
    let mut status = pod.status.clone().unwrap_or_default();
    if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return None;
    }
    status.phase = Some("Failed".to_owned());
    if fate == Fate::Orphan {
        let condition = PodCondition {
            type_: "DisruptionTarget".to_owned(),
            status: "True".to_owned(),
            reason: Some("DeletionByPodGC".to_owned()),
            message: Some("PodGC: node no longer exists".to_owned()),
            last_transition_time: Some(Time(now)),
            ..PodCondition::default()
        };
        let conditions = status.conditions.get_or_insert_default();
        conditions.retain(|known| known.type_ != condition.type_);
        conditions.push(condition);
    }
    Some(status)
}

/// The pods that are over and too many: those that were evicted, then the oldest.
pub(super) fn oldest<'a>(pods: &[&'a Pod], max: usize) -> Vec<&'a Pod> {
    let mut over: Vec<&Pod> = pods.iter().copied().filter(|pod| is_over(pod)).collect();
    let surplus = over.len().saturating_sub(max);
    over.sort_by_key(|pod| {
        let reason = pod.status.as_ref().and_then(|status| status.reason.as_deref());
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (reason != Some("Evicted"), created, pod.metadata.name.clone())
    });
    over.truncate(surplus);
    over
}

/// The node that a pod is on; empty if it is on none.
pub(super) fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().map_or("", |spec| text(&spec.node_name))
}

pub(super) fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether somebody has said that a node will not come back as it was.
pub(super) fn is_out_of_service(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key == OUT_OF_SERVICE)
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|it| it.type_ == "Ready" && it.status == "True")
}
