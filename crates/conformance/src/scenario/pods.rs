//! What is done to pods besides changing them: they are bound, evicted, joined and ended.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, pod, refused, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "pods":
    a_binding_names_a_pod_and_a_node [B1],
    a_binding_may_say_more_of_the_pod [B1],
    a_pod_that_waits_is_not_bound [B1],
    a_binding_can_be_tried [B1 U5],
    an_eviction_names_a_pod [B1],
    an_eviction_can_be_tried [B1 U5],
    a_budget_refuses_an_eviction [B1],
    a_budget_pays_for_an_eviction [B1],
    a_pod_has_one_budget [B1],
    a_pod_on_a_node_has_time_to_end [U9],
    a_pod_without_a_node_goes_at_once [U9],
    a_pod_is_changed_in_few_places [B3],
    resources_are_resized [B1],
}

const NODE: &str = "nowhere";

fn on_node(name: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["labels"] = json!({ "app": "a" });
    pod["spec"]["nodeName"] = json!(NODE);
    pod
}

async fn create(cx: &Context, pod: &Value) -> Result<Value> {
    cx.wait_for_account().await?;
    cx.create(&cx.core("pods"), pod).await
}

fn bind(cx: &Context, pod: &str, query: &str, metadata: Value, target: Value) -> Request {
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target,
    });
    Request::post(cx.core(&format!("pods/{pod}/binding{query}")), &binding)
}

async fn a_binding_names_a_pod_and_a_node(cx: Context) -> Result<()> {
    create(&cx, &pod("one")).await?;
    let named = || json!({ "name": "one" });
    for (target, why) in [
        (json!({}), "target.name: Required value"),
        (
            json!({ "kind": "Pod", "name": "a" }),
            "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\"",
        ),
    ] {
        let status = expect(&cx.send(bind(&cx, "one", "", named(), target)).await?, 500)?;
        same("message", &status["message"], json!(why))?;
    }
    let node = || json!({ "name": NODE });
    let answer = cx.send(bind(&cx, "one", "", json!({ "name": "two" }), node())).await?;
    let message = "name in URL does not match name in Binding object";
    refused(&answer, 400, "BadRequest", message)?;
    let elsewhere = json!({ "name": "one", "namespace": "elsewhere" });
    let answer = cx.send(bind(&cx, "one", "", elsewhere, node())).await?;
    let message =
        "the namespace of the provided object does not match the namespace sent on the request";
    refused(&answer, 400, "BadRequest", message)?;
    let answer = cx.send(bind(&cx, "none", "", json!({ "name": "none" }), node())).await?;
    refused(&answer, 404, "NotFound", "pods \"none\" not found")?;
    let other = json!({ "name": "one", "uid": "11111111-2222-3333-4444-555555555555" });
    let status = expect(&cx.send(bind(&cx, "one", "", other, node())).await?, 409)?;
    let start = "Operation cannot be fulfilled on pods \"one\": StorageError: invalid object, \
                 Code: 4, Key: /registry/pods/";
    ensure!(text(&status, "/message").starts_with(start), "{status}");
    // The old place of bindings takes the pod's name from them.
    let binding = json!({ "metadata": { "name": "one" }, "target": node() });
    let bound = cx.create(&cx.core("bindings"), &binding).await?;
    same("bound", &bound["status"], json!("Success"))?;
    same("code", &bound["code"], json!(201))?;
    let answer = cx.send(bind(&cx, "one", "", named(), node())).await?;
    let message = "Operation cannot be fulfilled on pods/binding \"one\": pod one is already \
                   assigned to node \"nowhere\"";
    let status = refused(&answer, 409, "Conflict", message)?;
    same("details", &status["details"], json!({ "name": "one", "kind": "pods/binding" }))
}

async fn a_binding_may_say_more_of_the_pod(cx: Context) -> Result<()> {
    let mut labelled = pod("one");
    labelled["metadata"]["labels"] = json!({ "app": "a" });
    create(&cx, &labelled).await?;
    let metadata = json!({
        "name": "one",
        "annotations": { "example.com/why": "room" },
        "labels": { "topology.kubernetes.io/zone": "z" },
    });
    expect(&cx.send(bind(&cx, "one", "", metadata, json!({ "name": NODE }))).await?, 201)?;
    let bound = cx.get(&cx.core("pods/one")).await?;
    let annotations = json!({ "example.com/why": "room" });
    same("annotations", &bound["metadata"]["annotations"], annotations)?;
    let labels = json!({ "app": "a", "topology.kubernetes.io/zone": "z" });
    same("labels", &bound["metadata"]["labels"], labels)?;
    same("node", &bound["spec"]["nodeName"], json!(NODE))?;
    let mut condition = bound["status"]["conditions"][0].clone();
    condition.as_object_mut().map(|fields| fields.remove("lastTransitionTime"));
    let scheduled = json!({ "type": "PodScheduled", "status": "True", "lastProbeTime": null });
    same("condition", &condition, scheduled)
}

async fn a_pod_that_waits_is_not_bound(cx: Context) -> Result<()> {
    let mut waiting = pod("one");
    waiting["spec"]["schedulingGates"] = json!([{ "name": "example.com/wait" }]);
    create(&cx, &waiting).await?;
    let bind = || bind(&cx, "one", "", json!({ "name": "one" }), json!({ "name": NODE }));
    let message = "Operation cannot be fulfilled on pods/binding \"one\": pod one has non-empty \
                   .spec.schedulingGates";
    refused(&cx.send(bind()).await?, 409, "Conflict", message)?;
    let open = json!({ "spec": { "schedulingGates": [] } });
    expect(&cx.send(Request::merge_patch(cx.core("pods/one"), &open)).await?, 200)?;
    expect(&cx.send(bind()).await?, 201)?;
    Ok(())
}

async fn a_binding_can_be_tried(cx: Context) -> Result<()> {
    create(&cx, &pod("one")).await?;
    let target = json!({ "name": NODE });
    let answer = cx.send(bind(&cx, "one", "?dryRun=All", json!({ "name": "one" }), target)).await?;
    same("tried", &expect(&answer, 201)?["status"], json!("Success"))?;
    let pod = cx.get(&cx.core("pods/one")).await?;
    same("node", &pod["spec"]["nodeName"], Value::Null)
}

fn evict(cx: &Context, pod: &str, query: &str, more: Value) -> Request {
    let mut eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod },
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        eviction[name] = value.clone();
    }
    Request::post(cx.core(&format!("pods/{pod}/eviction{query}")), &eviction)
}

async fn an_eviction_names_a_pod(cx: Context) -> Result<()> {
    create(&cx, &on_node("one")).await?;
    let answer = cx.send(evict(&cx, "none", "", json!({}))).await?;
    refused(&answer, 404, "NotFound", "pods \"none\" not found")?;
    let other = json!({ "metadata": { "name": "two" } });
    let answer = cx.send(evict(&cx, "one", "", other)).await?;
    let message = "name in URL does not match name in Eviction object";
    refused(&answer, 400, "BadRequest", message)?;
    let pod = cx.get(&cx.core("pods/one")).await?;
    let only = json!({ "deleteOptions": { "preconditions": { "uid": "other" } } });
    let answer = cx.send(evict(&cx, "one", "", only)).await?;
    let message = format!(
        "Operation cannot be fulfilled on Pod \"one\": the UID in the precondition (other) does \
         not match the UID in record ({}). The object might have been deleted and then recreated",
        text(&pod, "/metadata/uid")
    );
    refused(&answer, 409, "Conflict", &message)?;
    // It may be of the version in which budgets are no more.
    let older = json!({ "apiVersion": "policy/v1beta1" });
    let answer = cx.send(evict(&cx, "one", "?dryRun=All", older)).await?;
    expect(&answer, 201).map(drop)
}

async fn an_eviction_can_be_tried(cx: Context) -> Result<()> {
    create(&cx, &on_node("one")).await?;
    let inside = json!({ "deleteOptions": { "dryRun": ["All"] } });
    for request in [evict(&cx, "one", "?dryRun=All", json!({})), evict(&cx, "one", "", inside)] {
        same("tried", &expect(&cx.send(request).await?, 201)?["status"], json!("Success"))?;
        let pod = cx.get(&cx.core("pods/one")).await?;
        same("deletion", &pod["metadata"]["deletionTimestamp"], Value::Null)?;
    }
    Ok(())
}

/// Makes pods that run and are ready, on a node that is not there.
async fn ready(cx: &Context, names: &[&str]) -> Result<()> {
    for name in names {
        create(cx, &on_node(name)).await?;
        let condition = json!({ "type": "Ready", "status": "True" });
        let status = json!({ "status": { "phase": "Running", "conditions": [condition] } });
        let path = cx.core(&format!("pods/{name}/status"));
        expect(&cx.send(Request::merge_patch(path, &status)).await?, 200)?;
    }
    Ok(())
}

/// A budget of one pod that must be there, whose status says what a controller finds where there
/// is one.
async fn budget(cx: &Context, name: &str, healthy: u32) -> Result<String> {
    let budgets = cx.apis("policy/v1", "poddisruptionbudgets");
    let selector = json!({ "matchLabels": { "app": "a" } });
    let budget = json!({
        "metadata": { "name": name }, "spec": { "minAvailable": 1, "selector": selector },
    });
    cx.create(&budgets, &budget).await?;
    let status = json!({ "status": {
        "observedGeneration": 1,
        "disruptionsAllowed": healthy - 1,
        "currentHealthy": healthy,
        "desiredHealthy": 1,
        "expectedPods": healthy,
    } });
    let path = format!("{budgets}/{name}");
    expect(&cx.send(Request::merge_patch(format!("{path}/status"), &status)).await?, 200)?;
    Ok(path)
}

async fn a_budget_refuses_an_eviction(cx: Context) -> Result<()> {
    ready(&cx, &["one"]).await?;
    budget(&cx, "budget", 1).await?;
    let needs = "The disruption budget budget needs 1 healthy pods and has 1 currently";
    let is_counted = |answer: &Answer| {
        answer.json().is_ok_and(|status| text(&status, "/details/causes/0/message") == needs)
    };
    for query in ["?dryRun=All", ""] {
        let request = evict(&cx, "one", query, json!({}));
        let answer = cx.endpoint.poll(&request, PATIENCE, is_counted).await?;
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let status = refused(&answer, 429, "TooManyRequests", message)?;
        let cause = json!({ "reason": "DisruptionBudget", "message": needs });
        same("details", &status["details"], json!({ "causes": [cause] }))?;
        same("retry-after", &json!(answer.header("retry-after")), json!(""))?;
    }
    let pod = cx.get(&cx.core("pods/one")).await?;
    same("deletion", &pod["metadata"]["deletionTimestamp"], Value::Null)
}

async fn a_budget_pays_for_an_eviction(cx: Context) -> Result<()> {
    ready(&cx, &["one", "two"]).await?;
    let path = budget(&cx, "budget", 2).await?;
    let allows = |allowed: u32| {
        move |answer: &Answer| {
            answer.json().is_ok_and(|budget| budget["status"]["disruptionsAllowed"] == allowed)
        }
    };
    let get = Request::get(&path);
    let tried = evict(&cx, "two", "?dryRun=All", json!({}));
    cx.endpoint.poll(&tried, PATIENCE, |answer| answer.status == 201).await?;
    // What was only tried is not paid for.
    cx.endpoint.poll(&get, PATIENCE, allows(1)).await?;
    expect(&cx.send(evict(&cx, "two", "", json!({}))).await?, 201)?;
    cx.endpoint.poll(&get, PATIENCE, allows(0)).await?;
    let pod = cx.get(&cx.core("pods/two")).await?;
    ensure!(!text(&pod, "/metadata/deletionTimestamp").is_empty(), "{pod}");
    let mut condition = pod["status"]["conditions"][1].clone();
    condition.as_object_mut().map(|fields| fields.remove("lastTransitionTime"));
    let target = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": null,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    });
    same("condition", &condition, target)?;
    let answer = cx.send(evict(&cx, "one", "", json!({}))).await?;
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    refused(&answer, 429, "TooManyRequests", message)?;
    Ok(())
}

async fn a_pod_has_one_budget(cx: Context) -> Result<()> {
    ready(&cx, &["one"]).await?;
    budget(&cx, "first", 1).await?;
    budget(&cx, "second", 1).await?;
    let status = expect(&cx.send(evict(&cx, "one", "", json!({}))).await?, 500)?;
    let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource \
                   does not support.";
    same("message", &status["message"], json!(message))
}

async fn a_pod_on_a_node_has_time_to_end(cx: Context) -> Result<()> {
    create(&cx, &on_node("one")).await?;
    let delete = async |query: &str| -> Result<Value> {
        let path = cx.core(&format!("pods/one{query}"));
        let dying = expect(&cx.send(Request::delete(path)).await?, 200)?;
        ensure!(!text(&dying, "/metadata/deletionTimestamp").is_empty(), "{dying}");
        same("generation", &dying["metadata"]["generation"], json!(2))?;
        Ok(dying["metadata"]["deletionGracePeriodSeconds"].clone())
    };
    same("by its spec", &delete("").await?, json!(30))?;
    same("longer", &delete("?gracePeriodSeconds=60").await?, json!(30))?;
    same("shorter", &delete("?gracePeriodSeconds=5").await?, json!(5))?;
    same("none", &delete("?gracePeriodSeconds=0").await?, json!(0))?;
    expect(&cx.send(Request::get(cx.core("pods/one"))).await?, 404)?;
    Ok(())
}

async fn a_pod_without_a_node_goes_at_once(cx: Context) -> Result<()> {
    create(&cx, &pod("one")).await?;
    let gone = expect(&cx.send(Request::delete(cx.core("pods/one"))).await?, 200)?;
    same("grace", &gone["metadata"]["deletionGracePeriodSeconds"], json!(0))?;
    expect(&cx.send(Request::get(cx.core("pods/one"))).await?, 404)?;
    Ok(())
}

async fn a_pod_is_changed_in_few_places(cx: Context) -> Result<()> {
    create(&cx, &pod("one")).await?;
    let path = cx.core("pods/one");
    let image = json!({ "name": "main", "image": "example.com/another" });
    let patch = json!({ "spec": { "containers": [image], "activeDeadlineSeconds": 100 } });
    expect(&cx.send(Request::strategic_patch(&path, &patch)).await?, 200)?;
    let patch = json!({ "spec": { "activeDeadlineSeconds": 200 } });
    let answer = cx.send(Request::merge_patch(&path, &patch)).await?;
    let message = "Pod \"one\" is invalid: spec.activeDeadlineSeconds: Invalid value: 200: must be \
                   less than or equal to previous value";
    refused(&answer, 422, "Invalid", message)?;
    let patch = json!({ "spec": { "hostname": "other" } });
    let status = expect(&cx.send(Request::merge_patch(&path, &patch)).await?, 422)?;
    let start = "Pod \"one\" is invalid: spec: Forbidden: pod updates may not change fields other \
                 than `spec.containers[*].image`,`spec.initContainers[*].image`,\
                 `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
                 tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
                 was previously negative)\n";
    ensure!(text(&status, "/message").starts_with(start), "{}", status["message"]);
    Ok(())
}

async fn resources_are_resized(cx: Context) -> Result<()> {
    let mut sized = pod("one");
    sized["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "100m" } });
    create(&cx, &sized).await?;
    let patch = |path: &str, cpu: &str| {
        let resources = json!({ "requests": { "cpu": cpu } });
        let container = json!({ "name": "main", "resources": resources });
        let patch = json!({ "spec": { "containers": [container] } });
        Request::strategic_patch(cx.core(path), &patch)
    };
    // Only there, and nothing else there.
    expect(&cx.send(patch("pods/one", "200m")).await?, 422)?;
    let resized = expect(&cx.send(patch("pods/one/resize", "200m")).await?, 200)?;
    let cpu = &resized["spec"]["containers"][0]["resources"]["requests"]["cpu"];
    same("request", cpu, json!("200m"))?;
    same("generation", &resized["metadata"]["generation"], json!(2))
}
