use serde_json::{Value, json};

use super::*;

fn pod(spec: Value, status: Value) -> Pod {
    let metadata = json!({ "name": "a", "namespace": "n", "labels": { "app": "web" } });
    let pod = json!({ "metadata": metadata, "spec": spec, "status": status });
    serde_json::from_value(pod).expect("a pod")
}

fn service(spec: Value) -> Service {
    let metadata = json!({ "name": "web", "namespace": "n" });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).expect("a service")
}

fn containers() -> Value {
    json!({ "containers": [{ "name": "a", "ports": [
        { "name": "http", "containerPort": 80 },
        { "name": "dns", "containerPort": 53, "protocol": "UDP" },
    ] }] })
}

#[test]
fn a_service_selects_pods_that_have_all_its_labels() {
    let pod = pod(containers(), json!({}));
    let check = |selector: Value, expected| {
        assert_eq!(selects(&service(json!({ "selector": selector })), &pod), expected);
    };
    check(json!({ "app": "web" }), true);
    check(json!({}), true);
    check(json!(null), false);
    check(json!({ "app": "db" }), false);
    check(json!({ "app": "web", "tier": "front" }), false);
}

#[test]
fn a_named_port_is_looked_for_in_containers_and_sidecars() {
    let mut spec = containers();
    spec["initContainers"] = json!([
        { "name": "once", "ports": [{ "name": "early", "containerPort": 1 }] },
        {
            "name": "beside", "restartPolicy": "Always",
            "ports": [{ "name": "proxy", "containerPort": 15001 }],
        },
    ]);
    let pod = pod(spec, json!({}));
    let check = |port: Value, expected| {
        let port: ServicePort = serde_json::from_value(port).expect("a port");
        assert_eq!(target_port(&pod, &port), expected);
    };
    check(json!({ "port": 8080, "targetPort": "http" }), Some(80));
    check(json!({ "port": 8080, "targetPort": 81 }), Some(81));
    check(json!({ "port": 8080 }), Some(8080));
    check(json!({ "port": 53, "targetPort": "dns" }), None);
    check(json!({ "port": 53, "targetPort": "dns", "protocol": "UDP" }), Some(53));
    check(json!({ "port": 80, "targetPort": "proxy" }), Some(15001));
    check(json!({ "port": 80, "targetPort": "early" }), None);
}

#[test]
fn addresses_are_written_as_usual_and_sorted_by_family() {
    let addresses =
        json!([{ "ip": "010.001.2.3" }, { "ip": "FD00::0:1" }, { "ip": "::ffff:1.2.3.4" }]);
    let pod = pod(containers(), json!({ "podIPs": addresses }));
    let of = |family| self::addresses(&pod, family).collect::<Vec<_>>();
    assert_eq!(of(Family::V4), ["10.1.2.3", "1.2.3.4"]);
    assert_eq!(of(Family::V6), ["fd00::1"]);
}

#[test]
fn a_pod_that_is_over_or_has_no_address_is_not_there() {
    let check = |status: Value, with_terminating, expected| {
        assert_eq!(is_present(&pod(containers(), status), with_terminating), expected);
    };
    check(json!({ "podIP": "10.0.0.1" }), false, true);
    check(json!({}), true, false);
    check(json!({ "podIP": "10.0.0.1", "phase": "Succeeded" }), true, false);
    let mut ending = pod(containers(), json!({ "podIP": "10.0.0.1" }));
    ending.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    assert!(is_present(&ending, true) && !is_present(&ending, false));
}

#[test]
fn families_are_guessed_where_they_are_not_told() {
    let check = |spec: Value, expected: &[Family]| assert_eq!(families(&service(spec)), expected);
    check(json!({ "ipFamilies": ["IPv6"] }), &[Family::V6]);
    check(json!({ "ipFamilies": ["IPv6", "IPv4"] }), &[Family::V4, Family::V6]);
    check(json!({ "clusterIP": "fd00::1" }), &[Family::V6]);
    check(json!({ "clusterIP": "None" }), &[Family::V4, Family::V6]);
}

#[test]
fn only_what_endpoints_tell_makes_a_change_matter() {
    let service = service(json!({ "selector": { "app": "web" } }));
    let check = |old: Value, new: Value, expected| {
        let of = |status| std::sync::Arc::new(pod(containers(), status));
        let change = Change::Applied { object: of(new), old: Some(of(old)), initial: false };
        assert_eq!(matters(&change, &service), expected);
    };
    let ready = |status: &str| json!({ "conditions": [{ "type": "Ready", "status": status }] });
    check(ready("False"), ready("True"), true);
    check(json!({}), json!({ "podIPs": [{ "ip": "10.0.0.1" }] }), true);
    check(json!({}), json!({ "hostIP": "10.0.0.1" }), false);
}
