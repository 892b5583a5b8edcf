use serde_json::{Value, json};

use super::*;
use crate::jobs::terms::{FAILURES, FINALIZER, INDEX};
use crate::part::text;

const NOW: i64 = 1_800_000_000;

fn job(spec: Value, status: Value) -> Job {
    let mut spec = spec;
    spec["template"] = json!({ "spec": { "containers": [], "restartPolicy": "Never" } });
    let job = json!({ "metadata": { "name": "j" }, "spec": spec, "status": status });
    serde_json::from_value(job).expect("a job")
}

/// A pod as `name phase`, perhaps with `index=1`, `failures=2`, `ending`, `counted`, `ended=9`.
fn pod(line: &str) -> Pod {
    let mut words = line.split_whitespace();
    let (name, phase) = (words.next().expect("a name"), words.next().expect("a phase"));
    let mut metadata =
        json!({ "name": name, "uid": name, "finalizers": [FINALIZER], "annotations": {} });
    let mut status = json!({ "phase": phase });
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "index" => metadata["annotations"][INDEX] = json!(value),
            "failures" => metadata["annotations"][FAILURES] = json!(value),
            "ending" => metadata["deletionTimestamp"] = json!("2027-01-15T00:00:00Z"),
            "counted" => metadata["finalizers"] = json!([]),
            "ended" => {
                let second: i64 = value.parse().expect("a second");
                let at = Timestamp::from_second(NOW + second).expect("a time").to_string();
                let ready = json!({ "type": "Ready", "status": "False", "lastTransitionTime": at });
                status["conditions"] = json!([ready]);
            }
            "why" => status["reason"] = json!(value),
            _ => panic!("{key}?"),
        }
    }
    serde_json::from_value(json!({ "metadata": metadata, "status": status })).expect("a pod")
}

fn print(plan: &Plan<'_>) -> String {
    let names = |pods: &[&Pod]| {
        let mut names: Vec<&str> = pods.iter().map(|pod| text(&pod.metadata.name)).collect();
        names.sort_unstable();
        names.join(" ")
    };
    let mut said = match &plan.deed {
        Deed::Nothing => "nothing".to_owned(),
        Deed::End(pods) => format!("end {}", names(pods)),
        Deed::Remove(pods) => format!("remove {}", names(pods)),
        Deed::Create(pods) => {
            let indexes = pods.iter().filter_map(terms::index).map(|index| format!(" {index}"));
            format!(
                "create {}{}",
                pods.len(),
                indexes.map(|it| format!(" #{}", it.trim())).collect::<String>()
            )
        }
    };
    if let Some(verdict) = &plan.verdict {
        let end = if verdict.is_success { "success" } else { "failure" };
        said += &format!(", {end}: {}", verdict.reason);
    }
    if let Some(after) = plan.again_after {
        said += &format!(", again after {}s", after.as_secs());
    }
    said
}

/// A Job, its pods one to a line, and what to do.
#[track_caller]
fn check(spec: Value, status: Value, pods: &str, expected: &str) {
    let pods: Vec<Pod> = pods.lines().map(pod).collect();
    let pods: Vec<&Pod> = pods.iter().collect();
    let now = Timestamp::from_second(NOW).expect("a time");
    let job = job(spec, status);
    let plan = plan(&job, &pods, Backoff::default(), now);
    assert_eq!(print(&plan), expected);
}

#[test]
fn as_many_pods_run_as_there_is_work() {
    let spec = json!({ "completions": 5, "parallelism": 3 });
    check(spec.clone(), json!({}), "", "create 3");
    check(spec.clone(), json!({}), "a Running\nb Succeeded", "create 2");
    check(spec.clone(), json!({ "succeeded": 4 }), "", "create 1");
    check(spec, json!({ "succeeded": 4 }), "a Running\nb Pending", "remove b");
}

#[test]
fn without_a_number_the_first_success_is_enough() {
    let spec = json!({ "parallelism": 2 });
    check(spec.clone(), json!({}), "a Running", "create 1");
    check(spec.clone(), json!({}), "a Running\nb Succeeded", "nothing");
    check(
        spec,
        json!({}),
        "a Succeeded counted\nb Succeeded",
        "nothing, success: CompletionsReached",
    );
}

#[test]
fn all_that_was_asked_for_is_success() {
    let spec = json!({ "completions": 2, "parallelism": 2 });
    check(
        spec.clone(),
        json!({}),
        "a Succeeded\nb Succeeded",
        "nothing, success: CompletionsReached",
    );
    let uncounted = json!({ "succeeded": 1, "uncountedTerminatedPods": { "succeeded": ["a"] } });
    check(spec, uncounted, "a Succeeded", "nothing, success: CompletionsReached");
}

#[test]
fn after_a_failure_there_is_a_pause() {
    let spec = json!({ "completions": 1, "parallelism": 1, "backoffLimit": 3 });
    check(spec.clone(), json!({}), "a Failed ended=-4", "nothing, again after 6s");
    check(spec, json!({}), "a Failed ended=-10", "create 1");
}

#[test]
fn too_many_failures_are_failure() {
    let spec = json!({ "completions": 2, "parallelism": 2, "backoffLimit": 1 });
    check(
        spec.clone(),
        json!({ "failed": 1 }),
        "a Failed\nb Running",
        "end b, failure: BackoffLimitExceeded",
    );
    let known =
        json!({ "conditions": [{ "type": "FailureTarget", "status": "True", "reason": "R" }] });
    check(spec, known, "b Running", "end b, failure: R");
}

#[test]
fn a_job_has_a_deadline() {
    let spec = json!({ "completions": 1, "parallelism": 1, "activeDeadlineSeconds": 60 });
    let started = |before: i64| {
        let at = Timestamp::from_second(NOW - before).expect("a time");
        json!({ "startTime": at.to_string() })
    };
    check(spec.clone(), started(20), "a Running", "nothing, again after 40s");
    check(spec, started(60), "a Running", "end a, failure: DeadlineExceeded");
}

/// Somebody's clock is ahead, and the deadline is the greatest that there is.
#[test]
fn a_deadline_may_be_further_away_than_can_be_counted() {
    let spec = json!({ "completions": 1, "parallelism": 1, "activeDeadlineSeconds": i64::MAX });
    let at = Timestamp::from_second(NOW + 20).expect("a time");
    let job = job(spec, json!({}));
    let now = Timestamp::from_second(NOW).expect("a time");
    let most = SignedDuration::from_secs(i64::MAX);
    assert!(deadline(&job, Some(at), now).is_some_and(|left| left >= most));
}

#[test]
fn a_suspended_job_has_no_pods() {
    let spec = json!({ "completions": 3, "parallelism": 3, "suspend": true });
    check(spec.clone(), json!({}), "a Running\nb Pending", "remove a b");
    check(spec, json!({}), "", "nothing");
}

#[test]
fn a_pod_that_ends_is_replaced_at_once_or_when_it_has_ended() {
    let spec = json!({ "completions": 1, "parallelism": 1, "backoffLimit": 6 });
    check(spec, json!({}), "a Running ending ended=-60", "create 1");
    let spec = json!({ "completions": 1, "parallelism": 1, "podReplacementPolicy": "Failed" });
    check(spec, json!({}), "a Running ending ended=-60", "nothing");
}

#[test]
fn each_index_gets_a_pod_of_its_own() {
    let spec = json!({ "completionMode": "Indexed", "completions": 4, "parallelism": 3 });
    check(spec.clone(), json!({}), "", "create 3 #0 #1 #2");
    check(spec.clone(), json!({ "completedIndexes": "0,2" }), "a Running index=1", "create 1 #3");
    check(spec.clone(), json!({}), "a Running index=1\nb Pending index=1", "remove b");
    let all = json!({ "completedIndexes": "0-3" });
    check(spec, all, "", "nothing, success: CompletionsReached");
}

#[test]
fn indexes_may_fail_each_for_itself() {
    let spec = json!({
        "completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "backoffLimit": 99, "backoffLimitPerIndex": 1,
    });
    let pods = "a Failed index=0 failures=0 ended=-4\nb Running index=1\nc Running index=2";
    check(spec.clone(), json!({}), pods, "nothing, again after 6s");
    let pods = "a Failed index=0 failures=0 ended=-10\nb Running index=1\nc Running index=2";
    check(spec.clone(), json!({}), pods, "create 1 #0");
    let pods = "a Failed index=0 failures=1\nb Running index=1\nc Succeeded index=2";
    check(spec.clone(), json!({}), pods, "nothing");
    let pods = "a Failed index=0 failures=1\nb Succeeded index=1\nc Succeeded index=2";
    check(spec.clone(), json!({}), pods, "nothing, failure: FailedIndexes");
    let mut strict = spec;
    strict["maxFailedIndexes"] = json!(0);
    let pods = "a Failed index=0 failures=1\nb Running index=1";
    check(strict, json!({}), pods, "end b, failure: MaxFailedIndexesExceeded");
}

#[test]
fn a_policy_can_end_it_early() {
    let spec = json!({
        "completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "successPolicy": { "rules": [{ "succeededIndexes": "1" }] },
    });
    let pods = "a Running index=0\nb Succeeded index=1";
    check(spec, json!({}), pods, "end a, success: SuccessPolicy");
}

#[test]
fn a_job_that_is_deleted_makes_nothing() {
    let mut job = job(json!({ "completions": 1, "parallelism": 1 }), json!({}));
    job.metadata.deletion_timestamp = serde_json::from_value(json!("2027-01-15T00:00:00Z")).ok();
    let now = Timestamp::from_second(NOW).expect("a time");
    assert_eq!(print(&plan(&job, &[], Backoff::default(), now)), "nothing");
}
