//! On which nodes a DaemonSet's pods should run, and may stay.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod,
    PodSpec, Toleration,
};
use kubewright::placement::{NAME_FIELD, selects, tolerates};

use crate::pods;

const NO_EXECUTE: &str = "NoExecute";
const NO_SCHEDULE: &str = "NoSchedule";

/// Troubles of a node that no DaemonSet's pod minds: it may be there to end them.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
];
const NETWORK_UNAVAILABLE: (&str, &str) = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE);

/// What a node is to a DaemonSet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// A pod should run there.
    Wanted,
    /// None is started there; one that is there may stay.
    Bearable,
    /// None may be there.
    Unfit,
}

pub(super) fn fit(set: &DaemonSet, node: &Node) -> Fit {
    let spec = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let Some(spec) = spec else { return Fit::Unfit };
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let is_named = spec.node_name.as_deref().is_none_or(|own| own.is_empty() || own == name);
    if !is_named || !selects(spec, node) {
        return Fit::Unfit;
    }
    let tolerations = tolerations(spec);
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let is_hindered = |effects: &[&str]| {
        let mut taints = taints.iter().filter(|taint| effects.contains(&taint.effect.as_str()));
        taints.any(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
    };
    match (is_hindered(&[NO_EXECUTE, NO_SCHEDULE]), is_hindered(&[NO_EXECUTE])) {
        (false, _) => Fit::Wanted,
        (true, false) => Fit::Bearable,
        (true, true) => Fit::Unfit,
    }
}

/// The node that a pod is on, or is meant for.
pub(super) fn target(pod: &Pod) -> Option<&str> {
    if !pods::node(pod).is_empty() {
        return Some(pods::node(pod));
    }
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let mut fields =
        required.node_selector_terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let named = fields.find(|field| field.key == NAME_FIELD && field.operator == "In")?;
    match named.values.as_deref()? {
        [name] => Some(name),
        _ => None,
    }
}

/// Means a pod for one node, whatever else its affinity says of nodes: that was asked before.
pub(super) fn aim(affinity: Option<Affinity>, node: &str) -> Affinity {
    let named = NodeSelectorRequirement {
        key: NAME_FIELD.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![named]), match_expressions: None };
    let mut affinity = affinity.unwrap_or_default();
    affinity.node_affinity = Some(NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(NodeSelector {
            node_selector_terms: vec![term],
        }),
        ..affinity.node_affinity.unwrap_or_default()
    });
    affinity
}

/// What a template tolerates, with what every DaemonSet's pod does.
pub(super) fn tolerations(spec: &PodSpec) -> Vec<Toleration> {
    let mut tolerations = spec.tolerations.clone().unwrap_or_default();
    let network = (spec.host_network == Some(true)).then_some(NETWORK_UNAVAILABLE);
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let toleration = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        let is_same = |known: &&mut Toleration| {
            known.key == toleration.key
                && known.effect == toleration.effect
                && known.operator == toleration.operator
                && known.value.as_deref().unwrap_or_default().is_empty()
        };
        match tolerations.iter_mut().find(is_same) {
            Some(known) => *known = toleration,
            None => tolerations.push(toleration),
        }
    }
    tolerations
}
