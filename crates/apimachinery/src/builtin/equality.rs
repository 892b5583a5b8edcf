//! Whether two values of a Go type mean the same, as upstream's semantic equality has it.
//!
//! Values are in normal form. A list or map that is empty equals one that is absent, quantities are
//! equal when their amounts are; a pointer to nothing in particular differs from no pointer.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Field, Ty, Type};
use crate::quantity::Quantity;

/// Whether two objects of a struct mean the same.
pub fn equal(ty: &Type, a: &Value, b: &Value) -> bool {
    ty.members().all(|field| equal_member(field, a.get(field.json), b.get(field.json)))
}

/// Whether the values of one member mean the same; `None` and null are nothing.
pub fn equal_member(field: &Field, a: Option<&Value>, b: Option<&Value>) -> bool {
    let is_given = |value: &&Value| !value.is_null();
    match (a.filter(is_given), b.filter(is_given)) {
        (None, None) => true,
        (Some(a), Some(b)) => equal_value(&field.ty, a, b),
        (Some(one), None) | (None, Some(one)) => !field.pointer && is_zero(&field.ty, one),
    }
}

fn equal_value(ty: &Ty, a: &Value, b: &Value) -> bool {
    match ty {
        Ty::Struct(id) => equal(id.get(), a, b),
        Ty::List(of) => match (a.as_array(), b.as_array()) {
            (Some(a), Some(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_value(of, a, b))
            }
            _ => a == b,
        },
        Ty::Map(of) => match (a.as_object(), b.as_object()) {
            (Some(a), Some(b)) => {
                let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
                keys.into_iter().all(|key| match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => equal_value(of, a, b),
                    _ => false,
                })
            }
            _ => a == b,
        },
        Ty::Quantity => match (Quantity::from_value(a), Quantity::from_value(b)) {
            (Ok(a), Ok(b)) => a == b,
            _ => a == b,
        },
        _ => a == b,
    }
}

/// What Go would leave out, were it told to.
fn is_zero(ty: &Ty, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => match ty {
            Ty::Quantity => Quantity::parse(text).is_ok_and(|quantity| quantity.is_zero()),
            _ => text.is_empty(),
        },
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => match ty {
            Ty::Struct(id) => id.get().members().all(|field| {
                members
                    .get(field.json)
                    .is_none_or(|value| !field.pointer && is_zero(&field.ty, value))
            }),
            _ => members.is_empty(),
        },
    }
}

#[cfg(test)]
mod tests;
