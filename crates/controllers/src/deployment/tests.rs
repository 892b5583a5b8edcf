use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is one")
}

/// A ReplicaSet in a line: `name size/available key=value ...`. The one named `new` is of the
/// Deployment's template.
fn set(age: usize, line: &str) -> Arc<ReplicaSet> {
    let mut words = line.split_whitespace();
    let name = words.next().expect("a name");
    let (size, available) = words.next().and_then(|word| word.split_once('/')).expect("sizes");
    let number = |text: &str| text.parse::<i32>().expect("a number");
    let image = if name == "new" { "v2" } else { name };
    let mut set = json!({
        "metadata": {
            "name": name, "uid": name, "generation": 1, "annotations": {},
            "creationTimestamp": format!("2026-01-01T00:00:{age:02}Z"),
        },
        "spec": {
            "replicas": number(size), "selector": {},
            "template": { "spec": { "containers": [{ "name": "c", "image": image }] },
                          "metadata": { "labels": { "pod-template-hash": name } } },
        },
        "status": {
            "replicas": number(size), "readyReplicas": number(available),
            "availableReplicas": number(available), "observedGeneration": 1,
        },
    });
    for (key, value) in words.map(|word| word.split_once('=').expect("key=value")) {
        match key {
            "desired" => set["metadata"]["annotations"][history::DESIRED_REPLICAS] = value.into(),
            "max" => set["metadata"]["annotations"][history::MAX_REPLICAS] = value.into(),
            "revision" => set["metadata"]["annotations"][REVISION] = value.into(),
            "running" => set["status"]["replicas"] = number(value).into(),
            "failed" => {
                set["status"]["conditions"] = json!([{
                    "type": "ReplicaFailure", "status": "True", "reason": value, "message": "no",
                }]);
            }
            _ => panic!("{key}?"),
        }
    }
    Arc::new(read(set))
}

fn deployment(spec: Value) -> Deployment {
    let mut deployment = json!({
        "metadata": { "name": "web", "uid": "d", "generation": 2 },
        "spec": {
            "replicas": 10, "selector": { "matchLabels": { "app": "web" } },
            "template": { "spec": { "containers": [{ "name": "c", "image": "v2" }] } },
            "strategy": { "type": "RollingUpdate",
                          "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" } },
            "progressDeadlineSeconds": 600, "revisionHistoryLimit": 1,
        },
    });
    for (key, value) in spec.as_object().expect("fields") {
        deployment["spec"][key] = value.clone();
    }
    read(deployment)
}

fn history(deployment: &Deployment, lines: &[&str]) -> History {
    let sets = lines.iter().enumerate().map(|(age, line)| set(age, line));
    History::new(deployment, sets.collect())
}

fn told(steps: &[Resize]) -> String {
    let tell = |step: &Resize| {
        let name = step.set.metadata.name.as_deref().unwrap_or_default();
        format!("{name} {}>{}", step.from, step.to)
    };
    steps.iter().map(tell).collect::<Vec<_>>().join(", ")
}

fn strategy(surge: Value, unavailable: Value) -> Value {
    let rolling = json!({ "maxSurge": surge, "maxUnavailable": unavailable });
    json!({ "strategy": { "type": "RollingUpdate", "rollingUpdate": rolling } })
}

#[track_caller]
fn check_rolling(spec: Value, sets: &[&str], expected: &str) {
    let deployment = deployment(spec);
    let steps = rollout::rolling(&Wanted::of(&deployment), &history(&deployment, sets));
    assert_eq!(told(&steps), expected);
}

#[test]
fn the_new_grows_as_far_as_the_surge_allows() {
    check_rolling(json!({}), &["old 10/10", "new 0/0"], "new 0>3");
    check_rolling(strategy(json!(0), json!(2)), &["old 10/10", "new 0/0"], "old 10>8");
    check_rolling(strategy(json!(0), json!(2)), &["old 8/8", "new 0/0"], "new 0>2");
    check_rolling(json!({}), &["new 12/12"], "new 12>10");
    check_rolling(json!({}), &["new 10/3"], "");
}

#[test]
fn the_old_shrink_as_far_as_availability_allows() {
    check_rolling(json!({}), &["old 10/10", "new 3/0"], "old 10>8");
    check_rolling(json!({}), &["old 8/8", "new 5/5"], "old 8>3");
    check_rolling(json!({}), &["old 8/8", "new 5/0"], "");
}

#[test]
fn pods_that_do_not_serve_go_first() {
    check_rolling(json!({}), &["a 4/0", "b 6/6", "new 3/3"], "a 4>0, b 6>5");
    check_rolling(strategy(json!(1), json!(0)), &["a 2/1", "b 8/8", "new 1/1"], "a 2>1");
}

#[test]
fn a_deployment_that_recreates_has_all_old_pods_go_at_once() {
    let deployment = deployment(json!({ "strategy": { "type": "Recreate" } }));
    let wanted = Wanted::of(&deployment);
    assert_eq!((wanted.surge, wanted.unavailable), (0, 0));
    let check = |sets: &[&str], expected: &str| {
        assert_eq!(told(&rollout::empty_old(&history(&deployment, sets))), expected);
    };
    check(&["a 2/2", "b 8/8", "new 0/0"], "a 2>0, b 8>0");
    check(&["a 0/0", "new 3/3"], "");
    let history = history(&deployment, &["a 0/0", "new 0/0"]);
    assert_eq!(rollout::new_size(&wanted, &history, 0), 10);
}

#[test]
fn a_deployment_that_recreates_waits_until_old_pods_are_over() {
    let deployment = deployment(json!({ "strategy": { "type": "Recreate" } }));
    let check = |sets: &[&str], owner: &str, phase: &str, expected: bool| {
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner,
            "controller": true,
        });
        let pod = read(json!({
            "metadata": {
                "ownerReferences": [owner], "deletionTimestamp": "2026-01-01T00:01:00Z",
            },
            "status": { "phase": phase },
        }));
        let history = history(&deployment, sets);
        assert_eq!(rollout::old_pods_run(&history, &[Arc::new(pod)]), expected);
    };
    check(&["old 0/0", "new 0/0"], "old", "Running", true);
    check(&["old 0/0", "new 0/0"], "old", "Unknown", true);
    check(&["old 0/0", "new 0/0"], "old", "Succeeded", false);
    check(&["old 0/0", "new 0/0"], "old", "Failed", false);
    check(&["old 0/0", "new 0/0"], "new", "Running", false);
    check(&["old 0/0", "new 0/0"], "other", "Running", false);
    // What its ReplicaSet still counts may not be known yet.
    check(&["old 0/0 running=1", "new 0/0"], "other", "Running", true);
}

#[test]
fn percentages_that_come_to_nothing_still_let_one_pod_go() {
    let wanted = Wanted::of(&deployment(strategy(json!("1%"), json!("0%"))));
    assert_eq!((wanted.surge, wanted.unavailable), (1, 0));
    let wanted = Wanted::of(&deployment(strategy(json!(0), json!("1%"))));
    assert_eq!((wanted.surge, wanted.unavailable), (0, 1));
}

#[track_caller]
fn check_scale(spec: Value, sets: &[&str], expected: &str) {
    let deployment = deployment(spec);
    let history = history(&deployment, sets);
    let steps = rollout::scale(&Wanted::of(&deployment), &history, rollout::total(history.all()));
    assert_eq!(told(&steps), expected);
}

#[test]
fn the_only_one_that_runs_takes_the_new_size() {
    check_scale(json!({}), &["old 0/0", "new 5/5"], "new 5>10");
    check_scale(json!({}), &["a 0/0", "b 0/0"], "b 0>10");
    check_scale(json!({}), &["old 0/0", "new 10/10"], "");
}

#[test]
fn in_the_middle_of_an_update_all_grow_in_proportion() {
    // From 10 (13 at most) to 20 (25 at most).
    let sets = ["old 8/8 max=13 desired=10", "new 5/5 max=13 desired=10"];
    check_scale(json!({ "replicas": 20 }), &sets, "old 8>15, new 5>10");
    check_scale(json!({ "replicas": 5 }), &sets, "old 8>4, new 5>3");
    check_scale(json!({ "replicas": 0 }), &sets, "old 8>0, new 5>0");
}

#[test]
fn what_somebody_scaled_is_noticed() {
    let deployment = deployment(json!({}));
    let is_scaling =
        |sets: &[&str]| rollout::is_scaling(&Wanted::of(&deployment), &history(&deployment, sets));
    assert!(is_scaling(&["new 5/5 desired=5"]));
    assert!(!is_scaling(&["new 5/5 desired=10"]));
    assert!(!is_scaling(&["new 5/5"]));
    assert!(!is_scaling(&["new 0/0 desired=5"]));
}

#[test]
fn revisions_count_on_and_old_ones_are_remembered() {
    let deployment = deployment(json!({}));
    let history =
        history(&deployment, &["a 0/0 revision=1", "new 0/0 revision=2", "b 5/5 revision=3"]);
    assert_eq!((history.next_revision(), history.last_revision()), (4, 2));
    let new = history.new.as_ref().expect("the new one");
    let known = new.metadata.annotations.clone().unwrap_or_default();
    let annotations = history::annotations(&deployment, &known, history.next_revision());
    assert_eq!(annotations[REVISION], "4");
    assert_eq!(annotations["deployment.kubernetes.io/revision-history"], "2");
}

#[test]
fn empty_replica_sets_beyond_the_limit_are_forgotten() {
    let deployment = deployment(json!({}));
    let sets = ["a 0/0 revision=2", "b 0/0 revision=1", "c 0/0 revision=4 running=1", "new 1/1"];
    let forgettable = history(&deployment, &sets).forgettable(1);
    let names: Vec<_> = forgettable.iter().filter_map(|set| set.metadata.name.clone()).collect();
    assert_eq!(names, ["b", "a"]);
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

/// The conditions after a status that was so, as `type=status reason`.
#[track_caller]
fn check_conditions(mut deployment: Deployment, before: Value, sets: &[&str], expected: &[&str]) {
    deployment.status = Some(read(before));
    let history = history(&deployment, sets);
    let status = status::progressed(&deployment, &history, &Wanted::of(&deployment), at(1000));
    let conditions = status.conditions.unwrap_or_default();
    let told: Vec<_> = conditions
        .iter()
        .map(|it| format!("{}={} {}", it.type_, it.status, it.reason.clone().unwrap_or_default()))
        .collect();
    assert_eq!(told, expected);
}

fn progressing(reason: &str, second: i64) -> Value {
    let time = at(second).to_string();
    json!({ "type": "Progressing", "status": "True", "reason": reason,
            "lastUpdateTime": time, "lastTransitionTime": time })
}

#[test]
fn an_update_progresses_then_is_complete_or_late() {
    let counts = |updated: i32, reason: &str, second| {
        json!({ "replicas": 13, "updatedReplicas": updated, "readyReplicas": 8,
                "availableReplicas": 8, "conditions": [progressing(reason, second)] })
    };
    let sets = ["old 8/8", "new 5/0"];
    let available = "Available=True MinimumReplicasAvailable";
    check_conditions(
        deployment(json!({})),
        counts(3, "NewReplicaSetCreated", 900),
        &sets,
        &[available, "Progressing=True ReplicaSetUpdated"],
    );
    check_conditions(
        deployment(json!({})),
        counts(5, "ReplicaSetUpdated", 900),
        &sets,
        &["Progressing=True ReplicaSetUpdated", available],
    );
    check_conditions(
        deployment(json!({})),
        counts(5, "ReplicaSetUpdated", 399),
        &sets,
        &[available, "Progressing=False ProgressDeadlineExceeded"],
    );
    check_conditions(
        deployment(json!({})),
        counts(9, "ReplicaSetUpdated", 900),
        &["old 0/0", "new 10/10"],
        &[available, "Progressing=True NewReplicaSetAvailable"],
    );
}

#[test]
fn the_failure_of_a_replica_set_is_the_deployments() {
    check_conditions(
        deployment(json!({ "progressDeadlineSeconds": null })),
        json!({}),
        &["new 10/0 failed=FailedCreate"],
        &["Available=False MinimumReplicasUnavailable", "ReplicaFailure=True FailedCreate"],
    );
}

#[track_caller]
fn check_rollback(asked: &str, sets: &[&str], image: &str, expected: Event) {
    let mut deployment = deployment(json!({}));
    let annotations = deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(ROLLBACK_TO.to_owned(), asked.to_owned());
    let revision = rollback_to(&deployment).expect("it is asked for");
    let sets = history(&deployment, sets);
    assert_eq!(rolled_back(&mut deployment, &sets, revision), expected);
    assert_eq!(rollback_to(&deployment), None);
    let template = deployment.spec.expect("a spec").template.spec.expect("a template");
    assert_eq!(template.containers[0].image.as_deref(), Some(image));
}

#[test]
fn a_deployment_goes_back_to_the_revision_that_an_annotation_names() {
    let sets = ["a 0/0 revision=1", "b 0/0 revision=2", "new 10/10 revision=3"];
    let rolled = |to: &str| {
        let note = format!("Rolled back deployment \"web\" to revision {to}");
        Event::normal("DeploymentRollback", note)
    };
    check_rollback("1", &sets, "a", rolled("1"));
    check_rollback("0", &sets, "b", rolled("2"));
    let note = "The rollback revision contains the same template as current deployment \"web\"";
    let same = Event::warning("DeploymentRollbackTemplateUnchanged", note);
    check_rollback("3", &sets, "v2", same);
    let missing = |note: &str| Event::warning("DeploymentRollbackRevisionNotFound", note);
    check_rollback("7", &sets, "v2", missing("Unable to find the revision to rollback to."));
    check_rollback("0", &sets[2..], "v2", missing("Unable to find last revision."));
}
