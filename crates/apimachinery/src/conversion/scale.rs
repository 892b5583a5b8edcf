//! The `autoscaling/v1` Scale of a workload or a custom resource.

use serde_json::{Map, Value, json};

use crate::field::{Error, Path};
use crate::json::go;
use crate::selector::label::{LabelSelector, NotASelector};

/// Where a custom resource keeps its numbers of replicas (`spec.versions[].subresources.scale`).
/// Paths start with a dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    pub spec_replicas: String,
    pub status_replicas: String,
    /// Where the selector of its pods is, as text.
    pub label_selector: Option<String>,
}

/// Why an object has no scale.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    #[error(transparent)]
    Selector(#[from] NotASelector),
    /// Nobody has said how many replicas there should be.
    #[error("the spec replicas field {path:?} does not exist")]
    NoReplicas { path: String },
    /// Something else is where a number, a text or an object on the way should be.
    #[error("{path} accessor error: {found} is of the type {ty}, expected {expected}")]
    Accessor { path: String, found: String, ty: &'static str, expected: &'static str },
}

/// The scale of a Deployment, ReplicaSet, StatefulSet or ReplicationController.
pub fn of_workload(workload: &Value) -> Result<Value, ScaleError> {
    let selector = match workload.pointer("/spec/selector") {
        None | Some(Value::Null) => String::new(),
        // Replication controllers select by labels only, without saying so.
        Some(labels) if workload.get("kind") == Some(&"ReplicationController".into()) => {
            let match_labels = serde_json::from_value(labels.clone()).unwrap_or_default();
            LabelSelector { match_labels, ..LabelSelector::default() }.to_selector()?.to_string()
        }
        Some(selector) => {
            let selector: LabelSelector =
                serde_json::from_value(selector.clone()).unwrap_or_default();
            selector.to_selector()?.to_string()
        }
    };
    let number = |path: &str| workload.pointer(path).and_then(Value::as_i64).unwrap_or_default();
    Ok(scale(workload, number("/spec/replicas"), number("/status/replicas"), &selector))
}

/// The scale of a custom resource.
pub fn of_custom(resource: &Value, paths: &Paths) -> Result<Value, ScaleError> {
    match number(resource, &paths.spec_replicas)? {
        Some(wanted) => of_custom_or(resource, paths, wanted),
        None => Err(ScaleError::NoReplicas { path: paths.spec_replicas.clone() }),
    }
}

/// The scale of a custom resource; it wants `otherwise` where it does not say how many replicas.
pub fn of_custom_or(resource: &Value, paths: &Paths, otherwise: i64) -> Result<Value, ScaleError> {
    let wanted = number(resource, &paths.spec_replicas)?.unwrap_or(otherwise);
    let found = number(resource, &paths.status_replicas)?.unwrap_or(0);
    let selector = match &paths.label_selector {
        None => "",
        Some(path) => match find(resource, path)? {
            None => "",
            Some(value) => value.as_str().ok_or_else(|| mistyped(path, value, "string"))?,
        },
    };
    Ok(scale(resource, wanted, found, selector))
}

/// What is wrong with the number of replicas that a custom resource asks for.
pub fn validate_spec(resource: &Value, paths: &Paths) -> Vec<Error> {
    validate_number(resource, &paths.spec_replicas)
}

/// What is wrong with what a custom resource says of the replicas it has.
pub fn validate_status(resource: &Value, paths: &Paths) -> Vec<Error> {
    let mut errors = validate_number(resource, &paths.status_replicas);
    if let Some(path) = &paths.label_selector {
        let text = find(resource, path).and_then(|found| match found {
            Some(other) if !other.is_string() => Err(mistyped(path, other, "string")),
            _ => Ok(()),
        });
        errors.extend(text.err().map(|why| Error::invalid(&Path::new(path), "", why.to_string())));
    }
    errors
}

fn validate_number(resource: &Value, path: &str) -> Vec<Error> {
    const INT32_MAX: i64 = i32::MAX as i64;
    let invalid = |number: i64, why: String| vec![Error::invalid(&Path::new(path), number, why)];
    match number(resource, path) {
        Err(why) => invalid(0, why.to_string()),
        Ok(Some(number)) if number < 0 => {
            invalid(number, "should be a non-negative integer".to_owned())
        }
        Ok(Some(number)) if number > INT32_MAX => {
            invalid(number, format!("should be less than or equal to {INT32_MAX}"))
        }
        Ok(_) => Vec::new(),
    }
}

fn number(resource: &Value, path: &str) -> Result<Option<i64>, ScaleError> {
    match find(resource, path)? {
        None => Ok(None),
        Some(value) => match value.as_i64() {
            None => Err(mistyped(path, value, "int64")),
            number => Ok(number),
        },
    }
}

/// Sets the number of replicas at a path, making the objects on the way.
pub fn set_replicas(object: &mut Value, path: &str, replicas: i64) -> Result<(), ScaleError> {
    let keys: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let (last, way) = keys.split_last().expect("splitting gives at least one part");
    let mut at = object;
    for (depth, key) in way.iter().enumerate() {
        let Value::Object(members) = at else {
            return Err(mistyped(&joined(&keys[..depth]), at, "map[string]interface{}"));
        };
        at = members.entry(*key).or_insert_with(|| json!({}));
    }
    match at {
        Value::Object(members) => {
            members.insert((*last).to_owned(), replicas.into());
            Ok(())
        }
        other => Err(mistyped(&joined(way), other, "map[string]interface{}")),
    }
}

fn scale(object: &Value, spec_replicas: i64, status_replicas: i64, selector: &str) -> Value {
    let mut metadata = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.get("metadata").and_then(|metadata| metadata.get(key)) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    // Numbers have 32 bits here.
    let mut spec = json!({});
    if spec_replicas as i32 != 0 {
        spec["replicas"] = (spec_replicas as i32).into();
    }
    let mut status = json!({"replicas": status_replicas as i32});
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    })
}

fn find<'v>(resource: &'v Value, path: &str) -> Result<Option<&'v Value>, ScaleError> {
    let keys: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let mut at = resource;
    for (depth, key) in keys.iter().enumerate() {
        at = match at {
            Value::Object(members) => match members.get(*key) {
                Some(value) => value,
                None => return Ok(None),
            },
            // Nothing is below nothing.
            Value::Null => return Ok(None),
            other => {
                let path = joined(&keys[..=depth]);
                return Err(mistyped(&path, other, "map[string]interface{}"));
            }
        };
    }
    Ok(Some(at))
}

fn joined(keys: &[&str]) -> String {
    keys.iter().map(|key| format!(".{key}")).collect()
}

fn mistyped(path: &str, found: &Value, expected: &'static str) -> ScaleError {
    let ty = go::type_name(found);
    ScaleError::Accessor { path: path.to_owned(), found: go::plain(found), ty, expected }
}
