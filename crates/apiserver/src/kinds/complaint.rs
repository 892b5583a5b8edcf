//! Complaints about a value as errors of its field.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::Value;

/// One error for each thing that is wrong with a value.
pub(super) fn invalid(
    at: &Path<'_>,
    value: impl Into<Value>,
    complaints: Vec<String>,
) -> impl Iterator<Item = Error> {
    let (field, value) = (at.to_string(), value.into());
    complaints.into_iter().map(move |detail| {
        let mut error = Error::invalid(&Path::ROOT, value.clone(), detail);
        error.field.clone_from(&field);
        error
    })
}

pub(super) fn dns_label(at: &Path<'_>, value: &str) -> impl Iterator<Item = Error> {
    invalid(at, value, name::dns1123_label(value))
}

pub(super) fn dns_subdomain(at: &Path<'_>, value: &str) -> impl Iterator<Item = Error> {
    invalid(at, value, name::dns1123_subdomain(value))
}

/// A name with or without a prefix, as the keys of labels are.
pub(super) fn qualified_name(at: &Path<'_>, value: &str) -> impl Iterator<Item = Error> {
    invalid(at, value, name::label_key(value))
}

pub(super) fn port(at: &Path<'_>, number: i32) -> impl Iterator<Item = Error> {
    invalid(at, number, name::port_number(number.into()))
}

pub(super) fn port_or_name(at: &Path<'_>, port: &IntOrString) -> Vec<Error> {
    match port {
        IntOrString::Int(number) => self::port(at, *number).collect(),
        IntOrString::String(text) => invalid(at, text.as_str(), name::port_name(text)).collect(),
    }
}

/// One of a few words, which upstream lists in order.
pub(super) fn one_of(at: &Path<'_>, value: &str, words: &[&str]) -> Option<Error> {
    (!words.contains(&value)).then(|| Error::not_supported(at, value, words))
}

/// As [`one_of`], of a field that must say something.
pub(super) fn required_one_of(at: &Path<'_>, value: &str, words: &[&str]) -> Option<Error> {
    match value.is_empty() {
        true => Some(Error::required(at, "")),
        false => one_of(at, value, words),
    }
}

/// A list as Go prints it in an error: there is no difference between none and an empty one.
pub(super) fn list<T: Clone + Into<Value>>(items: &[T]) -> Value {
    match items {
        [] => Value::Null,
        items => items.iter().cloned().map(Into::into).collect::<Vec<Value>>().into(),
    }
}

/// The protocols of a port.
pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
