//! Empty lists and maps, which upstream's storage cannot tell from none.

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::{Ty, Type};

/// Makes nothing of the empty lists and maps of an object in normal form, as its way through
/// protobuf does. Where Go prints nothing as `null`, so does this.
pub fn forget_empty(ty: &Type, object: &mut Value) {
    // Nearly all objects have none, and then need not be walked by type.
    if has_empty_list(object) {
        forget_in(ty, object);
    }
}

fn forget_in(ty: &Type, object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    for (name, value) in members {
        let Some(field) = ty.field(name) else { continue };
        let is_empty = match (&field.ty, &*value) {
            (Ty::List(_), Value::Array(items)) => items.is_empty(),
            (Ty::Map(_), Value::Object(entries)) => entries.is_empty(),
            _ => false,
        };
        match is_empty && !field.pointer {
            true => *value = Value::Null,
            false => forget_below(&field.ty, value),
        }
    }
}

fn forget_below(ty: &Ty, value: &mut Value) {
    match (ty, value) {
        (Ty::Struct(id), value) => forget_in(id.get(), value),
        (Ty::List(of), Value::Array(items)) => {
            items.iter_mut().for_each(|item| forget_below(of, item));
        }
        (Ty::Map(of), Value::Object(entries)) => {
            entries.values_mut().for_each(|entry| forget_below(of, entry));
        }
        _ => {}
    }
}

fn has_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty_list),
        Value::Object(members) => members.values().any(has_empty_list),
        _ => false,
    }
}
