//! Objects that several managers apply and update in turn.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

use super::{Verdict, compare, object};
use crate::apply::{FieldManager, ResetFields, SameInAllVersions, Schema};

const API_VERSION: &str = "g/v1";

#[derive(Debug, Clone)]
struct Step {
    manager: &'static str,
    operation: &'static str,
    force: bool,
    object: Value,
}

#[test]
fn objects_of_every_topology_are_merged_as_on_the_server() {
    let schema = schema();
    let ours = Schema::structural(&schema);
    let steps = steps(spec(Writer::Applier), spec(Writer::Updater));
    agree(steps, Some(&schema), |steps| play(ours.clone(), steps));
}

#[test]
fn objects_without_a_schema_are_merged_as_on_the_server() {
    agree(steps(object().boxed(), object().boxed()), None, |steps| play(Schema::deduced(), steps));
}

#[test]
fn configurations_that_do_not_fit_are_refused_as_on_the_server() {
    let schema = schema();
    let ours = Schema::structural(&schema);
    let misfit =
        (field_name(), super::tree()).prop_map(|(name, value)| json!({ name: value })).boxed();
    let steps = steps(misfit, spec(Writer::Updater));
    agree(steps, Some(&schema), |steps| play(ours.clone(), steps));
}

/// Asserts that upstream ends each step as we do.
fn agree(
    steps: impl Strategy<Value = Vec<Step>>,
    schema: Option<&Value>,
    ours: impl Fn(&Vec<Step>) -> Verdict,
) {
    compare(
        "apply",
        steps,
        |steps| args(schema, steps),
        ours,
        |ours, upstream| ours.as_ref().map(orderly) == upstream.as_ref().map(orderly),
    );
}

/// The answers without what upstream leaves to chance: the order of findings is that of a Go map,
/// and the times of entries, hence their order, are those of its clock.
fn orderly(answers: &Value) -> Value {
    let mut answers = answers.clone();
    for answer in answers.as_array_mut().into_iter().flatten() {
        if let Some(error) = answer["err"].as_str() {
            let undeclared = "field not declared in schema";
            let mut lines: Vec<&str> = error.lines().collect();
            lines.sort_unstable();
            // The first of these ends the walk over its map.
            if lines.iter().any(|line| line.ends_with(undeclared)) {
                lines = vec![undeclared];
            }
            answer["err"] = lines.join("\n").into();
        }
        if let Some(entries) =
            answer.pointer_mut("/ok/metadata/managedFields").and_then(Value::as_array_mut)
        {
            let key =
                |entry: &Value| (entry["operation"].to_string(), entry["manager"].to_string());
            entries.sort_by_key(key);
            for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
                entry.shift_remove("time");
            }
        }
    }
    answers
}

fn args(schema: Option<&Value>, steps: &[Step]) -> Value {
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| {
            json!({"manager": step.manager, "operation": step.operation, "force": step.force, "object": step.object})
        })
        .collect();
    json!({"schema": schema, "group": "g", "version": "v1", "kind": "Widget", "steps": steps})
}

/// What our field manager makes of the steps, as the oracle tells it.
fn play(schema: Schema, steps: &[Step]) -> Verdict {
    let versions = SameInAllVersions::new([(API_VERSION.to_owned(), schema)]);
    let (reset, empty) =
        (ResetFields::none(), json!({"apiVersion": API_VERSION, "kind": "Widget"}));
    let field_manager = FieldManager {
        api_version: API_VERSION,
        kind: "Widget",
        subresource: "",
        versions: &versions,
        reset: &reset,
        empty: &empty,
    };
    let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(1);
    let mut live = empty.clone();
    let mut answers = Vec::new();
    for step in steps {
        let mut object = step.object.clone();
        object["apiVersion"] = API_VERSION.into();
        object["kind"] = "Widget".into();
        let outcome = match step.operation {
            "Apply" => field_manager.apply(Some(&live), &object, step.manager, step.force, now),
            _ => Ok(field_manager.update(Some(&live), object, step.manager, now)),
        };
        answers.push(match outcome {
            Ok(object) => {
                live = object;
                json!({"ok": told(&live)})
            }
            Err(error) => json!({"err": error.to_string()}),
        });
    }
    Ok(Value::Array(answers))
}

/// The object with whole floats as Go writes them.
fn told(object: &Value) -> Value {
    let mut object = object.clone();
    whole_floats(&mut object);
    object
}

fn whole_floats(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) =
                number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)
            {
                *number = Number::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_floats),
        Value::Object(map) => map.values_mut().for_each(whole_floats),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn steps(
    applied: BoxedStrategy<Value>,
    updated: BoxedStrategy<Value>,
) -> impl Strategy<Value = Vec<Step>> {
    let manager = || prop::sample::select(&["a", "b", "c"][..]);
    let metadata = || {
        prop::option::weighted(0.2, "[x-z]")
            .prop_map(|label| label.map(|label| json!({"labels": {label: "1"}})))
    };
    let apply = (manager(), prop::bool::weighted(0.4), applied, metadata()).prop_map(
        |(manager, force, spec, metadata)| Step {
            manager,
            operation: "Apply",
            force,
            object: whole(spec, metadata),
        },
    );
    let update = (manager(), updated, metadata()).prop_map(|(manager, spec, metadata)| Step {
        manager,
        operation: "Update",
        force: false,
        object: whole(spec, metadata),
    });
    prop::collection::vec(prop_oneof![3 => apply, 1 => update], 1..7)
}

fn whole(spec: Value, metadata: Option<Value>) -> Value {
    let mut object = json!({"spec": spec});
    if let Some(metadata) = metadata {
        object["metadata"] = metadata;
    }
    object
}

/// One field of each kind there is. The judge knows no `ObjectMeta`; this is the part of it that
/// the steps use.
fn schema() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let inner = json!({"type": "object", "properties": {"x": text, "y": text}});
    json!({"type": "object", "properties": {
        "apiVersion": text,
        "kind": text,
        "metadata": {"type": "object", "properties": {
            "labels": {"type": "object", "additionalProperties": text},
            "managedFields": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        }},
        "spec": {"type": "object", "properties": {
            "text": text,
            "number": number,
            "any": {"x-kubernetes-int-or-string": true},
            "struct": inner,
            "piece": {"type": "object", "properties": {"x": text, "y": text}, "x-kubernetes-map-type": "atomic"},
            "map": {"type": "object", "additionalProperties": text},
            "structs": {"type": "object", "additionalProperties": inner},
            "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
            "list": {"type": "array", "items": text},
            "items": {
                "type": "array",
                "items": {"type": "object", "properties": {
                    "name": text,
                    "value": text,
                    "inner": inner,
                    "ports": {
                        "type": "array",
                        "items": {"type": "object", "properties": {
                            "port": number,
                            "protocol": {"type": "string", "default": "TCP"},
                            "note": text,
                        }},
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                    },
                }},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
    }})
}

fn field_name() -> impl Strategy<Value = &'static str> {
    let names = [
        "text", "number", "any", "struct", "piece", "map", "structs", "set", "list", "items",
        "free",
    ];
    prop::sample::select(names.to_vec())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    Applier,
    /// May repeat items.
    Updater,
}

fn spec(writer: Writer) -> BoxedStrategy<Value> {
    let word = || {
        prop_oneof![9 => prop::sample::select(&["a", "b", "c"][..]).prop_map(Value::from), 1 => Just(Value::Null)].boxed()
    };
    let name = || prop::sample::select(&["a", "b", "c"][..]).prop_map(Value::from).boxed();
    let number = || (0i64..3).prop_map(Value::from).boxed();
    let inner = || fields(vec![("x", word()), ("y", word())]);
    let map = |value: BoxedStrategy<Value>| {
        prop::collection::btree_map("[x-z]", value, 0..3)
            .prop_map(|map| map.into_iter().collect::<Value>())
            .boxed()
    };
    let port = fields(vec![
        ("port", number()),
        ("protocol", prop::sample::select(&["TCP", "UDP"][..]).prop_map(Value::from).boxed()),
        ("note", word()),
    ]);
    let ports = list(port, writer, |port| {
        let protocol = port.get("protocol").cloned().unwrap_or_else(|| "TCP".into());
        json!([port.get("port"), protocol]).to_string()
    });
    let item =
        (name(), fields(vec![("value", word()), ("inner", nullable(inner())), ("ports", ports)]))
            .prop_map(|(name, mut item)| {
                item["name"] = name;
                item
            })
            .boxed();
    fields(vec![
        ("text", word()),
        ("number", number()),
        ("any", prop_oneof![word(), number()].boxed()),
        ("struct", nullable(inner())),
        ("piece", nullable(inner())),
        ("map", nullable(map(word()))),
        ("structs", nullable(map(nullable(inner())))),
        ("set", nullable(list(name(), writer, Value::to_string))),
        ("list", nullable(prop::collection::vec(name(), 0..3).prop_map(Value::from).boxed())),
        ("items", nullable(list(item, writer, |item| item["name"].to_string()))),
        ("free", nullable(object().boxed())),
    ])
}

fn nullable(value: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop_oneof![9 => value, 1 => Just(Value::Null)].boxed()
}

/// An object with some of these fields.
fn fields(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| {
            prop::option::weighted(0.4, value).prop_map(move |value| (name.to_owned(), value))
        })
        .collect();
    let present = |fields: Vec<(String, Option<Value>)>| {
        fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect::<Map<_, _>>()
    };
    fields.prop_map(move |fields| Value::Object(present(fields))).boxed()
}

/// A list in which, unless an updater writes it, no two items have the same key.
fn list(
    item: BoxedStrategy<Value>,
    writer: Writer,
    key: fn(&Value) -> String,
) -> BoxedStrategy<Value> {
    prop::collection::vec(item, 0..4)
        .prop_map(move |mut items| {
            if writer == Writer::Applier {
                let mut seen = std::collections::BTreeSet::new();
                items.retain(|item| seen.insert(key(item)));
            }
            Value::Array(items)
        })
        .boxed()
}
