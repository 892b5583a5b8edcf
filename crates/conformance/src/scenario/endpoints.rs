//! What stands behind a Service: Endpoints and EndpointSlices, kept by controllers.

use anyhow::Result;
use serde_json::{Value, json};

use super::nodes::{Node, run_pod};
use super::{Context, PATIENCE, expect, pod, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "endpoints":
    a_service_has_endpoints_and_slices_of_its_pods [B5],
    a_service_without_pods_has_an_empty_slice [B5],
    a_pod_that_ends_is_not_ready [B5],
    endpoints_that_people_write_are_mirrored [B5],
    endpoints_go_with_their_service [B5],
}

fn service(spec: Value) -> Value {
    let labels = json!({ "of": "web" });
    json!({ "metadata": { "name": "web", "labels": labels }, "spec": spec })
}

fn http() -> Value {
    let port = json!({ "name": "http", "port": 80, "targetPort": 8080 });
    json!({ "selector": { "app": "web" }, "ports": [port] })
}

/// A pod of the Service.
fn web(name: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["labels"] = json!({ "app": "web" });
    pod
}

/// The one slice of the Service, once it is right.
async fn slice(cx: &Context, right: impl Fn(&Value) -> bool) -> Result<Value> {
    let selector = "labelSelector=kubernetes.io/service-name%3Dweb";
    let list = cx.apis("discovery.k8s.io/v1", &format!("endpointslices?{selector}"));
    let one = |answer: Value| match answer["items"].as_array().map(Vec::as_slice) {
        Some([slice]) => Some(slice.clone()),
        _ => None,
    };
    let is_right = |answer: Value| one(answer).is_some_and(|slice| right(&slice));
    let answer = cx
        .endpoint
        .poll(&Request::get(list), PATIENCE, |answer| answer.json().is_ok_and(is_right))
        .await?;
    Ok(one(answer.json()?).unwrap_or_default())
}

async fn endpoints(cx: &Context, right: impl Fn(&Value) -> bool) -> Result<Value> {
    let get = Request::get(cx.core("endpoints/web"));
    let is_right = |answer: Value| right(&answer);
    let answer =
        cx.endpoint.poll(&get, PATIENCE, |answer| answer.json().is_ok_and(is_right)).await?;
    answer.json()
}

async fn a_service_has_endpoints_and_slices_of_its_pods(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let node = Node::new(&cx, json!({ "topology.kubernetes.io/zone": "west" })).await?;
    let made = cx.create(&cx.core("services"), &service(http())).await?;
    let mut other = web("other");
    other["metadata"]["labels"] = json!({ "app": "db" });
    run_pod(&cx, &node, &other, "10.1.0.9", true).await?;
    let ready = run_pod(&cx, &node, &web("ready"), "10.1.0.1", true).await?;
    run_pod(&cx, &node, &web("unready"), "10.1.0.2", false).await?;

    let both = |slice: &Value| slice["endpoints"].as_array().is_some_and(|all| all.len() == 2);
    let slice = slice(&cx, both).await?;
    let find = |address: &str| {
        let all = slice["endpoints"].as_array().into_iter().flatten();
        all.into_iter().find(|it| it["addresses"] == json!([address])).cloned().unwrap_or_default()
    };
    let target = |pod: &Value| {
        json!({
            "kind": "Pod", "namespace": cx.namespace, "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        })
    };
    let endpoint = json!({
        "addresses": ["10.1.0.1"],
        "conditions": { "ready": true, "serving": true, "terminating": false },
        "nodeName": node.name, "targetRef": target(&ready), "zone": "west",
    });
    same("endpoint", &find("10.1.0.1"), endpoint)?;
    let conditions = json!({ "ready": false, "serving": false, "terminating": false });
    same("conditions", &find("10.1.0.2")["conditions"], conditions)?;
    let ports = json!([{ "name": "http", "port": 8080, "protocol": "TCP" }]);
    same("ports", &slice["ports"], ports.clone())?;
    same("type", &slice["addressType"], json!("IPv4"))?;
    let labels = json!({
        "of": "web",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    });
    same("labels", &slice["metadata"]["labels"], labels)?;
    let owner = json!([{
        "apiVersion": "v1", "kind": "Service", "name": "web", "uid": made["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    same("owner", &slice["metadata"]["ownerReferences"], owner)?;
    same("name", &slice["metadata"]["generateName"], json!("web-"))?;

    let has_both = |endpoints: &Value| {
        let subset = &endpoints["subsets"][0];
        subset["addresses"].is_array() && subset["notReadyAddresses"].is_array()
    };
    let endpoints = endpoints(&cx, has_both).await?;
    let subset = &endpoints["subsets"][0];
    let address = json!({ "ip": "10.1.0.1", "nodeName": node.name, "targetRef": target(&ready) });
    same("addresses", &subset["addresses"], json!([address]))?;
    same("unready", &subset["notReadyAddresses"][0]["ip"], json!("10.1.0.2"))?;
    same("ports", &subset["ports"], ports)?;
    let labels =
        json!({ "of": "web", "endpoints.kubernetes.io/managed-by": "endpoint-controller" });
    same("labels", &endpoints["metadata"]["labels"], labels)?;
    node.delete(&cx).await
}

async fn a_service_without_pods_has_an_empty_slice(cx: Context) -> Result<()> {
    let mut spec = http();
    spec["clusterIP"] = json!("None");
    cx.create(&cx.core("services"), &service(spec)).await?;
    let slice = slice(&cx, |_| true).await?;
    same("endpoints", &slice["endpoints"], Value::Null)?;
    same("ports", &slice["ports"], Value::Null)?;
    same("headless", &slice["metadata"]["labels"]["service.kubernetes.io/headless"], json!(""))?;
    let endpoints = endpoints(&cx, |endpoints| endpoints["metadata"]["name"] == "web").await?;
    same("subsets", &endpoints["subsets"], Value::Null)
}

async fn a_pod_that_ends_is_not_ready(cx: Context) -> Result<()> {
    cx.wait_for_account().await?;
    let node = Node::new(&cx, json!({})).await?;
    cx.create(&cx.core("services"), &service(http())).await?;
    run_pod(&cx, &node, &web("ends"), "10.1.0.1", true).await?;
    slice(&cx, |slice| slice["endpoints"][0]["conditions"]["ready"] == true).await?;
    expect(&cx.send(Request::delete(cx.core("pods/ends"))).await?, 200)?;
    let slice =
        slice(&cx, |slice| slice["endpoints"][0]["conditions"]["terminating"] == true).await?;
    let conditions = json!({ "ready": false, "serving": true, "terminating": true });
    same("conditions", &slice["endpoints"][0]["conditions"], conditions)?;
    endpoints(&cx, |endpoints| endpoints["subsets"].is_null()).await?;
    node.delete(&cx).await
}

async fn endpoints_that_people_write_are_mirrored(cx: Context) -> Result<()> {
    let port = json!({ "name": "pg", "port": 5432 });
    cx.create(&cx.core("services"), &service(json!({ "ports": [port] }))).await?;
    let subset = json!({
        "addresses": [{ "ip": "10.1.0.1" }], "notReadyAddresses": [{ "ip": "10.1.0.2" }],
        "ports": [port],
    });
    let metadata = json!({
        "name": "web", "labels": { "by": "hand" }, "annotations": { "why": "because" },
    });
    let endpoints = json!({ "metadata": metadata, "subsets": [subset] });
    let made = cx.create(&cx.core("endpoints"), &endpoints).await?;
    let slice = slice(&cx, |slice| slice["endpoints"].is_array()).await?;
    let labels = json!({
        "by": "hand",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    });
    same("labels", &slice["metadata"]["labels"], labels)?;
    same("annotations", &slice["metadata"]["annotations"], json!({ "why": "because" }))?;
    let owner = &slice["metadata"]["ownerReferences"][0];
    same("owner", &owner["uid"], made["metadata"]["uid"].clone())?;
    let mut all = slice["endpoints"].as_array().cloned().unwrap_or_default();
    all.sort_by_key(|endpoint| text(endpoint, "/addresses/0").to_owned());
    let expected = json!([
        { "addresses": ["10.1.0.1"], "conditions": { "ready": true } },
        { "addresses": ["10.1.0.2"], "conditions": { "ready": false } },
    ]);
    same("endpoints", &json!(all), expected)?;
    same("ports", &slice["ports"], json!([{ "name": "pg", "port": 5432, "protocol": "TCP" }]))
}

async fn endpoints_go_with_their_service(cx: Context) -> Result<()> {
    cx.create(&cx.core("services"), &service(http())).await?;
    endpoints(&cx, |endpoints| endpoints["metadata"]["name"] == "web").await?;
    slice(&cx, |_| true).await?;
    expect(&cx.send(Request::delete(cx.core("services/web"))).await?, 200)?;
    let get = Request::get(cx.core("endpoints/web"));
    cx.endpoint.poll(&get, PATIENCE, |answer| answer.status == 404).await?;
    let list = Request::get(cx.apis("discovery.k8s.io/v1", "endpointslices"));
    let is_empty = |list: Value| list["items"].as_array().is_some_and(Vec::is_empty);
    cx.endpoint.poll(&list, PATIENCE, |answer| answer.json().is_ok_and(is_empty)).await?;
    Ok(())
}
