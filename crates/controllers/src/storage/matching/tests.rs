use serde_json::{Value, json};

use super::*;

fn volume(name: &str, size: &str, modes: &[&str], more: Value) -> PersistentVolume {
    let mut spec = json!({ "capacity": { "storage": size }, "accessModes": modes, "storageClassName": "slow" });
    for (key, value) in more.as_object().expect("more") {
        spec[key] = value.clone();
    }
    let volume = json!({
        "metadata": { "name": name, "labels": { "disk": name } }, "spec": spec,
        "status": { "phase": "Available" },
    });
    serde_json::from_value(volume).expect("a volume")
}

fn claim(more: Value) -> PersistentVolumeClaim {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "slow",
        "resources": { "requests": { "storage": "5Gi" } },
    });
    for (key, value) in more.as_object().expect("more") {
        spec[key] = value.clone();
    }
    let metadata = json!({ "name": "c", "namespace": "n", "uid": "u" });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).expect("a claim")
}

/// What a claim asks for, the volumes there are, and the one that it gets.
#[track_caller]
fn check(more: Value, volumes: &[PersistentVolume], is_delayed: bool, expected: Option<&str>) {
    let volumes: Vec<&PersistentVolume> = volumes.iter().collect();
    let found = find(&claim(more), &volumes, is_delayed);
    assert_eq!(found.map(|volume| text(&volume.metadata.name)), expected);
}

const ONE: &[&str] = &["ReadWriteOnce"];

#[test]
fn the_smallest_that_suffices_is_taken() {
    let volumes = [
        volume("small", "1Gi", ONE, json!({})),
        volume("large", "20Gi", ONE, json!({})),
        volume("right", "6Gi", ONE, json!({})),
        volume("shared", "5Gi", &["ReadWriteOnce", "ReadWriteMany"], json!({})),
    ];
    check(json!({}), &volumes, false, Some("right"));
    check(json!({ "accessModes": ["ReadWriteMany"] }), &volumes, false, Some("shared"));
    check(
        json!({ "selector": { "matchLabels": { "disk": "large" } } }),
        &volumes,
        false,
        Some("large"),
    );
    check(json!({ "storageClassName": "fast" }), &volumes, false, None);
    check(json!({ "volumeMode": "Block" }), &volumes, false, None);
    check(json!({}), &volumes, true, None);
}

#[test]
fn a_volume_that_names_the_claim_is_taken_first() {
    let reference = json!({ "name": "c", "namespace": "n" });
    let own = volume("own", "50Gi", ONE, json!({ "claimRef": reference }));
    let other =
        volume("other", "5Gi", ONE, json!({ "claimRef": { "name": "x", "namespace": "n" } }));
    let volumes = [volume("free", "5Gi", ONE, json!({})), own, other];
    check(json!({}), &volumes, false, Some("own"));
    check(json!({}), &volumes, true, Some("own"));
    check(json!({ "storageClassName": "fast" }), &volumes[2..], false, None);
}

#[test]
fn a_volume_that_is_asked_for_by_name_must_suit() {
    let check = |more: Value, size: &str, expected: Option<&str>| {
        let found = mismatch(&volume("v", size, ONE, json!({})), &claim(more));
        assert_eq!(found.as_deref(), expected);
    };
    check(json!({}), "5Gi", None);
    check(json!({}), "4Gi", Some("requested PV is too small"));
    check(json!({ "storageClassName": "" }), "5Gi", Some("storageClassName does not match"));
    check(json!({ "volumeMode": "Block" }), "5Gi", Some("incompatible volumeMode"));
    check(json!({ "accessModes": ["ReadOnlyMany"] }), "5Gi", Some("incompatible accessMode"));
}
