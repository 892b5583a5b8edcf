//! Applying anything to anything ends, and what comes of it can be applied to.

#![no_main]

use kubewright_apimachinery::apply::{FieldManager, ResetFields, SameInAllVersions, Schema};
use kubewright_apimachinery::json;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|input: (&str, &str)| {
    let decoded = (json::decode(input.0.as_bytes()), json::decode(input.1.as_bytes()));
    let (Ok(first), Ok(second)) = decoded else { return };
    let versions = SameInAllVersions::new([("example.com/v1".to_owned(), Schema::deduced())]);
    let empty = json!({"apiVersion": "example.com/v1", "kind": "Any"});
    let object = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Any", "metadata": {"name": "a"}, "spec": spec});
    let manager = FieldManager {
        api_version: "example.com/v1",
        kind: "Any",
        subresource: "",
        versions: &versions,
        reset: &ResetFields::default(),
        empty: &empty,
    };
    let now = Default::default();
    let Ok(live) = manager.apply(None, &object(first.value), "one", false, now) else { return };
    let _ = manager.apply(Some(&live), &object(second.value), "two", true, now);
});
