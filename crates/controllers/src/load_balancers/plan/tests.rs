use serde_json::{Value, json};

use super::*;

/// What a Service is and says, and what it should say of its load balancer.
#[track_caller]
fn check(spec: Value, status: Value, expected: Option<Value>) {
    let service = json!({ "spec": spec, "status": { "loadBalancer": status } });
    let service = serde_json::from_value(service).expect("a service");
    let address = Address::Ip("127.0.0.1".parse().expect("an address"));
    let planned = plan(&service, &address);
    assert_eq!(planned.map(|it| json!(it)), expected);
}

#[test]
fn a_service_is_reached_where_the_machine_is() {
    let here = json!({ "ingress": [{ "ip": "127.0.0.1", "ipMode": "VIP" }] });
    check(json!({ "type": "LoadBalancer" }), json!({}), Some(here.clone()));
    check(json!({ "type": "LoadBalancer" }), here.clone(), None);
    check(json!({ "type": "ClusterIP" }), here, Some(json!({})));
    check(json!({ "type": "ClusterIP" }), json!({}), None);
    check(
        json!({ "type": "LoadBalancer", "loadBalancerClass": "example.com/other" }),
        json!({}),
        None,
    );
}

#[test]
fn a_machine_may_have_a_name() {
    let named = ingress(&Address::Name("localhost".to_owned()));
    assert_eq!(json!(named), json!({ "hostname": "localhost" }));
}
