use serde_json::{Value, json};

use super::*;
use crate::autoscaler::metrics::Sample;

const NOW: &str = "2026-01-01T01:00:00Z";
const TENTH: Tolerance = Tolerance { down: 0.1, up: 0.1 };

/// Pods, one to a line, as `name requested used`, perhaps with a phase or `starting`; `-` is unknown.
fn pods(text: &str) -> (Vec<Pod>, Samples) {
    let (mut pods, mut samples) = (Vec::new(), Samples::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, requested, used, rest @ ..] = words.as_slice() else { panic!("{line}") };
        let is_starting = rest.contains(&"starting");
        let phase = if rest.contains(&"Pending") { "Pending" } else { "Running" };
        let started = if is_starting { "2026-01-01T00:59:30Z" } else { "2026-01-01T00:00:00Z" };
        let ready = if is_starting { "False" } else { "True" };
        let container =
            json!({ "name": "main", "resources": { "requests": { "cpu": requested } } });
        let pod = json!({
            "metadata": { "name": name },
            "spec": { "containers": [container] },
            "status": {
                "phase": phase, "startTime": started,
                "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": started }],
            },
        });
        pods.push(serde_json::from_value(pod).expect("a pod"));
        if *used != "-" {
            let value = Quantity::parse(used).expect("a quantity").milli_value();
            let (at, window) = (NOW.parse().expect("a time"), SignedDuration::from_secs(15));
            samples.insert((*name).to_owned(), Sample { value, at, window });
        }
    }
    (pods, samples)
}

/// The target, pods, how many replicas there are and should be, and what status says.
#[track_caller]
fn check(target: Target, text: &str, current: i32, expected: Result<(i32, Value), &str>) {
    let (pods, samples) = pods(text);
    let pods: Vec<&Pod> = pods.iter().collect();
    let question = Question {
        pods: &pods,
        resource: "cpu",
        container: None,
        current,
        tolerance: TENTH,
        now: NOW.parse().expect("a time"),
    };
    let found = question.answer(samples, target);
    let found = found.map(|it| (it.replicas, json!(it.value)));
    assert_eq!(found, expected.map_err(str::to_owned));
}

fn says(percent: i32, average: &str) -> Value {
    json!({ "averageUtilization": percent, "averageValue": average })
}

#[test]
fn replicas_follow_what_is_used() {
    let half = Target::Utilization(50);
    check(half, "a 1 500m\nb 1 500m", 2, Ok((2, says(50, "500m"))));
    check(half, "a 1 900m\nb 1 700m", 2, Ok((4, says(80, "800m"))));
    check(half, "a 1 100m\nb 1 200m", 2, Ok((1, says(15, "150m"))));
    check(half, "a 1 520m\nb 1 500m", 2, Ok((2, says(51, "510m"))));
    let value = Target::Value(500);
    check(value, "a 1 1\nb 1 1", 2, Ok((4, json!({ "averageValue": "1" }))));
}

#[test]
fn what_is_not_known_slows_change() {
    let half = Target::Utilization(50);
    // As if the unknown one used all that it may.
    check(half, "a 1 100m\nb 1 100m\nc 1 -", 3, Ok((3, says(10, "100m"))));
    // As if it used nothing.
    check(half, "a 1 1\nb 1 1\nc 1 -", 3, Ok((4, says(100, "1"))));
    check(half, "a 1 1\nb 1 - Pending", 2, Ok((2, says(100, "1"))));
    check(half, "a 1 1\nb 1 5 starting", 2, Ok((2, says(100, "1"))));
}

#[test]
fn there_must_be_something_to_go_by() {
    let half = Target::Utilization(50);
    let none = "no pods returned by selector while calculating replica count";
    check(half, "", 1, Err(none));
    let unready = "did not receive metrics for targeted pods (pods might be unready)";
    check(half, "a 1 - Pending", 1, Err(unready));
    let (mut pods, samples) = pods("a 1 1");
    pods[0].spec.as_mut().expect("a spec").containers[0].resources = None;
    let pods: Vec<&Pod> = pods.iter().collect();
    let question = Question {
        pods: &pods,
        resource: "cpu",
        container: None,
        current: 1,
        tolerance: TENTH,
        now: NOW.parse().expect("a time"),
    };
    let missing = "missing request for cpu in container main of Pod a".to_owned();
    assert_eq!(question.answer(samples, half), Err(missing));
}

#[test]
fn replicas_share_what_is_to_be_done() {
    let check = |used, target, replicas, expected| {
        assert_eq!(per_pod(used, target, replicas, TENTH), expected);
    };
    check(30_000, 10_000, 3, (3, 10_000));
    check(32_000, 10_000, 3, (3, 10_667));
    check(45_000, 10_000, 3, (5, 15_000));
    check(5_000, 10_000, 3, (1, 1_667));
    check(i64::MAX, 1, 3, (i32::MAX, i64::MAX));
}

#[test]
fn replicas_follow_what_all_do_together() {
    let check = |text, used, expected: Result<i32, &str>| {
        let (pods, _) = pods(text);
        let pods: Vec<&Pod> = pods.iter().collect();
        let question = Question {
            pods: &pods,
            resource: "",
            container: None,
            current: 2,
            tolerance: TENTH,
            now: NOW.parse().expect("a time"),
        };
        assert_eq!(question.by_total(used, 10_000), expected.map_err(str::to_owned));
    };
    check("a 1 -\nb 1 -", 10_500, Ok(2));
    check("a 1 -\nb 1 -", 20_000, Ok(4));
    // Those that are not ready do none of it.
    check("a 1 -\nb 1 - starting", 20_000, Ok(2));
    let none = "unable to calculate ready pods: no pods returned by selector while calculating \
                replica count";
    check("", 20_000, Err(none));
}
