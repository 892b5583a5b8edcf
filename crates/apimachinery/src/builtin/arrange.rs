//! The order in which fields are printed: that of Go's structs.

use serde_json::{Map, Value};

use super::{Ty, Type};

/// Brings the fields of an object into the order of its type. What was filled in after it was read
/// stands last, where Go would print it among the others.
pub fn arrange(ty: &Type, object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    let place = |name: &String| ty.position(name).unwrap_or(usize::MAX);
    if !members.keys().is_sorted_by_key(place) {
        let mut fields: Vec<(String, Value)> = std::mem::take(members).into_iter().collect();
        fields.sort_by_key(|(name, _)| place(name));
        *members = fields.into_iter().collect::<Map<_, _>>();
    }
    for (name, value) in members {
        if let Some(field) = ty.field(name) {
            arrange_below(&field.ty, value);
        }
    }
}

fn arrange_below(ty: &Ty, value: &mut Value) {
    match (ty, value) {
        (Ty::Struct(id), value) => arrange(id.get(), value),
        (Ty::List(of), Value::Array(items)) => {
            items.iter_mut().for_each(|item| arrange_below(of, item));
        }
        (Ty::Map(of), Value::Object(entries)) => {
            entries.values_mut().for_each(|entry| arrange_below(of, entry));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::arrange;
    use crate::builtin;

    #[test]
    fn what_was_filled_in_stands_where_go_prints_it() {
        let kind = builtin::kind("apps", "v1", "Deployment").expect("it is built in");
        let mut object = json!({
            "spec": {
                "template": {"spec": {"containers": [
                    {"image": "i", "imagePullPolicy": "Always", "name": "c", "ports": []},
                ]}},
                "replicas": 1,
            },
            "kind": "Deployment",
            "metadata": {"labels": {"b": "1", "a": "2"}, "name": "x"},
        });
        arrange(kind.ty(), &mut object);
        assert_eq!(
            object.to_string(),
            concat!(
                r#"{"kind":"Deployment","metadata":{"name":"x","labels":{"b":"1","a":"2"}},"#,
                r#""spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"c","#,
                r#""image":"i","ports":[],"imagePullPolicy":"Always"}]}}}}"#,
            )
        );
    }
}
