//! From JSON and its schema to a value.

use std::sync::{Arc, LazyLock};

use base64::engine::general_purpose::URL_SAFE;
use base64::{DecodeError, Engine as _};
use serde_json::{Value, json};

use super::Failure;
use super::{Items, List, ListKind, Map, Outcome, Text, Timestamp, Val};
use crate::json::go;
use crate::schema::{Structural, Type, duration_nanos};

/// A piece of an object, and what its schema says about it.
#[derive(Debug, Clone, Copy)]
pub struct Data<'v> {
    pub value: &'v Value,
    pub schema: &'v Structural,
    /// The root of a resource has a kind and metadata, whatever its schema says.
    pub is_resource: bool,
}

impl<'v> Data<'v> {
    /// The declared fields of an object; of a resource, also those that are always there.
    pub(in crate::cel) fn properties(
        schema: &'v Structural,
        is_resource: bool,
    ) -> Vec<(&'v str, &'v Structural)> {
        let is_replaced = |name: &str| matches!(name, "kind" | "apiVersion" | "metadata");
        let mut properties: Vec<_> = schema.properties.iter().collect();
        if is_resource && !declares_type_and_name(schema) {
            properties.retain(|(name, _)| !is_replaced(name));
            properties.extend([("kind", &META.0), ("apiVersion", &META.0), ("metadata", &META.1)]);
        }
        properties
    }

    /// The value that an expression sees.
    pub fn to_val(self) -> Outcome<'v> {
        match self.value {
            Value::Object(map) if self.is_resource && self.schema.is_type(&Type::Object) => {
                Ok(Val::Map(Map::Object { map, schema: self.schema, is_resource: true }))
            }
            value => self::value(value, self.schema),
        }
    }
}

pub(super) fn value<'v>(value: &'v Value, schema: &'v Structural) -> Outcome<'v> {
    if value.is_null() {
        return match schema.nullable {
            true => Ok(Val::Null),
            false => Err(Failure::new("invalid data, got null for schema with nullable=false")),
        };
    }
    if schema.extensions.int_or_string {
        return match value {
            Value::String(text) => Ok(Val::borrowed(text)),
            Value::Number(number) if number.is_i64() => integer(value),
            _ => Err(Failure::new(
                "invalid data, expected XIntOrString value to be either a string or integer",
            )),
        };
    }
    match &schema.type_ {
        Some(Type::Object) => object(value, schema),
        Some(Type::Array) => array(value, schema),
        Some(Type::String) => match value {
            Value::String(text) => string(text, schema),
            other => Err(unexpected("string", other)),
        },
        Some(Type::Number) => match value.as_f64() {
            Some(number) => Ok(Val::Double(number)),
            None => Err(unexpected("float", value)),
        },
        Some(Type::Integer) => integer(value),
        Some(Type::Boolean) => match value {
            Value::Bool(value) => Ok(Val::Bool(*value)),
            other => Err(unexpected("bool", other)),
        },
        _ if schema.preserves_unknown_fields() => Ok(Val::Preserved(value)),
        _ => Err(Failure::new(format!(
            "invalid type, expected object, array, number, integer, boolean or string, or no type \
             with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got \
             {}",
            schema.type_name()
        ))),
    }
}

/// The schema of a declared field; of a resource, also of those that are always there.
pub(super) fn field_schema<'v>(
    schema: &'v Structural,
    name: &str,
    is_resource: bool,
) -> Option<&'v Structural> {
    if is_resource && !declares_type_and_name(schema) {
        match name {
            "kind" | "apiVersion" => return Some(&META.0),
            "metadata" => return Some(&META.1),
            _ => {}
        }
    }
    schema.properties.get(name)
}

/// Whether a schema says itself what every resource has. Unless it says all of it, its metadata
/// is replaced.
fn declares_type_and_name(schema: &Structural) -> bool {
    let is = |schema: &Structural, name: &str, type_: Type| {
        schema.properties.get(name).is_some_and(|property| property.is_type(&type_))
    };
    is(schema, "kind", Type::String)
        && is(schema, "apiVersion", Type::String)
        && is(schema, "metadata", Type::Object)
        && schema.properties.get("metadata").is_some_and(|metadata| {
            is(metadata, "name", Type::String) && is(metadata, "generateName", Type::String)
        })
}

/// A string, and the part of metadata that rules can see.
static META: LazyLock<(Structural, Structural)> = LazyLock::new(|| {
    let parse = |schema: Value| Structural::parse(&schema).expect("it is a schema");
    let string = json!({"type": "string"});
    let metadata =
        json!({"type": "object", "properties": {"name": string, "generateName": string}});
    (parse(string), parse(metadata))
});

fn object<'v>(value: &'v Value, schema: &'v Structural) -> Outcome<'v> {
    let Value::Object(map) = value else {
        let text = "invalid data, expected a map for the provided schema with type=object";
        return Err(Failure::new(text));
    };
    let is_resource = schema.extensions.embedded_resource;
    Ok(Val::Map(match schema.additional_schema() {
        _ if is_resource || !schema.properties.is_empty() => {
            Map::Object { map, schema, is_resource }
        }
        Some(values) => Map::Dictionary { map, values },
        None => Map::Unknown { map },
    }))
}

fn array<'v>(value: &'v Value, schema: &'v Structural) -> Outcome<'v> {
    let Value::Array(items) = value else {
        let text = "invalid data, expected an array for the provided schema with type=array";
        return Err(Failure::new(text));
    };
    let Some(item_schema) = &schema.items else {
        let text = "invalid array type, expected Items with a non-empty Schema";
        return Err(Failure::new(text));
    };
    let kind = match schema.extensions.list_type.as_deref() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(&schema.extensions.list_map_keys),
        _ => ListKind::Atomic,
    };
    Ok(Val::List(List { items: Items::Json { items, schema: item_schema }, kind }))
}

fn string<'v>(text: &'v str, schema: &'v Structural) -> Outcome<'v> {
    let format = schema.constraints.as_ref().and_then(|constraints| constraints.format.as_ref());
    Ok(match format.map(|format| &*format.name) {
        Some("duration") => Val::Duration(duration_nanos(text).ok_or_else(|| {
            Failure::new(format!("Invalid duration {text}: unable to parse {text} as duration"))
        })?),
        Some("date") => Val::Timestamp(Timestamp::parse_date(text).map_err(|error| {
            Failure::new(format!("Invalid date formatted string {text}: {error}"))
        })?),
        Some("date-time") => Val::Timestamp(Timestamp::parse_date_time(text).map_err(|error| {
            Failure::new(format!("Invalid date-time formatted string {text}: {error}"))
        })?),
        Some("byte") => Val::Bytes(bytes(text).map_err(|at| {
            Failure::new(format!(
                "Invalid byte formatted string {text}: illegal base64 data at input byte {at}"
            ))
        })?),
        _ => Val::String(Text::Borrowed(text)),
    })
}

/// Upstream takes the alphabet for URLs here, though the format is checked by the other one; the
/// error is where that is noticed.
fn bytes(text: &str) -> Result<Arc<[u8]>, usize> {
    URL_SAFE.decode(text).map(Into::into).map_err(|error| match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
        DecodeError::InvalidLength(length) => length,
        DecodeError::InvalidPadding => text.len(),
    })
}

fn integer(value: &Value) -> Outcome<'_> {
    value.as_i64().map(Val::Int).ok_or_else(|| unexpected("int", value))
}

fn unexpected(expected: &str, found: &Value) -> Failure {
    Failure::new(format!("invalid data, expected {expected}, got {}", go::type_name(found)))
}
