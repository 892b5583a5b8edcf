//! A struct being read: its values come in any order and are printed in Go's.
//!
//! What Go prints depends on more than the values: a zero is left out when the field says
//! `omitempty`, and stands there when it does not; a struct always stands there; a nil list is
//! `null`. In a draft, JSON's `null` is Go's nil, except for pointers: a nil one has no value.

use serde_json::{Map, Value};

use super::{Field, Ty, Type};

#[derive(Debug)]
pub(crate) struct Draft {
    ty: &'static Type,
    values: Vec<Option<Value>>,
}

impl Draft {
    pub(crate) fn new(ty: &'static Type) -> Self {
        Self { ty, values: vec![None; ty.members.len()] }
    }

    /// The value of a member, `None` until it is read.
    pub(crate) fn value(&mut self, member: usize) -> &mut Option<Value> {
        &mut self.values[member]
    }

    /// Sets the member of this name, if there is one.
    pub(crate) fn set(&mut self, json: &str, value: Value) {
        if let Some(member) = self.ty.position(json) {
            self.values[member] = Some(value);
        }
    }

    /// The object as Go prints it.
    pub(crate) fn finish(self) -> Value {
        let mut object = Map::new();
        for (field, value) in self.ty.members().zip(self.values) {
            let Some(mut value) = printed(field, value) else {
                continue;
            };
            if let (Ty::Map(_), Value::Object(entries)) = (&field.ty, &mut value) {
                // Go prints maps in the order of their keys.
                entries.sort_keys();
            }
            object.insert(field.json.to_owned(), value);
        }
        Value::Object(object)
    }
}

/// What Go prints for a field, if anything.
fn printed(field: &Field, value: Option<Value>) -> Option<Value> {
    let value = match value {
        // A pointer to something is printed, even when that prints as null.
        Some(value) if field.pointer => return Some(value),
        None if field.pointer => return (!field.omitempty).then_some(Value::Null),
        Some(value) => value,
        None => zero_of(&field.ty),
    };
    let omitted =
        field.omitempty && is_empty(field, &value) || field.omitzero && value == zero_of(&field.ty);
    (!omitted).then_some(value)
}

/// What Go prints for the zero value of a type.
pub(crate) fn zero_of(ty: &Ty) -> Value {
    match ty {
        Ty::Bool => Value::Bool(false),
        Ty::Int32 | Ty::Int64 | Ty::Float64 | Ty::IntOrString => Value::from(0),
        Ty::String => Value::from(""),
        Ty::Duration => Value::from("0s"),
        Ty::Quantity => Value::from("0"),
        Ty::Struct(id) => Draft::new(id.get()).finish(),
        Ty::SchemaOr(super::SchemaOr::Bool, _) => Value::Bool(false),
        Ty::Bytes
        | Ty::List(_)
        | Ty::Map(_)
        | Ty::Time
        | Ty::MicroTime
        | Ty::RawExtension
        | Ty::FieldsV1
        | Ty::Json
        | Ty::SchemaOr(..) => Value::Null,
    }
}

/// Whether `omitempty` leaves it out. Structs are never empty.
fn is_empty(field: &Field, value: &Value) -> bool {
    match field.ty {
        Ty::Bool => *value == Value::Bool(false),
        Ty::Int32 | Ty::Int64 | Ty::Float64 => value.as_f64() == Some(0.0),
        Ty::String | Ty::Bytes | Ty::List(_) | Ty::Map(_) => match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(entries) => entries.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        },
        _ => false,
    }
}
