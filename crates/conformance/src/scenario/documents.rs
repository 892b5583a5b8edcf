//! Discovery and OpenAPI in all their forms, and how they follow definitions.

use anyhow::{Context as _, Result, ensure};
use http::header::IF_NONE_MATCH;
use serde_json::{Value, json};

use super::{Context, PATIENCE, any_schema, expect, same, scenarios, text};
use crate::crd;
use crate::endpoint::{Answer, Request};

scenarios! { "documents":
    discovery_comes_in_yaml_and_protobuf [W3],
    discovery_is_indented_for_people [W3],
    the_root_lists_what_there_is [W3],
    discovery_is_only_read [W3 W7],
    aggregated_discovery_comes_in_protobuf [W4],
    a_definition_shows_in_aggregated_discovery [W4 C5],
    a_definition_that_goes_is_discovered_no_longer [C5],
    openapi_v3_is_cached_by_etag [W5],
    openapi_has_forms_and_documents_that_it_lacks [W5 W6],
    openapi_v3_adds_what_every_object_has [W5 C5],
    openapi_v2_leaves_out_what_it_cannot_say [W6 C5],
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async fn discovery_comes_in_yaml_and_protobuf(cx: Context) -> Result<()> {
    for path in ["/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"] {
        let yaml = cx.send(Request::get(path).accept("application/yaml")).await?;
        same("content type", &json!(yaml.content_type()), json!("application/yaml"))?;
        ensure!(String::from_utf8_lossy(&yaml.bytes).contains("kind: API"), "{path}: {yaml}");
        let form = "application/vnd.kubernetes.protobuf";
        let protobuf = cx.send(Request::get(path).accept(form)).await?;
        same("content type", &json!(protobuf.content_type()), json!(form))?;
        ensure!(protobuf.bytes.starts_with(b"k8s\0"), "{path} is not protobuf");
        let other = cx.send(Request::get(path).accept("text/html")).await?;
        expect(&other, 406)?;
    }
    // Groups say the version of their kind; what is older than groups does not.
    let group = cx.send(Request::get("/apis/apps").accept("application/vnd.kubernetes.protobuf"));
    let group = group.await?;
    ensure!(group.bytes.starts_with(b"k8s\0\x0a\x0e\x0a\x02v1\x12\x08APIGroup"), "no APIGroup");
    let core = cx.send(Request::get("/api").accept("application/vnd.kubernetes.protobuf")).await?;
    ensure!(core.bytes.starts_with(b"k8s\0\x0a\x0f\x0a\x00\x12\x0bAPIVersions"), "no APIVersions");
    Ok(())
}

async fn discovery_is_indented_for_people(cx: Context) -> Result<()> {
    let plain = cx.send(Request::get("/apis/apps")).await?;
    ensure!(plain.bytes.starts_with(br#"{"kind":"APIGroup","apiVersion":"v1","#), "{plain}");
    ensure!(plain.bytes.ends_with(b"}\n"), "no end of line");
    let pretty = cx.send(Request::get("/apis/apps?pretty=true")).await?;
    ensure!(pretty.bytes.starts_with(b"{\n  \"kind\": \"APIGroup\",\n"), "{pretty}");
    ensure!(pretty.bytes.ends_with(b"\n}"), "an end of line");
    same("the same document", &pretty.json()?, plain.json()?)
}

async fn the_root_lists_what_there_is(cx: Context) -> Result<()> {
    let root = cx.get("/").await?;
    let paths = root["paths"].as_array().context("no paths")?;
    let paths: Vec<&str> = paths.iter().filter_map(Value::as_str).collect();
    ensure!(paths.is_sorted(), "not in order: {paths:?}");
    for path in [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/",
        "/apis/apps",
        "/apis/apps/v1",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ] {
        ensure!(paths.contains(&path), "no {path} in {paths:?}");
    }
    Ok(())
}

async fn discovery_is_only_read(cx: Context) -> Result<()> {
    let body = json!({});
    for path in ["/version", "/api", "/api/v1", "/apis/apps/v1"] {
        let answer = cx.send(Request::post(path, &body)).await?;
        let status = expect(&answer, 405)?;
        same("reason", &status["reason"], json!("MethodNotAllowed"))?;
    }
    Ok(())
}

async fn aggregated_discovery_comes_in_protobuf(cx: Context) -> Result<()> {
    let form = AGGREGATED.replace("json", "vnd.kubernetes.protobuf");
    let answer = cx.send(Request::get("/api").accept(&form)).await?;
    same("content type", &json!(answer.content_type()), json!(form))?;
    ensure!(answer.bytes.starts_with(b"k8s\0"), "not protobuf");
    // The tag is of the content, whatever the form.
    let json = cx.send(Request::get("/api").accept(AGGREGATED)).await?;
    same("etag", &json!(answer.header("etag")), json!(json.header("etag")))
}

/// A definition with versions of all sorts, and a scale.
fn versions(cx: &Context) -> Value {
    let mut definition = cx.widgets(any_schema());
    let version = |name: &str, served: bool, storage: bool| {
        json!({
            "name": name, "served": served, "storage": storage,
            "schema": { "openAPIV3Schema": any_schema() },
        })
    };
    let mut stored = version("v1", true, true);
    stored["subresources"] = json!({
        "status": {},
        "scale": { "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size" },
    });
    definition["spec"]["versions"] =
        json!([version("v1beta1", true, false), version("v2alpha1", false, false), stored]);
    definition["spec"]["names"]["shortNames"] = json!(["wd"]);
    definition
}

async fn a_definition_shows_in_aggregated_discovery(cx: Context) -> Result<()> {
    cx.define(&versions(&cx)).await?;
    let group = cx.group();
    let find = |groups: &Value| {
        let items = groups["items"].as_array().into_iter().flatten();
        items.into_iter().find(|item| text(item, "/metadata/name") == group).cloned()
    };
    // Upstream takes up one version after the other.
    let listed = |answer: &Answer| {
        let found = answer.json().ok().and_then(|groups| find(&groups));
        found.is_some_and(|group| group["versions"].as_array().is_some_and(|all| all.len() == 2))
    };
    let request = Request::get("/apis").accept(AGGREGATED);
    let groups = cx.endpoint.poll(&request, PATIENCE, listed).await?.json()?;
    let verbs =
        json!(["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]);
    let kind = |version: &str| json!({ "group": group, "version": version, "kind": "Widget" });
    let part = json!(["get", "patch", "update"]);
    let scale = json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" });
    same(
        "the group",
        &find(&groups).context("no group")?["versions"],
        json!([
            {
                "version": "v1",
                "resources": [{
                    "resource": "widgets",
                    "responseKind": kind("v1"),
                    "scope": "Namespaced",
                    "singularResource": "widget",
                    "verbs": verbs,
                    "shortNames": ["wd"],
                    "subresources": [
                        { "subresource": "status", "responseKind": kind("v1"), "verbs": part },
                        { "subresource": "scale", "responseKind": scale, "verbs": part },
                    ],
                }],
                "freshness": "Current",
            },
            {
                "version": "v1beta1",
                "resources": [{
                    "resource": "widgets",
                    "responseKind": kind("v1beta1"),
                    "scope": "Namespaced",
                    "singularResource": "widget",
                    "verbs": verbs,
                    "shortNames": ["wd"],
                }],
                "freshness": "Current",
            },
        ]),
    )?;
    let hidden = cx.send(Request::get(format!("/apis/{group}/v2alpha1"))).await?;
    ensure!(hidden.status == 404 && hidden.bytes == b"404 page not found\n", "{hidden}");
    Ok(())
}

async fn a_definition_that_goes_is_discovered_no_longer(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let group = cx.group();
    let discovery = [format!("/apis/{group}"), format!("/apis/{group}/v1")];
    for path in &discovery {
        cx.endpoint.poll(&Request::get(path), PATIENCE, |answer| answer.status == 200).await?;
    }
    let key = format!("apis/{group}/v1");
    let has = |answer: &Answer| answer.json().is_ok_and(|index| index["paths"].get(&key).is_some());
    let index = Request::get("/openapi/v3");
    cx.endpoint.poll(&index, PATIENCE, has).await?;

    let name = format!("{}/widgets.{group}", crd::PATH);
    expect(&cx.send(Request::delete(name)).await?, 200)?;
    for path in &discovery {
        cx.endpoint.poll(&Request::get(path), PATIENCE, |answer| answer.status == 404).await?;
    }
    cx.endpoint.poll(&index, PATIENCE, |answer| !has(answer)).await?;
    Ok(())
}

async fn openapi_v3_is_cached_by_etag(cx: Context) -> Result<()> {
    let path = "/openapi/v3/apis/batch/v1";
    let first = cx.send(Request::get(path)).await?;
    same("content type", &json!(first.content_type()), json!("application/json"))?;
    same("vary", &json!(first.header("vary")), json!("Accept"))?;
    let etag = first.header("etag");
    let index = cx.get("/openapi/v3").await?;
    let url = text(&index["paths"]["apis/batch/v1"], "/serverRelativeURL");
    ensure!(url == format!("{path}?hash={}", etag.trim_matches('"')), "{etag} is not in {url}");
    let again = cx.send(Request::get(path).header(IF_NONE_MATCH, etag)).await?;
    ensure!(again.status == 304 && again.bytes.is_empty(), "{again}");
    let other = cx.send(Request::get(path).header(IF_NONE_MATCH, "\"other\"")).await?;
    ensure!(other.bytes == first.bytes, "another document");
    Ok(())
}

async fn openapi_has_forms_and_documents_that_it_lacks(cx: Context) -> Result<()> {
    for path in ["/openapi/v2", "/openapi/v3/version"] {
        let answer = cx.send(Request::get(path).accept("text/html")).await?;
        ensure!(answer.status == 406 && answer.bytes.is_empty(), "{path}: {answer}");
        let answer = cx.send(Request::get(path).accept("*/*")).await?;
        same("content type", &json!(answer.content_type()), json!("application/json"))?;
    }
    for path in ["/openapi/v3/", "/openapi/v3/apis/nobody.example.com/v1"] {
        let answer = cx.send(Request::get(path)).await?;
        ensure!(answer.status == 404 && answer.bytes.is_empty(), "{path}: {answer}");
    }
    Ok(())
}

/// A schema with what is published differently from how it is written.
fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["maybe", "size"],
                "properties": {
                    "size": { "type": "integer", "default": 1, "minimum": 1 },
                    "port": { "x-kubernetes-int-or-string": true },
                    "maybe": { "type": "string", "nullable": true },
                    "free": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": true,
                        "properties": { "known": { "type": "string" } },
                    },
                    "choice": {
                        "type": "object",
                        "properties": { "a": { "type": "string" } },
                        "oneOf": [{ "required": ["a"] }],
                    },
                    "object": {
                        "type": "object",
                        "x-kubernetes-embedded-resource": true,
                        "properties": { "spec": { "type": "object" } },
                    },
                },
            },
        },
    })
}

/// The properties of `spec` in a published schema.
fn spec(schema: &Value) -> Result<&Value> {
    schema.pointer("/properties/spec/properties").context("no properties of spec")
}

/// The published schema of our widgets.
fn widget(schemas: &Value) -> Result<&Value> {
    let schemas = schemas.as_object().context("no schemas")?;
    let widget = schemas.iter().find(|(name, schema)| {
        name.ends_with(".v1.Widget")
            && schema.pointer("/properties/spec/properties/choice").is_some()
    });
    Ok(widget.context("no Widget")?.1)
}

async fn openapi_v3_adds_what_every_object_has(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(schema())).await?;
    let path = format!("/openapi/v3/apis/{}/v1", cx.group());
    let there = |answer: &Answer| answer.status == 200;
    let document = cx.endpoint.poll(&Request::get(path), PATIENCE, there).await?.json()?;
    let widget = widget(&document["components"]["schemas"])?;
    let fields = widget["properties"].as_object().context("no properties")?;
    ensure!(fields.keys().eq(["apiVersion", "kind", "metadata", "spec"]), "{:?}", fields.keys());
    let meta = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    same("metadata", &fields["metadata"]["allOf"], json!([{ "$ref": meta }]))?;
    let spec = spec(widget)?;
    same("size", &spec["size"], json!({ "type": "integer", "default": 1, "minimum": 1 }))?;
    same(
        "port",
        &spec["port"],
        json!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "x-kubernetes-int-or-string": true,
        }),
    )?;
    same("maybe", &spec["maybe"], json!({ "type": "string", "nullable": true }))?;
    same("choice", &spec["choice"]["oneOf"], json!([{ "required": ["a"] }]))?;
    let object = &spec["object"];
    same("required", &object["required"], json!(["kind", "apiVersion"]))?;
    same("embedded", &object["properties"]["metadata"]["allOf"], json!([{ "$ref": meta }]))
}

async fn openapi_v2_leaves_out_what_it_cannot_say(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(schema())).await?;
    let group: Vec<String> = cx.group().split('.').rev().map(str::to_owned).collect();
    let name = format!("{}.v1.Widget", group.join("."));
    let there = |answer: &Answer| {
        answer.json().is_ok_and(|document| document["definitions"].get(&name).is_some())
    };
    let document = cx.endpoint.poll(&Request::get("/openapi/v2"), PATIENCE, there).await?.json()?;
    let widget = &document["definitions"][&name];
    let required = widget.pointer("/properties/spec/required").context("no required")?;
    same("required", required, json!(["size"]))?;
    let spec = spec(widget)?;
    same("size", &spec["size"], json!({ "type": "integer", "minimum": 1 }))?;
    same("port", &spec["port"], json!({ "x-kubernetes-int-or-string": true }))?;
    same("maybe", &spec["maybe"], json!({}))?;
    same("free", &spec["free"], json!({ "x-kubernetes-preserve-unknown-fields": true }))?;
    same(
        "choice",
        &spec["choice"],
        json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
    )?;
    let meta = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    same("metadata", &widget["properties"]["metadata"]["$ref"], json!(meta))
}
