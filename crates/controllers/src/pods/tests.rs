use std::cell::Cell;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

/// Noon on some day.
const NOW: &str = "2026-01-01T12:00:00Z";

/// A pod in a line: `name key=value ...`.
fn pod(line: &str) -> Arc<Pod> {
    let mut words = line.split_whitespace();
    let name = words.next().expect("a name");
    let mut pod = json!({
        "metadata": { "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "containers": [], "nodeName": "n" },
        "status": { "phase": "Running", "conditions": [] },
    });
    for (key, value) in words.map(|word| word.split_once('=').expect("key=value")) {
        match key {
            "node" => pod["spec"]["nodeName"] = value.into(),
            "phase" => pod["status"]["phase"] = value.into(),
            "ready" => {
                pod["status"]["conditions"] =
                    json!([{ "type": "Ready", "status": "True", "lastTransitionTime": at(value) }]);
            }
            "cost" => {
                pod["metadata"]["annotations"] =
                    json!({ "controller.kubernetes.io/pod-deletion-cost": value });
            }
            "created" => pod["metadata"]["creationTimestamp"] = at(value),
            "restarts" => {
                let count: i32 = value.parse().expect("a number");
                let status = json!({
                    "name": "c", "image": "", "imageID": "", "ready": true, "restartCount": count,
                });
                pod["status"]["containerStatuses"] = json!([status]);
            }
            "deleted" => pod["metadata"]["deletionTimestamp"] = at(value),
            _ => panic!("{key}?"),
        }
    }
    Arc::new(serde_json::from_value(pod).expect("a pod"))
}

fn at(time: &str) -> Value {
    format!("2026-01-01T{time}Z").into()
}

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

#[track_caller]
fn check_order(lines: &[&str], expected: &[&str]) {
    let mut pods: Vec<_> = lines.iter().map(|line| pod(line)).collect();
    let doubling = Doubling::new(pods.iter().map(Arc::as_ref));
    deletion_order(&mut pods, &doubling, now());
    let names: Vec<_> = pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
    assert_eq!(names, expected);
}

/// Pods that became ready a moment apart, of which some had restarted, once made sorting panic: a
/// set with a few hundred of them could never shrink again.
#[test]
fn the_order_of_many_does_not_depend_on_how_they_come() {
    let lines = (0..300).map(|i| {
        let uid = (i * 7919) % 300;
        format!("p{uid} node=n{} ready=11:59:{:02} restarts={}", i % 2, i % 13, i % 3)
    });
    let mut pods: Vec<_> = lines.map(|line| pod(&line)).collect();
    let doubling = Doubling::new(pods.iter().map(Arc::as_ref));
    let mut others = pods.clone();
    others.reverse();
    deletion_order(&mut pods, &doubling, now());
    deletion_order(&mut others, &doubling, now());
    assert!(pods.iter().zip(&others).all(|(one, other)| Arc::ptr_eq(one, other)));
}

#[test]
fn those_that_do_not_serve_go_first() {
    check_order(
        &["ready ready=01:00:00", "waiting node=", "running", "pending phase=Pending"],
        &["waiting", "pending", "running", "ready"],
    );
}

#[test]
fn those_that_are_cheap_or_doubled_go_before_others() {
    check_order(
        &[
            "alone ready=01:00:00 node=a",
            "twin ready=01:00:00 node=b",
            "other ready=01:00:00 node=b",
            "cheap ready=01:00:00 node=a2 cost=-1",
        ],
        &["cheap", "other", "twin", "alone"],
    );
}

#[test]
fn the_young_go_first_if_they_are_much_younger() {
    check_order(
        &["old ready=01:00:00", "young ready=11:59:00", "b ready=01:00:01"],
        &["young", "b", "old"],
    );
}

#[test]
fn those_that_restart_most_go_first() {
    check_order(&["calm restarts=1", "restless restarts=3"], &["restless", "calm"]);
}

#[track_caller]
fn check_available(line: &str, min_ready: u64, available: bool, next: Option<u64>) {
    let (pod, min_ready) = (pod(line), Duration::from_secs(min_ready));
    assert_eq!(is_available(&pod, min_ready, now()), available);
    assert_eq!(next_available([&*pod], min_ready, now()), next.map(Duration::from_secs));
}

#[test]
fn a_pod_is_available_when_it_has_been_ready_for_a_while() {
    check_available("p", 0, false, None);
    check_available("p ready=12:00:00", 0, true, None);
    check_available("p ready=11:59:50", 10, true, None);
    check_available("p ready=11:59:51", 10, false, Some(1));
}

#[test]
fn a_pod_is_active_until_it_is_over_or_deleted() {
    assert!(is_active(&pod("p phase=Pending")));
    assert!(!is_active(&pod("p phase=Failed")));
    assert!(!is_active(&pod("p deleted=12:00:00")));
    assert!(is_terminating(&pod("p deleted=12:00:00")));
    assert!(!is_terminating(&pod("p phase=Succeeded deleted=12:00:00")));
}

/// How many attempts are made for so many if the one of this number fails.
async fn check_slow_start(count: usize, fails: Option<usize>, expected: usize) {
    let attempts = Cell::new(0);
    let attempt = |number| {
        attempts.set(attempts.get() + 1);
        std::future::ready(if Some(number) == fails { Err(()) } else { Ok(()) })
    };
    let ended = slow_start(count, attempt).await;
    assert_eq!((attempts.get(), ended.is_err()), (expected, fails.is_some()));
}

#[tokio::test]
async fn attempts_begin_one_by_one_and_end_with_a_failure() {
    check_slow_start(0, None, 0).await;
    check_slow_start(10, None, 10).await;
    check_slow_start(10, Some(0), 1).await;
    check_slow_start(10, Some(1), 3).await;
    check_slow_start(10, Some(9), 10).await;
}
