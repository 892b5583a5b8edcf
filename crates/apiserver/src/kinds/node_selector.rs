//! Which nodes are meant: by their labels, or by their name.

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;

use super::check::{self, list};

/// The only field that a term may speak of.
const NODE_NAME: &str = "metadata.name";

/// A selector, whose values need not be those of labels if `any_value` will do.
pub(super) fn check(selector: &NodeSelector, any_value: bool, path: &Path<'_>) -> Vec<Error> {
    let path = path.child("nodeSelectorTerms");
    if selector.node_selector_terms.is_empty() {
        return vec![Error::required(&path, "must have at least one node selector term")];
    }
    let terms = selector.node_selector_terms.iter().enumerate();
    terms.flat_map(|(index, term)| check_term(term, any_value, &path.index(index))).collect()
}

pub(super) fn check_term(term: &NodeSelectorTerm, any_value: bool, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let expressions_path = path.child("matchExpressions");
    for (index, expression) in list(&term.match_expressions).iter().enumerate() {
        errors.extend(check_expression(expression, any_value, &expressions_path.index(index)));
    }
    let fields_path = path.child("matchFields");
    for (index, field) in list(&term.match_fields).iter().enumerate() {
        errors.extend(check_field(field, &fields_path.index(index)));
    }
    errors
}

fn check_expression(
    expression: &NodeSelectorRequirement,
    any_value: bool,
    path: &Path<'_>,
) -> Vec<Error> {
    let values = list(&expression.values);
    let values_path = path.child("values");
    let operator = expression.operator.as_str();
    let mut errors = Vec::new();
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            let problem = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(Error::required(&values_path, problem));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let problem = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(Error::forbidden(&values_path, problem));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let problem = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(Error::required(&values_path, problem));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => {
            let problem = "not a valid selector operator";
            errors.push(Error::invalid(&path.child("operator"), operator, problem));
        }
    }
    errors.extend(check::qualified_name(&path.child("key"), &expression.key));
    if !any_value {
        for (index, value) in values.iter().enumerate() {
            errors.extend(check::invalid(
                &values_path.index(index),
                value,
                name::label_value(value),
            ));
        }
    }
    errors
}

fn check_field(field: &NodeSelectorRequirement, path: &Path<'_>) -> Vec<Error> {
    let values = list(&field.values);
    let values_path = path.child("values");
    let mut errors = Vec::new();
    match field.operator.as_str() {
        "In" | "NotIn" if values.len() == 1 => {}
        "In" | "NotIn" => {
            let problem =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(Error::required(&values_path, problem));
        }
        operator => {
            let problem = "not a valid selector operator";
            errors.push(Error::invalid(&path.child("operator"), operator, problem));
        }
    }
    if field.key != NODE_NAME {
        let problem = "not a valid field selector key";
        errors.push(Error::invalid(&path.child("key"), field.key.as_str(), problem));
        return errors;
    }
    for (index, value) in values.iter().enumerate() {
        errors.extend(check::dns_subdomain(&values_path.index(index), value));
    }
    errors
}

/// Whether a selector has values that no label has.
pub(super) fn has_unsound_values(selector: &NodeSelector) -> bool {
    let terms = selector.node_selector_terms.iter();
    let expressions = terms.flat_map(|term| list(&term.match_expressions));
    let mut values = expressions.flat_map(|expression| list(&expression.values));
    values.any(|value| !name::label_value(value).is_empty())
}
