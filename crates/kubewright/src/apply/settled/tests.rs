use serde_json::{Value, json};

use super::is_settled;

/// A Deployment as the server has it, of which `shop` has applied the image of a container and a
/// label, and others the replicas; the rest are defaults.
fn live() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "7",
            "labels": {"app": "web", "team": "other"}, "finalizers": ["shop"],
            "managedFields": [
                {"manager": "shop", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"shop\"": {}}},
                    "f:spec": {"f:template": {"f:spec": {"f:containers": {
                        "k:{\"name\":\"web\"}": {
                            ".": {}, "f:name": {}, "f:image": {},
                            "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                                ".": {}, "f:containerPort": {},
                            }},
                        },
                    }}}},
                }},
                {"manager": "other", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": {
                    "f:spec": {"f:replicas": {}},
                }},
            ],
        },
        "spec": {"replicas": 3, "template": {"spec": {"restartPolicy": "Always", "containers": [
            {"name": "web", "image": "web:1", "imagePullPolicy": "IfNotPresent",
             "ports": [{"containerPort": 80, "protocol": "TCP"}]},
        ]}}},
    })
}

fn wanted() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "labels": {"app": "web"}, "finalizers": ["shop"],
        },
        "spec": {"template": {"spec": {"containers": [
            {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]},
        ]}}},
    })
}

fn check(change: impl FnOnce(&mut Value), expected: bool) {
    let mut wanted = wanted();
    change(&mut wanted);
    assert_eq!(is_settled(&wanted, &live(), "shop"), expected, "{wanted:#}");
}

#[test]
fn what_is_as_it_is_wanted_is_settled() {
    check(|_| {}, true);
}

#[test]
fn a_wanted_value_that_differs_or_is_not_there_is_not_settled() {
    check(|it| it["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2"), false);
    check(|it| it["metadata"]["labels"]["tier"] = json!("front"), false);
    check(|it| it["spec"]["paused"] = json!(false), false);
}

#[test]
fn a_field_that_was_applied_and_is_not_wanted_any_more_is_not_settled() {
    check(|it| it["metadata"]["labels"] = json!({}), false);
    check(|it| drop(it["metadata"].as_object_mut().map(|it| it.remove("finalizers"))), false);
    let ports = |it: &mut Value| {
        let container = &mut it["spec"]["template"]["spec"]["containers"][0];
        container["ports"] = json!([{"containerPort": 81}]);
    };
    check(ports, false);
}

#[test]
fn an_object_that_is_also_of_others_is_settled_by_our_part_alone() {
    check(|it| it["spec"]["replicas"] = json!(3), true);
}

#[test]
fn what_was_never_applied_or_in_another_version_is_not_settled() {
    assert!(!is_settled(&wanted(), &live(), "somebody"));
    check(|it| it["apiVersion"] = json!("apps/v2"), false);
    let mut bare = live();
    bare["metadata"]["managedFields"] = Value::Null;
    assert!(!is_settled(&wanted(), &bare, "shop"));
}
