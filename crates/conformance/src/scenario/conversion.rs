//! Versions of a custom resource that a webhook converts into each other.
//!
//! A widget has `hostPort` in `v1`, and `host` and `port` in `v2`.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Context, PATIENCE, expect, names, refused, revision, same, scenarios, text};
use crate::crd;
use crate::endpoint::{Answer, Request, Watch};
use crate::hook::{Hook, Reply};

scenarios! { "conversion":
    objects_are_stored_in_one_version_and_shown_in_all [C16],
    a_webhook_is_asked_for_what_is_stored [C16],
    an_older_review_is_spoken_too [C16],
    a_webhook_may_be_behind_a_service [C16],
    every_write_goes_through_the_version_that_is_stored [C16],
    status_and_scale_are_converted [C16],
    a_dry_run_shows_what_would_be_stored [C16],
    defaults_are_those_of_the_version_that_is_stored [C16],
    a_watch_sees_converted_objects [C16],
    selectors_see_converted_objects [C16],
    views_are_made_of_converted_objects [C16],
    fields_are_owned_across_versions [C16],
    who_owns_fields_that_cannot_be_converted_is_not_known [C16],
    an_object_moves_to_a_new_storage_version_when_it_is_written [C16 C2],
    a_version_that_nothing_is_stored_in_can_go [C16 C2],
}

/// What becomes of the right answer to a review.
type Twist = Box<dyn Fn(&Value, Value) -> Reply + Send + Sync>;

/// A webhook that converts widgets, for better or worse.
pub(super) struct Converter {
    pub(super) hook: Hook,
    twist: Arc<Mutex<Twist>>,
}

impl Converter {
    pub(super) async fn start(names: &[&str]) -> Result<Self> {
        let right: Twist = Box::new(|_, answer| Reply::json(&answer));
        let twist = Arc::new(Mutex::new(right));
        let twisted = Arc::clone(&twist);
        let hook = Hook::start(names, move |review| {
            twisted.lock().unwrap_or_else(PoisonError::into_inner)(review, answer(review))
        });
        Ok(Converter { hook: hook.await?, twist })
    }

    /// From now on, makes this of its answers.
    pub(super) fn answer_with(
        &self,
        twist: impl Fn(&Value, Value) -> Reply + Send + Sync + 'static,
    ) {
        *self.twist.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(twist);
    }

    /// From now on, does this to every object that it converts.
    pub(super) fn change_objects(&self, change: impl Fn(&mut Value) + Send + Sync + 'static) {
        self.answer_with(move |_, mut answer| {
            let objects = answer["response"]["convertedObjects"].as_array_mut();
            objects.into_iter().flatten().for_each(&change);
            Reply::json(&answer)
        });
    }

    pub(super) fn answer_well(&self) {
        self.answer_with(|_, answer| Reply::json(&answer));
    }

    pub(super) fn fail(&self) {
        self.answer_with(|_, mut answer| {
            answer["response"]["result"] = json!({ "status": "Failure", "message": "not today" });
            answer["response"]["convertedObjects"] = json!([]);
            Reply::json(&answer)
        });
    }
}

/// The answer to a review as it should be.
fn answer(review: &Value) -> Value {
    let request = &review["request"];
    let objects = request["objects"].as_array().into_iter().flatten();
    let objects: Vec<Value> = objects
        .map(|object| converted(object.clone(), text(request, "/desiredAPIVersion")))
        .collect();
    json!({
        "kind": review["kind"],
        "apiVersion": review["apiVersion"],
        "response": {
            "uid": request["uid"],
            "convertedObjects": objects,
            "result": { "status": "Success" },
        },
    })
}

fn converted(mut widget: Value, to: &str) -> Value {
    widget["apiVersion"] = json!(to);
    let Some(spec) = widget.get_mut("spec").and_then(Value::as_object_mut) else { return widget };
    let take = |spec: &mut serde_json::Map<String, Value>, name: &str| {
        let text = spec.remove(name)?;
        text.as_str().map(str::to_owned)
    };
    if to.ends_with("/v2") {
        if let Some(both) = take(spec, "hostPort") {
            let (host, port) = both.split_once(':').unwrap_or((&both, ""));
            spec.insert("host".to_owned(), json!(host));
            spec.insert("port".to_owned(), json!(port));
        }
    } else {
        let (host, port) = (take(spec, "host"), take(spec, "port"));
        if host.is_some() || port.is_some() {
            let both = format!("{}:{}", host.unwrap_or_default(), port.unwrap_or_default());
            spec.insert("hostPort".to_owned(), json!(both));
        }
    }
    widget
}

/// A definition of widgets in `v1` and `v2`, of which `storage` is stored.
pub(super) fn definition(cx: &Context, storage: &str, webhook: Value) -> Value {
    let version = |name: &str, spec: Value, column: &str| {
        json!({
            "name": name,
            "served": true,
            "storage": name == storage,
            "schema": { "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": { "type": "object", "properties": spec },
                    "status": {
                        "type": "object",
                        "properties": {
                            "phase": { "type": "string" }, "replicas": { "type": "integer" },
                        },
                    },
                },
            }},
            "subresources": {
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                },
            },
            "selectableFields": [{ "jsonPath": format!(".spec.{column}") }],
            "additionalPrinterColumns": [
                { "name": "Where", "type": "string", "jsonPath": format!(".spec.{column}") },
            ],
        })
    };
    let string = json!({ "type": "string" });
    let number = json!({ "type": "integer" });
    let v1 = json!({ "hostPort": string, "replicas": number });
    let v2 = json!({ "host": string, "port": string, "replicas": number });
    let mut definition = cx.widgets(Value::Null);
    definition["spec"]["versions"] =
        json!([version("v1", v1, "hostPort"), version("v2", v2, "host")]);
    definition["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": webhook });
    definition
}

/// Widgets that a webhook converts, with `storage` stored.
pub(super) async fn define(cx: &Context, storage: &str) -> Result<Converter> {
    let converter = Converter::start(&[]).await?;
    let webhook = json!({
        "clientConfig": converter.hook.client_config("/convert"),
        "conversionReviewVersions": ["v1"],
    });
    cx.define(&definition(cx, storage, webhook)).await?;
    Ok(converter)
}

/// The collection in this version.
pub(super) fn path(cx: &Context, version: &str) -> String {
    cx.apis(&format!("{}/{version}", cx.group()), "widgets")
}

pub(super) fn one(cx: &Context, version: &str, name: &str) -> String {
    format!("{}/{name}", path(cx, version))
}

pub(super) fn widget(cx: &Context, version: &str, name: &str, spec: Value) -> Value {
    let mut widget = cx.widget(name, spec);
    widget["apiVersion"] = json!(format!("{}/{version}", cx.group()));
    widget
}

/// A widget that was created in `v1`.
pub(super) async fn created(cx: &Context, name: &str, host_port: &str) -> Result<Value> {
    cx.create(&path(cx, "v1"), &widget(cx, "v1", name, json!({ "hostPort": host_port }))).await
}

async fn objects_are_stored_in_one_version_and_shown_in_all(cx: Context) -> Result<()> {
    let _converter = define(&cx, "v2").await?;
    let first = created(&cx, "a", "example.com:80").await?;
    same("as it was sent", &first["spec"], json!({ "hostPort": "example.com:80" }))?;
    let group = cx.group();
    for (version, spec) in [
        ("v1", json!({ "hostPort": "example.com:80" })),
        ("v2", json!({ "host": "example.com", "port": "80" })),
    ] {
        let found = cx.get(&one(&cx, version, "a")).await?;
        same("version", &found["apiVersion"], json!(format!("{group}/{version}")))?;
        same("spec", &found["spec"], spec.clone())?;
        same("metadata", &found["metadata"], first["metadata"].clone())?;
        let list = cx.get(&path(&cx, version)).await?;
        same("list", &list["apiVersion"], json!(format!("{group}/{version}")))?;
        same("items", &list["items"], json!([found]))?;
    }
    Ok(())
}

async fn a_webhook_is_asked_for_what_is_stored(cx: Context) -> Result<()> {
    let converter = define(&cx, "v2").await?;
    let first = created(&cx, "a", "example.com:80").await?;
    let asked = converter.hook.asked().into_iter().next().context("nobody was asked")?;
    same("target", &json!(asked.target), json!("/convert?timeout=30s"))?;
    let header = |name: &str| asked.headers.get(name).and_then(|value| value.to_str().ok());
    same("media type", &json!(header("content-type")), json!("application/json"))?;
    let mut metadata = first["metadata"].clone();
    metadata.as_object_mut().context("no metadata")?.remove("resourceVersion");
    let expected = json!({
        "kind": "ConversionReview",
        "apiVersion": "apiextensions.k8s.io/v1",
        "request": {
            "uid": asked.review["request"]["uid"],
            "desiredAPIVersion": format!("{}/v2", cx.group()),
            "objects": [{
                "apiVersion": first["apiVersion"],
                "kind": "Widget",
                "metadata": metadata,
                "spec": { "hostPort": "example.com:80" },
            }],
        },
        "response": { "uid": "", "convertedObjects": null, "result": { "metadata": {} } },
    });
    same("review", &asked.review, expected)?;
    ensure!(text(&asked.review, "/request/uid").len() == 36, "{}", asked.review);
    // Who asks for what is stored asks nobody else.
    let before = converter.hook.asked().len();
    let stored = |asked: &crate::hook::Asked| {
        text(&asked.review, "/request/desiredAPIVersion").ends_with("/v2")
    };
    cx.get(&one(&cx, "v2", "a")).await?;
    let since = converter.hook.asked().split_off(before);
    ensure!(!since.iter().any(stored), "{since:?}");
    Ok(())
}

async fn an_older_review_is_spoken_too(cx: Context) -> Result<()> {
    let converter = Converter::start(&[]).await?;
    // The older version never asked who an answer is for.
    converter.answer_with(|_, mut answer| {
        answer["response"]["uid"] = json!("another");
        Reply::json(&answer)
    });
    let webhook = json!({
        "clientConfig": converter.hook.client_config("/"),
        "conversionReviewVersions": ["v9", "v1beta1", "v1"],
    });
    cx.define(&definition(&cx, "v2", webhook)).await?;
    created(&cx, "a", "example.com:80").await?;
    let found = cx.get(&one(&cx, "v2", "a")).await?;
    same("spec", &found["spec"], json!({ "host": "example.com", "port": "80" }))?;
    let asked = converter.hook.asked().into_iter().next().context("nobody was asked")?;
    same("version", &asked.review["apiVersion"], json!("apiextensions.k8s.io/v1beta1"))
}

async fn a_webhook_may_be_behind_a_service(cx: Context) -> Result<()> {
    let name = format!("converter.{}.svc", cx.namespace);
    let converter = Converter::start(&[&name]).await?;
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "converter" },
        "spec": { "type": "ExternalName", "externalName": "localhost" },
    });
    cx.create(&cx.core("services"), &service).await?;
    let webhook = json!({
        "clientConfig": {
            "service": {
                "namespace": cx.namespace,
                "name": "converter",
                "path": "/some/where",
                "port": converter.hook.port(),
            },
            "caBundle": converter.hook.ca_bundle(),
        },
        "conversionReviewVersions": ["v1"],
    });
    cx.define(&definition(&cx, "v2", webhook)).await?;
    created(&cx, "a", "example.com:80").await?;
    let found = cx.get(&one(&cx, "v2", "a")).await?;
    same("spec", &found["spec"], json!({ "host": "example.com", "port": "80" }))?;
    let asked = converter.hook.asked().into_iter().next().context("nobody was asked")?;
    same("target", &json!(asked.target), json!("/some/where?timeout=30s"))
}

async fn every_write_goes_through_the_version_that_is_stored(cx: Context) -> Result<()> {
    let _converter = define(&cx, "v2").await?;
    let mut first = created(&cx, "a", "one:1").await?;
    let stored = async |expected: Value| -> Result<()> {
        let found = cx.get(&one(&cx, "v2", "a")).await?;
        same("what is stored", &found["spec"], expected)
    };
    let in_v1 = one(&cx, "v1", "a");

    first["spec"]["hostPort"] = json!("two:2");
    let replaced = expect(&cx.send(Request::put(in_v1.clone(), &first)).await?, 200)?;
    same("generation", &replaced["metadata"]["generation"], json!(2))?;
    stored(json!({ "host": "two", "port": "2" })).await?;

    let patch = json!({ "spec": { "hostPort": "three:3" } });
    let patched = expect(&cx.send(Request::merge_patch(in_v1.clone(), &patch)).await?, 200)?;
    same("spec", &patched["spec"], json!({ "hostPort": "three:3" }))?;
    stored(json!({ "host": "three", "port": "3" })).await?;

    let patch = json!([{ "op": "replace", "path": "/spec/hostPort", "value": "four:4" }]);
    expect(&cx.send(Request::json_patch(in_v1.clone(), &patch)).await?, 200)?;
    stored(json!({ "host": "four", "port": "4" })).await?;

    let config = widget(&cx, "v1", "a", json!({ "hostPort": "five:5" }));
    let apply = Request::apply(format!("{in_v1}?fieldManager=me&force=true"), &config);
    expect(&cx.send(apply).await?, 200)?;
    stored(json!({ "host": "five", "port": "5" })).await?;

    let config = widget(&cx, "v1", "b", json!({ "hostPort": "six:6" }));
    let apply = Request::apply(format!("{}?fieldManager=me", one(&cx, "v1", "b")), &config);
    expect(&cx.send(apply).await?, 201)?;
    let found = cx.get(&one(&cx, "v2", "b")).await?;
    same("what was applied", &found["spec"], json!({ "host": "six", "port": "6" }))?;

    let keep = json!({ "metadata": { "finalizers": ["example.com/wait"] } });
    expect(&cx.send(Request::merge_patch(in_v1.clone(), &keep)).await?, 200)?;
    let going = expect(&cx.send(Request::delete(in_v1.clone())).await?, 200)?;
    same("what goes", &going["spec"], json!({ "hostPort": "five:5" }))?;
    stored(json!({ "host": "five", "port": "5" })).await?;
    cx.release(&in_v1).await?;
    expect(&cx.send(Request::get(in_v1)).await?, 404)?;

    let gone = expect(&cx.send(Request::delete(path(&cx, "v1"))).await?, 200)?;
    same("what went", &gone["items"][0]["spec"], json!({ "hostPort": "six:6" }))?;
    same("what is left", &cx.get(&path(&cx, "v2")).await?["items"], json!([]))
}

async fn status_and_scale_are_converted(cx: Context) -> Result<()> {
    let _converter = define(&cx, "v2").await?;
    let spec = json!({ "hostPort": "one:1", "replicas": 2 });
    let mut first = cx.create(&path(&cx, "v1"), &widget(&cx, "v1", "a", spec)).await?;
    let in_v1 = one(&cx, "v1", "a");

    first["spec"]["hostPort"] = json!("ignored:0");
    first["status"] = json!({ "phase": "Ready", "replicas": 1 });
    let status = Request::put(format!("{in_v1}/status"), &first);
    let changed = expect(&cx.send(status).await?, 200)?;
    same("spec", &changed["spec"], json!({ "hostPort": "one:1", "replicas": 2 }))?;
    let found = cx.get(&format!("{}/status", one(&cx, "v2", "a"))).await?;
    same("status", &found["status"], json!({ "phase": "Ready", "replicas": 1 }))?;
    same("its spec", &found["spec"], json!({ "host": "one", "port": "1", "replicas": 2 }))?;

    let scale = cx.get(&format!("{in_v1}/scale")).await?;
    same("scale", &scale["spec"], json!({ "replicas": 2 }))?;
    same("scale", &scale["status"], json!({ "replicas": 1 }))?;
    let patch = json!({ "spec": { "replicas": 5 } });
    let scale = Request::merge_patch(format!("{in_v1}/scale"), &patch);
    let scale = expect(&cx.send(scale).await?, 200)?;
    same("scaled", &scale["spec"], json!({ "replicas": 5 }))?;
    let found = cx.get(&one(&cx, "v2", "a")).await?;
    same("spec", &found["spec"], json!({ "host": "one", "port": "1", "replicas": 5 }))
}

async fn a_dry_run_shows_what_would_be_stored(cx: Context) -> Result<()> {
    let converter = define(&cx, "v2").await?;
    created(&cx, "a", "one:1").await?;
    converter.change_objects(|object| {
        object["metadata"]["annotations"] = json!({ "converted": object["apiVersion"] });
    });
    let annotations = json!({ "converted": format!("{}/v1", cx.group()) });
    let draft = widget(&cx, "v1", "b", json!({ "hostPort": "two:2" }));
    let dry = Request::post(format!("{}?dryRun=All", path(&cx, "v1")), &draft);
    let shown = expect(&cx.send(dry).await?, 201)?;
    same("spec", &shown["spec"], json!({ "hostPort": "two:2" }))?;
    same("it went there and back", &shown["metadata"]["annotations"], annotations.clone())?;
    expect(&cx.send(Request::get(one(&cx, "v1", "b"))).await?, 404)?;

    let patch = json!({ "spec": { "hostPort": "three:3" } });
    let dry = Request::merge_patch(format!("{}?dryRun=All", one(&cx, "v1", "a")), &patch);
    let shown = expect(&cx.send(dry).await?, 200)?;
    same("spec", &shown["spec"], json!({ "hostPort": "three:3" }))?;
    same("it went there and back", &shown["metadata"]["annotations"], annotations)
}

async fn defaults_are_those_of_the_version_that_is_stored(cx: Context) -> Result<()> {
    let converter = Converter::start(&[]).await?;
    let webhook = json!({
        "clientConfig": converter.hook.client_config("/"),
        "conversionReviewVersions": ["v1"],
    });
    let mut definition = definition(&cx, "v2", webhook);
    for (at, name) in [(0, "mine"), (1, "yours")] {
        let spec = definition["spec"]["versions"][at]
            .pointer_mut("/schema/openAPIV3Schema/properties/spec/properties")
            .context("no schema")?;
        spec[name] = json!({ "type": "string", "default": name });
    }
    cx.define(&definition).await?;
    let first = created(&cx, "a", "one:1").await?;
    // What the stored version has no place for is gone, and nobody fills it in again.
    same("in v1", &first["spec"], json!({ "hostPort": "one:1" }))?;
    let sent = converter.hook.asked().into_iter().next().context("nobody was asked")?;
    let sent = &sent.review["request"]["objects"][0]["spec"];
    same("what was sent", sent, json!({ "hostPort": "one:1", "mine": "mine" }))?;
    let found = cx.get(&one(&cx, "v2", "a")).await?;
    let expected = json!({ "host": "one", "port": "1", "yours": "yours" });
    same("in v2", &found["spec"], expected)
}

/// The next event that is about an object.
async fn next_change(watch: &mut Watch) -> Result<Value> {
    loop {
        let event = watch.event().await?;
        if event["type"] != "BOOKMARK" {
            return Ok(event);
        }
    }
}

async fn a_watch_sees_converted_objects(cx: Context) -> Result<()> {
    let _converter = define(&cx, "v2").await?;
    let a = created(&cx, "a", "one:1").await?;
    let list = format!(
        "{}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true\
         &resourceVersionMatch=NotOlderThan",
        path(&cx, "v1")
    );
    let mut watch = cx.watch(list).await?;
    same("at first", &watch.event().await?, json!({ "type": "ADDED", "object": a }))?;
    let bookmark = watch.event().await?;
    same("then a bookmark", &bookmark["type"], json!("BOOKMARK"))?;
    same("version", &bookmark["object"]["apiVersion"], a["apiVersion"].clone())?;

    let second = widget(&cx, "v2", "b", json!({ "host": "two", "port": "2" }));
    cx.create(&path(&cx, "v2"), &second).await?;
    let b = cx.get(&one(&cx, "v1", "b")).await?;
    same("spec", &b["spec"], json!({ "hostPort": "two:2" }))?;
    same("created", &next_change(&mut watch).await?, json!({ "type": "ADDED", "object": b }))?;

    let patch = json!({ "spec": { "port": "3" } });
    expect(&cx.send(Request::merge_patch(one(&cx, "v2", "b"), &patch)).await?, 200)?;
    let event = next_change(&mut watch).await?;
    same("changed", &event["type"], json!("MODIFIED"))?;
    same("spec", &event["object"]["spec"], json!({ "hostPort": "two:3" }))?;

    expect(&cx.send(Request::delete(one(&cx, "v2", "b"))).await?, 200)?;
    let event = next_change(&mut watch).await?;
    same("deleted", &event["type"], json!("DELETED"))?;
    same("spec", &event["object"]["spec"], json!({ "hostPort": "two:3" }))?;
    ensure!(revision(&event["object"])? > revision(&b)?, "{event}");
    Ok(())
}

async fn selectors_see_converted_objects(cx: Context) -> Result<()> {
    let converter = define(&cx, "v2").await?;
    converter.change_objects(|object| {
        let label = if object["spec"].get("hostPort").is_some() { "one" } else { "two" };
        object["metadata"]["labels"] = json!({ "version": label });
    });
    created(&cx, "a", "one:1").await?;
    created(&cx, "b", "two:2").await?;
    let selected = async |version: &str, query: &str| -> Result<Value> {
        let list = cx.get(&format!("{}?{query}", path(&cx, version))).await?;
        Ok(json!(names(&list)))
    };
    let by_label = "labelSelector=version%3Done";
    same("in v1", &selected("v1", by_label).await?, json!(["a", "b"]))?;
    same("in v2", &selected("v2", by_label).await?, json!([]))?;
    let page = selected("v1", "labelSelector=version%3Done&limit=1").await?;
    same("a page", &page, json!(["a"]))?;
    let by_field = "fieldSelector=spec.hostPort%3Dtwo:2";
    same("in v1", &selected("v1", by_field).await?, json!(["b"]))?;
    same("in v2", &selected("v2", "fieldSelector=spec.host%3Dtwo").await?, json!(["b"]))?;
    let answer = cx.send(Request::get(format!("{}?{by_field}", path(&cx, "v2")))).await?;
    let message = "field label not supported: spec.hostPort";
    refused(&answer, 400, "BadRequest", message)?;

    let b = cx.get(&one(&cx, "v1", "b")).await?;
    let target =
        format!("{}?watch=1&{by_field}&resourceVersion={}", path(&cx, "v1"), revision(&b)?);
    let mut watch = cx.watch(target).await?;
    let patch = json!({ "spec": { "port": "3" } });
    expect(&cx.send(Request::merge_patch(one(&cx, "v2", "b"), &patch)).await?, 200)?;
    let event = watch.event().await?;
    same("it has left", &event["type"], json!("DELETED"))?;
    same("as it was", &event["object"]["spec"], json!({ "hostPort": "two:2" }))
}

async fn views_are_made_of_converted_objects(cx: Context) -> Result<()> {
    let converter = define(&cx, "v2").await?;
    converter.change_objects(|object| {
        object["metadata"]["labels"] = json!({ "version": text(object, "/kind") });
    });
    created(&cx, "a", "one:1").await?;
    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for target in [one(&cx, "v1", "a"), path(&cx, "v1")] {
        let table = expect(&cx.send(Request::get(target).accept(TABLE)).await?, 200)?;
        same("column", &table["columnDefinitions"][1]["name"], json!("Where"))?;
        same("cells", &table["rows"][0]["cells"], json!(["a", "one:1"]))?;
        let labels = &table["rows"][0]["object"]["metadata"]["labels"];
        same("labels", labels, json!({ "version": "Widget" }))?;
    }
    let table = Request::get(path(&cx, "v2")).accept(TABLE);
    let table = expect(&cx.send(table).await?, 200)?;
    same("cells in v2", &table["rows"][0]["cells"], json!(["a", "one"]))?;
    const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let partial = Request::get(one(&cx, "v1", "a")).accept(PARTIAL);
    let partial = expect(&cx.send(partial).await?, 200)?;
    same("labels", &partial["metadata"]["labels"], json!({ "version": "Widget" }))
}

/// Who owns which fields, as `[manager, version, fields of the spec]`.
fn owners(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let owners = entries.map(|entry| {
        let version = text(entry, "/apiVersion").rsplit('/').next().unwrap_or_default();
        let fields = entry["fieldsV1"]["f:spec"].as_object().into_iter().flatten();
        let fields: Vec<&str> = fields.map(|(name, _)| name.as_str()).collect();
        json!([entry["manager"], version, fields])
    });
    // Entries of one second come in any order.
    let mut owners: Vec<Value> = owners.collect();
    owners.sort_by_key(|owner| owner[0].to_string());
    owners.into()
}

async fn fields_are_owned_across_versions(cx: Context) -> Result<()> {
    let _converter = define(&cx, "v2").await?;
    let config = widget(&cx, "v1", "a", json!({ "hostPort": "one:1", "replicas": 1 }));
    let apply = |version: &str, manager: &str, config: &Value| {
        Request::apply(format!("{}?fieldManager={manager}", one(&cx, version, "a")), config)
    };
    expect(&cx.send(apply("v1", "first", &config)).await?, 201)?;

    // The same field, under the name that it has in the other version.
    let rival = widget(&cx, "v2", "a", json!({ "host": "two", "port": "1" }));
    let status = expect(&cx.send(apply("v2", "second", &rival)).await?, 409)?;
    let message = "Apply failed with 1 conflict: conflict with \"first\": .spec.hostPort";
    same("message", &status["message"], json!(message))?;

    let agreeing = widget(&cx, "v2", "a", json!({ "host": "one", "port": "1" }));
    let shared = expect(&cx.send(apply("v2", "second", &agreeing)).await?, 200)?;
    same(
        "both own it",
        &owners(&shared),
        json!([
            ["first", "v1", ["f:hostPort", "f:replicas"]],
            ["second", "v2", ["f:host", "f:port"]]
        ]),
    )?;

    // An update in one version takes what was applied in another.
    let patch = json!({ "spec": { "replicas": 2 } });
    let target = format!("{}?fieldManager=third", one(&cx, "v2", "a"));
    let updated = expect(&cx.send(Request::merge_patch(target, &patch)).await?, 200)?;
    same(
        "it was taken",
        &owners(&updated),
        json!([
            ["first", "v1", ["f:hostPort"]],
            ["second", "v2", ["f:host", "f:port"]],
            ["third", "v2", ["f:replicas"]],
        ]),
    )?;

    // Who applies in another version than before gives up what it does not mention.
    let moved = widget(&cx, "v2", "a", json!({ "host": "one", "port": "1" }));
    let moved = expect(&cx.send(apply("v2", "first", &moved)).await?, 200)?;
    same("spec", &moved["spec"], json!({ "host": "one", "port": "1", "replicas": 2 }))?;
    same(
        "it moved",
        &owners(&moved),
        json!([
            ["first", "v2", ["f:host", "f:port"]],
            ["second", "v2", ["f:host", "f:port"]],
            ["third", "v2", ["f:replicas"]],
        ]),
    )
}

async fn who_owns_fields_that_cannot_be_converted_is_not_known(cx: Context) -> Result<()> {
    let converter = define(&cx, "v2").await?;
    created(&cx, "a", "one:1").await?;
    // Conversions for the sake of owners are not pruned.
    converter.change_objects(|object| object["spec"]["surprise"] = json!(true));
    let config = widget(&cx, "v2", "a", json!({ "host": "two" }));
    let apply =
        Request::apply(format!("{}?fieldManager=me&force=true", one(&cx, "v2", "a")), &config);
    let status = expect(&cx.send(apply).await?, 500)?;
    same("message", &status["message"], json!(".spec.surprise: field not declared in schema"))?;
    // An update goes on without them.
    let patch = json!({ "spec": { "port": "2" } });
    let updated = cx.send(Request::merge_patch(one(&cx, "v2", "a"), &patch)).await?;
    same("owners", &owners(&expect(&updated, 200)?), json!([]))
}

/// Makes `v2` the version to store.
async fn store_in_v2(cx: &Context) -> Result<Value> {
    let path = format!("{}/widgets.{}", crd::PATH, cx.group());
    let patch = json!([
        { "op": "replace", "path": "/spec/versions/0/storage", "value": false },
        { "op": "replace", "path": "/spec/versions/1/storage", "value": true },
    ]);
    expect(&cx.send(Request::json_patch(path, &patch)).await?, 200)
}

async fn an_object_moves_to_a_new_storage_version_when_it_is_written(cx: Context) -> Result<()> {
    let _converter = define(&cx, "v1").await?;
    let a = created(&cx, "a", "one:1").await?;
    let changed = store_in_v2(&cx).await?;
    same("storedVersions", &changed["status"]["storedVersions"], json!(["v1", "v2"]))?;
    let found = cx.get(&one(&cx, "v2", "a")).await?;
    same("it reads as ever", &found["spec"], json!({ "host": "one", "port": "1" }))?;
    same(
        "nothing was written",
        &found["metadata"]["resourceVersion"],
        a["metadata"]["resourceVersion"].clone(),
    )?;
    // A write that changes nothing stores it anew; a server may need a moment to know how.
    let write = Request::merge_patch(one(&cx, "v1", "a"), &json!({}));
    let version = revision(&a)?;
    let is_moved = |answer: &Answer| {
        answer
            .json()
            .ok()
            .and_then(|object| revision(&object).ok())
            .is_some_and(|now| now > version)
    };
    let moved = cx.endpoint.poll(&write, PATIENCE, is_moved).await?.json()?;
    same("spec", &moved["spec"], json!({ "hostPort": "one:1" }))?;
    same("generation", &moved["metadata"]["generation"], json!(1))?;
    // And then nothing is left to do.
    let again = expect(&cx.send(write).await?, 200)?;
    same("again", &again, moved)
}

async fn a_version_that_nothing_is_stored_in_can_go(cx: Context) -> Result<()> {
    let _converter = define(&cx, "v1").await?;
    let a = created(&cx, "a", "one:1").await?;
    store_in_v2(&cx).await?;
    let write = Request::merge_patch(one(&cx, "v2", "a"), &json!({}));
    let version = revision(&a)?;
    let is_moved = |answer: &Answer| {
        answer
            .json()
            .ok()
            .and_then(|object| revision(&object).ok())
            .is_some_and(|now| now > version)
    };
    cx.endpoint.poll(&write, PATIENCE, is_moved).await?;
    let path = format!("{}/widgets.{}", crd::PATH, cx.group());
    let migrated = json!({ "status": { "storedVersions": ["v2"] } });
    let status = Request::merge_patch(format!("{path}/status"), &migrated);
    let status = expect(&cx.send(status).await?, 200)?;
    same("storedVersions", &status["status"]["storedVersions"], json!(["v2"]))?;
    let remove = json!([{ "op": "remove", "path": "/spec/versions/0" }]);
    expect(&cx.send(Request::json_patch(path, &remove)).await?, 200)?;
    let found = cx.get(&one(&cx, "v2", "a")).await?;
    same("spec", &found["spec"], json!({ "host": "one", "port": "1" }))?;
    let gone = |answer: &Answer| answer.status == 404;
    cx.endpoint.poll(&Request::get(one(&cx, "v1", "a")), PATIENCE, gone).await?;
    Ok(())
}
