//! Merging lists: items find each other by merge key, or by being equal, and keep an order.
//!
//! Lookups go through maps from an item's identity to its position, so that long lists take
//! time in proportion to their length.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Error, Mode, PATCH, Schema, no_merge_key, unknown_directive, wrong_type};
use crate::json::go::{plain, type_name};

/// The two lists as one. `merge_key` is empty for lists of scalars.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
    schema: Schema,
    mode: Mode,
    is_delete_list: bool,
) -> Result<Vec<Value>, Error> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let element = Element::of([&original, &patch])?;
    if element == Element::Scalar {
        if mode == Mode::Apply && is_delete_list {
            let doomed: HashSet<String> = patch.iter().map(identity).collect();
            return Ok(original.into_iter().filter(|v| !doomed.contains(&identity(v))).collect());
        }
        let mut seen = HashSet::new();
        let both = original.iter().chain(&patch).filter(|value| seen.insert(identity(value)));
        let parts = Parts::split(both.cloned().collect(), &patch, merge_key)?;
        return parts.ordered(&patch, &original, merge_key, element);
    }
    if merge_key.is_empty() {
        let kind = schema.kind();
        return Err(Error::Unmergeable(format!("cannot merge lists without merge key for {kind}")));
    }
    let (original, patch) = carry_out_directives(original, patch, merge_key)?;
    let order = original.clone();
    let merged = merge_items(original, &patch, merge_key, schema, mode)?;
    Parts::split(merged, &patch, merge_key)?.ordered(&patch, &order, merge_key, element)
}

/// Whether a list's items are objects. Lists of mixed items, and of lists, are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Scalar,
    Object,
}

impl Element {
    pub(super) fn of(lists: [&[Value]; 2]) -> Result<Element, Error> {
        let mut items = lists.iter().copied().flatten();
        let Some(first) = items.next() else {
            let message = "no elements in any of the given slices";
            return Err(Error::Unmergeable(message.to_owned()));
        };
        if first.is_array() {
            return Err(Error::ListOfLists);
        }
        if items.any(|item| type_name(item) != type_name(first)) {
            let [left, right] = lists.map(|list| plain(&Value::Array(list.to_vec())));
            return Err(Error::Unmergeable(format!(
                "list element types are not identical: [{left} {right}]"
            )));
        }
        match first.is_object() {
            true => Ok(Element::Object),
            false => Ok(Element::Scalar),
        }
    }
}

/// A merged list, parted into the items that the patch names and those only the server has.
pub(super) struct Parts {
    patched: Vec<Value>,
    server_only: Vec<Value>,
}

impl Parts {
    pub(super) fn split(
        merged: Vec<Value>,
        named: &[Value],
        merge_key: &str,
    ) -> Result<Parts, Error> {
        let mut names = HashSet::with_capacity(named.len());
        for (index, item) in named.iter().enumerate() {
            match merge_key {
                "" => names.insert(identity(item)),
                _ if !merged.is_empty() && !item.is_object() => {
                    let message = format!("value for key {index} is not a map");
                    return Err(Error::Unmergeable(message));
                }
                _ => item.get(merge_key).is_some_and(|key| names.insert(identity(key))),
            };
        }
        let (mut patched, mut server_only) = (Vec::new(), Vec::new());
        for item in merged {
            match names.contains(&key_of(&item, merge_key)?) {
                true => patched.push(item),
                false => server_only.push(item),
            }
        }
        Ok(Parts { patched, server_only })
    }

    /// The whole list again: each part in its own order, and an item of the server before an item
    /// of the patch only where the server's order says so.
    pub(super) fn ordered(
        self,
        patch_order: &[Value],
        server_order: &[Value],
        merge_key: &str,
        element: Element,
    ) -> Result<Vec<Value>, Error> {
        let patch_positions = positions(patch_order, merge_key)?;
        let server_positions = positions(server_order, merge_key)?;
        let patched = sorted(self.patched, &patch_positions, merge_key, element)?;
        let server_only = sorted(self.server_only, &server_positions, merge_key, element)?;

        let position = |item: &Value| {
            let key = key_of(item, merge_key).ok()?;
            server_positions.get(&key).copied()
        };
        let mut ordered = Vec::with_capacity(patched.len() + server_only.len());
        let mut patched = patched.into_iter().peekable();
        for item in server_only {
            let at = position(&item);
            while let Some(next) = patched.next_if(|next| match (at, position(next)) {
                (Some(at), Some(next)) => next <= at,
                _ => true,
            }) {
                ordered.push(next);
            }
            ordered.push(item);
        }
        ordered.extend(patched);
        Ok(ordered)
    }
}

/// Refuses a patch whose items are not all in the order list, or not in that order. Items to be
/// deleted may be anywhere, other directives before the last item of the order list.
pub(super) fn check_order(patch: &[Value], order: &[Value], merge_key: &str) -> Result<(), Error> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if let Some(stray) = patch.iter().find(|item| !merge_key.is_empty() && !item.is_object()) {
        return Err(wrong_type("map[string]interface {}", stray));
    }
    let mut next = patch.iter().filter(|item| !is_deletion(item)).peekable();
    for item in order {
        while next.next_if(|item| has_directive(item)).is_some() {}
        let Some(wanted) = next.peek() else { break };
        if key_of(wanted, merge_key)? == key_of(item, merge_key)? {
            next.next();
        }
    }
    match next.peek() {
        None => Ok(()),
        Some(_) => {
            let [patch, order] = [patch, order].map(|list| plain(&Value::Array(list.to_vec())));
            Err(Error::Unmergeable(format!(
                "The order in patch list:\n{patch}\n doesn't match {} list:\n{order}\n",
                super::SET_ORDER
            )))
        }
    }
}

/// The order that counts as the server's when a patch comes with a `$setElementOrder` list.
///
/// It is that of the live list, but upstream merges in place: where the patch deletes items, new
/// ones move up into their room and so have a place in the server's order too.
pub(super) fn server_order(live: &[Value], patch: &[Value], merge_key: &str) -> Vec<Value> {
    let deletions = patch.iter().filter(|item| is_deletion(item));
    let doomed: HashSet<String> =
        deletions.filter_map(|item| item.get(merge_key)).map(identity).collect();
    if doomed.is_empty() {
        return live.to_vec();
    }
    let key = |item: &Value| item.get(merge_key).map(identity);
    let mut order: Vec<Value> = live
        .iter()
        .filter(|item| key(item).is_none_or(|key| !doomed.contains(&key)))
        .cloned()
        .collect();
    let mut known: HashSet<String> = order.iter().filter_map(key).collect();
    let new = patch.iter().filter(|item| !has_directive(item));
    let new = new.filter(|item| key(item).is_some_and(|key| known.insert(key)));
    let room = live.len() - order.len();
    order.extend(new.take(room).cloned().collect::<Vec<_>>());
    order
}

/// Drops what `$patch: delete` items name, or everything if there is a `$patch: replace` item,
/// and takes such items out of the patch.
fn carry_out_directives(
    original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let mut plain_items = Vec::with_capacity(patch.len());
    let mut doomed = HashSet::new();
    let mut replace = false;
    for item in patch {
        match item.get(PATCH).map(Value::as_str) {
            None => plain_items.push(item),
            Some(Some("delete")) => {
                doomed.insert(key_of(&item, merge_key)?);
            }
            Some(Some("replace")) => replace = true,
            Some(Some("merge")) => {
                let message = "merging lists cannot yet be specified in the patch";
                return Err(Error::Unmergeable(message.to_owned()));
            }
            Some(_) => return Err(unknown_directive(item.as_object().expect("it has a member"))),
        }
    }
    if replace {
        return Ok((plain_items, Vec::new()));
    }
    let kept = |item: &Value| {
        let key = item.get(merge_key).map(identity);
        key.is_none_or(|key| !doomed.contains(&key))
    };
    let original = match doomed.is_empty() {
        true => original,
        false => original.into_iter().filter(kept).collect(),
    };
    Ok((original, plain_items))
}

fn merge_items(
    mut original: Vec<Value>,
    patch: &[Value],
    merge_key: &str,
    schema: Schema,
    mode: Mode,
) -> Result<Vec<Value>, Error> {
    let mut index = HashMap::with_capacity(original.len());
    for (position, item) in original.iter().enumerate() {
        if let Some(key) = item.get(merge_key) {
            index.entry(identity(key)).or_insert(position);
        }
    }
    for item in patch {
        let key = key_of(item, merge_key)?;
        match index.get(&key) {
            Some(&position) => {
                let live = std::mem::take(&mut original[position]);
                let (Value::Object(live), Value::Object(item)) = (live, item.clone()) else {
                    unreachable!("all items are objects")
                };
                original[position] = Value::Object(super::merge(live, item, schema, mode)?);
            }
            None => {
                index.insert(key, original.len());
                original.push(item.clone());
            }
        }
    }
    Ok(original)
}

/// The items by their position in an order. Items to be deleted come last.
pub(super) fn sorted(
    items: Vec<Value>,
    order: &HashMap<String, usize>,
    merge_key: &str,
    element: Element,
) -> Result<Vec<Value>, Error> {
    let (items, deletions): (Vec<Value>, Vec<Value>) = match element {
        Element::Scalar => (items, Vec::new()),
        Element::Object => items.into_iter().partition(|item| !is_deletion(item)),
    };
    let mut placed = Vec::with_capacity(items.len());
    for item in items {
        placed.push((order.get(&key_of(&item, merge_key)?).copied(), item));
    }
    if placed.len() <= GO_INSERTION_MAX && placed.iter().any(|(position, _)| position.is_none()) {
        insertion_sort(&mut placed);
    } else {
        placed.sort_by_key(|(position, _)| position.unwrap_or(usize::MAX));
    }
    Ok(placed.into_iter().map(|(_, item)| item).chain(deletions).collect())
}

/// Up to here Go's stable sort is an insertion sort.
const GO_INSERTION_MAX: usize = 20;

/// Sorts as Go's stable sort does with upstream's comparison, which says that an item without a
/// position comes before and after every other. It happens with an empty `$setElementOrder` list.
fn insertion_sort(placed: &mut [(Option<usize>, Value)]) {
    for end in 1..placed.len() {
        for at in (1..=end).rev() {
            let before = match (placed[at].0, placed[at - 1].0) {
                (Some(this), Some(that)) => this < that,
                _ => true,
            };
            if !before {
                break;
            }
            placed.swap(at, at - 1);
        }
    }
}

/// The first position of each item.
pub(super) fn positions(order: &[Value], merge_key: &str) -> Result<HashMap<String, usize>, Error> {
    let mut positions = HashMap::with_capacity(order.len());
    for (position, item) in order.iter().enumerate() {
        positions.entry(key_of(item, merge_key)?).or_insert(position);
    }
    Ok(positions)
}

/// What tells an item from others: its merge key, or itself where there is none.
fn key_of(item: &Value, merge_key: &str) -> Result<String, Error> {
    if merge_key.is_empty() {
        return Ok(identity(item));
    }
    match item {
        Value::Object(members) => match members.get(merge_key) {
            Some(key) => Ok(identity(key)),
            None => Err(no_merge_key(item, merge_key)),
        },
        other => Err(wrong_type("map[string]interface {}", other)),
    }
}

/// Text that is the same for equal values only: `80`, `80.0` and `"80"` are three.
fn identity(value: &Value) -> String {
    value.to_string()
}

fn has_directive(item: &Value) -> bool {
    item.get(PATCH).is_some()
}

fn is_deletion(item: &Value) -> bool {
    item.get(PATCH).and_then(Value::as_str) == Some("delete")
}
