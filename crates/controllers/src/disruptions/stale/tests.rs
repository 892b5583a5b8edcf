use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(metadata: Value, phase: &str, reason: &str, expected: Option<i64>) {
    let condition = json!({
        "type": KIND, "status": "True", "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({ "phase": phase, "conditions": [condition] });
    let pod =
        serde_json::from_value(json!({ "metadata": metadata, "status": status })).expect("one");
    let now = "2026-01-01T00:01:30Z".parse().expect("a time");
    assert_eq!(left(&pod, now), expected.map(SignedDuration::from_secs));
}

#[test]
fn what_is_said_of_a_pod_expires_unless_it_comes_true() {
    check(json!({}), "Running", "EvictionByEvictionAPI", Some(30));
    check(json!({}), "Failed", "EvictionByEvictionAPI", None);
    check(json!({}), "Running", "TerminationByKubelet", None);
    check(json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }), "Running", "X", None);
}
