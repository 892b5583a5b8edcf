//! Protobuf on the wire: built-in kinds in and out, custom resources never.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{Context, any_schema, config_map, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "protobuf":
    a_protobuf_body_is_as_good_as_json [W8],
    a_refusal_comes_in_protobuf [W8],
    a_list_comes_in_protobuf [W8],
    events_come_in_frames [W8],
    custom_resources_have_no_protobuf [W8],
    metadata_of_anything_comes_in_protobuf [W8 W11],
    lists_and_events_of_metadata_come_in_protobuf [W8 W11],
    options_of_a_deletion_come_in_protobuf [W8 U9],
}

const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// What every object begins with.
const MAGIC: &[u8] = b"k8s\0";

/// A field of bytes, shorter than 128.
fn field(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let length = u8::try_from(bytes.len()).ok().filter(|length| *length < 128);
    let mut field = vec![number << 3 | 2, length.expect("a short field")];
    field.extend_from_slice(bytes);
    field
}

/// A number of seven bits a byte, and what follows it.
fn varint(bytes: &[u8]) -> Result<(u64, &[u8])> {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).context("a number does not end")?;
    let number = bytes[..=end].iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f));
    Ok((number, &bytes[end + 1..]))
}

/// The first field of bytes with this number.
fn read(mut bytes: &[u8], wanted: u64) -> Result<&[u8]> {
    while !bytes.is_empty() {
        let (tag, rest) = varint(bytes)?;
        let (length, rest) = varint(rest)?;
        let length = if tag & 7 == 2 { usize::try_from(length)? } else { 0 };
        ensure!(rest.len() >= length, "a field is cut off");
        let (value, rest) = rest.split_at(length);
        if tag >> 3 == wanted && tag & 7 == 2 {
            return Ok(value);
        }
        bytes = rest;
    }
    anyhow::bail!("there is no field {wanted}")
}

/// The bytes of an object, once it is known to be of this kind.
fn object<'a>(bytes: &'a [u8], api_version: &str, kind: &str) -> Result<&'a [u8]> {
    let unknown = bytes.strip_prefix(MAGIC).context("the magic number is missing")?;
    let types = read(unknown, 1)?;
    ensure!(read(types, 1)? == api_version.as_bytes(), "the version is not {api_version}");
    ensure!(read(types, 2)? == kind.as_bytes(), "the kind is not {kind}");
    read(unknown, 2)
}

/// The body of an answer that is an object of this kind.
fn body<'a>(answer: &'a Answer, status: u16, api_version: &str, kind: &str) -> Result<&'a [u8]> {
    ensure!(answer.status == status, "expected {status}, got {answer}");
    same("content type", &json!(answer.content_type()), json!(MEDIA_TYPE))?;
    object(&answer.bytes, api_version, kind)
}

/// The name in the metadata of an object.
fn name(object: &[u8]) -> Result<&str> {
    Ok(std::str::from_utf8(read(read(object, 1)?, 1)?)?)
}

async fn a_protobuf_body_is_as_good_as_json(cx: Context) -> Result<()> {
    let entry = [field(1, "key"), field(2, "value")].concat();
    let map = [field(1, field(1, "one")), field(2, entry)].concat();
    let types = [field(1, "v1"), field(2, "ConfigMap")].concat();
    let sent = [MAGIC.to_vec(), field(1, types), field(2, map)].concat();
    let request = Request::new(http::Method::POST, cx.core("configmaps"))
        .body(sent)
        .content_type(MEDIA_TYPE)
        .accept(MEDIA_TYPE);
    let answer = cx.send(request).await?;
    ensure!(name(body(&answer, 201, "v1", "ConfigMap")?)? == "one", "another name");
    let stored = cx.get(&cx.core("configmaps/one")).await?;
    same("data", &stored["data"], json!({ "key": "value" }))?;
    // Who takes either gets what is named first.
    let accept = format!("{MEDIA_TYPE}, application/json");
    let get = Request::get(cx.core("configmaps/one")).accept(&accept);
    body(&cx.send(get).await?, 200, "v1", "ConfigMap")?;
    Ok(())
}

async fn a_refusal_comes_in_protobuf(cx: Context) -> Result<()> {
    let get = Request::get(cx.core("configmaps/absent")).accept(MEDIA_TYPE);
    let answer = cx.send(get).await?;
    let status = body(&answer, 404, "v1", "Status")?;
    ensure!(read(status, 2)? == b"Failure", "the status is no failure");
    ensure!(read(status, 3)? == b"configmaps \"absent\" not found", "another message");
    ensure!(read(status, 4)? == b"NotFound", "another reason");
    Ok(())
}

async fn a_list_comes_in_protobuf(cx: Context) -> Result<()> {
    cx.create(&cx.core("secrets"), &json!({ "metadata": { "name": "one" } })).await?;
    let answer = cx.send(Request::get(cx.core("secrets")).accept(MEDIA_TYPE)).await?;
    let list = body(&answer, 200, "v1", "SecretList")?;
    ensure!(name(read(list, 2)?)? == "one", "another name");
    Ok(())
}

async fn events_come_in_frames(cx: Context) -> Result<()> {
    cx.create(&cx.core("secrets"), &json!({ "metadata": { "name": "one" } })).await?;
    let target = cx.core("secrets?watch=1&resourceVersion=0&timeoutSeconds=1");
    let answer = cx.send(Request::get(target).accept(MEDIA_TYPE)).await?;
    same(
        "content type",
        &json!(answer.content_type()),
        json!(format!("{MEDIA_TYPE};stream=watch")),
    )?;
    let (length, rest) = answer.bytes.split_first_chunk::<4>().context("there is no frame")?;
    let frame = rest.get(..u32::from_be_bytes(*length) as usize).context("a frame is cut off")?;
    ensure!(read(frame, 1)? == b"ADDED", "another event");
    let secret = object(read(read(frame, 2)?, 1)?, "v1", "Secret")?;
    ensure!(name(secret)? == "one", "another name");
    Ok(())
}

async fn custom_resources_have_no_protobuf(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let collection = cx.widget_path();
    cx.create(&collection, &cx.widget("one", json!({}))).await?;
    let get = |accept: &str| Request::get(format!("{collection}/one")).accept(accept);
    ensure!(cx.send(get(MEDIA_TYPE)).await?.status == 406, "protobuf is acceptable");
    let either = format!("{MEDIA_TYPE},application/json");
    let answer = cx.send(get(&either)).await?;
    same("content type", &json!(answer.content_type()), json!("application/json"))?;
    Ok(())
}

async fn metadata_of_anything_comes_in_protobuf(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    cx.create(&cx.widget_path(), &cx.widget("one", json!({}))).await?;
    cx.create(&cx.core("configmaps"), &config_map("one")).await?;
    let accept = format!("{MEDIA_TYPE};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    for path in [cx.core("configmaps/one"), format!("{}/one", cx.widget_path())] {
        let answer = cx.send(Request::get(path).accept(&accept)).await?;
        ensure!(answer.status == 200, "{answer}");
        let object = object(&answer.bytes, "meta.k8s.io/v1", "PartialObjectMetadata")?;
        ensure!(name(object)? == "one", "another name");
    }
    Ok(())
}

async fn lists_and_events_of_metadata_come_in_protobuf(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    cx.create(&cx.widget_path(), &cx.widget("one", json!({}))).await?;
    let accept = |kind: &str| format!("{MEDIA_TYPE};as={kind};g=meta.k8s.io;v=v1");
    let list = Request::get(cx.widget_path()).accept(&accept("PartialObjectMetadataList"));
    let answer = cx.send(list).await?;
    let list = object(&answer.bytes, "meta.k8s.io/v1", "PartialObjectMetadataList")?;
    ensure!(name(read(list, 2)?)? == "one", "another name");
    let target = format!("{}?watch=1&resourceVersion=0&timeoutSeconds=1", cx.widget_path());
    let answer = cx.send(Request::get(target).accept(&accept("PartialObjectMetadata"))).await?;
    let (length, rest) = answer.bytes.split_first_chunk::<4>().context("there is no frame")?;
    let frame = rest.get(..u32::from_be_bytes(*length) as usize).context("a frame is cut off")?;
    ensure!(read(frame, 1)? == b"ADDED", "another event");
    let metadata = object(read(read(frame, 2)?, 1)?, "meta.k8s.io/v1", "PartialObjectMetadata")?;
    ensure!(name(metadata)? == "one", "another name");
    Ok(())
}

async fn options_of_a_deletion_come_in_protobuf(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    cx.create(&cx.widget_path(), &cx.widget("one", json!({}))).await?;
    cx.create(&cx.core("configmaps"), &config_map("one")).await?;
    let types = [field(1, "v1"), field(2, "DeleteOptions")].concat();
    // A precondition that does not hold.
    let options = field(2, field(1, "other"));
    let sent = [MAGIC.to_vec(), field(1, types), field(2, options)].concat();
    for path in [cx.core("configmaps/one"), format!("{}/one", cx.widget_path())] {
        let request = Request::delete(path).body(sent.clone()).content_type(MEDIA_TYPE);
        let answer = cx.send(request).await?;
        ensure!(answer.status == 409, "{answer}");
        let message = text(&answer.json()?, "/message").to_owned();
        ensure!(message.contains("the UID in the precondition (other)"), "{message}");
    }
    Ok(())
}
