//! JSON merge patch as upstream's library merges.
//!
//! It differs from RFC 7386 in one thing: members that are `null` are also taken out of objects
//! inside new lists, unless an object was replaced by the list.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::json::go;

/// Why a document is not a merge patch. Both are answered as a bad request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "error decoding patch: json: cannot unmarshal {found} \
         into Go value of type map[string]interface {{}}"
    )]
    NotAnObject { found: &'static str },
    #[error("Invalid JSON Patch")]
    Null,
}

/// The document with the patch merged into it.
pub fn apply(document: Value, patch: Value) -> Result<Value, Error> {
    match (document, patch) {
        (_, Value::Null) => Err(Error::Null),
        (Value::Object(mut members), Value::Object(patch)) => {
            merge_members(&mut members, patch);
            Ok(Value::Object(members))
        }
        (_, Value::Object(mut patch)) => {
            prune_members(&mut patch);
            Ok(Value::Object(patch))
        }
        (_, other) => Err(Error::NotAnObject { found: go::word(&other) }),
    }
}

fn merge_members(members: &mut Map<String, Value>, patch: Map<String, Value>) {
    // Taken out in one pass at the end: each removal alone would shift all later members.
    let mut doomed = HashSet::new();
    for (key, value) in patch {
        match value {
            Value::Null => {
                doomed.insert(key);
            }
            value => match members.get_mut(&key) {
                Some(current) => merge_value(current, value),
                None => {
                    members.insert(key, pruned(value));
                }
            },
        }
    }
    if !doomed.is_empty() {
        members.retain(|key, _| !doomed.contains(key));
    }
}

fn merge_value(current: &mut Value, patch: Value) {
    match (&mut *current, patch) {
        (Value::Object(members), Value::Object(patch)) => merge_members(members, patch),
        (Value::Object(_), other) => *current = other,
        (_, other) => *current = pruned(other),
    }
}

fn pruned(mut value: Value) -> Value {
    prune(&mut value);
    value
}

/// Takes `null` members out of all objects, also of those in lists; `null` items stay.
fn prune(value: &mut Value) {
    match value {
        Value::Object(members) => prune_members(members),
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

fn prune_members(members: &mut Map<String, Value>) {
    members.retain(|_, value| !value.is_null());
    members.values_mut().for_each(prune);
}
