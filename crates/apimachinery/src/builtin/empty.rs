//! Empty lists, maps and bytes, which upstream's storage cannot tell from none.

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::{Ty, Type};

/// Makes nothing of the empty lists and maps of an object in normal form, as its way through
/// protobuf does. Where Go prints nothing as `null`, so does this.
pub fn forget_empty(ty: &Type, object: &mut Value) {
    // Nearly all objects have none, and then need not be walked by type.
    if may_have_empty(object) {
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
        match &field.ty {
            _ if is_empty && !field.pointer => *value = Value::Null,
            Ty::Bytes => {}
            ty => forget_below(ty, value),
        }
    }
}

fn forget_below(ty: &Ty, value: &mut Value) {
    match (ty, value) {
        (Ty::Struct(id), value) => forget_in(id.get(), value),
        // What stands in a list or a map is there, and so is empty.
        (Ty::Bytes, value @ Value::Null) => *value = "".into(),
        (Ty::List(of), Value::Array(items)) => {
            items.iter_mut().for_each(|item| forget_below(of, item));
        }
        (Ty::Map(of), Value::Object(entries)) => {
            entries.values_mut().for_each(|entry| forget_below(of, entry));
        }
        _ => {}
    }
}

fn may_have_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty() || items.iter().any(may_have_empty),
        Value::Object(members) => members.is_empty() || members.values().any(may_have_empty),
        _ => false,
    }
}
