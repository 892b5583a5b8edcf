use std::sync::Arc;

use serde_json::{Value, json};

use super::Owner::{Absent, Solid, Waiting};
use super::*;
use crate::kinds::Kind;

/// An object with owners `0`, `1`, ...
fn object(owners: usize, blocking: bool, finalizers: Value) -> ObjectMeta {
    let reference = |n: usize| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": n.to_string(),
            "blockOwnerDeletion": blocking,
        })
    };
    let references: Vec<Value> = (0..owners).map(reference).collect();
    let object = json!({ "ownerReferences": references, "finalizers": finalizers });
    serde_json::from_value(object).expect("metadata")
}

fn dependent(waits: bool) -> Node {
    let kind = Kind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
        namespaced: true,
        verbs: Vec::new(),
    };
    let node = Node::read(&Arc::new(kind), &ObjectMeta::default());
    Node { deleting: waits, foreground: waits, ..node }
}

#[track_caller]
fn check(owners: &[Owner], dependents: &[Node], expected: Verdict) {
    let object = object(owners.len(), true, json!([]));
    assert_eq!(judge(&object, owners, dependents), expected);
}

#[test]
fn without_owners_nothing_is_garbage() {
    check(&[], &[], Verdict::Keep);
}

#[test]
fn one_solid_owner_is_enough() {
    check(&[Solid], &[], Verdict::Keep);
    check(&[Solid, Solid], &[dependent(false)], Verdict::Keep);
}

#[test]
fn references_to_the_gone_and_the_going_are_removed() {
    let gone = vec!["0".to_owned(), "2".to_owned()];
    check(&[Absent, Solid, Waiting], &[], Verdict::Release(gone));
}

#[test]
fn without_a_solid_owner_an_object_goes() {
    check(&[Absent, Absent], &[], Verdict::Delete(PropagationPolicy::Background));
    // Its owner waits for it, and nothing waits for it in turn.
    check(&[Waiting, Absent], &[], Verdict::Delete(PropagationPolicy::Background));
}

#[test]
fn the_foreground_goes_down_to_the_leaves() {
    let leaves = [dependent(false)];
    check(&[Waiting], &leaves, Verdict::Delete(PropagationPolicy::Foreground));
}

#[test]
fn a_circle_of_waiting_is_broken() {
    let circle = [dependent(false), dependent(true)];
    check(&[Waiting], &circle, Verdict::Unblock);
    // Once it blocks nobody it goes like others.
    let object = object(1, false, json!([]));
    let verdict = judge(&object, &[Waiting], &circle);
    assert_eq!(verdict, Verdict::Delete(PropagationPolicy::Foreground));
}

#[test]
fn a_policy_that_was_asked_for_before_holds() {
    for (finalizer, policy) in [
        (ORPHAN, PropagationPolicy::Orphan),
        (FOREGROUND, PropagationPolicy::Foreground),
        ("example.com/any", PropagationPolicy::Background),
    ] {
        let object = object(1, true, json!([finalizer]));
        assert_eq!(judge(&object, &[Absent], &[]), Verdict::Delete(policy));
    }
}
