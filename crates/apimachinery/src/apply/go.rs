//! Values as Go prints them, for error texts that contain a dump of what came.

use serde_json::Value;

use super::value::number_text;
use crate::json;

/// The type Go gives the value: `%T`.
pub(super) fn type_name(value: &Value) -> &'static str {
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

/// The value as `%v` prints it.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(string) => string.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(map) => {
            let entries =
                sorted(map).into_iter().map(|(key, value)| format!("{key}:{}", plain(value)));
            format!("map[{}]", entries.collect::<Vec<_>>().join(" "))
        }
    }
}

/// The value in Go's syntax: `%#v`.
pub(super) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(string) => json::go_quote(string),
        Value::Array(items) => {
            format!(
                "[]interface {{}}{{{}}}",
                items.iter().map(syntax).collect::<Vec<_>>().join(", ")
            )
        }
        Value::Object(map) => {
            let entries = sorted(map)
                .into_iter()
                .map(|(key, value)| format!("{}:{}", json::go_quote(key), syntax(value)));
            format!("map[string]interface {{}}{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

fn sorted(map: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}
