use serde_json::{Value, json};

use super::*;

fn endpoints(subsets: Value) -> Endpoints {
    let metadata = json!({
        "name": "db", "namespace": "n", "uid": "e", "labels": { "of": "db" },
        "annotations": { "keep": "me", TRIGGER_TIME: "then", LAST_APPLIED: "{}" },
    });
    serde_json::from_value(json!({ "metadata": metadata, "subsets": subsets })).expect("endpoints")
}

fn planned(subsets: Value, existing: &[EndpointSlice]) -> Plan {
    plan(&endpoints(subsets), &existing.iter().collect::<Vec<_>>())
}

#[test]
fn a_slice_says_what_endpoints_say() {
    let subsets = json!([{
        "addresses": [{ "ip": "10.0.0.1", "hostname": "a" }],
        "notReadyAddresses": [{ "ip": "10.0.0.2" }, { "ip": "fd00::1" }],
        "ports": [{ "port": 5432 }],
    }]);
    let plan = planned(subsets.clone(), &[]);
    let owner = json!({
        "apiVersion": "v1", "kind": "Endpoints", "name": "db", "uid": "e",
        "controller": true, "blockOwnerDeletion": true,
    });
    let metadata = json!({
        "generateName": "db-",
        "namespace": "n",
        "annotations": { "keep": "me" },
        "labels": { "of": "db", SERVICE_NAME: "db", MANAGED_BY: MANAGER },
        "ownerReferences": [owner],
    });
    let slice = |family: &str, endpoints: Value| {
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata,
            "addressType": family, "endpoints": endpoints,
            "ports": [{ "name": "", "port": 5432, "protocol": "TCP" }],
        })
    };
    let expected = json!([
        slice(
            "IPv4",
            json!([
                { "addresses": ["10.0.0.1"], "conditions": { "ready": true }, "hostname": "a" },
                { "addresses": ["10.0.0.2"], "conditions": { "ready": false } },
            ])
        ),
        slice("IPv6", json!([{ "addresses": ["fd00::1"], "conditions": { "ready": false } }])),
    ]);
    assert_eq!(json!(plan.changes.create), expected);

    let mut stored = plan.changes.create;
    for (slice, name) in stored.iter_mut().zip(["a", "b"]) {
        slice.metadata.name = Some(name.to_owned());
    }
    assert_eq!(planned(subsets, &stored), Plan::default());
    let plan = planned(
        json!([{ "addresses": [{ "ip": "10.0.0.9" }], "ports": [{ "port": 5432 }] }]),
        &stored,
    );
    let names = |slices: &[EndpointSlice]| {
        slices.iter().map(|slice| text(&slice.metadata.name).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names(&plan.changes.update), names(&plan.changes.delete)),
        (vec!["a".into()], vec!["b".into()])
    );
}

#[test]
fn what_is_no_address_is_left_out_and_told() {
    let plan =
        planned(json!([{ "addresses": [{ "ip": "db.example.com" }, { "ip": "10.0.0.1" }] }]), &[]);
    assert_eq!((plan.invalid, plan.skipped, plan.changes.create.len()), (1, 1, 1));
}

#[test]
fn no_more_are_mirrored_than_a_slice_can_hold() {
    let addresses: Vec<Value> =
        (0..1001).map(|n| json!({ "ip": format!("10.0.{}.{}", n / 256, n % 256) })).collect();
    let plan = planned(json!([{ "addresses": addresses }]), &[]);
    assert_eq!((plan.invalid, plan.skipped), (0, 1));
    assert_eq!(pack::endpoints(&plan.changes.create[0]).len(), ADDRESSES_MAX);
}

#[test]
fn endpoints_are_mirrored_for_services_that_select_nothing() {
    let service = |selector: Value| -> Service {
        serde_json::from_value(json!({ "spec": { "selector": selector } })).expect("a service")
    };
    let plain = endpoints(json!([]));
    assert!(is_mirrored(&plain, Some(&service(json!(null)))));
    assert!(!is_mirrored(&plain, Some(&service(json!({ "app": "db" })))));
    assert!(!is_mirrored(&plain, None));
    let mut skipped = plain.clone();
    skipped.metadata.labels.get_or_insert_default().insert(SKIP.into(), "true".into());
    assert!(!is_mirrored(&skipped, Some(&service(json!(null)))));
    let mut lock = plain;
    lock.metadata.annotations.get_or_insert_default().insert(LOCK.into(), "{}".into());
    assert!(!is_mirrored(&lock, Some(&service(json!(null)))));
}
