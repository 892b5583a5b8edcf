//! Custom resources as they come out of storage.
//!
//! The definition may have changed since an object was written, so it is read through the schema of
//! the version it is stored in, defaults included, and then through that of the version asked for.
//! Versions differ by name only.

use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::json;
use kubewright_apimachinery::schema::{self, Malformed, Structural};
use serde_json::Value;

use crate::resource::Custom;

/// Reads a stored object through its definition, in the version of `gvk`. Keys come out in order.
pub fn read(object: &mut Value, gvk: &GroupVersionKind, custom: &Custom) {
    let stored = object["apiVersion"].as_str().and_then(|version| version.split_once('/'));
    let stored = stored.map(|(_, version)| version.to_owned()).unwrap_or_default();
    normalize_metadata(object);
    if let Some(schema) = schema_of(custom, &stored) {
        coerce(object, schema, custom);
        schema::default(object, schema);
    }
    if stored != gvk.version {
        object["apiVersion"] = gvk.api_version().into();
        if let Some(schema) = schema_of(custom, &gvk.version) {
            coerce(object, schema, custom);
        }
    }
    json::sort_keys(object);
}

fn schema_of<'a>(custom: &'a Custom, version: &str) -> Option<&'a Structural> {
    let mut versions = custom.definition.versions().iter();
    versions.find(|known| known.name == version)?.open_api_v3_schema()
}

fn coerce(object: &mut Value, schema: &Structural, custom: &Custom) {
    if !custom.definition.spec.preserve_unknown_fields {
        schema::prune(object, schema);
        schema::drop_nulls(object, schema);
    }
    // What is malformed is dropped, so there is nothing to complain about.
    let _ = schema::coerce(object, schema, Malformed::Drop);
}

/// Very old objects have metadata that nobody checked, and no generation.
fn normalize_metadata(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata") else { return };
    if let Ok(normal) = schema::normalize_object_meta(metadata, Malformed::Drop) {
        *metadata = Value::Object(normal.metadata);
    }
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.entry("generation").or_insert_with(|| 1.into());
    }
}
