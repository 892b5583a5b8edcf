//! Field sets brought in line with a schema.

use super::super::path::PathElement;
use super::super::schema::{Map, Schema, TypeId};
use super::super::set::Set;

/// Carries a set over to a schema in which some lists or maps have become one piece since the set
/// was written: who owned something inside now owns the whole. Returns whether anything changed.
/// The other direction needs nothing, as the owner of the whole still names it.
pub(in super::super) fn reconcile(schema: &Schema, set: &mut Set) -> bool {
    match below(schema, schema.root(), set, false) {
        Fate::Changed => true,
        // Nobody owns the object as a whole.
        Fate::Same | Fate::Whole => false,
    }
}

/// Adds the struct fields on the way to each member: a set of `a.b.c` gets `a` where `a` is a
/// field with a name in the schema, and not `a.b` where `b` is an entry of a map.
pub(in super::super) fn name_fields(schema: &Schema, set: Set) -> Set {
    let mut set = set;
    name_below(schema, Some(schema.root()), &mut set);
    set
}

enum Fate {
    Same,
    Changed,
    /// The value is one piece now.
    Whole,
}

fn below(schema: &Schema, ty: TypeId, set: &mut Set, is_leaf: bool) -> Fate {
    let ty = schema.get(ty);
    if let Some(map) = &ty.map {
        if map.free_form {
            return Fate::Same;
        }
        if map.atomic && !is_leaf {
            return if set.is_empty() { Fate::Same } else { Fate::Whole };
        }
        return each(schema, set, |element| map_child(map, element));
    }
    match (ty.scalar, &ty.list) {
        (None, Some(list)) if list.is_atomic() && !is_leaf => Fate::Whole,
        (None, Some(list)) => each(schema, set, |_| Some(list.element)),
        _ => Fate::Same,
    }
}

fn each(schema: &Schema, set: &mut Set, child: impl Fn(&PathElement) -> Option<TypeId>) -> Fate {
    let mut fate = Fate::Same;
    for node in set.nodes_mut() {
        let Some(ty) = child(&node.element) else { continue };
        let is_leaf = node.member && node.children.is_empty();
        match below(schema, ty, &mut node.children, is_leaf) {
            Fate::Same => continue,
            Fate::Changed => {}
            Fate::Whole => {
                node.member = true;
                node.children = Set::new();
            }
        }
        fate = Fate::Changed;
    }
    fate
}

fn map_child(map: &Map, element: &PathElement) -> Option<TypeId> {
    match element {
        PathElement::Field(name) => map.value_type(name),
        _ => map.element,
    }
}

fn name_below(schema: &Schema, ty: Option<TypeId>, set: &mut Set) {
    let ty = ty.map(|ty| schema.get(ty));
    let map = ty.and_then(|ty| ty.map.as_ref());
    let list = ty.and_then(|ty| ty.list.as_ref());
    for node in set.nodes_mut().filter(|node| !node.children.is_empty()) {
        let child = match (&node.element, map, list) {
            (PathElement::Field(name), Some(map), _) => {
                node.member |= map.names(name);
                map.value_type(name)
            }
            (PathElement::Key(_), _, Some(list)) => Some(list.element),
            _ => None,
        };
        name_below(schema, child, &mut node.children);
    }
}
