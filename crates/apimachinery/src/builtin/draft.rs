//! A struct being read: its values come in any order and are printed in Go's.
//!
//! What Go prints depends on more than the values: a zero is left out when the field says
//! `omitempty`, and stands there when it does not; a struct always stands there; a nil list is
//! `null`. In a draft, JSON's `null` is Go's nil.

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
            let mut value = value.unwrap_or_else(|| zero(field));
            if is_omitted(field, &value) {
                continue;
            }
            if let (Ty::Map(_), Value::Object(entries)) = (&field.ty, &mut value) {
                // Go prints maps in the order of their keys.
                entries.sort_keys();
            }
            object.insert(field.json.to_owned(), value);
        }
        Value::Object(object)
    }
}

fn zero(field: &Field) -> Value {
    if field.pointer { Value::Null } else { zero_of(&field.ty) }
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

fn is_omitted(field: &Field, value: &Value) -> bool {
    if field.omitzero && *value == zero(field) {
        return true;
    }
    field.omitempty
        && match value {
            Value::Null => {
                field.pointer || matches!(field.ty, Ty::Bytes | Ty::List(_) | Ty::Map(_))
            }
            _ if field.pointer => false,
            Value::Bool(set) => field.ty == Ty::Bool && !set,
            Value::Number(number) => field.ty != Ty::IntOrString && number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty() && matches!(field.ty, Ty::String | Ty::Bytes),
            Value::Array(items) => items.is_empty() && matches!(field.ty, Ty::List(_)),
            Value::Object(entries) => entries.is_empty() && matches!(field.ty, Ty::Map(_)),
        }
}
