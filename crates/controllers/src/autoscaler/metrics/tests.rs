use serde_json::{Value, json};

use super::*;

/// What the API tells, and what pods use in thousandths.
#[track_caller]
fn check(container: Option<&str>, items: Value, expected: &[(&str, i64)]) {
    let list = serde_json::from_value(json!({ "items": items })).expect("a list");
    let found = samples(list, "cpu", container);
    let found: Vec<_> = found.iter().map(|(name, sample)| (name.as_str(), sample.value)).collect();
    assert_eq!(found, expected);
}

fn pod(name: &str, containers: Value) -> Value {
    json!({
        "metadata": { "name": name }, "timestamp": "2026-01-01T00:00:00Z", "window": "15s",
        "containers": containers,
    })
}

#[test]
fn the_use_of_a_pod_is_that_of_its_containers() {
    let both = json!([
        { "name": "main", "usage": { "cpu": "250m", "memory": "1Gi" } },
        { "name": "side", "usage": { "cpu": "50m" } },
    ]);
    let half =
        json!([{ "name": "main", "usage": { "cpu": "1" } }, { "name": "side", "usage": {} }]);
    let items = json!([pod("a", both), pod("b", half)]);
    check(None, items.clone(), &[("a", 300)]);
    check(Some("main"), items.clone(), &[("a", 250), ("b", 1000)]);
    check(Some("other"), items, &[]);
}

#[test]
fn selectors_are_written_into_queries() {
    assert_eq!(percent_encoding("app in (a,b)"), "app%20in%20%28a%2Cb%29");
}
