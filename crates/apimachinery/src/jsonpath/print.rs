//! How values become text.

use std::borrow::Cow;

use serde_json::{Number, Value};

use crate::json;

/// Values side by side: objects and lists as JSON, the others as [`plain`] text.
pub fn print(values: &[Cow<'_, Value>]) -> String {
    let texts: Vec<String> = values
        .iter()
        .map(|value| match value.as_ref() {
            Value::Null => "null".to_owned(),
            value @ (Value::Array(_) | Value::Object(_)) => {
                let mut value = value.clone();
                json::sort_keys(&mut value);
                json::to_string(&value)
            }
            scalar => plain(scalar),
        })
        .collect();
    texts.join(" ")
}

/// A value as Go's `%v` prints it: `map[a:1 b:[x y]]`.
pub fn plain(value: &Value) -> String {
    let mut text = String::new();
    write_plain(value, &mut text);
    text
}

fn write_plain(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&plain_number(number)),
        Value::String(value) => text.push_str(value),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                write_plain(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            text.push_str("map[");
            for (index, (key, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(key);
                text.push(':');
                write_plain(value, text);
            }
            text.push(']');
        }
    }
}

fn plain_number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        // Whole numbers beyond 64 bits with sign are floats to upstream.
        (None, Some(float)) => json::go_float(float),
        _ => number.to_string(),
    }
}
