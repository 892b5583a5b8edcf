use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::*;

fn check(told: Value, port: Option<u16>, expected: Option<Value>) {
    let told: Vec<IngressLoadBalancerIngress> =
        serde_json::from_value(told).expect("places of an Ingress");
    let found = plan(&told, Ipv4Addr::LOCALHOST.into(), port);
    assert_eq!(found.map(|places| json!(places)), expected);
}

fn here(port: u16) -> Value {
    json!({"ip": "127.0.0.1", "ports": [{"port": port, "protocol": "TCP"}]})
}

#[test]
fn an_ingress_that_is_served_says_where() {
    check(json!([]), Some(8080), Some(json!([here(8080)])));
    check(json!([here(8080)]), Some(8080), None);
}

#[test]
fn the_port_of_an_earlier_process_is_replaced() {
    check(json!([here(8080)]), Some(9090), Some(json!([here(9090)])));
    check(json!([{"ip": "127.0.0.1"}]), Some(8080), Some(json!([here(8080)])));
}

#[test]
fn what_others_serve_is_theirs_to_tell() {
    let theirs = json!({"hostname": "lb.example.com"});
    check(json!([theirs]), Some(8080), None);
    check(json!([theirs, here(8080)]), Some(8080), Some(json!([theirs])));
    check(json!([{"ip": "10.1.2.3"}]), None, None);
}

#[test]
fn an_ingress_that_is_served_no_more_does_not_say_so() {
    check(json!([here(8080)]), None, Some(json!([])));
    check(json!([]), None, None);
}
