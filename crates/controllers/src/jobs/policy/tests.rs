use serde_json::{Value, json};

use super::*;

fn job(spec: Value) -> Job {
    let mut spec = spec;
    spec["template"] = json!({});
    serde_json::from_value(json!({ "spec": spec })).expect("a job")
}

/// The rules of a policy, the status of a pod, and what its failure means.
#[track_caller]
fn check(rules: Value, status: Value, expected: Failure) {
    let pod = json!({ "metadata": { "name": "p", "namespace": "n" }, "status": status });
    let pod: Pod = serde_json::from_value(pod).expect("a pod");
    assert_eq!(
        Failure::of(&job(json!({ "podFailurePolicy": { "rules": rules } })), &pod),
        expected
    );
}

fn exited(code: i32) -> Value {
    let terminated = json!({ "exitCode": code });
    let container = json!({
        "name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": terminated },
    });
    json!({ "containerStatuses": [container] })
}

#[test]
fn the_first_rule_that_fits_counts() {
    let on = |operator: &str, codes: Value, action: &str| json!({ "action": action, "onExitCodes": { "operator": operator, "values": codes } });
    let rules = json!([on("In", json!([3]), "Ignore"), on("NotIn", json!([1, 3]), "FailJob")]);
    check(rules.clone(), exited(3), Failure::Ignored);
    check(rules.clone(), exited(1), Failure::Counts);
    let why =
        "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 1";
    check(rules.clone(), exited(42), Failure::FailsJob(why.to_owned()));
    check(rules, exited(0), Failure::Counts);
    check(json!([on("In", json!([2]), "FailIndex")]), exited(2), Failure::FailsIndex);
}

#[test]
fn a_rule_may_be_about_conditions_or_one_container() {
    let rules = json!([{
        "action": "FailJob", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }],
    }]);
    let status = json!({ "conditions": [{ "type": "DisruptionTarget", "status": "True" }] });
    let why = "Pod n/p has condition DisruptionTarget matching FailJob rule at index 0";
    check(rules.clone(), status, Failure::FailsJob(why.to_owned()));
    check(rules, exited(1), Failure::Counts);
    let other = json!([{
        "action": "Ignore",
        "onExitCodes": { "containerName": "side", "operator": "In", "values": [1] },
    }]);
    check(other, exited(1), Failure::Counts);
}

#[test]
fn success_can_come_early() {
    let check = |rules: Value, succeeded: &str, expected: Option<&str>| {
        let job = job(json!({ "successPolicy": { "rules": rules } }));
        let succeeded = Indexes::parse(succeeded, 10);
        assert_eq!(success(&job, &succeeded, 10).as_deref(), expected);
    };
    let rules = json!([
        { "succeededIndexes": "0-2", "succeededCount": 2 },
        { "succeededIndexes": "5,6" },
        { "succeededCount": 4 },
    ]);
    check(rules.clone(), "0,2", Some("Matched rules at index 0"));
    check(rules.clone(), "0,5,6", Some("Matched rules at index 1"));
    check(rules.clone(), "0,5,8,9", Some("Matched rules at index 2"));
    check(rules.clone(), "0,5,8", None);
    check(rules, "", None);
}
