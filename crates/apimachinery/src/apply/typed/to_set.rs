//! The fields a value mentions.

use serde_json::Value;

use super::super::path::PathElement;
use super::super::schema::{List, Map, Schema, TypeId};
use super::super::set::{Node, Set};
use super::{Form, form};

/// Every leaf of `value`, every item of its sets and keyed lists, and every entry of its maps.
/// The value must have passed validation.
pub(in super::super) fn to_set(schema: &Schema, value: &Value) -> Set {
    below(schema, schema.root(), value).1
}

/// Whether the value itself is a leaf, and the fields below it.
fn below(schema: &Schema, ty: TypeId, value: &Value) -> (bool, Set) {
    match form(schema.get(ty), value) {
        Form::Scalar(_) => (true, Set::new()),
        Form::List(list) if list.is_atomic() => (true, Set::new()),
        Form::List(list) => {
            (false, value.as_array().map_or_else(Set::new, |items| list_items(schema, list, items)))
        }
        Form::Map(map) if map.atomic => (true, Set::new()),
        Form::Map(map) => (
            false,
            value.as_object().map_or_else(Set::new, |entries| map_entries(schema, map, entries)),
        ),
    }
}

/// Stands for the items that have no name: removing fields can leave nothing of an item but null.
/// Such a list still counts as one that has something in it.
const NAMELESS: PathElement = PathElement::Index(-1);

fn list_items(schema: &Schema, list: &List, items: &[Value]) -> Set {
    let mut named: Vec<(PathElement, &Value)> =
        items.iter().map(|item| (list.element_of(item).unwrap_or(NAMELESS), item)).collect();
    named.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut nodes = Vec::with_capacity(named.len());
    let mut named = named.into_iter().peekable();
    while let Some((element, item)) = named.next() {
        let mut repeated = false;
        while named.next_if(|(next, _)| *next == element).is_some() {
            repeated = true;
        }
        // Items that share a name cannot be told apart further down.
        let children = if repeated { Set::new() } else { below(schema, list.element, item).1 };
        nodes.push(Node { element, member: true, children });
    }
    Set::from_nodes(nodes)
}

fn map_entries(schema: &Schema, map: &Map, entries: &serde_json::Map<String, Value>) -> Set {
    let mut nodes = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let Some(ty) = map.value_type(key) else { continue };
        let (leaf, children) = below(schema, ty, value);
        let nothing_below =
            value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        let member = leaf || nothing_below || !map.names(key);
        if member || !children.is_empty() {
            nodes.push(Node { element: PathElement::field(key), member, children });
        }
    }
    Set::from_nodes(nodes)
}
