//! Conversions between the served versions of built-in kinds.
//!
//! By default two kinds of 1.36 are served in two versions: Events (core `v1` and
//! `events.k8s.io/v1`) and HorizontalPodAutoscalers (`autoscaling/v1` and `v2`). Workloads also
//! have a [`scale`] view. Objects are expected as the API writes them: decoded, with defaults.

mod autoscaler;
mod event;
pub mod scale;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::gvk::GroupVersion;

/// There is no such version of this kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} cannot be converted from {from:?} to {to}")]
pub struct ConvertError {
    pub kind: String,
    pub from: String,
    pub to: GroupVersion,
}

/// The object in another version. The object must say what it is; lists are converted by their
/// items.
pub fn convert(object: Value, to: &GroupVersion) -> Result<Value, ConvertError> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (kind, from, target) = (text("kind"), text("apiVersion"), to.to_string());
    let convert = match (kind, from, target.as_str()) {
        _ if from == target => return Ok(object),
        ("Event", "v1", "events.k8s.io/v1") => event::to_events,
        ("Event", "events.k8s.io/v1", "v1") => event::to_core,
        ("HorizontalPodAutoscaler", "autoscaling/v1", "autoscaling/v2") => autoscaler::to_v2,
        ("HorizontalPodAutoscaler", "autoscaling/v2", "autoscaling/v1") => autoscaler::to_v1,
        _ => {
            let (kind, from) = (kind.to_owned(), from.to_owned());
            return Err(ConvertError { kind, from, to: to.clone() });
        }
    };
    let members = match object {
        Value::Object(members) => members,
        _ => unreachable!("the object has a kind"),
    };
    let mut converted = convert(members);
    converted.insert("apiVersion".to_owned(), target.into());
    Ok(Value::Object(converted))
}

/// Takes members over under other names and in another order. What is empty and may be left out
/// is left out; what may not be is written as Go writes it.
fn renamed(mut from: Map<String, Value>, names: &[Rename]) -> Map<String, Value> {
    let mut to = Map::new();
    for key in ["kind", "apiVersion", "metadata"] {
        if let Some(value) = from.remove(key) {
            to.insert(key.to_owned(), value);
        }
    }
    for rename in names {
        let value = from.remove(rename.from).filter(|value| !is_zero(value));
        if let Some(value) = value.or_else(|| rename.zero.map(Zero::value)) {
            to.insert(rename.to.to_owned(), value);
        }
    }
    to
}

/// What becomes of one member.
struct Rename {
    from: &'static str,
    to: &'static str,
    /// What stands for nothing, where something must stand.
    zero: Option<Zero>,
}

#[derive(Clone, Copy)]
enum Zero {
    Null,
    Text,
    Object,
}

impl Zero {
    fn value(self) -> Value {
        match self {
            Zero::Null => Value::Null,
            Zero::Text => "".into(),
            Zero::Object => Map::new().into(),
        }
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}
