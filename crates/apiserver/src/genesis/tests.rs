//! Compares what we start with to what upstream starts with.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Keep, Own, Proxy, Settings, objects};
use crate::fixtures;

/// What every time in a recording is.
const RECORDED_AT: Timestamp = Timestamp::constant(946_684_800, 0);

fn settings() -> Settings<'static> {
    Settings {
        now: RECORDED_AT,
        address: [10, 1, 2, 3].into(),
        port: 17_443,
        service_cidrs: &["10.0.0.0/24"],
        client_ca: Some("client"),
        proxy: Some(Proxy {
            ca: "proxy",
            allowed_names: &["front-proxy-client"],
            uid_headers: &["X-Remote-Uid"],
            username_headers: &["X-Remote-User"],
            group_headers: &["X-Remote-Group"],
            extra_prefixes: &["X-Remote-Extra-"],
        }),
        hostname: "vm",
        process: "865e4c03-0ade-4629-a970-b70d23848680",
    }
}

/// The kinds of which nothing depends on where a server runs.
const RECORDED: [&str; 6] = [
    "APIService",
    "FlowSchema",
    "Namespace",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "ServiceCIDR",
];

#[test]
fn a_fresh_server_holds_what_upstream_s_does() {
    let theirs = fixtures::load("genesis").into_iter().flat_map(|case| case.steps);
    let theirs = theirs.map(|step| step.answer.body.expect("each step reads an object"));
    let theirs: BTreeMap<String, Value> = theirs.map(|object| keyed(&object)).collect();
    let ours = objects(&settings()).into_iter().map(|own| own.object);
    let ours = ours.filter(|object| RECORDED.contains(&object["kind"].as_str().unwrap_or("")));
    let ours: BTreeMap<String, Value> = ours.map(|object| keyed(&object)).collect();

    let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs));
    for (key, object) in &ours {
        assert_eq!(*object, theirs[key], "{key}");
    }
}

/// By kind and name, without what the server adds to every object.
fn keyed(object: &Value) -> (String, Value) {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().expect("an object has metadata");
    for added in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        metadata.shift_remove(added);
    }
    // A recording keeps the time at which that server started.
    for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastTransitionTime"] = json!("2000-01-01T00:00:00Z");
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"])), object)
}

fn find(kind: &str, name: &str) -> Own {
    let mut objects = objects(&settings()).into_iter();
    let found = objects.find(|own| {
        own.object["kind"] == kind && (name.is_empty() || own.object["metadata"]["name"] == name)
    });
    found.expect("there is such an object")
}

/// Seen on upstream's binary with the same settings.
fn check(kind: &str, name: &str, expected: Value) {
    assert_eq!(find(kind, name).object, expected);
}

#[test]
fn the_service_kubernetes_has_the_first_address_and_leads_to_the_server() {
    check(
        "Service",
        "kubernetes",
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "labels": { "component": "apiserver", "provider": "kubernetes" },
                "name": "kubernetes", "namespace": "default",
            },
            "spec": {
                "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
                "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "ports": [
                    { "name": "https", "port": 443, "protocol": "TCP", "targetPort": 17443 },
                ],
                "sessionAffinity": "None", "type": "ClusterIP",
            },
            "status": { "loadBalancer": {} },
        }),
    );
    check(
        "IPAddress",
        "10.0.0.1",
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
            "metadata": {
                "labels": {
                    "ipaddress.kubernetes.io/ip-family": "IPv4",
                    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
                },
                "name": "10.0.0.1",
            },
            "spec": { "parentRef": {
                "name": "kubernetes", "namespace": "default", "resource": "services",
            } },
        }),
    );
    check(
        "Endpoints",
        "kubernetes",
        json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {
                "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" },
                "name": "kubernetes", "namespace": "default",
            },
            "subsets": [{
                "addresses": [{ "ip": "10.1.2.3" }],
                "ports": [{ "name": "https", "port": 17443, "protocol": "TCP" }],
            }],
        }),
    );
    check(
        "EndpointSlice",
        "kubernetes",
        json!({
            "addressType": "IPv4", "apiVersion": "discovery.k8s.io/v1",
            "endpoints": [{ "addresses": ["10.1.2.3"], "conditions": { "ready": true } }],
            "kind": "EndpointSlice",
            "metadata": {
                "generation": 1,
                "labels": { "kubernetes.io/service-name": "kubernetes" },
                "name": "kubernetes", "namespace": "default",
            },
            "ports": [{ "name": "https", "port": 17443, "protocol": "TCP" }],
        }),
    );
}

#[test]
fn aggregated_servers_are_told_whom_to_trust() {
    check(
        "ConfigMap",
        "extension-apiserver-authentication",
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "extension-apiserver-authentication", "namespace": "kube-system",
            },
            "data": {
                "client-ca-file": "client",
                "requestheader-allowed-names": "[\"front-proxy-client\"]",
                "requestheader-client-ca-file": "proxy",
                "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
                "requestheader-group-headers": "[\"X-Remote-Group\"]",
                "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
                "requestheader-username-headers": "[\"X-Remote-User\"]",
            },
        }),
    );
    check(
        "ConfigMap",
        "kube-apiserver-legacy-service-account-token-tracking",
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "kube-apiserver-legacy-service-account-token-tracking",
                "namespace": "kube-system",
            },
            "data": { "since": "2000-01-01" },
        }),
    );
}

#[test]
fn the_lease_of_a_server_has_the_name_that_upstream_makes_of_the_host_s() {
    check(
        "Lease",
        "",
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "annotations": { "kubernetes.io/peer-advertise-address": "10.1.2.3:17443" },
                "labels": {
                    "apiserver.kubernetes.io/identity": "kube-apiserver",
                    "kubernetes.io/hostname": "vm",
                },
                "name": "apiserver-wlv32tlttr4jl3gtroqexyxapa", "namespace": "kube-system",
            },
            "spec": {
                "holderIdentity":
                    "apiserver-wlv32tlttr4jl3gtroqexyxapa_865e4c03-0ade-4629-a970-b70d23848680",
                "leaseDurationSeconds": 3600,
                "renewTime": "2000-01-01T00:00:00.000000Z",
            },
        }),
    );
}

#[test]
fn users_may_take_over_what_flow_control_only_suggests() {
    assert_eq!(find("FlowSchema", "exempt").keep, Keep::Reconcile);
    let suggested = find("FlowSchema", "probes").keep;
    assert_eq!(suggested, Keep::ReconcileWhile("apf.kubernetes.io/autoupdate-spec"));
    assert_eq!(find("Namespace", "default").keep, Keep::CreateOnly);
}

#[test]
fn networks_of_either_family_have_a_first_address() {
    let first = |cidr| super::first_address(cidr).map(|address| address.to_string());
    assert_eq!(first("10.96.3.4/12").as_deref(), Some("10.96.0.1"));
    assert_eq!(first("fd00:10::/108").as_deref(), Some("fd00:10::1"));
    assert_eq!(first("10.0.0.0/40"), None);
    assert_eq!(first("nonsense"), None);
}
