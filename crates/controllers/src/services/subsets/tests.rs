use serde_json::{Value, json};

use super::*;

fn subsets(value: Value) -> Vec<EndpointSubset> {
    serde_json::from_value(value).expect("subsets")
}

#[track_caller]
fn check(given: Value, expected: Value) {
    assert_eq!(repack(&subsets(given)), subsets(expected));
}

#[test]
fn addresses_with_the_same_ports_come_together() {
    check(
        json!([
            { "addresses": [{ "ip": "10.0.0.2" }], "ports": [{ "port": 80, "protocol": "TCP" }] },
            { "addresses": [{ "ip": "10.0.0.1" }], "ports": [{ "port": 80, "protocol": "TCP" }] },
        ]),
        json!([{
            "addresses": [{ "ip": "10.0.0.1" }, { "ip": "10.0.0.2" }],
            "ports": [{ "port": 80, "protocol": "TCP" }],
        }]),
    );
}

#[test]
fn ports_of_the_same_addresses_come_together() {
    check(
        json!([
            { "addresses": [{ "ip": "10.0.0.1" }], "ports": [{ "port": 93, "protocol": "TCP" }] },
            { "addresses": [{ "ip": "10.0.0.1" }], "ports": [{ "port": 76, "protocol": "TCP" }] },
        ]),
        json!([{
            "addresses": [{ "ip": "10.0.0.1" }],
            "ports": [{ "port": 76, "protocol": "TCP" }, { "port": 93, "protocol": "TCP" }],
        }]),
    );
}

#[test]
fn an_address_that_is_not_ready_somewhere_is_not_ready() {
    let port = json!([{ "port": 80, "protocol": "TCP" }]);
    check(
        json!([
            { "addresses": [{ "ip": "10.0.0.1" }], "ports": port },
            { "notReadyAddresses": [{ "ip": "10.0.0.1" }], "ports": port },
        ]),
        json!([{ "notReadyAddresses": [{ "ip": "10.0.0.1" }], "ports": port }]),
    );
}

#[test]
fn two_pods_may_share_an_address() {
    let address = |uid: &str| json!({ "ip": "10.0.0.1", "targetRef": { "uid": uid } });
    check(
        json!([{ "addresses": [address("b"), address("a"), address("b")] }]),
        json!([{ "addresses": [address("a"), address("b")] }]),
    );
}

fn many(ready: usize, unready: usize) -> EndpointSubset {
    let addresses = |count: usize, net: usize| {
        let address = |n| EndpointAddress {
            ip: format!("10.{net}.{}.{}", n / 256, n % 256),
            ..EndpointAddress::default()
        };
        Some((0..count).map(address).collect())
    };
    EndpointSubset {
        addresses: addresses(ready, 1),
        not_ready_addresses: addresses(unready, 2),
        ports: None,
    }
}

/// How many addresses there are in each subset, ready and not, and how many are left of them.
#[track_caller]
fn check_cut(given: &[(usize, usize)], expected: Option<&[(usize, usize)]>) {
    let mut subsets: Vec<EndpointSubset> =
        given.iter().map(|(ready, not)| many(*ready, *not)).collect();
    let is_cut = truncate(&mut subsets);
    assert_eq!(is_cut, expected.is_some());
    let lens = |subset: &EndpointSubset| (len(&subset.addresses), len(&subset.not_ready_addresses));
    let left: Vec<_> = subsets.iter().map(lens).collect();
    assert_eq!(left, expected.unwrap_or(given));
}

#[test]
fn what_is_too_much_is_cut_in_proportion() {
    check_cut(&[(600, 400)], None);
    check_cut(&[(600, 500)], Some(&[(600, 400)]));
    check_cut(&[(1200, 10)], Some(&[(1000, 0)]));
    check_cut(&[(900, 0), (300, 5)], Some(&[(750, 0), (250, 0)]));
    check_cut(&[(500, 400), (400, 200)], Some(&[(500, 67), (400, 33)]));
}
