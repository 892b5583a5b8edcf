//! Protobuf on the wire: built-in kinds in and out, of custom resources only what is common to
//! all kinds. And CBOR, which is not spoken.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{Context, any_schema, config_map, names, refused, same, scenarios, text};
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
    options_of_a_deletion_are_of_any_version [W8 U9],
    a_table_has_no_protobuf [W8 W10],
    what_is_said_about_custom_resources_comes_in_protobuf [W8],
    events_of_custom_resources_have_no_protobuf [W8],
    bookmarks_and_definitions_come_in_frames [W8],
    documents_come_in_protobuf [W6 W8],
    discovery_comes_in_protobuf [W8],
    cbor_is_not_spoken [W9],
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

/// The events of a watch, each with its type and its object.
fn events(mut bytes: &[u8]) -> Result<impl Iterator<Item = (&[u8], &[u8])>> {
    let mut events = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let (frame, rest) = rest.split_at_checked(length).context("a frame is cut off")?;
        events.push((read(frame, 1)?, read(read(frame, 2)?, 1)?));
        bytes = rest;
    }
    Ok(events.into_iter())
}

/// An object in its envelope.
fn sealed(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let types = [field(1, api_version), field(2, kind)].concat();
    [MAGIC.to_vec(), field(1, types), field(2, object)].concat()
}

async fn a_protobuf_body_is_as_good_as_json(cx: Context) -> Result<()> {
    let entry = [field(1, "key"), field(2, "value")].concat();
    let map = [field(1, field(1, "one")), field(2, entry)].concat();
    let sent = sealed("v1", "ConfigMap", &map);
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
    let (kind, secret) = events(&answer.bytes)?.next().context("there is no event")?;
    ensure!(kind == b"ADDED", "another event");
    ensure!(name(object(secret, "v1", "Secret")?)? == "one", "another name");
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
    // The older version of this list has other numbers.
    let older = accept("PartialObjectMetadataList").replace("v=v1", "v=v1beta1");
    let answer = cx.send(Request::get(cx.widget_path()).accept(&older)).await?;
    let list = object(&answer.bytes, "meta.k8s.io/v1beta1", "PartialObjectMetadataList")?;
    ensure!(name(read(list, 1)?)? == "one", "another name");
    ensure!(!read(read(list, 2)?, 2)?.is_empty(), "the list has no version");
    let target = format!("{}?watch=1&resourceVersion=0&timeoutSeconds=1", cx.widget_path());
    let answer = cx.send(Request::get(target).accept(&accept("PartialObjectMetadata"))).await?;
    let (kind, metadata) = events(&answer.bytes)?.next().context("there is no event")?;
    ensure!(kind == b"ADDED", "another event");
    let metadata = object(metadata, "meta.k8s.io/v1", "PartialObjectMetadata")?;
    ensure!(name(metadata)? == "one", "another name");
    Ok(())
}

async fn options_of_a_deletion_come_in_protobuf(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    cx.create(&cx.widget_path(), &cx.widget("one", json!({}))).await?;
    cx.create(&cx.core("configmaps"), &config_map("one")).await?;
    // A precondition that does not hold.
    let sent = sealed("v1", "DeleteOptions", &field(2, field(1, "other")));
    for path in [cx.core("configmaps/one"), format!("{}/one", cx.widget_path())] {
        let request = Request::delete(path).body(sent.clone()).content_type(MEDIA_TYPE);
        let answer = cx.send(request).await?;
        ensure!(answer.status == 409, "{answer}");
        let message = text(&answer.json()?, "/message").to_owned();
        ensure!(message.contains("the UID in the precondition (other)"), "{message}");
    }
    Ok(())
}

async fn options_of_a_deletion_are_of_any_version(cx: Context) -> Result<()> {
    cx.create(&cx.core("configmaps"), &config_map("one")).await?;
    let delete = |body: Vec<u8>| {
        Request::delete(cx.core("configmaps/one")).body(body).content_type(MEDIA_TYPE)
    };
    let other = field(2, field(1, "other"));
    for api_version in ["apps/v1", "meta.k8s.io/v1", "policy/v1", "nobody.example.com/v1"] {
        let answer = cx.send(delete(sealed(api_version, "DeleteOptions", &other))).await?;
        ensure!(answer.status == 409, "{api_version}: {answer}");
    }
    let scheme = "in scheme \"pkg/runtime/scheme.go:111\"";
    for (api_version, kind) in [("v1", "Pod"), ("v1", "ListOptions"), ("a.example.com/v1", "Foo")] {
        let answer = cx.send(delete(sealed(api_version, kind, b"\x0f"))).await?;
        let message =
            format!("no kind \"{kind}\" is registered for version \"{api_version}\" {scheme}");
        refused(&answer, 400, "BadRequest", &message)?;
    }
    Ok(())
}

const NOT_ACCEPTABLE: &str = "only the following media types are accepted: application/json, \
     application/yaml, application/vnd.kubernetes.protobuf";

async fn a_table_has_no_protobuf(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let table = |media: &str| format!("{media};as=Table;g=meta.k8s.io;v=v1");
    for path in [cx.core("configmaps"), cx.widget_path()] {
        for target in [path.clone(), format!("{path}?watch=1&timeoutSeconds=1")] {
            let answer = cx.send(Request::get(target).accept(&table(MEDIA_TYPE))).await?;
            refused(&answer, 406, "NotAcceptable", NOT_ACCEPTABLE)?;
        }
        let accept = format!("{},{}", table(MEDIA_TYPE), table("application/json"));
        let answer = cx.send(Request::get(path).accept(&accept)).await?;
        same("kind", &answer.json()?["kind"], json!("Table"))?;
    }
    Ok(())
}

async fn what_is_said_about_custom_resources_comes_in_protobuf(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let collection = cx.widget_path();
    cx.create(&collection, &cx.widget("one", json!({}))).await?;
    let status = |answer: &Answer, code| -> Result<String> {
        let status = body(answer, code, "v1", "Status")?;
        Ok(String::from_utf8(read(status, 3)?.to_vec())?)
    };
    let absent = format!("{collection}/absent");
    let answer = cx.send(Request::get(&absent).accept(MEDIA_TYPE)).await?;
    ensure!(status(&answer, 406)? == NOT_ACCEPTABLE, "another message");
    // A failure is written as is liked best, though no object could be.
    let either = format!("{MEDIA_TYPE},application/json");
    let answer = cx.send(Request::get(&absent).accept(&either)).await?;
    let message = status(&answer, 404)?;
    ensure!(message == format!("widgets.{} \"absent\" not found", cx.group()), "{message}");
    // A view of an object says nothing about failures.
    let metadata = format!("{MEDIA_TYPE};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let answer = cx.send(Request::get(&absent).accept(&metadata)).await?;
    ensure!(answer.status == 404 && answer.content_type() == "application/json", "{answer}");

    let patch = Request::new(http::Method::PATCH, format!("{collection}/one"))
        .body(r#"{"metadata":{"labels":{"a":"b"}}}"#)
        .content_type("application/merge-patch+json");
    let answer = cx.send(patch.accept(&metadata)).await?;
    let patched = body(&answer, 200, "meta.k8s.io/v1", "PartialObjectMetadata")?;
    ensure!(name(patched)? == "one", "another name");
    // What is deleted at once is not shown; that it is deleted is said in protobuf.
    let answer = cx.send(Request::delete(format!("{collection}/one")).accept(&metadata)).await?;
    let done = body(&answer, 200, "v1", "Status")?;
    ensure!(read(done, 2)? == b"Success", "the status is no success");
    ensure!(read(read(done, 5)?, 1)? == b"one", "another name");
    Ok(())
}

async fn events_of_custom_resources_have_no_protobuf(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    cx.create(&cx.widget_path(), &cx.widget("one", json!({}))).await?;
    let target = format!("{}?watch=1&timeoutSeconds=1&resourceVersion=0", cx.widget_path());
    let stream = format!("{MEDIA_TYPE};stream=watch");
    for accept in [MEDIA_TYPE, &stream] {
        let answer = cx.send(Request::get(&target).accept(accept)).await?;
        body(&answer, 406, "v1", "Status")?;
    }
    let either = format!("{stream},application/json;stream=watch");
    let answer = cx.send(Request::get(&target).accept(&either)).await?;
    same("content type", &json!(answer.content_type()), json!("application/json"))?;
    let event: serde_json::Value = serde_json::Deserializer::from_slice(&answer.bytes)
        .into_iter()
        .next()
        .context("none")??;
    same("name", &event["object"]["metadata"]["name"], json!("one"))
}

async fn bookmarks_and_definitions_come_in_frames(cx: Context) -> Result<()> {
    cx.create(&cx.core("secrets"), &json!({ "metadata": { "name": "one" } })).await?;
    let initial = "watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true\
         &resourceVersionMatch=NotOlderThan";
    let target = cx.core(&format!("secrets?{initial}"));
    let answer = cx.send(Request::get(target).accept(MEDIA_TYPE)).await?;
    let mut events = events(&answer.bytes)?;
    let (kind, secret) = events.next().context("there is no event")?;
    ensure!(kind == b"ADDED" && name(object(secret, "v1", "Secret")?)? == "one", "another event");
    let (kind, bookmark) = events.next().context("there is no bookmark")?;
    ensure!(kind == b"BOOKMARK", "another event");
    let metadata = read(object(bookmark, "v1", "Secret")?, 1)?;
    ensure!(!read(metadata, 6)?.is_empty(), "a bookmark has no version");
    let annotation = read(metadata, 12)?;
    ensure!(read(annotation, 1)? == b"k8s.io/initial-events-end", "another annotation");

    cx.define(&cx.widgets(any_schema())).await?;
    let definition = format!("widgets.{}", cx.group());
    let target = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?{initial}\
         &fieldSelector=metadata.name%3D{definition}"
    );
    let answer = cx.send(Request::get(target).accept(MEDIA_TYPE)).await?;
    let (_, defined) = self::events(&answer.bytes)?.next().context("there is no event")?;
    let defined = object(defined, "apiextensions.k8s.io/v1", "CustomResourceDefinition")?;
    ensure!(name(defined)? == definition, "another name");
    Ok(())
}

async fn documents_come_in_protobuf(cx: Context) -> Result<()> {
    let table = [
        ("/openapi/v2", "v2", "2.0"),
        ("/openapi/v3/version", "v3", "3.0.0"),
        ("/openapi/v3/apis/apps/v1", "v3", "3.0.0"),
    ];
    for (path, version, said) in table {
        // As it was always sent, and as media types are written.
        let sent = format!("application/com.github.proto-openapi.spec.{version}.v1.0+protobuf");
        for accept in [sent.clone(), sent.replace(".v1.0", "@v1.0")] {
            let answer = cx.send(Request::get(path).accept(&accept)).await?;
            ensure!(answer.status == 200, "{path}: {answer}");
            same("content type", &json!(answer.content_type()), json!(sent))?;
            ensure!(read(&answer.bytes, 1)? == said.as_bytes(), "{path}: another version");
            let title = read(read(&answer.bytes, 2)?, 1)?;
            ensure!(title == b"Kubernetes", "{path}: another title");
        }
    }
    Ok(())
}

async fn discovery_comes_in_protobuf(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let group = cx.group();
    let ours = format!("/apis/{group}");
    let resources = format!("/apis/{group}/v1");
    let table = [
        ("/api", "", "APIVersions"),
        ("/apis", "v1", "APIGroupList"),
        ("/apis/apps", "v1", "APIGroup"),
        ("/apis/apps/v1", "v1", "APIResourceList"),
        (&ours, "v1", "APIGroup"),
        (&resources, "v1", "APIResourceList"),
    ];
    for (path, api_version, kind) in table {
        let answer = cx.send(Request::get(path).accept(MEDIA_TYPE)).await?;
        body(&answer, 200, api_version, kind).with_context(|| path.to_owned())?;
    }
    let whole = format!("{MEDIA_TYPE};as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io");
    let answer = cx.send(Request::get("/apis").accept(&whole)).await?;
    object(&answer.bytes, "apidiscovery.k8s.io/v2", "APIGroupDiscoveryList")?;
    Ok(())
}

async fn cbor_is_not_spoken(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    cx.config_map("one").await?;
    let (cbor, apply) = ("application/cbor", "application/apply-patch+cbor");
    let (maps, widgets) = (cx.core("configmaps"), cx.widget_path());

    let answer = cx.send(Request::get(&maps).accept(cbor)).await?;
    let message = text(&answer.json()?, "/message").to_owned();
    ensure!(answer.status == 406 && message.starts_with("406: Not Acceptable"), "{answer}");
    let answer = cx.send(Request::get(&widgets).accept(cbor)).await?;
    refused(&answer, 406, "NotAcceptable", NOT_ACCEPTABLE)?;
    let watch = Request::get(format!("{maps}?watch=1&timeoutSeconds=1"));
    ensure!(cx.send(watch.accept("application/cbor-seq")).await?.status == 406, "a stream");
    // Clients that would like it name what else they take.
    let answer = cx.send(Request::get(&maps).accept("application/cbor,application/json")).await?;
    ensure!(names(&answer.json()?).contains(&"one"), "{answer}");

    let known = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let unknown = "the body of the request was in an unknown format - accepted media types include";
    let send = |method, path: String, media: &str| {
        cx.send(Request::new(method, path).body("\u{f7}").content_type(media))
    };
    for path in [&maps, &widgets] {
        for (method, path) in [
            (http::Method::POST, path.clone()),
            (http::Method::PUT, format!("{path}/one")),
            (http::Method::DELETE, format!("{path}/one")),
            (http::Method::DELETE, path.clone()),
        ] {
            let answer = send(method, path, cbor).await?;
            let message = format!("{unknown}: {known}");
            refused(&answer, 415, "UnsupportedMediaType", &message)?;
        }
    }
    let answer = send(http::Method::PATCH, format!("{maps}/one?fieldManager=a"), apply).await?;
    refused(&answer, 415, "UnsupportedMediaType", "415: Unsupported Media Type")?;
    let answer = send(http::Method::PATCH, format!("{widgets}/one?fieldManager=a"), apply).await?;
    let patches = "application/json-patch+json, application/merge-patch+json, \
         application/apply-patch+yaml";
    refused(&answer, 415, "UnsupportedMediaType", &format!("{unknown}: {patches}")).map(drop)
}
