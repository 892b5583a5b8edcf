//! Where a pod may run: affinity, tolerations, and spreading over a topology.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Affinity, PodAffinityTerm, Toleration, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::label::Leniency;

use super::Allowed;
use crate::kinds::check::{self, list, text};
use crate::kinds::node_selector;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
const SPREAD_ACTIONS: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
const NODE_POLICIES: &[&str] = &["Honor", "Ignore"];

pub(super) fn affinity(affinity: &Affinity, allowed: &Allowed, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(nodes) = &affinity.node_affinity {
        let path = path.child("nodeAffinity");
        if let Some(selector) = &nodes.required_during_scheduling_ignored_during_execution {
            errors.extend(node_selector::check(
                selector,
                allowed.unsound_node_values,
                &path.child(REQUIRED),
            ));
        }
        let path = path.child(PREFERRED);
        let preferred = list(&nodes.preferred_during_scheduling_ignored_during_execution);
        for (index, term) in preferred.iter().enumerate() {
            let path = path.index(index);
            errors.extend(weight(term.weight, &path));
            errors.extend(node_selector::check_term(
                &term.preference,
                true,
                &path.child("preference"),
            ));
        }
    }
    if let Some(pods) = &affinity.pod_affinity {
        let required = list(&pods.required_during_scheduling_ignored_during_execution);
        let preferred = list(&pods.preferred_during_scheduling_ignored_during_execution);
        let path = path.child("podAffinity");
        errors.extend(pod_affinity(required, preferred, allowed, &path));
    }
    if let Some(pods) = &affinity.pod_anti_affinity {
        let required = list(&pods.required_during_scheduling_ignored_during_execution);
        let preferred = list(&pods.preferred_during_scheduling_ignored_during_execution);
        let path = path.child("podAntiAffinity");
        errors.extend(pod_affinity(required, preferred, allowed, &path));
    }
    errors
}

/// Whether the old spec selects pods by values that no label has.
pub(super) fn has_unsound_selectors(affinity: &Affinity) -> bool {
    let near = affinity.pod_affinity.iter().flat_map(|pods| {
        let required = list(&pods.required_during_scheduling_ignored_during_execution).iter();
        let preferred = list(&pods.preferred_during_scheduling_ignored_during_execution).iter();
        required.chain(preferred.map(|term| &term.pod_affinity_term))
    });
    let far = affinity.pod_anti_affinity.iter().flat_map(|pods| {
        let required = list(&pods.required_during_scheduling_ignored_during_execution).iter();
        let preferred = list(&pods.preferred_during_scheduling_ignored_during_execution).iter();
        required.chain(preferred.map(|term| &term.pod_affinity_term))
    });
    near.chain(far).any(|term| !term_selectors(term, false, &Path::ROOT).is_empty())
}

/// Whether the old spec requires values of nodes that no label has.
pub(super) fn has_unsound_node_values(affinity: &Affinity) -> bool {
    let nodes = affinity.node_affinity.as_ref();
    let selector =
        nodes.and_then(|n| n.required_during_scheduling_ignored_during_execution.as_ref());
    selector.is_some_and(node_selector::has_unsound_values)
}

fn weight(weight: i32, path: &Path<'_>) -> Option<Error> {
    let is_sound = (1..=100).contains(&weight);
    let problem = "must be in the range 1-100";
    (!is_sound).then(|| Error::invalid(&path.child("weight"), weight, problem))
}

fn pod_affinity(
    required: &[PodAffinityTerm],
    preferred: &[WeightedPodAffinityTerm],
    allowed: &Allowed,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let required_path = path.child(REQUIRED);
    for (index, term) in required.iter().enumerate() {
        errors.extend(pod_term(term, allowed, &required_path.index(index)));
    }
    let preferred_path = path.child(PREFERRED);
    for (index, term) in preferred.iter().enumerate() {
        let path = preferred_path.index(index);
        errors.extend(weight(term.weight, &path));
        errors.extend(pod_term(&term.pod_affinity_term, allowed, &path.child("podAffinityTerm")));
    }
    errors
}

fn pod_term(term: &PodAffinityTerm, allowed: &Allowed, path: &Path<'_>) -> Vec<Error> {
    let mut errors = term_selectors(term, allowed.unsound_selectors, path);
    for namespace in list(&term.namespaces) {
        errors.extend(check::dns_label(&path.child("namespace"), namespace));
    }
    errors.extend(label_keys(
        list(&term.match_label_keys),
        list(&term.mismatch_label_keys),
        term.label_selector.as_ref(),
        path,
    ));
    let topology_path = path.child("topologyKey");
    if term.topology_key.is_empty() {
        errors.push(Error::required(&topology_path, "can not be empty"));
    }
    errors.extend(check::qualified_name(&topology_path, &term.topology_key));
    errors
}

fn term_selectors(term: &PodAffinityTerm, any_value: bool, path: &Path<'_>) -> Vec<Error> {
    let leniency = Leniency { invalid_values: any_value, ..Leniency::default() };
    let (pods, namespaces) = (term.label_selector.as_ref(), term.namespace_selector.as_ref());
    let mut errors = check::selector(&path.child("labelSelector"), pods, leniency);
    errors.extend(check::selector(&path.child("namespaceSelector"), namespaces, leniency));
    errors
}

/// Keys whose values in the labels of the new pod become part of the selector.
fn label_keys(
    matching: &[String],
    mismatching: &[String],
    selector: Option<&LabelSelector>,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    for (name, keys) in [("matchLabelKeys", matching), ("mismatchLabelKeys", mismatching)] {
        let path = path.child(name);
        if keys.is_empty() {
            continue;
        }
        if selector.is_none() {
            let problem = "must not be specified when labelSelector is not set";
            errors.push(Error::forbidden(&path, problem));
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            errors.extend(check::qualified_name(&path.index(index), key));
        }
    }
    if let Some(selector) = selector {
        // The server adds an expression for each key, so one is to be expected, but not two.
        let mut seen: BTreeSet<&str> =
            selector.match_labels.iter().flatten().map(|(key, _)| key.as_str()).collect();
        for expression in list(&selector.match_expressions) {
            let key = expression.key.as_str();
            let index = matching.iter().rposition(|matching| matching == key);
            if let Some(index) = index.filter(|_| seen.contains(key)) {
                let problem = "exists in both matchLabelKeys and labelSelector";
                errors.push(Error::invalid(&path.index(index), key, problem));
            }
            seen.insert(key);
        }
    }
    let matching_path = path.child("matchLabelKeys");
    for (index, key) in matching.iter().enumerate() {
        if mismatching.contains(key) {
            let problem = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(Error::invalid(&matching_path.index(index), key.as_str(), problem));
        }
    }
    errors
}

pub(in crate::kinds) fn tolerations(tolerations: &[Toleration], path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, toleration) in tolerations.iter().enumerate() {
        let path = path.index(index);
        let (key, value) = (text(&toleration.key), text(&toleration.value));
        let (operator, effect) = (text(&toleration.operator), text(&toleration.effect));
        let operator_path = path.child("operator");
        if !key.is_empty() {
            errors.extend(check::qualified_name(&path.child("key"), key));
        }
        if key.is_empty() && operator != "Exists" {
            let problem = "operator must be Exists when `key` is empty, which means \"match all \
                           values and all keys\"";
            errors.push(Error::invalid(&operator_path, operator, problem));
        }
        if toleration.toleration_seconds.is_some() && effect != "NoExecute" {
            let problem = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(Error::invalid(&path.child("effect"), effect, problem));
        }
        match operator {
            "" | "Equal" => {
                let problems = name::label_value(value);
                if !problems.is_empty() {
                    errors.push(Error::invalid(&operator_path, value, problems.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                let problem = "value must be empty when `operator` is 'Exists'";
                errors.push(Error::invalid(&operator_path, value, problem));
            }
            "Exists" => {}
            "Lt" | "Gt" => {
                let known = ["Equal", "Exists", "Lt", "Gt"];
                errors.push(Error::not_supported(&operator_path, operator, &known));
            }
            _ => {
                let known = ["Equal", "Exists"];
                errors.push(Error::not_supported(&operator_path, operator, &known));
            }
        }
        if !effect.is_empty() {
            errors.extend(check::one_of(&path.child("effect"), effect, EFFECTS));
        }
    }
    errors
}

pub(super) fn spreading(
    constraints: &[TopologySpreadConstraint],
    allowed: &Allowed,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        let action = constraint.when_unsatisfiable.as_str();
        errors.extend(check::positive(&path.child("maxSkew"), constraint.max_skew));
        if constraint.topology_key.is_empty() {
            errors.push(Error::required(&path.child("topologyKey"), "can not be empty"));
        }
        let action_path = path.child("whenUnsatisfiable");
        errors.extend(check::one_of(&action_path, action, SPREAD_ACTIONS));
        let pair = (&constraint.topology_key, &constraint.when_unsatisfiable);
        let mut rest = constraints[index + 1..].iter();
        if rest.any(|other| (&other.topology_key, &other.when_unsatisfiable) == pair) {
            errors.push(Error::duplicate(
                &path.child("{topologyKey, whenUnsatisfiable}"),
                format!("{{{}, {}}}", constraint.topology_key, action),
            ));
        }
        if let Some(domains) = constraint.min_domains {
            let path = path.child("minDomains");
            errors.extend(check::positive(&path, domains));
            if action != "DoNotSchedule" {
                let problem = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                );
                errors.push(Error::invalid(&path, domains, problem));
            }
        }
        for (name, policy) in [
            ("nodeAffinityPolicy", &constraint.node_affinity_policy),
            ("nodeTaintsPolicy", &constraint.node_taints_policy),
        ] {
            if let Some(policy) = policy {
                errors.extend(check::one_of(&path.child(name), policy, NODE_POLICIES));
            }
        }
        errors.extend(spreading_keys(constraint, allowed, &path));
        if !allowed.unsound_spreading {
            let path = path.child("labelSelector");
            let selector = constraint.label_selector.as_ref();
            errors.extend(check::selector(&path, selector, Leniency::default()));
        }
    }
    errors
}

/// Whether the old spec spreads by a selector that selects by nonsense.
pub(super) fn has_unsound_spreading(constraints: &[TopologySpreadConstraint]) -> bool {
    let mut selectors = constraints.iter().map(|constraint| constraint.label_selector.as_ref());
    selectors.any(|s| !check::selector(&Path::ROOT, s, Leniency::default()).is_empty())
}

/// Whether the old spec is from when keys did not become part of the selector.
pub(super) fn has_unmerged_keys(constraints: &[TopologySpreadConstraint]) -> bool {
    constraints.iter().any(|constraint| {
        let keys = list(&constraint.match_label_keys);
        let selector = constraint.label_selector.as_ref();
        !label_keys(keys, &[], selector, &Path::ROOT).is_empty()
    })
}

fn spreading_keys(
    constraint: &TopologySpreadConstraint,
    allowed: &Allowed,
    path: &Path<'_>,
) -> Vec<Error> {
    let keys = list(&constraint.match_label_keys);
    let selector = constraint.label_selector.as_ref();
    if !allowed.unmerged_keys {
        return label_keys(keys, &[], selector, path);
    }
    if keys.is_empty() {
        return Vec::new();
    }
    let path = path.child("matchLabelKeys");
    let mut errors = Vec::new();
    if selector.is_none() {
        let problem = "must not be specified when labelSelector is not set";
        errors.push(Error::forbidden(&path, problem));
    }
    let selects_by = |key: &String| {
        selector.is_some_and(|selector| {
            selector.match_labels.iter().flatten().any(|(label, _)| label == key)
                || list(&selector.match_expressions).iter().any(|e| e.key == *key)
        })
    };
    for (index, key) in keys.iter().enumerate() {
        let path = path.index(index);
        errors.extend(check::qualified_name(&path, key));
        if selects_by(key) {
            let problem = "exists in both matchLabelKeys and labelSelector";
            errors.push(Error::invalid(&path, key.as_str(), problem));
        }
    }
    errors
}
