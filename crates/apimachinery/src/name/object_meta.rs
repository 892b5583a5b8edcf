//! What the `metadata` of an object may hold, whatever its kind.
//!
//! Works on the tree after the object was decoded: a field of the wrong type was refused before
//! and counts here as absent.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Rule, label_key, label_value};
use crate::field::{Error, Path};
use crate::gvk::{GroupVersion, GroupVersionKind};
use crate::json::{go_quote, is_printable};

/// How much all annotations of an object may hold, keys and values together.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;
/// The longest name of a field manager.
pub const MANAGER_BYTES_MAX: usize = 128;
const SUBRESOURCE_BYTES_MAX: usize = 256;

/// The finalizers by which an object asks for its dependents to be left, or to go first.
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Whether objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// What is wrong with the metadata of a new object. A name was already made from `generateName`.
pub fn validate(
    metadata: &Map<String, Value>,
    scope: Scope,
    rule: Rule,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let generate_name = text(metadata, "generateName");
    if !generate_name.is_empty() {
        let path = path.child("generateName");
        errors.extend(invalid(&path, generate_name, rule.check_prefix(generate_name)));
    }
    let name = text(metadata, "name");
    let name_path = path.child("name");
    match name {
        "" => errors.push(Error::required(&name_path, "name or generateName is required")),
        name => errors.extend(invalid(&name_path, name, rule.check(name))),
    }

    let namespace_path = path.child("namespace");
    match (scope, text(metadata, "namespace")) {
        (Scope::Namespaced, "") => errors.push(Error::required(&namespace_path, "")),
        (Scope::Namespaced, namespace) => {
            errors.extend(invalid(&namespace_path, namespace, Rule::Label.check(namespace)));
        }
        (Scope::Cluster, "") => {}
        (Scope::Cluster, _) => {
            errors.push(Error::forbidden(&namespace_path, "not allowed on this type"));
        }
    }

    let generation = integer(metadata, "generation");
    if generation < 0 {
        errors.push(Error::invalid(
            &path.child("generation"),
            generation,
            "must be greater than or equal to 0",
        ));
    }
    errors.extend(validate_contents(metadata, path, |errors| {
        errors.extend(validate_finalizers(metadata, &path.child("finalizers")));
    }));
    errors
}

/// What is wrong with the metadata of an object that takes the place of another.
pub fn validate_update(
    new: &Map<String, Value>,
    old: &Map<String, Value>,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if old.get("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        errors.extend(no_new_finalizers(new, old, &path.child("finalizers")));
    }
    if text(new, "resourceVersion").is_empty() {
        errors.push(Error::invalid(
            &path.child("resourceVersion"),
            "",
            "must be specified for an update",
        ));
    }
    let generation = integer(new, "generation");
    if generation < integer(old, "generation") {
        errors.push(Error::invalid(
            &path.child("generation"),
            generation,
            "must not be decremented",
        ));
    }
    for (field, absent) in [
        ("name", json!("")),
        ("namespace", json!("")),
        ("uid", json!("")),
        ("creationTimestamp", Value::Null),
        ("deletionTimestamp", Value::Null),
        ("deletionGracePeriodSeconds", Value::Null),
    ] {
        let of = |metadata: &Map<String, Value>| match metadata.get(field) {
            None | Some(Value::Null) => absent.clone(),
            Some(value) => value.clone(),
        };
        errors.extend(validate_immutable(&of(new), &of(old), &path.child(field)));
    }
    errors.extend(validate_contents(new, path, |_| {}));
    errors
}

/// A field that may not change, once set or unset.
pub fn validate_immutable(new: &Value, old: &Value, path: &Path<'_>) -> Option<Error> {
    (new != old).then(|| Error::invalid(path, new.clone(), "field is immutable"))
}

/// What built-in kinds ask of finalizers besides: a name is qualified, or one of the few that
/// the server itself knows.
pub fn validate_builtin_finalizers(metadata: &Map<String, Value>, path: &Path<'_>) -> Vec<Error> {
    const STANDARD: [&str; 3] = ["kubernetes", ORPHAN, FOREGROUND];
    let path = path.child("finalizers");
    let mut errors = Vec::new();
    for (index, name) in finalizers(metadata).into_iter().enumerate() {
        if !name.contains('/') && !STANDARD.contains(&name) {
            let problem = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(Error::invalid(&path.index(index), name, problem));
        }
    }
    errors
}

/// Labels, as also of templates and selectors.
pub fn validate_labels(labels: &Map<String, Value>, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (key, value) in labels {
        errors.extend(invalid(path, key, label_key(key)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid(path, value, label_value(value)));
    }
    errors
}

/// Annotations: keys are as those of labels in any case of letters, values are free up to
/// [`ANNOTATIONS_BYTES_MAX`] in all.
pub fn validate_annotations(annotations: &Map<String, Value>, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut bytes = 0;
    for (key, value) in annotations {
        errors.extend(invalid(path, key, label_key(&key.to_lowercase())));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(Error::too_long(path, ANNOTATIONS_BYTES_MAX));
    }
    errors
}

/// The name of a field manager, in a query as in `managedFields`.
pub fn validate_field_manager(manager: &str, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    if manager.len() > MANAGER_BYTES_MAX {
        errors.push(Error::too_long(path, MANAGER_BYTES_MAX));
    }
    for (position, character) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let code = u32::from(character);
        let problem = format!("invalid character U+{code:04X} (at position {position})");
        errors.push(Error::invalid(path, manager, problem));
    }
    errors
}

/// What may be wrong on creation and update alike; `finalizers` puts theirs in its place.
fn validate_contents(
    metadata: &Map<String, Value>,
    path: &Path<'_>,
    finalizers: impl FnOnce(&mut Vec<Error>),
) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(Value::Object(labels)) = metadata.get("labels") {
        errors.extend(validate_labels(labels, &path.child("labels")));
    }
    if let Some(Value::Object(annotations)) = metadata.get("annotations") {
        errors.extend(validate_annotations(annotations, &path.child("annotations")));
    }
    errors.extend(validate_owners(metadata, &path.child("ownerReferences")));
    finalizers(&mut errors);
    errors.extend(validate_managed_fields(metadata, &path.child("managedFields")));
    errors
}

fn validate_owners(metadata: &Map<String, Value>, path: &Path<'_>) -> Vec<Error> {
    let owners: Vec<_> = items(metadata, "ownerReferences").filter_map(Value::as_object).collect();
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    for owner in &owners {
        errors.extend(validate_owner(owner, path));
        if owner.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let this = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
        match &controller {
            None => controller = Some(this),
            Some(first) => {
                let all: Vec<_> = owners.iter().map(|owner| printed_owner(owner)).collect();
                let problem = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {this}"
                );
                errors.push(Error::invalid(path, all, problem));
            }
        }
    }
    errors
}

fn validate_owner(owner: &Map<String, Value>, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let (api_version, kind) = (text(owner, "apiVersion"), text(owner, "kind"));
    let version = GroupVersion::parse(api_version).unwrap_or_default();
    if version.version.is_empty() {
        let path = path.child("apiVersion");
        errors.push(Error::invalid(&path, api_version, "version must not be empty"));
    }
    for field in ["kind", "name", "uid"] {
        if text(owner, field).is_empty() {
            errors.push(Error::invalid(&path.child(field), "", "must not be empty"));
        }
    }
    // Events come and go too fast to own anything.
    let kind = version.with_kind(kind);
    if kind == GroupVersionKind::new("", "v1", "Event") {
        let problem = format!("{kind} is disallowed from being an owner");
        errors.push(Error::invalid(path, printed_owner(owner), problem));
    }
    errors
}

/// An owner as Go writes the whole of it.
fn printed_owner(owner: &Map<String, Value>) -> Value {
    let mut printed = Map::new();
    for field in ["apiVersion", "kind", "name", "uid"] {
        printed.insert(field.to_owned(), text(owner, field).into());
    }
    for field in ["controller", "blockOwnerDeletion"] {
        if let Some(set @ Value::Bool(_)) = owner.get(field) {
            printed.insert(field.to_owned(), set.clone());
        }
    }
    Value::Object(printed)
}

fn validate_finalizers(metadata: &Map<String, Value>, path: &Path<'_>) -> Vec<Error> {
    let finalizers = finalizers(metadata);
    let mut errors: Vec<_> =
        finalizers.iter().flat_map(|name| invalid(path, name, label_key(name))).collect();
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND) {
        let problem = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.push(Error::invalid(path, finalizers, problem));
    }
    errors
}

/// An object that is going away takes on no new obligations.
fn no_new_finalizers(
    new: &Map<String, Value>,
    old: &Map<String, Value>,
    path: &Path<'_>,
) -> Option<Error> {
    let old: BTreeSet<_> = finalizers(old).into_iter().collect();
    let new: BTreeSet<_> = finalizers(new).into_iter().collect();
    let added: Vec<_> = new.difference(&old).map(|name| go_quote(name)).collect();
    (!added.is_empty()).then(|| {
        let problem = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers \
             []string{{{}}}",
            added.join(", ")
        );
        Error::forbidden(path, problem)
    })
}

fn validate_managed_fields(metadata: &Map<String, Value>, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let entries = items(metadata, "managedFields").enumerate();
    for (index, entry) in entries.filter_map(|(index, entry)| Some((index, entry.as_object()?))) {
        let path = path.index(index);
        let operation = text(entry, "operation");
        if !["Apply", "Update"].contains(&operation) {
            let problem = "must be `Apply` or `Update`";
            errors.push(Error::invalid(&path.child("operation"), operation, problem));
        }
        let fields_type = text(entry, "fieldsType");
        if !["", "FieldsV1"].contains(&fields_type) {
            let problem = "must be `FieldsV1`";
            errors.push(Error::invalid(&path.child("fieldsType"), fields_type, problem));
        }
        errors.extend(validate_field_manager(text(entry, "manager"), &path.child("manager")));
        if text(entry, "subresource").len() > SUBRESOURCE_BYTES_MAX {
            errors.push(Error::too_long(&path.child("subresource"), SUBRESOURCE_BYTES_MAX));
        }
    }
    errors
}

fn invalid(path: &Path<'_>, value: &str, problems: Vec<String>) -> Vec<Error> {
    problems.into_iter().map(|problem| Error::invalid(path, value, problem)).collect()
}

fn text<'a>(object: &'a Map<String, Value>, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn integer(object: &Map<String, Value>, field: &str) -> i64 {
    object.get(field).and_then(Value::as_i64).unwrap_or_default()
}

fn items<'a>(object: &'a Map<String, Value>, field: &str) -> impl Iterator<Item = &'a Value> {
    object.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn finalizers(metadata: &Map<String, Value>) -> Vec<&str> {
    items(metadata, "finalizers").filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests;
