//! Selectors of pods and nodes, read once and asked often.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kubewright_apimachinery::selector::label::{
    Expression, LabelSelector, NotASelector, Operator, Requirement, Selector,
};

pub(crate) type Labels = BTreeMap<String, String>;

/// What an object without labels has.
pub(crate) static NO_LABELS: Labels = Labels::new();

/// The only field that nodes can be selected by.
const NAME_FIELD: &str = "metadata.name";

/// The selector that an object means. None selects nothing.
pub(crate) fn labels(selector: Option<&meta::LabelSelector>) -> Result<Selector, NotASelector> {
    let Some(selector) = selector else { return Ok(Selector::Nothing) };
    let expressions = selector.match_expressions.iter().flatten();
    let expression = |it: &meta::LabelSelectorRequirement| Expression {
        key: it.key.clone(),
        operator: it.operator.clone(),
        values: it.values.clone().unwrap_or_default(),
    };
    LabelSelector {
        match_labels: selector.match_labels.clone().unwrap_or_default(),
        match_expressions: expressions.map(expression).collect(),
    }
    .to_selector()
}

/// Both selectors at once.
pub(crate) fn both(one: Selector, other: Selector) -> Selector {
    match (one, other) {
        (Selector::All(mut all), Selector::All(more)) => {
            all.extend(more);
            Selector::All(all)
        }
        _ => Selector::Nothing,
    }
}

/// Which nodes will do: any of some terms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeTerms(Vec<NodeTerm>);

/// All of these must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeTerm {
    labels: Selector,
    names: Vec<NameRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NameRequirement {
    name: String,
    is_wanted: bool,
}

impl NodeTerms {
    pub(crate) fn of(selector: &NodeSelector) -> Self {
        NodeTerms(selector.node_selector_terms.iter().map(NodeTerm::of).collect())
    }

    pub(crate) fn matches(&self, name: &str, labels: &Labels) -> bool {
        self.0.iter().any(|term| term.matches(name, labels))
    }
}

impl NodeTerm {
    /// A term that says nothing, or something that makes no sense, selects no node.
    pub(crate) fn of(term: &NodeSelectorTerm) -> Self {
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

    pub(crate) fn matches(&self, name: &str, labels: &Labels) -> bool {
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

/// The names that a term allows at most; none if it does not speak of names.
pub(crate) fn names_of(term: &NodeSelectorTerm) -> Option<Vec<&str>> {
    let is_list = |it: &&NodeSelectorRequirement| it.key == NAME_FIELD && it.operator == "In";
    let mut lists = list(&term.match_fields).iter().filter(is_list).map(|it| {
        let values = it.values.iter().flatten();
        values.map(String::as_str).collect::<Vec<&str>>()
    });
    let first = lists.next()?;
    Some(
        lists.fold(first, |names, more| {
            names.into_iter().filter(|name| more.contains(name)).collect()
        }),
    )
}
