use serde_json::{Value, json};

use super::*;

fn service(spec: Value) -> Service {
    let metadata = json!({
        "name": "web", "namespace": "n", "uid": "s", "labels": { "of": "web", MANAGED_BY: "me" },
    });
    let mut spec = spec;
    if spec.get("ipFamilies").is_none() {
        spec["ipFamilies"] = json!(["IPv4"]);
    }
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).expect("a service")
}

fn pod(name: &str, address: &str) -> Pod {
    let pod = json!({
        "metadata": { "name": name, "namespace": "n", "uid": name },
        "spec": { "nodeName": "node", "containers": [] },
        "status": {
            "podIP": address, "podIPs": [{ "ip": address }],
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    serde_json::from_value(pod).expect("a pod")
}

fn http() -> Value {
    json!({
        "clusterIP": "10.9.0.1",
        "ports": [{ "name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP" }],
    })
}

fn planned(service: &Service, pods: &[Pod], existing: &[EndpointSlice]) -> Plan {
    let pods: Vec<&Pod> = pods.iter().collect();
    let existing: Vec<&EndpointSlice> = existing.iter().collect();
    let zones = Zones::from([("node".to_owned(), Some("west".to_owned()))]);
    plan(service, &pods, &zones, &existing, None)
}

/// What a server would make of the first slice to be created.
fn stored(plan: &Plan) -> EndpointSlice {
    let mut slice = plan.changes.create[0].clone();
    slice.metadata.name = Some("web-x".to_owned());
    slice
}

#[test]
fn a_slice_says_all_of_a_pod() {
    let plan = planned(&service(http()), &[pod("a", "10.0.0.1")], &[]);
    let owner = json!({
        "apiVersion": "v1", "kind": "Service", "name": "web", "uid": "s",
        "controller": true, "blockOwnerDeletion": true,
    });
    let expected = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": "web-",
            "namespace": "n",
            "annotations": {},
            "labels": { "of": "web", SERVICE_NAME: "web", MANAGED_BY: MANAGER },
            "ownerReferences": [owner],
        },
        "addressType": "IPv4",
        "endpoints": [{
            "addresses": ["10.0.0.1"],
            "conditions": { "ready": true, "serving": true, "terminating": false },
            "nodeName": "node",
            "targetRef": { "kind": "Pod", "namespace": "n", "name": "a", "uid": "a" },
            "zone": "west",
        }],
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
    });
    assert_eq!(json!(plan.changes.create), json!([expected]));
}

#[test]
fn a_pod_that_ends_serves_and_is_not_ready() {
    let mut ending = pod("a", "10.0.0.1");
    ending.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    let check = |spec: Value, ready: bool| {
        let plan = planned(&service(spec), std::slice::from_ref(&ending), &[]);
        let conditions = json!({ "ready": ready, "serving": true, "terminating": true });
        assert_eq!(json!(pack::endpoints(&stored(&plan))[0].conditions), conditions);
    };
    check(http(), false);
    let mut eager = http();
    eager["publishNotReadyAddresses"] = json!(true);
    check(eager, true);
}

#[test]
fn a_service_without_pods_has_one_empty_slice() {
    let service = service(http());
    let plan = planned(&service, &[], &[]);
    let slice = stored(&plan);
    assert_eq!((pack::endpoints(&slice).len(), slice.ports.clone()), (0, Some(Vec::new())));
    assert_eq!(planned(&service, &[], std::slice::from_ref(&slice)), Plan::default());

    let plan = planned(&service, &[pod("a", "10.0.0.1")], &[slice]);
    assert_eq!((plan.changes.create.len(), plan.changes.delete.len()), (0, 0));
    assert_eq!(plan.changes.update[0].metadata.name.as_deref(), Some("web-x"));
}

#[test]
fn what_is_right_is_left_alone() {
    let service = service(http());
    let pods = [pod("a", "10.0.0.1")];
    let slice = stored(&planned(&service, &pods, &[]));
    assert_eq!(planned(&service, &pods, &[slice]), Plan::default());
}

#[test]
fn slices_of_a_service_of_the_same_name_before_it_go() {
    let pods = [pod("a", "10.0.0.1")];
    let slice = stored(&planned(&service(http()), &pods, &[]));
    let mut again = service(http());
    again.metadata.uid = Some("t".to_owned());
    let plan = planned(&again, &pods, &[slice]);
    assert_eq!((plan.changes.create.len(), plan.changes.update.len()), (1, 0));
    assert_eq!(plan.changes.delete[0].metadata.name.as_deref(), Some("web-x"));
}

#[test]
fn each_family_has_slices_of_its_own() {
    let mut spec = http();
    spec["ipFamilies"] = json!(["IPv4", "IPv6"]);
    let plan = planned(&service(spec), &[pod("a", "10.0.0.1")], &[]);
    let families = plan.changes.create.iter().map(|it| it.address_type.as_str());
    assert_eq!(families.collect::<Vec<_>>(), ["IPv4", "IPv6"]);
    let old = stored(&plan);
    let mut spec = http();
    spec["ipFamilies"] = json!(["IPv6"]);
    let plan = planned(&service(spec), &[], &[old]);
    assert_eq!(plan.changes.delete[0].address_type, "IPv4");
}

#[test]
fn a_pod_on_a_node_that_is_not_there_waits() {
    let mut lost = pod("a", "10.0.0.1");
    lost.spec.as_mut().expect("a spec").node_name = Some("gone".to_owned());
    let plan = planned(&service(http()), std::slice::from_ref(&lost), &[]);
    assert_eq!(plan.homeless, [Homeless { pod: "a".to_owned(), node: "gone".to_owned() }]);
    assert!(pack::endpoints(&stored(&plan)).is_empty());
    let mut eager = http();
    eager["publishNotReadyAddresses"] = json!(true);
    let plan = planned(&service(eager), &[lost], &[]);
    assert_eq!(pack::endpoints(&stored(&plan)).len(), 1);
}

#[test]
fn a_service_that_goes_gets_nothing_new() {
    let mut going = service(http());
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    assert_eq!(planned(&going, &[pod("a", "10.0.0.1")], &[]), Plan::default());
}
