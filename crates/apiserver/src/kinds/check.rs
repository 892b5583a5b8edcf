//! Checks that the rules of several kinds share, as errors of a field in upstream's words.
//!
//! Each takes the field first, as the errors themselves do.

use k8s_openapi::apimachinery::pkg::api::resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::apimachinery::pkg::util::intstr;
use kubewright_apimachinery::field::{Error, ErrorKind, Path};
use kubewright_apimachinery::int_or_string::IntOrString;
use kubewright_apimachinery::name;
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::selector::label::{Expression, LabelSelector, Leniency};
use serde::Serialize;
use serde_json::Value;

/// The protocols of a port.
pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// One error for each thing that is wrong with a text.
pub(super) fn invalid(path: &Path<'_>, text: &str, problems: Vec<String>) -> Vec<Error> {
    problems.into_iter().map(|problem| Error::invalid(path, text, problem)).collect()
}

/// An error whose message does not show what was found.
pub(super) fn invalid_unshown(path: &Path<'_>, detail: impl Into<String>) -> Error {
    let detail = detail.into();
    Error { kind: ErrorKind::Invalid, field: path.to_string(), bad_value: None, detail }
}

pub(super) fn dns_label(path: &Path<'_>, value: &str) -> Vec<Error> {
    invalid(path, value, name::dns1123_label(value))
}

pub(super) fn dns_subdomain(path: &Path<'_>, value: &str) -> Vec<Error> {
    invalid(path, value, name::dns1123_subdomain(value))
}

/// A name with or without a prefix, as the keys of labels are.
pub(super) fn qualified_name(path: &Path<'_>, value: &str) -> Vec<Error> {
    invalid(path, value, name::label_key(value))
}

/// Labels of objects that are to be chosen.
pub(super) fn labels<'a>(
    path: &Path<'_>,
    labels: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    for (key, value) in labels {
        errors.extend(qualified_name(path, key));
        errors.extend(invalid(path, value, name::label_value(value)));
    }
    errors
}

pub(super) fn port(path: &Path<'_>, number: i32) -> Vec<Error> {
    let problems = name::port_number(number.into()).into_iter();
    problems.map(|problem| Error::invalid(path, number, problem)).collect()
}

pub(super) fn port_or_name(path: &Path<'_>, port: &intstr::IntOrString) -> Vec<Error> {
    match port {
        intstr::IntOrString::Int(number) => self::port(path, *number),
        intstr::IntOrString::String(text) => invalid(path, text, name::port_name(text)),
    }
}

/// A text that may not be empty.
pub(super) fn required(path: &Path<'_>, value: &str) -> Option<Error> {
    value.is_empty().then(|| Error::required(path, ""))
}

/// One of a few words, given in the order of upstream's message.
pub(super) fn one_of(path: &Path<'_>, value: &str, words: &[&str]) -> Option<Error> {
    (!words.contains(&value)).then(|| Error::not_supported(path, value, words))
}

/// One of a few words; an empty text says nothing at all.
pub(super) fn required_one_of(path: &Path<'_>, value: &str, words: &[&str]) -> Option<Error> {
    required(path, value).or_else(|| one_of(path, value, words))
}

/// One of a few words, which must be given; an empty text is none of them.
pub(super) fn given_one_of(path: &Path<'_>, value: Option<&str>, words: &[&str]) -> Option<Error> {
    match value {
        None => Some(Error::required(path, "")),
        Some(value) => one_of(path, value, words),
    }
}

pub(super) fn non_negative(path: &Path<'_>, value: impl Into<i64>) -> Option<Error> {
    let value = value.into();
    (value < 0).then(|| Error::invalid(path, value, "must be greater than or equal to 0"))
}

pub(super) fn positive(path: &Path<'_>, value: impl Into<i64>) -> Option<Error> {
    let value = value.into();
    (value <= 0).then(|| Error::invalid(path, value, "must be greater than zero"))
}

/// A number between two others, which it may equal.
pub(super) fn in_range(path: &Path<'_>, value: i64, min: i64, max: i64) -> Option<Error> {
    let problem = name::in_range(value, min, max).into_iter().next()?;
    Some(Error::invalid(path, value, problem))
}

/// A field that may not change once the object is there.
pub(super) fn immutable<T: Serialize + PartialEq>(
    path: &Path<'_>,
    new: &T,
    old: &T,
) -> Option<Error> {
    (new != old).then(|| Error::invalid(path, shown(new), "field is immutable"))
}

/// A count that is not negative, or a percentage.
pub(super) fn int_or_percent(path: &Path<'_>, given: &intstr::IntOrString) -> Vec<Error> {
    match given {
        intstr::IntOrString::Int(number) => non_negative(path, *number).into_iter().collect(),
        intstr::IntOrString::String(text) => invalid(path, text, name::percent(text)),
    }
}

/// A percentage of at most the whole; counts pass.
pub(super) fn at_most_100_percent(path: &Path<'_>, given: &intstr::IntOrString) -> Option<Error> {
    (percentage(given)? > 100)
        .then(|| Error::invalid(path, shown(given), "must not be greater than 100%"))
}

/// A selector, if there is one.
pub(super) fn selector(
    path: &Path<'_>,
    selector: Option<&meta::LabelSelector>,
    leniency: Leniency,
) -> Vec<Error> {
    selector.map_or_else(Vec::new, |selector| label_selector(selector).validate(leniency, path))
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

pub(super) fn int_or_string(value: &intstr::IntOrString) -> IntOrString {
    match value {
        intstr::IntOrString::Int(number) => IntOrString::Int(*number),
        intstr::IntOrString::String(text) => IntOrString::String(text.clone()),
    }
}

pub(super) fn quantity(quantity: &resource::Quantity) -> Quantity {
    Quantity::parse(&quantity.0).expect("quantities in normal form are well formed")
}

/// A text that may be absent.
pub(super) fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

/// A list that may be absent.
pub(super) fn list<T>(items: &Option<Vec<T>>) -> &[T] {
    items.as_deref().unwrap_or_default()
}

/// The tree of something typed, to be shown in an error.
pub(super) fn shown(typed: &impl Serialize) -> Value {
    serde_json::to_value(typed).expect("what came of a tree becomes one again")
}

/// A list as errors show it: there is no difference between none and an empty one.
pub(super) fn shown_list<T: Clone + Into<Value>>(items: &[T]) -> Value {
    match items {
        [] => Value::Null,
        items => items.iter().cloned().map(Into::into).collect::<Vec<Value>>().into(),
    }
}
