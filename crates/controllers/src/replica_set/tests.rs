use serde_json::{Value, json};

use super::*;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is one")
}

fn pods(names: &[&str]) -> Vec<Arc<Pod>> {
    let pod = |name: &&str| {
        let conditions = match name.starts_with("ready") {
            true => json!([{ "type": "Ready", "status": "True",
                             "lastTransitionTime": "2026-01-01T00:00:00Z" }]),
            false => json!([]),
        };
        Arc::new(read(json!({
            "metadata": { "name": name, "uid": name, "labels": { "app": "web" } },
            "status": { "phase": "Running", "conditions": conditions },
        })))
    };
    names.iter().map(pod).collect()
}

fn now() -> jiff::Timestamp {
    "2026-01-01T00:00:10Z".parse().expect("a time")
}

/// What is planned for so many replicas where there are these.
#[track_caller]
fn check(replicas: usize, existing: &[&str], expected: &str) {
    let plan = match plan(replicas, &pods(existing), &Doubling::default(), now()) {
        Plan::Nothing => "nothing".to_owned(),
        Plan::Create(count) => format!("create {count}"),
        Plan::Delete(pods) => {
            let names = pods.iter().filter_map(|pod| pod.metadata.name.clone());
            format!("delete {}", names.collect::<Vec<_>>().join(" "))
        }
    };
    assert_eq!(plan, expected);
}

#[test]
fn what_is_missing_is_made_and_what_is_too_much_deleted() {
    check(2, &["ready1", "a"], "nothing");
    check(3, &["ready1"], "create 2");
    check(1, &["ready1", "a"], "delete a");
    check(0, &["ready1", "a"], "delete a ready1");
    check(2000, &[], "create 500");
}

fn replica_set(spec: Value) -> ReplicaSet {
    let mut set = json!({
        "metadata": { "name": "web", "generation": 3 },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } } },
        },
    });
    for (key, value) in spec.as_object().expect("fields") {
        set["spec"][key] = value.clone();
    }
    read(set)
}

#[track_caller]
fn check_status(spec: Value, existing: &[&str], failure: Option<Failure>, expected: Value) {
    let mut set = replica_set(spec);
    let counts = plan::count(&set.wanted(), &pods(existing), 1, now());
    set.report(&counts, failure, now());
    assert_eq!(serde_json::to_value(set.status).expect("written"), expected);
}

#[test]
fn status_counts_pods() {
    check_status(
        json!({}),
        &["ready1", "a"],
        None,
        json!({
            "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 1, "availableReplicas": 1,
            "terminatingReplicas": 1, "observedGeneration": 3,
        }),
    );
}

#[test]
fn pods_are_available_only_after_a_while() {
    check_status(
        json!({ "minReadySeconds": 30 }),
        &["ready1"],
        None,
        json!({
            "replicas": 1, "fullyLabeledReplicas": 1, "readyReplicas": 1,
            "terminatingReplicas": 1, "observedGeneration": 3,
        }),
    );
}

#[test]
fn a_failure_is_a_condition() {
    let failure = Failure { reason: "FailedCreate", message: "no".to_owned() };
    check_status(
        json!({}),
        &[],
        Some(failure),
        json!({
            "replicas": 0, "terminatingReplicas": 1, "observedGeneration": 3,
            "conditions": [{
                "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
                "message": "no", "lastTransitionTime": "2026-01-01T00:00:10Z",
            }],
        }),
    );
}
