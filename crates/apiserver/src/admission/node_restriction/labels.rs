//! Labels that a node may not give itself: people put pods on nodes by them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What tells of the machine, and which a kubelet finds out.
const OWN: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// Domains in which a kubelet may have any label.
const OWN_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const KUBERNETES_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];
/// Is for labels by which people keep nodes apart.
const RESTRICTED_DOMAIN: &str = "node-restriction.kubernetes.io";

/// The labels, in their order, that differ and that a node may not set, change or remove.
pub(super) fn forbidden(new: &Value, old: &Value) -> Vec<String> {
    let none = Map::new();
    let (new, old) = (new.as_object().unwrap_or(&none), old.as_object().unwrap_or(&none));
    let keys: BTreeSet<&String> = new.keys().chain(old.keys()).collect();
    let changed = keys.into_iter().filter(|key| new.get(*key) != old.get(*key));
    changed.filter(|key| is_forbidden(key)).cloned().collect()
}

fn is_forbidden(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |of: &&str| {
        domain == *of || domain.strip_suffix(*of).is_some_and(|rest| rest.ends_with('.'))
    };
    let is_own = OWN.contains(&key) || OWN_DOMAINS.iter().any(is_in);
    is_in(&RESTRICTED_DOMAIN) || KUBERNETES_DOMAINS.iter().any(is_in) && !is_own
}
