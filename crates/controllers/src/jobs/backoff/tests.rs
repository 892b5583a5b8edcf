use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

/// A pod that ended at this second.
fn ended(second: i64) -> Pod {
    let terminated = json!({ "exitCode": 1, "finishedAt": at(second).to_string() });
    let container = json!({
        "name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": terminated },
    });
    serde_json::from_value(json!({ "status": { "containerStatuses": [container] } }))
        .expect("a pod")
}

/// What succeeded and failed, when it is, and how long there is to wait.
#[track_caller]
fn check(before: Backoff, succeeded: &[i64], failed: &[i64], now: i64, expected: i64) -> Backoff {
    let pods = |ends: &[i64]| ends.iter().map(|end| ended(*end)).collect::<Vec<Pod>>();
    let (succeeded, failed) = (pods(succeeded), pods(failed));
    let succeeded: Vec<&Pod> = succeeded.iter().collect();
    let backoff = before.after(&succeeded, &failed.iter().collect::<Vec<_>>());
    assert_eq!(backoff.remaining(at(now)), SignedDuration::from_secs(expected));
    backoff
}

#[test]
fn the_pause_doubles_with_each_failure() {
    let none = Backoff::default();
    check(none, &[], &[], 0, 0);
    let one = check(none, &[], &[0], 1, 9);
    let three = check(one, &[], &[20, 30], 30, 40);
    check(three, &[], &[40; 20], 40, 600);
    check(three, &[], &[], 200, 0);
}

#[test]
fn a_success_ends_it() {
    let three = check(Backoff::default(), &[], &[0, 1, 2], 2, 40);
    check(three, &[5], &[], 5, 0);
    check(three, &[5], &[4, 6], 6, 10);
}

#[test]
fn an_end_is_told_by_containers_then_readiness_then_deletion() {
    let pod = |value| serde_json::from_value::<Pod>(value).expect("a pod");
    assert_eq!(finished_at(&ended(3)), at(3));
    let unready =
        json!({ "type": "Ready", "status": "False", "lastTransitionTime": at(4).to_string() });
    assert_eq!(finished_at(&pod(json!({ "status": { "conditions": [unready] } }))), at(4));
    let metadata = json!({
        "deletionTimestamp": at(40).to_string(), "deletionGracePeriodSeconds": 30,
        "creationTimestamp": at(1).to_string(),
    });
    assert_eq!(finished_at(&pod(json!({ "metadata": metadata }))), at(10));
    let metadata = json!({ "creationTimestamp": at(1).to_string() });
    assert_eq!(finished_at(&pod(json!({ "metadata": metadata }))), at(1));
}
