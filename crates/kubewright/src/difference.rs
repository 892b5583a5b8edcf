//! What a reconcile changed in an object.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The changes of an object, as merge patches.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Difference {
    /// Of all but the status.
    pub(crate) object: Option<Value>,
    /// Of the status, which has an address of its own.
    pub(crate) status: Option<Value>,
}

impl Difference {
    pub(crate) fn new(before: &Value, after: &Value) -> Self {
        let Some(Value::Object(mut patch)) = merge_patch(before, after) else {
            return Difference::default();
        };
        let status = patch.remove("status").map(|status| of([("status".to_owned(), status)]));
        let object = (!patch.is_empty()).then_some(Value::Object(patch));
        Difference { object, status }
    }
}

/// Of two texts of an object the fields that are not the same, and the metadata, which a patch
/// [holds to](hold_to).
pub(crate) fn to_compare(before: &[u8], after: &[u8]) -> Result<(Value, Value), serde_json::Error> {
    let before: Fields<'_> = serde_json::from_slice(before)?;
    let after: Fields<'_> = serde_json::from_slice(after)?;
    Ok((unlike(&before, &after)?, unlike(&after, &before)?))
}

/// What an object has, as text.
type Fields<'a> = BTreeMap<String, &'a RawValue>;

fn unlike(fields: &Fields<'_>, others: &Fields<'_>) -> Result<Value, serde_json::Error> {
    let is_same = |name: &str, text: &RawValue| {
        others.get(name).is_some_and(|other| other.get() == text.get())
    };
    let unlike = fields.iter().filter(|(name, text)| *name == "metadata" || !is_same(name, text));
    let read = unlike.map(|(name, text)| Ok((name.clone(), serde_json::from_str(text.get())?)));
    read.collect::<Result<Map<String, Value>, _>>().map(Value::Object)
}

/// Lets a patch hold only for the object that was read, and if it changes lists, only for the
/// version that was read: lists are replaced as a whole, with what others have put in.
pub(crate) fn hold_to(patch: &mut Value, before: &Value) {
    let mut fields = vec!["uid"];
    if changes_list(patch, before) {
        fields.push("resourceVersion");
    }
    let Value::Object(patch) = patch else { return };
    let metadata = patch.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    for field in fields {
        if let Some(value) = before["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
}

/// The merge patch that makes one value of another. None if they are the same.
fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let gone = before.keys().filter(|field| !after.contains_key(*field));
            let mut patch: Map<String, Value> =
                gone.map(|field| (field.clone(), Value::Null)).collect();
            for (field, after) in after {
                let change = match before.get(field) {
                    Some(before) => merge_patch(before, after),
                    None => (!after.is_null()).then(|| after.clone()),
                };
                patch.extend(change.map(|change| (field.clone(), change)));
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (before, after) => (before != after).then(|| after.clone()),
    }
}

/// Whether a list comes, changes or goes.
fn changes_list(patch: &Value, before: &Value) -> bool {
    match patch {
        Value::Object(fields) => fields
            .iter()
            .any(|(field, patch)| changes_list(patch, before.get(field).unwrap_or(&Value::Null))),
        patch => patch.is_array() || before.is_array(),
    }
}

fn of(fields: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(fields.into_iter().collect())
}
