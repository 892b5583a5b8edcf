//! Custom resources as they come out of storage and go into it.
//!
//! The definition may have changed since an object was written, so it is read through the schema of
//! the version it is stored in, defaults included, and, once it is in the version asked for, through
//! that one's. Versions that differ by name only are changed here; a webhook that knows better is
//! asked by `crate::crd::convert`.

use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::json;
use kubewright_apimachinery::schema::{self, Malformed, Structural};
use serde_json::Value;

use crate::resource::Custom;

/// Reads a stored object through its definition, in the version of `gvk`. Keys come out in order.
///
/// # Errors
/// The definition does not know the version it is stored in any more.
pub fn read(object: &mut Value, gvk: &GroupVersionKind, custom: &Custom) -> Result<(), String> {
    settle(object, custom);
    let api_version = gvk.api_version();
    if object["apiVersion"] != *api_version {
        custom.check_known("from", object["apiVersion"].as_str().unwrap_or_default())?;
        object["apiVersion"] = api_version.into();
        // What is malformed is dropped, so there is nothing to complain about.
        let _ = fit(object, custom, Malformed::Drop);
    }
    json::sort_keys(object);
    Ok(())
}

/// Reads an object as the version that it was stored in has it, defaults included.
pub(crate) fn settle(object: &mut Value, custom: &Custom) {
    normalize_metadata(object);
    let _ = fit(object, custom, Malformed::Drop);
    if let Some(schema) = schema_of(custom, object) {
        schema::default(object, schema);
    }
}

/// Takes out of an object what its version has no place for.
///
/// # Errors
/// Something in it that should be an object of its own is malformed, and that is not to be dropped.
pub(crate) fn fit(object: &mut Value, custom: &Custom, malformed: Malformed) -> Result<(), String> {
    let Some(schema) = schema_of(custom, object) else { return Ok(()) };
    if !custom.definition.spec.preserve_unknown_fields {
        schema::prune(object, schema);
        schema::drop_nulls(object, schema);
    }
    schema::coerce(object, schema, malformed).map_err(|error| error.to_string())?;
    Ok(())
}

/// The schema of the version that an object says it is of.
fn schema_of<'a>(custom: &'a Custom, object: &Value) -> Option<&'a Structural> {
    let (_, version) = object["apiVersion"].as_str()?.split_once('/')?;
    let mut versions = custom.definition.versions().iter();
    versions.find(|known| known.name == version)?.open_api_v3_schema()
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
