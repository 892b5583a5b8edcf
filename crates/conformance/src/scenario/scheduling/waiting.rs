//! Pods that wait, and what ends it.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{
    condition, create, goes_to, labelled, make, node, node_path, pinned, placed, pod, remove,
    told_of, with,
};
use crate::endpoint::Request;
use crate::scenario::{Context, OWNER, expect, scenarios};

scenarios! { "scheduling":
    a_waiting_pod_goes_when_a_node_is_untainted [K5],
    a_waiting_pod_goes_when_a_node_comes [K5],
    a_waiting_pod_goes_when_a_node_is_as_it_asks [K5],
    a_waiting_pod_goes_when_there_is_room [K5],
    a_waiting_pod_goes_when_its_company_comes [K5],
    a_waiting_pod_goes_when_there_is_another_zone [K5],
    a_pod_waits_for_its_gates [K5],
    a_pod_of_nobodys_scheduler_is_left_alone [K5],
}

async fn patch(cx: &Context, path: String, patch: &Value) -> Result<()> {
    expect(&cx.send(Request::merge_patch(path, patch)).await?, 200)?;
    Ok(())
}

/// Waits until a pod is known to fit nowhere.
async fn waits(cx: &Context, name: &str) -> Result<()> {
    let waits =
        |pod: &Value| condition(pod, "PodScheduled").is_some_and(|it| it["status"] == "False");
    cx.wait(&cx.core(&format!("pods/{name}")), waits).await?;
    Ok(())
}

async fn a_waiting_pod_goes_when_a_node_is_untainted(cx: Context) -> Result<()> {
    let mut tainted = node(&cx, "only", "4");
    tainted["spec"]["taints"][0]["value"] = json!("other");
    make(&cx, &[tainted]).await?;
    create(&cx, pod(&cx, "p", "1")).await?;
    waits(&cx, "p").await?;
    let open = json!({ "spec": { "taints": [
        { "key": OWNER, "value": cx.namespace, "effect": "NoSchedule" },
    ] } });
    patch(&cx, node_path(&cx, "only"), &open).await?;
    ensure!(placed(&cx, "p").await? == "only");
    Ok(())
}

async fn a_waiting_pod_goes_when_a_node_comes(cx: Context) -> Result<()> {
    make(&cx, &[]).await?;
    create(&cx, pod(&cx, "p", "3")).await?;
    waits(&cx, "p").await?;
    make(&cx, &[node(&cx, "small", "1")]).await?;
    told_of(&cx, "p", "1 Insufficient cpu").await?;
    make(&cx, &[node(&cx, "large", "4")]).await?;
    ensure!(placed(&cx, "p").await? == "large");
    Ok(())
}

async fn a_waiting_pod_goes_when_a_node_is_as_it_asks(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "1")]).await?;
    create(&cx, with(pod(&cx, "p", "3"), "/spec/nodeSelector", json!({ "disk": "fast" }))).await?;
    waits(&cx, "p").await?;
    let label = json!({ "metadata": { "labels": { "disk": "fast" } } });
    patch(&cx, node_path(&cx, "only"), &label).await?;
    told_of(&cx, "p", "1 Insufficient cpu").await?;
    let amounts = json!({ "cpu": "4" });
    let grown = json!({ "status": { "capacity": amounts, "allocatable": amounts } });
    patch(&cx, format!("{}/status", node_path(&cx, "only")), &grown).await?;
    ensure!(placed(&cx, "p").await? == "only");
    Ok(())
}

async fn a_waiting_pod_goes_when_there_is_room(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "2")]).await?;
    for name in ["goes", "ends"] {
        goes_to(&cx, pod(&cx, name, "1"), "only").await?;
    }
    for (name, other) in [("second", "goes"), ("third", "ends")] {
        create(&cx, pod(&cx, name, "1")).await?;
        told_of(&cx, name, "1 Insufficient cpu").await?;
        if other == "goes" {
            remove(&cx, other).await?;
        } else {
            // One that has ended is there, and takes no room.
            let ended = json!({ "status": { "phase": "Succeeded" } });
            patch(&cx, cx.core(&format!("pods/{other}/status")), &ended).await?;
        }
        ensure!(placed(&cx, name).await? == "only");
    }
    Ok(())
}

async fn a_waiting_pod_goes_when_its_company_comes(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "a", "4"), node(&cx, "b", "4")]).await?;
    let term = json!({
        "topologyKey": "name", "labelSelector": { "matchLabels": { "role": "friend" } },
    });
    let affinity = json!({ "affinity": { "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
    } } });
    create(&cx, with(pod(&cx, "p", "1"), "/spec", affinity)).await?;
    told_of(&cx, "p", "2 node(s) didn't match pod affinity rules").await?;
    goes_to(&cx, pinned(pod(&cx, "friend", "1"), "b"), "b").await?;
    // It is none yet.
    let label = json!({ "metadata": { "labels": { "role": "friend" } } });
    patch(&cx, cx.core("pods/friend"), &label).await?;
    ensure!(placed(&cx, "p").await? == "b");
    Ok(())
}

async fn a_waiting_pod_goes_when_there_is_another_zone(cx: Context) -> Result<()> {
    let zoned = |name: &str| labelled(node(&cx, name, "4"), json!({ "zone": name }));
    make(&cx, &[zoned("a"), zoned("b")]).await?;
    let many = |name: &str| {
        let constraint = json!({
            "maxSkew": 1, "minDomains": 3, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "many" } },
        });
        let pod = labelled(pod(&cx, name, "1"), json!({ "app": "many" }));
        with(pod, "/spec", json!({ "topologySpreadConstraints": [constraint] }))
    };
    for name in ["one", "two"] {
        create(&cx, many(name)).await?;
        placed(&cx, name).await?;
    }
    create(&cx, many("three")).await?;
    told_of(&cx, "three", "2 node(s) didn't match pod topology spread constraints").await?;
    make(&cx, &[zoned("c")]).await?;
    ensure!(placed(&cx, "three").await? == "c");
    Ok(())
}

async fn a_pod_waits_for_its_gates(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "4")]).await?;
    let gate = |name: &str| json!({ "name": format!("example.com/{name}") });
    let gates = json!({ "schedulingGates": [gate("one"), gate("two")] });
    create(&cx, with(pod(&cx, "gated", "1"), "/spec", gates)).await?;
    let is_gated = |pod: &Value| {
        condition(pod, "PodScheduled").is_some_and(|it| {
            it["status"] == "False"
                && it["reason"] == "SchedulingGated"
                && it["message"] == "Scheduling is blocked due to non-empty scheduling gates"
        })
    };
    let path = cx.core("pods/gated");
    cx.wait(&path, is_gated).await?;
    let one_left = json!({ "spec": { "schedulingGates": [gate("two")] } });
    patch(&cx, path.clone(), &one_left).await?;
    // Whoever gives this one a node has seen the other.
    goes_to(&cx, pod(&cx, "free", "1"), "only").await?;
    let gated = cx.get(&path).await?;
    ensure!(is_gated(&gated) && gated["spec"]["nodeName"].is_null(), "{gated}");
    patch(&cx, path, &json!({ "spec": { "schedulingGates": [] } })).await?;
    ensure!(placed(&cx, "gated").await? == "only");
    Ok(())
}

async fn a_pod_of_nobodys_scheduler_is_left_alone(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "4")]).await?;
    let strange = with(pod(&cx, "strange", "1"), "/spec", json!({ "schedulerName": "nobody" }));
    create(&cx, strange).await?;
    goes_to(&cx, pod(&cx, "usual", "1"), "only").await?;
    let strange = cx.get(&cx.core("pods/strange")).await?;
    ensure!(strange["spec"]["nodeName"].is_null(), "{strange}");
    ensure!(strange["status"]["conditions"].is_null(), "{strange}");
    // It takes no room either.
    goes_to(&cx, pod(&cx, "large", "3"), "only").await?;
    Ok(())
}
