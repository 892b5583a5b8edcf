//! A schema either reads or is refused, and judging anything by it ends.

#![no_main]

use kubewright_apimachinery::json;
use kubewright_apimachinery::schema::crd::{self, Definition};
use kubewright_apimachinery::schema::{self, Malformed, Structural};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|input: (&str, &str)| {
    let decoded = (json::decode(input.0.as_bytes()), json::decode(input.1.as_bytes()));
    let (Ok(first), Ok(second)) = decoded else { return };
    define(&first.value);
    let (Ok(mut schema), mut object) = (Structural::parse(&first.value), second.value) else {
        return;
    };
    schema::prune_defaults(&mut schema);
    let _ = schema::prune(&mut object, &schema);
    schema::drop_nulls(&mut object, &schema);
    let _ = schema::coerce(&mut object, &schema, Malformed::Refuse);
    schema::default(&mut object, &schema);
    let _ = schema::validate(&object, None, &schema);
    let _ = schema::validate(&object, Some(&second_thought(&object)), &schema);
});

/// The schema as that of a definition, where every keyword is looked at.
fn define(schema: &Value) {
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    crd::default(&mut definition);
    let Ok(mut definition) = Definition::parse(&definition) else { return };
    crd::prepare_create(&mut definition);
    let _ = crd::validate_create(&definition);
    let _ = crd::warnings(&definition, None);
}

/// The object without its last field, as it may have been before.
fn second_thought(object: &Value) -> Value {
    let mut old = object.clone();
    if let Some(fields) = old.as_object_mut() {
        let last = fields.keys().next_back().cloned();
        last.map(|last| fields.remove(&last));
    }
    old
}
