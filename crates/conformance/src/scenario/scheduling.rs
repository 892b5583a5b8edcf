//! Which node gets a pod, and what a pod is told that gets none.
//!
//! Nodes are objects that nobody runs. They are tainted and labelled, so that no pods but a
//! scenario's own come to them and those go nowhere else; others may have nodes of their own. Here
//! are the scenarios that count the nodes, and so run alone.

mod claims;
mod placement;
mod preemption;
mod waiting;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Context, OWNER, Scenario, expect, scenarios, text};
use crate::endpoint::Request;

scenarios! { "scheduling", alone:
    a_pod_gets_a_node_that_has_what_it_asks_for [K5],
    a_pod_that_fits_nowhere_is_told_why [K5],
    a_pod_is_told_what_each_node_is_short_of [K5],
    a_pod_is_told_which_others_keep_it_away [K5],
}

/// Those here, and those that may run beside others.
pub(super) fn all() -> Vec<Scenario> {
    [SCENARIOS, placement::SCENARIOS, claims::SCENARIOS, waiting::SCENARIOS, preemption::SCENARIOS]
        .concat()
}

const NODES: &str = "/api/v1/nodes";

fn node(cx: &Context, name: &str, cpu: &str) -> Value {
    let amounts = json!({ "cpu": cpu, "memory": "16Gi", "pods": "10" });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": full_name(cx, name),
            "labels": {
                OWNER: cx.namespace,
                "name": name,
                "kubernetes.io/hostname": full_name(cx, name),
            },
        },
        "spec": { "taints": [{ "key": OWNER, "value": cx.namespace, "effect": "NoSchedule" }] },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}

/// The name of what is not in a namespace.
fn full_name(cx: &Context, name: &str) -> String {
    format!("{}-{name}", cx.namespace)
}

fn node_path(cx: &Context, name: &str) -> String {
    format!("{NODES}/{}", full_name(cx, name))
}

fn pod(cx: &Context, name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": {
            "nodeSelector": { OWNER: cx.namespace },
            "tolerations": [
                { "key": OWNER, "value": cx.namespace },
                // Until a controller has looked at them, nodes are new.
                { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule" },
            ],
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main",
                "image": "example.com/nobody-runs-it",
                "resources": { "requests": { "cpu": cpu } },
            }],
        },
    })
}

/// The object with these fields at a pointer, besides those that it has there.
fn with(mut object: Value, pointer: &str, fields: Value) -> Value {
    let place = object.pointer_mut(pointer).and_then(Value::as_object_mut);
    if let (Some(place), Value::Object(fields)) = (place, fields) {
        place.extend(fields);
    }
    object
}

/// The object with these labels besides its own.
fn labelled(object: Value, labels: Value) -> Value {
    with(object, "/metadata/labels", labels)
}

/// The pod where no other node will do.
fn pinned(pod: Value, node: &str) -> Value {
    with(pod, "/spec/nodeSelector", json!({ "name": node }))
}

/// Makes nodes, and returns when the scheduler knows them all: who has a choice must see it.
async fn make(cx: &Context, nodes: &[Value]) -> Result<()> {
    cx.wait_for_account().await?;
    for node in nodes {
        cx.create(NODES, node).await?;
        let name = text(node, "/metadata/labels/name");
        let mut probe = pinned(pod(cx, &format!("probe-{name}"), "0"), name);
        probe["spec"]["tolerations"] = json!([{ "operator": "Exists" }]);
        create(cx, probe).await?;
    }
    for node in nodes {
        let probe = format!("probe-{}", text(node, "/metadata/labels/name"));
        placed(cx, &probe).await?;
        remove(cx, &probe).await?;
    }
    Ok(())
}

async fn create(cx: &Context, pod: Value) -> Result<Value> {
    cx.create(&cx.core("pods"), &pod).await
}

/// Waits until a pod has a node, and gives the node's short name.
async fn placed(cx: &Context, name: &str) -> Result<String> {
    let has_node = |pod: &Value| !text(pod, "/spec/nodeName").is_empty();
    let pod = cx.wait(&cx.core(&format!("pods/{name}")), has_node).await?;
    let node = text(&pod, "/spec/nodeName");
    Ok(node.strip_prefix(&format!("{}-", cx.namespace)).unwrap_or(node).to_owned())
}

/// Creates a pod, and fails unless it comes to this node.
async fn goes_to(cx: &Context, pod: Value, node: &str) -> Result<()> {
    let name = text(&create(cx, pod).await?, "/metadata/name").to_owned();
    let found = placed(cx, &name).await?;
    ensure!(found == node, "{name} is on {found}, not on {node}");
    Ok(())
}

/// Has a pod be gone.
async fn remove(cx: &Context, name: &str) -> Result<()> {
    let pod = cx.core(&format!("pods/{name}?gracePeriodSeconds=0"));
    expect(&cx.send(Request::delete(pod)).await?, 200)?;
    Ok(())
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    pod["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == kind)
}

/// Waits until a pod is told something of its scheduling that is as it should be.
async fn told_so(cx: &Context, name: &str, is_so: impl Fn(&str) -> bool) -> Result<Value> {
    let is_told = |pod: &Value| {
        let told = condition(pod, "PodScheduled").and_then(|it| it["message"].as_str());
        told.is_some_and(&is_so)
    };
    cx.wait(&cx.core(&format!("pods/{name}")), is_told).await
}

/// Waits until a pod is told exactly this.
async fn told(cx: &Context, name: &str, message: &str) -> Result<Value> {
    told_so(cx, name, |told| told == message).await
}

/// Waits until a pod is told this among other things: others may have nodes meanwhile, which count.
async fn told_of(cx: &Context, name: &str, part: &str) -> Result<Value> {
    told_so(cx, name, |told| told.contains(part)).await
}

/// How many nodes there are, and how many of them are not the scenario's.
async fn count_nodes(cx: &Context) -> Result<(usize, usize)> {
    let nodes = cx.get(NODES).await?;
    let items = nodes["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_other = |node: &&Value| node["metadata"]["labels"][OWNER] != cx.namespace;
    Ok((items.len(), items.iter().filter(is_other).count()))
}

/// What a pod is told that fits on none of our nodes, for these reasons, and on no others' since it
/// is not for them. `hopeless` of ours would not do either if less important pods went; on the rest
/// there are none.
async fn refusal(cx: &Context, reasons: &[&str], hopeless: usize) -> Result<String> {
    let (all, others) = count_nodes(cx).await?;
    let mut reasons: Vec<String> = reasons.iter().map(|it| (*it).to_owned()).collect();
    let elsewhere = format!("{others} node(s) didn't match Pod's node affinity/selector");
    reasons.extend((others > 0).then_some(elsewhere));
    reasons.sort();
    let hopeless = hopeless + others;
    let mut outlook = Vec::new();
    if all > hopeless {
        let crowded = all - hopeless;
        outlook.push(format!("{crowded} No preemption victims found for incoming pod"));
    }
    if hopeless > 0 {
        outlook.push(format!("{hopeless} Preemption is not helpful for scheduling"));
    }
    outlook.sort();
    Ok(format!(
        "0/{all} nodes are available: {}. no new claims to deallocate, \
         preemption: 0/{all} nodes are available: {}.",
        reasons.join(", "),
        outlook.join(", "),
    ))
}

/// Waits until an event tells of a pod, and gives it.
async fn event(cx: &Context, name: &str, reason: &str) -> Result<Value> {
    let about = format!("regarding.name%3D{name},reason%3D{reason}");
    let path = format!("{}?fieldSelector={about}", cx.apis("events.k8s.io/v1", "events"));
    let mut events = cx.wait(&path, |list| !list["items"][0].is_null()).await?;
    Ok(events["items"][0].take())
}

async fn a_pod_gets_a_node_that_has_what_it_asks_for(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "small", "1"), node(&cx, "large", "4")]).await?;
    goes_to(&cx, pod(&cx, "big", "3"), "large").await?;
    let bound = cx.get(&cx.core("pods/big")).await?;
    let condition = condition(&bound, "PodScheduled").cloned().unwrap_or_default();
    ensure!(condition["status"] == "True", "{condition}");
    let event = event(&cx, "big", "Scheduled").await?;
    let note = format!("Successfully assigned {0}/big to {0}-large", cx.namespace);
    ensure!(event["note"] == note && event["type"] == "Normal", "{event}");
    ensure!(event["action"] == "Binding", "{event}");
    ensure!(event["reportingController"] == "default-scheduler", "{event}");
    Ok(())
}

async fn a_pod_that_fits_nowhere_is_told_why(cx: Context) -> Result<()> {
    let mut tainted = node(&cx, "tainted", "8");
    tainted["spec"]["taints"][0]["value"] = json!("other");
    let mut off = node(&cx, "off", "8");
    off["spec"]["unschedulable"] = json!(true);
    make(&cx, &[node(&cx, "small", "1"), tainted, off]).await?;
    create(&cx, pod(&cx, "big", "3")).await?;
    let reasons = [
        "1 Insufficient cpu",
        "1 node(s) had untolerated taint(s)",
        "1 node(s) were unschedulable",
    ];
    let message = refusal(&cx, &reasons, 3).await?;
    let pod = told(&cx, "big", &message).await?;
    let condition = condition(&pod, "PodScheduled").cloned().unwrap_or_default();
    ensure!(condition["status"] == "False", "{condition}");
    ensure!(condition["reason"] == "Unschedulable", "{condition}");
    let event = event(&cx, "big", "FailedScheduling").await?;
    ensure!(event["type"] == "Warning" && event["action"] == "Scheduling", "{event}");
    ensure!(text(&event, "/note").starts_with("0/"), "{event}");
    Ok(())
}

/// A node with all that anybody asks for, but for one amount.
fn short(cx: &Context, name: &str, resource: &str, amount: &str) -> Value {
    let plenty = json!({ "ephemeral-storage": "10Gi", "example.com/gpu": "4", resource: amount });
    let capable = with(node(cx, name, "8"), "/status/capacity", plenty.clone());
    with(capable, "/status/allocatable", plenty)
}

async fn a_pod_is_told_what_each_node_is_short_of(cx: Context) -> Result<()> {
    let crowded = short(&cx, "crowded", "pods", "1");
    make(
        &cx,
        &[
            short(&cx, "slow", "cpu", "1"),
            short(&cx, "forgetful", "memory", "1Gi"),
            short(&cx, "full", "ephemeral-storage", "1Gi"),
            short(&cx, "plain", "example.com/gpu", "0"),
            crowded,
        ],
    )
    .await?;
    goes_to(&cx, pinned(pod(&cx, "first", "1"), "crowded"), "crowded").await?;
    let wanted = json!({
        "cpu": "2", "memory": "2Gi", "ephemeral-storage": "2Gi", "example.com/gpu": "1",
    });
    let amounts = json!({ "requests": wanted, "limits": { "example.com/gpu": "1" } });
    let demanding = with(pod(&cx, "demanding", "2"), "/spec/containers/0/resources", amounts);
    create(&cx, demanding).await?;
    let reasons = [
        "1 Insufficient cpu",
        "1 Insufficient ephemeral-storage",
        "1 Insufficient example.com/gpu",
        "1 Insufficient memory",
        "1 Too many pods",
    ];
    let message = refusal(&cx, &reasons, 4).await?;
    told(&cx, "demanding", &message).await?;
    let told = event(&cx, "demanding", "FailedScheduling").await?;
    ensure!(told["note"] == message, "{told}");
    Ok(())
}

async fn a_pod_is_told_which_others_keep_it_away(cx: Context) -> Result<()> {
    let zoned = |name: &str| labelled(node(&cx, name, "4"), json!({ "zone": name }));
    let nodes = [
        zoned("ports"),
        zoned("loud"),
        zoned("hermit"),
        zoned("spread"),
        node(&cx, "nowhere", "4"),
    ];
    make(&cx, &nodes).await?;
    let away_from = |app: &str| {
        json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "zone", "labelSelector": { "matchLabels": { "app": app } },
        }] } })
    };
    let port = json!({ "ports": [{ "containerPort": 80, "hostPort": 8080 }] });
    let listener = with(pod(&cx, "listener", "1"), "/spec/containers/0", port.clone());
    goes_to(&cx, pinned(listener, "ports"), "ports").await?;
    goes_to(&cx, pinned(pod(&cx, "loud", "1"), "loud"), "loud").await?;
    let hermit = with(pod(&cx, "hermit", "1"), "/spec", json!({ "affinity": away_from("shy") }));
    goes_to(&cx, pinned(hermit, "hermit"), "hermit").await?;
    let another = labelled(pod(&cx, "another", "1"), json!({ "app": "shy" }));
    goes_to(&cx, pinned(another, "spread"), "spread").await?;
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "shy" } },
    }]);
    let wishes = json!({ "affinity": away_from("loud"), "topologySpreadConstraints": spread });
    let shy = with(with(pod(&cx, "shy", "1"), "/spec", wishes), "/spec/containers/0", port);
    create(&cx, shy).await?;
    let reasons = [
        "1 node(s) didn't have free ports for the requested pod ports",
        "1 node(s) didn't match pod anti-affinity rules",
        "1 node(s) didn't match pod topology spread constraints",
        "1 node(s) didn't match pod topology spread constraints (missing required label)",
        "1 node(s) didn't satisfy existing pods anti-affinity rules",
    ];
    let message = refusal(&cx, &reasons, 1).await?;
    told(&cx, "shy", &message).await?;
    Ok(())
}
