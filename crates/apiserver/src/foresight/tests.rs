//! Objects that would be accepted, and what would be said of others.

use serde_json::json;

use super::*;

fn check(object: Value, expected: &[&str]) {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let api_version = text("apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = builtin::kind(group, version, &text("kind")).expect("it is built in");
    let foresight = of_new(kind, object.clone()).expect("objects of this kind are created");
    let errors: Vec<String> = foresight.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected, "{object}");
}

#[test]
fn a_service_is_judged_as_if_it_had_its_address() {
    let service = |spec: Value| {
        let metadata = json!({"name": "s", "namespace": "a"});
        json!({"kind": "Service", "apiVersion": "v1", "metadata": metadata, "spec": spec})
    };
    check(service(json!({"ports": [{"port": 80}]})), &[]);
    check(service(json!({"type": "NodePort", "ports": [{"port": 80}]})), &[]);
    check(service(json!({"ports": [{"port": 80}], "ipFamilyPolicy": "RequireDualStack"})), &[]);
    check(
        service(json!({"ports": [{"port": 0, "targetPort": 80}]})),
        &["spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"],
    );
}

#[test]
fn the_rules_of_a_kind_are_those_of_its_version() {
    let metadata = json!({"name": "d", "namespace": "a"});
    let spec = json!({
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "c"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    });
    check(
        json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": metadata, "spec": spec}),
        &[
            "spec.template.metadata.labels: Invalid value: {\"a\":\"c\"}: `selector` does not match \
           template `labels`",
        ],
    );
}

#[test]
fn a_name_is_made_before_it_is_looked_at() {
    let map = |name: Value| json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": name});
    check(map(json!({"generateName": "a-", "namespace": "a"})), &[]);
    check(
        map(json!({"namespace": "a"})),
        &["metadata.name: Required value: name or generateName is required"],
    );
}
