//! Input made to cost more than its size. None of these tests measures time: what they guard
//! against would not end within anybody's patience.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::apply::{FieldManager, ResetFields, SameInAllVersions, Schema};

const WIDE: usize = 20_000;

/// A field manager of a kind with a keyed list, a set and room for anything.
fn with_manager<T>(run: impl FnOnce(FieldManager<'_>) -> T) -> T {
    let text = json!({"type": "string"});
    let schema = Schema::structural(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {"type": "object", "properties": {"name": text, "value": text}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "texts": {"type": "object", "additionalProperties": {"type": "array", "items": text}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    }}}));
    let versions = SameInAllVersions::new([("g/v1".to_owned(), schema)]);
    let (reset, empty) = (ResetFields::none(), json!({"apiVersion": "g/v1", "kind": "Widget"}));
    run(FieldManager {
        api_version: "g/v1",
        kind: "Widget",
        subresource: "",
        versions: &versions,
        reset: &reset,
        empty: &empty,
    })
}

fn widget(spec: Value) -> Value {
    json!({"apiVersion": "g/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "u"}, "spec": spec})
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

#[test]
fn wide_lists_are_merged_and_pruned() {
    let items = |range: std::ops::Range<usize>| {
        let items = range.map(|i| json!({"name": format!("{}", i * 7919 % WIDE), "value": "v"}));
        widget(json!({"items": items.collect::<Value>()}))
    };
    with_manager(|manager| {
        let live = manager.apply(None, &items(0..WIDE), "a", false, now()).unwrap();
        let live = manager.apply(Some(&live), &items(WIDE / 2..WIDE), "b", false, now()).unwrap();
        let live = manager.apply(Some(&live), &items(0..1), "a", false, now()).unwrap();
        assert_eq!(live["spec"]["items"].as_array().map(Vec::len), Some(WIDE / 2 + 1));
    });
}

#[test]
fn many_owners_are_read_and_merged() {
    let entry = |i: usize| {
        json!({
            "manager": format!("m{i}"), "operation": "Update", "apiVersion": "g/v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:free": {format!("f:k{i}"): {}}}},
        })
    };
    with_manager(|manager| {
        let mut live = widget(json!({"free": {"k": 1}}));
        live["metadata"]["managedFields"] = (0..WIDE).map(entry).collect();
        let mut new = live.clone();
        new["spec"]["free"]["k"] = 2.into();
        let updated = manager.update(Some(&live), new, "u", now());
        let entries = updated["metadata"]["managedFields"].as_array().unwrap();
        assert_eq!(entries.len(), 10);
    });
}

#[test]
fn a_long_key_above_many_misfits_is_not_printed_for_each() {
    let config = widget(json!({"texts": {"k".repeat(100_000): vec![1; WIDE]}}));
    let error =
        with_manager(|manager| manager.apply(None, &config, "a", false, now())).unwrap_err();
    assert!(error.to_string().len() < 2 << 20);
}

#[test]
fn a_long_key_above_many_conflicts_is_not_printed_for_each() {
    let config = |value: usize| {
        let fields: serde_json::Map<_, _> =
            (0..WIDE).map(|i| (format!("{i}"), value.into())).collect();
        widget(json!({"free": {"k".repeat(100_000): fields}}))
    };
    with_manager(|manager| {
        let live = manager.apply(None, &config(1), "a", false, now()).unwrap();
        let error = manager.apply(Some(&live), &config(2), "b", false, now()).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("Apply failed with 20000 conflicts:") && text.len() < 2 << 20);
    });
}
