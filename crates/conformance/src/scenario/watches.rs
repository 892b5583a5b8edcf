//! Watches: what a client that follows a collection sees, and in what order.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Context, OURS, config_map, expect, refused, revision, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "watches":
    a_watch_from_a_version_sees_what_comes_after [R5],
    a_watch_from_anywhere_begins_with_what_is_there [R5],
    a_deletion_carries_the_version_it_happened_at [R1 R5],
    an_object_that_leaves_the_selection_is_deleted_from_it [R5],
    a_watch_ends_when_its_time_is_up [R5],
    a_watch_of_one_name_sees_only_that [R8],
    a_watch_frames_one_event_per_line [R5],
    a_bookmark_tells_how_far_a_watch_has_come [R6],
    a_watch_list_ends_its_beginning_with_a_bookmark [R7],
    contradictory_watch_options_are_invalid [R7],
    a_write_that_changes_nothing_is_no_event [R5 U2],
    the_old_path_still_watches [R5 R8],
    a_watch_that_cannot_begin_says_so_in_its_stream [R2 R7],
    a_version_that_is_no_number_begins_no_stream [R5],
    events_do_not_come_in_yaml [R5 W7],
}

/// Watches the ConfigMaps that the scenario makes, from the version of `object`.
async fn after(cx: &Context, object: &Value, more: &str) -> Result<crate::endpoint::Watch> {
    let version = revision(object)?;
    cx.watch(cx.core(&format!("configmaps?watch=1&{OURS}&resourceVersion={version}{more}"))).await
}

async fn a_watch_from_a_version_sees_what_comes_after(cx: Context) -> Result<()> {
    let start = cx.config_map("start").await?;
    let one = cx.config_map("one").await?;
    let mut watch = after(&cx, &start, "").await?;
    same("event", &watch.event().await?, json!({ "type": "ADDED", "object": one }))?;
    let patch = json!({ "data": { "key": "other" } });
    let patched = cx.send(Request::merge_patch(cx.core("configmaps/one"), &patch)).await?;
    let patched = expect(&patched, 200)?;
    same("event", &watch.event().await?, json!({ "type": "MODIFIED", "object": patched }))
}

async fn a_watch_from_anywhere_begins_with_what_is_there(cx: Context) -> Result<()> {
    let one = cx.config_map("one").await?;
    for version in ["", "&resourceVersion=0"] {
        // "0" is any moment, so the object must be known before it can be counted on.
        let known = cx.core(&format!("configmaps?resourceVersion={}", revision(&one)?));
        cx.get(&known).await?;
        let target = format!("configmaps?watch=true&{OURS}{version}");
        let mut watch = cx.watch(cx.core(&target)).await?;
        same("event", &watch.event().await?, json!({ "type": "ADDED", "object": one }))?;
    }
    Ok(())
}

async fn a_deletion_carries_the_version_it_happened_at(cx: Context) -> Result<()> {
    let one = cx.config_map("one").await?;
    let mut watch = after(&cx, &one, "").await?;
    expect(&cx.send(Request::delete(cx.core("configmaps/one"))).await?, 200)?;
    let event = watch.event().await?;
    same("type", &event["type"], json!("DELETED"))?;
    ensure!(revision(&event["object"])? > revision(&one)?, "{event}");
    let mut last = one.clone();
    last["metadata"]["resourceVersion"] = event["object"]["metadata"]["resourceVersion"].clone();
    same("object", &event["object"], last)
}

async fn an_object_that_leaves_the_selection_is_deleted_from_it(cx: Context) -> Result<()> {
    let start = cx.config_map("start").await?;
    let mut watch = after(&cx, &start, "&labelSelector=chosen%3Dyes").await?;
    let label = async |value: &str| -> Result<Value> {
        let patch = json!({ "metadata": { "labels": { "chosen": value } } });
        let answer = cx.send(Request::merge_patch(cx.core("configmaps/start"), &patch)).await?;
        expect(&answer, 200)
    };
    let entered = label("yes").await?;
    same("event", &watch.event().await?, json!({ "type": "ADDED", "object": entered }))?;
    let left = label("no").await?;
    let event = watch.event().await?;
    same("type", &event["type"], json!("DELETED"))?;
    // The state shown is the last that was selected, at the version at which it left.
    same("labels", &event["object"]["metadata"]["labels"], json!({ "chosen": "yes" }))?;
    same("version", &json!(revision(&event["object"])?), json!(revision(&left)?))
}

async fn a_watch_ends_when_its_time_is_up(cx: Context) -> Result<()> {
    let start = cx.config_map("start").await?;
    let mut watch = after(&cx, &start, "&timeoutSeconds=1").await?;
    ensure!(watch.next().await?.is_none(), "an event came from nowhere");
    Ok(())
}

async fn a_watch_of_one_name_sees_only_that(cx: Context) -> Result<()> {
    let start = cx.config_map("start").await?;
    let target = "configmaps?watch=1&fieldSelector=metadata.name%3Dtwo&resourceVersion=";
    let mut watch = cx.watch(cx.core(&format!("{target}{}", revision(&start)?))).await?;
    cx.config_map("one").await?;
    let two = cx.config_map("two").await?;
    same("event", &watch.event().await?, json!({ "type": "ADDED", "object": two }))
}

async fn a_watch_frames_one_event_per_line(cx: Context) -> Result<()> {
    let start = cx.config_map("start").await?;
    let mut lines = config_map("lines");
    lines["data"]["key"] = "one\ntwo\n".into();
    let lines = cx.create(&cx.core("configmaps"), &lines).await?;
    let target = format!("configmaps?watch=1&{OURS}&timeoutSeconds=1&resourceVersion=");
    let target = cx.core(&format!("{target}{}", revision(&start)?));
    let answer = cx.send(Request::get(target).accept("application/json")).await?;
    same("content type", &json!(answer.content_type()), json!("application/json"))?;
    let stream = String::from_utf8(answer.bytes)?;
    ensure!(stream.matches('\n').count() == 1 && stream.ends_with('\n'), "{stream:?}");
    let event: Value = serde_json::from_str(&stream)?;
    same("object", &event["object"], lines)
}

async fn a_bookmark_tells_how_far_a_watch_has_come(cx: Context) -> Result<()> {
    let start = cx.config_map("start").await?;
    // A bookmark comes at the latest shortly before the end.
    let mut watch = after(&cx, &start, "&allowWatchBookmarks=true&timeoutSeconds=4").await?;
    let event = watch.event().await?;
    same("type", &event["type"], json!("BOOKMARK"))?;
    let version = event["object"]["metadata"]["resourceVersion"].clone();
    ensure!(revision(&event["object"])? >= revision(&start)?, "{event}");
    same(
        "object",
        &event["object"],
        json!({
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": { "resourceVersion": version },
        }),
    )
}

async fn a_watch_list_ends_its_beginning_with_a_bookmark(cx: Context) -> Result<()> {
    let one = cx.config_map("one").await?;
    let two = cx.config_map("two").await?;
    let mut watch = cx
        .watch(cx.core(&format!(
            "configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
             &allowWatchBookmarks=true&{OURS}",
        )))
        .await?;
    let mut seen = [watch.event().await?, watch.event().await?];
    seen.sort_by_key(|event| text(event, "/object/metadata/name").to_owned());
    same(
        "beginning",
        &json!(seen),
        json!([
            { "type": "ADDED", "object": one },
            { "type": "ADDED", "object": two },
        ]),
    )?;
    let bookmark = watch.event().await?;
    same("type", &bookmark["type"], json!("BOOKMARK"))?;
    ensure!(revision(&bookmark["object"])? >= revision(&two)?, "{bookmark}");
    let annotations = json!({ "k8s.io/initial-events-end": "true" });
    same("annotations", &bookmark["object"]["metadata"]["annotations"], annotations)?;
    let three = cx.config_map("three").await?;
    same("event", &watch.event().await?, json!({ "type": "ADDED", "object": three }))
}

async fn contradictory_watch_options_are_invalid(cx: Context) -> Result<()> {
    for (query, field, cause) in [
        (
            "sendInitialEvents=true",
            "sendInitialEvents",
            "Forbidden: sendInitialEvents is forbidden for list",
        ),
        (
            "watch=1&sendInitialEvents=true",
            "resourceVersionMatch",
            "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            "watch=1&resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
    ] {
        let answer = cx.send(Request::get(cx.core(&format!("configmaps?{query}")))).await?;
        let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: {cause}");
        refused(&answer, 422, "Invalid", &message)?;
    }
    Ok(())
}

async fn a_write_that_changes_nothing_is_no_event(cx: Context) -> Result<()> {
    let one = cx.config_map("one").await?;
    let mut watch = after(&cx, &one, "").await?;
    let again = cx.send(Request::put(cx.core("configmaps/one"), &one)).await?;
    same("object", &expect(&again, 200)?, one)?;
    let same_patch =
        Request::merge_patch(cx.core("configmaps/one"), &json!({ "data": { "key": "value" } }));
    expect(&cx.send(same_patch).await?, 200)?;
    let two = cx.config_map("two").await?;
    same("event", &watch.event().await?, json!({ "type": "ADDED", "object": two }))
}

async fn the_old_path_still_watches(cx: Context) -> Result<()> {
    let create = async |name: &str| {
        cx.create(&cx.core("secrets"), &json!({ "metadata": { "name": name } })).await
    };
    let one = create("one").await?;
    let two = create("two").await?;
    let version = revision(&one)?;
    let path = format!("/api/v1/watch/namespaces/{}/secrets", cx.namespace);
    let mut watch = cx.watch(format!("{path}?resourceVersion={version}")).await?;
    same("event", &watch.event().await?, json!({ "type": "ADDED", "object": two }))?;
    let mut watch = cx.watch(format!("{path}/one?resourceVersion={version}")).await?;
    create("three").await?;
    expect(&cx.send(Request::delete(cx.core("secrets/one"))).await?, 200)?;
    let event = watch.event().await?;
    same("type", &event["type"], json!("DELETED"))?;
    same("name", &event["object"]["metadata"]["name"], json!("one"))
}

async fn a_watch_that_cannot_begin_says_so_in_its_stream(cx: Context) -> Result<()> {
    let target = "configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                  &allowWatchBookmarks=true&resourceVersion=999999999999";
    let mut watch = cx.watch(cx.core(target)).await?;
    let event = watch.event().await?;
    same("type", &event["type"], json!("ERROR"))?;
    let status = &event["object"];
    same("code", &status["code"], json!(504))?;
    same("retry", &status["details"]["retryAfterSeconds"], json!(1))?;
    let start = "Timeout: Too large resource version: 999999999999, current: ";
    ensure!(text(status, "/message").starts_with(start), "{status}");
    ensure!(watch.next().await?.is_none(), "the stream goes on");
    Ok(())
}

async fn a_version_that_is_no_number_begins_no_stream(cx: Context) -> Result<()> {
    let target = cx.core("configmaps?watch=1&resourceVersion=new");
    let status = expect(&cx.send(Request::get(target)).await?, 500)?;
    let message = "resourceVersion: Invalid value: \"new\": strconv.ParseUint: parsing \"new\": \
                   invalid syntax";
    same("message", &status["message"], json!(message))?;
    same("reason", &status["reason"], Value::Null)
}

async fn events_do_not_come_in_yaml(cx: Context) -> Result<()> {
    let target = cx.core("configmaps?watch=1&timeoutSeconds=1");
    let accept = "application/yaml, application/json;q=0.1";
    let answer = cx.send(Request::get(target).accept(accept)).await?;
    ensure!(answer.status == 406, "{answer}");
    same("content type", &json!(answer.content_type()), json!("application/yaml"))?;
    let said = String::from_utf8(answer.bytes)?.replace("\n  ", " ");
    let message = "only the following media types are accepted: application/json;stream=watch, \
                   application/vnd.kubernetes.protobuf;stream=watch";
    ensure!(said.contains(message), "{said}");
    Ok(())
}
