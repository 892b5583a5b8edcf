//! Other forms of an object: tables, and metadata alone.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Context, OURS, config_map, expect, refused, same, scenarios, text};
use crate::endpoint::Request;

scenarios! { "wire_forms":
    a_table_has_columns_and_cells [W10],
    a_table_includes_what_is_asked_for [W10],
    a_watched_table_names_its_columns_once [W10],
    a_table_comes_in_an_older_version [W10],
    what_has_no_table_is_not_acceptable [W10],
    metadata_alone_can_be_read [W11],
    metadata_alone_can_be_watched [W11],
    metadata_alone_answers_a_patch [W11],
    metadata_alone_answers_a_deletion [W11],
    metadata_of_a_list_must_be_asked_for_as_a_list [W11],
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

async fn a_table_has_columns_and_cells(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let target = cx.core(&format!("configmaps?{OURS}"));
    let answer = cx.send(Request::get(target).accept(TABLE)).await?;
    same("content type", &json!(answer.content_type()), json!("application/json"))?;
    let table = expect(&answer, 200)?;
    same("kind", &table["kind"], json!("Table"))?;
    same("apiVersion", &table["apiVersion"], json!("meta.k8s.io/v1"))?;
    let columns = table["columnDefinitions"].as_array().context("no columns")?;
    let column = |column: &Value| json!([column["name"], column["type"], column["format"]]);
    same(
        "columns",
        &columns.iter().map(column).collect(),
        json!([["Name", "string", "name"], ["Data", "string", ""], ["Age", "string", ""],]),
    )?;
    let cells = table["rows"][0]["cells"].as_array().context("no cells")?;
    same("name and data", &json!(cells[..2]), json!(["one", 1]))?;
    let age = cells[2].as_str().context("the age is no text")?;
    ensure!(age.ends_with('s') && age.trim_end_matches('s').parse::<u8>().is_ok(), "age {age:?}");
    Ok(())
}

async fn a_table_includes_what_is_asked_for(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let row = async |include: &str| -> Result<Value> {
        let target = format!("{}{include}", cx.core("configmaps/one"));
        let table = expect(&cx.send(Request::get(target).accept(TABLE)).await?, 200)?;
        Ok(table["rows"][0]["object"].clone())
    };
    for metadata in ["", "?includeObject=Metadata"] {
        let object = row(metadata).await?;
        same("kind", &object["kind"], json!("PartialObjectMetadata"))?;
        same("name", &object["metadata"]["name"], json!("one"))?;
        same("data", &object["data"], Value::Null)?;
    }
    let object = row("?includeObject=Object").await?;
    same("kind", &object["kind"], json!("ConfigMap"))?;
    same("data", &object["data"], json!({ "key": "value" }))?;
    same("object", &row("?includeObject=None").await?, Value::Null)?;

    let target = cx.core("configmaps/one?includeObject=Some");
    let message = "Unable to convert to Table as requested: includeObject: Invalid value: \"Some\": \
                   must be 'Metadata', 'Object', 'None', or empty";
    refused(&cx.send(Request::get(target).accept(TABLE)).await?, 400, "BadRequest", message)?;
    Ok(())
}

async fn a_watched_table_names_its_columns_once(cx: Context) -> Result<()> {
    let target = cx.core(&format!("configmaps?watch=1&resourceVersion=0&{OURS}"));
    let request = Request::get(target).accept(TABLE);
    cx.config_map("one").await?;
    let mut watch = cx.endpoint.watch(&request).await?;
    let first = watch.event().await?;
    same("type", &first["type"], json!("ADDED"))?;
    same("kind", &first["object"]["kind"], json!("Table"))?;
    let columns = first["object"]["columnDefinitions"].as_array().context("no columns")?;
    ensure!(columns.len() == 3, "columns are {columns:?}");
    cx.config_map("two").await?;
    let mut second = watch.event().await?;
    // Seen late, the first object may come once more, as the start of the stream.
    while text(&second, "/object/rows/0/cells/0") != "two" {
        second = watch.event().await?;
    }
    same("columns", &second["object"]["columnDefinitions"], Value::Null)
}

async fn a_table_comes_in_an_older_version(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let older = TABLE.replace("v=v1", "v=v1beta1");
    let get = |accept: &str| Request::get(cx.core("configmaps/one")).accept(accept);
    let table = expect(&cx.send(get(&older)).await?, 200)?;
    same("version", &table["apiVersion"], json!("meta.k8s.io/v1beta1"))?;
    // What kubectl asks for: a table if there is one, and otherwise what there is.
    let either = format!("{TABLE},{older},application/json");
    let table = expect(&cx.send(get(&either)).await?, 200)?;
    same("version", &table["apiVersion"], json!("meta.k8s.io/v1"))?;
    let answer = cx.send(get("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io"));
    ensure!(answer.await?.status == 406, "a table came in protobuf");
    Ok(())
}

async fn what_has_no_table_is_not_acceptable(cx: Context) -> Result<()> {
    let review = json!({
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": { "nonResourceAttributes": { "path": "/", "verb": "get" } },
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = cx.send(Request::post(path, &review).accept(TABLE)).await?;
    let message = "only the following media types are accepted: application/json, \
                   application/yaml, application/vnd.kubernetes.protobuf";
    refused(&answer, 406, "NotAcceptable", message)?;
    Ok(())
}

async fn metadata_alone_can_be_read(cx: Context) -> Result<()> {
    let full = cx.config_map("one").await?;
    let answer = cx.send(Request::get(cx.core("configmaps/one")).accept(METADATA)).await?;
    same(
        "object",
        &expect(&answer, 200)?,
        json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": full["metadata"],
        }),
    )?;
    let answer = cx.send(Request::get(cx.core("configmaps")).accept(METADATA_LIST)).await?;
    let list = expect(&answer, 200)?;
    same("kind", &list["kind"], json!("PartialObjectMetadataList"))?;
    let ours = json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": full["metadata"],
    });
    let items = list["items"].as_array().context("no items")?;
    ensure!(items.contains(&ours), "no {ours} in {list}");
    // Where nothing is, there is no list.
    let nothing = cx.core("configmaps?fieldSelector=metadata.name%3Dnone");
    let answer = cx.send(Request::get(nothing).accept(METADATA_LIST)).await?;
    let list = expect(&answer, 200)?;
    same("items", &json!(list.get("items")), Value::Null)?;
    ensure!(list.get("items").is_some(), "no items in {list}");
    Ok(())
}

async fn metadata_alone_can_be_watched(cx: Context) -> Result<()> {
    let created = cx.config_map("one").await?;
    let from = text(&created, "/metadata/resourceVersion");
    let target = cx.core(&format!("configmaps?watch=1&resourceVersion={from}&{OURS}"));
    let mut watch = cx.endpoint.watch(&Request::get(target).accept(METADATA)).await?;
    let two = cx.config_map("two").await?;
    same(
        "event",
        &watch.event().await?,
        json!({
            "type": "ADDED",
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": two["metadata"],
            },
        }),
    )
}

async fn metadata_alone_answers_a_patch(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let patch = json!({ "metadata": { "labels": { "a": "b" } }, "data": { "more": "data" } });
    let request = Request::merge_patch(cx.core("configmaps/one"), &patch).accept(METADATA);
    let answer = expect(&cx.send(request).await?, 200)?;
    same("kind", &answer["kind"], json!("PartialObjectMetadata"))?;
    same("labels", &answer["metadata"]["labels"], json!({ "a": "b" }))?;
    same("data", &answer["data"], Value::Null)?;
    // What is not shown is done all the same.
    let stored = cx.get(&cx.core("configmaps/one")).await?;
    let mut expected = config_map("one")["data"].clone();
    expected["more"] = json!("data");
    same("data", &stored["data"], expected)
}

async fn metadata_alone_answers_a_deletion(cx: Context) -> Result<()> {
    let mut held = config_map("one");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cx.create(&cx.core("configmaps"), &held).await?;
    let delete = || Request::delete(cx.core("configmaps/one")).accept(METADATA);
    let dying = expect(&cx.send(delete()).await?, 200)?;
    same("kind", &dying["kind"], json!("PartialObjectMetadata"))?;
    ensure!(!text(&dying, "/metadata/deletionTimestamp").is_empty(), "{dying}");
    same("data", &dying["data"], Value::Null)?;
    cx.release(&cx.core("configmaps/one")).await
}

async fn metadata_of_a_list_must_be_asked_for_as_a_list(cx: Context) -> Result<()> {
    cx.config_map("one").await?;
    let answer = cx.send(Request::get(cx.core("configmaps")).accept(METADATA)).await?;
    expect(&answer, 406)?;
    let answer = cx.send(Request::get(cx.core("configmaps/one")).accept(METADATA_LIST)).await?;
    expect(&answer, 406)?;
    Ok(())
}
