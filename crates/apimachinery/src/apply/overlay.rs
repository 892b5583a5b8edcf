//! Part of an object laid over the object, with nobody to own what it says.

use serde_json::Value;

use super::schema::{ListTopology, Schema, TypeId};
use super::typed::{self, Duplicates};

/// Why something cannot be laid over an object. The texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverlayError {
    #[error("failed to convert patch object to typed object: {0}")]
    Config(String),
    /// Laying something over what is one piece would remove what it does not say.
    #[error("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {0}")]
    Atomic(String),
    #[error("failed to convert original object to typed object: {0}")]
    Live(String),
}

/// Lays `config` over `live`, as an apply would, but without managed fields.
///
/// # Errors
/// See [`OverlayError`].
pub fn overlay(schema: &Schema, live: &Value, config: &Value) -> Result<Value, OverlayError> {
    typed::validate(schema, config, Duplicates::Refused).map_err(OverlayError::Config)?;
    let mut atomics = Vec::new();
    collect_atomics(schema, schema.root(), config, &mut String::new(), &mut atomics);
    if !atomics.is_empty() {
        return Err(OverlayError::Atomic(atomics.join(", ")));
    }
    typed::validate(schema, live, Duplicates::Allowed).map_err(OverlayError::Live)?;
    Ok(typed::merge(schema, live, config))
}

/// The ways to everything that is one piece. What is under keys without names in the schema is not
/// looked into.
fn collect_atomics(
    schema: &Schema,
    ty: TypeId,
    value: &Value,
    path: &mut String,
    atomics: &mut Vec<String>,
) {
    let length = path.len();
    match (value, schema.get(ty)) {
        (Value::Object(entries), ty) if ty.map.is_some() => {
            let Some(map) = &ty.map else { return };
            if map.atomic {
                atomics.push(path.clone());
            }
            for (key, value) in entries.iter().filter(|(key, _)| map.names(key)) {
                let Some(ty) = map.value_type(key) else { continue };
                path.push('.');
                path.push_str(key);
                collect_atomics(schema, ty, value, path, atomics);
                path.truncate(length);
            }
        }
        (Value::Array(items), ty) => {
            let Some(list) = &ty.list else { return };
            if matches!(list.topology, ListTopology::Atomic) {
                atomics.push(path.clone());
            }
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                collect_atomics(schema, list.element, item, path, atomics);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
