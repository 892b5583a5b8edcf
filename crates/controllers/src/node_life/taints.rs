//! The taints that conditions of a node stand for, and how fast nodes may be emptied.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::health::readiness;
use crate::part::text;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Which status of a condition stands for which taint.
const TAINTS: &[(&str, &str, &str)] = &[
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

/// Nodes of such a zone are not counted among those that may be disrupted.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

/// What the pods of a node that is not ready are to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eviction {
    /// They leave, and those of the next node of the zone not before this time has passed.
    Every(SignedDuration),
    /// They stay where they are told to leave already; no more are told.
    Halted,
    /// They stay: if no node is heard of, it is rather we who cannot hear.
    Off,
}

/// The taints that a node should have, if it should have others. `evicts` is whether pods may be
/// made to leave now, none if those that must leave stay and no more are told.
pub(super) fn plan(node: &Node, evicts: Option<bool>, now: Timestamp) -> Option<Vec<Taint>> {
    let held = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let mut wanted: Vec<(&str, &str)> = marks(node).map(|key| (key, "NoSchedule")).collect();
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let leaves = |taint: &Taint| taint.effect == "NoExecute" && is_silence(&taint.key);
    let silence = match readiness(node) {
        Some("False") => Some(NOT_READY),
        Some("Unknown") => Some(UNREACHABLE),
        _ => None,
    };
    let is_told = held.iter().any(leaves);
    let may_tell = match evicts {
        Some(evicts) => evicts,
        None => is_told,
    };
    wanted.extend(silence.filter(|_| may_tell).map(|key| (key, "NoExecute")));

    let is_ours = |taint: &Taint| {
        leaves(taint)
            || (taint.effect == "NoSchedule"
                && (taint.key == UNSCHEDULABLE || TAINTS.iter().any(|(.., key)| *key == taint.key)))
    };
    let is_wanted = |taint: &Taint| wanted.contains(&(&*taint.key, &*taint.effect));
    // A node that nothing is known of keeps what it has until something is.
    let is_unjudged = silence.is_none() && readiness(node).is_none();
    let stays =
        |taint: &&Taint| !is_ours(taint) || is_wanted(taint) || (is_unjudged && leaves(taint));
    let mut taints: Vec<Taint> = held.iter().filter(stays).cloned().collect();
    for (key, effect) in wanted {
        if !taints.iter().any(|taint| taint.key == key && taint.effect == effect) {
            taints.push(Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                time_added: Some(Time(now)),
                value: None,
            });
        }
    }
    (taints != held).then_some(taints)
}

/// Whether pods of a node should be told to leave, and are not.
pub(super) fn awaits_eviction(node: &Node) -> bool {
    let wanted = match readiness(node) {
        Some("False") => NOT_READY,
        Some("Unknown") => UNREACHABLE,
        _ => return false,
    };
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    !taints.any(|taint| taint.effect == "NoExecute" && taint.key == wanted)
}

/// Whether pods of a node are told to leave because it is not heard of.
pub(super) fn is_evicting(node: &Node) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.effect == "NoExecute" && is_silence(&taint.key))
}

/// How fast nodes of a zone may be emptied, given all nodes there are.
pub(super) fn eviction<'a>(zone: &str, nodes: impl IntoIterator<Item = &'a Node>) -> Eviction {
    let mut zones: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for node in nodes {
        let labels = node.metadata.labels.as_ref();
        if labels.is_some_and(|labels| labels.contains_key(EXCLUDED)) {
            continue;
        }
        let (fit, unfit) = zones.entry(self::zone(node)).or_default();
        match readiness(node) {
            Some("True") => *fit += 1,
            _ => *unfit += 1,
        }
    }
    if zones.values().all(|(fit, _)| *fit == 0) {
        return Eviction::Off;
    }
    let (fit, unfit) = zones.get(zone).copied().unwrap_or_default();
    let is_partly_lost = unfit > 2 && unfit * 100 >= 55 * (fit + unfit);
    match (is_partly_lost && fit > 0, fit + unfit > 50) {
        (false, _) => Eviction::Every(SignedDuration::from_secs(10)),
        (true, true) => Eviction::Every(SignedDuration::from_secs(100)),
        (true, false) => Eviction::Halted,
    }
}

/// The zone of a node, within its region.
pub(super) fn zone(node: &Node) -> String {
    let label = |key| node.metadata.labels.as_ref().and_then(|labels| labels.get(key).cloned());
    let (region, zone) =
        (label("topology.kubernetes.io/region"), label("topology.kubernetes.io/zone"));
    format!("{}:{}", text(&region), text(&zone))
}

fn marks(node: &Node) -> impl Iterator<Item = &'static str> {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.filter_map(|condition| {
        let stands = |(kind, status, _): &&(&str, &str, &str)| {
            *kind == condition.type_ && *status == condition.status
        };
        TAINTS.iter().find(stands).map(|(.., key)| *key)
    })
}

fn is_silence(key: &str) -> bool {
    matches!(key, NOT_READY | UNREACHABLE)
}
