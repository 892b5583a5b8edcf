use serde_json::{Value, json};

use super::*;

fn pod(metadata: Value, node: &str, status: Value) -> Pod {
    let spec = json!({ "containers": [], "nodeName": node });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": status }))
        .expect("one")
}

fn machine(ready: &str, taint: Option<&str>) -> Node {
    let taints: Vec<Value> =
        taint.iter().map(|key| json!({ "key": key, "effect": "NoExecute" })).collect();
    let conditions = json!([{ "type": "Ready", "status": ready }]);
    let node = json!({ "spec": { "taints": taints }, "status": { "conditions": conditions } });
    serde_json::from_value(node).expect("a node")
}

#[test]
fn a_pod_goes_when_nobody_else_will_see_to_it() {
    let deleted = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
    let lives = pod(json!({}), "node", json!({}));
    let ends = pod(deleted.clone(), "node", json!({}));
    let (fit, lost) = (machine("True", None), machine("Unknown", Some(OUT_OF_SERVICE)));
    assert_eq!(fate(&lives, Home::There(&fit)), Fate::Stays);
    assert_eq!(fate(&lives, Home::Gone), Fate::Orphan);
    assert_eq!(fate(&lives, Home::Unknown), Fate::Stays);
    assert_eq!(fate(&ends, Home::There(&fit)), Fate::Stays);
    assert_eq!(fate(&ends, Home::There(&lost)), Fate::Goes);
    assert_eq!(fate(&lives, Home::There(&lost)), Fate::Stays);
    let ready = machine("True", Some(OUT_OF_SERVICE));
    assert_eq!(fate(&ends, Home::There(&ready)), Fate::Stays);
    assert_eq!(fate(&pod(deleted, "", json!({})), Home::Unknown), Fate::Goes);
    assert_eq!(fate(&pod(json!({}), "", json!({})), Home::Unknown), Fate::Stays);
}

#[test]
fn a_pod_that_goes_has_failed_unless_it_was_over() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    let runs = pod(json!({}), "node", json!({ "phase": "Running" }));
    assert_eq!(json!(status(&runs, Fate::Goes, now)), json!({ "phase": "Failed" }));
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let lost = json!({ "phase": "Failed", "conditions": [condition] });
    assert_eq!(json!(status(&runs, Fate::Orphan, now)), lost);
    let over = pod(json!({}), "node", json!({ "phase": "Succeeded" }));
    assert_eq!(status(&over, Fate::Orphan, now), None);
}

#[test]
fn of_too_many_the_evicted_go_first_and_then_the_oldest() {
    let of = |name: &str, second: u8, status: Value| {
        let created = format!("2026-01-01T00:00:{second:02}Z");
        pod(json!({ "name": name, "creationTimestamp": created }), "node", status)
    };
    let pods = [
        of("new", 9, json!({ "phase": "Succeeded" })),
        of("old", 1, json!({ "phase": "Failed" })),
        of("evicted", 5, json!({ "phase": "Failed", "reason": "Evicted" })),
        of("runs", 0, json!({ "phase": "Running" })),
    ];
    let pods: Vec<&Pod> = pods.iter().collect();
    let names = |max| {
        let oldest = oldest(&pods, max);
        oldest.iter().map(|pod| text(&pod.metadata.name).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(3), Vec::<String>::new());
    assert_eq!(names(1), ["evicted", "old"]);
}
