use serde_json::json;

use super::*;

/// Whether the first network can go. Networks are separated by spaces, and those of one object by
/// commas; addresses are taken for Services.
#[track_caller]
fn check(networks: &str, addresses: &str, expected: bool) {
    let networks: Vec<ServiceCIDR> = networks
        .split(' ')
        .enumerate()
        .map(|(at, cidrs)| {
            let cidrs: Vec<&str> = cidrs.split(',').collect();
            let object = json!({
                "metadata": {"name": format!("network-{at}")},
                "spec": {"cidrs": cidrs},
            });
            serde_json::from_value(object).expect("it is a network")
        })
        .collect();
    let addresses: Vec<IPAddress> = addresses.split_whitespace().map(address).collect();
    assert_eq!(is_free(&networks[0], &networks, &addresses), expected, "{addresses:?}");
}

/// A `~` says that it was taken by somebody else.
fn address(name: &str) -> IPAddress {
    let (name, manager) = match name.strip_prefix('~') {
        Some(name) => (name, "somebody"),
        None => (name, "ipallocator.k8s.io"),
    };
    let labels = json!({"ipaddress.kubernetes.io/managed-by": manager});
    let object = json!({"metadata": {"name": name, "labels": labels}, "spec": {"parentRef": {
        "resource": "services", "name": "web",
    }}});
    serde_json::from_value(object).expect("it is an address")
}

#[test]
fn a_network_stays_while_an_address_has_no_other() {
    check("10.0.0.0/24", "", true);
    check("10.0.0.0/24", "10.0.0.7", false);
    check("10.0.0.0/24", "10.0.1.7 ~10.0.0.7 fd00::7", true);
    check("10.0.0.0/24 10.1.0.0/24", "10.0.0.7", false);
    check("10.0.0.0/24,fd00::/112", "fd00::7", false);
}

#[test]
fn a_network_may_go_where_others_have_its_addresses() {
    check("10.0.0.0/24 10.0.0.0/16", "10.0.0.7", true);
    check("10.0.0.0/24 10.0.0.0/24", "10.0.0.7", true);
    check("10.0.0.0/24 10.0.0.0/28", "10.0.0.7", true);
    check("10.0.0.0/24 10.0.0.0/28", "10.0.0.7 10.0.0.99", false);
    check("10.0.0.0/24,fd00::/112 10.0.0.0/16", "fd00::7", false);
}

#[test]
fn the_ends_of_a_network_are_nobodys() {
    check("10.0.0.0/24", "10.0.0.0 10.0.0.255", true);
    check("10.0.0.0/24 10.0.0.0/28", "10.0.0.15", false);
    check("fd00::/112", "fd00::", true);
    check("fd00::/112", "fd00::ffff", false);
    check("0.0.0.0/0", "10.0.0.7", false);
    check("::/0", "fd00::7", false);
}

#[test]
fn networks_meet_where_one_is_in_the_other() {
    let network = |cidr: &str| -> ServiceCIDR {
        serde_json::from_value(json!({"metadata": {}, "spec": {"cidrs": [cidr]}})).unwrap()
    };
    let meets = |one, other| meet(&network(one), &network(other));
    assert!(meets("10.0.0.0/24", "10.0.0.0/16"));
    assert!(meets("10.0.0.0/16", "10.0.0.0/24"));
    assert!(!meets("10.0.0.0/24", "10.0.1.0/24"));
    assert!(!meets("0.0.0.0/0", "::/0"));
}
