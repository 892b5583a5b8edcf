//! Nodes without anybody on them: what controllers make of what they say.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, is_deleting, pod, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "nodes":
    conditions_of_a_node_become_taints [J3],
    a_pod_leaves_a_node_that_it_does_not_bear [J3],
    a_pod_stays_on_a_node_that_it_bears [J3],
    pods_of_a_node_that_is_gone_are_collected [J3],
    a_node_is_told_how_long_it_may_believe_what_it_reads [J3],
}

const NODES: &str = "/api/v1/nodes";

/// A node that is ours alone, and ready.
pub(super) struct Node {
    pub(super) name: String,
}

impl Node {
    pub(super) async fn new(cx: &Context, labels: Value) -> Result<Self> {
        let name = format!("node-{}", cx.namespace);
        cx.create(NODES, &json!({ "metadata": { "name": name, "labels": labels } })).await?;
        let node = Node { name };
        node.say(cx, "True").await?;
        node.tainted(cx, &[]).await?;
        Ok(node)
    }

    pub(super) async fn delete(self, cx: &Context) -> Result<()> {
        expect(&cx.send(Request::delete(format!("{NODES}/{}", self.name))).await?, 200)?;
        Ok(())
    }

    /// Says whether it is ready.
    async fn say(&self, cx: &Context, ready: &str) -> Result<()> {
        let condition = json!({
            "type": "Ready", "status": ready, "reason": "Said", "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let patch = json!({ "status": { "conditions": [condition] } });
        let status = format!("{NODES}/{}/status", self.name);
        expect(&cx.send(Request::strategic_patch(status, &patch)).await?, 200)?;
        Ok(())
    }

    /// Waits for taints, each as `key:Effect`, apart from those that make pods leave: whether there
    /// are some depends on other nodes.
    async fn tainted(&self, cx: &Context, expected: &[&str]) -> Result<()> {
        let is_right = |node: Value| {
            let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
            let taints = taints.iter().filter(|taint| taint["effect"] == "NoSchedule");
            let names = taints.map(|taint| {
                let key = text(taint, "/key");
                key.strip_prefix("node.kubernetes.io/").unwrap_or(key).to_owned()
            });
            let mut names: Vec<String> = names.collect();
            names.sort_unstable();
            names == expected
        };
        let get = Request::get(format!("{NODES}/{}", self.name));
        cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(is_right)).await?;
        Ok(())
    }
}

/// Has a pod run on a node, at an address, ready or not.
pub(super) async fn run_pod(
    cx: &Context,
    node: &Node,
    pod: &Value,
    address: &str,
    is_ready: bool,
) -> Result<Value> {
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = json!(node.name);
    let made = cx.create(&cx.core("pods"), &pod).await?;
    let ready = if is_ready { "True" } else { "False" };
    let condition = json!({
        "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({ "status": {
        "phase": "Running", "podIP": address, "podIPs": [{ "ip": address }], "conditions": [condition],
    } });
    let path = cx.core(&format!("pods/{}/status", text(&made, "/metadata/name")));
    expect(&cx.send(Request::strategic_patch(path, &status)).await?, 200)
}

async fn conditions_of_a_node_become_taints(cx: Context) -> Result<()> {
    let node = Node::new(&cx, json!({})).await?;
    node.say(&cx, "False").await?;
    node.tainted(&cx, &["not-ready"]).await?;
    let cordon = json!({ "spec": { "unschedulable": true } });
    let path = format!("{NODES}/{}", node.name);
    expect(&cx.send(Request::merge_patch(&path, &cordon)).await?, 200)?;
    node.tainted(&cx, &["not-ready", "unschedulable"]).await?;
    node.say(&cx, "True").await?;
    node.tainted(&cx, &["unschedulable"]).await?;
    node.delete(&cx).await
}

/// Has pods leave a node.
async fn clear(cx: &Context, node: &Node) -> Result<()> {
    let taint = json!([{ "key": "example.com/leave", "effect": "NoExecute" }]);
    let patch = json!({ "spec": { "taints": taint } });
    let path = format!("{NODES}/{}", node.name);
    expect(&cx.send(Request::merge_patch(path, &patch)).await?, 200)?;
    Ok(())
}

async fn a_pod_leaves_a_node_that_it_does_not_bear(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let node = Node::new(&cx, json!({})).await?;
    run_pod(&cx, &node, &pod("leaves"), "10.1.0.1", true).await?;
    clear(&cx, &node).await?;
    let get = Request::get(cx.core("pods/leaves"));
    let pod = cx.endpoint.poll(&get, PATIENCE, is_deleting).await?.json()?;
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let target = conditions.iter().find(|it| it["type"] == "DisruptionTarget");
    let target = target.cloned().unwrap_or_default();
    same("reason", &target["reason"], json!("DeletionByTaintManager"))?;
    let message = "Taint manager: deleting due to NoExecute taint";
    same("message", &target["message"], json!(message))?;
    node.delete(&cx).await
}

async fn a_pod_stays_on_a_node_that_it_bears(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let node = Node::new(&cx, json!({})).await?;
    let mut stays = pod("stays");
    stays["spec"]["tolerations"] = json!([{ "key": "example.com/leave", "operator": "Exists" }]);
    run_pod(&cx, &node, &stays, "10.1.0.1", true).await?;
    run_pod(&cx, &node, &pod("leaves"), "10.1.0.2", true).await?;
    clear(&cx, &node).await?;
    cx.endpoint.poll(&Request::get(cx.core("pods/leaves")), PATIENCE, is_deleting).await?;
    let stays = cx.get(&cx.core("pods/stays")).await?;
    same("deleted", &stays["metadata"]["deletionTimestamp"], Value::Null)?;
    node.delete(&cx).await
}

/// A node is believed to come back for a while, so this takes its time.
async fn pods_of_a_node_that_is_gone_are_collected(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let mut orphan = pod("orphan");
    orphan["spec"]["nodeName"] = json!(format!("no-{}", cx.namespace));
    orphan["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cx.create(&cx.core("pods"), &orphan).await?;
    let get = Request::get(cx.core("pods/orphan"));
    let answer = cx.endpoint.poll(&get, PATIENCE * 3 / 2, is_deleting).await?;
    let status = answer.json()?["status"].clone();
    same("phase", &status["phase"], json!("Failed"))?;
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let why: Vec<Value> = conditions
        .filter(|it| it["type"] == "DisruptionTarget")
        .map(|it| json!([it["status"], it["reason"], it["message"]]))
        .collect();
    let expected = json!([["True", "DeletionByPodGC", "PodGC: node no longer exists"]]);
    same("condition", &json!(why), expected)?;
    cx.release(&cx.core("pods/orphan")).await
}

async fn a_node_is_told_how_long_it_may_believe_what_it_reads(cx: Context) -> Result<()> {
    let node = Node::new(&cx, json!({})).await?;
    let ttl = "/metadata/annotations/node.alpha.kubernetes.io~1ttl";
    let path = format!("{NODES}/{}", node.name);
    let told = cx.wait(&path, |node| !text(node, ttl).is_empty()).await?;
    // Not at all, where there are few.
    same("ttl", &json!(text(&told, ttl)), json!("0"))?;
    node.delete(&cx).await
}
