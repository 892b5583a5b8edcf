//! Objects that managers apply and update.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::apply::{FieldManager, ResetFields, SameInAllVersions, Schema};
use crate::regex::Regex;

const API_VERSION: &str = "oracle.kubewright.dev/v1";

/// Every way a field can be merged.
static APPLIED: LazyLock<Value> = LazyLock::new(|| {
    let item = json!({
        "type": "object",
        "properties": {
            "k": { "type": "string" },
            "p": { "type": "string", "default": "TCP" },
            "v": { "type": "integer" },
            "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
        },
    });
    let with = |base: &Value, more: Value| {
        let mut merged = base.clone();
        merged.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        merged
    };
    let list = json!({ "type": "array", "items": item });
    json!({
        "type": "object",
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "metadata": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "spec": {
                "type": "object",
                "properties": {
                    "text": { "type": "string" },
                    "number": { "type": "integer" },
                    "map": { "type": "object", "additionalProperties": { "type": "string" } },
                    "whole": with(&item, json!({ "x-kubernetes-map-type": "atomic" })),
                    "struct": item,
                    "list": list,
                    "set": item["properties"]["set"],
                    "byKey": with(&list, json!({
                        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    })),
                    "byKeys": with(&list, json!({
                        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"],
                    })),
                },
            },
        },
    })
});

#[test]
fn owners_and_merges_are_upstream_s() {
    let step = (
        prop::sample::select(&["ann", "bob", "cat"][..]),
        prop::sample::select(&["Apply", "Apply", "Update"][..]),
        any::<bool>(),
        spec(),
    )
        .prop_map(|(manager, operation, force, spec)| {
            json!({
                "manager": manager, "operation": operation, "force": force,
                "object": { "apiVersion": API_VERSION, "kind": "Thing", "spec": spec },
            })
        });
    let schema = Schema::structural(&APPLIED);
    let versions = SameInAllVersions::new([(API_VERSION.to_owned(), schema)]);
    agree_after(
        prop::collection::vec(step, 1..6),
        |steps| {
            json!({
                "schema": *APPLIED, "group": "oracle.kubewright.dev", "version": "v1",
                "kind": "Thing", "steps": steps,
            })
        },
        |steps| play(&versions, steps),
    );
}

fn agree_after(
    steps: impl Strategy<Value = Vec<Value>>,
    args: impl Fn(&Vec<Value>) -> Value,
    ours: impl Fn(&Vec<Value>) -> Vec<Value>,
) {
    super::compare(
        "apply",
        steps,
        args,
        |steps| Ok(ours(steps).into()),
        |ours, upstream| {
            let (Ok(ours), Ok(upstream)) = (ours, upstream) else { return false };
            comparable(ours) == comparable(upstream)
        },
    );
}

/// The order of entries depends on when they were made, to the second; conflicts tell the time;
/// misfits are listed in the order of Go's map keys.
fn comparable(answers: &Value) -> Value {
    static TIME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(" at [0-9TZ:-]+").expect("a valid pattern"));
    let mut answers = answers.clone();
    for answer in answers.as_array_mut().into_iter().flatten() {
        if let Some(Value::String(text)) = answer.get_mut("err") {
            for time in TIME.find_all(&text.clone()) {
                *text = text.replace(time, "");
            }
            let mut lines: Vec<_> = text.lines().collect();
            lines.sort_unstable();
            *text = lines.join("\n");
        }
        if let Some(Value::Array(entries)) = answer.pointer_mut("/ok/metadata/managedFields") {
            entries.iter_mut().for_each(|entry| {
                entry.as_object_mut().expect("an entry is an object").shift_remove("time");
            });
            entries.sort_by_key(|entry| format!("{} {}", entry["operation"], entry["manager"]));
        }
    }
    answers
}

fn play(versions: &SameInAllVersions, steps: &[Value]) -> Vec<Value> {
    let empty = json!({ "apiVersion": API_VERSION, "kind": "Thing" });
    let manager = FieldManager {
        api_version: API_VERSION,
        kind: "Thing",
        subresource: "",
        versions,
        reset: &ResetFields::default(),
        empty: &empty,
    };
    let now = jiff::Timestamp::UNIX_EPOCH;
    let mut live: Option<Value> = None;
    let mut answers = Vec::new();
    for step in steps {
        let name = step["manager"].as_str().expect("a name");
        let object = &step["object"];
        let outcome = match step["operation"] == "Apply" {
            true => manager.apply(live.as_ref(), object, name, step["force"] == true, now),
            false => Ok(manager.update(live.as_ref(), object.clone(), name, now)),
        };
        answers.push(match outcome {
            Ok(object) => {
                live = Some(object.clone());
                json!({ "ok": object })
            }
            Err(error) => json!({ "err": error.to_string() }),
        });
    }
    answers
}

/// A value for [`APPLIED`], now and then one that does not fit.
fn spec() -> impl Strategy<Value = Value> {
    let word = || prop::sample::select(&["a", "b", "c"][..]).prop_map(Value::from).boxed();
    let number = || (0i64..3).prop_map(Value::from).boxed();
    let set = || {
        let words = prop::sample::subsequence(&["a", "b", "c", "d"][..], 0..=4).prop_shuffle();
        prop_oneof![8 => words.prop_map(Value::from), 1 => Just(json!(["a", "a"]))].boxed()
    };
    let protocol = || prop::sample::select(&["TCP", "UDP"][..]).prop_map(Value::from).boxed();
    let item = || some_of(vec![("k", word()), ("p", protocol()), ("v", number()), ("set", set())]);
    let keyed = || {
        (word(), item()).prop_map(|(key, mut item)| {
            item["k"] = key;
            item
        })
    };
    let list = |item: BoxedStrategy<Value>| {
        prop::collection::vec(item, 0..4).prop_map(Value::from).boxed()
    };
    let map = prop::collection::btree_map("[abc]", word(), 0..3)
        .prop_map(|map| map.into_iter().collect::<Value>());
    some_of(vec![
        ("text", word()),
        ("number", number()),
        ("map", map.boxed()),
        ("whole", item()),
        ("struct", item()),
        ("list", list(item())),
        ("set", set()),
        ("byKey", list(keyed().boxed())),
        ("byKeys", list(keyed().boxed())),
    ])
}

/// An object with some of these members, now and then null.
fn some_of(members: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, value)| {
            let value = prop_oneof![20 => value, 1 => Just(Value::Null)];
            prop::option::of(value).prop_map(move |value| value.map(|value| (name, value)))
        })
        .collect();
    members
        .prop_map(|members| {
            let present = members.into_iter().flatten();
            Value::Object(present.map(|(name, value)| (name.to_owned(), value)).collect())
        })
        .boxed()
}
