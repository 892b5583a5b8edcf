//! Strategic merge patch: a merge patch that knows which lists are merged, by which key, and how
//! their items are ordered.
//!
//! [`apply`] is what the server does; [`diff`] makes patches, as clients do.
//! The directives are members of the patch itself:
//!
//! | member | meaning |
//! |---|---|
//! | `$patch: replace` | this object, or this list, replaces what is there |
//! | `$patch: delete` | empty this object; in a list, drop the item with this merge key |
//! | `$deleteFromPrimitiveList/x` | drop these values from the list `x` |
//! | `$setElementOrder/x` | the order of the items of `x` that the patch knows of |
//! | `$retainKeys` | drop all other members of this object |

pub mod diff;
mod list;
mod schema;

use std::collections::HashSet;

use serde_json::{Map, Value};

pub use schema::Schema;

use crate::json::go::{self, plain};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// Why a patch does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Answered as a bad request.
    #[error("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")]
    NotAnObject { found: &'static str },
    /// Answered as a bad request.
    #[error("invalid patch format of {0}")]
    Format(Directive),
    /// Answered as an unprocessable entity, without this text.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// Answered as an internal error, as upstream does, although it is the client's.
    #[error("{0}")]
    Unmergeable(String),
}

/// A directive with a value it cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directive {
    RetainKeys,
    DeleteFromList,
    SetOrder,
}

impl std::fmt::Display for Directive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Directive::RetainKeys => "retainKeys",
            Directive::DeleteFromList => "primitive list",
            Directive::SetOrder => "setElementOrder list",
        })
    }
}

/// The object after the patch. Unknown fields of the patch are taken over as they are.
pub fn apply(original: Value, patch: Value, schema: Schema) -> Result<Value, Error> {
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => Map::new(),
        other => return Err(Error::NotAnObject { found: go::word(&other) }),
    };
    let original = match original {
        Value::Object(original) => original,
        _ => Map::new(),
    };
    merge(original, patch, schema, Mode::Apply).map(Value::Object)
}

/// What the left side of a merge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// An object: directives are carried out, and `null` removes.
    Apply,
    /// Another patch: directives and `null` are kept for the server.
    Combine,
}

fn merge(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    schema: Schema,
    mode: Mode,
) -> Result<Map<String, Value>, Error> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.shift_remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown_directive(&patch)),
        };
    }
    retain_keys(&mut original, &mut patch, mode)?;
    order_lists(&mut original, &mut patch, schema, mode)?;

    // Taken out in one pass at the end: each removal alone would shift all later members.
    let mut doomed = HashSet::new();
    for (key, value) in patch {
        let (key, is_delete_list) = match key.starts_with(DELETE_FROM_LIST) {
            false => (key, false),
            true if mode == Mode::Combine => {
                original.insert(key, value);
                continue;
            }
            true => (list_of(&key, Directive::DeleteFromList)?.to_owned(), true),
        };
        if value.is_null() && mode == Mode::Apply {
            doomed.insert(key);
            continue;
        }
        let current = original.get_mut(&key).filter(|_| !doomed.contains(&key) && !value.is_null());
        match (current, value) {
            (Some(current @ Value::Object(_)), Value::Object(value)) => {
                let Value::Object(members) = std::mem::take(current) else { unreachable!() };
                let (field, schema) = schema.object(&key)?;
                *current = Value::Object(match field.replace {
                    true => value,
                    false => merge(members, value, schema, mode)?,
                });
            }
            (Some(current @ Value::Array(_)), Value::Array(value)) => {
                let Value::Array(items) = std::mem::take(current) else { unreachable!() };
                let (field, schema) = schema.list(&key)?;
                *current = Value::Array(match field.merge || is_delete_list {
                    false => value,
                    true => list::merge(
                        items,
                        value,
                        field.merge_key.unwrap_or(""),
                        schema,
                        mode,
                        is_delete_list,
                    )?,
                });
            }
            (_, _) if is_delete_list => {}
            (_, mut value) => {
                if mode == Mode::Apply {
                    discard_nulls(&mut value);
                }
                match without_directives(value) {
                    Some(value) => {
                        doomed.remove(&key);
                        original.insert(key, value);
                    }
                    None => {
                        doomed.insert(key);
                    }
                }
            }
        }
    }
    if !doomed.is_empty() {
        original.retain(|key, _| !doomed.contains(key));
    }
    Ok(original)
}

/// Carries out `$retainKeys`: the object keeps no member that the list does not name, and the
/// patch may set no other.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    mode: Mode,
) -> Result<(), Error> {
    let Some(retained) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    if mode == Mode::Combine {
        return match original.get(RETAIN_KEYS) {
            Some(other) if *other != retained => Err(Error::Unmergeable(format!(
                "{} and {} are not deep equal: this may happen when calculating the 3-way diff \
                 patch",
                plain(other),
                plain(&retained)
            ))),
            _ => {
                original.insert(RETAIN_KEYS.to_owned(), retained);
                Ok(())
            }
        };
    }
    let Value::Array(names) = &retained else { return Err(Error::Format(Directive::RetainKeys)) };
    let names: HashSet<&str> = names.iter().filter_map(Value::as_str).collect();
    let stray = patch.iter().any(|(key, value)| {
        !(value.is_null()
            || key.starts_with(DELETE_FROM_LIST)
            || key.starts_with(SET_ORDER)
            || names.contains(key.as_str()))
    });
    if stray {
        return Err(Error::Format(Directive::RetainKeys));
    }
    original.retain(|key, _| names.contains(key.as_str()));
    Ok(())
}

/// Carries out each `$setElementOrder/x`, together with the patch of `x` itself: both are taken
/// out of the patch. The order of the directive counts most, then that of the patch, then that
/// of the object.
fn order_lists(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: Schema,
    mode: Mode,
) -> Result<(), Error> {
    let directives: Vec<String> =
        patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let order = patch.shift_remove(&directive).expect("the key was just listed");
        if mode == Mode::Combine {
            match original.get(&directive) {
                Some(other) if *other != order => return Err(Error::Format(Directive::SetOrder)),
                Some(_) => {}
                None => {
                    original.insert(directive.clone(), order.clone());
                }
            }
        }
        let order = expect_list(order)?;
        let key = list_of(&directive, Directive::SetOrder)?;
        for list in [original.get(key), patch.get(key)].into_iter().flatten() {
            if !list.is_array() {
                return Err(wrong_type("[]interface {}", list));
            }
        }
        let live = original.get(key).and_then(Value::as_array).cloned();
        let patched = patch.shift_remove(key).map(expect_list).transpose()?;
        let (field, item) = schema.list(key)?;
        let merge_key = field.merge_key.unwrap_or("");
        list::check_order(patched.as_deref().unwrap_or_default(), &order, merge_key)?;

        let types = [live.as_deref(), patched.as_deref()].map(Option::unwrap_or_default);
        let element = list::Element::of(types);
        let server_order = list::server_order(
            live.as_deref().unwrap_or_default(),
            patched.as_deref().unwrap_or_default(),
            merge_key,
        );
        let merged = match (live, patched) {
            (None, None) => continue,
            (Some(live), None) => live,
            (None, Some(patched)) => patched.into_iter().filter_map(without_directives).collect(),
            (Some(live), Some(patched)) if field.merge => {
                list::merge(live, patched, merge_key, item, mode, false)?
            }
            (Some(_), Some(patched)) => patched,
        };
        let parts = list::Parts::split(merged, &order, merge_key)?;
        let ordered = parts.ordered(&order, &server_order, merge_key, element?)?;
        original.insert(key.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

/// The list that a directive such as `$setElementOrder/x` is about.
fn list_of(key: &str, directive: Directive) -> Result<&str, Error> {
    let prefix = match directive {
        Directive::DeleteFromList => DELETE_FROM_LIST,
        _ => SET_ORDER,
    };
    match key.split_once('/') {
        Some((before, list)) if before == prefix => Ok(list),
        _ => Err(Error::Format(directive)),
    }
}

fn expect_list(value: Value) -> Result<Vec<Value>, Error> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(wrong_type("[]interface {}", &other)),
    }
}

/// The value for a place where nothing was: objects with a directive have no say there.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => Some(Value::Object(
            members
                .into_iter()
                .filter_map(|(key, value)| Some((key, without_directives(value)?)))
                .collect(),
        )),
        Value::Array(items) => {
            Some(Value::Array(items.into_iter().filter_map(without_directives).collect()))
        }
        other => Some(other),
    }
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

fn unknown_directive(patch: &Map<String, Value>) -> Error {
    let directive = match &patch[PATCH] {
        Value::String(text) => text.clone(),
        Value::Null => "%!s(<nil>)".to_owned(),
        // Go's `%s` says what it was given instead of a string.
        other => format!("%!s({}={})", go::type_name(other), plain(other)),
    };
    let patch = Value::Object(patch.clone());
    Error::Unmergeable(format!("unknown patch type: {directive} in map: {}", plain(&patch)))
}

fn no_merge_key(item: &Value, merge_key: &str) -> Error {
    let item = plain(item);
    Error::Unmergeable(format!("map: {item} does not contain declared merge key: {merge_key}"))
}

fn wrong_type(expected: &str, found: &Value) -> Error {
    let found = match found {
        // There is no type to print, and Go's `%s` says so.
        Value::Null => "%!s(<nil>)",
        found => go::type_name(found),
    };
    Error::Unmergeable(format!("expected a {expected}, but received a {found}"))
}
