//! Making strategic merge patches: from two states of an object, or from three as `kubectl apply`
//! does.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::list::{Element, positions, sorted};
use super::{DELETE_FROM_LIST, Error, Mode, PATCH, RETAIN_KEYS, SET_ORDER, Schema, merge};
use crate::json::go::plain;

/// The patch that makes `modified` of `original`.
pub fn two_way(
    original: &Map<String, Value>,
    modified: &Map<String, Value>,
    schema: Schema,
) -> Result<Map<String, Value>, Error> {
    diff(original, modified, schema, Wanted { order: true, ..Wanted::ALL })
}

/// The patch that brings `current` to `modified` and drops what was in `original`, the state that
/// was last asked for, and is no longer asked for. What others have added stays.
///
/// Unless `overwrite`, a patch that undoes what others have changed since is refused.
pub fn three_way(
    original: &Map<String, Value>,
    modified: &Map<String, Value>,
    current: &Map<String, Value>,
    schema: Schema,
    overwrite: bool,
) -> Result<Map<String, Value>, ThreeWayError> {
    let changes = Wanted { order: true, deletions: false, ..Wanted::ALL };
    let delta = diff(current, modified, schema, changes)?;
    let removals = Wanted { order: true, changes: false, ..Wanted::ALL };
    let deletions = diff(original, modified, schema, removals)?;
    let patch = merge(deletions, delta, schema, Mode::Combine)?;
    if !overwrite {
        let changed = diff(original, current, schema, Wanted::ALL)?;
        if members_conflict(&patch, &changed, schema)? {
            return Err(ThreeWayError::Conflict(Box::new(Conflict { patch, changed })));
        }
    }
    Ok(patch)
}

/// Why [`three_way`] makes no patch.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ThreeWayError {
    #[error("the patch conflicts with changes made from original to current")]
    Conflict(Box<Conflict>),
    #[error(transparent)]
    Unmergeable(#[from] Error),
}

/// A patch, and the changes of others that it would undo.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    pub patch: Map<String, Value>,
    pub changed: Map<String, Value>,
}

/// What a caller of a diff may insist on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition<'a> {
    KeyUnchanged(&'a str),
    MetadataKeyUnchanged(&'a str),
}

impl Precondition<'_> {
    /// Refuses a patch that touches what must stay.
    pub fn check(self, patch: &Map<String, Value>) -> Result<(), Error> {
        let touched = match self {
            Precondition::KeyUnchanged(key) => patch.contains_key(key),
            Precondition::MetadataKeyUnchanged(key) => {
                patch.get("metadata").is_some_and(|metadata| metadata.get(key).is_some())
            }
        };
        match touched {
            false => Ok(()),
            true => {
                let patch = plain(&Value::Object(patch.clone()));
                Err(Error::Unmergeable(format!("precondition failed for: {patch}")))
            }
        }
    }
}

/// Which differences a patch is to contain.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    changes: bool,
    deletions: bool,
    /// `$setElementOrder` lists.
    order: bool,
    /// A `$retainKeys` list for the object at hand.
    retain_keys: bool,
}

impl Wanted {
    const ALL: Wanted = Wanted { changes: true, deletions: true, order: false, retain_keys: false };
}

fn diff(
    original: &Map<String, Value>,
    modified: &Map<String, Value>,
    schema: Schema,
    wanted: Wanted,
) -> Result<Map<String, Value>, Error> {
    let mut patch = Map::new();
    for (key, new) in modified {
        let Some(old) = original.get(key) else {
            if wanted.changes {
                patch.insert(key.clone(), new.clone());
            }
            continue;
        };
        match (old, new) {
            _ if key == PATCH => match (old.is_string() && new.is_string(), old == new) {
                (false, _) => {
                    let message = format!("invalid value for special key: {PATCH}");
                    return Err(Error::Unmergeable(message));
                }
                (true, true) => {}
                (true, false) => {
                    patch.insert(key.clone(), new.clone());
                }
            },
            (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_))
                if old == new && !has_field(schema, key, new) => {}
            (Value::Object(old), Value::Object(new_members)) => {
                let (field, schema) = schema.object(key)?;
                let wanted = Wanted { retain_keys: field.retain_keys, ..wanted };
                if field.replace {
                    if wanted.changes {
                        patch.insert(key.clone(), new.clone());
                    }
                    continue;
                }
                let value = diff(old, new_members, schema, wanted)?;
                if !value.is_empty() {
                    patch.insert(key.clone(), Value::Object(value));
                }
            }
            (Value::Array(old_items), Value::Array(new_items)) => {
                let (field, schema) = schema.list(key)?;
                if field.merge {
                    let wanted = Wanted { retain_keys: field.retain_keys, ..wanted };
                    let merge_key = field.merge_key.unwrap_or("");
                    let lists = diff_lists(old_items, new_items, merge_key, schema, wanted)?;
                    lists.write(key, &mut patch);
                } else if wanted.changes && old != new {
                    patch.insert(key.clone(), new.clone());
                }
            }
            _ if wanted.changes && old != new => {
                patch.insert(key.clone(), new.clone());
            }
            _ => {}
        }
    }
    if wanted.deletions {
        for key in original.keys().filter(|key| !modified.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    if wanted.retain_keys {
        let mut kept: Vec<_> =
            modified.iter().filter(|(_, value)| !value.is_null()).map(|(key, _)| key).collect();
        let dropped =
            original.iter().any(|(key, value)| !value.is_null() && !modified.contains_key(key));
        if !kept.is_empty() && (!patch.is_empty() || dropped) {
            kept.sort();
            patch.insert(RETAIN_KEYS.to_owned(), json!(kept));
        }
    }
    Ok(patch)
}

/// Whether the schema knows the field: equal values of unknown fields need no patch.
fn has_field(schema: Schema, key: &str, value: &Value) -> bool {
    match value {
        Value::Array(_) => schema.list(key).is_ok(),
        _ => schema.object(key).is_ok(),
    }
}

/// What a patch says of one list.
#[derive(Debug, Default)]
struct ListDiff {
    items: Vec<Value>,
    deletions: Vec<Value>,
    order: Vec<Value>,
}

impl ListDiff {
    fn write(self, key: &str, patch: &mut Map<String, Value>) {
        let lists = [
            (key.to_owned(), self.items),
            (format!("{DELETE_FROM_LIST}/{key}"), self.deletions),
            (format!("{SET_ORDER}/{key}"), self.order),
        ];
        for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            patch.insert(key, Value::Array(list));
        }
    }
}

fn diff_lists(
    original: &[Value],
    modified: &[Value],
    merge_key: &str,
    schema: Schema,
    wanted: Wanted,
) -> Result<ListDiff, Error> {
    if original.is_empty() {
        let items = if wanted.changes { modified.to_vec() } else { Vec::new() };
        return Ok(ListDiff { items, ..ListDiff::default() });
    }
    match Element::of([original, modified])? {
        Element::Scalar => diff_scalars(original, modified, wanted),
        Element::Object => diff_objects(original, modified, merge_key, schema, wanted),
    }
}

fn diff_scalars(original: &[Value], modified: &[Value], wanted: Wanted) -> Result<ListDiff, Error> {
    // Upstream walks both lists sorted by their text; an item that is there more often than on
    // the other side is added, or removed, once for each time too many.
    let mut surplus: HashMap<String, isize> = HashMap::new();
    for item in original {
        *surplus.entry(plain(item)).or_default() -= 1;
    }
    let mut additions = Vec::new();
    for item in modified {
        let count = surplus.entry(plain(item)).or_default();
        *count += 1;
        if *count > 0 && wanted.changes {
            additions.push(item.clone());
        }
    }
    let mut deletions: Vec<Value> = Vec::new();
    let mut seen = HashSet::new();
    for item in sorted_by_text(original) {
        let text = plain(&item);
        if wanted.deletions && surplus[&text] < 0 && seen.insert(text) {
            deletions.push(item);
        }
    }
    let additions =
        sorted(sorted_by_text(&additions), &positions(modified, "")?, "", Element::Scalar)?;
    // The original is compared sorted: upstream has sorted it in place by now.
    let reordered = sorted_by_text(original) != modified;
    let ordered = wanted.order
        && ((wanted.deletions && !deletions.is_empty()) || (wanted.changes && reordered));
    let order = if ordered { modified.to_vec() } else { Vec::new() };
    Ok(ListDiff { items: additions, deletions, order })
}

fn diff_objects(
    original: &[Value],
    modified: &[Value],
    merge_key: &str,
    schema: Schema,
    wanted: Wanted,
) -> Result<ListDiff, Error> {
    let old = sorted_by_key(original, merge_key)?;
    let new = sorted_by_key(modified, merge_key)?;
    let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
    let (mut items, mut deletions) = (Vec::new(), Vec::new());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => break,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(_), None) => std::cmp::Ordering::Less,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        match order {
            std::cmp::Ordering::Less => {
                let (_, item) = old.next().expect("peeked");
                if wanted.deletions {
                    deletions.push(json!({ merge_key: item[merge_key], PATCH: "delete" }));
                }
            }
            std::cmp::Ordering::Greater => {
                let (_, item) = new.next().expect("peeked");
                if wanted.changes {
                    items.push(Value::Object(item.clone()));
                }
            }
            std::cmp::Ordering::Equal => {
                let (_, before) = old.next().expect("peeked");
                let (_, after) = new.next().expect("peeked");
                let mut patch = diff(before, after, schema, wanted)?;
                if !patch.is_empty() {
                    patch.insert(merge_key.to_owned(), after[merge_key].clone());
                    items.push(Value::Object(patch));
                }
            }
        }
    }
    let mut items = sorted(items, &positions(modified, merge_key)?, merge_key, Element::Object)?;
    let same_order = original.len() == modified.len()
        && original.iter().zip(modified).all(|(old, new)| old[merge_key] == new[merge_key]);
    items.append(&mut deletions);
    let ordered = wanted.order
        && ((wanted.changes && (!items.is_empty() || !same_order))
            || (wanted.deletions && !items.is_empty()));
    let order = match ordered {
        true => modified.iter().map(|item| json!({ merge_key: item[merge_key] })).collect(),
        false => Vec::new(),
    };
    Ok(ListDiff { items, deletions, order })
}

fn sorted_by_text(items: &[Value]) -> Vec<Value> {
    let mut items = items.to_vec();
    items.sort_by_cached_key(plain);
    items
}

/// Objects, each with the text of its merge key.
type Keyed<'v> = Vec<(String, &'v Map<String, Value>)>;

fn sorted_by_key<'v>(items: &'v [Value], merge_key: &str) -> Result<Keyed<'v>, Error> {
    let mut keyed = Vec::with_capacity(items.len());
    for item in items {
        let members = item.as_object().ok_or_else(|| super::wrong_type("map", item))?;
        let key = members.get(merge_key).ok_or_else(|| super::no_merge_key(item, merge_key))?;
        keyed.push((plain(key), members));
    }
    keyed.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(keyed)
}

fn members_conflict(
    left: &Map<String, Value>,
    right: &Map<String, Value>,
    schema: Schema,
) -> Result<bool, Error> {
    for (key, left) in left.iter().filter(|(key, _)| *key != PATCH && *key != RETAIN_KEYS) {
        let Some(right) = right.get(key) else { continue };
        let conflict = match (left, right) {
            (Value::Object(left), Value::Object(right)) => {
                let (field, schema) = schema.object(key)?;
                match left.get(PATCH) == right.get(PATCH) {
                    false => true,
                    true if field.replace => false,
                    true => members_conflict(left, right, schema)?,
                }
            }
            (Value::Array(left), Value::Array(right)) => {
                let (field, schema) = schema.list(key)?;
                let merge_key = field.merge_key.filter(|_| field.merge);
                lists_conflict(left, right, field.merge, merge_key.unwrap_or(""), schema)?
            }
            _ => left != right,
        };
        if conflict {
            return Ok(true);
        }
    }
    Ok(false)
}

fn lists_conflict(
    left: &[Value],
    right: &[Value],
    merged: bool,
    merge_key: &str,
    schema: Schema,
) -> Result<bool, Error> {
    let element = Element::of([left, right])?;
    match (merged, element) {
        // Values of merged lists never get in each other's way.
        (true, Element::Scalar) => Ok(false),
        (true, Element::Object) => {
            let right: HashMap<_, _> = sorted_by_key(right, merge_key)?.into_iter().collect();
            for (key, left) in sorted_by_key(left, merge_key)? {
                if let Some(right) = right.get(&key)
                    && (left.get(PATCH) != right.get(PATCH)
                        || members_conflict(left, right, schema)?)
                {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (false, Element::Scalar) => {
            Ok(left.len() != right.len() || sorted_by_text(left) != sorted_by_text(right))
        }
        (false, Element::Object) => {
            if left.len() != right.len() {
                return Ok(true);
            }
            for (left, right) in left.iter().zip(right) {
                let (Value::Object(left), Value::Object(right)) = (left, right) else {
                    return Ok(left != right);
                };
                if members_conflict(left, right, schema)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}
