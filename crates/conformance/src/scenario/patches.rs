//! JSON, merge and strategic merge patches as the server takes them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::writes::MODIFIED;
use super::{Context, any_schema, expect, refused, revision, same, scenarios};
use crate::endpoint::Request;

scenarios! { "patches":
    a_json_patch_edits_by_path [U3],
    a_json_patch_that_does_not_fit_is_refused [U3],
    a_json_patch_may_replace_what_is_absent [U3],
    a_json_patch_has_a_bounded_number_of_operations [U3],
    a_json_patch_copies_only_so_much [U3],
    a_merge_patch_sets_and_removes [U3],
    a_patch_of_the_wrong_shape_is_a_bad_request [U3],
    a_patch_with_an_old_version_conflicts [U3],
    a_patch_without_version_is_tried_again [U3],
    a_patch_cannot_rename [U3],
    a_patch_cannot_make_something_else [U3],
    a_patch_of_nothing_is_not_found [U3],
    a_strategic_patch_merges_lists_by_key [U3],
    a_strategic_patch_follows_directives [U3],
    a_strategic_patch_may_keep_only_some_keys [U3],
    a_custom_resource_has_no_strategic_patch [U3],
}

async fn a_json_patch_edits_by_path(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let patch = json!([
        { "op": "test", "path": "/data/key", "value": "value" },
        { "op": "add", "path": "/data/a~1b", "value": "slash" },
        { "op": "copy", "from": "/data/key", "path": "/data/copied" },
        { "op": "move", "from": "/data/key", "path": "/data/moved" },
        { "op": "replace", "path": "/data/moved", "value": "replaced" },
    ]);
    // A data key cannot hold a slash: the patch is applied, the object is invalid.
    let answer = cx.send(Request::json_patch(cx.core("configmaps/one"), &patch)).await?;
    let status = expect(&answer, 422)?;
    same("field", &status["details"]["causes"][0]["field"], json!("data[a/b]"))?;
    let patch: Value = patch
        .as_array()
        .into_iter()
        .flatten()
        .filter(|op| op["value"] != "slash")
        .cloned()
        .collect();
    let answer = cx.send(Request::json_patch(cx.core("configmaps/one"), &patch)).await?;
    let data = json!({ "copied": "value", "moved": "replaced" });
    same("data", &expect(&answer, 200)?["data"], data)
}

async fn a_json_patch_that_does_not_fit_is_refused(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    for patch in [
        json!([{ "op": "test", "path": "/data/key", "value": "other" }]),
        json!([{ "op": "remove", "path": "/data/absent" }]),
        json!([{ "op": "move", "from": "/data/absent", "path": "/data/other" }]),
    ] {
        let answer = cx.send(Request::json_patch(cx.core("configmaps/one"), &patch)).await?;
        let message = "the server rejected our request due to an error in our request";
        refused(&answer, 422, "Invalid", message)?;
    }
    Ok(())
}

async fn a_json_patch_may_replace_what_is_absent(cx: Context) -> Result<()> {
    // RFC 6902 says otherwise; clients have come to rely on what upstream does.
    cx.config_map("one").await?;
    let patch = json!([{ "op": "replace", "path": "/data/absent", "value": "x" }]);
    let answer = cx.send(Request::json_patch(cx.core("configmaps/one"), &patch)).await?;
    same("data", &expect(&answer, 200)?["data"], json!({ "absent": "x", "key": "value" }))
}

async fn a_json_patch_has_a_bounded_number_of_operations(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let operation = json!({ "op": "test", "path": "/data/key", "value": "value" });
    let patch = Value::from(vec![operation.clone(); 10_001]);
    let answer = cx.send(Request::json_patch(cx.core("configmaps/one"), &patch)).await?;
    let message = "Request entity too large: The allowed maximum operations in a JSON patch is \
                   10000, got 10001";
    refused(&answer, 413, "RequestEntityTooLarge", message)?;
    let patch = Value::from(vec![operation; 10_000]);
    let answer = cx.send(Request::json_patch(cx.core("configmaps/one"), &patch)).await?;
    expect(&answer, 200)?;
    Ok(())
}

async fn a_json_patch_copies_only_so_much(cx: Context) -> Result<()> {
    let data = json!({ "a": "x".repeat(200_000) });
    cx.create(&cx.core("configmaps"), &json!({ "metadata": { "name": "one" }, "data": data }))
        .await?;
    let copies: Value = (0..20)
        .map(|copy| json!({ "op": "copy", "from": "/data/a", "path": format!("/data/{copy}") }))
        .collect();
    let answer = cx.send(Request::json_patch(cx.core("configmaps/one"), &copies)).await?;
    let message = "the server rejected our request due to an error in our request";
    refused(&answer, 422, "Invalid", message)?;
    Ok(())
}

async fn a_merge_patch_sets_and_removes(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let patch =
        json!({ "data": { "key": null, "new": "data" }, "metadata": { "labels": { "a": "b" } } });
    let answer = cx.send(Request::merge_patch(cx.core("configmaps/one"), &patch)).await?;
    let patched = expect(&answer, 200)?;
    same("data", &patched["data"], json!({ "new": "data" }))?;
    same("labels", &patched["metadata"]["labels"], json!({ "a": "b" }))
}

async fn a_patch_of_the_wrong_shape_is_a_bad_request(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let answer = cx.send(Request::merge_patch(cx.core("configmaps/one"), &json!([1]))).await?;
    let message = "error decoding patch: json: cannot unmarshal array into Go value of type \
                   map[string]interface {}";
    refused(&answer, 400, "BadRequest", message)?;
    let answer = cx.send(Request::json_patch(cx.core("configmaps/one"), &json!({}))).await?;
    let message = "error decoding patch: json: cannot unmarshal object into Go value of type \
                   []handlers.jsonPatchOp";
    refused(&answer, 400, "BadRequest", message)?;
    Ok(())
}

async fn a_patch_with_an_old_version_conflicts(cx: Context) -> Result<()> {
    let old = cx.config_map("one").await?;
    let change = |value: &str, version: u64| json!({ "metadata": { "resourceVersion": version.to_string() }, "data": { "key": value } });
    let patch = change("new", revision(&old)?);
    expect(&cx.send(Request::merge_patch(cx.core("configmaps/one"), &patch)).await?, 200)?;
    let patch = change("newer", revision(&old)?);
    let answer = cx.send(Request::merge_patch(cx.core("configmaps/one"), &patch)).await?;
    let message = format!("Operation cannot be fulfilled on configmaps \"one\": {MODIFIED}");
    refused(&answer, 409, "Conflict", &message)?;
    Ok(())
}

async fn a_patch_without_version_is_tried_again(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let writers = (0..8).map(|writer| {
        let patch = json!({ "data": { format!("writer-{writer}"): "was here" } });
        cx.send(Request::merge_patch(cx.core("configmaps/one"), &patch))
    });
    for answer in futures::future::join_all(writers).await {
        expect(&answer?, 200)?;
    }
    let data = cx.get(&cx.core("configmaps/one")).await?["data"].clone();
    let count = data.as_object().map_or(0, serde_json::Map::len);
    ensure!(count == 9, "some writes are lost: {data}");
    Ok(())
}

async fn a_patch_cannot_rename(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let patch = json!({ "metadata": { "name": "two" } });
    let answer = cx.send(Request::merge_patch(cx.core("configmaps/one"), &patch)).await?;
    let message = "the name of the object (two) does not match the name on the URL (one)";
    refused(&answer, 400, "BadRequest", message)?;
    Ok(())
}

async fn a_patch_cannot_make_something_else(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let path = cx.core("configmaps/one");
    for (patch, why) in [
        (json!({ "kind": "Service" }), "converting (v1.Service) to (core.ConfigMap): unknown"),
        (json!({ "kind": "Nothing" }), "no kind \"Nothing\" is registered for version \"v1\""),
        (json!({ "apiVersion": "a/b/c" }), "unexpected GroupVersion string: a/b/c"),
    ] {
        let answer = cx.send(Request::merge_patch(path.clone(), &patch)).await?;
        let message = expect(&answer, 422)?["message"].as_str().unwrap_or_default().to_owned();
        ensure!(message.contains(why), "{patch}: {message}");
    }
    // What has its type already is not asked for it.
    let patch = json!({ "kind": "Service", "apiVersion": "v2", "data": { "key": "new" } });
    let answer = cx.send(Request::strategic_patch(path, &patch)).await?;
    let object = expect(&answer, 200)?;
    let found = json!([object["apiVersion"], object["kind"], object["data"]["key"]]);
    same("the object", &found, json!(["v1", "ConfigMap", "new"]))?;

    cx.define(&cx.widgets(any_schema())).await?;
    let widget = cx.widget("one", json!({}));
    cx.create(&cx.widget_path(), &widget).await?;
    let path = format!("{}/one", cx.widget_path());
    let patch = json!({ "kind": "Gadget" });
    let answer = cx.send(Request::merge_patch(path.clone(), &patch)).await?;
    let must_be = format!("must be {}", widget["kind"].as_str().unwrap_or_default());
    let message = expect(&answer, 422)?["message"].as_str().unwrap_or_default().to_owned();
    ensure!(message.contains(&must_be), "{message}");
    let answer = cx.send(Request::merge_patch(path, &json!({ "kind": 1 }))).await?;
    expect(&answer, 422)?;
    Ok(())
}

async fn a_patch_of_nothing_is_not_found(cx: Context) -> Result<()> {
    let answer = cx.send(Request::merge_patch(cx.core("configmaps/one"), &json!({}))).await?;
    refused(&answer, 404, "NotFound", "configmaps \"one\" not found")?;
    Ok(())
}

async fn template(cx: &Context) -> Result<String> {
    let template = json!({
        "metadata": { "name": "one" },
        "template": {
            "metadata": { "finalizers": ["a/a", "b/b"] },
            "spec": {
                "containers": [
                    { "name": "a", "image": "a:1", "ports": [{ "containerPort": 80, "name": "web" }] },
                    { "name": "b", "image": "b:1" },
                ],
            },
        },
    });
    cx.create(&cx.core("podtemplates"), &template).await?;
    Ok(cx.core("podtemplates/one"))
}

async fn a_strategic_patch_merges_lists_by_key(cx: Context) -> Result<()> {
    let path = template(&cx).await?;
    let containers = json!([{ "name": "c", "image": "c:1" }, { "name": "a", "image": "a:2" }]);
    let patch = json!({ "template": { "spec": { "containers": containers } } });
    let patched = expect(&cx.send(Request::strategic_patch(path, &patch)).await?, 200)?;
    let containers =
        patched["template"]["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let images: Vec<Value> =
        containers.iter().map(|container| json!([container["name"], container["image"]])).collect();
    // What the patch names comes first and in its order; the rest follows.
    same("images", &images.into(), json!([["c", "c:1"], ["a", "a:2"], ["b", "b:1"]]))?;
    same("ports of a", &containers[1]["ports"][0]["containerPort"], json!(80))
}

async fn a_strategic_patch_follows_directives(cx: Context) -> Result<()> {
    let path = template(&cx).await?;
    let patch = json!({ "template": {
        "metadata": { "$deleteFromPrimitiveList/finalizers": ["a/a"] },
        "spec": {
            "$setElementOrder/containers": [{ "name": "b" }, { "name": "c" }],
            "containers": [{ "name": "a", "$patch": "delete" }, { "name": "c", "image": "c:1" }],
        },
    } });
    let patched = expect(&cx.send(Request::strategic_patch(path.clone(), &patch)).await?, 200)?;
    same("finalizers", &patched["template"]["metadata"]["finalizers"], json!(["b/b"]))?;
    let spec = &patched["template"]["spec"];
    let names = json!([spec["containers"][0]["name"], spec["containers"][1]["name"]]);
    same("containers", &names, json!(["b", "c"]))?;
    let replace = json!({ "template": {
        "spec": { "$patch": "replace", "containers": [{ "name": "d", "image": "d:1" }] },
    } });
    let patched = expect(&cx.send(Request::strategic_patch(path.clone(), &replace)).await?, 200)?;
    same("container", &patched["template"]["spec"]["containers"][0]["name"], json!("d"))?;
    same("more", &patched["template"]["spec"]["containers"][1], Value::Null)?;
    let unknown = json!({ "template": { "$patch": "nonsense" } });
    let status = expect(&cx.send(Request::strategic_patch(path, &unknown)).await?, 500)?;
    let message = "unknown patch type: nonsense in map: map[$patch:nonsense]";
    same("message", &status["message"], json!(message))
}

async fn a_strategic_patch_may_keep_only_some_keys(cx: Context) -> Result<()> {
    let labels = json!({ "a": "b" });
    let container = json!({ "name": "c", "image": "i" });
    let template =
        json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
    let spec =
        json!({ "replicas": 0, "selector": { "matchLabels": labels }, "template": template });
    let deployments = cx.apis("apps/v1", "deployments");
    cx.create(&deployments, &json!({ "metadata": { "name": "one" }, "spec": spec })).await?;
    let path = format!("{deployments}/one");
    let recreate = json!({ "spec": { "strategy": { "type": "Recreate" } } });
    let answer = cx.send(Request::strategic_patch(path.clone(), &recreate)).await?;
    let message = "Deployment.apps \"one\" is invalid: spec.strategy.rollingUpdate: Forbidden: may \
                   not be specified when strategy `type` is 'Recreate'";
    refused(&answer, 422, "Invalid", message)?;
    let only = json!({ "spec": {
        "strategy": { "$retainKeys": ["type"], "type": "Recreate" },
    } });
    let patched = expect(&cx.send(Request::strategic_patch(path, &only)).await?, 200)?;
    same("strategy", &patched["spec"]["strategy"], json!({ "type": "Recreate" }))
}

async fn a_custom_resource_has_no_strategic_patch(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    cx.create(&cx.widget_path(), &cx.widget("one", json!({}))).await?;
    let path = format!("{}/one", cx.widget_path());
    let answer = cx.send(Request::strategic_patch(path, &json!({ "spec": {} }))).await?;
    let message = "the body of the request was in an unknown format - accepted media types \
                   include: application/json-patch+json, application/merge-patch+json, \
                   application/apply-patch+yaml";
    refused(&answer, 415, "UnsupportedMediaType", message)?;
    Ok(())
}
