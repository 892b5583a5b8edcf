//! What becomes of an object that a webhook patches.

use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::json::go;
use kubewright_apimachinery::patch::json as json_patch;
use kubewright_apimachinery::schema::{self, Malformed};
use kubewright_apimachinery::status::{Reason, Status};
use kubewright_apimachinery::{builtin, json};
use serde_json::Value;

use crate::draft::identity::{self, Mismatch};
use crate::draft::{Expected, Shape};
use crate::kinds;
use crate::outbound::review::SCHEME;
use crate::refusal::Refusal;
use crate::resource::{Custom, Origin, Resource};

/// Reads a patch.
///
/// # Errors
/// In the words of Go's decoder.
pub(crate) fn decode(bytes: &[u8]) -> Result<json_patch::Patch, String> {
    let tree = json::decode(bytes).map_err(|error| error.to_string())?.value;
    let misfit = |found: &Value, ty: &str| {
        format!("json: cannot unmarshal {} into Go value of type jsonpatch.{ty}", go::word(found))
    };
    match &tree {
        Value::Null => {}
        Value::Array(operations) => {
            let is_fit = |operation: &&Value| operation.is_object() || operation.is_null();
            if let Some(found) = operations.iter().find(|operation| !is_fit(operation)) {
                return Err(misfit(found, "Operation"));
            }
        }
        found => return Err(misfit(found, "Patch")),
    }
    json_patch::Patch::decode_any(tree).map_err(|error| error.to_string())
}

/// The object after a patch, in the form of its kind, without defaults.
pub(super) fn apply(
    resource: &Resource,
    gvk: &GroupVersionKind,
    object: &Value,
    patch: &json_patch::Patch,
) -> Result<Value, Refusal> {
    let internal = |why: String| Box::new(Status::internal_error(why));
    let patched = patch.apply(object).map_err(|error| internal(error.to_string()))?;
    match &resource.origin {
        Origin::Builtin(_) => {
            let kind = builtin::kind(&gvk.group, &gvk.version, &gvk.kind);
            read_builtin(gvk, kind.expect("it was shown as this kind"), patched)
        }
        Origin::Custom(custom) => read_custom(gvk, custom, patched),
    }
}

fn read_builtin(
    gvk: &GroupVersionKind,
    kind: &'static builtin::Kind,
    patched: Value,
) -> Result<Value, Refusal> {
    let internal = |why: String| Box::new(Status::internal_error(why));
    let expected = Expected { gvk, shape: Shape::Builtin(kind) };
    let kind = match identity::identify(&patched, expected, String::new) {
        Ok(_) => kind,
        Err(Mismatch::Unreadable(why)) => return Err(internal(why)),
        Err(Mismatch::Version(found) | Mismatch::Name(found) | Mismatch::Kind { found, .. }) => {
            let known = builtin::kind(&found.group, &found.version, &found.kind);
            known.ok_or_else(|| internal(identity::unregistered_in(&found, SCHEME)))?
        }
    };
    let decoded = builtin::decode(kind, patched).map_err(|error| internal(error.to_string()))?;
    let mut object = decoded.value;
    let found = GroupVersionKind::new(kind.group, kind.version, kind.kind);
    if found != *gvk {
        // Nothing that can be stored here comes of something else.
        let why = format!(
            "converting ({}.{}) to ({}.{}): unknown conversion",
            found.version,
            found.kind,
            identity::package(&gvk.group),
            gvk.kind
        );
        return Err(Box::new(Status::failure(500, Reason::Unknown, why)));
    }
    identity::label(&mut object, gvk);
    if let Some(rules) = kinds::rules(&gvk.group, &gvk.kind)
        && let Some(why) = (rules.unreadable)(&object)
    {
        return Err(internal(why));
    }
    Ok(object)
}

/// A custom resource has no type to be read by: what its schema does not know is dropped when it is
/// read from the store.
fn read_custom(
    gvk: &GroupVersionKind,
    custom: &Custom,
    mut patched: Value,
) -> Result<Value, Refusal> {
    let found = GroupVersionKind::interpret(&patched)
        .map_err(|error| Box::new(Status::internal_error(error)))?;
    if patched["kind"].as_str().unwrap_or_default().is_empty() {
        let why = format!("Object 'Kind' is missing in '{}'", json::to_string(&patched));
        return Err(Box::new(Status::internal_error(why)));
    }
    let is_version = |name: &str| custom.definition.versions().iter().any(|v| v.name == name);
    if found.group != gvk.group || !is_version(&found.version) {
        let why = format!(
            "request to convert CR from an invalid group/version: {}",
            found.group_version()
        );
        return Err(Box::new(Status::failure(500, Reason::Unknown, why)));
    }
    let metadata = patched.get("metadata").cloned().unwrap_or_else(|| serde_json::json!({}));
    let normal = schema::normalize_object_meta(&metadata, Malformed::Drop);
    patched["metadata"] = normal.map(|normal| normal.metadata).unwrap_or_default().into();
    identity::label(&mut patched, gvk);
    json::sort_keys(&mut patched);
    Ok(patched)
}

/// Whether two objects of a kind mean the same.
pub(super) fn is_same(resource: &Resource, gvk: &GroupVersionKind, a: &Value, b: &Value) -> bool {
    match (&resource.origin, builtin::kind(&gvk.group, &gvk.version, &gvk.kind)) {
        (Origin::Builtin(_), Some(kind)) => builtin::equal(kind.ty(), a, b),
        _ => a == b,
    }
}
