//! What one version of an object changed in another.

use serde_json::Value;

use super::super::path::PathElement;
use super::super::schema::{List, Map, Schema, Type, TypeId};
use super::super::set::{Node, Set};
use super::super::value::equal;
use super::{Form, Forms};

/// The fields in which two objects differ. No field is in more than one of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Comparison {
    /// In the first object only.
    pub(in super::super) removed: Set,
    /// In both, with different values.
    pub(in super::super) modified: Set,
    /// In the second object only.
    pub(in super::super) added: Set,
}

/// How `old` became `new`. Both must have passed validation.
pub(in super::super) fn compare(schema: &Schema, old: &Value, new: &Value) -> Comparison {
    let below = Walk { schema }.value(schema.root(), Some(old), Some(new)).below;
    Comparison {
        removed: Set::from_nodes(below.removed),
        modified: Set::from_nodes(below.modified),
        added: Set::from_nodes(below.added),
    }
}

struct Walk<'a> {
    schema: &'a Schema,
}

/// What changed at a value and below it.
#[derive(Default)]
struct Changes {
    own: Option<Change>,
    /// A second change of the value itself: it was of two forms, and each has its say.
    own_too: Option<Change>,
    below: Levels,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Removed,
    Modified,
    Added,
}

/// One level of each of the three sets.
#[derive(Default)]
struct Levels {
    removed: Vec<Node>,
    modified: Vec<Node>,
    added: Vec<Node>,
}

impl Levels {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Puts the changes of a child under its name.
    fn add(&mut self, element: PathElement, changes: Changes) {
        let Changes { own, own_too, below } = changes;
        let sides = [
            (Change::Removed, below.removed, &mut self.removed),
            (Change::Modified, below.modified, &mut self.modified),
            (Change::Added, below.added, &mut self.added),
        ];
        for (change, children, level) in sides {
            let member = own == Some(change) || own_too == Some(change);
            if member || !children.is_empty() {
                level.push(Node {
                    element: element.clone(),
                    member,
                    children: Set::from_nodes(children),
                });
            }
        }
    }

    fn mark(&mut self, element: PathElement, change: Change) {
        self.add(element, Changes { own: Some(change), ..Changes::default() });
    }
}

impl Walk<'_> {
    fn value(&self, ty: TypeId, old: Option<&Value>, new: Option<&Value>) -> Changes {
        let ty = self.schema.get(ty);
        let mut changes = Changes::default();
        let forms = match (old.map(|old| Forms::of(ty, old)), new.map(|new| Forms::of(ty, new))) {
            (Some(before), Some(after)) if before != after => {
                // A value that changed its form loses what it was and gains what it is.
                if let Some(change) = self.form(ty, before, old, new, &mut changes.below).leaf() {
                    changes.own_too = change;
                }
                after
            }
            (Some(forms), None) | (_, Some(forms)) => forms,
            (None, None) => return changes,
        };
        changes.own = match self.form(ty, forms, old, new, &mut changes.below) {
            Outcome::Leaf(change) => change,
            Outcome::Container if old.is_none() => Some(Change::Added),
            Outcome::Container if new.is_none() => Some(Change::Removed),
            Outcome::Container => None,
        };
        changes
    }

    fn form(
        &self,
        ty: &Type,
        forms: Forms,
        old: Option<&Value>,
        new: Option<&Value>,
        out: &mut Levels,
    ) -> Outcome {
        match forms.first(ty) {
            Form::Scalar(_) => leaf(old, new),
            Form::List(list) => self.list(list, old, new, out),
            Form::Map(map) => self.map(map, old, new, out),
        }
    }

    fn map(
        &self,
        map: &Map,
        old: Option<&Value>,
        new: Option<&Value>,
        out: &mut Levels,
    ) -> Outcome {
        let (old_entries, new_entries) =
            (old.and_then(Value::as_object), new.and_then(Value::as_object));
        // Two empty maps are compared as leaves, so that null and {} stay distinct.
        let empty = old_entries.is_none_or(serde_json::Map::is_empty)
            && new_entries.is_none_or(serde_json::Map::is_empty);
        if map.atomic || empty {
            return leaf(old, new);
        }
        for (key, old) in old_entries.into_iter().flatten() {
            let new = new_entries.and_then(|entries| entries.get(key));
            self.entry(map, key, Some(old), new, out);
        }
        for (key, new) in new_entries.into_iter().flatten() {
            if !old_entries.is_some_and(|entries| entries.contains_key(key)) {
                self.entry(map, key, None, Some(new), out);
            }
        }
        Outcome::Container
    }

    fn entry(
        &self,
        map: &Map,
        key: &str,
        old: Option<&Value>,
        new: Option<&Value>,
        out: &mut Levels,
    ) {
        let Some(ty) = map.value_type(key) else { return };
        let changes = self.value(ty, old, new);
        // Most entries of most updates are the same; they need no name.
        if changes.own.is_some() || changes.own_too.is_some() || !changes.below.is_empty() {
            out.add(PathElement::field(key), changes);
        }
    }

    fn list(
        &self,
        list: &List,
        old: Option<&Value>,
        new: Option<&Value>,
        out: &mut Levels,
    ) -> Outcome {
        let (old_items, new_items) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
        let empty = old_items.is_none_or(Vec::is_empty) && new_items.is_none_or(Vec::is_empty);
        if list.is_atomic() || empty {
            return leaf(old, new);
        }
        // Equal lists need no names for their items.
        if let (Some(old), Some(new)) = (old, new)
            && equal(old, new)
        {
            return Outcome::Container;
        }
        let old_items = named(list, old_items);
        let new_items = named(list, new_items);
        let (mut old_rest, mut new_rest) = (old_items.as_slice(), new_items.as_slice());
        while let Some(element) = next_element(old_rest, new_rest) {
            let before = take_group(&mut old_rest, element);
            let after = take_group(&mut new_rest, element);
            self.items(list, element, before, after, out);
        }
        Outcome::Container
    }

    /// Compares the items of one name, of which other writers than apply may leave several.
    fn items(
        &self,
        list: &List,
        element: &PathElement,
        old: &[Item<'_>],
        new: &[Item<'_>],
        out: &mut Levels,
    ) {
        match (old, new) {
            ([] | [_], [] | [_]) => {
                let (old, new) =
                    (old.first().map(|(_, item)| *item), new.first().map(|(_, item)| *item));
                out.add(element.clone(), self.value(list.element, old, new));
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = old.len() == new.len()
                    && old.iter().zip(new).all(|((_, old), (_, new))| equal(old, new));
                if !same {
                    out.mark(element.clone(), Change::Modified);
                }
            }
            ([_, _, ..], new) => {
                if let [(_, new)] = new {
                    out.add(element.clone(), self.value(list.element, None, Some(new)));
                }
                out.mark(element.clone(), Change::Removed);
            }
            (old, [_, _, ..]) => {
                if let [(_, old)] = old {
                    out.add(element.clone(), self.value(list.element, Some(old), None));
                }
                out.mark(element.clone(), Change::Added);
            }
        }
    }
}

type Item<'v> = (PathElement, &'v Value);

/// The items by name; those of one name in the order of the list.
fn named<'v>(list: &List, items: Option<&'v Vec<Value>>) -> Vec<Item<'v>> {
    let items = items.into_iter().flatten();
    let mut named: Vec<_> =
        items.filter_map(|item| Some((list.element_of(item).ok()?, item))).collect();
    named.sort_by(|(a, _), (b, _)| a.cmp(b));
    named
}

fn next_element<'a>(old: &'a [Item<'_>], new: &'a [Item<'_>]) -> Option<&'a PathElement> {
    match (old.first(), new.first()) {
        (Some((old, _)), Some((new, _))) => Some(old.min(new)),
        (Some((only, _)), None) | (None, Some((only, _))) => Some(only),
        (None, None) => None,
    }
}

fn take_group<'a, 'v>(items: &mut &'a [Item<'v>], element: &PathElement) -> &'a [Item<'v>] {
    let n = items.iter().take_while(|(name, _)| name == element).count();
    let (group, rest) = items.split_at(n);
    *items = rest;
    group
}

enum Outcome {
    /// The value is one piece, and this happened to it.
    Leaf(Option<Change>),
    /// What happened is told below.
    Container,
}

impl Outcome {
    fn leaf(self) -> Option<Option<Change>> {
        match self {
            Outcome::Leaf(change) => Some(change),
            Outcome::Container => None,
        }
    }
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> Outcome {
    Outcome::Leaf(match (old, new) {
        (None, None) => None,
        (None, Some(_)) => Some(Change::Added),
        (Some(_), None) => Some(Change::Removed),
        (Some(old), Some(new)) => (!equal(old, new)).then_some(Change::Modified),
    })
}
