use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T00:10:00Z";

fn budget(spec: Value, status: Value) -> PodDisruptionBudget {
    let mut spec = spec;
    spec["selector"] = json!({ "matchLabels": { "app": "a" } });
    let defaults = json!({
        "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
    });
    let mut all = defaults;
    for (key, value) in status.as_object().expect("a status") {
        all[key] = value.clone();
    }
    let metadata = json!({ "name": "b", "namespace": "n", "generation": 2 });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": all }))
        .expect("one")
}

fn pod(name: &str, ready: bool, owner: Option<&str>) -> Pod {
    let owners: Vec<Value> = owner
        .iter()
        .map(|uid| json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": uid, "uid": uid, "controller": true }))
        .collect();
    let metadata = json!({ "name": name, "labels": { "app": "a" }, "ownerReferences": owners });
    let ready = if ready { "True" } else { "False" };
    let status = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
    serde_json::from_value(json!({ "metadata": metadata, "status": status })).expect("a pod")
}

/// A budget, pods that are ready and others, what their controller wants, and how many pods are
/// healthy, should be, may go, and are expected.
#[track_caller]
fn check(spec: Value, ready: usize, others: usize, scale: i32, expected: (i32, i32, i32, i32)) {
    let pods: Vec<Pod> =
        (0..ready + others).map(|n| pod(&n.to_string(), n < ready, Some("r"))).collect();
    let scales = BTreeMap::from([("r".to_owned(), Scale::new("d", Some(scale)))]);
    let pods: Vec<&Pod> = pods.iter().collect();
    let now = NOW.parse().expect("a time");
    let status = plan(&budget(spec, json!({})), &pods, &scales, now).expect("counted").status;
    let found = (
        status.current_healthy,
        status.desired_healthy,
        status.disruptions_allowed,
        status.expected_pods,
    );
    let (healthy, desired, allowed, pods) = expected;
    assert_eq!(found, (Some(healthy), Some(desired), Some(allowed), Some(pods)));
}

#[test]
fn pods_may_go_as_long_as_enough_are_healthy() {
    check(json!({ "minAvailable": 2 }), 3, 1, 0, (3, 2, 1, 4));
    check(json!({ "minAvailable": 3 }), 2, 1, 0, (2, 3, 0, 3));
    check(json!({ "minAvailable": "50%" }), 3, 0, 5, (3, 3, 0, 5));
    check(json!({ "maxUnavailable": 1 }), 3, 0, 3, (3, 2, 1, 3));
    check(json!({ "maxUnavailable": "30%" }), 10, 0, 10, (10, 7, 3, 10));
    check(json!({ "maxUnavailable": 5 }), 1, 0, 3, (1, 0, 1, 3));
    check(json!({}), 1, 0, 0, (1, 0, 0, 0));
}

#[test]
fn a_condition_says_whether_any_may_go() {
    let now = NOW.parse().expect("a time");
    let pods = [pod("a", true, None)];
    let pods: Vec<&Pod> = pods.iter().collect();
    let status = |min: i32| {
        let budget = budget(json!({ "minAvailable": min }), json!({}));
        plan(&budget, &pods, &BTreeMap::new(), now).expect("counted").status
    };
    let condition = |status: &str, reason: &str| {
        json!([{
            "type": "DisruptionAllowed", "status": status, "reason": reason, "message": "",
            "observedGeneration": 2, "lastTransitionTime": NOW,
        }])
    };
    assert_eq!(json!(status(0).conditions), condition("True", "SufficientPods"));
    assert_eq!(json!(status(1).conditions), condition("False", "InsufficientPods"));
    let failed = fail_safe(&budget(json!({}), json!({ "disruptionsAllowed": 3 })), "why", now);
    assert_eq!(failed.disruptions_allowed, Some(0));
    assert_eq!(failed.conditions.expect("one")[0].reason, "SyncFailed");
}

#[test]
fn what_is_granted_is_spent_until_it_expires() {
    let now = NOW.parse().expect("a time");
    let granted = json!({ "a": "2026-01-01T00:09:00Z", "b": "2026-01-01T00:07:00Z", "gone": NOW });
    let budget = budget(json!({ "minAvailable": 0 }), json!({ "disruptedPods": granted }));
    let pods = [pod("a", true, None), pod("b", true, None), pod("c", true, None)];
    let pods: Vec<&Pod> = pods.iter().collect();
    let plan = plan(&budget, &pods, &BTreeMap::new(), now).expect("counted");
    assert_eq!(plan.status.current_healthy, Some(2));
    assert_eq!(json!(plan.status.disrupted_pods), json!({ "a": "2026-01-01T00:09:00Z" }));
    assert_eq!(plan.overdue, [pods[1]]);
    assert_eq!(plan.again_after, Some(SignedDuration::from_secs(60)));
}

#[test]
fn people_are_told_of_pods_that_nobody_replaces() {
    let now = NOW.parse().expect("a time");
    let pods = [pod("a", true, None)];
    let pods: Vec<&Pod> = pods.iter().collect();
    let check = |spec: Value, expected| {
        let plan = plan(&budget(spec, json!({})), &pods, &BTreeMap::new(), now).expect("counted");
        assert_eq!(plan.has_unmanaged, expected);
    };
    check(json!({ "maxUnavailable": 1 }), true);
    check(json!({ "minAvailable": 1 }), false);
    let note = unmanaged(&budget(json!({}), json!({})));
    assert!(note.contains(
        "(selector: &LabelSelector{MatchLabels:map[string]string{app: a,},\
         MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged."
    ));
}

#[test]
fn a_percentage_that_is_none_is_an_error() {
    let now = NOW.parse().expect("a time");
    let budget = budget(json!({ "maxUnavailable": "many" }), json!({}));
    assert!(plan(&budget, &[], &BTreeMap::new(), now).is_err());
}
