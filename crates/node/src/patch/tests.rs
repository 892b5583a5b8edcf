use serde_json::json;

use super::*;

fn status(value: Value) -> PodStatus {
    serde_json::from_value(value).expect("a status")
}

fn running(ready: bool) -> Value {
    json!({
        "name": "a", "image": "i", "imageID": "", "restartCount": 0, "ready": ready,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    })
}

/// What is sent to put right what others have made of a status.
fn check(altered: Value, expected: Value) {
    let ours = status(json!({
        "phase": "Running", "podIP": "10.0.0.1",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [running(true)],
    }));
    let mut reported = ours.clone();
    let mut theirs = json!(ours);
    for (key, value) in altered.as_object().into_iter().flatten() {
        theirs[key] = value.clone();
    }
    take_altered(&mut reported, Some(&status(theirs)));
    let pod = Pod::default();
    assert_eq!(super::status(&pod, &reported, &ours)["status"], expected);
}

#[test]
fn what_others_have_altered_is_put_right() {
    check(json!({}), json!({}));
    check(json!({"phase": "Pending"}), json!({"phase": "Running"}));
    check(json!({"podIP": "10.9.9.9"}), json!({"podIP": "10.0.0.1"}));
    check(
        json!({"conditions": [{"type": "Ready", "status": "False"}]}),
        json!({"conditions": [
            {"type": "Ready", "status": "True", "reason": null, "message": null},
        ]}),
    );
    let right = json!({"containerStatuses": [running(true)]});
    check(json!({"containerStatuses": [running(false)]}), right.clone());
    check(json!({"containerStatuses": []}), right);
}

#[test]
fn what_is_only_told_in_other_words_stays() {
    let mut later = running(true);
    later["state"]["running"]["startedAt"] = json!("2026-01-01T00:00:01Z");
    check(json!({"containerStatuses": [later]}), json!({}));
    check(json!({"qosClass": "BestEffort"}), json!({}));
}

#[test]
fn a_condition_that_is_there_no_more_is_taken_away() {
    let condition = |type_: &str| json!({"type": type_, "status": "True"});
    let old = status(json!({"conditions": [condition("Ready"), condition("PodResizePending")]}));
    let new = status(json!({"conditions": [condition("Ready")]}));
    let patch = super::status(&Pod::default(), &old, &new);
    assert_eq!(
        patch["status"]["conditions"],
        json!([
            {"type": "Ready", "status": "True", "reason": null, "message": null},
            {"$patch": "delete", "type": "PodResizePending"},
        ])
    );
}
