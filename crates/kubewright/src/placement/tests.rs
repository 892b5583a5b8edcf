use k8s_openapi::api::core::v1::{Node, PodSpec, Taint, Toleration};
use serde_json::{Value, json};

use super::{selects, tolerates};

fn check_selected(spec: Value, expected: bool) {
    let mut spec = spec;
    spec["containers"] = json!([]);
    let spec: PodSpec = serde_json::from_value(spec).expect("a pod's spec");
    let node = json!({"metadata": {"name": "n1", "labels": {"zone": "a", "cores": "8"}}});
    let node: Node = serde_json::from_value(node).expect("a node");
    assert_eq!(selects(&spec, &node), expected, "{spec:?}");
}

fn requiring(terms: Value) -> Value {
    let required = json!({"nodeSelectorTerms": terms});
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
}

#[test]
fn a_pod_selects_nodes_by_all_labels_and_any_term() {
    check_selected(json!({}), true);
    check_selected(json!({"nodeSelector": {"zone": "a"}}), true);
    check_selected(json!({"nodeSelector": {"zone": "a", "disk": "fast"}}), false);
    let many = json!({"key": "cores", "operator": "Gt", "values": ["4"]});
    let elsewhere = json!({"key": "zone", "operator": "NotIn", "values": ["a"]});
    check_selected(requiring(json!([{"matchExpressions": [many]}])), true);
    check_selected(requiring(json!([{"matchExpressions": [many, elsewhere]}])), false);
    let either = json!([{"matchExpressions": [elsewhere]}, {"matchExpressions": [many]}]);
    check_selected(requiring(either), true);
}

#[test]
fn a_pod_selects_nodes_by_name() {
    let named = |operator: &str, name: &str| {
        let field = json!({"key": "metadata.name", "operator": operator, "values": [name]});
        requiring(json!([{"matchFields": [field]}]))
    };
    check_selected(named("In", "n1"), true);
    check_selected(named("In", "n2"), false);
    check_selected(named("NotIn", "n2"), true);
}

#[test]
fn what_says_nothing_or_makes_no_sense_selects_no_node() {
    check_selected(requiring(json!([])), false);
    check_selected(requiring(json!([{}])), false);
    let odd = json!({"key": "zone", "operator": "Like", "values": ["a"]});
    check_selected(requiring(json!([{"matchExpressions": [odd]}])), false);
}

#[test]
fn a_toleration_is_for_a_key_a_value_and_an_effect_or_for_any() {
    let check = |toleration: Value, expected: bool| {
        let toleration: Toleration = serde_json::from_value(toleration).expect("a toleration");
        let taint = json!({"key": "k", "value": "v", "effect": "NoSchedule"});
        let taint: Taint = serde_json::from_value(taint).expect("a taint");
        assert_eq!(tolerates(&toleration, &taint), expected, "{toleration:?}");
    };
    check(json!({"operator": "Exists"}), true);
    check(json!({"key": "k", "operator": "Exists"}), true);
    check(json!({"key": "k", "value": "v"}), true);
    check(json!({"key": "k", "operator": "Equal", "value": "w"}), false);
    check(json!({"key": "other", "operator": "Exists"}), false);
    check(json!({"key": "k", "operator": "Exists", "effect": "NoExecute"}), false);
    check(json!({"key": "k", "operator": "Exists", "effect": "NoSchedule"}), true);
}
