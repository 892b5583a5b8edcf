//! Who goes for whom.

use super::*;
use crate::cycle::{Scope, search};
use crate::fixtures::{pod, profile, snapshot};

/// `node: victims`, or why nobody goes.
#[track_caller]
fn check(objects: &str, new: &str, expected: &str) {
    let (profile, snapshot, pod) = (profile(), snapshot(objects), pod(new));
    let scope = Scope { start: 0, is_first_enough: false, percentage: None };
    let found = search(&profile, &pod, &snapshot, scope).expect("it can be found out");
    assert!(found.nodes.is_empty(), "the pod fits");
    let attempt = Attempt {
        pod: &pod,
        snapshot: &snapshot,
        filters: &found.filters,
        diagnosis: &found.diagnosis,
        offset: 0,
    };
    let outcome = match candidates(&attempt, 100) {
        Ok(candidates) => {
            let best = best(candidates).expect("there is one");
            let names: Vec<&str> = best.victims.iter().map(|victim| victim.key.name()).collect();
            format!("{}: {}", best.node, names.join(" "))
        }
        Err(why) => why.to_string(),
    };
    assert_eq!(outcome, expected);
}

fn node(name: &str, cpu: i32) -> String {
    format!("{{kind: Node, metadata: {{name: {name}}}, status: {{allocatable: {{cpu: {cpu}}}}}}}\n")
}

fn runs(name: &str, node: &str, priority: i32, cpu: i32, more: &str) -> String {
    format!(
        "{{kind: Pod, metadata: {{name: {name}, labels: {{app: {name}}}}}, spec: {{nodeName: {node}, \
         priority: {priority}, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}{more}}}\n"
    )
}

fn wants(priority: i32, cpu: i32) -> String {
    format!(
        "{{spec: {{priority: {priority}, containers: [{{name: c, resources: {{requests: \
         {{cpu: {cpu}}}}}}}]}}}}"
    )
}

#[test]
fn as_few_pods_go_as_will_do_and_the_less_important_ones() {
    let cluster = node("a", 3)
        + &runs("low", "a", 1, 1, "")
        + &runs("middle", "a", 2, 1, "")
        + &runs("high", "a", 3, 1, "");
    check(&cluster, &wants(10, 1), "a: low");
    check(&cluster, &wants(10, 2), "a: middle low");
    check(&cluster, &wants(2, 1), "a: low");
}

#[test]
fn nobody_goes_for_a_pod_that_is_no_more_important() {
    let cluster = node("a", 1) + &runs("p", "a", 5, 1, "");
    check(
        &cluster,
        &wants(5, 1),
        "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
    );
    check(
        &cluster,
        &wants(6, 2),
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
    );
}

#[test]
fn the_node_is_chosen_where_the_least_important_pods_go() {
    let cluster =
        node("a", 1) + &node("b", 1) + &runs("high", "a", 5, 1, "") + &runs("low", "b", 1, 1, "");
    check(&cluster, &wants(10, 1), "b: low");
}

#[test]
fn of_equal_ones_those_go_that_started_last() {
    let started = |time: &str| format!(", status: {{startTime: '2026-01-0{time}T00:00:00Z'}}");
    let cluster = node("a", 1)
        + &node("b", 1)
        + &runs("old", "a", 1, 1, &started("1"))
        + &runs("young", "b", 1, 1, &started("2"));
    check(&cluster, &wants(10, 1), "b: young");
    let one = node("a", 2)
        + &runs("old", "a", 1, 1, &started("1"))
        + &runs("young", "a", 1, 1, &started("2"));
    check(&one, &wants(10, 1), "a: young");
}

#[test]
fn budgets_are_kept_if_they_can_be() {
    let budget = |app: &str, allowed: i32| {
        format!(
            "{{kind: PodDisruptionBudget, metadata: {{name: {app}, namespace: default}}, \
             spec: {{selector: {{matchLabels: {{app: {app}}}}}}}, \
             status: {{disruptionsAllowed: {allowed}, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}}}}\n"
        )
    };
    let cluster =
        node("a", 1) + &node("b", 1) + &runs("kept", "a", 1, 1, "") + &runs("free", "b", 5, 1, "");
    check(&(cluster.clone() + &budget("kept", 0)), &wants(10, 1), "b: free");
    check(&(cluster.clone() + &budget("kept", 1)), &wants(10, 1), "a: kept");
    // Where there is no other way, they are broken.
    let both = cluster + &budget("kept", 0) + &budget("free", 0);
    check(&both, &wants(10, 1), "a: kept");
    let one = node("a", 2)
        + &runs("kept", "a", 1, 1, "")
        + &runs("free", "a", 5, 1, "")
        + &budget("kept", 0);
    check(&one, &wants(10, 1), "a: free");
}

#[test]
fn pods_that_cannot_bear_others_go_too() {
    let anti = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
                [{topologyKey: host, labelSelector: {matchLabels: {app: new}}}]}}, ";
    let cluster = "{kind: Node, metadata: {name: a, labels: {host: a}}}\n".to_owned()
        + &runs("shy", "a", 1, 1, "").replacen("spec: {", &format!("spec: {{{anti}"), 1);
    check(&cluster, "{metadata: {labels: {app: new}}, spec: {priority: 2}}", "a: shy");
}
