//! JSON as the API server reads and writes it.
//!
//! The tree is `serde_json`'s, with keys in the order they came: unknown fields, key order and
//! the difference between `1` and `1.0` survive. What `serde_json` leaves out is here: duplicate
//! and unknown fields are reported with their path, malformed input is refused in Go's words,
//! numbers and strings are written as Go writes them.

mod decode;
mod encode;
pub mod go;
mod printable;
mod quote;
mod run;
pub mod strict;

pub use serde_json::{Map, Number, Value};

pub(crate) use decode::replace_invalid;
pub use decode::{DEPTH_MAX, DecodeError, Decoded, decode, decode_shaped};
pub use encode::{append, append_text, go_float, to_string, to_string_pretty, to_vec};
pub(crate) use printable::is_printable;
pub use quote::{go_quote, go_quote_byte};

/// Puts the keys of every object in the order of their bytes, as Go prints a map.
///
/// Custom resources are maps all the way down upstream, so this is the order they travel in.
pub fn sort_keys(value: &mut Value) {
    value.sort_all_objects();
}

/// How many levels of arrays and objects a value has.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
