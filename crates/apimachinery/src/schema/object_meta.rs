//! The `metadata` of an object, brought into the form it has after Go has read and written it.
//!
//! Custom resources are trees of any shape, but their metadata is not: upstream reads it into the
//! type it has everywhere, which drops unknown fields, drops what is empty, and fails on values of
//! a wrong type.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::coerce::Malformed;
use crate::builtin::{self, DecodeError, Type};
use crate::json::strict::Violation;
use crate::json::{self, go};

/// Metadata in its normal form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Normalized {
    pub metadata: Map<String, Value>,
    /// Fields that were dropped because nobody knows them, relative to the metadata.
    pub unknown: Vec<String>,
}

/// Brings metadata into its normal form. Fields of a wrong type are dropped or are an error, which
/// reads as Go's decoder words it.
pub fn normalize(metadata: &Value, malformed: Malformed) -> Result<Normalized, String> {
    let mut written = metadata.clone();
    // Upstream writes the tree out before it reads it into the type. That puts the keys in order,
    // which decides the first error, and makes `1.0` an integer.
    json::sort_keys(&mut written);
    shorten_numbers(&mut written);
    match read(written) {
        Ok(normal) => Ok(normal),
        Err(error) if malformed == Malformed::Refuse => Err(error.to_string()),
        Err(_) => field_by_field(metadata),
    }
}

/// Takes every field that can be read on its own.
fn field_by_field(metadata: &Value) -> Result<Normalized, String> {
    let Value::Object(map) = metadata else {
        let found = go::type_name(metadata);
        return Err(format!("invalid metadata: expected object, got {found}"));
    };
    let mut all = Normalized::default();
    for (name, value) in map {
        let single = Value::Object([(name.clone(), value.clone())].into_iter().collect());
        if let Ok(one) = normalize(&single, Malformed::Refuse) {
            all.metadata.extend(one.metadata);
            all.unknown.extend(one.unknown);
        }
    }
    Ok(all)
}

fn read(metadata: Value) -> Result<Normalized, DecodeError> {
    static OBJECT_META: LazyLock<&Type> = LazyLock::new(|| {
        builtin::type_named("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta")
            .expect("every kind has metadata")
    });
    let decoded = builtin::decode_as(*OBJECT_META, metadata)?;
    let unknown = decoded.violations.into_iter().filter_map(|violation| match violation {
        Violation::UnknownField(path) => Some(path),
        _ => None,
    });
    let unknown = unknown.collect();
    match decoded.value {
        Value::Object(metadata) => Ok(Normalized { metadata, unknown }),
        _ => unreachable!("a struct is written as an object"),
    }
}

/// Floats whose text is that of an integer become one.
fn shorten_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Ok(integer) = json::to_string(value).parse::<i64>() {
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten_numbers),
        Value::Object(members) => members.values_mut().for_each(shorten_numbers),
        _ => {}
    }
}
