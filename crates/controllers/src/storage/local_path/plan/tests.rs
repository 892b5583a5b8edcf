use serde_json::{Value, json};

use super::*;

fn claim(annotations: Value) -> PersistentVolumeClaim {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "volumeMode": "Filesystem",
        "resources": { "requests": { "storage": "1Gi" } },
    });
    let metadata = json!({ "name": "c", "namespace": "n", "uid": "u", "annotations": annotations });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).expect("a claim")
}

#[test]
fn claims_are_served_that_ask_for_it_and_have_nothing() {
    assert!(is_asked(&claim(json!({ PROVISIONER[0]: NAME }))));
    assert!(is_asked(&claim(json!({ PROVISIONER[1]: NAME }))));
    assert!(!is_asked(&claim(json!({ PROVISIONER[0]: "other" }))));
    assert!(!is_asked(&claim(json!({ PROVISIONER[0]: NAME, BIND_COMPLETED: "yes" }))));
}

#[test]
fn a_volume_is_a_directory_on_the_node_that_was_chosen() {
    let node = json!({ "metadata": { "name": "node", "labels": { HOSTNAME: "host" } } });
    let node: Node = serde_json::from_value(node).expect("a node");
    let volume = volume(&claim(json!({})), &standard_class(), Some(&node), Path::new("/volumes"));
    let requirement = json!({ "key": HOSTNAME, "operator": "In", "values": ["host"] });
    let expected = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": "pvc-u", "annotations": { PROVISIONED_BY: NAME } },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": { "storage": "1Gi" },
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "name": "c", "namespace": "n", "uid": "u",
            },
            "hostPath": { "path": "/volumes/pvc-u_n_c", "type": "DirectoryOrCreate" },
            "nodeAffinity": {
                "required": { "nodeSelectorTerms": [{ "matchExpressions": [requirement] }] },
            },
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "standard",
            "volumeMode": "Filesystem",
        },
    });
    assert_eq!(json!(volume), expected);
}

#[test]
fn only_directories_that_were_made_here_are_deleted() {
    let root = Path::new("/volumes");
    let check = |path: &str, phase: &str, by: &str, expected: bool| {
        let volume = json!({
            "metadata": { "annotations": { PROVISIONED_BY: by } },
            "spec": { "hostPath": { "path": path }, "persistentVolumeReclaimPolicy": "Delete" },
            "status": { "phase": phase },
        });
        let volume: PersistentVolume = serde_json::from_value(volume).expect("a volume");
        assert_eq!(released(&volume, root), expected.then(|| PathBuf::from(path)));
    };
    check("/volumes/pvc-u_n_c", "Released", NAME, true);
    check("/volumes/pvc-u_n_c", "Bound", NAME, false);
    check("/volumes/pvc-u_n_c", "Released", "other", false);
    check("/etc/pvc-x", "Released", NAME, false);
    check("/volumes/other", "Released", NAME, false);
    check("/volumes/pvc-x/../..", "Released", NAME, false);
}
