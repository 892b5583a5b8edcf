//! Structural schemas: how a definition's schema is judged, and how it judges, prunes and fills in.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Context, expect, same, scenarios, text};
use crate::crd;
use crate::endpoint::Request;

scenarios! { "crd_schema":
    a_schema_must_be_structural [C7],
    a_default_must_fit_its_schema [C7 C8],
    unknown_fields_are_pruned [C8],
    unknown_fields_are_reported [C8 U6],
    defaults_are_filled_in [C8],
    a_default_added_later_is_seen_by_readers [C8],
    a_null_is_kept_or_taken_for_absent [C8],
    values_are_validated_with_their_paths [C8],
    formats_are_validated [C8],
    sets_and_maps_hold_each_item_once [C8],
    an_int_or_string_is_either [C8],
    an_embedded_resource_has_metadata [C8],
}

/// A schema whose `spec` has these properties.
fn with_spec(properties: Value) -> Value {
    json!({
        "type": "object",
        "properties": { "spec": { "type": "object", "properties": properties } },
    })
}

async fn refused_schema(cx: &Context, schema: Value) -> Result<String> {
    let answer = cx.send(Request::post(crd::PATH, &cx.widgets(schema))).await?;
    let status = expect(&answer, 422)?;
    let start = format!(
        "CustomResourceDefinition.apiextensions.k8s.io \"widgets.{}\" is invalid: ",
        cx.group()
    );
    let message = text(&status, "/message");
    match message.strip_prefix(&start) {
        Some(cause) => Ok(cause.replace("spec.validation.openAPIV3Schema", "SCHEMA")),
        None => anyhow::bail!("{message} does not start with {start}"),
    }
}

async fn a_schema_must_be_structural(cx: Context) -> Result<()> {
    for (properties, expected) in [
        (
            json!({ "a": {} }),
            "SCHEMA.properties[spec].properties[a].type: Required value: must not be empty for \
             specified object fields",
        ),
        (
            json!({ "a": { "type": "array" } }),
            "SCHEMA.properties[spec].properties[a].items: Required value: must be specified",
        ),
        (
            json!({ "a": { "type": "string", "anyOf": [{ "type": "string" }] } }),
            "SCHEMA.properties[spec].properties[a].anyOf[0].type: Forbidden: must be empty to be \
             structural",
        ),
    ] {
        let cause = refused_schema(&cx, with_spec(properties)).await?;
        ensure!(cause == expected, "{cause:?} is not {expected:?}");
    }
    Ok(())
}

async fn a_default_must_fit_its_schema(cx: Context) -> Result<()> {
    let schema = with_spec(json!({ "a": { "type": "integer", "default": "one" } }));
    let cause = refused_schema(&cx, schema).await?;
    let expected = "SCHEMA.properties[spec].properties[a].default: Invalid value: \"string\":  in \
                    body must be of type integer: \"string\"";
    ensure!(cause == expected, "{cause:?} is not {expected:?}");
    Ok(())
}

async fn unknown_fields_are_pruned(cx: Context) -> Result<()> {
    let schema = with_spec(json!({
        "known": { "type": "object", "properties": { "a": { "type": "integer" } } },
        "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    }));
    cx.define(&cx.widgets(schema)).await?;
    let spec = json!({ "known": { "a": 1, "b": 2 }, "open": { "c": { "d": 3 } }, "other": 4 });
    let mut widget = cx.widget("one", spec);
    widget["top"] = json!("level");
    let created = cx.create(&cx.widget_path(), &widget).await?;
    same("spec", &created["spec"], json!({ "known": { "a": 1 }, "open": { "c": { "d": 3 } } }))?;
    same("top", &created["top"], Value::Null)
}

async fn unknown_fields_are_reported(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(with_spec(json!({ "a": { "type": "integer" } })))).await?;
    let widget = cx.widget("one", json!({ "a": 1, "b": 2 }));
    let answer =
        cx.send(Request::post(format!("{}?dryRun=All", cx.widget_path()), &widget)).await?;
    expect(&answer, 201)?;
    same("warnings", &json!(answer.warnings()), json!(["unknown field \"spec.b\""]))?;
    let strict = format!("{}?fieldValidation=Strict", cx.widget_path());
    let body = widget.to_string().replace("\"a\":1", "\"a\":1,\"a\":2");
    let answer = cx.send(Request::post(strict, &json!({})).body(body)).await?;
    let message = "strict decoding error: duplicate field \"spec.a\", unknown field \"spec.b\"";
    let status = expect(&answer, 400)?;
    ensure!(text(&status, "/message").ends_with(message), "{}", status["message"]);
    Ok(())
}

async fn defaults_are_filled_in(cx: Context) -> Result<()> {
    let schema = with_spec(json!({
        "count": { "type": "integer", "default": 3 },
        "nested": { "type": "object", "default": {}, "properties": {
            "inner": { "type": "string", "default": "x" },
        } },
        "absent": { "type": "object", "properties": {
            "inner": { "type": "string", "default": "x" },
        } },
        "items": { "type": "array", "items": { "type": "object", "properties": {
            "name": { "type": "string" }, "size": { "type": "integer", "default": 1 },
        } } },
    }));
    cx.define(&cx.widgets(schema)).await?;
    let spec = json!({ "items": [{ "name": "a" }, { "name": "b", "size": 2 }] });
    let created = cx.create(&cx.widget_path(), &cx.widget("one", spec)).await?;
    same(
        "spec",
        &created["spec"],
        json!({
            "items": [{ "name": "a", "size": 1 }, { "name": "b", "size": 2 }],
            "count": 3,
            "nested": { "inner": "x" },
        }),
    )?;
    // Nothing fills in what has no parent.
    let widget = json!({
        "apiVersion": format!("{}/v1", cx.group()), "kind": "Widget", "metadata": { "name": "two" },
    });
    let created = cx.create(&cx.widget_path(), &widget).await?;
    same("spec", &created["spec"], Value::Null)
}

async fn a_default_added_later_is_seen_by_readers(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(with_spec(json!({ "a": { "type": "integer" } })))).await?;
    let created = cx.create(&cx.widget_path(), &cx.widget("one", json!({}))).await?;
    let path = format!("{}/widgets.{}", crd::PATH, cx.group());
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/default";
    let patch = json!([{ "op": "add", "path": place, "value": 7 }]);
    expect(&cx.send(Request::json_patch(path, &patch)).await?, 200)?;
    let one = Request::get(format!("{}/one", cx.widget_path()));
    let filled = |answer: &crate::endpoint::Answer| {
        answer.json().is_ok_and(|widget| widget["spec"] == json!({ "a": 7 }))
    };
    let read = cx.endpoint.poll(&one, super::PATIENCE, filled).await?.json()?;
    // Only the reading changed, not the object.
    let version = created["metadata"]["resourceVersion"].clone();
    same("version", &read["metadata"]["resourceVersion"], version)
}

async fn a_null_is_kept_or_taken_for_absent(cx: Context) -> Result<()> {
    let schema = with_spec(json!({
        "nullable": { "type": "string", "nullable": true },
        "defaulted": { "type": "string", "default": "x" },
        "plain": { "type": "string" },
    }));
    cx.define(&cx.widgets(schema)).await?;
    let spec = json!({ "nullable": null, "defaulted": null, "plain": null });
    let created = cx.create(&cx.widget_path(), &cx.widget("one", spec)).await?;
    same("spec", &created["spec"], json!({ "nullable": null, "defaulted": "x" }))
}

/// Posts a widget that must be refused, and gives the causes as `[field, message]`.
async fn causes(cx: &Context, spec: Value) -> Result<Value> {
    let answer = cx.send(Request::post(cx.widget_path(), &cx.widget("one", spec))).await?;
    let status = expect(&answer, 422)?;
    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
    Ok(causes.iter().map(|cause| json!([cause["field"], cause["message"]])).collect())
}

async fn values_are_validated_with_their_paths(cx: Context) -> Result<()> {
    let schema = with_spec(json!({
        "count": { "type": "integer", "minimum": 1, "maximum": 5 },
        "name": { "type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$" },
        "color": { "type": "string", "enum": ["red", "blue"] },
        "list": { "type": "array", "maxItems": 1, "items": { "type": "integer", "multipleOf": 2 } },
        "inner": { "type": "object", "required": ["must"], "properties": {
            "must": { "type": "boolean" },
        } },
        "small": { "type": "integer", "format": "int32" },
        "above": { "type": "integer", "minimum": 1, "exclusiveMinimum": true },
        "some": {
            "type": "object", "minProperties": 1, "maxProperties": 2,
            "additionalProperties": { "type": "integer" },
        },
        "either": { "type": "string", "not": { "enum": ["neither"] } },
    }));
    cx.define(&cx.widgets(schema)).await?;
    for (spec, field, message) in [
        (
            json!({ "small": 3_000_000_000_i64 }),
            // Upstream's own slip: it names no field.
            "<nil>",
            "Invalid value: \"\": Checked value must be of type integer with format int32 in \
             spec.small",
        ),
        (
            json!({ "above": 1 }),
            "spec.above",
            "Invalid value: 1: spec.above in body should be greater than 1",
        ),
        (
            json!({ "some": {} }),
            "spec.some",
            "Invalid value: 0: spec.some in body should have at least 1 properties",
        ),
        (
            json!({ "some": { "a": 1, "b": 2, "c": 3 } }),
            "spec.some",
            "Too many: 3: must have at most 2 items",
        ),
        (
            json!({ "some": { "a": "b" } }),
            "spec.some.a",
            "Invalid value: \"string\": spec.some.a in body must be of type integer: \"string\"",
        ),
        (
            json!({ "either": "neither" }),
            "<nil>",
            "Invalid value: \"\": \"spec.either\" must not validate the schema (not)",
        ),
        (
            json!({ "count": 0 }),
            "spec.count",
            "Invalid value: 0: spec.count in body should be greater than or equal to 1",
        ),
        (
            json!({ "count": 6 }),
            "spec.count",
            "Invalid value: 6: spec.count in body should be less than or equal to 5",
        ),
        (
            json!({ "count": "many" }),
            "spec.count",
            "Invalid value: \"string\": spec.count in body must be of type integer: \"string\"",
        ),
        (
            json!({ "name": "a" }),
            "spec.name",
            "Invalid value: \"a\": spec.name in body should be at least 2 chars long",
        ),
        (json!({ "name": "abcde" }), "spec.name", "Too long: may not be more than 4 bytes"),
        (
            json!({ "name": "A1" }),
            "spec.name",
            "Invalid value: \"A1\": spec.name in body should match '^[a-z]+$'",
        ),
        (
            json!({ "color": "green" }),
            "spec.color",
            "Unsupported value: \"green\": supported values: \"red\", \"blue\"",
        ),
        (json!({ "list": [2, 4] }), "spec.list", "Too many: 2: must have at most 1 item"),
        (
            json!({ "list": [3] }),
            "spec.list[0]",
            "Invalid value: 3: spec.list[0] in body should be a multiple of 2",
        ),
        (json!({ "inner": {} }), "spec.inner.must", "Required value"),
    ] {
        same(&spec.to_string(), &causes(&cx, spec.clone()).await?, json!([[field, message]]))?;
    }
    Ok(())
}

async fn formats_are_validated(cx: Context) -> Result<()> {
    let schema = with_spec(json!({
        "when": { "type": "string", "format": "date-time" },
        "address": { "type": "string", "format": "ipv4" },
        "bytes": { "type": "string", "format": "byte" },
        "id": { "type": "string", "format": "uuid" },
        "range": { "type": "string", "format": "cidr" },
        "six": { "type": "string", "format": "ipv6" },
        "day": { "type": "string", "format": "date" },
        "host": { "type": "string", "format": "hostname" },
        "mail": { "type": "string", "format": "email" },
        "while": { "type": "string", "format": "duration" },
        "free": { "type": "string", "format": "nobody-knows" },
    }));
    cx.define(&cx.widgets(schema)).await?;
    let good = json!({
        "when": "2024-02-29T12:00:00Z",
        "address": "10.0.0.1",
        "bytes": "aGVsbG8=",
        "id": "123e4567-e89b-12d3-a456-426614174000",
        "range": "10.0.0.0/8",
        "six": "::1",
        "day": "2024-02-29",
        "host": "a.example.com",
        "mail": "a@example.com",
        "while": "1h30m",
        "free": "anything",
    });
    let path = format!("{}?dryRun=All", cx.widget_path());
    expect(&cx.send(Request::post(path, &cx.widget("one", good))).await?, 201)?;
    for (field, value, kind) in [
        ("when", "yesterday", "date-time"),
        ("address", "10.0.0.256", "ipv4"),
        ("bytes", "not base64!", "byte"),
        ("id", "123", "uuid"),
        ("range", "10.0.0.0", "cidr"),
        ("six", "10.0.0.1", "ipv6"),
        ("day", "2023-02-29", "date"),
        ("host", "a_b", "hostname"),
        ("mail", "nobody", "email"),
        ("while", "some time", "duration"),
    ] {
        let path = format!("spec.{field}");
        let message = format!(
            "Invalid value: \"{value}\": {path} in body must be of type {kind}: \"{value}\""
        );
        same(kind, &causes(&cx, json!({ field: value })).await?, json!([[path, message]]))?;
    }
    Ok(())
}

async fn sets_and_maps_hold_each_item_once(cx: Context) -> Result<()> {
    let schema = with_spec(json!({
        "set": {
            "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" },
        },
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": { "type": "object", "required": ["name"], "properties": {
                "name": { "type": "string" }, "size": { "type": "integer" },
            } },
        },
    }));
    cx.define(&cx.widgets(schema)).await?;
    same(
        "set",
        &causes(&cx, json!({ "set": ["a", "b", "a"] })).await?,
        json!([["spec.set[2]", "Duplicate value: \"a\""],]),
    )?;
    let twice = json!({ "map": [{ "name": "a", "size": 1 }, { "name": "a", "size": 2 }] });
    same(
        "map",
        &causes(&cx, twice).await?,
        json!([["spec.map[1]", "Duplicate value: {\"name\":\"a\"}"],]),
    )
}

async fn an_int_or_string_is_either(cx: Context) -> Result<()> {
    let schema = with_spec(json!({ "port": { "x-kubernetes-int-or-string": true } }));
    cx.define(&cx.widgets(schema)).await?;
    for (name, port) in [("number", json!(80)), ("name", json!("http"))] {
        let widget = cx.widget(name, json!({ "port": port }));
        let created = cx.create(&cx.widget_path(), &widget).await?;
        same("port", &created["spec"]["port"], port)?;
    }
    same(
        "port",
        &causes(&cx, json!({ "port": true })).await?,
        json!([[
            "spec.port",
            "Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\"",
        ]]),
    )
}

async fn an_embedded_resource_has_metadata(cx: Context) -> Result<()> {
    let schema = with_spec(json!({ "template": {
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    } }));
    cx.define(&cx.widgets(schema)).await?;
    let template = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "pod", "unknown": 1 }, "any": 1,
    });
    let created =
        cx.create(&cx.widget_path(), &cx.widget("good", json!({ "template": template }))).await?;
    same(
        "template",
        &created["spec"]["template"],
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "pod" }, "any": 1,
        }),
    )?;
    let anonymous = json!({ "template": { "metadata": {} } });
    let found = causes(&cx, anonymous).await?;
    same(
        "causes",
        &found,
        json!([
            ["spec.template.apiVersion", "Required value"],
            ["spec.template.kind", "Required value"],
        ]),
    )
}
