//! Whole structs as upstream's errors show them: with the names of Go's fields, and nothing left
//! out, since the types that validation sees have no names for JSON.

use kubewright_apimachinery::builtin::{Ty, Type};
use serde_json::{Map, Value, json};

/// The struct of this type with Go's names.
pub(super) fn of_struct(ty: &'static Type, value: &Value) -> Value {
    let fields = ty.members().map(|field| {
        let value = &value[field.json];
        let shown = match (&field.ty, value) {
            (_, Value::Null) if field.pointer => Value::Null,
            (ty, value) => of(ty, value),
        };
        (go_name(field.json), shown)
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

fn of(ty: &Ty, value: &Value) -> Value {
    match (ty, value) {
        (Ty::Struct(id), value) => of_struct(id.get(), value),
        (Ty::List(item), Value::Array(items)) => {
            items.iter().map(|value| of(item, value)).collect()
        }
        (Ty::Map(item), Value::Object(entries)) => Value::Object(
            entries.iter().map(|(key, value)| (key.clone(), of(item, value))).collect(),
        ),
        (Ty::String, Value::Null) => json!(""),
        (Ty::Bool, Value::Null) => json!(false),
        (Ty::Int32 | Ty::Int64, Value::Null) => json!(0),
        (_, value) => value.clone(),
    }
}

/// Go's name of a field, which starts with a capital and writes abbreviations in capitals.
fn go_name(json: &str) -> String {
    const ABBREVIATIONS: [(&str, &str); 3] = [("api", "API"), ("cel", "CEL"), ("uid", "UID")];
    for (small, large) in ABBREVIATIONS {
        if let Some(rest) = json.strip_prefix(small)
            && !rest.starts_with(|c: char| c.is_ascii_lowercase())
        {
            return format!("{large}{rest}");
        }
    }
    let mut letters = json.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
