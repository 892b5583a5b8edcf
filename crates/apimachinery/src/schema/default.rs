//! Filling in what is missing, and dropping nulls that say nothing.

use serde_json::Value;

use super::coerce::{Malformed, coerce_value};
use super::prune::prune_value;
use super::{AdditionalProperties, Structural};

/// Fills in the defaults of `schema`: for fields that are missing, and for nulls where null is no
/// value. A default is found only where its parent exists, or was itself just filled in.
pub fn default(value: &mut Value, schema: &Structural) {
    match value {
        Value::Object(map) => {
            for (name, property) in schema.properties.iter() {
                let Some(default) = &property.default else { continue };
                match map.get_mut(name) {
                    None => {
                        map.insert(name.to_owned(), default.clone());
                    }
                    Some(value) if value.is_null() && !property.nullable => {
                        *value = default.clone();
                    }
                    Some(_) => {}
                }
            }
            for (name, value) in map {
                if let Some(property) = schema.properties.get(name) {
                    self::default(value, property);
                } else if let Some(additional) = schema.additional_schema() {
                    default_item(value, additional);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for item in items {
                default_item(item, schema);
            }
        }
        _ => {}
    }
}

fn default_item(item: &mut Value, schema: &Structural) {
    if item.is_null() && !schema.nullable {
        *item = schema.default.clone().unwrap_or(Value::Null);
    }
    default(item, schema);
}

/// Drops fields that are null although null is not one of their values, unless a default will
/// take their place.
pub fn drop_nulls(value: &mut Value, schema: &Structural) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let Some(schema) = schema.field(name) else { return true };
            if value.is_null() {
                return schema.nullable || schema.default.is_some();
            }
            drop_nulls(value, schema);
            true
        }),
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for item in items {
                drop_nulls(item, schema);
            }
        }
        _ => {}
    }
}

/// Brings the defaults of a schema themselves into shape: drops from them what the schema does
/// not know, and metadata that could not be read.
///
/// Definitions with such defaults are refused today, except within the metadata of embedded
/// objects; older ones may still be stored.
pub fn prune_defaults(schema: &mut Structural) {
    // Whether a field is known depends on its surroundings, so the schema is looked up as it was.
    let root = schema.clone();
    prune_defaults_below(schema, &root, &mut Vec::new());
}

/// A step from a schema's root to one of its nodes.
enum Step {
    Field(String),
    Item,
}

fn prune_defaults_below(schema: &mut Structural, root: &Structural, way: &mut Vec<Step>) {
    if let Some(default) = schema.default.take() {
        schema.default = Some(prune_default(default, root, way));
    }
    if let Some(AdditionalProperties::Schema(additional)) = &mut schema.additional_properties {
        way.push(Step::Field("*".to_owned()));
        prune_defaults_below(additional, root, way);
        way.pop();
    }
    if let Some(items) = &mut schema.items {
        way.push(Step::Item);
        prune_defaults_below(items, root, way);
        way.pop();
    }
    for (name, property) in schema.properties.iter_mut() {
        way.push(Step::Field(name.to_owned()));
        prune_defaults_below(property, root, way);
        way.pop();
    }
}

/// Prunes a default as part of an object in which it stands at the end of `way`.
fn prune_default(default: Value, root: &Structural, way: &[Step]) -> Value {
    let mut object = way.iter().rev().fold(default, |inner, step| match step {
        Step::Field(name) => Value::Object([(name.clone(), inner)].into_iter().collect()),
        Step::Item => Value::Array(vec![inner]),
    });
    if coerce_value(&mut object, root, true, Malformed::Drop).is_err() {
        // Nothing is malformed any more once it has been dropped.
        return Value::Null;
    }
    prune_value(&mut object, root, true);
    way.iter()
        .try_fold(object, |outer, step| match (step, outer) {
            (Step::Field(name), Value::Object(mut map)) => map.remove(name),
            (Step::Item, Value::Array(mut items)) => (!items.is_empty()).then(|| items.remove(0)),
            _ => None,
        })
        .unwrap_or(Value::Null)
}
