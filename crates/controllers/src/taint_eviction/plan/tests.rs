use serde_json::{Value, json};

use super::*;

/// The taints of a node, the tolerations of a pod, and how many seconds it may stay.
#[track_caller]
fn check(taints: Value, tolerations: Value, expected: Option<i64>) {
    let node: Node =
        serde_json::from_value(json!({ "spec": { "taints": taints } })).expect("a node");
    let spec = json!({ "containers": [], "tolerations": tolerations });
    let pod: Pod = serde_json::from_value(json!({ "spec": spec })).expect("a pod");
    let expected = expected.map_or(Stay::Forever, |it| Stay::For(SignedDuration::from_secs(it)));
    assert_eq!(stay(&pod, &node), expected);
}

#[test]
fn a_pod_stays_as_long_as_it_bears_every_taint() {
    let taint = |key: &str| json!({ "key": key, "value": "v", "effect": "NoExecute" });
    let bears = |key: &str, seconds: Option<i64>| json!({ "key": key, "operator": "Exists", "tolerationSeconds": seconds });
    check(json!([]), json!([]), None);
    check(json!([taint("a")]), json!([]), Some(0));
    check(json!([taint("a")]), json!([bears("a", None)]), None);
    check(json!([taint("a")]), json!([bears("a", Some(300))]), Some(300));
    check(json!([taint("a")]), json!([bears("a", Some(-1))]), Some(0));
    let both = json!([bears("a", Some(300)), bears("b", Some(30))]);
    check(json!([taint("a"), taint("b")]), both.clone(), Some(30));
    check(json!([taint("a"), taint("b"), taint("c")]), both, Some(0));
    check(json!([{ "key": "a", "effect": "NoSchedule" }]), json!([]), None);
}

#[test]
fn a_toleration_is_of_a_key_a_value_and_an_effect() {
    let taint = json!([{ "key": "a", "value": "v", "effect": "NoExecute" }]);
    check(taint.clone(), json!([{ "operator": "Exists" }]), None);
    check(taint.clone(), json!([{ "key": "a", "value": "v" }]), None);
    check(taint.clone(), json!([{ "key": "a", "value": "w" }]), Some(0));
    check(
        taint.clone(),
        json!([{ "key": "a", "operator": "Exists", "effect": "NoExecute" }]),
        None,
    );
    check(taint, json!([{ "key": "a", "operator": "Exists", "effect": "NoSchedule" }]), Some(0));
}

#[test]
fn status_says_why_once() {
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let mut pod = Pod { status: status(&Pod::default(), now), ..Pod::default() };
    let condition = json!([{
        "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    assert_eq!(json!(pod.status)["conditions"], condition);
    assert_eq!(status(&pod, now), None);
    pod.status.as_mut().expect("a status").conditions.as_mut().expect("some")[0].status =
        "False".into();
    assert!(status(&pod, now).is_some());
}
