use kubewright_apimachinery::yaml;
use serde::de::DeserializeOwned;

use super::way::ways;

fn read<T: DeserializeOwned>(text: &str) -> T {
    let value = yaml::decode(text).unwrap_or_else(|error| panic!("{error}")).value;
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn check(spec: &str, ingress: &str, expected: &[&str]) {
    let service = read(&format!("metadata: {{name: web}}\nspec: {spec}"));
    let ingresses = [read(&format!("metadata: {{name: web}}\nspec: {ingress}"))];
    let found = ways(&service, &ingresses, "http://127.0.0.1:8080");
    let found: Vec<String> =
        found.iter().map(|way| format!("{} {}", way.port, way.url())).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_port_of_the_node_comes_before_an_ingress_and_an_address() {
    let spec = "{type: NodePort, clusterIPs: [10.0.0.7, 'fd00::7'], ports: [
        {name: http, port: 80, nodePort: 30080}, {name: https, port: 8443, nodePort: 30443},
        {name: dns, port: 53, protocol: UDP, nodePort: 30053}]}";
    let ingress = "{rules: [{http: {paths: [
        {path: /web, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}},
        {path: /other, pathType: Prefix, backend: {service: {name: other, port: {name: http}}}}]}}]}";
    check(
        spec,
        ingress,
        &[
            "http http://127.0.0.1:30080",
            "http http://127.0.0.1:8080/web",
            "http http://10.0.0.7:80",
            "https https://127.0.0.1:30443",
            "https https://10.0.0.7:8443",
        ],
    );
}

#[test]
fn an_ingress_for_any_host_comes_before_one_for_a_name() {
    let ingress = "{defaultBackend: {service: {name: web, port: {number: 80}}}, rules: [
        {host: web.example.com, http: {paths: [{path: /, pathType: Prefix,
            backend: {service: {name: web, port: {number: 80}}}}]}},
        {host: '*.example.com', http: {paths: [{path: /, pathType: Prefix,
            backend: {service: {name: web, port: {number: 80}}}}]}}]}";
    let expected = ["80 http://127.0.0.1:8080/", "80 http://web.example.com:8080/"];
    check("{clusterIPs: [None], ports: [{port: 80}]}", ingress, &expected);
}

#[test]
fn a_name_that_leads_elsewhere_is_said_to() {
    let service = read("metadata: {name: web}\nspec: {ports: [{port: 80}]}");
    let ingress = read(
        "metadata: {name: web}\nspec: {rules: [{host: a.test, http: {paths: [{path: /x, \
         pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}",
    );
    let found = ways(&service, &[ingress], "http://127.0.0.1:8080");
    let hint = found[0].hint().expect("a hint");
    assert!(hint.ends_with("'Host: a.test' http://127.0.0.1:8080/x` does not mind"), "{hint}");
}
