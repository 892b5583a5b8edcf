//! Admission webhooks: who is asked about what, and what comes of the answers.
//!
//! Webhooks are servers over TLS that a scenario starts; what they answer depends on the name of
//! the object. A configuration selects only the scenario's own namespace or objects.

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Context, PATIENCE, config_map, expect, pod, refused, same, scenarios, text};
use crate::endpoint::{Answer, Request};
use crate::hook::{Hook, Reply};

scenarios! { "webhooks", alone:
    a_denial_names_the_webhook [A2],
    an_answer_that_is_none_refuses_the_request [A2],
    an_answer_by_code_alone_is_told [A2],
    a_failing_webhook_is_passed_over_where_it_may_fail [A2],
    a_webhook_that_hangs_or_is_somebody_else_is_told [A2],
    a_webhook_changes_what_is_written [A2],
    a_change_that_cannot_be_is_told [A2],
    what_changes_an_object_is_asked_in_order_and_again_if_it_wants [A2],
    a_webhook_sees_the_whole_request [A2],
    what_is_below_objects_is_reviewed_too [A2],
    connections_are_reviewed_with_their_options [A2],
    each_object_of_a_collection_is_reviewed [A2],
    a_pod_that_goes_at_once_is_reviewed_going_and_gone [A2],
    objects_are_chosen_by_labels_old_or_new [A2],
    a_namespace_is_chosen_by_its_own_labels [A2],
    conditions_choose_before_anybody_is_asked [A2],
    an_equivalent_version_is_shown_as_the_rule_names_it [A2],
    a_custom_resource_is_shown_in_the_version_of_the_rule [A2],
    a_dry_run_is_reviewed_as_one [A2 U5],
    warnings_of_webhooks_reach_the_client [A2 W12],
    older_reviews_are_spoken_with_those_who_ask_for_them [A2],
    configurations_of_webhooks_are_not_reviewed [A2],
    a_service_leads_to_its_webhook [A2],
    webhooks_are_counted [A2],
}

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Plays a scenario, and removes the configurations it made: nobody could remove its objects if a
/// webhook were still asked that is gone.
async fn play(cx: &Context, scenario: impl AsyncFnOnce(&Context) -> Result<()>) -> Result<()> {
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
fn webhook(cx: &Context, name: &str, client_config: Value) -> Value {
    json!({
        "name": format!("{name}.kubewright.dev"),
        "clientConfig": client_config,
        "rules": [rule("", "v1", "configmaps")],
        "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": cx.namespace } },
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    })
}

fn rule(group: &str, version: &str, resource: &str) -> Value {
    json!({
        "operations": ["*"],
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [resource],
    })
}

/// Configures webhooks and waits until they are asked: one more, before them, denies what is
/// labelled so.
async fn configure(cx: &Context, collection: &str, suffix: &str, hooks: &[Value]) -> Result<()> {
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

fn allowed(review: &Value) -> Reply {
    answer(review, json!({ "allowed": true }))
}

fn denial(review: &Value, status: Value) -> Reply {
    answer(review, json!({ "allowed": false, "status": status }))
}

fn patched(review: &Value, patch: &Value) -> Reply {
    let patch = BASE64_STANDARD.encode(patch.to_string());
    answer(review, json!({ "allowed": true, "patch": patch, "patchType": "JSONPatch" }))
}

/// The name of the object that a review is about.
fn name_of(review: &Value) -> &str {
    let request = &review["request"];
    let names = ["/name", "/object/metadata/name", "/oldObject/metadata/name"];
    names.iter().map(|at| text(request, at)).find(|name| !name.is_empty()).unwrap_or_default()
}

/// The requests that a webhook saw about objects of this name, without what differs each time.
fn seen(hook: &Hook, name: &str) -> Vec<Value> {
    let asked = hook.asked().into_iter().map(|asked| asked.review["request"].clone());
    asked.filter(|request| name_of(&json!({ "request": request })) == name).collect()
}

async fn create(cx: &Context, name: &str) -> Result<Answer> {
    cx.send(Request::post(cx.core("configmaps"), &config_map(name))).await
}

/// The refusal of a request because a webhook gave no verdict.
fn unanswered(answer: &Answer, webhook: &str, why: &str) -> Result<()> {
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
    let raw = |text: &str| Reply {
        status: 200,
        media_type: "application/json",
        body: text.as_bytes().to_vec(),
    };
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
            Some(code) => Reply {
                status: code.parse().unwrap_or(500),
                media_type: "text/plain",
                body: b" boom\n".to_vec(),
            },
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

/// A request without what differs each time.
fn timeless(mut request: Value) -> Value {
    if let Some(request) = request.as_object_mut() {
        request.remove("uid");
        request.remove("userInfo");
    }
    for object in ["object", "oldObject"] {
        if let Some(metadata) = request
            .get_mut(object)
            .and_then(|o| o.get_mut("metadata"))
            .and_then(Value::as_object_mut)
        {
            for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
                metadata.remove(field);
            }
        }
    }
    request
}

async fn a_webhook_sees_the_whole_request(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], allowed).await?;
        let hooks = [webhook(cx, "judge", hook.client_config("/path"))];
        configure(cx, VALIDATING, "", &hooks).await?;
        expect(&create(cx, "seen").await?, 201)?;
        let path = cx.core("configmaps/seen");
        let change = json!({ "data": { "key": "other" } });
        let target = format!("{path}?fieldManager=me&fieldValidation=Strict");
        expect(&cx.send(Request::merge_patch(target, &change)).await?, 200)?;
        let delete = Request::delete(format!("{path}?gracePeriodSeconds=0&propagationPolicy=Background"));
        expect(&cx.send(delete).await?, 200)?;

        let object = |value: &str| {
            json!({
                "kind": "ConfigMap", "apiVersion": "v1",
                "metadata": { "name": "seen", "namespace": cx.namespace },
                "data": { "key": value },
            })
        };
        let kind = json!({ "group": "", "version": "v1", "kind": "ConfigMap" });
        let resource = json!({ "group": "", "version": "v1", "resource": "configmaps" });
        let review = |operation: &str, object: Value, old: Value, options: Value| {
            let mut options = options;
            options["apiVersion"] = json!("meta.k8s.io/v1");
            json!({
                "kind": kind, "resource": resource, "requestKind": kind,
                "requestResource": resource, "name": "seen", "namespace": cx.namespace,
                "operation": operation, "object": object, "oldObject": old, "dryRun": false,
                "options": options,
            })
        };
        let expected = [
            review("CREATE", object("value"), Value::Null, json!({ "kind": "CreateOptions" })),
            review(
                "UPDATE",
                object("other"),
                object("value"),
                json!({ "kind": "UpdateOptions", "fieldManager": "me", "fieldValidation": "Strict" }),
            ),
            review(
                "DELETE",
                Value::Null,
                object("other"),
                json!({
                    "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                    "propagationPolicy": "Background",
                }),
            ),
        ];
        let found: Vec<Value> = seen(&hook, "seen").into_iter().map(timeless).collect();
        for (found, expected) in found.iter().zip(expected) {
            same("request", found, expected)?;
        }
        same("reviews", &json!(found.len()), json!(3))?;
        let asked = hook.asked();
        let asked = asked.first().context("nobody asked")?;
        same("target", &json!(asked.target), json!("/path?timeout=10s"))?;
        let groups = asked.review["request"]["userInfo"]["groups"].to_string();
        ensure!(groups.contains("system:authenticated"), "{groups}");
        let header = |name: &str| {
            asked.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
        };
        same("agent", &json!(header("user-agent")), json!("kube-apiserver-admission"))?;
        same("accepted", &json!(header("accept")), json!("application/json, */*"))
    })
    .await
}

/// The account of pods, which a server without controllers does not make.
async fn account(cx: &Context) -> Result<()> {
    let account = json!({ "metadata": { "name": "default" } });
    let answer = cx.send(Request::post(cx.core("serviceaccounts"), &account)).await?;
    ensure!(matches!(answer.status, 201 | 409), "{answer}");
    Ok(())
}

/// What a review is about: the operation, the kind, the resource and what is below it, the name.
fn subject(request: &Value) -> String {
    let text = |at: &str| text(request, at).to_owned();
    let group = text("/kind/group");
    let version = text("/kind/version");
    let kind = match group.is_empty() {
        true => format!("{version}/{}", text("/kind/kind")),
        false => format!("{group}/{version}/{}", text("/kind/kind")),
    };
    format!(
        "{} {kind} {}/{} {}",
        text("/operation"),
        text("/resource/resource"),
        text("/subResource"),
        text("/name")
    )
}

/// A webhook that is asked about everything in our namespace, and about whatever is below.
async fn configure_all(cx: &Context, hook: &Hook) -> Result<()> {
    let mut all = webhook(cx, "judge", hook.client_config("/"));
    all["rules"] = json!([rule("*", "*", "*/*")]);
    configure(cx, VALIDATING, "", &[all]).await
}

/// The last review about something below objects, of which the webhook has seen it all.
fn last_below(hook: &Hook, resource: &str, part: &str) -> Result<Value> {
    let asked = hook.asked().into_iter().map(|asked| asked.review["request"].clone());
    let mut about = asked.filter(|request| {
        text(request, "/resource/resource") == resource && text(request, "/subResource") == part
    });
    about.next_back().with_context(|| format!("no review of {resource}/{part}"))
}

async fn what_is_below_objects_is_reviewed_too(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        account(cx).await?;
        cx.create(&cx.core("pods"), &pod("web")).await?;
        let template = json!({
            "metadata": { "labels": { "a": "b" } },
            "spec": { "containers": [{ "name": "main", "image": "example.com/image" }] },
        });
        let workload = json!({
            "metadata": { "name": "web" },
            "spec": {
                "replicas": 0, "selector": { "matchLabels": { "a": "b" } }, "template": template,
            },
        });
        cx.create(&cx.apis("apps/v1", "replicasets"), &workload).await?;
        let hook = Hook::start(&[], allowed).await?;
        configure_all(cx, &hook).await?;

        let status = json!({ "status": { "message": "x" } });
        expect(&cx.send(Request::merge_patch(cx.core("pods/web/status"), &status)).await?, 200)?;
        let seen = last_below(&hook, "pods", "status")?;
        same("status", &json!(subject(&seen)), json!("UPDATE v1/Pod pods/status web"))?;
        same("message", &seen["object"]["status"]["message"], json!("x"))?;

        let scale = json!({ "spec": { "replicas": 0 }, "metadata": { "name": "web" } });
        let target = cx.apis("apps/v1", "replicasets/web/scale");
        expect(&cx.send(Request::put(&target, &scale)).await?, 200)?;
        let seen = last_below(&hook, "replicasets", "scale")?;
        let about = "UPDATE autoscaling/v1/Scale replicasets/scale web";
        same("scale", &json!(subject(&seen)), json!(about))?;
        same("kind", &seen["object"]["kind"], json!("Scale"))?;
        same("old kind", &seen["oldObject"]["kind"], json!("Scale"))?;
        same("selector", &seen["oldObject"]["status"]["selector"], json!("a=b"))?;

        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "web" },
            "target": { "name": "node" },
        });
        let target = cx.core("pods/web/binding?dryRun=All");
        expect(&cx.send(Request::post(target, &binding)).await?, 201)?;
        let seen = last_below(&hook, "pods", "binding")?;
        same("binding", &json!(subject(&seen)), json!("CREATE v1/Binding pods/binding web"))?;
        same("dry run", &seen["dryRun"], json!(true))?;
        same("target", &seen["object"]["target"]["name"], json!("node"))?;

        let request = json!({ "spec": { "audiences": ["x"] } });
        let target = cx.core("serviceaccounts/default/token");
        expect(&cx.send(Request::post(target, &request)).await?, 201)?;
        let seen = last_below(&hook, "serviceaccounts", "token")?;
        let about = "CREATE authentication.k8s.io/v1/TokenRequest serviceaccounts/token default";
        same("token", &json!(subject(&seen)), json!(about))?;
        same("token name", &seen["object"]["metadata"]["name"], json!("default"))?;
        same("seconds", &seen["object"]["spec"]["expirationSeconds"], json!(3600))?;
        same("token", &seen["object"]["status"]["token"], json!(""))?;

        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "web" },
        });
        let target = cx.core("pods/web/eviction");
        expect(&cx.send(Request::post(target, &eviction)).await?, 201)?;
        let seen = last_below(&hook, "pods", "eviction")?;
        let about = "CREATE policy/v1/Eviction pods/eviction web";
        same("eviction", &json!(subject(&seen)), json!(about))?;
        // What an eviction does is not asked about again.
        let deletes = hook.asked().into_iter().filter(|asked| {
            let request = &asked.review["request"];
            request["operation"] == "DELETE" && name_of(&asked.review) == "web"
        });
        same("deletes", &json!(deletes.count()), json!(0))
    })
    .await
}

async fn connections_are_reviewed_with_their_options(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        account(cx).await?;
        cx.create(&cx.core("pods"), &pod("web")).await?;
        let hook = Hook::start(&[], |review| {
            let command = &review["request"]["object"]["command"];
            match *command == json!(["rm"]) {
                true => denial(review, json!({ "message": "no rm" })),
                false => allowed(review),
            }
        })
        .await?;
        configure_all(cx, &hook).await?;
        let cases = [
            (
                "exec?command=ls&command=-l&stdout=true&container=main",
                "exec",
                json!({
                    "kind": "PodExecOptions", "apiVersion": "v1", "stdout": true,
                    "container": "main", "command": ["ls", "-l"],
                }),
            ),
            (
                "attach?stdin=true",
                "attach",
                json!({ "kind": "PodAttachOptions", "apiVersion": "v1", "stdin": true }),
            ),
            (
                "portforward?ports=80",
                "portforward",
                json!({ "kind": "PodPortForwardOptions", "apiVersion": "v1", "ports": [80] }),
            ),
            (
                "proxy/a/b?x=y",
                "proxy",
                json!({ "kind": "PodProxyOptions", "apiVersion": "v1", "path": "/a/b" }),
            ),
        ];
        for (target, part, options) in cases {
            // Nobody is there to connect to.
            let request = Request::post(cx.core(&format!("pods/web/{target}")), &json!({}));
            let answer = cx.send(request).await?;
            ensure!(answer.status >= 400, "{answer}");
            let seen = last_below(&hook, "pods", part)?;
            same("operation", &seen["operation"], json!("CONNECT"))?;
            same(part, &seen["object"], options.clone())?;
            same("kind", &seen["kind"]["kind"], options["kind"].clone())?;
            same("options", &seen["options"], Value::Null)?;
            same("old", &seen["oldObject"], Value::Null)?;
        }
        let denied = Request::post(cx.core("pods/web/exec?command=rm"), &json!({}));
        let status = expect(&cx.send(denied).await?, 400)?;
        let message = "admission webhook \"judge.kubewright.dev\" denied the request: no rm";
        same("message", &status["message"], json!(message))?;
        let dry = Request::post(cx.core("pods/web/exec?command=ls&dryRun=All"), &json!({}));
        refused(&cx.send(dry).await?, 400, "BadRequest", "dryRun is not supported")?;
        Ok(())
    })
    .await
}

async fn each_object_of_a_collection_is_reviewed(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| match name_of(review) {
            "kept" if review["request"]["operation"] == "DELETE" => {
                denial(review, json!({ "message": "it stays" }))
            }
            _ => allowed(review),
        })
        .await?;
        let hooks = [webhook(cx, "judge", hook.client_config("/"))];
        configure(cx, VALIDATING, "", &hooks).await?;
        for name in ["gone", "kept"] {
            let mut object = config_map(name);
            object["metadata"]["labels"] = json!({ "many": "yes" });
            cx.create(&cx.core("configmaps"), &object).await?;
        }
        let delete = |only: &str| {
            let target = format!("configmaps?labelSelector=many{only}");
            Request::delete(cx.core(&target))
        };
        let status = expect(&cx.send(delete("%3Dyes")).await?, 400)?;
        let message = "admission webhook \"judge.kubewright.dev\" denied the request: it stays";
        same("message", &status["message"], json!(message))?;
        let deletes =
            seen(&hook, "kept").into_iter().filter(|request| request["operation"] == "DELETE");
        let deletes: Vec<Value> = deletes.collect();
        ensure!(!deletes.is_empty(), "nobody asked about the object that stays");
        // The request names none of them.
        same("name", &deletes[0]["name"], Value::Null)?;
        same("old", &deletes[0]["oldObject"]["metadata"]["name"], json!("kept"))?;
        expect(&cx.send(Request::get(cx.core("configmaps/kept"))).await?, 200)?;
        Ok(())
    })
    .await
}

async fn a_pod_that_goes_at_once_is_reviewed_going_and_gone(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        account(cx).await?;
        let mut web = pod("web");
        web["spec"]["nodeName"] = json!("nowhere");
        cx.create(&cx.core("pods"), &web).await?;
        let hook = Hook::start(&[], allowed).await?;
        let mut judge = webhook(cx, "judge", hook.client_config("/"));
        judge["rules"] = json!([rule("", "v1", "pods")]);
        configure(cx, VALIDATING, "", &[judge]).await?;
        let target = cx.core("pods/web?gracePeriodSeconds=0");
        expect(&cx.send(Request::delete(target)).await?, 200)?;
        let is_marked =
            |request: &Value| !text(request, "/oldObject/metadata/deletionTimestamp").is_empty();
        let mut marks: Vec<bool> = seen(&hook, "web").iter().map(is_marked).collect();
        // A server whose copy of the pod was an old one asks again about the new one.
        marks.dedup();
        same("marked", &json!(marks), json!([false, true]))
    })
    .await
}

async fn objects_are_chosen_by_labels_old_or_new(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], allowed).await?;
        let mut chosen = webhook(cx, "judge", hook.client_config("/"));
        chosen["objectSelector"] = json!({ "matchLabels": { "chosen": "yes" } });
        configure(cx, VALIDATING, "", &[chosen]).await?;
        expect(&create(cx, "one").await?, 201)?;
        same("unlabelled", &json!(seen(&hook, "one").len()), json!(0))?;
        let path = cx.core("configmaps/one");
        let label = |value: Value| json!({ "metadata": { "labels": { "chosen": value } } });
        for value in ["yes", "no", "never"] {
            expect(&cx.send(Request::merge_patch(&path, &label(json!(value)))).await?, 200)?;
        }
        let labels = |at: &str| {
            let chosen = |request: &Value| {
                text(request, &format!("/{at}/metadata/labels/chosen")).to_owned()
            };
            seen(&hook, "one").iter().map(chosen).collect::<Vec<_>>()
        };
        let pairs: Vec<(String, String)> =
            labels("oldObject").into_iter().zip(labels("object")).collect();
        for (old, new, is_asked) in [("", "yes", true), ("yes", "no", true), ("no", "never", false)]
        {
            let found = pairs.contains(&(old.to_owned(), new.to_owned()));
            same(&format!("from {old:?} to {new:?}"), &json!(found), json!(is_asked))?;
        }
        Ok(())
    })
    .await
}

async fn a_namespace_is_chosen_by_its_own_labels(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let name = format!("{}-other", cx.namespace);
        let hook = Hook::start(&[], |review| {
            denial(review, json!({ "message": text(review, "/request/namespace") }))
        })
        .await?;
        let mut chosen = webhook(cx, "judge", hook.client_config("/"));
        chosen["rules"] = json!([rule("", "v1", "namespaces")]);
        chosen["rules"][0]["operations"] = json!(["CREATE"]);
        chosen["rules"][0]["scope"] = json!("Cluster");
        chosen["namespaceSelector"] = json!({ "matchLabels": { "chosen": cx.namespace } });
        configure(cx, VALIDATING, "", &[chosen]).await?;
        let mut namespace = json!({ "metadata": { "name": name } });
        let target = "/api/v1/namespaces?dryRun=All";
        expect(&cx.send(Request::post(target, &namespace)).await?, 201)?;
        namespace["metadata"]["labels"] = json!({ "chosen": cx.namespace });
        let status = expect(&cx.send(Request::post(target, &namespace)).await?, 400)?;
        let message =
            format!("admission webhook \"judge.kubewright.dev\" denied the request: {name}");
        same("message", &status["message"], json!(message))
    })
    .await
}

async fn conditions_choose_before_anybody_is_asked(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| denial(review, json!({ "message": "asked" }))).await?;
        let condition = |expression: &str| json!([{ "name": "c", "expression": expression }]);
        let mut chosen = webhook(cx, "chosen", hook.client_config("/"));
        chosen["matchConditions"] = condition(
            "request.operation == 'CREATE' && object.metadata.name == 'chosen' && \
             authorizer.requestResource.check('create').allowed()",
        );
        let mut failing = webhook(cx, "failing", hook.client_config("/"));
        failing["matchConditions"] =
            condition("object.metadata.name == 'failing' && object.data.missing == 'x'");
        let mut ignored = failing.clone();
        ignored["name"] = json!("ignored.kubewright.dev");
        ignored["failurePolicy"] = json!("Ignore");
        configure(cx, VALIDATING, "", &[chosen, ignored, failing]).await?;
        expect(&create(cx, "other").await?, 201)?;
        let status = expect(&create(cx, "chosen").await?, 400)?;
        let message = "admission webhook \"chosen.kubewright.dev\" denied the request: asked";
        same("message", &status["message"], json!(message))?;
        let message = "configmaps \"failing\" is forbidden: expression 'object.metadata.name == \
                       'failing' && object.data.missing == 'x'' resulted in error: no such key: \
                       missing";
        refused(&create(cx, "failing").await?, 403, "Forbidden", message)?;
        same("asked", &json!(seen(&hook, "failing").len()), json!(0))
    })
    .await
}

async fn an_equivalent_version_is_shown_as_the_rule_names_it(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| {
            patched(review, &json!([{ "op": "replace", "path": "/spec/maxReplicas", "value": 7 }]))
        })
        .await?;
        let exact = Hook::start(&[], allowed).await?;
        let mut hooks = [
            webhook(cx, "changer", hook.client_config("/")),
            webhook(cx, "exact", exact.client_config("/")),
        ];
        for hook in &mut hooks {
            hook["rules"] = json!([rule("autoscaling", "v2", "horizontalpodautoscalers")]);
        }
        hooks[1]["matchPolicy"] = json!("Exact");
        configure(cx, MUTATING, "", &hooks).await?;
        let scaler = json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": { "name": "web" },
            "spec": {
                "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
                "scaleTargetRef": { "kind": "Deployment", "name": "web", "apiVersion": "apps/v1" },
            },
        });
        let collection = cx.apis("autoscaling/v1", "horizontalpodautoscalers");
        let created = cx.create(&collection, &scaler).await?;
        same("version", &created["apiVersion"], json!("autoscaling/v1"))?;
        same("most", &created["spec"]["maxReplicas"], json!(7))?;
        same("percentage", &created["spec"]["targetCPUUtilizationPercentage"], json!(50))?;
        let asked = seen(&hook, "web");
        let request = asked.first().context("nobody asked")?;
        same("kind", &request["kind"]["version"], json!("v2"))?;
        same("resource", &request["resource"]["version"], json!("v2"))?;
        same("request", &request["requestKind"]["version"], json!("v1"))?;
        same("object", &request["object"]["apiVersion"], json!("autoscaling/v2"))?;
        let metric = &request["object"]["spec"]["metrics"][0]["resource"]["target"];
        same("metric", &metric["averageUtilization"], json!(50))?;
        same("exact", &json!(seen(&exact, "web").len()), json!(0))
    })
    .await
}

async fn a_custom_resource_is_shown_in_the_version_of_the_rule(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let schema = json!({
            "type": "object",
            "properties": { "spec": {
                "type": "object",
                "properties": {
                    "size": { "type": "integer" },
                    "color": { "type": "string", "default": "blue" },
                },
            }},
        });
        let mut definition = cx.widgets(schema.clone());
        definition["spec"]["versions"] = json!([
            { "name": "v1", "served": true, "storage": true,
              "schema": { "openAPIV3Schema": schema } },
            { "name": "v2", "served": true, "storage": false,
              "schema": { "openAPIV3Schema": schema } },
        ]);
        cx.define(&definition).await?;
        let hook = Hook::start(&[], |review| {
            patched(
                review,
                &json!([
                    { "op": "replace", "path": "/spec", "value": { "size": 2, "unknown": true } },
                    { "op": "add", "path": "/metadata/labels", "value": { "patched": "yes" } },
                ]),
            )
        })
        .await?;
        let mut changer = webhook(cx, "changer", hook.client_config("/"));
        changer["rules"] = json!([rule(&cx.group(), "v2", "widgets")]);
        configure(cx, MUTATING, "", &[changer]).await?;
        let widget = cx.widget("one", json!({ "size": 1, "color": "red" }));
        let created = cx.create(&cx.widget_path(), &widget).await?;
        // What is unknown is dropped, and what was dropped gets its default.
        same("spec", &created["spec"], json!({ "color": "blue", "size": 2 }))?;
        same("labels", &created["metadata"]["labels"], json!({ "patched": "yes" }))?;
        let asked = seen(&hook, "one");
        let request = asked.first().context("nobody asked")?;
        let version = format!("{}/v2", cx.group());
        same("object", &request["object"]["apiVersion"], json!(version))?;
        same("request", &request["requestKind"]["version"], json!("v1"))
    })
    .await
}

async fn a_dry_run_is_reviewed_as_one(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| {
            patched(review, &json!([{ "op": "add", "path": "/data/more", "value": "x" }]))
        })
        .await?;
        let hooks = [webhook(cx, "changer", hook.client_config("/"))];
        configure(cx, MUTATING, "", &hooks).await?;
        let dry = Request::post(cx.core("configmaps?dryRun=All"), &config_map("dry"));
        let created = expect(&cx.send(dry).await?, 201)?;
        same("more", &created["data"]["more"], json!("x"))?;
        let asked = seen(&hook, "dry");
        let request = asked.first().context("nobody asked")?;
        same("dry run", &request["dryRun"], json!(true))?;
        same("options", &request["options"]["dryRun"], json!(["All"]))?;
        expect(&cx.send(Request::get(cx.core("configmaps/dry"))).await?, 404)?;
        Ok(())
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

async fn older_reviews_are_spoken_with_those_who_ask_for_them(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| {
            let patch = BASE64_STANDARD.encode(r#"[{"op":"add","path":"/data/more","value":"x"}]"#);
            // Neither the uid nor the language of the patch was asked for then.
            Reply::json(&json!({
                "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
                "response": { "allowed": true, "patch": patch },
            }))
        })
        .await?;
        let mut older = webhook(cx, "older", hook.client_config("/"));
        older["admissionReviewVersions"] = json!(["v2", "v1beta1", "v1"]);
        configure(cx, MUTATING, "", &[older]).await?;
        let created = expect(&create(cx, "one").await?, 201)?;
        same("more", &created["data"]["more"], json!("x"))?;
        let asked = hook.asked();
        let asked = asked.first().context("nobody asked")?;
        same("version", &asked.review["apiVersion"], json!("admission.k8s.io/v1beta1"))
    })
    .await
}

async fn configurations_of_webhooks_are_not_reviewed(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| denial(review, json!({}))).await?;
        let mut denying = webhook(cx, "denying", hook.client_config("/"));
        let mark = json!({ "matchLabels": { "of": cx.namespace } });
        denying["rules"] = json!([rule("*", "*", "*/*")]);
        denying["objectSelector"] = mark;
        denying["namespaceSelector"] = json!({});
        configure(cx, VALIDATING, "", &[denying]).await?;
        let labels = json!({ "of": cx.namespace });
        let name = format!("{}-more", cx.namespace);
        let metadata = json!({ "name": name, "labels": labels });
        for collection in [MUTATING, VALIDATING] {
            let target = format!("{collection}?dryRun=All");
            cx.create(&target, &json!({ "metadata": metadata, "webhooks": [] })).await?;
        }
        let class = json!({
            "metadata": metadata, "value": 1,
        });
        let classes = "/apis/scheduling.k8s.io/v1/priorityclasses?dryRun=All";
        let status = expect(&cx.send(Request::post(classes, &class)).await?, 400)?;
        let told = text(&status, "/message");
        ensure!(told.contains("denying.kubewright.dev"), "{told}");
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
        let page = cx.send(Request::get("/metrics")).await?;
        let page = String::from_utf8_lossy(&page.bytes).into_owned();
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
        for line in lines {
            if !page.lines().any(|found| found == line) {
                bail!("no line {line}");
            }
        }
        let opened = format!("{prefix}_fail_open_count{{name=\"{open}\",type=\"validating\"}} ");
        ensure!(page.lines().any(|line| line.starts_with(&opened)), "no line {opened}");
        Ok(())
    })
    .await
}
