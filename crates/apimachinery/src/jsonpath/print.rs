//! How values become text.

use std::borrow::Cow;

use serde_json::Value;

use crate::json::{self, go};

/// Values side by side: objects and lists as JSON, the others as Go's `%v` has them.
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
            scalar => go::plain(scalar),
        })
        .collect();
    texts.join(" ")
}
