//! Values as Go names and prints them, for upstream's error texts that show what came.

use serde_json::{Map, Number, Value};

use super::{go_float, go_quote};

/// What Go's JSON decoder calls a value that does not fit.
pub fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The type that a value has once upstream has decoded it: `%T`.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The value as `%v` prints it: `map[a:1 b:[x y]]`.
pub fn plain(value: &Value) -> String {
    let mut text = String::new();
    write_plain(value, &mut text);
    text
}

/// The value in Go's syntax: `%#v`.
pub fn syntax(value: &Value) -> String {
    let mut text = String::new();
    write_syntax(value, &mut text);
    text
}

/// A number as `%v` prints it. Whole numbers beyond 64 bits with sign are floats to upstream.
pub fn number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (None, Some(float)) => go_float(float),
        _ => number.to_string(),
    }
}

fn write_plain(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => text.push_str(&number(value)),
        Value::String(value) => text.push_str(value),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { " " } else { "" });
                write_plain(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push_str("map[");
            for (index, (key, value)) in sorted(members).into_iter().enumerate() {
                text.push_str(if index > 0 { " " } else { "" });
                text.push_str(key);
                text.push(':');
                write_plain(value, text);
            }
            text.push(']');
        }
    }
}

fn write_syntax(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("interface {}(nil)"),
        Value::String(value) => text.push_str(&go_quote(value)),
        Value::Array(items) => {
            text.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_syntax(item, text);
            }
            text.push('}');
        }
        Value::Object(members) => {
            text.push_str("map[string]interface {}{");
            for (index, (key, value)) in sorted(members).into_iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                text.push_str(&go_quote(key));
                text.push(':');
                write_syntax(value, text);
            }
            text.push('}');
        }
        scalar => write_plain(scalar, text),
    }
}

/// The members in the order in which Go prints a map.
fn sorted(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    members
}
