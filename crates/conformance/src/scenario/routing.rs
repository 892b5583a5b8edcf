//! Services that lead straight to what their EndpointSlices name: webhooks and servers of
//! APIServices are found there, and nobody need route the addresses of Services.
//!
//! Endpoints may not be loopback, so whoever is called listens at an address of this machine that
//! others may call. Whoever may not be called listens there too, and would be heard if it were.

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::stream;
use http::StatusCode;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::{Value, json};

use super::aggregation::PATH;
use super::webhooks::{VALIDATING, configure, denial, play, unanswered, webhook};
use super::{Context, PATIENCE, config_map, expect, own_address, same, scenarios, text};
use crate::endpoint::{Answer, Request};
use crate::extension::{self, Asked, Extension};
use crate::hook::Hook;

scenarios! { "routing", alone:
    a_webhook_is_found_behind_the_slices_of_its_service [A3],
    a_port_is_found_by_its_name [A3],
    a_service_without_an_address_leads_to_its_endpoints [A3],
    endpoints_that_people_write_are_found [A3],
    a_server_is_available_once_an_endpoint_is_ready [A3 B6],
    every_endpoint_is_asked_by_its_own_address [A3 B6],
    requests_follow_the_endpoints_of_a_service [A3 B6],
}

/// How often somebody is asked who must be asked every time.
const TIMES: usize = 10;

fn address() -> Result<Ipv4Addr> {
    own_address().context("this machine has no address but loopback, which no endpoint may have")
}

impl Context {
    /// A webhook behind the Service `hook` that says no to all, in these words.
    async fn hook(&self, words: &'static str) -> Result<Hook> {
        let host = format!("hook.{}.svc", self.namespace);
        let answer = move |review: &Value| denial(review, json!({ "message": words }));
        Hook::start_at(address()?, &[&host], answer).await
    }

    /// Has a port of the Service `hook` lead to a webhook that is asked about [`Self::asking`] its name.
    /// Any of these hooks may be the one behind it.
    fn behind(&self, name: &str, port: u16, hooks: &[&Hook]) -> Value {
        let authorities: String = hooks.iter().map(|hook| hook.authority()).collect();
        let config = json!({
            "service": { "namespace": self.namespace, "name": "hook", "path": "/p", "port": port },
            "caBundle": BASE64_STANDARD.encode(authorities),
        });
        let mut webhook = webhook(self, name, config);
        webhook["objectSelector"] = json!({ "matchLabels": { "case": name } });
        webhook
    }

    /// What the webhook of this name is asked about.
    fn asking(&self, name: &str) -> Request {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({ "case": name });
        Request::post(self.core("configmaps"), &object)
    }

    /// Waits until a webhook refuses in these words; upstream may not know yet what leads there.
    async fn wait_for_words(&self, name: &str, words: &str) -> Result<()> {
        let message =
            format!("admission webhook \"{name}.kubewright.dev\" denied the request: {words}");
        self.wait_for_refusal(name, &message).await?;
        Ok(())
    }

    /// Waits until nobody can be asked, for this reason.
    async fn wait_in_vain(&self, name: &str, port: u16, why: &str) -> Result<()> {
        let url = format!("https://hook.{}.svc:{port}/p?timeout=10s", self.namespace);
        let why = format!("failed to call webhook: Post \"{url}\": {why}");
        let message = format!(
            "Internal error occurred: failed calling webhook \"{name}.kubewright.dev\": {why}"
        );
        unanswered(&self.wait_for_refusal(name, &message).await?, name, &why)
    }

    async fn wait_for_refusal(&self, name: &str, message: &str) -> Result<Answer> {
        let is_told = |answer: &Answer| {
            answer.json().is_ok_and(|status| text(&status, "/message") == message)
        };
        self.endpoint.poll(&self.asking(name), PATIENCE, is_told).await
    }

    /// Makes a Service that selects nothing: its endpoints are those that somebody writes.
    async fn service(&self, name: &str, spec: Value) -> Result<()> {
        let service = json!({ "metadata": { "name": name }, "spec": spec });
        self.create(&self.core("services"), &service).await?;
        Ok(())
    }

    /// Makes a slice of a Service with one endpoint on this machine.
    async fn slice(&self, service: &str, name: &str, ports: Value, is_ready: Value) -> Result<()> {
        let slice = json!({
            "metadata": { "name": name, "labels": { "kubernetes.io/service-name": service } },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": [address()?], "conditions": { "ready": is_ready } }],
            "ports": ports,
        });
        self.create(&self.apis("discovery.k8s.io/v1", "endpointslices"), &slice).await?;
        Ok(())
    }

    /// Has our APIService name the port 443 of the Service `extension`, behind which any of these
    /// servers may be.
    async fn register_behind(&self, extensions: &[&Extension]) -> Result<()> {
        self.service("extension", json!({ "ports": [{ "name": "api", "port": 443 }] })).await?;
        let spec = json!({
            "caBundle": extension::ca_bundle(extensions),
            "service": { "namespace": self.namespace, "name": "extension" },
        });
        self.create(PATH, &self.api_service(spec)).await?;
        Ok(())
    }

    /// Who answers for our group.
    fn who(&self) -> Request {
        Request::get(format!("{}/who", self.version()))
    }

    /// A server of our group that gives its name to who asks for it.
    async fn named(&self, name: &'static str) -> Result<Extension> {
        let answer = move |asked: &Asked| {
            if !asked.path().ends_with("/who") {
                return None;
            }
            // In chunks: whoever passes it on must read to the end, and has a connection left that
            // it could use again.
            let body = Bytes::from(json!({ "name": name }).to_string());
            let frames = stream::once(async move { Ok(Frame::data(body)) });
            let mut reply = extension::json(StatusCode::OK, &Value::Null);
            *reply.body_mut() = StreamBody::new(frames).boxed();
            Some(reply)
        };
        self.extend_at(address()?, answer).await
    }
}

/// What hosts a server was asked for its name as.
fn hosts(extension: &Extension) -> Vec<String> {
    let asked = extension.asked().into_iter().filter(|asked| asked.path().ends_with("/who"));
    asked.map(|asked| asked.header("host").concat()).collect()
}

async fn a_webhook_is_found_behind_the_slices_of_its_service(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let (hook, shunned) = (cx.hook("here").await?, cx.hook("not ready").await?);
        cx.service("hook", json!({ "ports": [{ "name": "https", "port": 8443 }] })).await?;
        let hooks = [cx.behind("judge", 8443, &[&hook, &shunned])];
        configure(cx, VALIDATING, "", &hooks).await?;
        let nobody = "no endpoints available for service \"hook\"";
        cx.wait_in_vain("judge", 8443, nobody).await?;

        let ports = |hook: &Hook| json!([{ "name": "https", "port": hook.port() }]);
        cx.slice("hook", "waiting", ports(&shunned), json!(false)).await?;
        cx.wait_in_vain("judge", 8443, nobody).await?;
        // Of what says nothing of itself, the best is believed.
        cx.slice("hook", "ready", ports(&hook), Value::Null).await?;
        cx.wait_for_words("judge", "here").await?;
        let asked = hook.asked();
        let target = asked.first().map(|asked| asked.target.as_str());
        same("target", &json!(target), json!("/p?timeout=10s"))?;
        let host = asked.first().map(|asked| asked.headers["host"].to_str()).transpose()?;
        same("host", &json!(host), json!(format!("hook.{}.svc:8443", cx.namespace)))?;
        for _ in 0..TIMES {
            expect(&cx.send(cx.asking("judge")).await?, 400)?;
        }
        same("asked", &json!(hook.asked().len()), json!(TIMES + 1))?;
        ensure!(shunned.asked().is_empty(), "who is not ready was asked");
        Ok(())
    })
    .await
}

async fn a_port_is_found_by_its_name(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let (first, second) = (cx.hook("first").await?, cx.hook("second").await?);
        let ports = json!([
            { "name": "first", "port": 1443 },
            { "name": "second", "port": 2443 },
            { "name": "closed", "port": 3443 },
        ]);
        cx.service("hook", json!({ "ports": ports })).await?;
        let ports = json!([
            { "name": "second", "port": second.port() },
            { "name": "first", "port": first.port() },
        ]);
        cx.slice("hook", "hook", ports, json!(true)).await?;
        let both = [&first, &second];
        let hooks = [("first", 1443), ("second", 2443), ("closed", 3443), ("unknown", 4443)]
            .map(|(name, port)| cx.behind(name, port, &both));
        configure(cx, VALIDATING, "", &hooks).await?;
        cx.wait_for_words("first", "first").await?;
        cx.wait_for_words("second", "second").await?;
        let nobody = "no endpoints available for service \"hook\"";
        cx.wait_in_vain("closed", 3443, nobody).await?;
        let unknown = "no service port 4443 found for service \"hook\"";
        cx.wait_in_vain("unknown", 4443, unknown).await
    })
    .await
}

async fn a_service_without_an_address_leads_to_its_endpoints(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = cx.hook("here").await?;
        // Of a single port, no name is needed.
        cx.service("hook", json!({ "clusterIP": "None", "ports": [{ "port": 443 }] })).await?;
        cx.slice("hook", "hook", json!([{ "port": hook.port() }]), json!(true)).await?;
        configure(cx, VALIDATING, "", &[cx.behind("judge", 443, &[&hook])]).await?;
        cx.wait_for_words("judge", "here").await
    })
    .await
}

async fn endpoints_that_people_write_are_found(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = cx.hook("here").await?;
        cx.service("hook", json!({ "ports": [{ "name": "https", "port": 443 }] })).await?;
        let endpoints = json!({
            "metadata": { "name": "hook" },
            "subsets": [{
                "addresses": [{ "ip": address()? }],
                "ports": [{ "name": "https", "port": hook.port() }],
            }],
        });
        cx.create(&cx.core("endpoints"), &endpoints).await?;
        configure(cx, VALIDATING, "", &[cx.behind("judge", 443, &[&hook])]).await?;
        cx.wait_for_words("judge", "here").await
    })
    .await
}

async fn a_server_is_available_once_an_endpoint_is_ready(cx: Context) -> Result<()> {
    let (ready, shunned) = (cx.named("ready").await?, cx.named("not ready").await?);
    cx.register_behind(&[&ready, &shunned]).await?;
    cx.wait_for("EndpointsNotFound").await?;
    let ports = |extension: &Extension| json!([{ "name": "api", "port": extension.port() }]);
    cx.slice("extension", "waiting", ports(&shunned), json!(false)).await?;
    cx.wait_for("MissingEndpoints").await?;
    cx.slice("extension", "ready", ports(&ready), json!(true)).await?;
    cx.wait_until_answered().await?;
    for _ in 0..TIMES {
        same("the answer", &expect(&cx.send(cx.who()).await?, 200)?, json!({ "name": "ready" }))?;
    }
    let host = format!("{}:{}", address()?, ready.port());
    same("hosts", &json!(hosts(&ready)), json!(vec![host; TIMES]))?;
    ensure!(shunned.asked().is_empty(), "who is not ready was asked");
    Ok(())
}

async fn every_endpoint_is_asked_by_its_own_address(cx: Context) -> Result<()> {
    let (first, second) = (cx.named("first").await?, cx.named("second").await?);
    cx.register_behind(&[&first, &second]).await?;
    for (name, extension) in [("first", &first), ("second", &second)] {
        let ports = json!([{ "name": "api", "port": extension.port() }]);
        cx.slice("extension", name, ports, json!(true)).await?;
    }
    cx.wait_until_answered().await?;
    for extension in [&first, &second] {
        // Which one is asked is left to chance.
        let is_asked = |_: &Answer| hosts(extension).len() >= TIMES;
        cx.endpoint.poll(&cx.who(), PATIENCE, is_asked).await?;
        let host = format!("{}:{}", address()?, extension.port());
        let others: Vec<String> = hosts(extension).into_iter().filter(|it| *it != host).collect();
        same("other hosts", &json!(others), json!([]))?;
    }
    Ok(())
}

/// Connections to where the Service led before are of no use any more, open as they may be.
async fn requests_follow_the_endpoints_of_a_service(cx: Context) -> Result<()> {
    let (first, second) = (cx.named("first").await?, cx.named("second").await?);
    cx.register_behind(&[&first, &second]).await?;
    let ports = |extension: &Extension| json!([{ "name": "api", "port": extension.port() }]);
    cx.slice("extension", "extension", ports(&first), json!(true)).await?;
    cx.wait_until_answered().await?;
    same("the answer", &expect(&cx.send(cx.who()).await?, 200)?, json!({ "name": "first" }))?;

    let slice = cx.apis("discovery.k8s.io/v1", "endpointslices/extension");
    let moved = json!({ "ports": ports(&second) });
    expect(&cx.send(Request::merge_patch(slice, &moved)).await?, 200)?;
    let has_moved = |answer: &Answer| answer.json().is_ok_and(|body| body["name"] == "second");
    cx.endpoint.poll(&cx.who(), PATIENCE, has_moved).await?;
    for _ in 0..TIMES {
        same("the answer", &expect(&cx.send(cx.who()).await?, 200)?, json!({ "name": "second" }))?;
    }
    let host = format!("{}:{}", address()?, second.port());
    same("hosts", &json!(hosts(&second)), json!(vec![host; TIMES + 1]))
}
