//! Edits that preparing and defaulting have in common.

use serde_json::{Map, Value, json};

/// Fills in a field that is absent or null. What is not a struct is left alone.
pub(super) fn fill(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut()
        && fields.get(field).is_none_or(Value::is_null)
    {
        fields.insert(field.to_owned(), value.into());
    }
}

/// Fills in a text that is absent or empty.
pub(super) fn fill_text(object: &mut Value, field: &str, value: &str) {
    if object[field].as_str().is_none_or(str::is_empty) {
        object[field] = value.into();
    }
}

/// The items of a list, of which there are none when it is absent.
pub(super) fn items<'a>(object: &'a mut Value, pointer: &str) -> &'a mut [Value] {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// The text at a JSON pointer, empty when absent.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The field as the old object has it, or not at all.
pub(super) fn restore(object: &mut Value, old: &Value, field: &str) {
    let Some(fields) = object.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => {
            fields.insert(field.to_owned(), value.clone());
        }
        None => {
            fields.shift_remove(field);
        }
    }
}

pub(super) fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove(field);
    }
}

/// Puts a text into a map of texts below metadata, keeping its keys in order.
pub(super) fn put_label(object: &mut Value, key: &str, value: &str) {
    let labels = object["metadata"].as_object_mut().map(|metadata| {
        let labels = metadata.entry("labels").or_insert_with(|| Map::new().into());
        if labels.is_null() {
            *labels = json!({});
        }
        labels
    });
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.insert(key.to_owned(), value.into());
        labels.sort_keys();
    }
}

/// A new object of a kind that counts its generations.
pub(super) fn first_generation(object: &mut Value) {
    object["metadata"]["generation"] = json!(1);
}

/// Counts a generation if any of these fields changed. An absent field is the same as null.
pub(super) fn next_generation(object: &mut Value, old: &Value, fields: &[&str]) {
    let before = old["metadata"]["generation"].as_i64().unwrap_or_default();
    let changed = fields.iter().any(|field| object[*field] != old[*field]);
    object["metadata"]["generation"] = json!(before + i64::from(changed));
}

/// What a client may not say through `status`: everything in metadata that others decide on.
pub(super) fn restore_meta_for_status(object: &mut Value, old: &Value) {
    const DECIDED: [&str; 6] = [
        "annotations",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "labels",
        "ownerReferences",
    ];
    restore_meta(object, old, &DECIDED);
}

/// These fields of metadata as the old object has them.
pub(super) fn restore_meta(object: &mut Value, old: &Value, fields: &[&str]) {
    for field in fields {
        restore(&mut object["metadata"], &old["metadata"], field);
    }
}
