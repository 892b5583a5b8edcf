use jiff::SignedDuration;
use k8s_openapi::api::core::v1::NamespaceCondition;
use serde_json::{Value, json};

use super::*;

fn kind(group: &str, plural: &str) -> Kind {
    Kind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: "Any".to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
        verbs: Vec::new(),
    }
}

fn left(objects: usize, finalizers: &[&str], grace: u64) -> Leftover {
    let finalizers = finalizers.iter().map(|finalizer| (*finalizer).to_owned());
    Leftover::new(objects, finalizers, Duration::from_secs(grace), true)
}

/// The conditions that are not well, as `type: reason: message`.
fn ill(conditions: &[NamespaceCondition]) -> Vec<String> {
    let ill = conditions.iter().filter(|condition| condition.status == "True");
    let line = |condition: &NamespaceCondition| {
        let (reason, message) = (text(&condition.reason), text(&condition.message));
        format!("{}: {reason}: {message}", condition.type_)
    };
    ill.map(line).collect()
}

#[track_caller]
fn check(findings: &Findings, expected: &[&str]) {
    let conditions = conditions::update(&[], findings, Timestamp::UNIX_EPOCH).expect("new ones");
    assert_eq!(conditions.len(), 5);
    assert_eq!(ill(&conditions), expected);
}

#[test]
fn an_empty_namespace_is_well() {
    let mut findings = Findings::new(&[]);
    findings.add_pods(&kind("", "pods"), Ok(left(0, &[], 30)));
    findings.add(&kind("", "secrets"), Ok(left(0, &[], 0)));
    check(&findings, &[]);
    assert!(findings.is_empty());
}

#[test]
fn what_remains_is_counted() {
    let mut findings = Findings::new(&[]);
    findings.add(&kind("", "secrets"), Ok(left(2, &["a.com/x", "a.com/x", "b.com/y"], 0)));
    findings.add(&kind("apps", "deployments"), Ok(left(1, &["a.com/x"], 0)));
    check(
        &findings,
        &[
            "NamespaceContentRemaining: SomeResourcesRemain: Some resources are remaining: \
             deployments.apps has 1 resource instances, secrets. has 2 resource instances",
            "NamespaceFinalizersRemaining: SomeFinalizersRemain: Some content in the namespace has \
             finalizers remaining: a.com/x in 3 resource instances, b.com/y in 1 resource instances",
        ],
    );
    assert!(!findings.is_empty() && findings.patience().is_none());
}

#[test]
fn failures_are_listed_in_order() {
    let mut findings = Findings::new(&["m.io/v1".to_owned()]);
    findings.add(&kind("", "secrets"), Err("two".to_owned()));
    findings.add(&kind("", "services"), Err("one".to_owned()));
    check(
        &findings,
        &[
            "NamespaceDeletionDiscoveryFailure: DiscoveryFailed: Discovery failed for some groups, \
             1 failing: unable to retrieve the complete list of server APIs: m.io/v1: stale \
             GroupVersion discovery: m.io/v1",
            "NamespaceDeletionContentFailure: ContentDeletionFailed: Failed to delete all resource \
             types, 2 remaining: one, two",
        ],
    );
}

#[test]
fn while_pods_end_nothing_else_is_told() {
    let mut findings = Findings::new(&[]);
    findings.add_pods(&kind("", "pods"), Ok(left(1, &["a.com/x"], 30)));
    check(&findings, &[]);
    assert!(findings.waits_for_pods() && !findings.is_empty());
    assert_eq!(findings.patience(), Some(Duration::from_secs(30)));
}

#[test]
fn a_condition_that_stays_keeps_its_time() {
    let later = Timestamp::from_second(60).expect("a time");
    let well = Findings::new(&[]);
    let before = conditions::update(&[], &well, Timestamp::UNIX_EPOCH).expect("new ones");
    assert_eq!(conditions::update(&before, &well, later), None);
    let mut findings = Findings::new(&[]);
    findings.add(&kind("", "secrets"), Err("no".to_owned()));
    let after = conditions::update(&before, &findings, later).expect("one changed");
    let times: Vec<i64> = after
        .iter()
        .filter_map(|condition| condition.last_transition_time.as_ref())
        .map(|time| time.0.as_second())
        .collect();
    assert_eq!(times, [0, 0, 60, 0, 0]);
}

#[test]
fn pods_have_the_longest_of_their_graces_once() {
    let pod = |phase: &str, seconds: Value| -> Pod {
        let spec = json!({ "terminationGracePeriodSeconds": seconds, "containers": [] });
        let pod = json!({ "spec": spec, "status": { "phase": phase } });
        serde_json::from_value(pod).expect("a pod")
    };
    let pods = [pod("Running", json!(10)), pod("Pending", json!(30)), pod("Succeeded", json!(600))];
    assert_eq!(grace(&pods, SignedDuration::from_secs(29)), Duration::from_secs(30));
    assert_eq!(grace(&pods, SignedDuration::from_secs(30)), Duration::ZERO);
    assert_eq!(grace(&[], SignedDuration::ZERO), Duration::ZERO);
}
