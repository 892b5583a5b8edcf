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
    a_patch_is_read_when_there_is_something_to_patch [U3 W7],
    a_uid_is_expected_of_what_an_update_would_create [U2],
    yaml_may_look_like_json [U1 W7],
    what_is_wrong_with_yaml_is_told_in_libyamls_words [U1 W7],
    a_query_with_a_semicolon_is_passed_over [R2],
    component_statuses_are_not_watched [R5],
    what_a_patch_adds_and_nobody_knows_is_told_in_order [U3 U6],
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

async fn a_patch_is_read_when_there_is_something_to_patch(cx: Context) -> Result<()> {
    let patch = |path: String, media_type: &str| {
        Request::new(Method::PATCH, path).body("{").content_type(media_type)
    };
    for media_type in [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ] {
        let answer = cx.send(patch(cx.core("configmaps/absent"), media_type)).await?;
        refused(&answer, 404, "NotFound", "configmaps \"absent\" not found")?;
    }
    // An apply would create it; a part of it would not be created.
    let applied = "application/apply-patch+yaml";
    let answer = cx.send(patch(cx.core("configmaps/absent?fieldManager=m"), applied)).await?;
    expect(&answer, 400)?;
    let answer = cx.send(patch(cx.core("pods/absent/status?fieldManager=m"), applied)).await?;
    refused(&answer, 404, "NotFound", "pods \"absent\" not found").map(drop)
}

async fn a_uid_is_expected_of_what_an_update_would_create(cx: Context) -> Result<()> {
    let lease = json!({ "metadata": { "name": "l", "uid": "abc" }, "spec": {} });
    let path = cx.apis("coordination.k8s.io/v1", "leases/l");
    let status = cx.send(Request::put(path, &lease)).await?;
    let status = expect(&status, 409)?;
    let message = status["message"].as_str().unwrap_or_default();
    let why = "Precondition failed: UID in precondition: abc, UID in object meta: ";
    anyhow::ensure!(message.ends_with(why), "{message}");
    same("reason", &status["reason"], json!("Conflict"))
}

fn yaml(path: String, body: &str) -> Request {
    Request::new(Method::POST, path).body(body).content_type("application/yaml")
}

async fn yaml_may_look_like_json(cx: Context) -> Result<()> {
    let body = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v,},}";
    let answer = cx.send(yaml(cx.core("configmaps"), body)).await?;
    same("data", &expect(&answer, 201)?["data"], json!({ "k": "v" }))
}

async fn what_is_wrong_with_yaml_is_told_in_libyamls_words(cx: Context) -> Result<()> {
    for (body, why) in [
        ("a: [", "line 1: did not find expected node content"),
        ("metadata: {name: x", "line 1: did not find expected ',' or '}'"),
        ("a: [b, c}", "did not find expected ',' or ']'"),
        ("a: 'b", "found unexpected end of stream"),
        ("a: b: c", "mapping values are not allowed in this context"),
        ("a:\n\tb: c", "line 2: found character that cannot start any token"),
        ("a: @b", "found character that cannot start any token"),
        ("kind: x\nmetadata:\n  name: x\n data: y", "line 3: did not find expected key"),
        ("- a\nb: c", "line 1: did not find expected '-' indicator"),
        ("a: \"\\q\"", "found unknown escape character"),
    ] {
        let answer = cx.send(yaml(cx.core("configmaps"), body)).await?;
        let status = expect(&answer, 400)?;
        let message = status["message"].as_str().unwrap_or_default();
        let unread = "the object provided is unrecognized (must be of type ConfigMap): yaml: ";
        let begins = format!("{unread}{why} (");
        anyhow::ensure!(message.starts_with(&begins), "{body:?}: {message}");
    }
    Ok(())
}

async fn a_query_with_a_semicolon_is_passed_over(cx: Context) -> Result<()> {
    for name in ["a", "b"] {
        cx.config_map(name).await?;
    }
    let path = cx.core("configmaps?limit=x;y&fieldSelector=metadata.name%3Da");
    let list = cx.get(&path).await?;
    same("items", &json!(list["items"].as_array().map(Vec::len)), json!(1))
}

async fn component_statuses_are_not_watched(cx: Context) -> Result<()> {
    let answer = cx.send(Request::get("/api/v1/componentstatuses?watch=true")).await?;
    let message = "watch is not supported on resources of kind \"componentstatuses\"";
    refused(&answer, 405, "MethodNotAllowed", message).map(drop)
}

async fn what_a_patch_adds_and_nobody_knows_is_told_in_order(cx: Context) -> Result<()> {
    cx.config_map("a").await?;
    let path = || cx.core("configmaps/a?fieldValidation=Strict");
    let merge = json!({ "metadata": { "odd": 1 }, "even": 2, "odd": 3 });
    let steps = json!([
        { "op": "add", "path": "/odd", "value": 1 },
        { "op": "add", "path": "/metadata/odd", "value": 1 },
        { "op": "add", "path": "/even", "value": 1 },
    ]);
    for patch in [Request::merge_patch(path(), &merge), Request::json_patch(path(), &steps)] {
        let answer = cx.send(patch).await?;
        let status = expect(&answer, 422)?;
        let message = status["message"].as_str().unwrap_or_default();
        let ends = "strict decoding error: unknown field \"even\", unknown field \
                    \"metadata.odd\", unknown field \"odd\"";
        anyhow::ensure!(message.ends_with(ends), "{message}");
    }
    Ok(())
}
