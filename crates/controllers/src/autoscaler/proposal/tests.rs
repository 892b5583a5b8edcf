use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(selector: Value, expected: &str) {
    let selector: Option<LabelSelector> = serde_json::from_value(selector).expect("a selector");
    assert_eq!(printed(selector.as_ref()), expected);
}

#[test]
fn selectors_are_printed_as_go_prints_them() {
    check(Value::Null, "nil");
    check(
        json!({ "matchLabels": { "queue": "tasks", "app": "web" } }),
        "&LabelSelector{MatchLabels:map[string]string{app: web,queue: tasks,},\
         MatchExpressions:[]LabelSelectorRequirement{},}",
    );
    check(
        json!({ "matchExpressions": [{ "key": "a", "operator": "In", "values": ["b", "c"] }] }),
        "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement\
         {LabelSelectorRequirement{Key:a,Operator:In,Values:[b c],},},}",
    );
}
