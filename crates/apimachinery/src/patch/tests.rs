//! Replays what upstream answered to patches.

use serde_json::{Map, Value, json};

use super::strategic::Schema;
use super::strategic::diff::{self, Precondition};
use super::{json, merge, strategic};
use crate::builtin;
use crate::fixtures::{self, Case};
use crate::status::Status;

/// Plays each patch of an area on the object as the step before left it. An answer is either what
/// `apply` makes of it, but for what `normal` takes away, or a refusal of what it made.
fn replay(
    area: &str,
    apply: impl Fn(&Value, Value) -> Result<Value, Box<Status>>,
    normal: impl Fn(Value) -> Value,
) {
    let mut patches = 0;
    for Case { name, steps, .. } in fixtures::load(area) {
        let mut live = Value::Null;
        for step in steps {
            let Some(answer) = step.answer.body else { panic!("{name}: no answer") };
            if step.request.method == "PATCH" {
                patches += 1;
                let patch = match (&step.request.body, &step.request.text) {
                    (Some(body), _) => Ok(body.clone()),
                    (_, Some(text)) => {
                        crate::json::decode(text.as_bytes()).map(|decoded| decoded.value)
                    }
                    _ => panic!("{name}: a patch without a body"),
                };
                let told = format!("{name}: {:?} {:?}", step.request.body, step.request.text);
                match patch.map(|patch| apply(&live, patch)) {
                    Err(error) => {
                        let message = answer["message"].as_str().unwrap();
                        assert!(message.ends_with(&error.to_string()), "{told}: {message}");
                    }
                    Ok(Err(status)) => {
                        assert_eq!(serde_json::to_value(status).unwrap(), answer, "{told}");
                    }
                    Ok(Ok(patched)) if step.answer.status == 200 => {
                        let [patched, answer] =
                            [patched, answer.clone()].map(|o| normal(essence(o)));
                        assert_eq!(patched, answer, "{told}");
                    }
                    Ok(Ok(_)) => {
                        let message = answer["message"].as_str().unwrap();
                        assert!(message.contains("is invalid"), "{told}: {message}");
                    }
                }
            }
            if step.answer.status < 300 && !step.request.query.contains_key("dryRun") {
                live = answer;
            }
        }
    }
    assert!(patches > 10, "{area} proves little");
}

/// What the client is told.
fn refused<E>(error: E) -> Box<Status>
where
    for<'e> Status: From<&'e E>,
{
    Box::new(Status::from(&error))
}

/// The object without what the server keeps in its metadata.
fn essence(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["managedFields", "generation", "resourceVersion", "uid", "creationTimestamp"] {
            metadata.remove(key);
        }
    }
    object
}

/// The object as types of Go write it, which leave out what is empty.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(key, value)| (key, without_empty(value)))
            .filter(|(_, value)| !(value.is_null() || *value == json!({}) || *value == json!([])))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        other => other,
    }
}

#[test]
fn json_patches_apply_as_upstream_applies_them() {
    let apply = |live: &Value, patch| {
        let patch = json::Patch::decode(patch).map_err(refused)?;
        patch.apply(live).map_err(refused)
    };
    replay("json-patch", apply, |object| object);
}

#[test]
fn merge_patches_apply_as_upstream_applies_them() {
    let apply = |live: &Value, patch| merge::apply(live.clone(), patch).map_err(refused);
    replay("merge-patch", apply, |object| object);
}

fn schema_of(object: &Value) -> Schema {
    let (group, version) = match object["apiVersion"].as_str().unwrap().split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", object["apiVersion"].as_str().unwrap()),
    };
    let kind = builtin::kind(group, version, object["kind"].as_str().unwrap()).unwrap();
    Schema::of(kind.ty())
}

#[test]
fn strategic_patches_apply_as_upstream_applies_them() {
    let apply = |live: &Value, patch| {
        strategic::apply(live.clone(), patch, schema_of(live)).map_err(refused)
    };
    replay("strategic-merge", apply, without_empty);
}

#[test]
fn a_strategic_diff_applied_gives_the_other_object() {
    for Case { name, steps, .. } in fixtures::load("strategic-merge") {
        let states: Vec<&Value> = steps
            .iter()
            .filter(|step| step.answer.status < 300)
            .filter_map(|step| step.answer.body.as_ref())
            .collect();
        for pair in states.windows(2) {
            let [before, after] = [pair[0], pair[1]].map(|state| essence(state.clone()));
            let schema = schema_of(&before);
            let patch =
                diff::two_way(before.as_object().unwrap(), after.as_object().unwrap(), schema)
                    .unwrap();
            let told = format!("{name}: {patch:?}");
            let patched = strategic::apply(before, Value::Object(patch), schema).unwrap();
            assert_eq!(without_empty(patched), without_empty(after), "{told}");
        }
    }
}

fn deployment(yaml: Value) -> Map<String, Value> {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": yaml})
        .as_object()
        .unwrap()
        .clone()
}

fn deployment_schema() -> Schema {
    Schema::of(builtin::kind("apps", "v1", "Deployment").unwrap().ty())
}

fn check_diff(original: Value, modified: Value, expected: Value) {
    let patch =
        diff::two_way(&deployment(original), &deployment(modified), deployment_schema()).unwrap();
    assert_eq!(patch.get("spec").cloned().unwrap_or_default(), expected);
}

fn containers(items: Value) -> Value {
    json!({"template": {"spec": {"containers": items}}})
}

#[test]
fn a_diff_names_changed_items_and_the_order_of_all() {
    check_diff(
        containers(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}])),
        containers(json!([{"name": "b", "image": "2"}, {"name": "c"}])),
        json!({"template": {"spec": {
            "containers": [
                {"name": "b", "image": "2"},
                {"name": "c"},
                {"name": "a", "$patch": "delete"},
            ],
            "$setElementOrder/containers": [{"name": "b"}, {"name": "c"}],
        }}}),
    );
    check_diff(
        containers(json!([{"name": "a"}, {"name": "b"}])),
        containers(json!([{"name": "b"}, {"name": "a"}])),
        json!({"template": {"spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
        }}}),
    );
    check_diff(containers(json!([{"name": "a"}])), containers(json!([{"name": "a"}])), json!(null));
}

#[test]
fn a_diff_keeps_only_the_keys_of_a_union() {
    check_diff(
        json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
        json!({"strategy": {"type": "Recreate"}}),
        json!({"strategy": {"type": "Recreate", "rollingUpdate": null, "$retainKeys": ["type"]}}),
    );
}

#[test]
fn a_diff_of_atomic_lists_replaces_them() {
    check_diff(
        json!({"template": {"spec": {"tolerations": [{"key": "a"}], "nodeSelector": {"a": "1"}}}}),
        json!({"template": {"spec": {"tolerations": [{"key": "b"}], "nodeSelector": {"b": "1"}}}}),
        json!({"template": {"spec": {
            "tolerations": [{"key": "b"}],
            "nodeSelector": {"a": null, "b": "1"},
        }}}),
    );
}

#[test]
fn three_states_keep_what_others_added() {
    let original = deployment(json!({"replicas": 1, "paused": true}));
    let modified = deployment(json!({"replicas": 2}));
    let current = deployment(json!({"replicas": 1, "paused": true, "minReadySeconds": 5}));
    let schema = deployment_schema();
    let patch = diff::three_way(&original, &modified, &current, schema, false).unwrap();
    assert_eq!(Value::Object(patch), json!({"spec": {"paused": null, "replicas": 2}}));

    let current = deployment(json!({"replicas": 7}));
    let overwritten = diff::three_way(&original, &modified, &current, schema, true).unwrap();
    assert_eq!(Value::Object(overwritten), json!({"spec": {"paused": null, "replicas": 2}}));
    assert!(matches!(
        diff::three_way(&original, &modified, &current, schema, false),
        Err(diff::ThreeWayError::Conflict(_))
    ));
}

#[test]
fn three_states_delete_items_that_are_no_longer_asked_for() {
    let original = deployment(containers(json!([{"name": "a"}, {"name": "b"}])));
    let modified = deployment(containers(json!([{"name": "a", "image": "2"}])));
    let current = deployment(containers(json!([{"name": "side"}, {"name": "a"}, {"name": "b"}])));
    let schema = deployment_schema();
    let patch = diff::three_way(&original, &modified, &current, schema, true).unwrap();
    let patched = strategic::apply(Value::Object(current), Value::Object(patch), schema).unwrap();
    assert_eq!(
        patched.pointer("/spec/template/spec/containers"),
        Some(&json!([{"name": "side"}, {"name": "a", "image": "2"}])),
    );
}

#[test]
fn a_precondition_refuses_patches_that_touch_its_key() {
    let patch = deployment(json!({"replicas": 1}));
    Precondition::MetadataKeyUnchanged("name").check(&patch).unwrap();
    let error = Precondition::KeyUnchanged("kind").check(&patch).unwrap_err();
    assert_eq!(
        error.to_string(),
        "precondition failed for: map[apiVersion:apps/v1 kind:Deployment spec:map[replicas:1]]",
    );
}

fn apply_json(document: &Value, operations: Vec<Value>) -> Result<Value, json::ApplyError> {
    json::Patch::decode(Value::Array(operations)).unwrap().apply(document)
}

#[test]
fn copies_may_add_three_mebibytes_and_no_more() {
    let document = json!({"s": "x".repeat(1022), "d": {}});
    let copy = json!({"op": "copy", "from": "/s", "path": "/d"});
    apply_json(&document, vec![copy.clone(); 3072]).unwrap();
    let error = apply_json(&document, vec![copy; 3073]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Unable to complete the copy, the accumulated size increase of copy is 3146752, exceeding \
         the limit 3145728",
    );
}

#[test]
fn what_is_wrong_with_a_json_patch_is_told_as_upstreams_library_tells_it() {
    let check = |operation: Value, expected: &str| {
        let document = json!({"a": "b", "l": [1]});
        let error = apply_json(&document, vec![operation]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        json!({"op": "remove", "path": "/nope"}),
        "error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value",
    );
    check(
        json!({"op": "add", "path": "/no/way", "value": 1}),
        "add operation does not apply: doc is missing path: \"/no/way\": missing value",
    );
    check(
        json!({"op": "replace", "path": "/no/way", "value": 1}),
        "replace operation does not apply: doc is missing path: /no/way: missing value",
    );
    check(
        json!({"op": "replace", "path": "/l/7", "value": 1}),
        "replace operation does not apply: doc is missing key: /l/7: missing value",
    );
    check(
        json!({"op": "add", "path": "/l/x", "value": 1}),
        "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: \
         parsing \"x\": invalid syntax",
    );
    check(
        json!({"op": "add", "path": "/l/7", "value": 1}),
        "error in add for path: '/l/7': Unable to access invalid index: 7: invalid index \
         referenced",
    );
    check(
        json!({"op": "move", "from": "/nope", "path": "/a"}),
        "error in move for path: 'nope': Unable to remove nonexistent key: nope: missing value",
    );
    check(
        json!({"op": "copy", "from": "/no/way", "path": "/a"}),
        "copy operation does not apply: doc is missing from path: /no/way: missing value",
    );
    check(
        json!({"op": "test", "path": "/a", "value": "c"}),
        "testing value /a failed: test failed",
    );
    check(json!({"op": "frob", "path": "/a"}), "Unexpected kind: frob");
    check(json!({"op": "add"}), "add operation failed to decode path: missing value");
    check(
        json!({"op": "move", "path": "/a"}),
        "move operation failed to decode from: operation, missing from field: missing value",
    );
}

#[test]
fn copies_of_copies_cannot_make_a_document_too_deep() {
    let mut operations = vec![];
    let mut path = "/a".to_owned();
    for _ in 0..10 {
        operations.push(json!({"op": "copy", "from": "/a", "path": format!("{path}/a")}));
        path = format!("{path}{path}");
    }
    let error = apply_json(&json!({"a": {}}), operations).unwrap_err();
    assert!(matches!(error, json::ApplyError::TooDeep { .. }), "{error}");
}

#[test]
fn a_patch_cannot_shift_a_long_list_forever() {
    let document = json!({"l": vec![0; 200_000]});
    let insert = json!({"op": "add", "path": "/l/0", "value": 0});
    let error = apply_json(&document, vec![insert; 10_000]).unwrap_err();
    assert_eq!(error, json::ApplyError::TooCostly);
}

#[test]
fn a_large_value_moves_often_but_not_down_forever() {
    let document = json!({"a": vec![0; 100_000], "c": {}});
    let swing = |there: &str, n: usize| {
        let there = json!({"op": "move", "from": "/a", "path": there});
        let back = json!({"op": "move", "from": there["path"], "path": "/a"});
        [there, back].into_iter().cycle().take(n).collect::<Vec<_>>()
    };
    // None of these moves may look at the value, or this would take very long.
    assert!(apply_json(&document, swing("/b", json::OPERATIONS_MAX)).is_ok());
    assert!(apply_json(&document, swing("/c/a", 100)).is_ok());
    let error = apply_json(&document, swing("/c/a", json::OPERATIONS_MAX)).unwrap_err();
    assert_eq!(error, json::ApplyError::TooCostly);
}

#[test]
fn unknown_members_of_operations_are_reported() {
    let patch = json::Patch::decode(json!([{"op": "test", "path": "", "valeu": 1}])).unwrap();
    assert_eq!(patch.unknown_fields(), ["[0].valeu"]);
}

#[test]
fn long_lists_merge_in_time_proportional_to_their_length() {
    let items = |image: &str| -> Vec<Value> {
        (0..50_000).map(|n| json!({"name": format!("c{n}"), "image": image})).collect()
    };
    let live = Value::Object(deployment(containers(Value::Array(items("1")))));
    let mut reversed = items("2");
    reversed.reverse();
    let patch = Value::Object(deployment(containers(Value::Array(reversed))));
    let patched = strategic::apply(live, patch, deployment_schema()).unwrap();
    let merged = patched.pointer("/spec/template/spec/containers").unwrap().as_array().unwrap();
    assert_eq!(merged.len(), 50_000);
    assert_eq!(merged[0], json!({"name": "c49999", "image": "2"}));
}
