use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};

use super::claims::{Owners, judge};
use super::*;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is one")
}

fn now() -> Timestamp {
    "2026-01-01T00:00:10Z".parse().expect("a time")
}

fn set(spec: Value) -> StatefulSet {
    let mut set = json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "s", "generation": 1 },
        "spec": {
            "replicas": 3, "selector": { "matchLabels": { "app": "web" } }, "serviceName": "web",
            "template": { "metadata": { "labels": { "app": "web" } },
                          "spec": { "containers": [] } },
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } },
        },
    });
    for (key, value) in spec.as_object().expect("fields") {
        set["spec"][key] = value.clone();
    }
    read(set)
}

/// A pod in a line: `name revision state ...`.
fn pod(line: &str) -> Arc<Pod> {
    let mut words = line.split_whitespace();
    let (name, revision) = (words.next().expect("a name"), words.next().expect("a revision"));
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": name,
            "labels": { "controller-revision-hash": revision, "app": "web",
                        "statefulset.kubernetes.io/pod-name": name },
        },
        "status": { "phase": "Running", "conditions": [] },
    });
    for word in words {
        match word {
            "ready" => {
                let ready = json!({ "type": "Ready", "status": "True",
                                    "lastTransitionTime": "2026-01-01T00:00:00Z" });
                pod["status"]["conditions"] = json!([ready]);
            }
            "deleted" => pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:09Z".into(),
            phase => pod["status"]["phase"] = phase.into(),
        }
    }
    Arc::new(read(pod))
}

fn with<T>(set: &StatefulSet, lines: &[&str], ask: impl FnOnce(&View<'_>) -> T) -> T {
    let pods: Vec<_> = lines.iter().map(|line| pod(line)).collect();
    let template = PodTemplateSpec::default();
    let view = View {
        set,
        pods: &pods,
        current: (&template, "old"),
        update: (&template, "new"),
        now: now(),
    };
    ask(&view)
}

/// What is planned, without what is only looked after.
#[track_caller]
fn check(spec: Value, pods: &[&str], expected: &str) {
    let plan = with(&set(spec), pods, plan);
    let told = plan.steps.iter().filter_map(|step| match step {
        Step::Create(pod) => Some(format!("+{}:{}", name(&pod.metadata), revision(pod))),
        Step::Delete(pod) => Some(format!("-{}", name(&pod.metadata))),
        Step::Tend(_) | Step::Release(_) => None,
    });
    assert_eq!(told.collect::<Vec<_>>().join(" "), expected);
}

#[test]
fn pods_come_one_by_one() {
    check(json!({}), &[], "+web-0:new");
    check(json!({}), &["web-0 new"], "");
    check(json!({}), &["web-0 new ready"], "+web-1:new");
    check(json!({}), &["web-0 new ready", "web-2 new ready"], "+web-1:new");
    check(json!({}), &["web-0 new Failed"], "-web-0");
    check(json!({ "ordinals": { "start": 5 } }), &[], "+web-5:new");
}

#[test]
fn a_pod_must_serve_for_a_while_before_the_next_comes() {
    check(json!({ "minReadySeconds": 60 }), &["web-0 new ready"], "");
    check(json!({ "minReadySeconds": 10 }), &["web-0 new ready"], "+web-1:new");
}

#[test]
fn in_parallel_all_come_and_go_at_once() {
    let parallel =
        |replicas: i32| json!({ "podManagementPolicy": "Parallel", "replicas": replicas });
    check(parallel(3), &[], "+web-0:new +web-1:new +web-2:new");
    check(parallel(1), &["web-0 new", "web-1 new", "web-2 new deleted"], "-web-1");
}

#[test]
fn pods_go_from_the_highest_number() {
    let one = || json!({ "replicas": 1 });
    let all = ["web-0 new ready", "web-1 new ready", "web-2 new ready"];
    check(one(), &all, "-web-2");
    check(one(), &["web-0 new ready", "web-1 new ready", "web-2 new ready deleted"], "");
    check(one(), &["web-0 new ready", "web-1 new", "web-2 new ready"], "-web-2");
    check(one(), &["web-0 new ready", "web-1 new", "web-2 new"], "");
    check(one(), &["web-0 new", "web-1 new ready"], "");
}

#[test]
fn an_update_goes_from_the_highest_number_to_the_partition() {
    let all = ["web-0 old ready", "web-1 old ready", "web-2 old ready"];
    check(json!({}), &all, "-web-2");
    check(json!({}), &["web-0 old ready", "web-1 old ready", "web-2 new"], "");
    check(json!({}), &["web-0 old ready", "web-1 old ready", "web-2 new ready"], "-web-1");
    check(json!({ "updateStrategy": { "type": "OnDelete" } }), &all, "");
    let partition = |partition: i32| {
        let rolling = json!({ "partition": partition });
        json!({ "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": rolling } })
    };
    check(partition(2), &["web-0 old ready", "web-1 old ready", "web-2 new ready"], "");
    check(partition(1), &["web-1 old ready", "web-2 new ready"], "+web-0:old");
    check(partition(1), &["web-0 old ready", "web-2 new ready"], "+web-1:new");
}

#[test]
fn status_counts_pods_by_revision() {
    let set = set(json!({}));
    let told = |lines: &[&str]| {
        let status = with(&set, lines, |view| plan::status(view, 0, 0));
        serde_json::to_value(status).expect("written")
    };
    assert_eq!(
        told(&["web-0 old ready", "web-1 old", "web-2 new ready"]),
        json!({
            "replicas": 3, "readyReplicas": 2, "availableReplicas": 2, "currentReplicas": 2,
            "updatedReplicas": 1, "currentRevision": "old", "updateRevision": "new",
            "collisionCount": 0, "observedGeneration": 1,
        }),
    );
    let done = told(&["web-0 new ready", "web-1 new ready", "web-2 new ready"]);
    assert_eq!((&done["currentRevision"], &done["currentReplicas"]), (&json!("new"), &json!(3)));
}

#[test]
fn pods_are_told_by_name_number_and_claims() {
    let templates = json!([{ "metadata": { "name": "data", "labels": { "a": "b" } }, "spec": {} }]);
    let set = set(json!({ "volumeClaimTemplates": templates }));
    let template = read(json!({ "spec": { "containers": [], "volumes": [
        { "name": "data", "emptyDir": {} }, { "name": "tmp", "emptyDir": {} },
    ] } }));
    let pod = identity::pod(&set, &template, "new", 4);
    assert!(identity::is_identified(&set, &pod));
    assert_eq!(
        serde_json::to_value(&pod).expect("written"),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "web-4", "namespace": "default",
                "labels": {
                    "controller-revision-hash": "new", "apps.kubernetes.io/pod-index": "4",
                    "statefulset.kubernetes.io/pod-name": "web-4",
                },
            },
            "spec": {
                "containers": [], "hostname": "web-4", "subdomain": "web",
                "volumes": [
                    { "name": "data", "persistentVolumeClaim": { "claimName": "data-web-4" } },
                    { "name": "tmp", "emptyDir": {} },
                ],
            },
        }),
    );
    let (_, claim) = identity::claims(&set, 4).remove(0);
    let labels = claim.metadata.labels.expect("labels");
    assert_eq!((labels["a"].as_str(), labels["app"].as_str()), ("b", "web"));
}

/// The owners that a claim of `web-0` should have, as `kind`s; none if it has them.
#[track_caller]
fn check_owners(
    deleted: &str,
    scaled: &str,
    owned_by: &[&str],
    wanted: bool,
    expected: Option<&[&str]>,
) {
    let policy = json!({ "whenDeleted": deleted, "whenScaled": scaled });
    let set = set(json!({ "persistentVolumeClaimRetentionPolicy": policy }));
    let owner = |kind: &&str| {
        let (api_version, name, uid) = match *kind {
            "StatefulSet" => ("apps/v1", "web", "s"),
            "Pod" => ("v1", "web-0", "web-0"),
            _ => ("example.com/v1", "other", "o"),
        };
        json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid,
                "controller": true, "blockOwnerDeletion": true })
    };
    let owners: Vec<_> = owned_by.iter().map(owner).collect();
    let claim = read(json!({ "metadata": { "name": "data-web-0", "ownerReferences": owners } }));
    let judged = match judge(&claim, &set, &pod("web-0 new"), wanted) {
        Owners::Right => None,
        Owners::Wrong(owners) => {
            Some(owners.into_iter().map(|owner| owner.kind).collect::<Vec<_>>())
        }
    };
    let expected = expected.map(|kinds| kinds.iter().map(|kind| (*kind).to_owned()).collect());
    assert_eq!(judged, expected);
}

#[test]
fn claims_go_with_whom_the_policy_says() {
    check_owners("Retain", "Retain", &[], true, None);
    check_owners("Retain", "Retain", &["StatefulSet"], true, Some(&[]));
    check_owners("Delete", "Retain", &[], true, Some(&["StatefulSet"]));
    check_owners("Delete", "Retain", &["StatefulSet"], false, None);
    check_owners("Retain", "Delete", &[], true, None);
    check_owners("Retain", "Delete", &[], false, Some(&["Pod"]));
    check_owners("Delete", "Delete", &["StatefulSet"], false, Some(&["Pod"]));
    check_owners("Delete", "Delete", &["Other"], true, None);
    check_owners("Delete", "Delete", &["Other", "StatefulSet"], true, Some(&["Other"]));
}
