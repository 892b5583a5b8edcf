//! Plans by value, and reservations in a store that two servers share.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubewright_apimachinery::yaml;
use kubewright_store::{Config, Store};
use serde_json::{Value, json};

use super::{
    Allocator, Families, Family, Form, Holdings, Plan, Refusal, ReserveError, holdings,
    plan_create, plan_update,
};

fn service(spec: &str) -> Value {
    let spec: Value = yaml::decode(spec).expect("tests are sound").value;
    json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec})
}

fn store() -> Arc<Store<()>> {
    fn resource(key: &str) -> &str {
        &key[..key.rfind('/').map_or(0, |at| at + 1)]
    }
    Arc::new(Store::memory(Config::new(|_, _| (), resource, || Duration::ZERO)))
}

fn server(store: &Arc<Store<()>>) -> Allocator<()> {
    Allocator::new(Arc::clone(store), &["10.0.0.0/29"], 30000..=30003, Form::JSON)
}

async fn create(server: &Allocator<()>, spec: &str, dry_run: bool) -> Result<Value, ReserveError> {
    let mut service = service(spec);
    let families = Families::single(Family::V4);
    let plan = plan_create(&mut service, families).map_err(ReserveError::Refused)?;
    let reserved = server.reserve(&plan, &mut service, Timestamp::UNIX_EPOCH, dry_run).await?;
    server.commit(reserved).await?;
    Ok(service["spec"].clone())
}

fn words(outcome: Result<Value, ReserveError>) -> String {
    match outcome {
        Ok(spec) => panic!("{spec} was given out"),
        Err(ReserveError::Refused(Refusal::Invalid(errors))) => {
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        }
        Err(ReserveError::Refused(Refusal::Internal(text))) => text,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn servers_that_share_a_store_never_give_out_the_same_thing() {
    let store = store();
    let (one, other) = (server(&store), server(&store));
    let mut addresses = Vec::new();
    let mut ports = Vec::new();
    for server in [&one, &other, &one, &other] {
        let spec = create(server, "{type: NodePort, ports: [{port: 80}]}", false).await.unwrap();
        addresses.push(spec["clusterIPs"][0].as_str().unwrap().to_owned());
        ports.push(spec["ports"][0]["nodePort"].as_i64().unwrap());
        assert_eq!(spec["clusterIP"], spec["clusterIPs"][0]);
    }
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 4);
    ports.sort_unstable();
    assert_eq!(ports, [30000, 30001, 30002, 30003]);
    assert_eq!(
        words(create(&one, "{type: NodePort, ports: [{port: 80}]}", false).await),
        "failed to allocate a nodePort: range is full"
    );
    // The address of the Service that got no port is free again.
    assert_eq!(store.count("/registry/ipaddresses/"), 4);
}

#[tokio::test]
async fn what_is_taken_or_out_of_range_is_refused_in_upstream_s_words() {
    let store = store();
    let server = server(&store);
    let taken = "{type: NodePort, clusterIP: 10.0.0.3, ports: [{port: 80, nodePort: 30001}]}";
    create(&server, taken, false).await.unwrap();
    for (spec, expected) in [
        (
            "{clusterIP: 10.0.0.3}",
            r#"spec.clusterIPs: Invalid value: ["10.0.0.3"]: failed to allocate IP 10.0.0.3: provided IP is already allocated"#,
        ),
        (
            "{clusterIP: 10.0.1.3}",
            r#"spec.clusterIPs: Invalid value: ["10.0.1.3"]: failed to allocate IP 10.0.1.3: the provided network does not match the current range"#,
        ),
        (
            "{clusterIP: 10.0.0.7}",
            r#"spec.clusterIPs: Invalid value: ["10.0.0.7"]: failed to allocate IP 10.0.0.7: the provided network does not match the current range"#,
        ),
        (
            "{type: NodePort, ports: [{port: 80}, {port: 81, nodePort: 80}]}",
            "spec.ports[1].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-30003",
        ),
        (
            "{type: NodePort, ports: [{port: 81, nodePort: 30001}]}",
            "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated",
        ),
        (
            "{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 9}",
            "failed to allocate requested HealthCheck NodePort 9: provided port is not in the valid range. The range of valid ports is 30000-30003",
        ),
    ] {
        assert_eq!(words(create(&server, spec, false).await), expected, "{spec}");
    }
    assert_eq!(store.count("/registry/ipaddresses/"), 1);
}

#[tokio::test]
async fn a_dry_run_takes_nothing() {
    let store = store();
    let server = server(&store);
    let spec = "{type: NodePort, ports: [{port: 80}, {port: 81, nodePort: 80}, {port: 82}]}";
    let spec = create(&server, spec, true).await.unwrap();
    assert_eq!(spec["clusterIPs"], json!(["10.0.0.0"]));
    let ports: Vec<&Value> =
        spec["ports"].as_array().unwrap().iter().map(|port| &port["nodePort"]).collect();
    assert_eq!(ports, [&json!(32769), &json!(80), &json!(32770)]);
    assert_eq!(
        words(create(&server, "{clusterIP: 10.0.0.9}", true).await),
        "spec.clusterIPs: Invalid value: [\"10.0.0.9\"]: failed to allocate IP 10.0.0.9: the \
         provided IP (10.0.0.9) is not in the valid range. The range of valid IPs is 10.0.0.0/29"
    );
    assert_eq!(store.count("/registry/"), 0);
}

#[tokio::test]
async fn an_address_is_upstream_s_object() {
    let store = store();
    let server = server(&store);
    create(&server, "{clusterIP: 10.0.0.3}", false).await.unwrap();
    let stored = store.get("/registry/ipaddresses/10.0.0.3").unwrap();
    let mut object: Value = serde_json::from_slice(&stored.value).unwrap();
    assert_eq!(object["metadata"]["uid"].take().as_str().map(str::len), Some(36));
    assert_eq!(
        object,
        json!({
            "metadata": {
                "name": "10.0.0.3",
                "uid": null,
                "creationTimestamp": "1970-01-01T00:00:00Z",
                "labels": {
                    "ipaddress.kubernetes.io/ip-family": "IPv4",
                    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
                },
            },
            "spec": {"parentRef": {"resource": "services", "namespace": "shop", "name": "web"}},
        })
    );
}

#[tokio::test]
async fn ports_are_the_bits_of_a_number() {
    let store = store();
    let server = server(&store);
    create(&server, "{type: NodePort, ports: [{port: 1, nodePort: 30003}]}", false).await.unwrap();
    let stored = store.get("/registry/ranges/servicenodeports").unwrap();
    let object: Value = serde_json::from_slice(&stored.value).unwrap();
    assert_eq!(object, json!({"metadata": {}, "range": "30000-30003", "data": "CA=="}));
}

#[tokio::test]
async fn repair_takes_what_services_hold() {
    let store = store();
    let held = service("{type: NodePort, clusterIPs: [10.0.0.2], ports: [{nodePort: 30002}]}");
    let one = server(&store);
    one.repair(&[held], Timestamp::UNIX_EPOCH).await.unwrap();
    assert!(words(create(&one, "{clusterIP: 10.0.0.2}", false).await).contains("already"));
    let port = "{type: NodePort, ports: [{port: 1, nodePort: 30002}]}";
    assert!(words(create(&one, port, false).await).contains("already"));
}

#[tokio::test]
async fn addresses_come_from_service_cidrs_that_are_ready() {
    let store = store();
    let server = server(&store);
    let cidr = |name: &str, cidr: &str, ready: &str| {
        let object = json!({
            "metadata": {"name": name},
            "spec": {"cidrs": [cidr]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        let key = format!("/registry/servicecidrs/{name}");
        kubewright_store::Put::new(key.as_str(), serde_json::to_vec(&object).unwrap())
    };
    store.put(cidr("new", "10.9.0.0/30", "True")).await.unwrap();
    store.put(cidr("old", "10.8.0.0/30", "False")).await.unwrap();
    let mut given = Vec::new();
    for _ in 0..2 {
        let spec = create(&server, "{ports: [{port: 1}]}", false).await.unwrap();
        given.push(spec["clusterIP"].as_str().unwrap().to_owned());
    }
    given.sort();
    assert_eq!(given, ["10.9.0.1", "10.9.0.2"]);
    assert_eq!(
        words(create(&server, "{ports: [{port: 1}]}", false).await),
        "failed to allocate a serviceIP for Service \"web\": range is full"
    );
}

/// What becomes of the linked fields on a cluster with both families, and what is released.
fn check_dual(new: &str, old: Option<&str>, expected: &str, released: &[&str]) {
    let families = Families::dual(Family::V4);
    let mut object = service(new);
    let plan = match old {
        None => plan_create(&mut object, families),
        Some(old) => plan_update(&mut object, &service(old), families),
    };
    let plan: Plan = plan.unwrap_or_else(|refusal| panic!("{new}: {refusal:?}"));
    let made_up: Vec<IpAddr> = plan
        .addresses
        .iter()
        .map(|wish| match wish.family {
            Family::V4 => wish.address.unwrap_or([10, 0, 0, 1].into()),
            Family::V6 => wish.address.unwrap_or("fd00::1".parse().unwrap()),
        })
        .collect();
    plan.grant(&mut object, &made_up, &[]);
    let expected: Value = yaml::decode(expected).unwrap().value;
    let names = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];
    let linked: serde_json::Map<String, Value> = names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), object["spec"].get(name)?.clone())))
        .collect();
    assert_eq!(Value::Object(linked), expected, "{new}");
    let addresses: Vec<String> = plan.released.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, released, "{new}");
}

#[test]
fn a_cluster_with_both_families_gives_what_is_asked_for() {
    let single = "{clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], \
                  ipFamilyPolicy: SingleStack}";
    let both = "{type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1'], \
                ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack}";
    let required = "{clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1'], \
                    ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack}";
    check_dual("{type: ClusterIP}", None, single, &[]);
    check_dual("{ipFamilyPolicy: RequireDualStack}", None, required, &[]);
    check_dual(
        "{ipFamilies: [IPv6], ipFamilyPolicy: PreferDualStack}",
        None,
        "{clusterIP: 'fd00::1', clusterIPs: ['fd00::1', 10.0.0.1], ipFamilies: [IPv6, IPv4], \
         ipFamilyPolicy: PreferDualStack}",
        &[],
    );
    check_dual(
        "{clusterIP: 'FD00::5'}",
        None,
        "{clusterIP: 'FD00::5', clusterIPs: ['FD00::5'], ipFamilies: [IPv6], ipFamilyPolicy: \
         SingleStack}",
        &[],
    );
    check_dual(
        "{clusterIP: None, selector: {a: b}}",
        None,
        "{clusterIP: None, clusterIPs: [None], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}",
        &[],
    );
    // A second family comes by policy, and goes by it.
    let one = format!("{{type: ClusterIP, {}", &single[1..]);
    check_dual("{type: ClusterIP, ipFamilyPolicy: RequireDualStack}", Some(&one), required, &[]);
    check_dual("{type: ClusterIP, ipFamilyPolicy: SingleStack}", Some(both), single, &["fd00::1"]);
    check_dual("{type: ClusterIP}", Some(both), required, &[]);
    check_dual("{type: ExternalName}", Some(both), "{}", &["10.0.0.1", "fd00::1"]);
    check_dual("{type: ClusterIP}", Some("{type: ExternalName}"), single, &[]);
}

#[test]
fn a_deleted_service_holds_nothing_any_more() {
    let gone = service(
        "{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30009, \
         clusterIPs: [10.0.0.1], ports: [{nodePort: 30001}, {port: 2}]}",
    );
    let expected = Holdings { addresses: vec![[10, 0, 0, 1].into()], ports: vec![30001, 30009] };
    assert_eq!(holdings(&gone), expected);
}
