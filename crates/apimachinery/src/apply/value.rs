//! Order, equality and text of the values inside path elements, by upstream's rules.
//!
//! Upstream's field sets compare `1` and `1.0` as equal and order values of different kinds:
//! numbers, strings, booleans, lists, maps, null. `serde_json`'s own equality does neither.

use std::cmp::Ordering;
use std::fmt::Write;

use serde_json::{Map, Number, Value};

use crate::json;

/// Whether two values are the same to an applier: numbers by value, maps in any order.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => false,
    }
}

/// A total order over all values.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let by_item = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            by_item.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => compare_maps(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// The value as it stands in a path: strings quoted, everything else bare.
pub(super) fn write_path_text(out: &mut impl Write, value: &Value) -> std::fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(bool) => write!(out, "{bool}"),
        Value::Number(number) => out.write_str(&json::go::number(number)),
        Value::String(string) => out.write_str(&json::go_quote(string)),
        Value::Array(items) => {
            out.write_char('[')?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.write_char(',')?;
                }
                write_path_text(out, item)?;
            }
            out.write_char(']')
        }
        Value::Object(map) => {
            for (key, value) in map {
                write!(out, "{key}=")?;
                write_path_text(out, value)?;
            }
            Ok(())
        }
    }
}

/// The value as JSON inside the name of a path element. Upstream's writer escapes what HTML
/// would choke on, and sorts the keys of maps.
pub(super) fn write_element_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&element_number(number)),
        Value::String(string) => write_json_string(out, string, Escape::Html),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_element_json(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json_string(out, key, Escape::Html);
                out.push(':');
                write_element_json(out, value);
            }
            out.push('}');
        }
    }
}

/// Spelled out as far as JSON does, and from there on with an exponent as `%v` has it: upstream's
/// writer does not shorten `e-07`.
fn element_number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (None, Some(float)) if float == 0.0 || (1e-6..1e21).contains(&float.abs()) => {
            json::to_string(&Value::from(float))
        }
        _ => json::go::number(number),
    }
}

/// What [`write_json_string`] escapes besides what JSON demands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    Html,
    Plain,
}

pub(super) fn write_json_string(out: &mut String, string: &str, escape: Escape) {
    out.push('"');
    for c in string.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => push_escaped(out, c),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if escape == Escape::Html => {
                push_escaped(out, c)
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn push_escaped(out: &mut String, c: char) {
    write!(out, "\\u{:04x}", u32::from(c)).expect("a string takes all text");
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let (a, b) = (a.as_f64().unwrap_or(f64::INFINITY), b.as_f64().unwrap_or(f64::INFINITY));
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
        }
    }
}

/// Maps in order of their keys; the first key that only one side has decides, unless one side has
/// run out by then.
fn compare_maps(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let mut keys: Vec<&String> =
        a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).collect();
    keys.sort_unstable();
    for (i, key) in keys.into_iter().enumerate() {
        let order = match (a.get(key), b.get(key)) {
            _ if i == a.len() => Ordering::Less,
            _ if i == b.len() => Ordering::Greater,
            (None, _) => Ordering::Greater,
            (_, None) => Ordering::Less,
            (Some(a), Some(b)) => compare(a, b),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
