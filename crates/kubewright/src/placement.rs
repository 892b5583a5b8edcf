//! Which nodes a pod may be on: what it selects, and what it tolerates.
//!
//! Decides only. Schedulers, nodes and controllers of pods ask the same.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};
use kubewright_apimachinery::selector::label::{Operator, Requirement, Selector};

/// The only field that nodes can be selected by.
pub const NAME_FIELD: &str = "metadata.name";

/// Whether a node is one of those that a pod asks for, by its `nodeSelector` and the affinity that
/// it requires.
pub fn selects(spec: &PodSpec, node: &Node) -> bool {
    let no_labels = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&no_labels);
    let mut wanted = spec.node_selector.iter().flatten();
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    wanted.all(|(key, value)| labels.get(key) == Some(value))
        && required.is_none_or(|required| {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            NodeTerms::of(required).matches(name, labels)
        })
}

/// Whether a pod with a toleration bears a taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let [own, wanted] =
        [&taint.value, &toleration.value].map(|it| it.as_deref().unwrap_or_default());
    let is_any_or = |wanted: &Option<String>, is: &str| {
        wanted.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == is)
    };
    is_any_or(&toleration.effect, &taint.effect)
        && is_any_or(&toleration.key, &taint.key)
        && match toleration.operator.as_deref() {
            None | Some("" | "Equal") => own == wanted,
            Some(operator) => operator == "Exists",
        }
}

/// Which nodes will do: any of some terms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeTerms(Vec<NodeTerm>);

/// All of these must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTerm {
    labels: Selector,
    names: Vec<NameRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NameRequirement {
    name: String,
    is_wanted: bool,
}

impl NodeTerms {
    /// A selector without terms selects no node.
    pub fn of(selector: &NodeSelector) -> Self {
        NodeTerms(selector.node_selector_terms.iter().map(NodeTerm::of).collect())
    }

    /// Whether a node of this name with these labels will do.
    pub fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().any(|term| term.matches(name, labels))
    }
}

impl NodeTerm {
    /// A term that says nothing, or something that makes no sense, selects no node.
    pub fn of(term: &NodeSelectorTerm) -> Self {
        let (expressions, fields) = (list(&term.match_expressions), list(&term.match_fields));
        let nothing = NodeTerm { labels: Selector::Nothing, names: Vec::new() };
        if expressions.is_empty() && fields.is_empty() {
            return nothing;
        }
        let labels: Option<Vec<Requirement>> = expressions.iter().map(label_requirement).collect();
        let names: Option<Vec<NameRequirement>> = fields.iter().map(name_requirement).collect();
        match labels.zip(names) {
            Some((labels, names)) => NodeTerm { labels: Selector::All(labels), names },
            None => nothing,
        }
    }

    /// Whether all holds for a node of this name with these labels.
    pub fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.labels.matches(labels)
            && self.names.iter().all(|names| (names.name == name) == names.is_wanted)
    }
}

fn list(requirements: &Option<Vec<NodeSelectorRequirement>>) -> &[NodeSelectorRequirement] {
    requirements.as_deref().unwrap_or_default()
}

fn label_requirement(requirement: &NodeSelectorRequirement) -> Option<Requirement> {
    let operator = match requirement.operator.as_str() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::GreaterThan,
        "Lt" => Operator::LessThan,
        _ => return None,
    };
    let values = requirement.values.clone().unwrap_or_default();
    Requirement::new(requirement.key.as_str(), operator, values).ok()
}

fn name_requirement(requirement: &NodeSelectorRequirement) -> Option<NameRequirement> {
    let is_wanted = match requirement.operator.as_str() {
        "In" => true,
        "NotIn" => false,
        _ => return None,
    };
    let [name] = requirement.values.as_deref()? else { return None };
    (requirement.key == NAME_FIELD).then(|| NameRequirement { name: name.clone(), is_wanted })
}
