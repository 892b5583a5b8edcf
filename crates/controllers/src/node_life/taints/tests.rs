use serde_json::{Value, json};

use super::*;

/// A node with `Kind=Status` conditions and `key:Effect` taints.
fn node(conditions: &str, taints: &str) -> Node {
    let condition = |word: &str| {
        let (kind, status) = word.split_once('=').expect("a status");
        json!({ "type": kind, "status": status })
    };
    let taint = |word: &str| {
        let (key, effect) = word.split_once(':').expect("an effect");
        json!({ "key": format!("node.kubernetes.io/{key}"), "effect": effect })
    };
    let conditions: Vec<Value> = conditions.split_whitespace().map(condition).collect();
    let taints: Vec<Value> = taints.split_whitespace().map(taint).collect();
    let node = json!({ "spec": { "taints": taints }, "status": { "conditions": conditions } });
    serde_json::from_value(node).expect("a node")
}

fn print(taints: &[Taint]) -> String {
    let print = |taint: &Taint| {
        let key = taint.key.strip_prefix("node.kubernetes.io/").unwrap_or(&taint.key);
        format!("{key}:{}", taint.effect)
    };
    taints.iter().map(print).collect::<Vec<_>>().join(" ")
}

/// The conditions and taints of a node, whether pods may be made to leave, and what taints it gets.
#[track_caller]
fn check(conditions: &str, taints: &str, evicts: Option<bool>, expected: Option<&str>) {
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let planned = plan(&node(conditions, taints), evicts, now);
    assert_eq!(planned.as_deref().map(print).as_deref(), expected);
}

#[test]
fn conditions_are_told_to_the_scheduler() {
    check("Ready=True", "", Some(true), None);
    check("Ready=True", "not-ready:NoSchedule", Some(true), Some(""));
    check("Ready=True DiskPressure=True", "", Some(true), Some("disk-pressure:NoSchedule"));
    check("Ready=True", "gpu:NoSchedule", Some(true), None);
    check("Ready=Unknown", "unreachable:NoSchedule", Some(false), None);
}

#[test]
fn pods_leave_a_node_that_is_not_ready() {
    let both = "not-ready:NoSchedule not-ready:NoExecute";
    check("Ready=False", "", Some(true), Some(both));
    check("Ready=False", both, Some(true), None);
    check("Ready=Unknown", both, Some(true), Some("unreachable:NoSchedule unreachable:NoExecute"));
    check("Ready=True", both, Some(true), Some(""));
}

#[test]
fn when_all_is_silent_nobody_leaves() {
    check(
        "Ready=Unknown",
        "unreachable:NoSchedule unreachable:NoExecute",
        Some(false),
        Some("unreachable:NoSchedule"),
    );
    check("Ready=Unknown", "unreachable:NoSchedule unreachable:NoExecute", None, None);
    check("Ready=Unknown", "unreachable:NoSchedule", None, None);
}

#[test]
fn a_node_that_is_cordoned_takes_no_pods() {
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let mut cordoned = node("Ready=True", "");
    cordoned.spec.get_or_insert_default().unschedulable = Some(true);
    let taints = plan(&cordoned, Some(true), now).expect("a taint");
    assert_eq!(print(&taints), "unschedulable:NoSchedule");
    assert!(taints[0].time_added.is_some());
}

#[test]
fn zones_are_emptied_the_slower_the_more_is_lost() {
    let nodes = |fit: usize, unfit: usize| {
        let fit = (0..fit).map(|_| node("Ready=True", ""));
        fit.chain((0..unfit).map(|_| node("Ready=Unknown", ""))).collect::<Vec<_>>()
    };
    let check = |fit, unfit, expected| assert_eq!(eviction(":", &nodes(fit, unfit)), expected);
    check(0, 3, Eviction::Off);
    check(1, 1, Eviction::Every(SignedDuration::from_secs(10)));
    check(2, 3, Eviction::Halted);
    check(20, 40, Eviction::Every(SignedDuration::from_secs(100)));
    check(40, 20, Eviction::Every(SignedDuration::from_secs(10)));
}
