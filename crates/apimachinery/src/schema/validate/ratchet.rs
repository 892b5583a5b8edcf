//! Which old value a new one replaces, and whether anything changed.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::{Structural, Type};

/// The items of the list that is replaced, by their keys. Only lists that are maps tell their
/// items apart; the items of others cannot be found again.
pub(in crate::schema) struct OldItems<'v> {
    keys: &'v [Box<str>],
    items: HashMap<Vec<Key<'v>>, &'v Value>,
}

#[derive(PartialEq, Eq, Hash)]
enum Key<'v> {
    Bool(bool),
    Integer(i64),
    Float(u64),
    Text(&'v str),
}

impl<'v> OldItems<'v> {
    pub(in crate::schema) fn new(old: Option<&'v Value>, schema: &'v Structural) -> Option<Self> {
        let keys = &*schema.extensions.list_map_keys;
        let old = old?.as_array()?;
        if !schema.is_type(&Type::Array) || !schema.is_list_type("map") || keys.is_empty() {
            return None;
        }
        let mut items = HashMap::with_capacity(old.len());
        for item in old {
            if let Some(key) = key(item, keys) {
                items.entry(key).or_insert(item);
            }
        }
        Some(OldItems { keys, items })
    }

    /// The old item with the keys of `item`.
    pub(in crate::schema) fn get(&self, item: &Value) -> Option<&'v Value> {
        self.items.get(&key(item, self.keys)?).copied()
    }
}

fn key<'i>(item: &'i Value, keys: &[Box<str>]) -> Option<Vec<Key<'i>>> {
    keys.iter()
        .map(|name| {
            Some(match item.get(&**name)? {
                Value::Bool(value) => Key::Bool(*value),
                Value::Number(value) => match value.as_i64() {
                    Some(integer) => Key::Integer(integer),
                    None => Key::Float(value.as_f64()?.to_bits()),
                },
                Value::String(text) => Key::Text(text),
                _ => return None,
            })
        })
        .collect()
}

/// Whether a value is the one it replaces.
///
/// Fields that the schema does not specify are never comparable, so an object that holds one has
/// always changed. In a list that is a map, order does not matter.
pub(in crate::schema) fn unchanged(value: &Value, old: &Value, schema: &Structural) -> bool {
    match (value, old) {
        (Value::Object(map), Value::Object(old)) => {
            map.len() == old.len()
                && map.iter().all(|(name, value)| {
                    let known = schema.field(name).zip(old.get(name));
                    known.is_some_and(|(schema, old)| unchanged(value, old, schema))
                })
        }
        (Value::Array(items), Value::Array(old_items)) => {
            if items.len() != old_items.len() {
                return false;
            }
            match (OldItems::new(Some(old), schema), &schema.items) {
                (Some(old), Some(schema)) => items
                    .iter()
                    .all(|item| old.get(item).is_some_and(|old| unchanged(item, old, schema))),
                _ => items == old_items,
            }
        }
        (value, old) => value == old,
    }
}
