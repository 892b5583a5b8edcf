//! Which node gets a pod, and what a pod is told that gets none.
//!
//! Nodes are objects that nobody runs. They are tainted and labelled, so that no pods but a
//! scenario's own come to them and those go nowhere else; others may have nodes of their own.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "scheduling", alone:
    a_pod_gets_a_node_that_has_what_it_asks_for [B1],
    a_pod_that_fits_nowhere_is_told_why [B1],
    a_waiting_pod_goes_when_a_node_is_untainted [B1],
    pods_that_bear_no_others_get_a_node_each [B1],
    a_more_important_pod_takes_the_place_of_another [B1],
}

/// What keeps others' pods away, and leads ours here.
const MARK: &str = "conformance.kubewright.dev/scenario";

fn node(cx: &Context, name: &str, cpu: &str) -> Value {
    let amounts = json!({ "cpu": cpu, "memory": "1Gi", "pods": "10" });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": format!("{}-{name}", cx.namespace),
            "labels": { MARK: cx.namespace, "name": name },
        },
        "spec": { "taints": [{ "key": MARK, "value": cx.namespace, "effect": "NoSchedule" }] },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}

fn pod(cx: &Context, name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": {
            "nodeSelector": { MARK: cx.namespace },
            "tolerations": [{ "key": MARK, "value": cx.namespace }],
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main",
                "image": "example.com/nobody-runs-it",
                "resources": { "requests": { "cpu": cpu } },
            }],
        },
    })
}

/// Makes nodes that are taken for ready, whoever looks after them.
async fn make(cx: &Context, nodes: &[Value]) -> Result<()> {
    cx.wait_for_account().await?;
    for node in nodes {
        cx.create("/api/v1/nodes", node).await?;
    }
    Ok(())
}

/// Takes the scenario's nodes away.
async fn clean(cx: &Context) -> Result<()> {
    let ours = format!("/api/v1/nodes?labelSelector={MARK}%3D{}", cx.namespace);
    expect(&cx.send(Request::delete(ours)).await?, 200)?;
    Ok(())
}

/// Waits until what is at a path is so.
async fn wait(cx: &Context, path: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
    let is_so = |answer: &Answer| answer.json().is_ok_and(|object| is_so(&object));
    cx.endpoint.poll(&Request::get(path), PATIENCE, is_so).await?.json()
}

/// Waits until a pod has a node, and gives the node's short name.
async fn placed(cx: &Context, name: &str) -> Result<String> {
    let has_node = |pod: &Value| !text(pod, "/spec/nodeName").is_empty();
    let pod = wait(cx, &cx.core(&format!("pods/{name}")), has_node).await?;
    let node = text(&pod, "/spec/nodeName");
    Ok(node.strip_prefix(&format!("{}-", cx.namespace)).unwrap_or(node).to_owned())
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    pod["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == kind)
}

/// Waits until a pod is told something of its scheduling.
async fn told(cx: &Context, name: &str, message: &str) -> Result<Value> {
    let is_told =
        |pod: &Value| condition(pod, "PodScheduled").is_some_and(|it| it["message"] == message);
    wait(cx, &cx.core(&format!("pods/{name}")), is_told).await
}

/// How many nodes there are that are not the scenario's.
async fn others(cx: &Context) -> Result<usize> {
    let nodes = cx.get("/api/v1/nodes").await?;
    let items = nodes["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_ours = |node: &&Value| node["metadata"]["labels"][MARK] == cx.namespace;
    Ok(items.len() - items.iter().filter(is_ours).count())
}

async fn a_pod_gets_a_node_that_has_what_it_asks_for(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "small", "1"), node(&cx, "large", "4")]).await?;
    cx.create(&cx.core("pods"), &pod(&cx, "big", "3")).await?;
    ensure!(placed(&cx, "big").await? == "large");
    let bound = cx.get(&cx.core("pods/big")).await?;
    let condition = condition(&bound, "PodScheduled").cloned().unwrap_or_default();
    ensure!(condition["status"] == "True", "{condition}");

    let about = "regarding.name%3Dbig,reason%3DScheduled";
    let path = format!("{}?fieldSelector={about}", cx.apis("events.k8s.io/v1", "events"));
    let events = wait(&cx, &path, |list| !list["items"][0].is_null()).await?;
    let event = &events["items"][0];
    let note = format!("Successfully assigned {0}/big to {0}-large", cx.namespace);
    ensure!(event["note"] == note && event["type"] == "Normal", "{event}");
    ensure!(event["action"] == "Binding", "{event}");
    ensure!(event["reportingController"] == "default-scheduler", "{event}");
    clean(&cx).await
}

async fn a_pod_that_fits_nowhere_is_told_why(cx: Context) -> Result<()> {
    let mut tainted = node(&cx, "tainted", "8");
    tainted["spec"]["taints"][0]["value"] = json!("other");
    let mut off = node(&cx, "off", "8");
    off["spec"]["unschedulable"] = json!(true);
    make(&cx, &[node(&cx, "small", "1"), tainted, off]).await?;
    cx.create(&cx.core("pods"), &pod(&cx, "big", "3")).await?;
    let others = others(&cx).await?;
    let elsewhere = match others {
        0 => String::new(),
        _ => format!("{others} node(s) didn't match Pod's node affinity/selector, "),
    };
    let (all, hopeless) = (3 + others, 3 + others);
    let mut reasons = vec![
        "1 Insufficient cpu".to_owned(),
        "1 node(s) had untolerated taint(s)".to_owned(),
        "1 node(s) were unschedulable".to_owned(),
    ];
    reasons.extend(elsewhere.strip_suffix(", ").map(str::to_owned));
    reasons.sort();
    let message = format!(
        "0/{all} nodes are available: {}. no new claims to deallocate, \
         preemption: 0/{all} nodes are available: {hopeless} \
         Preemption is not helpful for scheduling.",
        reasons.join(", ")
    );
    let pod = told(&cx, "big", &message).await?;
    let condition = condition(&pod, "PodScheduled").cloned().unwrap_or_default();
    ensure!(
        condition["status"] == "False" && condition["reason"] == "Unschedulable",
        "{condition}"
    );
    clean(&cx).await
}

async fn a_waiting_pod_goes_when_a_node_is_untainted(cx: Context) -> Result<()> {
    let mut tainted = node(&cx, "only", "4");
    tainted["spec"]["taints"][0]["value"] = json!("other");
    make(&cx, &[tainted]).await?;
    cx.create(&cx.core("pods"), &pod(&cx, "p", "1")).await?;
    let waits =
        |pod: &Value| condition(pod, "PodScheduled").is_some_and(|it| it["status"] == "False");
    wait(&cx, &cx.core("pods/p"), waits).await?;
    let node = format!("/api/v1/nodes/{}-only", cx.namespace);
    let open = json!({ "spec": { "taints": [
        { "key": MARK, "value": cx.namespace, "effect": "NoSchedule" },
    ] } });
    expect(&cx.send(Request::merge_patch(node, &open)).await?, 200)?;
    ensure!(placed(&cx, "p").await? == "only");
    clean(&cx).await
}

async fn pods_that_bear_no_others_get_a_node_each(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "a", "4"), node(&cx, "b", "4")]).await?;
    let mut nodes = Vec::new();
    for name in ["one", "two"] {
        let mut shy = pod(&cx, name, "1");
        shy["metadata"]["labels"]["app"] = json!("shy");
        shy["spec"]["affinity"] = json!({ "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{
                "topologyKey": "name",
                "labelSelector": { "matchLabels": { "app": "shy" } },
            }],
        } });
        cx.create(&cx.core("pods"), &shy).await?;
        nodes.push(placed(&cx, name).await?);
    }
    nodes.sort();
    ensure!(nodes == ["a", "b"], "{nodes:?}");
    clean(&cx).await
}

async fn a_more_important_pod_takes_the_place_of_another(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "1")]).await?;
    let class = format!("{}-high", cx.namespace);
    let high = json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": { "name": class },
        "value": 1000,
    });
    cx.create("/apis/scheduling.k8s.io/v1/priorityclasses", &high).await?;
    cx.create(&cx.core("pods"), &pod(&cx, "victim", "1")).await?;
    placed(&cx, "victim").await?;
    let mut urgent = pod(&cx, "urgent", "1");
    urgent["spec"]["priorityClassName"] = json!(class);
    cx.create(&cx.core("pods"), &urgent).await?;
    // Nobody runs the victim, so it goes at once.
    let victim = Request::get(cx.core("pods/victim"));
    cx.endpoint.poll(&victim, PATIENCE, |answer| answer.status == 404).await?;
    ensure!(placed(&cx, "urgent").await? == "only");
    let path = format!("/apis/scheduling.k8s.io/v1/priorityclasses/{class}");
    expect(&cx.send(Request::delete(path)).await?, 200)?;
    clean(&cx).await
}
