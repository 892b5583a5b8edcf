use serde_json::{Value, json};

use super::*;
use crate::jobs::backoff::Backoff;
use crate::jobs::plan;
use crate::jobs::terms::FINALIZER;

const NOW: &str = "2026-01-01T00:00:00Z";

fn job(spec: Value, status: Value) -> Job {
    let mut spec = spec;
    spec["template"] = json!({ "spec": { "containers": [] } });
    let job = json!({ "metadata": { "name": "j" }, "spec": spec, "status": status });
    serde_json::from_value(job).expect("a job")
}

fn pod(name: &str, phase: &str) -> Pod {
    let metadata = json!({ "name": name, "uid": name, "finalizers": [FINALIZER] });
    let pod = json!({ "metadata": metadata, "status": { "phase": phase } });
    serde_json::from_value(pod).expect("a pod")
}

/// A Job and its pods, what was done, and which pods were let go; what status says before and after.
#[track_caller]
fn check(job: &Job, pods: &[Pod], done: Done, released: &[&str], before: Value, after: Value) {
    let now: Timestamp = NOW.parse().expect("a time");
    let pods: Vec<&Pod> = pods.iter().collect();
    let plan = plan::plan(job, &pods, Backoff::default(), now);
    let account = account(job, &plan, done, now);
    assert_eq!(json!(account.status), before);
    let released: HashSet<String> = released.iter().map(|&uid| uid.to_owned()).collect();
    assert_eq!(json!(account.close(&released, now).0), after);
}

fn condition(kind: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": reason, "message": message,
        "lastProbeTime": NOW, "lastTransitionTime": NOW,
    })
}

#[test]
fn pods_are_named_before_they_are_counted() {
    let job = job(
        json!({ "completions": 5, "parallelism": 1 }),
        json!({ "startTime": NOW, "succeeded": 1 }),
    );
    let pods = [pod("a", "Succeeded"), pod("b", "Failed"), pod("c", "Running")];
    let named = json!({
        "startTime": NOW, "succeeded": 1, "active": 1, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": { "succeeded": ["a"], "failed": ["b"] },
    });
    let counted = json!({
        "startTime": NOW, "succeeded": 2, "failed": 1, "active": 1, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": {},
    });
    check(&job, &pods, Done::default(), &["a", "b"], named.clone(), counted);
    let half = json!({
        "startTime": NOW, "succeeded": 2, "active": 1, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": { "failed": ["b"] },
    });
    check(&job, &pods, Done::default(), &["a"], named, half);
}

#[test]
fn what_was_let_go_before_a_restart_is_counted_after_it() {
    let status = json!({ "startTime": NOW, "uncountedTerminatedPods": { "succeeded": ["a"] } });
    let job = job(json!({ "completions": 5, "parallelism": 0 }), status);
    let counted = json!({
        "startTime": NOW, "succeeded": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
    });
    check(&job, &[], Done::default(), &[], counted.clone(), counted);
}

#[test]
fn a_job_is_complete_when_all_is_counted() {
    let job = job(json!({ "completions": 1, "parallelism": 1 }), json!({ "startTime": NOW }));
    let reached = ("CompletionsReached", "Reached expected number of succeeded pods");
    let met = condition("SuccessCriteriaMet", reached.0, reached.1);
    let named = json!({
        "startTime": NOW, "ready": 0, "terminating": 0, "conditions": [met],
        "uncountedTerminatedPods": { "succeeded": ["a"] },
    });
    let complete = json!({
        "startTime": NOW, "completionTime": NOW, "succeeded": 1, "ready": 0, "terminating": 0,
        "conditions": [met, condition("Complete", reached.0, reached.1)],
        "uncountedTerminatedPods": {},
    });
    check(&job, &[pod("a", "Succeeded")], Done::default(), &["a"], named.clone(), complete);
    check(&job, &[pod("a", "Succeeded")], Done::default(), &[], named.clone(), named);
}

#[test]
fn a_job_has_failed_when_the_last_pod_has_ended() {
    let job = job(
        json!({ "completions": 2, "parallelism": 2, "backoffLimit": 0 }),
        json!({ "startTime": NOW }),
    );
    let pods = [pod("a", "Failed"), pod("b", "Running")];
    let target = condition(
        "FailureTarget",
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    );
    let done = Done { deleted: 1, ..Done::default() };
    let named = json!({
        "startTime": NOW, "ready": 0, "terminating": 1, "conditions": [target],
        "uncountedTerminatedPods": { "failed": ["a", "b"] },
    });
    let counted = json!({
        "startTime": NOW, "failed": 2, "ready": 0, "terminating": 1, "conditions": [target],
        "uncountedTerminatedPods": {},
    });
    check(&job, &pods, done, &["a", "b"], named, counted);
    let short = Done { is_short: true, ..Done::default() };
    let later = json!({
        "startTime": NOW, "active": 1, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": { "failed": ["a"] },
    });
    check(&job, &pods, short, &[], later.clone(), later);
}

#[test]
fn a_job_that_is_suspended_says_so_and_begins_anew() {
    let status = json!({ "startTime": NOW });
    let suspended = json!({
        "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
        "conditions": [condition("Suspended", "JobSuspended", "Job suspended")],
    });
    let spec = json!({ "completions": 1, "parallelism": 1, "suspend": true });
    check(&job(spec, status), &[], Done::default(), &[], suspended.clone(), suspended.clone());
    let mut resumed = condition("Suspended", "JobResumed", "Job resumed");
    resumed["status"] = json!("False");
    let spec = json!({ "completions": 1, "parallelism": 1 });
    let running = json!({
        "startTime": NOW, "active": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
        "conditions": [resumed],
    });
    let done = Done { created: 1, ..Done::default() };
    check(&job(spec, suspended), &[], done, &[], running.clone(), running);
}

#[test]
fn indexes_are_kept_in_status_at_once() {
    let spec = json!({
        "completionMode": "Indexed", "completions": 4, "parallelism": 4, "backoffLimitPerIndex": 0,
    });
    let indexed = |name: &str, phase: &str, index: &str| {
        let mut pod = pod(name, phase);
        let annotations = pod.metadata.annotations.get_or_insert_default();
        annotations.insert(terms::INDEX.to_owned(), index.to_owned());
        pod
    };
    let pods =
        [indexed("a", "Succeeded", "2"), indexed("b", "Failed", "0"), indexed("c", "Running", "1")];
    let named = json!({
        "startTime": NOW, "succeeded": 2, "active": 1, "ready": 0, "terminating": 0,
        "completedIndexes": "2,3", "failedIndexes": "0",
        "uncountedTerminatedPods": { "failed": ["b"] },
    });
    let counted = json!({
        "startTime": NOW, "succeeded": 2, "failed": 1, "active": 1, "ready": 0, "terminating": 0,
        "completedIndexes": "2,3", "failedIndexes": "0", "uncountedTerminatedPods": {},
    });
    let job = job(spec, json!({ "startTime": NOW, "succeeded": 1, "completedIndexes": "3" }));
    check(&job, &pods, Done::default(), &["a", "b"], named, counted);
}
