use serde_json::{Value, json};

use super::*;

fn quota(namespace: &str, name: &str, limited: &str) -> Arc<ResourceQuota> {
    let metadata = json!({ "namespace": namespace, "name": name });
    let quota = json!({ "metadata": metadata, "spec": { "hard": { limited: "1" } } });
    Arc::new(serde_json::from_value(quota).expect("a quota"))
}

fn kind(group: &str, plural: &str, verbs: &[&str]) -> Kind {
    Kind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: String::new(),
        plural: plural.to_owned(),
        namespaced: true,
        verbs: verbs.iter().map(|verb| verb.to_string()).collect(),
    }
}

const ALL: &[&str] = &["create", "delete", "get", "list", "watch"];

#[test]
fn a_change_concerns_who_counts_it() {
    let quotas = [quota("a", "pods", "pods"), quota("a", "secrets", "count/secrets")];
    let keys = |evaluator| {
        let concerned = concerned(&quotas, &[evaluator]).into_iter();
        concerned.map(|key| key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys(Evaluator::Pods), ["a/pods"]);
    assert_eq!(keys(Evaluator::Services), [""; 0]);
}

#[test]
fn a_kind_is_new_once() {
    let kinds = |plurals: &[&str]| {
        let kind = |plural: &&str| Arc::new(kind("example.com", plural, ALL));
        let mut kinds = Kinds::default();
        kinds.preferred.extend(plurals.iter().map(kind));
        kinds
    };
    let widgets = Evaluator::Objects(vec!["count/widgets.example.com".to_owned()]);
    assert_eq!(new(&kinds(&["gadgets"]), &kinds(&["gadgets", "widgets"])), [widgets]);
    assert_eq!(new(&kinds(&["gadgets", "widgets"]), &kinds(&["widgets"])), []);
}

#[test]
fn only_what_comes_and_goes_can_be_counted() {
    let check = |group, plural, verbs, expected| {
        assert_eq!(evaluator(&kind(group, plural, verbs)).is_some(), expected, "{plural}");
    };
    check("", "pods", ALL, true);
    check("", "pods", &["create", "list"], false);
    check("", "events", ALL, false);
    check("example.com", "widgets", ALL, true);
    let everywhere = Kind { namespaced: false, ..kind("example.com", "worlds", ALL) };
    assert_eq!(evaluator(&everywhere), None);
}

/// Whether an object that was so and is so now is a reason to count.
#[track_caller]
fn check(evaluator: Evaluator, old: Option<Value>, object: Value, expected: bool) {
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let change =
        Change::Applied { object: Arc::new(object), old: old.map(Arc::new), initial: false };
    assert_eq!(counts_otherwise(&change, &evaluator, now), expected, "{change:?}");
}

fn pod(phase: &str) -> Value {
    json!({ "spec": { "containers": [{ "name": "a" }] }, "status": { "phase": phase } })
}

#[test]
fn a_pod_that_ends_is_a_reason_to_count() {
    check(Evaluator::Pods, None, pod("Running"), false);
    check(Evaluator::Pods, Some(pod("Pending")), pod("Running"), false);
    check(Evaluator::Pods, Some(pod("Running")), pod("Succeeded"), true);
    check(Evaluator::Pods, None, pod("Succeeded"), false);
}

#[test]
fn a_pod_that_gets_an_end_changes_its_scope() {
    let ends = json!({ "spec": { "activeDeadlineSeconds": 1 } });
    check(Evaluator::Pods, Some(json!({ "spec": {} })), ends, true);
}

#[test]
fn a_service_that_gives_up_its_ports_is_a_reason_to_count() {
    let service = |kind: &str| json!({ "spec": { "type": kind, "ports": [{ "port": 1 }] } });
    check(Evaluator::Services, Some(service("NodePort")), service("ClusterIP"), true);
    check(Evaluator::Services, Some(service("ClusterIP")), service("ExternalName"), false);
}
