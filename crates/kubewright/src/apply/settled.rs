//! Whether applying an object would change anything.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

/// Whether an object is as `manager` wants it: all that is wanted is there, and all that the
/// manager has applied before is still wanted. When in doubt it is not, and the server decides.
pub(crate) fn is_settled(wanted: &Value, live: &Value, manager: &str) -> bool {
    let Some(applied) = applied(wanted, live, manager) else { return false };
    has(live, wanted) && still_wants(wanted, applied)
}

/// The fields that the manager has applied before, in the same version.
fn applied<'a>(wanted: &Value, live: &'a Value, manager: &str) -> Option<&'a Map<String, Value>> {
    let managers = live["metadata"]["managedFields"].as_array()?;
    let own = managers.iter().find(|entry| {
        entry["manager"] == *manager
            && entry["operation"] == "Apply"
            && entry["apiVersion"] == wanted["apiVersion"]
            && entry["subresource"].as_str().unwrap_or_default().is_empty()
    })?;
    own["fieldsV1"].as_object()
}

/// Whether a value has all that is wanted of it.
fn has(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(field, wanted)| live.get(field).is_some_and(|live| has(live, wanted))),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len()
                && live.iter().zip(wanted).all(|(live, wanted)| has(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

/// Whether all fields that were applied before are wanted now.
fn still_wants(wanted: &Value, applied: &Map<String, Value>) -> bool {
    applied.iter().all(|(path, below)| {
        let Some(found) = find(wanted, path) else { return path == "." };
        below.as_object().is_none_or(|below| still_wants(found, below))
    })
}

/// The part of a value that a step of a path of managed fields leads to.
fn find<'a>(value: &'a Value, step: &str) -> Option<&'a Value> {
    let (how, what) = step.split_once(':')?;
    match how {
        "f" => value.get(what),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(what).ok()?;
            // A key that is left out has its default.
            let is_it = |item: &&Value| {
                keys.iter().all(|(key, value)| item.get(key).is_none_or(|own| own == value))
            };
            value.as_array()?.iter().find(is_it)
        }
        "v" => {
            let wanted: Value = serde_json::from_str(what).ok()?;
            value.as_array()?.iter().find(|item| **item == wanted)
        }
        "i" => value.get(what.parse::<usize>().ok()?),
        _ => None,
    }
}
