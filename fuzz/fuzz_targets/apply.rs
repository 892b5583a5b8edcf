//! Applying anything to anything ends, with and without a schema, whoever is said to own what.

#![no_main]

use kubewright_apimachinery::apply::{FieldManager, ResetFields, SameInAllVersions, Schema};
use kubewright_apimachinery::json;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const API_VERSION: &str = "example.com/v1";

fuzz_target!(|input: (&str, &str, &str)| {
    let read = |text: &str| json::decode(text.as_bytes()).map(|decoded| decoded.value);
    let (Ok(first), Ok(second)) = (read(input.0), read(input.1)) else { return };
    let owned = read(input.2).unwrap_or_default();
    for schema in [Schema::deduced(), lists()] {
        apply(schema, &first, &second, &owned);
    }
});

fn apply(schema: Schema, first: &Value, second: &Value, owned: &Value) {
    let versions = SameInAllVersions::new([(API_VERSION.to_owned(), schema)]);
    let empty = json!({"apiVersion": API_VERSION, "kind": "Any"});
    let manager = FieldManager {
        api_version: API_VERSION,
        kind: "Any",
        subresource: "",
        versions: &versions,
        reset: &ResetFields::default(),
        empty: &empty,
    };
    let now = Default::default();
    let Ok(live) = manager.apply(None, &object(first), "one", false, now) else { return };
    let _ = manager.apply(Some(&live), &object(second), "two", true, now);
    let live = manager.update(Some(&live), with_owner(&live, owned), "three", now);
    let _ = manager.apply(Some(&live), &object(second), "one", true, now);
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": "Any", "metadata": {"name": "a"}, "spec": spec})
}

/// The object as a client may send it back, with an owner of its own making.
fn with_owner(live: &Value, owned: &Value) -> Value {
    let mut object = live.clone();
    object["metadata"]["managedFields"] = json!([{
        "manager": "one",
        "operation": "Apply",
        "apiVersion": API_VERSION,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
    }]);
    object
}

/// `spec` has short names, which are soon guessed: a map list `m`, a set `s`, an atomic list `a`
/// and an atomic map `o`, each within itself.
fn lists() -> Schema {
    let text = json!({"type": "string"});
    let inner = json!({"type": "object", "properties": {
        "k": text,
        "s": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "a": {"type": "array", "items": text, "x-kubernetes-list-type": "atomic"},
        "o": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
        "f": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let mut spec = inner.clone();
    spec["properties"]["m"] = json!({
        "type": "array",
        "items": inner,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    });
    Schema::structural(&json!({"type": "object", "properties": {"spec": spec}}))
}
