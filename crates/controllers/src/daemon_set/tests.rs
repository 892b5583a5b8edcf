use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is one")
}

fn now() -> Timestamp {
    "2026-01-01T00:00:10Z".parse().expect("a time")
}

fn set(rolling: Value, template: Value) -> DaemonSet {
    let strategy = match rolling {
        Value::Null => json!({ "type": "OnDelete" }),
        rolling => json!({ "type": "RollingUpdate", "rollingUpdate": rolling }),
    };
    read(json!({
        "metadata": { "name": "agent", "uid": "d", "generation": 2 },
        "spec": {
            "selector": { "matchLabels": { "app": "agent" } }, "updateStrategy": strategy,
            "template": { "spec": template },
        },
    }))
}

/// A node in a line: `name label=value taint:effect ...`.
fn node(line: &str) -> Arc<Node> {
    let mut words = line.split_whitespace();
    let mut node = json!({ "metadata": { "name": words.next() }, "spec": { "taints": [] } });
    for word in words {
        if let Some((key, effect)) = word.split_once(':') {
            let taint = json!({ "key": key, "effect": effect });
            node["spec"]["taints"].as_array_mut().expect("a list").push(taint);
        } else if let Some((key, value)) = word.split_once('=') {
            node["metadata"]["labels"][key] = value.into();
        }
    }
    Arc::new(read(node))
}

/// A pod in a line: `name node state ...`, of the template whose hash its name begins with.
fn pod(age: usize, line: &str) -> Arc<Pod> {
    let mut words = line.split_whitespace();
    let (name, node) = (words.next().expect("a name"), words.next().expect("a node"));
    let hash = name.split('-').next();
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "default", "labels": { "controller-revision-hash": hash },
            "creationTimestamp": format!("2026-01-01T00:00:{age:02}Z"),
        },
        "spec": { "containers": [], "nodeName": node },
        "status": { "phase": "Running", "conditions": [] },
    });
    for word in words {
        match word {
            "ready" => {
                let ready = json!({ "type": "Ready", "status": "True",
                                    "lastTransitionTime": "2026-01-01T00:00:00Z" });
                pod["status"]["conditions"] = json!([ready]);
            }
            "waiting" => {
                pod["spec"]["nodeName"] = "".into();
                pod["spec"]["affinity"] = serde_json::to_value(aim(None, node)).expect("written");
            }
            "deleted" => pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:09Z".into(),
            phase => pod["status"]["phase"] = phase.into(),
        }
    }
    Arc::new(read(pod))
}

fn told(plan: &Plan) -> String {
    let created = plan.create.iter().map(|node| format!("+{node}"));
    let deleted = plan.delete.iter().filter_map(|pod| pod.metadata.name.clone());
    created.chain(deleted.map(|name| format!("-{name}"))).collect::<Vec<_>>().join(" ")
}

fn with<T>(set: &DaemonSet, nodes: &[&str], pods: &[&str], ask: impl FnOnce(&View<'_>) -> T) -> T {
    let nodes: Vec<_> = nodes.iter().map(|line| node(line)).collect();
    let pods: Vec<_> = pods.iter().enumerate().map(|(age, line)| pod(age, line)).collect();
    ask(&View::new(set, &nodes, &pods, "new", now()))
}

#[track_caller]
fn check_fit(template: Value, node_line: &str, expected: Fit) {
    assert_eq!(fit(&set(json!({}), template), &node(node_line)), expected);
}

#[test]
fn a_node_fits_by_name_labels_and_affinity() {
    check_fit(json!({ "containers": [] }), "a", Fit::Wanted);
    check_fit(json!({ "containers": [], "nodeName": "b" }), "a", Fit::Unfit);
    check_fit(json!({ "containers": [], "nodeSelector": { "gpu": "yes" } }), "a", Fit::Unfit);
    check_fit(
        json!({ "containers": [], "nodeSelector": { "gpu": "yes" } }),
        "a gpu=yes",
        Fit::Wanted,
    );
    let affinity = |operator: &str, values: Value| {
        let expression = json!({ "key": "cores", "operator": operator, "values": values });
        let terms = json!([{ "matchExpressions": [expression] }]);
        let required = json!({ "nodeSelectorTerms": terms });
        json!({ "containers": [], "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": required } } })
    };
    check_fit(affinity("Gt", json!(["4"])), "a cores=8", Fit::Wanted);
    check_fit(affinity("Gt", json!(["4"])), "a cores=2", Fit::Unfit);
    check_fit(affinity("DoesNotExist", json!([])), "a", Fit::Wanted);
}

#[test]
fn taints_keep_pods_away_or_drive_them_out() {
    check_fit(json!({ "containers": [] }), "a mine:NoSchedule", Fit::Bearable);
    check_fit(json!({ "containers": [] }), "a mine:NoExecute", Fit::Unfit);
    check_fit(json!({ "containers": [] }), "a mine:PreferNoSchedule", Fit::Wanted);
    check_fit(json!({ "containers": [] }), "a node.kubernetes.io/not-ready:NoExecute", Fit::Wanted);
    let network = "a node.kubernetes.io/network-unavailable:NoSchedule";
    check_fit(json!({ "containers": [] }), network, Fit::Bearable);
    check_fit(json!({ "containers": [], "hostNetwork": true }), network, Fit::Wanted);
    let tolerant = json!({ "containers": [], "tolerations": [{ "operator": "Exists" }] });
    check_fit(tolerant, "a mine:NoExecute", Fit::Wanted);
}

#[track_caller]
fn check_manage(rolling: Value, nodes: &[&str], pods: &[&str], expected: &str) {
    let set = set(rolling, json!({ "containers": [], "tolerations": [] }));
    let plan = with(&set, nodes, pods, |view| plan::manage(view, |_| None));
    assert_eq!(told(&plan), expected);
}

#[test]
fn each_node_has_one_pod() {
    check_manage(json!({}), &["a", "b"], &["new-1 a"], "+b");
    check_manage(json!({}), &["a"], &["new-1 a", "new-2 a"], "-new-2");
    check_manage(json!({}), &["a"], &["new-1 a waiting", "new-2 a"], "-new-1");
    check_manage(json!({}), &["a mine:NoSchedule"], &[], "");
    check_manage(json!({}), &["a mine:NoExecute"], &["new-1 a"], "-new-1");
    check_manage(json!({}), &[], &["new-1 gone waiting", "new-2 gone"], "-new-1");
}

#[test]
fn pods_that_have_ended_are_replaced_after_a_while() {
    check_manage(json!({}), &["a", "b"], &["new-1 a Failed", "new-2 b Succeeded"], "-new-1 -new-2");
    check_manage(json!({}), &["a"], &["new-1 a Failed deleted"], "+a");
    let set = set(json!({}), json!({ "containers": [] }));
    let wait = Some(Duration::from_secs(4));
    let plan = with(&set, &["a"], &["new-1 a Failed"], |view| plan::manage(view, |_| wait));
    assert_eq!((told(&plan).as_str(), plan.wait), ("", wait));
}

#[test]
fn failures_are_waited_for_longer_each_time() {
    let mut backoffs = Backoffs::default();
    assert_eq!(backoffs.remaining("d", "a", now()), None);
    backoffs.note("d", "a", now());
    assert_eq!(backoffs.remaining("d", "a", now()), Some(Duration::from_secs(1)));
    backoffs.note("d", "a", now());
    assert_eq!(backoffs.remaining("d", "a", now()), Some(Duration::from_secs(2)));
    assert_eq!(backoffs.remaining("d", "b", now()), None);
}

#[test]
fn with_a_surge_the_old_stays_until_the_new_serves() {
    let surge = || json!({ "maxSurge": 1, "maxUnavailable": 0 });
    check_manage(surge(), &["a"], &["old-1 a ready", "new-1 a"], "");
    check_manage(surge(), &["a"], &["old-1 a ready", "new-1 a ready"], "-old-1");
    check_manage(surge(), &["a"], &["old-1 a", "new-1 a"], "-old-1");
}

#[track_caller]
fn check_roll(rolling: Value, pods: &[&str], expected: &str) {
    let set = set(rolling, json!({ "containers": [] }));
    let plan = with(&set, &["a", "b", "c"], pods, plan::roll);
    assert_eq!(told(&plan), expected);
}

#[test]
fn an_update_takes_as_many_as_may_be_missing() {
    let all = ["old-1 a ready", "old-2 b ready", "old-3 c ready"];
    check_roll(json!({ "maxUnavailable": 1 }), &all, "-old-1");
    check_roll(json!({ "maxUnavailable": "50%" }), &all, "-old-1 -old-2");
    let one_is_new = ["new-1 a", "old-2 b ready", "old-3 c ready"];
    check_roll(json!({ "maxUnavailable": 1 }), &one_is_new, "");
    let one_is_broken = ["new-1 a", "old-2 b", "old-3 c ready"];
    check_roll(json!({ "maxUnavailable": 1 }), &one_is_broken, "-old-2");
    let surge = || json!({ "maxSurge": 1, "maxUnavailable": 0 });
    check_roll(surge(), &all, "+a");
    check_roll(surge(), &["old-1 a ready", "new-1 a", "old-2 b ready", "old-3 c"], "+c");
}

#[test]
fn status_counts_nodes() {
    let set = set(json!({ "maxUnavailable": 1 }), json!({ "containers": [] }));
    let nodes = ["a", "b", "c mine:NoSchedule", "d"];
    let pods = ["new-1 a ready", "old-2 b", "old-3 c ready"];
    let status = with(&set, &nodes, &pods, plan::status);
    assert_eq!(
        serde_json::to_value(status).expect("written"),
        json!({
            "desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberMisscheduled": 1,
            "numberReady": 1, "numberAvailable": 1, "numberUnavailable": 2,
            "updatedNumberScheduled": 1, "observedGeneration": 2,
        }),
    );
}
