//! The metadata that the server itself keeps: identity, time, owners.

use std::collections::HashMap;

use jiff::Timestamp;
use kubewright_apimachinery::name;
use kubewright_apimachinery::status::Status;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::refusal::Refusal;

/// The fields of metadata in the order in which they are printed.
const ORDER: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// The metadata of an object; it is made where it is missing.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    let object = object.as_object_mut().expect("an object was decoded");
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut().expect("it was made an object")
}

/// A text in the metadata, empty when absent.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"].get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Puts a text into one of the maps of metadata, keeping its keys in order.
pub(crate) fn put(object: &mut Value, map: &str, key: &str, value: &str) {
    let map = of(object).entry(map).or_insert(Value::Null);
    if !map.is_object() {
        *map = json!({});
    }
    let Some(entries) = map.as_object_mut() else { return };
    entries.insert(key.to_owned(), value.into());
    entries.sort_keys();
}

/// A field of the metadata as the old object has it, or not at all.
pub(crate) fn restore(object: &mut Value, old: &Value, field: &str) {
    let metadata = of(object);
    match old["metadata"].get(field) {
        Some(value) => metadata.insert(field.to_owned(), value.clone()),
        None => metadata.shift_remove(field),
    };
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let finalizers = object["metadata"].get("finalizers").and_then(Value::as_array);
    finalizers.into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let metadata = of(object);
    match finalizers.is_empty() {
        true => metadata.shift_remove("finalizers"),
        false => metadata.insert("finalizers".to_owned(), json!(finalizers)),
    };
}

/// Puts the fields of metadata into the order in which they are printed.
pub(crate) fn arrange(object: &mut Value) {
    let metadata = of(object);
    let place = |key: &String| ORDER.iter().position(|known| known == key).unwrap_or(ORDER.len());
    let sorted = metadata.keys().is_sorted_by_key(place);
    if !sorted {
        let mut fields: Vec<_> = std::mem::take(metadata).into_iter().collect();
        fields.sort_by_key(|(key, _)| place(key));
        metadata.extend(fields);
    }
}

/// Takes out what no client may set on an object to be created.
pub(crate) fn wipe(object: &mut Value) {
    let metadata = of(object);
    let system =
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];
    for field in system {
        metadata.shift_remove(field);
    }
}

/// Gives an object its identity.
pub(crate) fn identify(object: &mut Value, now: Timestamp) {
    let metadata = of(object);
    metadata.insert("uid".to_owned(), Uuid::new_v4().to_string().into());
    metadata.insert("creationTimestamp".to_owned(), time(now).into());
}

/// A moment as the API writes it, to the second.
pub(crate) fn time(moment: Timestamp) -> String {
    kubewright_apimachinery::time::Time::from_unix(moment.as_second())
        .to_value()
        .as_str()
        .expect("a time is written as text")
        .to_owned()
}

/// A name that begins with what the client asked for.
pub(crate) fn generate_name(base: &str) -> String {
    let mut random = [0; name::GENERATED_SUFFIX_LENGTH];
    getrandom::fill(&mut random).expect("the machine has randomness");
    let longest = name::LABEL_BYTES_MAX - name::GENERATED_SUFFIX_LENGTH;
    let end = (0..=base.len().min(longest)).rev().find(|end| base.is_char_boundary(*end));
    let mut name = base[..end.unwrap_or_default()].to_owned();
    let letters = name::GENERATED_ALPHABET;
    name.extend(random.map(|byte| char::from(letters[usize::from(byte) % letters.len()])));
    name
}

/// Sets the namespace of the request, or refuses another one. `None` for what lives in none.
pub(crate) fn settle_namespace(object: &mut Value, namespace: Option<&str>) -> Result<(), Refusal> {
    let found = text(object, "namespace").to_owned();
    match (found.as_str(), namespace) {
        (found, Some(asked)) if found == asked => {}
        ("", Some(asked)) => {
            of(object).insert("namespace".to_owned(), asked.into());
        }
        (_, None) => {
            of(object).shift_remove("namespace");
        }
        _ => {
            return Err(Box::new(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            )));
        }
    }
    Ok(())
}

/// Takes out owners that are named twice, and says which they were.
pub(crate) fn dedup_owners(object: &mut Value, after_admission: bool) -> Option<String> {
    let owners = of(object).get_mut("ownerReferences")?.as_array_mut()?;
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    // Whole owners are compared only with those of the same uid: there may be thousands.
    let mut of_uid: HashMap<String, Vec<usize>> = HashMap::new();
    let mut repeated: Vec<String> = Vec::new();
    for owner in owners.drain(..) {
        let uid = owner["uid"].as_str().unwrap_or_default().to_owned();
        let same = of_uid.entry(uid.clone()).or_default();
        match same.iter().any(|at| kept[*at] == owner) {
            true => repeated.push(uid),
            false => {
                same.push(kept.len());
                kept.push(owner);
            }
        }
    }
    *owners = kept;
    if repeated.is_empty() {
        return None;
    }
    let what = repeated.join(", ");
    Some(match after_admission {
        false => format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {what}"
        ),
        true => format!(
            ".metadata.ownerReferences contains duplicate entries after mutating admission \
             happens; API server dedups owner references in 1.20+, and may reject such requests \
             as early as 1.24; please fix your requests; duplicate UID(s) observed: {what}"
        ),
    })
}
