//! JSON as the API server reads and writes it.
//!
//! The tree is `serde_json`'s, with keys in the order they came: unknown fields, key order and
//! the difference between `1` and `1.0` survive. What `serde_json` leaves out is here: duplicate
//! keys are reported with their path, numbers and strings are written as Go writes them.

pub use serde_json::{Map, Number, Value};

// Both are placeholders until the codec below them is complete.
/// The value as Go's `encoding/json` writes it.
pub fn to_string(value: &Value) -> String {
    value.to_string()
}

/// The string between double quotes, as Go's `%q` prints it.
pub fn go_quote(text: &str) -> String {
    format!("{text:?}")
}
