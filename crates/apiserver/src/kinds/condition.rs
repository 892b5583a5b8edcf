//! Conditions of a status that are `metav1.Condition`s, which say more than those of old.

use std::collections::BTreeSet;

use kubewright_apimachinery::field::{Error, Path};
use serde::Deserialize;
use serde_json::Value;

use super::check;

/// What is wrong with the conditions of a status.
pub(super) fn check(path: &Path<'_>, conditions: &Value) -> Vec<Error> {
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
        errors.extend(check::qualified_name(&path.child("type"), &self.type_));
        let statuses = ["False", "True", "Unknown"];
        errors.extend(check::one_of(&path.child("status"), &self.status, &statuses));
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
