use kubewright_apimachinery::yaml;
use serde::de::DeserializeOwned;

use super::super::message::{PTR, SRV, TXT};
use super::*;

const SERVICES: &str = "
- metadata: {name: web, namespace: default}
  spec:
    clusterIP: 10.0.0.7
    clusterIPs: [10.0.0.7]
    ports: [{name: http, port: 80}, {port: 81}]
- metadata: {name: db, namespace: data}
  spec: {clusterIP: None, clusterIPs: [None], ports: [{name: sql, port: 3306}]}
- metadata: {name: docs, namespace: default}
  spec: {type: ExternalName, externalName: docs.example.test}
- metadata: {name: alias, namespace: default}
  spec: {type: ExternalName, externalName: web.default.svc.cluster.local.}
- metadata: {name: circle, namespace: default}
  spec: {type: ExternalName, externalName: circle.default.svc.cluster.local}
- metadata: {name: stray, namespace: default}
  spec: {type: ExternalName, externalName: none.default.svc.cluster.local}
";
const SLICES: &str = "
- metadata: {name: db-1, namespace: data, labels: {kubernetes.io/service-name: db}}
  addressType: IPv4
  ports: [{name: sql, port: 3306, protocol: TCP}]
  endpoints:
  - {addresses: [10.1.0.5], hostname: db-0, conditions: {ready: true}}
  - {addresses: [10.1.0.6], conditions: {ready: true}}
  - {addresses: [10.1.0.7], hostname: db-2, conditions: {ready: false}}
";

fn objects<T: DeserializeOwned>(text: &str) -> Vec<Arc<T>> {
    let values = yaml::decode(text).expect("YAML").value;
    let objects: Vec<T> = serde_json::from_value(values).expect("objects");
    objects.into_iter().map(Arc::new).collect()
}

/// What is answered, a record in a line.
fn check(name: &str, kind: u16, expected: &[&str]) {
    let zone = Zone::new("cluster.local", &objects(SERVICES), &objects(SLICES));
    let lines = match zone.answer(name, kind) {
        None => vec!["somebody else".to_owned()],
        Some(Answer { code: Code::NoName, .. }) => vec!["no such name".to_owned()],
        Some(answer) => answer
            .records
            .iter()
            .map(|record| match &record.data {
                Data::A(address) => address.to_string(),
                Data::Srv { port, target, .. } => format!("{target}:{port}"),
                Data::Cname(name) | Data::Ptr(name) | Data::Txt(name) => name.clone(),
                other => format!("{other:?}"),
            })
            .collect(),
    };
    assert_eq!(lines, expected, "{name} {kind}");
}

#[test]
fn a_service_has_its_address_and_its_ports() {
    check("web.default.svc.cluster.local", A, &["10.0.0.7"]);
    check("web.default.svc.cluster.local", AAAA, &[]);
    let port = "_http._tcp.web.default.svc.cluster.local";
    check(port, SRV, &["web.default.svc.cluster.local:80"]);
    check("7.0.0.10.in-addr.arpa", PTR, &["web.default.svc.cluster.local"]);
}

#[test]
fn a_headless_service_has_the_addresses_of_its_ready_pods() {
    check("db.data.svc.cluster.local", A, &["10.1.0.5", "10.1.0.6"]);
    check("db-0.db.data.svc.cluster.local", A, &["10.1.0.5"]);
    check("10-1-0-6.db.data.svc.cluster.local", A, &["10.1.0.6"]);
    check("db-2.db.data.svc.cluster.local", A, &["no such name"]);
    check(
        "_sql._tcp.db.data.svc.cluster.local",
        SRV,
        &["db-0.db.data.svc.cluster.local:3306", "10-1-0-6.db.data.svc.cluster.local:3306"],
    );
    check("5.0.1.10.in-addr.arpa", PTR, &["db-0.db.data.svc.cluster.local"]);
}

#[test]
fn an_external_name_leads_elsewhere() {
    check("docs.default.svc.cluster.local", A, &["docs.example.test"]);
    let zone = Zone::new("cluster.local", &objects(SERVICES), &objects(SLICES));
    let elsewhere = |kind: u16| zone.answer("docs.default.svc.cluster.local", kind)?.elsewhere;
    assert_eq!(elsewhere(A).as_deref(), Some("docs.example.test"));
    assert_eq!(elsewhere(CNAME), None);
}

/// Only the other name was told, and resolvers of pods did not ask for that.
#[test]
fn an_external_name_of_the_cluster_is_followed() {
    let web = "web.default.svc.cluster.local";
    check("alias.default.svc.cluster.local", A, &[web, "10.0.0.7"]);
    check("alias.default.svc.cluster.local", CNAME, &[web]);
    check("stray.default.svc.cluster.local", A, &["none.default.svc.cluster.local"]);
    let zone = Zone::new("cluster.local", &objects(SERVICES), &objects(SLICES));
    let circle = zone.answer("circle.default.svc.cluster.local", A).expect("it is known");
    assert_eq!((circle.records.len(), circle.elsewhere), (NAMES_MAX + 1, None));
}

#[test]
fn pods_are_known_by_their_addresses() {
    check("10-1-2-3.default.pod.cluster.local", A, &["10.1.2.3"]);
    check("10-1-2-3.nowhere.pod.cluster.local", A, &["no such name"]);
}

#[test]
fn what_is_not_there_is_told_from_what_is_elsewhere() {
    check("nobody.default.svc.cluster.local", A, &["no such name"]);
    check("web.default.svc.cluster.local.cluster.local", A, &["no such name"]);
    check("default.svc.cluster.local", A, &[]);
    check("svc.cluster.local", A, &[]);
    check("example.test", A, &["somebody else"]);
    check("1.2.0.192.in-addr.arpa", PTR, &["somebody else"]);
    check("dns-version.cluster.local", TXT, &["1.1.0"]);
}
