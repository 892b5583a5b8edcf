use serde_json::{Value, json};

use super::*;

/// What a Service asks for, an endpoint, and the hints that it gets.
#[track_caller]
fn check(asked: Option<&str>, ready: bool, hints: Value, expected: Value) {
    let spec = json!({ "trafficDistribution": asked });
    let service: Service = serde_json::from_value(json!({ "spec": spec })).expect("a service");
    let endpoint = json!({
        "addresses": ["10.0.0.1"], "conditions": { "ready": ready },
        "zone": "west", "nodeName": "node", "hints": hints,
    });
    let slice = json!({ "metadata": {}, "addressType": "IPv4", "endpoints": [endpoint] });
    let mut slice: EndpointSlice = serde_json::from_value(slice).expect("a slice");
    let is_changed = Nearness::of(&service).hint(&mut slice);
    let endpoint = &slice.endpoints.expect("endpoints")[0];
    assert_eq!(json!(endpoint.hints), expected);
    assert_eq!(is_changed, hints != expected);
}

#[test]
fn hints_are_given_if_a_service_asks_for_near_endpoints() {
    let zone = json!({ "forZones": [{ "name": "west" }] });
    let node = json!({ "forNodes": [{ "name": "node" }], "forZones": [{ "name": "west" }] });
    check(Some("PreferClose"), true, json!(null), zone.clone());
    check(Some("PreferSameZone"), true, zone.clone(), zone.clone());
    check(Some("PreferSameNode"), true, zone.clone(), node);
    check(Some("PreferClose"), false, json!(null), json!(null));
    check(None, true, json!(null), json!(null));
    check(None, true, zone, json!(null));
}
