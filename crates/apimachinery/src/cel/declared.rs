//! What a schema declares to expressions: types, and how large values can be.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::escape;
use super::types::Type;
use super::value::Data;
use crate::schema::{self, Constraints, Structural};

/// The largest request, in bytes.
pub(super) const REQUEST_BYTES_MAX: i64 = 3 * 1024 * 1024;

/// A type, and bounds of its values.
#[derive(Debug)]
pub struct Declared {
    pub type_: Type,
    /// Items of a list, entries of a map, bytes of a string. Zero for what has one size only.
    pub(super) elements_max: u64,
    /// The fewest bytes of JSON that a value takes.
    pub bytes_min: i64,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    Scalar,
    List(Arc<Declared>),
    Map(Arc<Declared>),
    Object(BTreeMap<Box<str>, Arc<Declared>>),
}

impl Declared {
    /// What a schema declares; `None` when it has nothing an expression could use. `name` becomes
    /// part of the names of its objects.
    pub fn new(schema: &Structural, is_resource: bool, name: &str) -> Option<Arc<Self>> {
        declare(schema, is_resource, name).map(Arc::new)
    }

    fn scalar(type_: Type, bytes_min: i64, elements_max: i64) -> Self {
        let elements_max = elements_max.max(0) as u64;
        Declared { type_, elements_max, bytes_min, shape: Shape::Scalar }
    }

    /// How often a value can occur in a request at most.
    pub fn cardinality_max(&self) -> u64 {
        // At least a comma stands between two values.
        (REQUEST_BYTES_MAX / (self.bytes_min + 1)) as u64
    }
}

fn declare(schema: &Structural, is_resource: bool, name: &str) -> Option<Declared> {
    let constraints = schema.constraints.as_deref();
    let max_length = constraints.and_then(|constraints| constraints.max_length);
    if schema.extensions.int_or_string {
        let length = max_length.map_or(REQUEST_BYTES_MAX - 2, characters);
        return Some(Declared::scalar(Type::Dyn, 1, length));
    }
    match schema.type_.as_ref()? {
        schema::Type::Array => {
            let items = schema.items.as_deref()?;
            let item = declare(items, items.extensions.embedded_resource, &format!("{name}.@idx"))?;
            let max = constraints
                .and_then(|constraints| constraints.max_items)
                .unwrap_or((REQUEST_BYTES_MAX - 2) / (item.bytes_min + 1));
            Some(Declared {
                type_: Type::list(item.type_.clone()),
                elements_max: max.max(0) as u64,
                bytes_min: 2,
                shape: Shape::List(Arc::new(item)),
            })
        }
        schema::Type::Object => match schema.additional_schema() {
            Some(values) if !is_resource || schema.properties.is_empty() => {
                map(schema, values, name)
            }
            _ => Some(object(schema, is_resource, name)),
        },
        schema::Type::String => Some(string(constraints, max_length)),
        schema::Type::Boolean => Some(Declared::scalar(Type::Bool, 4, 0)),
        schema::Type::Number => Some(Declared::scalar(Type::Double, 1, 0)),
        schema::Type::Integer => Some(Declared::scalar(Type::Int, 1, 0)),
        schema::Type::Other(_) => None,
    }
}

fn map(schema: &Structural, values: &Structural, name: &str) -> Option<Declared> {
    let is_resource = values.extensions.embedded_resource;
    let value = declare(values, is_resource, &format!("{name}.@elem"))?;
    let constraints = schema.constraints.as_deref();
    // Each entry has a key of two bytes, quotes, a colon and a comma.
    let max = constraints
        .and_then(|constraints| constraints.max_properties)
        .unwrap_or((REQUEST_BYTES_MAX - 2) / (value.bytes_min + 6));
    Some(Declared {
        type_: Type::map(Type::String, value.type_.clone()),
        elements_max: max.max(0) as u64,
        bytes_min: 2,
        shape: Shape::Map(Arc::new(value)),
    })
}

fn object(schema: &Structural, is_resource: bool, name: &str) -> Declared {
    let constraints = schema.constraints.as_deref();
    let mut fields: BTreeMap<Box<str>, Arc<Declared>> = BTreeMap::new();
    let mut bytes_min = 2;
    for (property, property_schema) in Data::properties(schema, is_resource) {
        let escaped = escape::escape(property);
        let field_name = format!("{name}.{}", escaped.as_deref().unwrap_or(property));
        let is_embedded = property_schema.extensions.embedded_resource;
        let Some(field) = declare(property_schema, is_embedded, &field_name) else { continue };
        let is_required = constraints
            .is_some_and(|constraints| constraints.required.iter().any(|name| **name == *property));
        if is_required && property_schema.default.is_none() {
            bytes_min += property.len() as i64 + field.bytes_min + 4;
        }
        if let Some(escaped) = escaped {
            fields.insert(Box::from(&*escaped), Arc::new(field));
        }
    }
    let types = fields.iter().map(|(name, field)| (name.clone(), field.type_.clone())).collect();
    Declared {
        type_: Type::object(name, types),
        elements_max: 0,
        bytes_min,
        shape: Shape::Object(fields),
    }
}

fn string(constraints: Option<&Constraints>, max_length: Option<i64>) -> Declared {
    let format = constraints.and_then(|constraints| constraints.format.as_ref());
    match format.map(|format| &*format.name) {
        Some("byte") => {
            Declared::scalar(Type::Bytes, 2, max_length.unwrap_or(REQUEST_BYTES_MAX - 2))
        }
        Some("duration") => Declared::scalar(Type::Duration, 3, 32),
        Some("date") => Declared::scalar(Type::Timestamp, 12, 12),
        Some("date-time") => Declared::scalar(Type::Timestamp, 21, 32),
        _ => {
            let values = constraints.map_or(&[][..], |constraints| &constraints.enumeration);
            let longest = values.iter().filter_map(|value| value.as_str()).map(str::len).max();
            let length = match max_length {
                Some(max_length) => characters(max_length),
                None if values.is_empty() => REQUEST_BYTES_MAX - 2,
                None => longest.unwrap_or(0) as i64,
            };
            Declared::scalar(Type::String, 2, length)
        }
    }
}

/// Bytes that so many characters may take.
fn characters(length: i64) -> i64 {
    length.max(0).saturating_mul(4)
}
