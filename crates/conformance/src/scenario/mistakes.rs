//! What is said of bodies that make no sense.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use super::{Context, config_map, expect, refused, same, scenarios};
use crate::endpoint::{Answer, Request};

scenarios! { "mistakes":
    a_version_that_is_no_number_is_told_in_gos_words [U2 W7],
    options_of_a_delete_must_be_options [U9 W7],
    what_is_applied_must_be_an_object [U4 W7],
    what_is_applied_is_judged_after_it_was_applied [U4 U6],
    a_json_patch_that_breaks_an_object_shows_it [U3 W7],
    events_are_refused_under_their_old_name [B3],
    finalizers_are_qualified_where_the_kind_asks_for_it [U2 B3],
}

/// An error that upstream passes on as it is: a 500 without a reason.
fn passed_on(answer: &Answer, message: &str) -> Result<()> {
    let status = expect(answer, 500)?;
    same("reason", &status["reason"], Value::Null)?;
    same("message", &status["message"], json!(message))
}

async fn a_version_that_is_no_number_is_told_in_gos_words(cx: Context) -> Result<()> {
    let mut map = cx.config_map("a").await?;
    let path = cx.core("configmaps/a");
    for (version, why) in [
        ("x", "invalid syntax"),
        ("-1", "invalid syntax"),
        ("99999999999999999999", "value out of range"),
    ] {
        map["metadata"]["resourceVersion"] = json!(version);
        let message = format!("strconv.ParseUint: parsing \"{version}\": {why}");
        passed_on(&cx.send(Request::put(path.as_str(), &map)).await?, &message)?;
        let patch = json!({ "metadata": { "resourceVersion": version } });
        passed_on(&cx.send(Request::merge_patch(path.as_str(), &patch)).await?, &message)?;
    }
    // Who creates may say what is no version, but not one.
    let mut map = config_map("b");
    map["metadata"]["resourceVersion"] = json!("5");
    let answer = cx.send(Request::post(cx.core("configmaps"), &map)).await?;
    passed_on(&answer, "resourceVersion should not be set on objects to be created")?;
    map["metadata"]["resourceVersion"] = json!("x");
    cx.create(&cx.core("configmaps"), &map).await.map(drop)
}

async fn options_of_a_delete_must_be_options(cx: Context) -> Result<()> {
    cx.config_map("a").await?;
    let scheme = "in scheme \"pkg/runtime/scheme.go:111\"";
    let unread = "couldn't get version/kind; json parse error";
    let shape = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    for (body, message) in [
        ("x", format!("{unread}: invalid character 'x' looking for beginning of value")),
        ("{", format!("{unread}: unexpected end of JSON input")),
        ("[]", format!("{unread}: json: cannot unmarshal array into Go value of type {shape}")),
        (
            r#"{"kind":"Pod","apiVersion":"v1"}"#,
            format!("no kind \"Pod\" is registered for version \"v1\" {scheme}"),
        ),
        (
            r#"{"kind":"Foo"}"#,
            format!("no kind \"Foo\" is registered for version \"meta.k8s.io/v1\" {scheme}"),
        ),
    ] {
        let request = Request::delete(cx.core("configmaps/a")).body(body);
        let answer = cx.send(request.content_type("application/json")).await?;
        refused(&answer, 400, "BadRequest", &message)?;
    }
    cx.get(&cx.core("configmaps/a")).await.map(drop)
}

fn apply(path: String, body: &str) -> Request {
    let request = Request::new(Method::PATCH, path).body(body);
    request.content_type("application/apply-patch+yaml")
}

async fn what_is_applied_must_be_an_object(cx: Context) -> Result<()> {
    for (body, found) in [("x", "string"), ("[]", "array"), ("1", "number"), ("true", "bool")] {
        let path = cx.core("configmaps/a?fieldManager=m");
        let message = format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot \
             unmarshal {found} into Go value of type map[string]interface {{}}"
        );
        refused(&cx.send(apply(path, body)).await?, 400, "BadRequest", &message)?;
    }
    Ok(())
}

async fn what_is_applied_is_judged_after_it_was_applied(cx: Context) -> Result<()> {
    let path = || cx.core("configmaps/a?fieldManager=m&fieldValidation=Strict");
    let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let answer = cx.send(apply(path(), &format!("{twice}foo: 1\nfoo: 2\n"))).await?;
    let message = "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .foo: field not \
                   declared in schema";
    passed_on(&answer, message)?;
    let answer = cx.send(apply(path(), &format!("{twice}data: {{}}\ndata: {{}}\n"))).await?;
    let message = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal \
                   errors:\n  line 5: key \"data\" already set in map";
    refused(&answer, 400, "BadRequest", message).map(drop)
}

async fn a_json_patch_that_breaks_an_object_shows_it(cx: Context) -> Result<()> {
    let object = json!({ "metadata": { "name": "a" }, "data": { "k": "v" } });
    cx.create(&cx.core("configmaps"), &object).await?;
    let patch = json!([{ "op": "replace", "path": "/data", "value": "x" }]);
    let answer = cx.send(Request::json_patch(cx.core("configmaps/a"), &patch)).await?;
    let status = expect(&answer, 422)?;
    let message = status["message"].as_str().unwrap_or_default();
    // What the patch went through is sorted, the rest is as it was.
    let begins = r#" "" is invalid: patch: Invalid value: "{\"apiVersion\":\"v1\",\"data\":\"x\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\","#;
    anyhow::ensure!(message.starts_with(begins), "{message}");
    Ok(())
}

async fn events_are_refused_under_their_old_name(cx: Context) -> Result<()> {
    let path = cx.apis("events.k8s.io/v1", "events");
    let answer = cx.send(Request::post(path, &json!({ "metadata": { "name": "e" } }))).await?;
    let status = expect(&answer, 422)?;
    same("details", &status["details"]["group"], Value::Null)?;
    same("details", &status["details"]["kind"], json!("Event"))
}

async fn finalizers_are_qualified_where_the_kind_asks_for_it(cx: Context) -> Result<()> {
    cx.config_map("a").await?;
    let patch = json!({ "metadata": { "finalizers": ["xy"] } });
    let answer = cx.send(Request::merge_patch(cx.core("configmaps/a"), &patch)).await?;
    let message = "ConfigMap \"a\" is invalid: metadata.finalizers[0]: Invalid value: \"xy\": name \
                   is neither a standard finalizer name nor is it fully qualified";
    refused(&answer, 422, "Invalid", message)?;
    // Kinds that other servers could have too are not so strict.
    let lease = json!({ "metadata": { "name": "l", "finalizers": ["xy"] }, "spec": {} });
    let leases = cx.apis("coordination.k8s.io/v1", "leases");
    cx.create(&leases, &lease).await?;
    let patch = json!({ "metadata": { "finalizers": ["xy", "zz"] } });
    let answer = cx.send(Request::merge_patch(format!("{leases}/l"), &patch)).await?;
    expect(&answer, 200)?;
    cx.release(&format!("{leases}/l")).await
}
