use super::*;
use crate::fixtures;
use crate::gvk::GroupKind;
use crate::status::Status;

fn metadata(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn check(errors: Vec<Error>, expected: &[&str]) {
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, expected);
}

fn validate_new(value: Value, scope: Scope) -> Vec<Error> {
    validate(&metadata(value), scope, Rule::Subdomain, &Path::new("metadata"))
}

#[test]
fn a_plain_object_is_valid() {
    let value = json!({
        "name": "a", "namespace": "ns", "generateName": "a-",
        "labels": {"app": "x"}, "annotations": {"Example.COM/Any": "thing <>"},
        "finalizers": ["example.com/wait", "orphan"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}],
        "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsType": "FieldsV1"}],
    });
    check(validate_new(value, Scope::Namespaced), &[]);
}

#[test]
fn names_and_namespaces_are_required_or_forbidden() {
    check(
        validate_new(json!({}), Scope::Namespaced),
        &[
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Required value",
        ],
    );
    check(
        validate_new(json!({"name": "a", "namespace": "b"}), Scope::Cluster),
        &["metadata.namespace: Forbidden: not allowed on this type"],
    );
    check(
        validate_new(json!({"name": "a", "namespace": "b.c"}), Scope::Namespaced),
        &[r#"metadata.namespace: Invalid value: "b.c": must not contain dots"#],
    );
    check(
        validate_new(json!({"name": "a", "generation": -1}), Scope::Cluster),
        &["metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
    );
}

#[test]
fn owners_are_whole_and_one_controls() {
    check(
        validate_new(
            json!({"name": "a", "ownerReferences": [{"apiVersion": "apps/", "kind": ""}]}),
            Scope::Cluster,
        ),
        &[
            r#"metadata.ownerReferences.apiVersion: Invalid value: "apps/": version must not be empty"#,
            r#"metadata.ownerReferences.kind: Invalid value: "": must not be empty"#,
            r#"metadata.ownerReferences.name: Invalid value: "": must not be empty"#,
            r#"metadata.ownerReferences.uid: Invalid value: "": must not be empty"#,
        ],
    );
    check(
        validate_new(
            json!({"name": "a", "ownerReferences": [
                {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true},
                {"kind": "B", "apiVersion": "v1", "name": "b", "uid": "2", "controller": true},
            ]}),
            Scope::Cluster,
        ),
        &[
            r#"metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"A","name":"a","uid":"1","controller":true},{"apiVersion":"v1","kind":"B","name":"b","uid":"2","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for A/a and B/b"#,
        ],
    );
    check(
        validate_new(
            json!({"name": "a", "ownerReferences": [
                {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1"},
            ]}),
            Scope::Cluster,
        ),
        &[
            r#"metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"1"}: /v1, Kind=Event is disallowed from being an owner"#,
        ],
    );
}

#[test]
fn annotations_have_a_total_size() {
    let value = json!({"name": "a", "annotations": {"a": "x".repeat(ANNOTATIONS_BYTES_MAX - 1)}});
    check(validate_new(value, Scope::Cluster), &[]);
    let value = json!({"name": "a", "annotations": {"a": "x".repeat(ANNOTATIONS_BYTES_MAX)}});
    check(
        validate_new(value, Scope::Cluster),
        &["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
}

#[test]
fn finalizers_are_qualified_and_do_not_contradict() {
    let value = json!({"name": "a", "finalizers": ["orphan", "foregroundDeletion"]});
    check(
        validate_new(value, Scope::Cluster),
        &[
            r#"metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set"#,
        ],
    );
}

#[test]
fn managed_fields_say_who_did_what() {
    let value = json!({"name": "a", "managedFields": [
        {"operation": "Delete", "fieldsType": "FieldsV2", "manager": "a\u{7}b"},
        {"operation": "Update", "manager": "x".repeat(129), "subresource": "y".repeat(257)},
    ]});
    check(
        validate_new(value, Scope::Cluster),
        &[
            r#"metadata.managedFields[0].operation: Invalid value: "Delete": must be `Apply` or `Update`"#,
            r#"metadata.managedFields[0].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`"#,
            r#"metadata.managedFields[0].manager: Invalid value: "a\ab": invalid character U+0007 (at position 1)"#,
            "metadata.managedFields[1].manager: Too long: may not be more than 128 bytes",
            "metadata.managedFields[1].subresource: Too long: may not be more than 256 bytes",
        ],
    );
}

#[test]
fn an_update_leaves_identity_alone() {
    let update = |new: Value, old: Value| {
        validate_update(&metadata(new), &metadata(old), &Path::new("metadata"))
    };
    let old = json!({"name": "a", "uid": "1", "generation": 2, "resourceVersion": "5"});
    check(update(old.clone(), old.clone()), &[]);
    check(
        update(json!({"name": "b", "generation": 1, "deletionGracePeriodSeconds": 3}), old),
        &[
            r#"metadata.resourceVersion: Invalid value: "": must be specified for an update"#,
            "metadata.generation: Invalid value: 1: must not be decremented",
            r#"metadata.name: Invalid value: "b": field is immutable"#,
            r#"metadata.uid: Invalid value: "": field is immutable"#,
            "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
        ],
    );
    let going = |finalizers: Value| {
        json!({
            "name": "a", "resourceVersion": "1", "deletionTimestamp": "2000-01-01T00:00:00Z",
            "finalizers": finalizers,
        })
    };
    check(
        update(going(json!(["c", "b", "a"])), going(json!(["a"]))),
        &[
            r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"b", "c"}"#,
        ],
    );
}

#[test]
fn upstream_refuses_the_same_metadata_in_the_same_words() {
    for case in fixtures::load("names") {
        let mut old = Map::new();
        for step in case.steps {
            let what = |key: &str| step.request.more.get(key).and_then(Value::as_str).unwrap_or("");
            let answer = step.answer.body.unwrap();
            let body = step.request.body.unwrap_or_default();
            let mut new = body.get("metadata").map(|m| metadata(m.clone())).unwrap_or_default();
            let path = Path::new("metadata");
            let errors = if step.request.more.contains_key("update") {
                // What the server fills in before it looks; it takes no managed fields from
                // anyone who does not write them well.
                new.remove("managedFields");
                for (key, value) in &old {
                    if !["finalizers", "labels"].contains(&key.as_str()) {
                        new.entry(key.clone()).or_insert(value.clone());
                    }
                }
                validate_update(&new, &old, &path)
            } else if let Some(rule) = rule(what("rule")) {
                let scope = match what("scope") {
                    "namespaced" => Scope::Namespaced,
                    _ => Scope::Cluster,
                };
                if scope == Scope::Namespaced {
                    new.insert("namespace".to_owned(), "a".into());
                }
                if what("kind") == "Namespace" {
                    // The server gives each a label with its name.
                    let label = json!({"kubernetes.io/metadata.name": new["name"]});
                    new.insert("labels".to_owned(), label);
                }
                let mut errors = validate(&new, scope, rule, &path);
                errors.extend(validate_builtin_finalizers(&new, &path));
                errors
            } else {
                old = metadata(answer["metadata"].clone());
                continue;
            };
            let label = format!("{}: {}", case.name, Value::Object(new.clone()));
            if errors.is_empty() {
                assert_eq!(step.answer.status, 201, "{label}");
                continue;
            }
            let kind = GroupKind::new(what("group"), what("kind"));
            let status = Status::invalid(&kind, text(&new, "name"), &errors);
            assert_eq!(answer["message"], status.message.as_str(), "{label}");
            if step.request.more.contains_key("update") {
                // Upstream validates a config map that takes the place of another several times
                // over, and names each cause as often.
                continue;
            }
            assert_eq!(serde_json::to_value(status).unwrap(), answer, "{label}");
        }
    }
}

fn rule(name: &str) -> Option<Rule> {
    match name {
        "subdomain" => Some(Rule::Subdomain),
        "label" => Some(Rule::Label),
        "path-segment" => Some(Rule::PathSegment),
        _ => None,
    }
}
