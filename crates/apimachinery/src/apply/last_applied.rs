//! The annotation in which `kubectl apply` keeps what it applied before there was server-side
//! apply, for those who move from one to the other.

use serde_json::Value;

use super::schema::Schema;
use super::set::Set;
use super::typed::{self, Duplicates};
use crate::json;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Annotations may take this many bytes together.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// The fields that the annotation of `live` proves to be its writer's: those it mentions that are
/// in the object as it mentions them.
pub(super) fn proven_fields(schema: &Schema, api_version: &str, live: &Value) -> Option<Set> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    let is_object_of_version = last["kind"].is_string() && last["apiVersion"] == api_version;
    if !is_object_of_version {
        return None;
    }
    typed::validate(schema, live, Duplicates::Refused).ok()?;
    typed::validate(schema, &last, Duplicates::Refused).ok()?;
    let changed = typed::compare(schema, &last, live);
    let set = typed::to_set(schema, &last);
    Some(set.difference(&changed.modified).difference(&changed.added).difference(&changed.removed))
}

/// Brings the annotation of `object`, if it has one, up to date with the configuration that was
/// just applied.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let text = config_text(config);
    let Some(annotations) = object["metadata"]["annotations"].as_object_mut() else { return };
    annotations.insert(ANNOTATION.to_owned(), text.into());
    let bytes: usize =
        annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if bytes > ANNOTATIONS_BYTES_MAX {
        annotations.shift_remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][ANNOTATION].as_str().filter(|text| !text.is_empty())
}

/// The configuration as Go's encoder writes an unstructured object: keys sorted, a line feed at
/// the end.
fn config_text(config: &Value) -> String {
    let mut config = config.clone();
    if let Some(annotations) =
        config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
    {
        annotations.shift_remove(ANNOTATION);
    }
    json::sort_keys(&mut config);
    json::to_string(&config) + "\n"
}
