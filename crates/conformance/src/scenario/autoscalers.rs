//! Autoscalers: how many replicas there are, by what the pods use. What they use is said by a server
//! that the scenario starts, for the whole cluster; so it runs when nothing else does.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use http::StatusCode;
use serde_json::{Value, json};

use super::{Context, expect, names, same, scenarios};
use crate::endpoint::Request;
use crate::extension::{self, Extension};

scenarios! { "autoscalers", alone:
    a_deployment_grows_with_what_its_pods_use [B1],
    what_is_scaled_is_found_by_its_group_and_kind [B1],
}

const REGISTRATION: &str = "v1beta1.metrics.k8s.io";
const REGISTRATIONS: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const VERSION: &str = "/apis/metrics.k8s.io/v1beta1";

/// The names of pods of which metrics are told: each uses a fifth of a processor.
type Known = Arc<Mutex<Vec<String>>>;

fn answer(known: &Known, namespace: &str, path: &str) -> extension::Reply {
    let resources = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1",
        "resources": [{
            "name": "pods", "singularName": "", "namespaced": true, "kind": "PodMetrics",
            "verbs": ["get", "list"],
        }],
    });
    if path == VERSION {
        return extension::json(StatusCode::OK, &resources);
    }
    if path != format!("{VERSION}/namespaces/{namespace}/pods") {
        return extension::whole(StatusCode::NOT_FOUND, "text/plain", "nothing".to_owned());
    }
    let known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let items = known.iter().map(|name| {
        json!({
            "metadata": { "name": name, "namespace": namespace, "labels": { "app": "web" } },
            "timestamp": "2026-01-01T00:00:00Z", "window": "15s",
            "containers": [{ "name": "main", "usage": { "cpu": "200m", "memory": "10Mi" } }],
        })
    });
    let list = json!({
        "kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {},
        "items": items.collect::<Vec<Value>>(),
    });
    extension::json(StatusCode::OK, &list)
}

/// A Deployment of one pod.
async fn deploy(cx: &Context) -> Result<()> {
    cx.wait_for_account().await?;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{
                    "name": "main", "image": "example.com/nobody-runs-it",
                    "resources": { "requests": { "cpu": "100m" } },
                }] },
            },
        },
    });
    cx.create(&cx.apis("apps/v1", "deployments"), &deployment).await?;
    Ok(())
}

/// An autoscaler that wants pods of a Deployment, as this version has it, to use half of what they
/// ask for.
async fn scale(cx: &Context, version: &str) -> Result<()> {
    let target = json!({ "type": "Utilization", "averageUtilization": 50 });
    let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } });
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "web" },
        "spec": {
            "scaleTargetRef": { "apiVersion": version, "kind": "Deployment", "name": "web" },
            "minReplicas": 1, "maxReplicas": 4, "metrics": [metric],
        },
    });
    cx.create(&cx.apis("autoscaling/v2", "horizontalpodautoscalers"), &autoscaler).await?;
    Ok(())
}

/// Waits for the first pod, and says that it has run for a long time. Gives its name.
async fn age(cx: &Context) -> Result<String> {
    let pods = cx.core("pods?labelSelector=app%3Dweb");
    let list = cx.wait(&pods, |list| !names(list).is_empty()).await?;
    let name = names(&list)[0].to_owned();
    let long_ago = "2026-01-01T00:00:00Z";
    let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": long_ago });
    let status = json!({ "status": {
        "phase": "Running", "startTime": long_ago, "conditions": [ready],
    } });
    let path = cx.core(&format!("pods/{name}/status"));
    expect(&cx.send(Request::strategic_patch(path, &status)).await?, 200)?;
    Ok(name)
}

fn condition<'a>(autoscaler: &'a Value, kind: &str) -> Option<&'a Value> {
    autoscaler["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == kind)
}

async fn a_deployment_grows_with_what_its_pods_use(cx: Context) -> Result<()> {
    let known = Known::default();
    let (namespace, told) = (cx.namespace.clone(), Arc::clone(&known));
    let name = format!("metrics.{}.svc", cx.namespace);
    let server = Extension::start(&name, "", move |asked| answer(&told, &namespace, asked.path()));
    let server = server.await?;
    let service = json!({
        "metadata": { "name": "metrics" },
        "spec": { "type": "ExternalName", "externalName": "localhost" },
    });
    cx.create(&cx.core("services"), &service).await?;
    let registration = json!({
        "metadata": { "name": REGISTRATION },
        "spec": {
            "group": "metrics.k8s.io", "version": "v1beta1",
            "groupPriorityMinimum": 100, "versionPriority": 100,
            "caBundle": server.ca_bundle(),
            "service": { "namespace": cx.namespace, "name": "metrics", "port": server.port() },
        },
    });
    cx.create(REGISTRATIONS, &registration).await?;
    let grown = grow(&cx, &known).await;
    expect(&cx.send(Request::delete(format!("{REGISTRATIONS}/{REGISTRATION}"))).await?, 200)?;
    grown
}

async fn grow(cx: &Context, known: &Known) -> Result<()> {
    deploy(cx).await?;
    let pod = age(cx).await?;
    known.lock().unwrap_or_else(PoisonError::into_inner).push(pod);
    scale(cx, "apps/v1").await?;
    // Four times as much as it should: so there are four.
    let path = cx.apis("apps/v1", "deployments/web");
    cx.wait(&path, |it| it["spec"]["replicas"] == 4).await?;
    let path = cx.apis("autoscaling/v2", "horizontalpodautoscalers/web");
    let autoscaler = cx.wait(&path, |it| it["status"]["desiredReplicas"] == 4).await?;
    let active = condition(&autoscaler, "ScalingActive").cloned().unwrap_or_default();
    same("reason", &active["reason"], json!("ValidMetricFound"))?;
    let able = condition(&autoscaler, "AbleToScale").cloned().unwrap_or_default();
    same("reason", &able["reason"], json!("SucceededRescale"))?;
    let current = &autoscaler["status"]["currentMetrics"][0]["resource"]["current"];
    let used = json!({ "averageUtilization": 200, "averageValue": "200m" });
    same("currentMetrics", current, used)?;
    let events =
        cx.core("events?fieldSelector=involvedObject.name%3Dweb,reason%3DSuccessfulRescale");
    let events = cx.wait(&events, |list| !list["items"][0].is_null()).await?;
    let message =
        "New size: 4; reason: cpu resource utilization (percentage of request) above target";
    same("message", &events["items"][0]["message"], json!(message))
}

async fn what_is_scaled_is_found_by_its_group_and_kind(cx: Context) -> Result<()> {
    deploy(&cx).await?;
    // A version that was served once.
    scale(&cx, "apps/v1beta2").await?;
    let path = cx.apis("autoscaling/v2", "horizontalpodautoscalers/web");
    let is_found = |it: &Value| {
        condition(it, "AbleToScale").is_some_and(|it| it["reason"] == "SucceededGetScale")
    };
    let found = cx.wait(&path, is_found).await?;
    same("replicas", &found["status"]["currentReplicas"], json!(1))
}
