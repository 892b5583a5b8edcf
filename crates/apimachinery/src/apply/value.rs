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
        Value::Number(number) => out.write_str(&number_text(number)),
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

/// A number as Go's `%v` prints it: integers plainly, floats in their shortest form with an
/// exponent from a million up.
pub(super) fn number_text(number: &Number) -> String {
    if let Some(integer) = number.as_i64() {
        return integer.to_string();
    }
    let float = number.as_f64().unwrap_or(f64::INFINITY);
    let exponent = decimal_exponent(float);
    if (-4..6).contains(&exponent) { float.to_string() } else { with_exponent(float) }
}

/// The value as JSON inside the name of a path element. Upstream's writer escapes what HTML
/// would choke on, and sorts the keys of maps.
pub(super) fn write_element_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => out.push_str(&integer.to_string()),
            None => {
                let float = number.as_f64().unwrap_or(f64::INFINITY);
                let size = float.abs();
                if size != 0.0 && !(1e-6..1e21).contains(&size) {
                    out.push_str(&with_exponent(float));
                } else {
                    out.push_str(&float.to_string());
                }
            }
        },
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

/// The power of ten of the first digit.
fn decimal_exponent(float: f64) -> i32 {
    let scientific = format!("{float:e}");
    scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

/// `1e+06`: Go signs the exponent and gives it two digits.
fn with_exponent(float: f64) -> String {
    let scientific = format!("{float:e}");
    match scientific.split_once('e') {
        Some((mantissa, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        None => scientific,
    }
}
