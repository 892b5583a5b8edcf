//! Complaints about texts and numbers, as errors of their fields.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::label::{Expression, LabelSelector, Leniency};

/// One error for each thing that is wrong with a text.
pub(in crate::kinds) fn invalid<'a>(
    path: &'a Path<'a>,
    value: &'a str,
    problems: Vec<String>,
) -> impl Iterator<Item = Error> + 'a {
    problems.into_iter().map(move |problem| Error::invalid(path, value, problem))
}

pub(super) fn label<'a>(path: &'a Path<'a>, value: &'a str) -> impl Iterator<Item = Error> + 'a {
    invalid(path, value, name::dns1123_label(value))
}

pub(super) fn subdomain<'a>(
    path: &'a Path<'a>,
    value: &'a str,
) -> impl Iterator<Item = Error> + 'a {
    invalid(path, value, name::dns1123_subdomain(value))
}

pub(super) fn qualified_name<'a>(
    path: &'a Path<'a>,
    value: &'a str,
) -> impl Iterator<Item = Error> + 'a {
    invalid(path, value, name::label_key(value))
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

pub(super) fn selector(
    path: &Path<'_>,
    selector: Option<&meta::LabelSelector>,
    leniency: Leniency,
) -> Vec<Error> {
    let Some(selector) = selector else { return Vec::new() };
    let expressions = selector.match_expressions.iter().flatten();
    let selector = LabelSelector {
        match_labels: selector.match_labels.clone().unwrap_or_default(),
        match_expressions: expressions
            .map(|expression| Expression {
                key: expression.key.clone(),
                operator: expression.operator.clone(),
                values: expression.values.clone().unwrap_or_default(),
            })
            .collect(),
    };
    selector.validate(leniency, path)
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

/// A text that may be absent.
pub(super) fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

/// A list that may be absent.
pub(super) fn list<T>(items: &Option<Vec<T>>) -> &[T] {
    items.as_deref().unwrap_or_default()
}
