//! Pods that go for more important ones.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{
    condition, create, event, full_name, goes_to, make, node, pinned, placed, pod, remove, told_of,
    told_so, with,
};
use crate::endpoint::Request;
use crate::scenario::{Context, OWNER, PATIENCE, scenarios, text};

scenarios! { "scheduling":
    a_more_important_pod_takes_the_place_of_another [K6],
    room_is_made_where_a_pod_is_told [K6],
    a_polite_pod_waits [K6],
    those_go_whose_end_harms_least [K6],
    no_more_pods_go_than_must [K6],
    a_budget_saves_pods_if_others_can_go [K6 J4],
}

/// The name of a class that is ours, which is made.
async fn class(cx: &Context, value: i32, policy: &str) -> Result<String> {
    let name = full_name(cx, &value.to_string());
    let class = json!({
        "metadata": { "name": name, "labels": { OWNER: cx.namespace } },
        "value": value,
        "preemptionPolicy": policy,
    });
    cx.create("/apis/scheduling.k8s.io/v1/priorityclasses", &class).await?;
    // Who admits pods may hear of it a moment later.
    let pods = cx.core("pods?dryRun=All");
    let known = Request::post(pods, &classed(cx, "probe", "0", &name));
    cx.endpoint.poll(&known, PATIENCE, |answer| answer.status == 201).await?;
    Ok(name)
}

async fn preempting(cx: &Context, value: i32) -> Result<String> {
    class(cx, value, "PreemptLowerPriority").await
}

fn classed(cx: &Context, name: &str, cpu: &str, class: &str) -> Value {
    with(pod(cx, name, cpu), "/spec", json!({ "priorityClassName": class }))
}

/// Waits until a pod is no more. Nobody runs it, so it goes at once.
async fn gone(cx: &Context, name: &str) -> Result<()> {
    let pod = Request::get(cx.core(&format!("pods/{name}")));
    cx.endpoint.poll(&pod, PATIENCE, |answer| answer.status == 404).await?;
    Ok(())
}

/// Fails unless nobody has asked for a pod's end.
async fn stays(cx: &Context, name: &str) -> Result<()> {
    let pod = cx.get(&cx.core(&format!("pods/{name}"))).await?;
    ensure!(pod["metadata"]["deletionTimestamp"].is_null(), "{pod}");
    Ok(())
}

async fn a_more_important_pod_takes_the_place_of_another(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "1")]).await?;
    let high = preempting(&cx, 1000).await?;
    goes_to(&cx, pod(&cx, "victim", "1"), "only").await?;
    create(&cx, classed(&cx, "urgent", "1", &high)).await?;
    gone(&cx, "victim").await?;
    ensure!(placed(&cx, "urgent").await? == "only");
    Ok(())
}

async fn room_is_made_where_a_pod_is_told(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "1")]).await?;
    let high = preempting(&cx, 1000).await?;
    // It takes its time.
    let held = json!({ "finalizers": ["example.com/hold"] });
    goes_to(&cx, with(pod(&cx, "victim", "1"), "/metadata", held), "only").await?;
    let urgent = create(&cx, classed(&cx, "urgent", "1", &high)).await?;
    let node = full_name(&cx, "only");
    let is_nominated = |pod: &Value| pod["status"]["nominatedNodeName"] == node;
    let pod = cx.wait(&cx.core("pods/urgent"), is_nominated).await?;
    ensure!(pod["spec"]["nodeName"].is_null(), "{pod}");
    let path = cx.core("pods/victim");
    let victim = cx.wait(&path, |it| !it["metadata"]["deletionTimestamp"].is_null()).await?;
    let target = condition(&victim, "DisruptionTarget").cloned().unwrap_or_default();
    ensure!(target["status"] == "True", "{target}");
    ensure!(target["reason"] == "PreemptionByScheduler", "{target}");
    let message = "default-scheduler: preempting to accommodate a higher priority pod";
    ensure!(target["message"] == message, "{target}");
    let told = event(&cx, "victim", "Preempted").await?;
    let uid = text(&urgent, "/metadata/uid");
    ensure!(told["note"] == format!("Preempted by pod {uid} on node {node}"), "{told}");
    ensure!(told["type"] == "Normal" && told["action"] == "Preempting", "{told}");
    cx.release(&path).await?;
    ensure!(placed(&cx, "urgent").await? == "only");
    Ok(())
}

async fn a_polite_pod_waits(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "1")]).await?;
    let polite = class(&cx, 1000, "Never").await?;
    goes_to(&cx, pod(&cx, "other", "1"), "only").await?;
    create(&cx, classed(&cx, "polite", "1", &polite)).await?;
    let is_last = |told: &str| {
        told.contains("1 Insufficient cpu")
            && told.ends_with("preemption: not eligible due to preemptionPolicy=Never.")
    };
    told_so(&cx, "polite", is_last).await?;
    stays(&cx, "other").await?;
    remove(&cx, "other").await?;
    ensure!(placed(&cx, "polite").await? == "only");
    Ok(())
}

async fn those_go_whose_end_harms_least(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "a", "2"), node(&cx, "b", "2"), node(&cx, "c", "2")]).await?;
    let (middle, high) = (preempting(&cx, 100).await?, preempting(&cx, 1000).await?);
    // On one node somebody important, on one two others, and on one a single one.
    goes_to(&cx, pinned(classed(&cx, "important", "2", &middle), "a"), "a").await?;
    for name in ["one", "two"] {
        goes_to(&cx, pinned(pod(&cx, name, "1"), "b"), "b").await?;
    }
    goes_to(&cx, pinned(pod(&cx, "single", "2"), "c"), "c").await?;
    goes_to(&cx, classed(&cx, "urgent", "2", &high), "c").await?;
    gone(&cx, "single").await?;
    for name in ["important", "one", "two"] {
        stays(&cx, name).await?;
    }
    Ok(())
}

async fn no_more_pods_go_than_must(cx: Context) -> Result<()> {
    make(&cx, &[node(&cx, "only", "3")]).await?;
    let (middle, high) = (preempting(&cx, 100).await?, preempting(&cx, 1000).await?);
    goes_to(&cx, pod(&cx, "low", "2"), "only").await?;
    goes_to(&cx, classed(&cx, "middle", "1", &middle), "only").await?;
    goes_to(&cx, classed(&cx, "urgent", "2", &high), "only").await?;
    gone(&cx, "low").await?;
    stays(&cx, "middle").await?;
    // Its equals and betters stay.
    create(&cx, classed(&cx, "equal", "3", &high)).await?;
    told_of(&cx, "equal", "1 Insufficient cpu").await?;
    stays(&cx, "middle").await?;
    Ok(())
}

async fn a_budget_saves_pods_if_others_can_go(cx: Context) -> Result<()> {
    let budget = json!({
        "metadata": { "name": "budget" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "guarded" } } },
    });
    let budgets = cx.apis("policy/v1", "poddisruptionbudgets");
    cx.create(&budgets, &budget).await?;
    let is_counted = |it: &Value| it["status"]["observedGeneration"] == 1;
    cx.wait(&format!("{budgets}/budget"), is_counted).await?;
    make(&cx, &[node(&cx, "a", "1"), node(&cx, "b", "1")]).await?;
    let (middle, high) = (preempting(&cx, 100).await?, preempting(&cx, 1000).await?);
    goes_to(&cx, pinned(pod(&cx, "guarded", "1"), "a"), "a").await?;
    goes_to(&cx, pinned(classed(&cx, "better", "1", &middle), "b"), "b").await?;
    goes_to(&cx, classed(&cx, "urgent", "1", &high), "b").await?;
    gone(&cx, "better").await?;
    stays(&cx, "guarded").await?;
    // If nobody else can go, it saves nobody.
    goes_to(&cx, classed(&cx, "more-urgent", "1", &high), "a").await?;
    gone(&cx, "guarded").await?;
    Ok(())
}
