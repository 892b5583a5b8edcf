use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

fn behavior(value: Value) -> Option<Behavior> {
    (!value.is_null()).then(|| serde_json::from_value(value).expect("a behavior"))
}

/// What is wished for at some seconds, each done, beginning with so many replicas; how many there
/// are after each, and why.
#[track_caller]
fn check(rules: Value, begin: i32, wishes: &[(i64, i32)], expected: &[(i32, &str, &str)]) {
    let behavior = behavior(rules);
    let mut history = History::default();
    history.begin(begin, at(wishes[0].0));
    let (mut current, mut found) = (begin, Vec::new());
    for (second, wish) in wishes {
        let bounds = Bounds { min: 1, max: 20 };
        let normal = history.normalize(behavior.as_ref(), bounds, current, *wish, at(*second));
        if normal.replicas != current {
            history.note(behavior.as_ref(), current, normal.replicas, at(*second));
        }
        current = normal.replicas;
        found.push((normal.replicas, normal.stability.0, normal.limit.0));
    }
    assert_eq!(found, expected);
}

#[test]
fn without_rules_it_rises_fast_and_falls_late() {
    check(
        json!(null),
        2,
        &[(0, 30), (15, 30), (30, 30), (45, 30), (60, 3), (400, 3)],
        &[
            (4, "ReadyForNewScale", "ScaleUpLimit"),
            (8, "ReadyForNewScale", "ScaleUpLimit"),
            (16, "ReadyForNewScale", "ScaleUpLimit"),
            (20, "ReadyForNewScale", "TooManyReplicas"),
            (20, "ScaleDownStabilized", "TooManyReplicas"),
            (3, "ReadyForNewScale", "DesiredWithinRange"),
        ],
    );
    check(json!(null), 2, &[(400, 0)], &[(2, "ScaleDownStabilized", "DesiredWithinRange")]);
}

#[test]
fn rules_bound_how_fast_it_changes() {
    let pods = |value: i32| json!([{ "type": "Pods", "value": value, "periodSeconds": 60 }]);
    let rules = json!({
        "scaleUp": { "stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": pods(3) },
        "scaleDown": { "stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": pods(1) },
    });
    check(
        rules,
        2,
        &[(0, 9), (15, 9), (75, 9), (200, 1), (230, 1), (261, 1)],
        &[
            (5, "ReadyForNewScale", "ScaleUpLimit"),
            (5, "ReadyForNewScale", "ScaleUpLimit"),
            (8, "ReadyForNewScale", "ScaleUpLimit"),
            (7, "ReadyForNewScale", "ScaleDownLimit"),
            (7, "ReadyForNewScale", "ScaleDownLimit"),
            (6, "ReadyForNewScale", "ScaleDownLimit"),
        ],
    );
    let never =
        json!({ "scaleDown": { "stabilizationWindowSeconds": 0, "selectPolicy": "Disabled" } });
    check(never, 5, &[(0, 1)], &[(5, "ReadyForNewScale", "ScaleDownLimit")]);
}

#[test]
fn wishes_must_last() {
    let rules = json!({
        "scaleUp": { "stabilizationWindowSeconds": 60 },
        "scaleDown": { "stabilizationWindowSeconds": 60 },
    });
    check(
        rules,
        4,
        &[(0, 6), (30, 7), (61, 8), (75, 2)],
        &[
            (4, "ScaleUpStabilized", "DesiredWithinRange"),
            (4, "ScaleUpStabilized", "DesiredWithinRange"),
            (7, "ScaleUpStabilized", "DesiredWithinRange"),
            (7, "ScaleDownStabilized", "DesiredWithinRange"),
        ],
    );
}

#[test]
fn tolerance_can_be_set_for_each_way() {
    assert_eq!(tolerance(None), Tolerance { down: 0.1, up: 0.1 });
    let own = behavior(json!({ "scaleUp": { "tolerance": "50m" } }));
    assert_eq!(tolerance(own.as_ref()), Tolerance { down: 0.1, up: 0.05 });
}
