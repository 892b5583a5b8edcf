use serde_json::{Value, json};

use super::*;

/// What is seen in turn, and the namespaces in which something has changed by the last.
#[track_caller]
fn check(evaluator: Evaluator, seen: &[Seen<DynamicObject>], expected: &[&str]) {
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let mut footprints = Footprints::new(evaluator);
    let (last, first) = seen.split_last().expect("something is seen");
    for seen in first {
        footprints.see(seen, now);
    }
    let changed = footprints.see(last, now);
    assert_eq!(changed.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

fn object(uid: &str, rest: Value) -> DynamicObject {
    let mut object = rest;
    object["metadata"] = json!({ "name": "a", "namespace": "ns", "uid": uid });
    serde_json::from_value(object).expect("an object")
}

fn pod(uid: &str, phase: &str) -> DynamicObject {
    let spec = json!({ "containers": [{ "name": "a" }] });
    object(uid, json!({ "spec": spec, "status": { "phase": phase } }))
}

#[test]
fn a_pod_that_ends_is_a_reason_to_count() {
    let running = || Seen::Applied(pod("1", "Running"));
    check(Evaluator::Pods, &[running()], &[]);
    check(Evaluator::Pods, &[Seen::Applied(pod("1", "Pending")), running()], &[]);
    check(Evaluator::Pods, &[running(), Seen::Applied(pod("1", "Succeeded"))], &["ns"]);
    check(Evaluator::Pods, &[running(), Seen::Applied(pod("2", "Succeeded"))], &[]);
}

#[test]
fn a_pod_that_gets_an_end_changes_its_scope() {
    let ends = object("1", json!({ "spec": { "activeDeadlineSeconds": 1 } }));
    let lasts = object("1", json!({ "spec": {} }));
    check(Evaluator::Pods, &[Seen::Applied(lasts), Seen::Applied(ends)], &["ns"]);
}

#[test]
fn a_service_that_gives_up_its_ports_is_a_reason_to_count() {
    let service = |kind: &str| {
        let spec = json!({ "type": kind, "ports": [{ "port": 1 }] });
        Seen::Applied(object("1", json!({ "spec": spec })))
    };
    check(Evaluator::Services, &[service("NodePort"), service("ClusterIP")], &["ns"]);
    check(Evaluator::Services, &[service("ClusterIP"), service("ExternalName")], &[]);
}

#[test]
fn what_changed_unseen_is_found_in_the_next_list() {
    let listed = |phase| Seen::Listed(vec![pod("1", phase), pod("2", "Running")]);
    check(Evaluator::Pods, &[listed("Failed")], &[]);
    check(Evaluator::Pods, &[listed("Running"), listed("Failed")], &["ns"]);
    check(Evaluator::Pods, &[listed("Running"), Seen::Unreadable, listed("Running")], &[]);
    let gone = Seen::Deleted(pod("1", "Running"));
    check(Evaluator::Pods, &[listed("Running"), gone, listed("Failed")], &[]);
}
