//! Budgets for disruptions, as their controller counts them and evictions spend them.

use anyhow::Result;
use serde_json::{Value, json};

use super::nodes::{Node, run_pod};
use super::{Context, PATIENCE, expect, pod, same, scenarios};
use crate::endpoint::Request;

scenarios! { "disruptions":
    a_budget_counts_its_pods_and_is_spent [J4],
    a_budget_that_cannot_be_counted_allows_nothing [J4],
    pods_that_are_not_ready_may_be_evicted_if_the_budget_says_so [J4],
}

/// The budget, once it is right.
async fn wait(cx: &Context, right: impl Fn(&Value) -> bool) -> Result<Value> {
    let get = Request::get(cx.apis("policy/v1", "poddisruptionbudgets/budget"));
    let is_right = |budget: Value| right(&budget);
    let answer =
        cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(is_right)).await?;
    answer.json()
}

async fn create(cx: &Context, spec: Value) -> Result<()> {
    let mut spec = spec;
    spec["selector"] = json!({ "matchLabels": { "app": "a" } });
    let budget = json!({ "metadata": { "name": "budget" }, "spec": spec });
    cx.create(&cx.apis("policy/v1", "poddisruptionbudgets"), &budget).await?;
    Ok(())
}

fn app(name: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["labels"] = json!({ "app": "a" });
    pod
}

fn evict(cx: &Context, name: &str) -> Request {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name },
    });
    Request::post(cx.core(&format!("pods/{name}/eviction")), &eviction)
}

async fn a_budget_counts_its_pods_and_is_spent(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let node = Node::new(&cx, json!({})).await?;
    create(&cx, json!({ "minAvailable": 1 })).await?;
    run_pod(&cx, &node, &app("first"), "10.1.0.1", true).await?;
    run_pod(&cx, &node, &app("second"), "10.1.0.2", true).await?;
    let budget = wait(&cx, |budget| budget["status"]["disruptionsAllowed"] == 1).await?;
    let mut status = budget["status"].clone();
    let condition = status["conditions"][0].take();
    let counts = json!({
        "conditions": [null], "currentHealthy": 2, "desiredHealthy": 1, "disruptionsAllowed": 1,
        "expectedPods": 2, "observedGeneration": 1,
    });
    same("status", &status, counts)?;
    same("reason", &condition["reason"], json!("SufficientPods"))?;
    expect(&cx.send(evict(&cx, "first")).await?, 201)?;
    let is_spent = |budget: &Value| {
        budget["status"]["conditions"][0]["reason"] == "InsufficientPods"
            && budget["status"]["currentHealthy"] == 1
    };
    wait(&cx, is_spent).await?;
    expect(&cx.send(evict(&cx, "second")).await?, 429)?;
    node.delete(&cx).await
}

async fn a_budget_that_cannot_be_counted_allows_nothing(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let mut strange = app("strange");
    strange["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "1", "controller": true,
    }]);
    // The owner is not there, so the pod would be collected.
    strange["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cx.create(&cx.core("pods"), &strange).await?;
    create(&cx, json!({ "maxUnavailable": 1 })).await?;
    let failed = |budget: &Value| budget["status"]["conditions"][0]["reason"] == "SyncFailed";
    let budget = wait(&cx, failed).await?;
    let message = "configmaps does not implement the scale subresource";
    same("message", &budget["status"]["conditions"][0]["message"], json!(message))?;
    same("allowed", &budget["status"]["disruptionsAllowed"], json!(0))?;
    cx.release(&cx.core("pods/strange")).await
}

async fn pods_that_are_not_ready_may_be_evicted_if_the_budget_says_so(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let node = Node::new(&cx, json!({})).await?;
    create(&cx, json!({ "minAvailable": 2 })).await?;
    run_pod(&cx, &node, &app("well"), "10.1.0.1", true).await?;
    run_pod(&cx, &node, &app("ill"), "10.1.0.2", false).await?;
    let is_counted = |generation: u64| {
        move |budget: &Value| {
            budget["status"]["currentHealthy"] == 1
                && budget["status"]["expectedPods"] == 2
                && budget["status"]["observedGeneration"] == generation
        }
    };
    wait(&cx, is_counted(1)).await?;
    // What is disrupted already must not be disrupted more.
    expect(&cx.send(evict(&cx, "ill")).await?, 429)?;
    let policy = json!({ "spec": { "unhealthyPodEvictionPolicy": "AlwaysAllow" } });
    let path = cx.apis("policy/v1", "poddisruptionbudgets/budget");
    expect(&cx.send(Request::merge_patch(path, &policy)).await?, 200)?;
    wait(&cx, is_counted(2)).await?;
    expect(&cx.send(evict(&cx, "well")).await?, 429)?;
    expect(&cx.send(evict(&cx, "ill")).await?, 201)?;
    node.delete(&cx).await
}
