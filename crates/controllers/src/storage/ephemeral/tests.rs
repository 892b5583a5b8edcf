use serde_json::{Value, json};

use super::*;

fn pod(metadata: Value) -> Pod {
    let template = json!({
        "metadata": { "labels": { "of": "p" }, "annotations": { "why": "tests" } },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let mut pod = json!({
        "metadata": { "name": "p", "namespace": "d", "uid": "u" },
        "spec": { "containers": [], "volumes": [
            { "name": "plain", "emptyDir": {} },
            { "name": "data", "ephemeral": { "volumeClaimTemplate": template } },
        ] },
    });
    for (key, value) in metadata.as_object().into_iter().flatten() {
        pod["metadata"][key] = value.clone();
    }
    serde_json::from_value(pod).expect("a pod")
}

/// What is done about the only such volume of a pod, if a claim of its name has these owners.
fn planned(pod: &Pod, owners: Option<Value>) -> Plan {
    let known = owners.map(|owners| {
        let metadata = json!({ "name": "p-data", "namespace": "d", "ownerReferences": owners });
        serde_json::from_value(json!({ "metadata": metadata })).expect("a claim")
    });
    let volume = wanted(pod).next().expect("a volume");
    plan(pod, volume, known.as_ref())
}

fn owner(uid: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": true,
        "blockOwnerDeletion": true,
    })
}

#[test]
fn a_claim_is_made_of_its_template() {
    let Plan::Create(claim) = planned(&pod(json!({})), None) else { panic!("it is made") };
    let expected = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "p-data", "namespace": "d", "labels": { "of": "p" },
            "annotations": { "why": "tests" },
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    assert_eq!(json!(claim), expected);
}

#[test]
fn a_claim_that_is_there_is_the_pods_own_or_not_touched() {
    let pod = pod(json!({}));
    assert_eq!(planned(&pod, Some(json!([owner("u")]))), Plan::Nothing);
    let why = "PVC d/p-data was not created for pod d/p (pod is not owner)";
    for owners in [json!([]), json!([owner("another")])] {
        assert_eq!(planned(&pod, Some(owners)), Plan::Refuse(why.to_owned()));
    }
}

#[test]
fn a_pod_that_is_going_needs_no_claims() {
    let pod = pod(json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
    assert_eq!(wanted(&pod).count(), 0);
}
