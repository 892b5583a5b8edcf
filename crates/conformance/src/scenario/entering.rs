//! Commands in containers, and connections to ports of pods.
//!
//! For endpoints with at least one node that runs commands: those of this machine will do. The image
//! of the server answers HTTP on the port that its container names.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Context, same, scenarios};
use crate::endpoint::Request;
use crate::socket::{Heard, Spdy};

scenarios! { "entering":
    a_command_ends_with_a_code [B7],
    a_log_is_told_over_a_websocket [B7],
    ports_are_forwarded_inside_a_websocket [B8],
}

const PORT: u16 = 8080;
const ANSWER_MAX: Duration = Duration::from_secs(30);

async fn run(cx: &Context, container: Value) -> Result<()> {
    cx.wait_for_account().await?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" },
        "spec": { "terminationGracePeriodSeconds": 0, "containers": [container] },
    });
    cx.create(&cx.core("pods"), &pod).await?;
    cx.wait(&cx.core("pods/web"), |pod| pod["status"]["phase"] == "Running").await?;
    Ok(())
}

async fn a_command_ends_with_a_code(cx: Context) -> Result<()> {
    let sleep = json!({ "name": "main", "image": "busybox", "command": ["sleep", "100000"] });
    run(&cx, sleep).await?;
    let command = "command=sh&command=-c&command=cat%3B+exit+3";
    let target = cx.core(&format!("pods/web/exec?{command}&stdin=1&stdout=1"));
    let mut socket = cx.endpoint.upgrade(&Request::get(target), "v5.channel.k8s.io").await?;
    same("protocol", &json!(socket.protocol), json!("v5.channel.k8s.io"))?;
    socket.say(b"\0hello, container").await?;
    // With the fifth version one can say that a channel has ended.
    socket.say(&[255, 0]).await?;
    let (mut said, mut error) = (Vec::new(), Vec::new());
    let hearing = async {
        while let Some(message) = socket.hear().await? {
            match message.split_first() {
                Some((1, rest)) => said.extend(rest),
                Some((3, rest)) => error.extend(rest),
                _ => {}
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(ANSWER_MAX, hearing).await.context("it does not end")??;
    same("output", &json!(String::from_utf8_lossy(&said)), json!("hello, container"))?;
    let status: Value = serde_json::from_slice(&error).context("read its status")?;
    same("reason", &status["reason"], json!("NonZeroExitCode"))?;
    let cause = json!({ "reason": "ExitCode", "message": "3" });
    same("causes", &status["details"]["causes"], json!([cause]))
}

async fn a_log_is_told_over_a_websocket(cx: Context) -> Result<()> {
    let script = "echo alive; exec sleep 100000";
    run(&cx, json!({ "name": "main", "image": "busybox", "command": ["sh", "-c", script] }))
        .await?;
    let log = Request::get(cx.core("pods/web/log"));
    cx.endpoint.poll(&log, ANSWER_MAX, |answer| answer.bytes == b"alive\n").await?;
    // Of a log that ends upstream may lose what comes together with its end.
    let followed = Request::get(cx.core("pods/web/log?follow=true"));
    for (protocol, expected) in [("binary.k8s.io", "alive\n"), ("base64.binary.k8s.io", "YWxpdmUK")]
    {
        let mut socket = cx.endpoint.upgrade(&followed, protocol).await?;
        same("protocol", &json!(socket.protocol), json!(protocol))?;
        for message in ["", expected] {
            let heard = tokio::time::timeout(ANSWER_MAX, socket.hear()).await;
            let heard = heard.context("nothing is told")??.context("it ends")?;
            same("message", &json!(String::from_utf8_lossy(&heard)), json!(message))?;
        }
    }
    let refused = cx.endpoint.upgrade(&log, "channel.k8s.io").await;
    let refused = refused.err().context("a protocol that logs do not have was agreed on")?;
    ensure!(refused.to_string().contains("403"), "refused otherwise than by 403: {refused}");
    Ok(())
}

async fn ports_are_forwarded_inside_a_websocket(cx: Context) -> Result<()> {
    let ports = json!([{ "containerPort": PORT }]);
    run(&cx, json!({ "name": "main", "image": "nginxdemos/hello", "ports": ports })).await?;
    let protocol = "SPDY/3.1+portforward.k8s.io";
    let target = cx.core("pods/web/portforward");
    let mut socket = cx.endpoint.upgrade(&Request::get(target), protocol).await?;
    same("protocol", &json!(socket.protocol), json!(protocol))?;
    let (mut spdy, port) = (Spdy::default(), PORT.to_string());
    for (id, kind) in [(1, "error"), (3, "data")] {
        let headers = [("streamtype", kind), ("port", &*port), ("requestid", "0")];
        socket.say(&spdy.open(id, &headers)).await?;
    }
    let request = b"GET /inside HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n";
    socket.say(&Spdy::data(3, request)).await?;
    let mut heard = Heard::default();
    let mut answer = Vec::new();
    let hearing = async {
        while !answer.starts_with(b"HTTP/1.1 200") {
            let message = socket.hear().await?.context("it closes")?;
            let mut more = message.as_slice();
            while let Some((id, bytes)) = heard.next(more)? {
                more = &[];
                ensure!(id == 3 || bytes.is_empty(), "{}", String::from_utf8_lossy(&bytes));
                answer.extend(bytes);
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(ANSWER_MAX, hearing).await.context("it does not answer")?
}
