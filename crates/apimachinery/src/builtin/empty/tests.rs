use serde_json::json;

use super::*;
use crate::builtin::kind;

#[track_caller]
fn check(group: &str, name: &str, mut object: Value, expected: Value) {
    let kind = kind(group, "v1", name).expect("it is built in");
    forget_empty(kind.ty(), &mut object);
    assert_eq!(object, expected);
}

#[test]
fn an_empty_list_is_none() {
    check("rbac.authorization.k8s.io", "Role", json!({"rules": []}), json!({"rules": null}));
    let filled = json!({"rules": [{"verbs": ["get"]}]});
    check("rbac.authorization.k8s.io", "Role", filled.clone(), filled);
}

#[test]
fn an_empty_list_is_none_at_any_depth() {
    check(
        "discovery.k8s.io",
        "EndpointSlice",
        json!({"endpoints": [{"addresses": [], "conditions": {}}], "ports": []}),
        json!({"endpoints": [{"addresses": null, "conditions": {}}], "ports": null}),
    );
}

#[test]
fn what_is_any_json_is_left_alone() {
    let revision = json!({"data": {"list": []}});
    check("apps", "ControllerRevision", revision.clone(), revision);
}

#[test]
fn bytes_in_a_map_are_there() {
    check(
        "",
        "Secret",
        json!({"data": {"a": null, "b": "YQ=="}}),
        json!({"data": {"a": "", "b": "YQ=="}}),
    );
}
