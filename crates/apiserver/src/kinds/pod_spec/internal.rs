//! Pod specs as upstream's server has them in memory, which it shows when it refuses an update.
//!
//! Its own types are those of no version: fields have other names, other places and another order,
//! and nothing is left out. The table beside this file has a line for each of them, with the name,
//! the field of `v1` and the shape of each member.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kubewright_apimachinery::json;
use serde_json::{Map, Value};

use super::unified_diff;

static TYPES: LazyLock<BTreeMap<&str, Vec<Member>>> = LazyLock::new(|| {
    let lines = include_str!("internal.txt").lines();
    let types = lines.filter_map(|line| line.split_once(": "));
    types.map(|(name, members)| (name, members.split(' ').map(Member::parse).collect())).collect()
});

/// The difference between two values of one of upstream's types, given in the form of `v1`.
pub(in crate::kinds) fn diff(type_name: &str, old: &Value, new: &Value) -> String {
    let text = |value: &Value| {
        // Upstream indents by one space only.
        let pretty = json::to_string_pretty(&show(type_name, value));
        let lines = pretty.lines().map(|line| {
            let content = line.trim_start_matches(' ');
            format!("{}{content}", " ".repeat((line.len() - content.len()) / INDENT))
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    unified_diff::unified_diff(&text(old), &text(new))
}

/// A value of one of upstream's types as upstream prints it, given in the form of `v1`.
pub(in crate::kinds) fn show(type_name: &str, value: &Value) -> Value {
    Value::Object(show_struct(type_name, value, value))
}

/// By how many spaces our own printer indents.
const INDENT: usize = 2;

struct Member {
    name: &'static str,
    field: &'static str,
    shape: &'static str,
}

impl Member {
    fn parse(text: &'static str) -> Self {
        let mut parts = text.split('=');
        let mut part = || parts.next().expect("a member of the table has three parts");
        Member { name: part(), field: part(), shape: part() }
    }
}

/// The spec comes along because some members of a security context are the spec's in `v1`.
fn show_struct(type_name: &str, value: &Value, spec: &Value) -> Map<String, Value> {
    let members = TYPES.get(type_name).expect("the table has every type it names");
    let mut shown = Map::new();
    for Member { name, field, shape } in members {
        let (holder, field) = match field.strip_prefix('^') {
            Some(field) => (spec, field),
            None => (value, *field),
        };
        let found = holder.get(field).filter(|found| !found.is_null());
        if *name == "~" {
            // Metadata is part of the struct itself.
            shown.extend(found.and_then(Value::as_object).cloned().unwrap_or_default());
        } else {
            shown.insert((*name).to_owned(), show_shape(shape, found, spec));
        }
    }
    shown
}

/// `*` a pointer, `[` a list, `{` a map, `s` a text, `b` a truth, `n` a number, `q` a quantity, `v`
/// a value that prints as in `v1`; anything else is the name of a struct.
fn show_shape(shape: &str, value: Option<&Value>, spec: &Value) -> Value {
    if let Some(inner) = shape.strip_prefix('*') {
        return value.map_or(Value::Null, |value| show_shape(inner, Some(value), spec));
    }
    if let Some(inner) = shape.strip_prefix('[') {
        let Some(items) = value.and_then(Value::as_array) else { return Value::Null };
        return items.iter().map(|item| show_shape(inner, Some(item), spec)).collect();
    }
    if let Some(inner) = shape.strip_prefix('{') {
        let Some(entries) = value.and_then(Value::as_object) else { return Value::Null };
        let entries = entries.iter();
        let mut shown: Map<String, Value> = entries
            .map(|(key, value)| (key.clone(), show_shape(inner, Some(value), spec)))
            .collect();
        shown.sort_keys();
        return Value::Object(shown);
    }
    match (shape, value) {
        ("s" | "b" | "n" | "q" | "v", Some(value)) => value.clone(),
        ("s", None) => "".into(),
        ("b", None) => false.into(),
        ("n" | "v", None) => 0.into(),
        ("q", None) => "0".into(),
        (type_name, value) => {
            let nothing = Value::Null;
            Value::Object(show_struct(type_name, value.unwrap_or(&nothing), spec))
        }
    }
}
