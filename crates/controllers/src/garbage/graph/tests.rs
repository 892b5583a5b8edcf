use serde_json::{Value, json};

use super::*;

fn kind(namespaced: bool) -> Arc<Kind> {
    let name = if namespaced { "Namespaced" } else { "Cluster" };
    Arc::new(Kind {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: name.to_owned(),
        plural: name.to_lowercase(),
        namespaced,
        verbs: Vec::new(),
    })
}

/// A node from one word: `uid`, `ns/uid`, with `<owner` for each owner, `<!owner` for one that it
/// blocks, and `+F` or `+O` when it is deleted in the foreground or orphaning. An object is called
/// after its uid.
fn node(text: &str) -> Node {
    let (text, deleted) = match text.split_once('+') {
        Some((text, how)) => (text, Some(how)),
        None => (text, None),
    };
    let mut words = text.split('<');
    let place = words.next().unwrap_or_default();
    let (namespace, uid) = place.split_once('/').unwrap_or(("", place));
    let reference = |owner: &str| {
        let (blocks, owner) = match owner.strip_prefix('!') {
            Some(owner) => (true, owner),
            None => (false, owner),
        };
        json!({
            "apiVersion": "example.com/v1",
            "kind": if owner.starts_with("cluster") { "Cluster" } else { "Namespaced" },
            "name": owner,
            "uid": owner,
            "blockOwnerDeletion": blocks,
        })
    };
    let owners: Vec<Value> = words.map(reference).collect();
    let object = json!({
        "namespace": namespace,
        "name": uid,
        "uid": uid,
        "ownerReferences": owners,
        "deletionTimestamp": deleted.map(|_| "2026-01-01T00:00:00Z"),
        "finalizers": match deleted {
            Some("F") => json!([FOREGROUND]),
            Some("O") => json!([ORPHAN]),
            _ => json!([]),
        },
    });
    let object = serde_json::from_value(object).expect("metadata");
    Node::read(&kind(!namespace.is_empty()), &object)
}

fn effects(effects: &Effects) -> String {
    let judged = effects.judge.iter().map(|uid| format!("judge {uid}"));
    let orphaned = effects.orphan.iter().map(|uid| format!("orphan {uid}"));
    let misplaced = effects.misplaced.iter().map(|one| format!("misplaced {}", one.uid));
    judged.chain(orphaned).chain(misplaced).collect::<Vec<_>>().join(", ")
}

/// Plays lines on a new graph: a node, or `-uid` for one that goes, then what that asks for.
#[track_caller]
fn check(lines: &[(&str, &str)]) {
    let mut graph = Graph::default();
    for (change, expected) in lines {
        let asked = match change.strip_prefix('-') {
            Some(uid) => graph.delete(uid),
            None => graph.apply(node(change)),
        };
        assert_eq!(effects(&asked), *expected, "after {change}");
    }
}

#[test]
fn an_object_before_its_owner_gets_a_look() {
    check(&[("n/child<parent", "judge child"), ("n/parent", "")]);
}

#[test]
fn an_object_after_its_owner_gets_none() {
    check(&[("n/parent", ""), ("n/child<parent", ""), ("n/child<parent", "")]);
}

#[test]
fn with_the_owner_its_dependents_get_a_look() {
    check(&[
        ("n/parent", ""),
        ("n/a<parent", ""),
        ("n/b<parent", ""),
        ("n/b", ""),
        ("-parent", "judge a"),
    ]);
}

#[test]
fn a_foreground_owner_looks_at_its_dependents_and_again_when_they_go() {
    check(&[
        ("n/parent", ""),
        ("n/child<!parent", ""),
        ("n/parent+F", "judge child, judge parent"),
        ("n/parent+F", ""),
        ("-child", "judge parent"),
    ]);
}

#[test]
fn a_dependent_that_lets_go_frees_its_owner() {
    check(&[
        ("n/parent+F", "judge parent"),
        ("n/child<!parent", "judge parent"),
        ("n/child<parent", "judge parent"),
        ("n/child", ""),
    ]);
    check(&[("n/parent", ""), ("n/child<!parent", ""), ("n/child", "judge parent")]);
}

#[test]
fn an_owner_orphans_once() {
    check(&[
        ("n/parent", ""),
        ("n/child<parent", ""),
        ("n/parent+O", "orphan parent"),
        ("n/parent+O", ""),
    ]);
}

#[test]
fn an_owner_in_another_namespace_is_told_in_either_order() {
    check(&[("a/parent", ""), ("b/child<parent", "judge child, misplaced child")]);
    check(&[("b/child<parent", "judge child"), ("a/parent", "judge child, misplaced child")]);
}

#[test]
fn a_cluster_scoped_owner_has_dependents_everywhere() {
    check(&[("cluster1", ""), ("a/child<cluster1", ""), ("cluster2<cluster1", "")]);
}

#[test]
fn circles_are_tolerated() {
    check(&[("n/a<b", "judge a"), ("n/b<a", ""), ("-a", "judge b"), ("-b", "")]);
    check(&[("n/a<a", "judge a"), ("-a", "judge a")]);
}

#[test]
fn the_message_names_the_owner_where_it_was_looked_for() {
    let mut graph = Graph::default();
    graph.apply(node("a/parent"));
    let effects = graph.apply(node("b/child<parent"));
    let messages: Vec<String> = effects.misplaced.iter().map(Misplaced::message).collect();
    let expected = "ownerRef [example.com/v1/Namespaced, namespace: b, name: parent, uid: parent] \
                    does not exist in namespace \"b\"";
    assert_eq!(messages, [expected]);
}
