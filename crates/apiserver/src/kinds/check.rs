//! Checks that the rules of several kinds share, in upstream's words.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::api::resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::apimachinery::pkg::util::intstr;
use kubewright_apimachinery::field::{Error, ErrorKind, Path};
use kubewright_apimachinery::int_or_string::IntOrString;
use kubewright_apimachinery::name;
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::selector::label::{Expression, LabelSelector};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One error for each thing that is wrong with a text.
pub(super) fn each<'a>(
    path: &'a Path<'a>,
    value: &'a str,
    problems: Vec<String>,
) -> impl Iterator<Item = Error> + 'a {
    problems.into_iter().map(move |problem| Error::invalid(path, value, problem))
}

/// An error whose message does not show what was found.
pub(super) fn invalid_unshown(path: &Path<'_>, detail: impl Into<String>) -> Error {
    let detail = detail.into();
    Error { kind: ErrorKind::Invalid, field: path.to_string(), bad_value: None, detail }
}

pub(super) fn non_negative(value: impl Into<i64>, path: &Path<'_>) -> Option<Error> {
    let value = value.into();
    (value < 0).then(|| Error::invalid(path, value, "must be greater than or equal to 0"))
}

/// A field that may not change once the object is there.
pub(super) fn immutable<T: Serialize + PartialEq>(
    new: &T,
    old: &T,
    path: &Path<'_>,
) -> Option<Error> {
    (new != old).then(|| Error::invalid(path, value(new), "field is immutable"))
}

/// The tree of something typed, to be shown in an error.
pub(super) fn value(typed: &impl Serialize) -> Value {
    serde_json::to_value(typed).expect("what came of a tree becomes one again")
}

pub(super) fn quantity(quantity: &resource::Quantity) -> Quantity {
    Quantity::parse(&quantity.0).expect("quantities in normal form are well formed")
}

pub(super) fn int_or_string(value: &intstr::IntOrString) -> IntOrString {
    match value {
        intstr::IntOrString::Int(number) => IntOrString::Int(*number),
        intstr::IntOrString::String(text) => IntOrString::String(text.clone()),
    }
}

/// A count that is not negative, or a percentage.
pub(super) fn int_or_percent(given: &intstr::IntOrString, path: &Path<'_>) -> Vec<Error> {
    match given {
        intstr::IntOrString::Int(number) => non_negative(*number, path).into_iter().collect(),
        intstr::IntOrString::String(text) => each(path, text, name::percent(text)).collect(),
    }
}

/// A percentage of at most the whole; counts pass.
pub(super) fn at_most_100_percent(given: &intstr::IntOrString, path: &Path<'_>) -> Option<Error> {
    (percentage(given)? > 100)
        .then(|| Error::invalid(path, value(given), "must not be greater than 100%"))
}

/// The number of a count or of a percentage; zero of what is neither.
pub(super) fn int_or_percent_value(given: &intstr::IntOrString) -> i64 {
    percentage(given).unwrap_or_else(|| int_or_string(given).int_value())
}

fn percentage(given: &intstr::IntOrString) -> Option<i64> {
    let intstr::IntOrString::String(text) = given else { return None };
    if !name::percent(text).is_empty() {
        return None;
    }
    let digits = text.strip_suffix('%')?;
    // Past the range Go's parser gives the nearest number there is.
    Some(digits.parse().unwrap_or(i64::MAX))
}

/// The label selector of a typed object.
pub(super) fn label_selector(selector: &meta::LabelSelector) -> LabelSelector {
    let expressions = selector.match_expressions.iter().flatten();
    LabelSelector {
        match_labels: selector.match_labels.clone().unwrap_or_default(),
        match_expressions: expressions
            .map(|expression| Expression {
                key: expression.key.clone(),
                operator: expression.operator.clone(),
                values: expression.values.clone().unwrap_or_default(),
            })
            .collect(),
    }
}

/// What is wrong with the conditions of a status, which are `metav1.Condition`s.
pub(super) fn conditions(conditions: &Value, path: &Path<'_>) -> Vec<Error> {
    let conditions: Vec<Condition> = Option::deserialize(conditions)
        .expect("conditions in normal form have the form of their type")
        .unwrap_or_default();
    let mut errors = Vec::new();
    let mut types = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        if !types.insert(&condition.type_) {
            errors.push(Error::duplicate(&path.child("type"), condition.type_.as_str()));
        }
        errors.extend(condition.validate(&path));
    }
    errors
}

/// As it stands in the tree: a time that is not there is not a time.
#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    observed_generation: i64,
    last_transition_time: Option<String>,
    reason: String,
    message: String,
}

impl Condition {
    const REASON_BYTES_MAX: usize = 1 << 10;
    const MESSAGE_BYTES_MAX: usize = 32 << 10;

    fn validate(&self, path: &Path<'_>) -> Vec<Error> {
        let mut errors = Vec::new();
        errors.extend(each(&path.child("type"), &self.type_, name::label_key(&self.type_)));
        let statuses = ["False", "True", "Unknown"];
        if !statuses.contains(&self.status.as_str()) {
            let path = path.child("status");
            errors.push(Error::not_supported(&path, self.status.as_str(), &statuses));
        }
        if self.observed_generation < 0 {
            errors.push(Error::invalid(
                &path.child("observedGeneration"),
                self.observed_generation,
                "must be greater than or equal to zero",
            ));
        }
        if self.last_transition_time.is_none() {
            errors.push(Error::required(&path.child("lastTransitionTime"), ""));
        }
        let reason_path = path.child("reason");
        if self.reason.is_empty() {
            errors.push(Error::required(&reason_path, ""));
        } else if !is_reason(&self.reason) {
            errors.push(Error::invalid(
                &reason_path,
                self.reason.as_str(),
                "a condition reason must start with alphabetic character, optionally followed by \
                 a string of alphanumeric characters or '_,:', and must end with an alphanumeric \
                 character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or \
                 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
                 '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
            ));
        }
        if self.reason.len() > Self::REASON_BYTES_MAX {
            errors.push(Error::too_long(&reason_path, Self::REASON_BYTES_MAX));
        }
        if self.message.len() > Self::MESSAGE_BYTES_MAX {
            errors.push(Error::too_long(&path.child("message"), Self::MESSAGE_BYTES_MAX));
        }
        errors
    }
}

fn is_reason(reason: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric() || c == '_';
    reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.ends_with(is_end)
        && reason.chars().all(|c| is_end(c) || ",:".contains(c))
}
