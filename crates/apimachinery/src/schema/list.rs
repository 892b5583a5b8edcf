//! Lists that are sets or maps hold nothing twice.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Structural;
use super::coerce::printed;
use crate::field::{self, Path};
use crate::json;

/// What stands twice in lists of `x-kubernetes-list-type` `set` or `map`.
pub fn validate_lists(object: &Value, schema: &Structural) -> Vec<field::Error> {
    let mut errors = Vec::new();
    visit(object, schema, &Path::ROOT, &mut errors);
    errors
}

fn visit(value: &Value, schema: &Structural, at: &Path<'_>, errors: &mut Vec<field::Error>) {
    match value {
        Value::Object(map) => {
            if let Some(additional) = schema.additional_schema() {
                for (name, value) in map {
                    visit(value, additional, &at.key(name), errors);
                }
            }
            for (name, value) in map {
                if let Some(property) = schema.properties.get(name) {
                    visit(value, property, &at.child(name), errors);
                }
            }
        }
        Value::Array(items) => {
            if schema.is_list_type("set") {
                for index in repeated(items) {
                    errors.push(field::Error::duplicate(&at.index(index), printed(&items[index])));
                }
            } else if schema.is_list_type("map") {
                map_keys(items, schema, at, errors);
            }
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    visit(item, schema, &at.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn map_keys(items: &[Value], schema: &Structural, at: &Path<'_>, errors: &mut Vec<field::Error>) {
    let stranger = |item: &Value| !item.is_object() && !item.is_null();
    if let Some(index) = items.iter().position(stranger) {
        let detail = "must be an object for an array of list-type map";
        errors.push(field::Error::invalid(&at.index(index), printed(&items[index]), detail));
        return;
    }
    if items.len() < 2 {
        return;
    }
    let keys: Vec<Value> = items
        .iter()
        .map(|item| {
            let mut key = Map::new();
            for name in &schema.extensions.list_map_keys {
                if let Some(value) = item.get(&**name) {
                    key.insert(name.to_string(), value.clone());
                }
            }
            Value::Object(key)
        })
        .collect();
    for index in repeated(&keys) {
        errors.push(field::Error::duplicate(&at.index(index), printed(&keys[index])));
    }
}

/// Where a value stands for the second time. Third times are not worth telling.
fn repeated(items: &[Value]) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(items.len());
    let mut repeated = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let times = seen.entry(identity(item)).or_default();
        *times += 1;
        if *times == 2 {
            repeated.push(index);
        }
    }
    repeated
}

/// A text that equal values share and different ones do not.
fn identity(item: &Value) -> String {
    match item {
        // `1` and `1.0` are different scalars, although both are written `1`.
        Value::Number(number) if number.is_f64() => format!("{number}f"),
        Value::Object(_) | Value::Array(_) => json::to_string(&printed(item)),
        other => json::to_string(other),
    }
}
