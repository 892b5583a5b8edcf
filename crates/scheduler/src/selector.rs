//! Selectors of pods and nodes, read once and asked often.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kubewright::placement::NAME_FIELD;
use kubewright_apimachinery::selector::label::{Expression, LabelSelector, NotASelector, Selector};

pub(crate) type Labels = BTreeMap<String, String>;

/// What an object without labels has.
pub(crate) static NO_LABELS: Labels = Labels::new();

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

/// The names that a term allows at most; none if it does not speak of names.
pub(crate) fn names_of(term: &NodeSelectorTerm) -> Option<Vec<&str>> {
    let is_list = |it: &&NodeSelectorRequirement| it.key == NAME_FIELD && it.operator == "In";
    let mut lists = term.match_fields.iter().flatten().filter(is_list).map(|it| {
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
