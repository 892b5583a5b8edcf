use serde_json::{Value, json};

use super::*;

fn job(name: &str, spec: Value) -> Job {
    let mut spec = spec;
    spec["template"] = json!({
        "metadata": { "labels": { "app": "a" }, "annotations": { "note": "b" }, "finalizers": ["c"] },
        "spec": { "containers": [{ "name": "main" }], "initContainers": [{ "name": "first" }] },
    });
    let metadata = json!({ "name": name, "namespace": "n" });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).expect("a job")
}

#[test]
fn a_pod_is_as_the_template_says_and_held_until_it_is_counted() {
    let pod = new(&job("j", json!({})));
    let metadata = json!({
        "generateName": "j-", "namespace": "n", "labels": { "app": "a" },
        "annotations": { "note": "b" }, "finalizers": ["c", FINALIZER],
    });
    assert_eq!(json!(pod.metadata), metadata);
}

#[test]
fn a_pod_knows_its_index() {
    let job = job("j", json!({ "completionMode": "Indexed", "completions": 9 }));
    let pod = json!(new_for(&job, 7, None));
    assert_eq!(pod["metadata"]["generateName"], "j-7-");
    assert_eq!(pod["metadata"]["labels"], json!({ "app": "a", INDEX: "7" }));
    assert_eq!(pod["metadata"]["annotations"], json!({ "note": "b", INDEX: "7" }));
    assert_eq!(pod["spec"]["hostname"], "j-7");
    let field = json!({ "fieldPath": format!("metadata.labels['{INDEX}']") });
    let variable = json!([{ "name": "JOB_COMPLETION_INDEX", "valueFrom": { "fieldRef": field } }]);
    assert_eq!(pod["spec"]["containers"][0]["env"], variable);
    assert_eq!(pod["spec"]["initContainers"][0]["env"], variable);
}

#[test]
fn a_long_name_leaves_room_for_the_index() {
    let job = job(&"j".repeat(63), json!({ "completionMode": "Indexed", "completions": 999 }));
    let name = new_for(&job, 123, None).metadata.generate_name;
    assert_eq!(name, Some(format!("{}-123-", "j".repeat(53))));
}

#[test]
fn a_pod_knows_how_often_its_index_has_failed() {
    let rule =
        json!({ "action": "Ignore", "onPodConditions": [{ "type": "X", "status": "True" }] });
    let job = job(
        "j",
        json!({
            "completionMode": "Indexed", "completions": 9, "backoffLimitPerIndex": 3,
            "podFailurePolicy": { "rules": [rule] },
        }),
    );
    let counts = |pod: &Pod| {
        let annotations = pod.metadata.annotations.as_ref().expect("annotations");
        (annotations.get(FAILURES).cloned(), annotations.get(IGNORED_FAILURES).cloned())
    };
    let some = |text: &str| Some(text.to_owned());
    let first = new_for(&job, 1, None);
    assert_eq!(counts(&first), (some("0"), None));
    let second = new_for(&job, 1, Some(&first));
    assert_eq!(counts(&second), (some("1"), None));
    let mut ignored = second;
    ignored.status =
        serde_json::from_value(json!({ "conditions": [{ "type": "X", "status": "True" }] })).ok();
    assert_eq!(counts(&new_for(&job, 1, Some(&ignored))), (some("1"), some("1")));
}

fn active(name: &str, node: &str, phase: &str, index: Option<u32>) -> Pod {
    let annotations = index.map(|index| json!({ INDEX: index.to_string() }));
    let pod = json!({
        "metadata": { "name": name, "annotations": annotations },
        "spec": { "nodeName": node, "containers": [] },
        "status": { "phase": phase },
    });
    serde_json::from_value(pod).expect("a pod")
}

#[track_caller]
fn check(job: &Job, pods: &[Pod], at_least: usize, expected: &[&str]) {
    let gone = surplus(job, &pods.iter().collect::<Vec<_>>(), at_least);
    let names: Vec<&str> = gone.iter().map(|pod| text(&pod.metadata.name)).collect();
    assert_eq!(names, expected);
}

#[test]
fn those_go_first_that_have_come_least_far() {
    let pods = [
        active("runs", "node", "Running", None),
        active("waits", "", "Pending", None),
        active("starts", "node", "Pending", None),
    ];
    check(&job("j", json!({})), &pods, 0, &[]);
    check(&job("j", json!({})), &pods, 2, &["waits", "starts"]);
}

#[test]
fn an_index_has_one_pod() {
    let job = job("j", json!({ "completionMode": "Indexed", "completions": 2 }));
    let pods = [
        active("twin", "", "Pending", Some(0)),
        active("first", "node", "Running", Some(0)),
        active("second", "node", "Running", Some(1)),
        active("third", "node", "Running", Some(2)),
        active("none", "node", "Running", None),
    ];
    check(&job, &pods, 0, &["none", "twin", "third"]);
    check(&job, &pods, 4, &["none", "twin", "third", "first"]);
}
