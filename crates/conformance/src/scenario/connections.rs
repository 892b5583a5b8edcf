//! Connections to nodes: logs, and what is wrong with streams before they begin. A server of ours
//! stands for the kubelet.

use anyhow::{Result, ensure};
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use serde_json::{Value, json};

use super::{Context, expect, refused, same, scenarios};
use crate::endpoint::{Answer, Request};
use crate::extension::{Asked, Extension, Reply, whole};

scenarios! { "connections":
    a_log_comes_from_the_node [B7],
    what_a_node_says_is_wrong_is_told [B7],
    a_node_that_is_away_is_told_of [B7],
    streams_leave_http [B7],
    running_commands_is_creating [B7 S2],
}

/// A node that a scenario plays, with a pod on it.
struct Stage<'a> {
    cx: &'a Context,
    kubelet: Extension,
}

impl<'a> Stage<'a> {
    async fn set(
        cx: &'a Context,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let kubelet = Extension::start("localhost", "", answer).await?;
        let name = &cx.namespace;
        cx.create("/api/v1/nodes", &json!({ "metadata": { "name": name } })).await?;
        let status = json!({ "status": {
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": kubelet.port() } },
        } });
        let path = format!("/api/v1/nodes/{name}/status");
        expect(&cx.send(Request::merge_patch(path, &status)).await?, 200)?;
        cx.wait_for_account().await?;
        let container = |name: &str| json!({ "name": name, "image": "i" });
        let pod = json!({
            "metadata": { "name": "web" },
            "spec": {
                "nodeName": name,
                "initContainers": [container("first")],
                "containers": [container("main"), container("side")],
                // Whatever becomes of a node that nobody hears of.
                "tolerations": [{ "operator": "Exists" }],
            },
        });
        cx.create(&cx.core("pods"), &pod).await?;
        Ok(Stage { cx, kubelet })
    }

    async fn log(&self, query: &str) -> Result<Answer> {
        self.cx.send(Request::get(self.cx.core(&format!("pods/web/log?{query}")))).await
    }

    async fn clear(self) -> Result<()> {
        let path = format!("/api/v1/nodes/{}", self.cx.namespace);
        expect(&self.cx.send(Request::delete(path)).await?, 200)?;
        Ok(())
    }
}

fn says(text: &str) -> Reply {
    whole(StatusCode::OK, "text/html", text.to_owned())
}

async fn a_log_comes_from_the_node(cx: Context) -> Result<()> {
    let stage = Stage::set(&cx, |_| says("one\ntwo\n")).await?;
    let answer = stage.log("container=main").await?;
    ensure!(answer.status == 200 && answer.bytes == b"one\ntwo\n", "{answer}");
    same("media type", &json!(answer.header("content-type")), json!("text/plain"))?;
    let everything = "container=first&follow=true&previous=true&timestamps=1&tailLines=3&\
                      sinceTime=2026-01-01T00:00:00Z&limitBytes=100&insecureSkipTLSVerifyBackend=true";
    let answer = stage.log(everything).await?;
    ensure!(answer.status == 200, "{answer}");
    let targets: Vec<String> = stage.kubelet.asked().into_iter().map(|one| one.target).collect();
    let logs = format!("/containerLogs/{}/web", cx.namespace);
    let expected = json!([
        format!("{logs}/main"),
        format!(
            "{logs}/first?follow=true&limitBytes=100&previous=true&sinceTime=2026-01-01T00%3A00%3A00Z&\
             tailLines=3&timestamps=true"
        ),
    ]);
    same("what the node was asked", &json!(targets), expected)?;
    let message =
        "a container name must be specified for pod web, choose one of: [first main side]";
    refused(&stage.log("").await?, 400, "BadRequest", message)?;
    let message = "container other is not valid for pod web";
    refused(&stage.log("container=other").await?, 400, "BadRequest", message)?;
    stage.clear().await
}

async fn what_a_node_says_is_wrong_is_told(cx: Context) -> Result<()> {
    let answer = |asked: &Asked| {
        let query = asked.target.split_once("tailLines=").map(|(_, number)| number);
        let code = query.and_then(|number| number.parse::<u16>().ok()).unwrap_or(200);
        let mut reply = whole(
            StatusCode::from_u16(code).unwrap_or_default(),
            "text/plain",
            "it says so".to_owned(),
        );
        if code == 302 {
            reply.headers_mut().insert(LOCATION, HeaderValue::from_static("https://elsewhere/"));
        }
        reply
    };
    let stage = Stage::set(&cx, answer).await?;
    let told = async |code: u16| {
        let answer = stage.log(&format!("container=main&tailLines={code}")).await?;
        let mut status = answer.json()?;
        ensure!(answer.status == status["code"].as_u64().unwrap_or_default() as u16, "{answer}");
        Ok(json!([status["code"], status["reason"], status["message"], status["details"].take()]))
    };
    let details = json!({ "name": "web", "kind": "pods/log" });
    let cause = json!({ "causes": [{ "message": "it says so" }] });
    for (code, expected) in [
        (500, json!([500, "InternalError", "Internal error occurred: it says so", cause])),
        (400, json!([400, "BadRequest", "it says so", null])),
        (
            404,
            json!([
                404,
                "NotFound",
                "the server could not find the requested resource ( pods/log web)",
                details
            ]),
        ),
        (403, json!([403, "Forbidden", "it says so ( pods/log web)", details])),
        (302, json!([500, null, "Get \"https://elsewhere/\": redirects forbidden", null])),
    ] {
        same(&format!("a {code}"), &told(code).await?, expected)?;
    }
    stage.clear().await
}

async fn a_node_that_is_away_is_told_of(cx: Context) -> Result<()> {
    let mut stage = Stage::set(&cx, |_| says("")).await?;
    stage.kubelet.stop().await;
    let answer = stage.log("container=main").await?;
    let port = stage.kubelet.port();
    let message = format!(
        "Get \"https://127.0.0.1:{port}/containerLogs/{}/web/main\": dial tcp 127.0.0.1:{port}: \
         connect: connection refused",
        cx.namespace
    );
    let status = answer.json()?;
    same("message", &status["message"], json!(message))?;
    same("code", &status["code"], json!(500))?;
    same("reason", &status["reason"], Value::Null)?;
    let status = json!({ "status": { "addresses": null } });
    let path = format!("/api/v1/nodes/{}/status", cx.namespace);
    expect(&cx.send(Request::merge_patch(path, &status)).await?, 200)?;
    let status = stage.log("container=main").await?.json()?;
    let message = "no preferred addresses found; known addresses: []";
    same("message", &status["message"], json!(message))?;
    stage.clear().await
}

async fn streams_leave_http(cx: Context) -> Result<()> {
    let stage = Stage::set(&cx, |_| says("")).await?;
    for part in ["exec?command=ls&container=main", "attach?container=main", "portforward?ports=80"]
    {
        for request in [
            Request::get(cx.core(&format!("pods/web/{part}"))),
            Request::post(cx.core(&format!("pods/web/{part}")), &json!({})),
        ] {
            let answer = cx.send(request).await?;
            refused(&answer, 400, "BadRequest", "Upgrade request required")?;
        }
    }
    let path = format!("/api/v1/nodes/{}/proxy/healthz", cx.namespace);
    refused(&cx.send(Request::get(path)).await?, 400, "BadRequest", "address not allowed")?;
    ensure!(stage.kubelet.asked().is_empty(), "the node was asked something");
    stage.clear().await
}

async fn running_commands_is_creating(cx: Context) -> Result<()> {
    let stage = Stage::set(&cx, |_| says("")).await?;
    let role = json!({
        "metadata": { "name": "onlooker" },
        "rules": [{
            "apiGroups": [""], "verbs": ["get"],
            "resources": ["pods/exec", "pods/attach", "pods/portforward"],
        }],
    });
    let group = "rbac.authorization.k8s.io";
    cx.create(&cx.apis(&format!("{group}/v1"), "roles"), &role).await?;
    let binding = json!({
        "metadata": { "name": "onlooker" },
        "roleRef": { "apiGroup": group, "kind": "Role", "name": "onlooker" },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": "onlooker" }],
    });
    cx.create(&cx.apis(&format!("{group}/v1"), "rolebindings"), &binding).await?;
    for part in ["exec?command=ls&container=main", "attach?container=main", "portforward"] {
        let request = Request::get(cx.core(&format!("pods/web/{part}"))).impersonate("onlooker");
        // Rights take a moment.
        let is_settled = |answer: &Answer| {
            answer.json().is_ok_and(|status| status["message"] == "pods \"web\" is forbidden: ")
        };
        let answer = cx.endpoint.poll(&request, super::PATIENCE, is_settled).await?;
        refused(&answer, 403, "Forbidden", "pods \"web\" is forbidden: ")?;
    }
    stage.clear().await
}
