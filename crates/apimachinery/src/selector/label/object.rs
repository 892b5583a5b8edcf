//! `metav1.LabelSelector`, as it stands in the specs of workloads.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Operator, Requirement, Selector};
use crate::field::{Error, Path};
use crate::json::go_quote;
use crate::name;
use crate::status::aggregate;

/// Labels that must be equal, and expressions that must hold. When there are neither, anything
/// will do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Expression>,
}

/// One condition on one label, as written; it may be nonsense until validated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expression {
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// What old objects are forgiven.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Leniency {
    /// Values that no label can have.
    pub invalid_values: bool,
    /// Operators that nobody here knows; somebody else may.
    pub unknown_operators: bool,
}

/// The object asks for something that no selector can say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotASelector(String);

impl LabelSelector {
    /// Everything that is wrong with it.
    pub fn validate(&self, leniency: Leniency, path: &Path<'_>) -> Vec<Error> {
        let mut errors = Vec::new();
        let labels = path.child("matchLabels");
        for (key, value) in &self.match_labels {
            errors.extend(invalid(&labels, key, name::label_key(key)));
            errors.extend(invalid(&labels, value, name::label_value(value)));
        }
        let expressions = path.child("matchExpressions");
        for (index, expression) in self.match_expressions.iter().enumerate() {
            errors.extend(expression.validate(leniency, &expressions.index(index)));
        }
        errors
    }

    /// The selector that matches what this means. An absent object is [`Selector::Nothing`],
    /// which is for the caller to know.
    pub fn to_selector(&self) -> Result<Selector, NotASelector> {
        let equal = self.match_labels.iter().map(|(key, value)| {
            Requirement::new(key.as_str(), Operator::Equals, vec![value.clone()])
        });
        let mut requirements = Vec::new();
        for requirement in equal {
            requirements.push(requirement.map_err(|errors| NotASelector(aggregate(&errors)))?);
        }
        for expression in &self.match_expressions {
            let operator = expression.operator().ok_or_else(|| {
                let quoted = go_quote(&expression.operator);
                NotASelector(format!("{quoted} is not a valid label selector operator"))
            })?;
            let requirement =
                Requirement::new(expression.key.as_str(), operator, expression.values.clone());
            requirements.push(requirement.map_err(|errors| NotASelector(aggregate(&errors)))?);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Selector::All(requirements))
    }
}

/// As kubectl prints it in tables.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_selector() {
            Err(_) => f.write_str("<error>"),
            Ok(selector) if selector.is_everything() => f.write_str("<none>"),
            Ok(selector) => write!(f, "{selector}"),
        }
    }
}

impl Expression {
    fn operator(&self) -> Option<Operator> {
        match self.operator.as_str() {
            "In" => Some(Operator::In),
            "NotIn" => Some(Operator::NotIn),
            "Exists" => Some(Operator::Exists),
            "DoesNotExist" => Some(Operator::DoesNotExist),
            _ => None,
        }
    }

    /// Everything that is wrong with it.
    pub fn validate(&self, leniency: Leniency, path: &Path<'_>) -> Vec<Error> {
        let mut errors = Vec::new();
        let values = path.child("values");
        match self.operator() {
            Some(Operator::In | Operator::NotIn) if self.values.is_empty() => {
                errors.push(Error::required(
                    &values,
                    "must be specified when `operator` is 'In' or 'NotIn'",
                ));
            }
            Some(Operator::Exists | Operator::DoesNotExist) if !self.values.is_empty() => {
                errors.push(Error::forbidden(
                    &values,
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ));
            }
            None if !leniency.unknown_operators => errors.push(Error::invalid(
                &path.child("operator"),
                self.operator.as_str(),
                "not a valid selector operator",
            )),
            _ => {}
        }
        errors.extend(invalid(&path.child("key"), &self.key, name::label_key(&self.key)));
        if !leniency.invalid_values {
            for (index, value) in self.values.iter().enumerate() {
                errors.extend(invalid(&values.index(index), value, name::label_value(value)));
            }
        }
        errors
    }
}

fn invalid(path: &Path<'_>, value: &str, problems: Vec<String>) -> Vec<Error> {
    problems.into_iter().map(|problem| Error::invalid(path, value, problem)).collect()
}

fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
