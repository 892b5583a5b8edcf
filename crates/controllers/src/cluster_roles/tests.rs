use serde_json::{Value, json};

use super::*;

/// `plan` on roles `[name, labels, selectors, verbs of a rule each]`, as `name: verbs`.
#[track_caller]
fn check(roles: Value, expected: &[&str]) {
    let role = |role: &Value| -> ClusterRole {
        let rules = role[3].as_array().into_iter().flatten();
        let rules: Vec<Value> = rules.map(|verb| json!({ "verbs": [verb] })).collect();
        let role = json!({
            "metadata": { "name": role[0], "labels": role[1] },
            "aggregationRule": role[2].is_array()
                .then(|| json!({ "clusterRoleSelectors": role[2] })),
            "rules": rules,
        });
        serde_json::from_value(role).expect("a role")
    };
    let mut roles: Vec<Arc<ClusterRole>> =
        roles.as_array().into_iter().flatten().map(role).map(Arc::new).collect();
    roles.sort_by_key(|role| role.metadata.name.clone());
    let sums = roles.iter().filter(|role| role.aggregation_rule.is_some());
    let planned: Vec<String> = sums
        .filter_map(|sum| Some((text(&sum.metadata.name), plan(sum, &roles)?)))
        .map(|(name, rules)| {
            let verbs: Vec<String> = rules.into_iter().flat_map(|rule| rule.verbs).collect();
            format!("{name}: {}", verbs.join(" "))
        })
        .collect();
    assert_eq!(planned, expected);
}

#[test]
fn a_sum_has_the_rules_of_its_parts_each_once_by_name() {
    check(
        json!([
            ["sum", null, [{ "matchLabels": { "into": "sum" } }], ["old"]],
            ["b", { "into": "sum" }, null, ["get", "list"]],
            ["a", { "into": "sum" }, null, ["watch", "get"]],
            ["c", { "into": "other" }, null, ["delete"]],
        ]),
        &["sum: watch get list"],
    );
}

#[test]
fn parts_come_in_the_order_of_the_selectors() {
    check(
        json!([
            ["sum", null, [{ "matchLabels": { "x": "2" } }, { "matchLabels": { "x": "1" } }], []],
            ["a", { "x": "1" }, null, ["get"]],
            ["b", { "x": "2" }, null, ["list"]],
        ]),
        &["sum: list get"],
    );
}

#[test]
fn a_sum_is_no_part_of_itself_and_stays_if_it_is_right() {
    check(
        json!([
            ["sum", { "x": "1" }, [{ "matchLabels": { "x": "1" } }], ["get"]],
            ["a", { "x": "1" }, null, ["get"]],
        ]),
        &[],
    );
}

#[test]
fn a_sum_of_nothing_is_empty() {
    check(json!([["sum", null, [{ "matchLabels": { "x": "1" } }], ["get"]]]), &["sum: "]);
}
