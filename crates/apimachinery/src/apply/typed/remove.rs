//! A value without some of its fields, or with nothing but them.

use serde_json::Value;

use super::super::schema::{List, Map, Schema, TypeId};
use super::super::set::Set;
use super::{Form, form};

/// `value` without the members of `fields` and everything below them. A container that loses its
/// last entry becomes null, which tells it from one that never had any.
pub(in super::super) fn remove(schema: &Schema, value: &Value, fields: &Set) -> Value {
    if fields.is_empty() {
        return value.clone();
    }
    Walk { schema, keep: Keep::Others }.value(schema.root(), value, fields)
}

/// Of `value`, the members of `fields` and what leads to them.
pub(in super::super) fn extract(schema: &Schema, value: &Value, fields: &Set) -> Value {
    Walk { schema, keep: Keep::Named }.value(schema.root(), value, fields)
}

static NOTHING: Set = Set::new();

struct Walk<'a> {
    schema: &'a Schema,
    keep: Keep,
}

/// Which fields stay: those named, or the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Named,
    Others,
}

impl Walk<'_> {
    fn value(&self, ty: TypeId, value: &Value, fields: &Set) -> Value {
        match form(self.schema.get(ty), value) {
            Form::Scalar(_) => value.clone(),
            Form::List(list) => match value.as_array() {
                Some(items) if !items.is_empty() && !list.is_atomic() => {
                    self.items(list, items, fields)
                }
                Some(_) if self.keep == Keep::Named => value.clone(),
                _ => Value::Null,
            },
            Form::Map(map) => match value.as_object() {
                Some(entries) if !entries.is_empty() && !map.atomic => {
                    self.entries(map, entries, fields)
                }
                Some(_) if self.keep == Keep::Named => value.clone(),
                _ => Value::Null,
            },
        }
    }

    fn items(&self, list: &List, items: &[Value], fields: &Set) -> Value {
        let kept = items.iter().filter_map(|item| {
            let node = list.element_of(item).ok().and_then(|element| fields.node(&element));
            let Some(node) = node else { return (self.keep == Keep::Others).then(|| item.clone()) };
            if self.keep == Keep::Others && node.member {
                return None;
            }
            if node.children.is_empty() {
                return Some(item.clone());
            }
            Some(self.value(list.element, item, &node.children))
        });
        null_if_empty(kept.collect(), Vec::is_empty, Value::Array)
    }

    fn entries(&self, map: &Map, entries: &serde_json::Map<String, Value>, fields: &Set) -> Value {
        let mut kept = serde_json::Map::new();
        for (key, value) in entries {
            let node = fields.field_node(key);
            let (member, children) =
                node.map_or((false, &NOTHING), |node| (node.member, &node.children));
            let Some(ty) = map.value_type(key) else { continue };
            let value = match self.keep {
                Keep::Others if member => continue,
                Keep::Others if children.is_empty() => value.clone(),
                // A member is extracted by the fields around it: upstream passes on the set of this
                // level, in which the names of the next may or may not occur.
                Keep::Named if member => self.value(ty, value, fields),
                Keep::Named if children.is_empty() => continue,
                Keep::Others | Keep::Named => self.value(ty, value, children),
            };
            kept.insert(key.clone(), value);
        }
        null_if_empty(kept, serde_json::Map::is_empty, Value::Object)
    }
}

fn null_if_empty<T>(
    container: T,
    is_empty: impl Fn(&T) -> bool,
    wrap: impl Fn(T) -> Value,
) -> Value {
    if is_empty(&container) { Value::Null } else { wrap(container) }
}
