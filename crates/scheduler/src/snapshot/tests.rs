//! What is on nodes, as pods and nodes come and go in any order.

use super::*;
use crate::fixtures::{node, pod};

/// What a node has to do, in thousandths of a processor, and with how many pods.
fn load(snapshot: &Snapshot, name: &str) -> Option<(i64, usize)> {
    snapshot.node(name).map(|node| (node.requested.milli_cpu, node.pods.len()))
}

fn on(name: &str, node: Option<&str>) -> Arc<Pod> {
    let node = node.map(|node| format!("nodeName: {node}, ")).unwrap_or_default();
    pod(&format!(
        "{{metadata: {{name: {name}}}, spec: {{{node}containers: [{{name: c, resources: \
         {{requests: {{cpu: 500m}}}}}}]}}}}"
    ))
}

#[test]
fn pods_may_be_seen_before_their_node_and_after_it() {
    let mut snapshot = Snapshot::default();
    snapshot.set_pod(on("p", Some("a")));
    assert_eq!(load(&snapshot, "a"), None);
    snapshot.set_node(node("{metadata: {name: a}}"));
    assert_eq!(load(&snapshot, "a"), Some((500, 1)));
    snapshot.remove_node("a");
    snapshot.set_pod(on("q", Some("a")));
    snapshot.remove_pod("p");
    snapshot.set_node(node("{metadata: {name: a}}"));
    assert_eq!(load(&snapshot, "a"), Some((500, 1)));
}

#[test]
fn an_assumed_pod_counts_until_it_is_seen_or_forgotten() {
    let mut snapshot = Snapshot::default();
    for name in ["a", "b"] {
        snapshot.set_node(node(&format!("{{metadata: {{name: {name}}}}}")));
    }
    snapshot.assume(on("p", None), &"a".into());
    assert!(snapshot.is_assumed("p"));
    assert_eq!(load(&snapshot, "a"), Some((500, 1)));
    // Whatever was assumed, the watch is right.
    snapshot.set_pod(on("p", Some("b")));
    assert_eq!((load(&snapshot, "a"), load(&snapshot, "b")), (Some((0, 0)), Some((500, 1))));
    assert!(!snapshot.forget("p"), "it is there");
    snapshot.assume(on("q", None), &"a".into());
    assert!(snapshot.forget("q"));
    assert_eq!(load(&snapshot, "a"), Some((0, 0)));
}

#[test]
fn a_node_that_changes_keeps_its_pods() {
    let mut snapshot = Snapshot::default();
    snapshot
        .set_node(node("{metadata: {name: a}, status: {images: [{names: [i], sizeBytes: 1}]}}"));
    snapshot.set_pod(on("p", Some("a")));
    snapshot.set_node(node("{metadata: {name: a}, status: {allocatable: {cpu: 9}}}"));
    assert_eq!(load(&snapshot, "a"), Some((500, 1)));
    assert_eq!(snapshot.node("a").map(|node| node.allocatable.milli_cpu), Some(9000));
    assert_eq!(snapshot.nodes_with("i"), 0);
}
