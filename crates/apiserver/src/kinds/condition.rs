//! Conditions as newer kinds have them: upstream's `metav1.Condition`.

use std::collections::HashSet;

use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::Value;

use super::edit;

const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const REASON_BYTES_MAX: usize = 1 << 10;
const MESSAGE_BYTES_MAX: usize = 32 << 10;

/// Everything that is wrong with the conditions of an object.
///
/// They are looked at untyped: a condition without a time has no form in the type.
pub(super) fn check(conditions: &Value, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut types = HashSet::new();
    for (index, condition) in conditions.as_array().into_iter().flatten().enumerate() {
        let at = at.index(index);
        let type_ = edit::text(condition, "/type");
        if !types.insert(type_) {
            errors.push(Error::duplicate(&at.child("type"), type_));
        }
        errors.extend(check_one(condition, &at));
    }
    errors
}

fn check_one(condition: &Value, at: &Path<'_>) -> Vec<Error> {
    let text = |pointer| edit::text(condition, pointer);
    let type_at = at.child("type");
    let mut errors: Vec<Error> = name::label_key(text("/type"))
        .into_iter()
        .map(|problem| Error::invalid(&type_at, text("/type"), problem))
        .collect();
    if !STATUSES.contains(&text("/status")) {
        let at = at.child("status");
        errors.push(Error::not_supported(&at, text("/status"), &STATUSES));
    }
    let generation = condition["observedGeneration"].as_i64().unwrap_or_default();
    if generation < 0 {
        let at = at.child("observedGeneration");
        errors.push(Error::invalid(&at, generation, "must be greater than or equal to zero"));
    }
    if condition["lastTransitionTime"].is_null() {
        errors.push(Error::required(&at.child("lastTransitionTime"), ""));
    }
    errors.extend(check_reason(text("/reason"), &at.child("reason")));
    if text("/message").len() > MESSAGE_BYTES_MAX {
        errors.push(Error::too_long(&at.child("message"), MESSAGE_BYTES_MAX));
    }
    errors
}

fn check_reason(reason: &str, at: &Path<'_>) -> Vec<Error> {
    if reason.is_empty() {
        return vec![Error::required(at, "")];
    }
    let mut errors = Vec::new();
    if !is_reason(reason) {
        let problem = "a condition reason must start with alphabetic character, optionally \
            followed by a string of alphanumeric characters or '_,:', and must end with an \
            alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or \
            'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
            '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
        errors.push(Error::invalid(at, reason, problem));
    }
    if reason.len() > REASON_BYTES_MAX {
        errors.push(Error::too_long(at, REASON_BYTES_MAX));
    }
    errors
}

fn is_reason(reason: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric() || c == '_';
    reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.chars().all(|c| is_end(c) || matches!(c, ',' | ':'))
        && reason.ends_with(is_end)
}
