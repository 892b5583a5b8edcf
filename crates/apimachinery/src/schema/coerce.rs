//! Objects within objects: `x-kubernetes-embedded-resource`.
//!
//! An embedded object has an `apiVersion`, a `kind` and `metadata` like any other, whatever else
//! its schema says about them.

use serde_json::{Map, Value};

use super::object_meta::normalize;
use super::{Structural, is_meta_field};
use crate::field::{self, Path};
use crate::gvk::GroupVersion;
use crate::json;
use crate::name::object_meta::{self, Scope};
use crate::name::{self, Rule};

/// What becomes of metadata whose fields have the wrong type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// They are an error: the object comes from a client.
    Refuse,
    /// They are dropped: the object comes from the store, and must stay readable.
    Drop,
}

/// Brings the metadata of embedded objects into its normal form. Returns the paths of unknown
/// fields that were dropped from it.
pub fn coerce(
    object: &mut Value,
    schema: &Structural,
    malformed: Malformed,
) -> Result<Vec<String>, Box<field::Error>> {
    coerce_value(object, schema, false, malformed)
}

/// The same, optionally for the object itself.
pub(super) fn coerce_value(
    object: &mut Value,
    schema: &Structural,
    is_root: bool,
    malformed: Malformed,
) -> Result<Vec<String>, Box<field::Error>> {
    coerce_at(object, schema, is_root, malformed, &Path::ROOT)
}

/// The same for a value that stands at `at`.
pub(super) fn coerce_at(
    value: &mut Value,
    schema: &Structural,
    is_root: bool,
    malformed: Malformed,
    at: &Path<'_>,
) -> Result<Vec<String>, Box<field::Error>> {
    let mut unknown = Vec::new();
    visit(value, schema, is_root, malformed, at, &mut unknown)?;
    unknown.sort();
    Ok(unknown)
}

fn visit(
    value: &mut Value,
    schema: &Structural,
    is_root: bool,
    malformed: Malformed,
    at: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), Box<field::Error>> {
    match value {
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                if schema.is_embedded(is_root) && is_meta_field(name) {
                    continue;
                }
                if let Some(property) = schema.properties.get(name) {
                    visit(value, property, false, malformed, &at.child(name), unknown)?;
                } else if let Some(additional) = schema.additional_schema() {
                    visit(value, additional, false, malformed, &at.key(name), unknown)?;
                }
            }
            if schema.is_embedded(is_root) {
                coerce_meta(map, malformed, at, unknown)?;
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                visit(item, schema, false, malformed, &at.index(index), unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_meta(
    map: &mut Map<String, Value>,
    malformed: Malformed,
    at: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), Box<field::Error>> {
    for name in ["apiVersion", "kind"] {
        match map.get(name) {
            None | Some(Value::String(_)) => {}
            Some(_) if malformed == Malformed::Drop => {
                map.remove(name);
            }
            Some(other) => {
                let other = printed(other);
                let error = field::Error::invalid(&at.child(name), other, "must be a string");
                return Err(Box::new(error));
            }
        }
    }
    let Some(metadata) = map.get_mut("metadata") else { return Ok(()) };
    let at = at.child("metadata");
    match normalize(metadata, malformed) {
        Ok(normal) => {
            unknown.extend(normal.unknown.iter().map(|path| format!("{at}.{path}")));
            *metadata = Value::Object(normal.metadata);
            Ok(())
        }
        Err(_) if malformed == Malformed::Drop => Ok(()),
        Err(error) => Err(Box::new(field::Error::invalid(&at, printed(metadata), error))),
    }
}

/// A value as it is shown: Go writes the keys of maps in order.
pub(super) fn printed(value: &Value) -> Value {
    let mut value = value.clone();
    json::sort_keys(&mut value);
    value
}

/// What is wrong with the `apiVersion`, `kind` and `metadata` of embedded objects.
pub fn validate_embedded(object: &Value, schema: &Structural) -> Vec<field::Error> {
    validate_embedded_value(object, schema, false, &Path::ROOT)
}

/// The same for a value anywhere, optionally an object itself.
pub(super) fn validate_embedded_value(
    value: &Value,
    schema: &Structural,
    is_root: bool,
    at: &Path<'_>,
) -> Vec<field::Error> {
    let mut errors = Vec::new();
    check(value, schema, is_root, at, &mut errors);
    errors
}

fn check(
    value: &Value,
    schema: &Structural,
    is_root: bool,
    at: &Path<'_>,
    errors: &mut Vec<field::Error>,
) {
    match value {
        Value::Object(map) => {
            if schema.is_embedded(is_root) {
                check_meta(map, at, errors);
            }
            for (name, value) in map {
                if let Some(property) = schema.properties.get(name) {
                    check(value, property, false, &at.child(name), errors);
                } else if let Some(additional) = schema.additional_schema() {
                    check(value, additional, false, &at.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                check(item, schema, false, &at.index(index), errors);
            }
        }
        _ => {}
    }
}

fn check_meta(map: &Map<String, Value>, at: &Path<'_>, errors: &mut Vec<field::Error>) {
    let path = at.child("apiVersion");
    match map.get("apiVersion") {
        None => errors.push(field::Error::required(&path, "")),
        Some(Value::String(text)) if text.is_empty() => {
            errors.push(field::Error::invalid(&path, "", "must not be empty"));
        }
        Some(Value::String(text)) => {
            if let Err(error) = GroupVersion::parse(text) {
                errors.push(field::Error::invalid(&path, text.as_str(), error.to_string()));
            }
        }
        Some(other) => {
            errors.push(field::Error::invalid(&path, printed(other), "must be a string"));
        }
    }
    let path = at.child("kind");
    match map.get("kind") {
        None => errors.push(field::Error::required(&path, "")),
        Some(Value::String(text)) if text.is_empty() => {
            errors.push(field::Error::invalid(&path, "", "must not be empty"));
        }
        Some(Value::String(text)) => {
            let wrong = name::dns1035_label(&text.to_lowercase());
            if !wrong.is_empty() {
                let wrong = wrong.join(",");
                let detail = format!("may have mixed case, but should otherwise match: {wrong}");
                errors.push(field::Error::invalid(&path, text.as_str(), detail));
            }
        }
        Some(other) => {
            errors.push(field::Error::invalid(&path, printed(other), "must be a string"));
        }
    }
    let Some(metadata) = map.get("metadata") else { return };
    let path = at.child("metadata");
    match normalize(metadata, Malformed::Refuse) {
        Err(error) => errors.push(field::Error::invalid(&path, printed(metadata), error)),
        Ok(normal) => {
            let mut metadata = normal.metadata;
            // An embedded object may have no name yet.
            metadata.entry("name").or_insert_with(|| "fakename".into());
            let scope = match metadata.contains_key("namespace") {
                true => Scope::Namespaced,
                false => Scope::Cluster,
            };
            errors.extend(object_meta::validate(&metadata, scope, Rule::PathSegment, &path));
        }
    }
}
