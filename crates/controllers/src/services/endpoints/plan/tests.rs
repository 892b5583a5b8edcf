use serde_json::{Value, json};

use super::*;

fn service(spec: Value) -> Service {
    let metadata = json!({ "name": "web", "namespace": "n", "labels": { "of": "web" } });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).expect("a service")
}

fn pod(name: &str, address: &str, ready: &str) -> Pod {
    let pod = json!({
        "metadata": { "name": name, "namespace": "n", "uid": name },
        "spec": { "nodeName": "node", "containers": [] },
        "status": {
            "podIP": address, "podIPs": [{ "ip": address }],
            "conditions": [{ "type": "Ready", "status": ready }],
        },
    });
    serde_json::from_value(pod).expect("a pod")
}

fn address(name: &str, address: &str) -> Value {
    let target = json!({ "kind": "Pod", "namespace": "n", "name": name, "uid": name });
    json!({ "ip": address, "nodeName": "node", "targetRef": target })
}

fn ports() -> Value {
    json!([{ "name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP" }])
}

/// A Service and its pods, and the subsets there should be.
#[track_caller]
fn check(spec: Value, pods: &[Pod], expected: Value) {
    let pods: Vec<&Pod> = pods.iter().collect();
    let planned = plan(&service(spec), &pods, None, None).expect("they are not there yet");
    let subsets = serde_json::to_value(planned.subsets).expect("JSON");
    assert_eq!(subsets, expected);
}

#[test]
fn pods_are_sorted_by_whether_they_are_ready() {
    let port = json!([{ "name": "http", "port": 8080, "protocol": "TCP" }]);
    check(
        json!({ "clusterIP": "10.9.0.1", "ports": ports() }),
        &[
            pod("a", "10.0.0.2", "True"),
            pod("b", "10.0.0.1", "False"),
            pod("c", "10.0.0.3", "True"),
        ],
        json!([{
            "addresses": [address("a", "10.0.0.2"), address("c", "10.0.0.3")],
            "notReadyAddresses": [address("b", "10.0.0.1")],
            "ports": port,
        }]),
    );
    check(
        json!({ "clusterIP": "10.9.0.1", "ports": ports(), "publishNotReadyAddresses": true }),
        &[pod("b", "10.0.0.1", "False")],
        json!([{ "addresses": [address("b", "10.0.0.1")], "ports": port }]),
    );
}

#[test]
fn a_headless_service_needs_no_ports() {
    let pods = [pod("a", "10.0.0.1", "True")];
    let addresses = json!([{ "addresses": [address("a", "10.0.0.1")] }]);
    check(json!({ "clusterIP": "None" }), &pods, addresses);
    check(json!({ "clusterIP": "10.9.0.1" }), &pods, json!([]));
}

#[test]
fn a_pod_without_an_address_of_the_family_is_left_out() {
    let spec = json!({ "clusterIP": "fd00::9", "ipFamilies": ["IPv6"], "ports": ports() });
    check(spec, &[pod("a", "10.0.0.1", "True")], json!([]));
}

#[test]
fn they_are_labelled_as_their_service_and_written_once() {
    let service = service(json!({ "clusterIP": "None" }));
    let pods = [pod("a", "10.0.0.1", "True")];
    let pods: Vec<&Pod> = pods.iter().collect();
    let time = "2026-01-01T00:00:00Z".parse().ok();
    let made = plan(&service, &pods, None, time).expect("made");
    let labels = json!({
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
        "of": "web",
        "service.kubernetes.io/headless": "",
    });
    assert_eq!(json!(made.metadata.labels), labels);
    assert_eq!(json!(made.metadata.annotations), json!({ TRIGGER_TIME: "2026-01-01T00:00:00Z" }));
    assert_eq!(plan(&service, &pods, Some(&made), None), None);

    let changed = plan(&service, &[], Some(&made), None).expect("changed");
    assert_eq!(changed.subsets, Some(Vec::new()));
    assert_eq!(json!(changed.metadata.annotations), json!({}));
}

#[test]
fn people_are_told_of_what_was_cut_off() {
    let service = service(json!({ "clusterIP": "None" }));
    let pods: Vec<Pod> = (0..1001)
        .map(|n| pod(&n.to_string(), &format!("10.0.{}.{}", n / 256, n % 256), "True"))
        .collect();
    let pods: Vec<&Pod> = pods.iter().collect();
    let cut = plan(&service, &pods, None, None).expect("made");
    assert_eq!(json!(cut.metadata.annotations), json!({ OVER_CAPACITY: "truncated" }));
    assert_eq!(plan(&service, &pods, Some(&cut), None), None);
    let whole = plan(&service, &pods[1..], Some(&cut), None).expect("changed");
    assert_eq!(json!(whole.metadata.annotations), json!({}));
}
