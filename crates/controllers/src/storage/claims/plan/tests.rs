use serde_json::{Value, json};

use super::*;

fn claim(metadata: Value, spec: Value) -> PersistentVolumeClaim {
    let mut all = json!({ "name": "c", "namespace": "n", "uid": "u" });
    for (key, value) in metadata.as_object().expect("metadata") {
        all[key] = value.clone();
    }
    let mut wanted = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "slow",
        "resources": { "requests": { "storage": "1Gi" } },
    });
    for (key, value) in spec.as_object().expect("a spec") {
        wanted[key] = value.clone();
    }
    serde_json::from_value(json!({ "metadata": all, "spec": wanted })).expect("a claim")
}

fn volume(claim: Value) -> PersistentVolume {
    let spec = json!({
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
        "storageClassName": "slow", "claimRef": claim,
    });
    let status = json!({ "phase": "Available" });
    serde_json::from_value(json!({ "metadata": { "name": "v" }, "spec": spec, "status": status }))
        .expect("one")
}

fn class(name: &str, provisioner: &str, mode: &str, default: &str) -> StorageClass {
    let metadata = json!({ "name": name, "annotations": { DEFAULT[0]: default } });
    let class =
        json!({ "metadata": metadata, "provisioner": provisioner, "volumeBindingMode": mode });
    serde_json::from_value(class).expect("a class")
}

/// A claim, the volumes and classes there are, and what to do.
#[track_caller]
fn check(
    claim: &PersistentVolumeClaim,
    volumes: &[PersistentVolume],
    classes: &[StorageClass],
    expected: Step<'_>,
) {
    let volumes: Vec<&PersistentVolume> = volumes.iter().collect();
    let classes: Vec<&StorageClass> = classes.iter().collect();
    assert_eq!(plan(claim, &volumes, &classes, &[]), expected);
}

fn wait(event: Event) -> Step<'static> {
    Step::Wait(Some(event))
}

#[test]
fn a_claim_gets_a_volume_that_is_there() {
    let volumes = [volume(json!(null))];
    check(&claim(json!({}), json!({})), &volumes, &[], Step::Bind(&volumes[0]));
    check(&claim(json!({}), json!({ "volumeName": "v" })), &volumes, &[], Step::Bind(&volumes[0]));
    let other = [volume(json!({ "name": "x", "namespace": "n", "uid": "y" }))];
    let taken = Event::warning("FailedBinding", "volume \"v\" already bound to a different claim.");
    check(&claim(json!({}), json!({ "volumeName": "v" })), &other, &[], wait(taken));
    check(&claim(json!({}), json!({ "volumeName": "w" })), &volumes, &[], Step::Wait(None));
    let small = claim(json!({}), json!({ "volumeName": "v", "storageClassName": "fast" }));
    let why = "Cannot bind to requested volume \"v\": storageClassName does not match";
    check(&small, &volumes, &[], wait(Event::warning("VolumeMismatch", why)));
}

#[test]
fn without_one_it_has_one_provided() {
    let plain = claim(json!({}), json!({}));
    let note = "Waiting for a volume to be created either by the external provisioner 'p' or manually \
                by the system administrator. If volume creation is delayed, please verify that the \
                provisioner is running and correctly registered.";
    let ask = || Step::Ask {
        provisioner: "p".to_owned(),
        event: Event::normal("ExternalProvisioning", note),
    };
    check(&plain, &[], &[class("slow", "p", "Immediate", "false")], ask());
    let missing = "storageclass.storage.k8s.io \"slow\" not found";
    check(&plain, &[], &[], wait(Event::warning("ProvisioningFailed", missing)));
    let none = "no volume plugin matched name: kubernetes.io/no-provisioner";
    let by_hand = [class("slow", "kubernetes.io/no-provisioner", "Immediate", "false")];
    check(&plain, &[], &by_hand, wait(Event::warning("ProvisioningFailed", none)));

    let delayed = [class("slow", "p", "WaitForFirstConsumer", "false")];
    let consumer = "waiting for first consumer to be created before binding";
    check(&plain, &[], &delayed, wait(Event::normal("WaitForFirstConsumer", consumer)));
    let chosen = claim(json!({ "annotations": { SELECTED_NODE: "node" } }), json!({}));
    check(&chosen, &[], &delayed, ask());
}

#[test]
fn without_a_class_it_gets_the_default_if_there_is_one() {
    let plain = claim(json!({}), json!({ "storageClassName": null }));
    let classes =
        [class("fast", "p", "Immediate", "false"), class("slow", "p", "Immediate", "true")];
    check(&plain, &[], &classes, Step::Class("slow".to_owned()));
    let note = "no persistent volumes available for this claim and no storage class is set";
    check(&plain, &[], &classes[..1], wait(Event::normal("FailedBinding", note)));
    let none = claim(json!({}), json!({ "storageClassName": "" }));
    check(&none, &[], &classes, wait(Event::normal("FailedBinding", note)));
}

#[test]
fn a_claim_that_was_bound_can_lose_its_volume() {
    let bound = |name: Value| {
        claim(json!({ "annotations": { BIND_COMPLETED: "yes" } }), json!({ "volumeName": name }))
    };
    let lost = |reason: &str, note: &str| Step::Lose(Event::warning(reason, note));
    let gone = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    check(&bound(json!("v")), &[], &[], lost("ClaimLost", gone));
    let other = [volume(json!({ "name": "c", "namespace": "n", "uid": "before" }))];
    let twice = "Two claims are bound to the same volume, this one is bound incorrectly";
    check(&bound(json!("v")), &other, &[], lost("ClaimMisbound", twice));
    let own = [volume(json!({ "name": "c", "namespace": "n", "uid": "u" }))];
    check(&bound(json!("v")), &own, &[], Step::Bind(&own[0]));
}

#[test]
fn both_name_each_other() {
    let mut claim = claim(json!({}), json!({}));
    let mut volume = volume(json!(null));
    assert!(claim_volume(&mut volume, &claim));
    assert!(!claim_volume(&mut volume, &claim));
    let reference = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "c", "namespace": "n", "uid": "u",
    });
    assert_eq!(json!(matching::claim_of(&volume)), reference);
    assert_eq!(json!(volume.metadata.annotations), json!({ BOUND_BY_CONTROLLER: "yes" }));
    bind_claim(&mut claim, &volume);
    let annotations = json!({ BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes" });
    assert_eq!(json!(claim.metadata.annotations), annotations);
    let status = json!({
        "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
    });
    assert_eq!(json!(claim.status), status);
    let bound = claim.clone();
    bind_claim(&mut claim, &volume);
    assert_eq!(claim, bound);
}
