//! Dropping what a schema does not know.

use serde_json::Value;

use super::{Structural, is_meta_field};

/// A request full of unknown fields is reported only so far; what is dropped is dropped anyway.
const REPORTED_BYTES_MAX: usize = 1 << 20;

/// Drops the fields that `schema` does not specify, and returns their paths in order, as strict
/// decoding reports them: `spec.list[2].unknown`.
///
/// The object's own `apiVersion`, `kind` and `metadata` stay as they are, and so do those of
/// embedded objects.
pub fn prune(object: &mut Value, schema: &Structural) -> Vec<String> {
    prune_value(object, schema, true)
}

/// The same for a part of an object.
pub(super) fn prune_value(value: &mut Value, schema: &Structural, is_root: bool) -> Vec<String> {
    let mut pruner = Pruner::default();
    pruner.prune(value, Some(schema), is_root, &At::Root);
    pruner.unknown.sort();
    pruner.unknown
}

/// Where the walk is; becomes text only for what is dropped.
enum At<'a> {
    Root,
    Field(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
}

impl At<'_> {
    fn write(&self, out: &mut String) {
        match self {
            At::Root => {}
            At::Field(parent, name) => {
                parent.write(out);
                if !matches!(parent, At::Root) {
                    out.push('.');
                }
                out.push_str(name);
            }
            At::Index(parent, index) => {
                parent.write(out);
                out.push_str(&format!("[{index}]"));
            }
        }
    }
}

#[derive(Default)]
struct Pruner {
    unknown: Vec<String>,
    bytes: usize,
}

impl Pruner {
    fn report(&mut self, at: &At<'_>) {
        if self.bytes < REPORTED_BYTES_MAX {
            let mut path = String::new();
            at.write(&mut path);
            self.bytes += path.len();
            self.unknown.push(path);
        }
    }

    /// Without a schema nothing is known: fields go, but values that are no objects stay.
    fn prune(
        &mut self,
        value: &mut Value,
        schema: Option<&Structural>,
        is_root: bool,
        at: &At<'_>,
    ) {
        if let Some(schema) = schema.filter(|schema| schema.preserves_unknown_fields()) {
            self.preserve(value, schema, is_root, at);
            return;
        }
        match value {
            Value::Object(map) => map.retain(|name, value| {
                let here = At::Field(at, name);
                let Some(schema) = schema else {
                    self.report(&here);
                    return false;
                };
                if schema.is_embedded(is_root) && is_meta_field(name) {
                    return true;
                }
                if let Some(property) = schema.properties.get(name) {
                    self.prune(value, Some(property), false, &here);
                } else if schema.additional_properties.is_some() {
                    self.prune(value, schema.additional_schema(), false, &here);
                } else {
                    self.report(&here);
                    return false;
                }
                true
            }),
            Value::Array(items) => {
                let schema = schema.and_then(|schema| schema.items.as_deref());
                for (index, item) in items.iter_mut().enumerate() {
                    self.prune(item, schema, false, &At::Index(at, index));
                }
            }
            _ => {}
        }
    }

    /// Unknown fields stay here, but pruning starts again below every field that is specified.
    fn preserve(&mut self, value: &mut Value, schema: &Structural, is_root: bool, at: &At<'_>) {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    if schema.is_embedded(is_root) && is_meta_field(name) {
                        continue;
                    }
                    let here = At::Field(at, name);
                    if let Some(property) = schema.properties.get(name) {
                        self.prune(value, Some(property), false, &here);
                    } else if schema.additional_properties.is_some() {
                        self.prune(value, schema.additional_schema(), false, &here);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    self.preserve(item, schema, false, &At::Index(at, index));
                }
            }
            _ => {}
        }
    }
}
