use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;

const OURS: &str = "kubernetes.io/pvc-protection";

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is one")
}

/// The finalizers that are planned for an object that has these.
#[track_caller]
fn check_plan(finalizers: &[&str], deleted: bool, in_use: bool, expected: Option<&[&str]>) {
    let deletion = deleted.then_some("2026-01-01T00:00:00Z");
    let object = read(json!({ "finalizers": finalizers, "deletionTimestamp": deletion }));
    let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(plan(&object, OURS, in_use), expected);
}

#[test]
fn what_lives_is_guarded() {
    check_plan(&[], false, false, Some(&[OURS]));
    check_plan(&["a.com/x"], false, true, Some(&["a.com/x", OURS]));
    check_plan(&[OURS], false, false, None);
}

#[test]
fn what_is_deleted_is_let_go_when_it_is_free() {
    check_plan(&["a.com/x", OURS, "b.com/y"], true, false, Some(&["a.com/x", "b.com/y"]));
    check_plan(&[OURS], true, true, None);
    check_plan(&["a.com/x"], true, false, None);
}

/// Whether a pod named `web` with this metadata, node and volume uses the claim `web-data`, which
/// the pod of uid `1` controls.
#[track_caller]
fn check_use(metadata: Value, node: &str, volume: Value, expected: bool) {
    let controller = json!({
        "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "1", "controller": true,
    });
    let claim = read(json!({ "name": "web-data", "ownerReferences": [controller] }));
    let mut pod = json!({
        "metadata": { "name": "web" },
        "spec": { "containers": [], "nodeName": node, "volumes": [volume] },
    });
    for (key, value) in metadata.as_object().expect("metadata is an object") {
        pod["metadata"][key] = value.clone();
    }
    let pod: Pod = read(pod);
    assert_eq!(claims::uses(&pod, &claim), expected, "{pod:?}");
}

fn named(claim: &str) -> Value {
    json!({ "name": "data", "persistentVolumeClaim": { "claimName": claim } })
}

fn ephemeral(name: &str) -> Value {
    json!({ "name": name, "ephemeral": { "volumeClaimTemplate": { "spec": {} } } })
}

#[test]
fn a_pod_on_a_node_uses_the_claims_it_names() {
    check_use(json!({}), "node", named("web-data"), true);
    check_use(json!({}), "node", named("other"), false);
    check_use(json!({}), "node", json!({ "name": "web-data", "emptyDir": {} }), false);
}

#[test]
fn a_pod_without_a_node_uses_nothing() {
    check_use(json!({}), "", named("web-data"), false);
    check_use(json!({ "uid": "1" }), "", ephemeral("data"), false);
}

#[test]
fn a_pod_uses_the_claim_that_was_made_for_it() {
    check_use(json!({ "uid": "1" }), "node", ephemeral("data"), true);
    check_use(json!({ "uid": "1" }), "node", ephemeral("other"), false);
    check_use(json!({ "uid": "2" }), "node", ephemeral("data"), false);
}

#[test]
fn a_pod_that_is_shut_down_holds_only_what_it_names() {
    let deleted = |grace: i64| {
        json!({
            "uid": "1",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": grace,
        })
    };
    check_use(deleted(0), "node", ephemeral("data"), false);
    check_use(deleted(30), "node", ephemeral("data"), true);
    check_use(deleted(0), "node", named("web-data"), true);
}
