//! Admission webhooks: what comes of their answers.
//!
//! Webhooks are servers over TLS that a scenario starts; what they answer depends on the name of
//! the object. A configuration selects only the scenario's own namespace or objects.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Context, PATIENCE, config_map, expect, refused, same, scenarios, text};
use crate::endpoint::{Answer, Request};
use crate::hook::{Hook, Reply};

scenarios! { "webhooks", alone:
    a_denial_names_the_webhook [A2],
    an_answer_that_is_none_refuses_the_request [A2],
    an_answer_by_code_alone_is_told [A2],
    a_failing_webhook_is_passed_over_where_it_may_fail [A2],
    a_webhook_that_hangs_or_is_somebody_else_is_told [A2],
    a_webhook_may_send_who_asks_elsewhere [A2],
    a_webhook_changes_what_is_written [A2],
    a_change_that_cannot_be_is_told [A2],
    what_changes_an_object_is_asked_in_order_and_again_if_it_wants [A2],
    warnings_of_webhooks_reach_the_client [A2 W12],
    a_service_leads_to_its_webhook [A2],
    webhooks_are_counted [A2],
}

pub(super) const MUTATING: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
pub(super) const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Plays a scenario, and removes the configurations it made: nobody could remove its objects if a
/// webhook were still asked that is gone.
pub(super) async fn play(
    cx: &Context,
    scenario: impl AsyncFnOnce(&Context) -> Result<()>,
) -> Result<()> {
    let outcome = scenario(cx).await;
    for collection in [MUTATING, VALIDATING] {
        let all = cx.get(collection).await?;
        for name in super::names(&all).into_iter().filter(|name| name.starts_with(&cx.namespace)) {
            cx.send(Request::delete(format!("{collection}/{name}"))).await?;
        }
    }
    outcome
}

/// A webhook that is asked about ConfigMaps in our namespace.
pub(super) fn webhook(cx: &Context, name: &str, client_config: Value) -> Value {
    json!({
        "name": format!("{name}.kubewright.dev"),
        "clientConfig": client_config,
        "rules": [rule("", "v1", "configmaps")],
        "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": cx.namespace } },
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    })
}

pub(super) fn rule(group: &str, version: &str, resource: &str) -> Value {
    json!({
        "operations": ["*"],
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [resource],
    })
}

/// Configures webhooks and waits until they are asked: one more, before them, denies what is
/// labelled so.
pub(super) async fn configure(
    cx: &Context,
    collection: &str,
    suffix: &str,
    hooks: &[Value],
) -> Result<()> {
    let mark = format!("probe{suffix}");
    let denied = Hook::start(&[], |review| denial(review, json!({ "message": "ready" }))).await?;
    let mut probe = webhook(cx, &mark, denied.client_config("/"));
    probe["objectSelector"] = json!({ "matchLabels": { "probe": mark } });
    let webhooks: Vec<Value> = [probe].into_iter().chain(hooks.iter().cloned()).collect();
    let name = format!("{}{suffix}", cx.namespace);
    let configuration = json!({ "metadata": { "name": name }, "webhooks": webhooks });
    cx.create(collection, &configuration).await?;

    let mut probed = config_map("probe");
    probed["metadata"]["labels"] = json!({ "probe": mark });
    let request = Request::post(cx.core("configmaps?dryRun=All"), &probed);
    let expected = format!("admission webhook \"{mark}.kubewright.dev\" denied the request: ready");
    let is_ready =
        |answer: &Answer| answer.json().is_ok_and(|status| text(&status, "/message") == expected);
    cx.endpoint.poll(&request, PATIENCE, is_ready).await?;
    Ok(())
}

/// An answer to a review.
fn answer(review: &Value, mut response: Value) -> Reply {
    response["uid"] = review["request"]["uid"].clone();
    Reply::json(&json!({
        "apiVersion": review["apiVersion"],
        "kind": "AdmissionReview",
        "response": response,
    }))
}

pub(super) fn allowed(review: &Value) -> Reply {
    answer(review, json!({ "allowed": true }))
}

pub(super) fn denial(review: &Value, status: Value) -> Reply {
    answer(review, json!({ "allowed": false, "status": status }))
}

pub(super) fn patched(review: &Value, patch: &Value) -> Reply {
    let patch = BASE64_STANDARD.encode(patch.to_string());
    answer(review, json!({ "allowed": true, "patch": patch, "patchType": "JSONPatch" }))
}

/// The name of the object that a review is about.
pub(super) fn name_of(review: &Value) -> &str {
    let request = &review["request"];
    let names = ["/name", "/object/metadata/name", "/oldObject/metadata/name"];
    names.iter().map(|at| text(request, at)).find(|name| !name.is_empty()).unwrap_or_default()
}

/// The requests that a webhook saw about objects of this name, without what differs each time.
pub(super) fn seen(hook: &Hook, name: &str) -> Vec<Value> {
    let asked = hook.asked().into_iter().map(|asked| asked.review["request"].clone());
    asked.filter(|request| name_of(&json!({ "request": request })) == name).collect()
}

pub(super) async fn create(cx: &Context, name: &str) -> Result<Answer> {
    cx.send(Request::post(cx.core("configmaps"), &config_map(name))).await
}

/// The refusal of a request because a webhook gave no verdict.
pub(super) fn unanswered(answer: &Answer, webhook: &str, why: &str) -> Result<()> {
    let message = format!("failed calling webhook \"{webhook}.kubewright.dev\": {why}");
    let told = format!("Internal error occurred: {message}");
    let status = refused(answer, 500, "InternalError", &told)?;
    same("causes", &status["details"]["causes"], json!([{ "message": message }]))
}

async fn a_denial_names_the_webhook(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| match name_of(review) {
            "plain" => answer(review, json!({ "allowed": false })),
            "said" => denial(review, json!({ "message": "no way" })),
            "coded" => denial(
                review,
                json!({
                    "message": "teapot", "code": 418, "reason": "Custom",
                    "details": { "name": "x" },
                }),
            ),
            "reason" => denial(review, json!({ "reason": "Because" })),
            "success" => denial(review, json!({ "code": 200, "status": "Success" })),
            _ => allowed(review),
        })
        .await?;
        let hooks = [webhook(cx, "judge", hook.client_config("/"))];
        configure(cx, VALIDATING, "", &hooks).await?;
        let denied = "admission webhook \"judge.kubewright.dev\" denied the request";
        let cases = [
            ("plain", 400, Value::Null, format!("{denied} without explanation")),
            ("said", 400, Value::Null, format!("{denied}: no way")),
            ("coded", 418, json!("Custom"), format!("{denied}: teapot")),
            ("reason", 400, json!("Because"), format!("{denied}: Because")),
            ("success", 400, Value::Null, format!("{denied} without explanation")),
        ];
        for (name, code, reason, message) in cases {
            let status = expect(&create(cx, name).await?, code)?;
            same("message", &status["message"], json!(message))?;
            same("reason", &status["reason"], reason)?;
            same("status", &status["status"], json!("Failure"))?;
        }
        expect(&create(cx, "fine").await?, 201)?;
        Ok(())
    })
    .await
}

async fn an_answer_that_is_none_refuses_the_request(cx: Context) -> Result<()> {
    let raw = |text: &str| Reply::new(200, "application/json", text);
    play(&cx, async |cx| {
        let hook = Hook::start(&[], move |review| match name_of(review) {
            "empty" => raw(""),
            "object" => raw("{}"),
            "text" => raw("hello"),
            "cut" => raw(r#"{"apiVersion":"admission.k8s.io/v1","kind":"Admiss"#),
            "kind" => raw(r#"{"apiVersion":"v1","kind":"Pod"}"#),
            "older" => raw(r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#),
            "nameless" => raw(&format!(r#"{{"response":{{"uid":{}}}}}"#, review["request"]["uid"])),
            "type" => raw(
                r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",
                    "response":{"allowed":"yes"}}"#,
            ),
            "patch" => patched(review, &json!([])),
            "media" => Reply { media_type: "app;;;x", ..allowed(review) },
            "yaml" => {
                let uid = text(review, "/request/uid");
                let review = format!(
                    "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\n\
                     response: {{uid: {uid}, allowed: true}}\n"
                );
                Reply { media_type: "application/yaml", ..raw(&review) }
            }
            "other" => Reply::json(&json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": { "uid": "other", "allowed": true },
            })),
            _ => allowed(review),
        })
        .await?;
        let hooks = [webhook(cx, "judge", hook.client_config("/"))];
        configure(cx, VALIDATING, "", &hooks).await?;
        let unread = "failed to call webhook: couldn't get version/kind; json parse error";
        let scheme = "in scheme \"pkg/runtime/scheme.go:111\"";
        let invalid = "received invalid webhook response";
        let cases = [
            (
                "empty",
                "failed to call webhook: 0-length response with status code: 200 and content type: \
                 application/json"
                    .to_owned(),
            ),
            ("object", format!("{invalid}: webhook response was absent")),
            (
                "text",
                format!(
                    "{unread}: json: cannot unmarshal string into Go value of type struct {{ \
                     APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                     \"json:\\\"kind,omitempty\\\"\" }}"
                ),
            ),
            ("cut", format!("{unread}: unexpected end of JSON input")),
            (
                "kind",
                format!("failed to call webhook: no kind \"Pod\" is registered for version \"v1\" {scheme}"),
            ),
            (
                "older",
                "failed to call webhook: converting (v1beta1.AdmissionReview) to \
                 (v1.AdmissionReview): unknown conversion"
                    .to_owned(),
            ),
            (
                "nameless",
                format!(
                    "{invalid}: expected webhook response of admission.k8s.io/v1, \
                     Kind=AdmissionReview, got /, Kind="
                ),
            ),
            (
                "type",
                "failed to call webhook: json: cannot unmarshal string into Go struct field \
                 AdmissionResponse.response.allowed of type bool"
                    .to_owned(),
            ),
            ("patch", format!("{invalid}: validating webhook may not return response.patch")),
            (
                "media",
                "failed to call webhook: Internal error occurred: mime: invalid media parameter"
                    .to_owned(),
            ),
        ];
        for (name, why) in cases {
            unanswered(&create(cx, name).await?, "judge", &why).context(name)?;
        }
        expect(&create(cx, "yaml").await?, 201)?;
        let answer = create(cx, "other").await?;
        let asked = seen(&hook, "other");
        let uid = asked.first().map(|request| text(request, "/uid")).unwrap_or_default();
        let why = format!("{invalid}: expected response.uid=\"{uid}\", got \"other\"");
        unanswered(&answer, "judge", &why)
    })
    .await
}

async fn an_answer_by_code_alone_is_told(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| match name_of(review).strip_prefix("code-") {
            Some("status") => Reply {
                status: 500,
                ..Reply::json(&json!({
                    "apiVersion": "v1", "kind": "Status", "status": "Failure",
                    "message": "structured", "code": 500, "reason": "InternalError",
                }))
            },
            Some(code) => Reply::new(code.parse().unwrap_or(500), "text/plain", " boom\n"),
            None => allowed(review),
        })
        .await?;
        let hooks = [webhook(cx, "judge", hook.client_config("/"))];
        configure(cx, VALIDATING, "", &hooks).await?;
        let cases = [
            ("400", "the server rejected our request for an unknown reason"),
            ("401", "the server has asked for the client to provide credentials"),
            ("403", "boom"),
            ("404", "the server could not find the requested resource"),
            ("409", "the server reported a conflict"),
            (
                "418",
                "the server responded with the status code 418 but did not return more information",
            ),
            (
                "429",
                "the server has received too many requests and has asked us to try again later",
            ),
            ("500", "an error on the server (\"boom\") has prevented the request from succeeding"),
            ("503", "the server is currently unable to handle the request"),
            (
                "504",
                "the server was unable to return a response in the time allotted, but may still be \
                 processing the request",
            ),
            ("status", "structured"),
        ];
        for (code, why) in cases {
            let answer = create(cx, &format!("code-{code}")).await?;
            unanswered(&answer, "judge", &format!("failed to call webhook: {why}"))
                .context(code)?;
        }
        expect(&create(cx, "code-201").await?, 500)?;
        Ok(())
    })
    .await
}

async fn a_failing_webhook_is_passed_over_where_it_may_fail(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let garbage = Hook::start(&[], |_| Reply::json(&json!("garbage"))).await?;
        let denying = Hook::start(&[], |review| match name_of(review) {
            "denied" => denial(review, json!({ "message": "no" })),
            _ => allowed(review),
        })
        .await?;
        let mut hooks = [
            webhook(cx, "nobody", json!({ "url": "https://127.0.0.1:1/" })),
            webhook(cx, "garbage", garbage.client_config("/")),
            webhook(cx, "denying", denying.client_config("/")),
        ];
        for hook in &mut hooks {
            hook["failurePolicy"] = json!("Ignore");
        }
        configure(cx, VALIDATING, "", &hooks).await?;
        configure(cx, MUTATING, "m", &hooks).await?;
        expect(&create(cx, "passed").await?, 201)?;
        // Whoever answers is believed, whatever would be if it did not.
        let message = "admission webhook \"denying.kubewright.dev\" denied the request: no";
        let status = expect(&create(cx, "denied").await?, 400)?;
        same("message", &status["message"], json!(message))
    })
    .await
}

async fn a_webhook_that_hangs_or_is_somebody_else_is_told(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        // Connections are made, and nobody speaks.
        let silent = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}/hang", silent.local_addr()?);
        let (ours, other) = (Hook::start(&[], allowed).await?, Hook::start(&[], allowed).await?);
        let mut stranger = ours.client_config("/");
        stranger["caBundle"] = json!(other.ca_bundle());
        let selecting = |mut hook: Value, name: &str| {
            hook["objectSelector"] = json!({ "matchLabels": { "case": name } });
            hook["timeoutSeconds"] = json!(1);
            hook
        };
        let hooks = [
            selecting(webhook(cx, "nobody", json!({ "url": "https://127.0.0.1:1/" })), "nobody"),
            selecting(webhook(cx, "hanging", json!({ "url": url })), "hanging"),
            selecting(webhook(cx, "stranger", stranger), "stranger"),
        ];
        configure(cx, VALIDATING, "", &hooks).await?;
        let send = async |case: &str| {
            let mut object = config_map(case);
            object["metadata"]["labels"] = json!({ "case": case });
            cx.send(Request::post(cx.core("configmaps"), &object)).await
        };
        unanswered(
            &send("nobody").await?,
            "nobody",
            "failed to call webhook: Post \"https://127.0.0.1:1/?timeout=1s\": dial tcp 127.0.0.1:1: \
             connect: connection refused",
        )?;
        let why = format!("failed to call webhook: Post \"{url}?timeout=1s\": context deadline exceeded");
        unanswered(&send("hanging").await?, "hanging", &why)?;
        let answer = send("stranger").await?;
        let status = expect(&answer, 500)?;
        let told = text(&status, "/message");
        let port = ours.port();
        let why = format!(
            "Internal error occurred: failed calling webhook \"stranger.kubewright.dev\": failed to \
             call webhook: Post \"https://127.0.0.1:{port}/?timeout=1s\": tls: failed to verify \
             certificate: x509: certificate signed by unknown authority"
        );
        ensure!(told.starts_with(&why), "{told}");
        Ok(())
    })
    .await
}

async fn a_webhook_may_send_who_asks_elsewhere(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let there = Hook::start(&[], |review| match review {
            // Most ways of sending somebody elsewhere lose the question.
            Value::Null => Reply::new(405, "text/plain", ""),
            review => denial(review, json!({ "message": "there" })),
        })
        .await?;
        let moved = there.url("/moved");
        let hook = Hook::start(&[], move |review| match name_of(review) {
            "kept" => Reply::redirect(307, &moved),
            "for-ever" => Reply::redirect(308, &moved),
            "lost" => Reply::redirect(302, &moved),
            "see-other" => Reply::redirect(303, &moved),
            "relative" => Reply::redirect(307, "../again?x=1"),
            "nowhere" => Reply::new(307, "text/plain", ""),
            "refused" => Reply::redirect(307, "https://127.0.0.1:1/x"),
            "foreign" => Reply::redirect(307, "ftp://127.0.0.1/x"),
            _ => allowed(review),
        })
        .await?;
        let mut client_config = hook.client_config("/a/b");
        let authorities = format!("{}{}", hook.authority(), there.authority());
        client_config["caBundle"] = json!(BASE64_STANDARD.encode(authorities));
        configure(cx, VALIDATING, "", &[webhook(cx, "mover", client_config)]).await?;

        for name in ["kept", "for-ever"] {
            let status = expect(&create(cx, name).await?, 400)?;
            let message = "admission webhook \"mover.kubewright.dev\" denied the request: there";
            same("message", &status["message"], json!(message))?;
        }
        let asked = there.asked();
        let first = asked.first().context("nobody asked")?;
        same("target", &json!(first.target), json!("/moved"))?;
        let referer = first.headers.get("referer").and_then(|referer| referer.to_str().ok());
        same("referer", &json!(referer), json!(hook.url("/a/b?timeout=10s")))?;

        let call = |why: &str| format!("failed to call webhook: {why}");
        let cases = [
            ("lost", call("the server does not allow this method on the requested resource")),
            ("see-other", call("the server does not allow this method on the requested resource")),
            ("relative", call("Post \"../again?x=1\": stopped after 10 redirects")),
            (
                "nowhere",
                call(
                    "the server responded with the status code 307 but did not return more \
                     information",
                ),
            ),
            (
                "refused",
                call(
                    "Post \"https://127.0.0.1:1/x\": dial tcp 127.0.0.1:1: connect: connection \
                     refused",
                ),
            ),
            ("foreign", call("Post \"ftp://127.0.0.1/x\": unsupported protocol scheme \"ftp\"")),
        ];
        for (name, why) in cases {
            unanswered(&create(cx, name).await?, "mover", &why).context(name)?;
        }
        let asked = there.asked();
        let lost = asked.last().context("nobody asked")?;
        same("method", &json!(lost.method.as_str()), json!("GET"))?;
        same("body", &lost.review, Value::Null)?;
        same("media type", &json!(lost.headers.contains_key("content-type")), json!(false))?;
        same("requests", &json!(seen(&hook, "relative").len()), json!(10))
    })
    .await
}

async fn a_webhook_changes_what_is_written(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| {
            let add =
                |path: &str, value: Value| json!({ "op": "add", "path": path, "value": value });
            let operation = match name_of(review) {
                "more" => add("/data/more", json!("x")),
                "unknown" => add("/nothing", json!({ "a": 1 })),
                "renamed" => add("/metadata/name", json!("another")),
                "kindless" => json!({ "op": "remove", "path": "/kind" }),
                "identity" => add("/metadata/uid", json!("mine")),
                "managed" => add(
                    "/metadata/managedFields",
                    json!([{ "manager": "x", "operation": "Foo", "apiVersion": "v1" }]),
                ),
                "owned" => {
                    let owner = json!({ "apiVersion": "v1", "kind": "X", "name": "x", "uid": "1" });
                    add("/metadata/ownerReferences", json!([owner, owner]))
                }
                "none" => return patched(review, &json!([])),
                "null" => return patched(review, &Value::Null),
                _ => return allowed(review),
            };
            patched(review, &json!([operation]))
        })
        .await?;
        let hooks = [webhook(cx, "changer", hook.client_config("/"))];
        configure(cx, MUTATING, "", &hooks).await?;
        let created = expect(&create(cx, "more").await?, 201)?;
        same("data", &created["data"], json!({ "key": "value", "more": "x" }))?;
        let path = cx.core("configmaps/more");
        let change = json!({ "data": { "key": "other", "more": null } });
        let changed = expect(&cx.send(Request::merge_patch(&path, &change)).await?, 200)?;
        same("data", &changed["data"], json!({ "key": "other", "more": "x" }))?;

        let created = expect(&create(cx, "unknown").await?, 201)?;
        same("unknown", &created["nothing"], Value::Null)?;
        let created = expect(&create(cx, "renamed").await?, 201)?;
        same("name", &created["metadata"]["name"], json!("another"))?;
        expect(&create(cx, "kindless").await?, 201)?;
        expect(&create(cx, "none").await?, 201)?;
        expect(&create(cx, "null").await?, 201)?;
        let created = expect(&create(cx, "identity").await?, 201)?;
        ensure!(created["metadata"]["uid"] != "mine", "a webhook chose the uid");

        let answer = create(cx, "managed").await?;
        let created = expect(&answer, 201)?;
        let operation = &created["metadata"]["managedFields"][0]["operation"];
        same("managed fields", operation, json!("Update"))?;
        let warning = ".metadata.managedFields was in an invalid state after admission; this could \
                       be caused by an outdated mutating admission controller; please fix your \
                       requests: operation must be `Apply` or `Update`";
        same("warnings", &json!(answer.warnings()), json!([warning]))?;
        let answer = create(cx, "owned").await?;
        let owners = expect(&answer, 201)?["metadata"]["ownerReferences"].clone();
        same("owners", &json!(owners.as_array().map(Vec::len)), json!(1))?;
        let warnings = answer.warnings();
        let warning = warnings.first().map(String::as_str).unwrap_or_default();
        ensure!(warning.contains("after mutating admission happens"), "{warning}");
        Ok(())
    })
    .await
}

async fn a_change_that_cannot_be_is_told(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| {
            let add = |path: &str, value: Value| json!({ "op": "add", "path": path, "value": value });
            let operation = match name_of(review) {
                "type" => add("/data/x", json!(5)),
                "labels" => add("/metadata/labels", json!({ "a": 5 })),
                "kind" => add("/kind", json!("Foo")),
                "version" => add("/apiVersion", json!("v2")),
                "missing" => json!({ "op": "remove", "path": "/nope" }),
                "test" => json!({ "op": "test", "path": "/data/key", "value": "x" }),
                "operation" => json!({ "op": "frob", "path": "/data/key" }),
                "invalid" => add("/data/bad!key", json!("x")),
                "elsewhere" => add("/metadata/namespace", json!("other")),
                "bare" => json!({ "op": "remove", "path": "/metadata" }),
                "long" => add("/data/x", json!("y".repeat(3_000_000))),
                "object" => return patched(review, &json!({ "a": 1 })),
                "language" => {
                    let patch = BASE64_STANDARD.encode("[{}]");
                    let response = json!({ "allowed": true, "patch": patch, "patchType": "Merge" });
                    return answer(review, response);
                }
                "copies" => {
                    let copy = |n: usize| json!({ "op": "copy", "from": "/data/x", "path": format!("/data/x{n}") });
                    let first = add("/data/x", json!("y".repeat(300_000)));
                    let all: Vec<Value> = [first].into_iter().chain((0..20).map(copy)).collect();
                    return patched(review, &json!(all));
                }
                _ => return allowed(review),
            };
            patched(review, &json!([operation]))
        })
        .await?;
        let hooks = [webhook(cx, "changer", hook.client_config("/"))];
        configure(cx, MUTATING, "", &hooks).await?;
        let unmarshal = "json: cannot unmarshal number into Go struct field";
        let scheme = "in scheme \"pkg/runtime/scheme.go:111\"";
        let cases = [
            ("type", format!("{unmarshal} ConfigMap.data of type string")),
            ("labels", format!("{unmarshal} ObjectMeta.metadata.labels of type string")),
            ("kind", format!("no kind \"Foo\" is registered for version \"v1\" {scheme}")),
            ("version", format!("no kind \"ConfigMap\" is registered for version \"v2\" {scheme}")),
            (
                "missing",
                "error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing \
                 value"
                    .to_owned(),
            ),
            ("test", "testing value /data/key failed: test failed".to_owned()),
            ("operation", "Unexpected kind: frob".to_owned()),
            (
                "copies",
                "Unable to complete the copy, the accumulated size increase of copy is 3300022, \
                 exceeding the limit 3145728"
                    .to_owned(),
            ),
        ];
        for (name, why) in cases {
            let told = format!("Internal error occurred: {why}");
            refused(&create(cx, name).await?, 500, "InternalError", &told).context(name)?;
        }
        unanswered(
            &create(cx, "object").await?,
            "changer",
            "received undecodable patch in webhook response: json: cannot unmarshal object into Go \
             value of type jsonpatch.Patch",
        )?;
        let why = "unsupported patch type \"Merge\"";
        unanswered(&create(cx, "language").await?, "changer", why)?;
        let why = "the namespace of the provided object does not match the namespace sent on the \
                   request";
        refused(&create(cx, "elsewhere").await?, 400, "BadRequest", why)?;
        let why = "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is \
                   required";
        refused(&create(cx, "bare").await?, 422, "Invalid", why)?;
        let why = "ConfigMap \"long\" is invalid: []: Too long: may not be more than 1048576 bytes";
        refused(&create(cx, "long").await?, 422, "Invalid", why)?;
        let status = expect(&create(cx, "invalid").await?, 422)?;
        same("field", &status["details"]["causes"][0]["field"], json!("data[bad!key]"))
    })
    .await
}

/// Adds its mark to what those before it left.
fn marking(mark: &'static str) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |review| {
        let marks = text(review, "/request/object/data/marks");
        let value = format!("{marks}{mark}");
        patched(review, &json!([{ "op": "add", "path": "/data/marks", "value": value }]))
    }
}

async fn what_changes_an_object_is_asked_in_order_and_again_if_it_wants(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let again = Hook::start(&[], |review| {
            let marks = text(review, "/request/object/data/marks");
            // Content once somebody came after it.
            match marks.contains('c') {
                true => allowed(review),
                false => marking("a")(review),
            }
        })
        .await?;
        let once = Hook::start(&[], marking("b")).await?;
        let last = Hook::start(&[], marking("c")).await?;
        let mut hooks = [
            webhook(cx, "again", again.client_config("/")),
            webhook(cx, "once", once.client_config("/")),
        ];
        hooks[0]["reinvocationPolicy"] = json!("IfNeeded");
        // Made first, asked last: names decide.
        let last_hooks = [webhook(cx, "last", last.client_config("/"))];
        configure(cx, MUTATING, "-z", &last_hooks).await?;
        configure(cx, MUTATING, "-a", &hooks).await?;
        let created = expect(&create(cx, "marked").await?, 201)?;
        same("marks", &created["data"]["marks"], json!("abc"))?;
        let counts = [&again, &once, &last].map(|hook| seen(hook, "marked").len());
        same("calls", &json!(counts), json!([2, 1, 1]))?;
        let marks: Vec<Value> = seen(&again, "marked")
            .iter()
            .map(|request| request["object"]["data"]["marks"].clone())
            .collect();
        same("what was seen", &json!(marks), json!([null, "abc"]))
    })
    .await
}

async fn warnings_of_webhooks_reach_the_client(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| {
            let is_allowed = name_of(review) != "denied";
            answer(review, json!({ "allowed": is_allowed, "warnings": ["one", "two", "one"] }))
        })
        .await?;
        let hooks = [webhook(cx, "judge", hook.client_config("/"))];
        configure(cx, VALIDATING, "", &hooks).await?;
        for (name, code) in [("allowed", 201), ("denied", 400)] {
            let answer = create(cx, name).await?;
            expect(&answer, code)?;
            same(name, &json!(answer.warnings()), json!(["one", "two"]))?;
        }
        Ok(())
    })
    .await
}

async fn a_service_leads_to_its_webhook(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let host = format!("hook.{}.svc", cx.namespace);
        let hook =
            Hook::start(&[&host], |review| denial(review, json!({ "message": "here" }))).await?;
        let service = json!({
            "metadata": { "name": "hook" },
            "spec": { "type": "ExternalName", "externalName": "localhost" },
        });
        cx.create(&cx.core("services"), &service).await?;
        let service = |name: &str| {
            json!({
                "service": {
                    "namespace": cx.namespace, "name": name, "path": "/p", "port": hook.port(),
                },
                "caBundle": hook.ca_bundle(),
            })
        };
        let mut missing = webhook(cx, "missing", service("nothing"));
        missing["objectSelector"] = json!({ "matchLabels": { "case": "missing" } });
        let mut there = webhook(cx, "there", service("hook"));
        there["objectSelector"] = json!({ "matchExpressions": [
            { "key": "case", "operator": "DoesNotExist" },
            { "key": "probe", "operator": "DoesNotExist" },
        ] });
        configure(cx, VALIDATING, "", &[missing, there]).await?;
        let message = "admission webhook \"there.kubewright.dev\" denied the request: here";
        let is_denied = |answer: &Answer| {
            answer.json().is_ok_and(|status| text(&status, "/message") == message)
        };
        let request = Request::post(cx.core("configmaps"), &config_map("one"));
        // Upstream may not know the service yet.
        cx.endpoint.poll(&request, PATIENCE, is_denied).await?;
        let asked = hook.asked();
        let target = asked.first().map(|asked| asked.target.clone()).unwrap_or_default();
        same("target", &json!(target), json!("/p?timeout=10s"))?;

        let mut object = config_map("two");
        object["metadata"]["labels"] = json!({ "case": "missing" });
        let answer = cx.send(Request::post(cx.core("configmaps"), &object)).await?;
        let port = hook.port();
        let why = format!(
            "failed to call webhook: Post \"https://nothing.{}.svc:{port}/p?timeout=10s\": service \
             \"nothing\" not found",
            cx.namespace
        );
        unanswered(&answer, "missing", &why)
    })
    .await
}

async fn webhooks_are_counted(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| match name_of(review) {
            "denied" => denial(review, json!({ "code": 418 })),
            _ => allowed(review),
        })
        .await?;
        let name = cx.namespace.clone();
        let mut hooks = [
            webhook(cx, &name, hook.client_config("/")),
            webhook(cx, &format!("{name}-open"), json!({ "url": "https://127.0.0.1:1/" })),
        ];
        hooks[1]["failurePolicy"] = json!("Ignore");
        configure(cx, VALIDATING, "", &hooks).await?;
        expect(&create(cx, "allowed").await?, 201)?;
        expect(&create(cx, "denied").await?, 418)?;
        let name = format!("{name}.kubewright.dev");
        let open = format!("{}-open.kubewright.dev", cx.namespace);
        let prefix = "apiserver_admission_webhook";
        let lines = [
            format!(
                "{prefix}_request_total{{code=\"418\",name=\"{name}\",operation=\"CREATE\",\
                 rejected=\"true\",type=\"validating\"}} 1"
            ),
            format!(
                "{prefix}_rejection_count{{error_type=\"no_error\",name=\"{name}\",\
                 operation=\"CREATE\",rejection_code=\"418\",type=\"validating\"}} 1"
            ),
            format!(
                "{prefix}_admission_duration_seconds_bucket{{name=\"{name}\",operation=\"CREATE\",\
                 rejected=\"true\",type=\"validating\",le=\"25\"}} 1"
            ),
        ];
        cx.counted(&lines.each_ref().map(String::as_str)).await?;
        let opened = format!("{prefix}_fail_open_count{{name=\"{open}\",type=\"validating\"}} ");
        let page = cx.send(Request::get("/metrics")).await?;
        let page = String::from_utf8_lossy(&page.bytes).into_owned();
        ensure!(page.lines().any(|line| line.starts_with(&opened)), "no line {opened}");
        Ok(())
    })
    .await
}
