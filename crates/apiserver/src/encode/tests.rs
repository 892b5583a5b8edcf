//! Objects as clients get them.

use http_body_util::BodyExt;
use kubewright_apimachinery::table::Include;

use super::*;
use crate::negotiate::MetaVersion;
use crate::sample::{self, object, widgets};

fn format(encoding: Encoding, view: View) -> Format {
    Format { encoding, view, failure: Encoding::Json }
}

/// What is sent for an object that was stored under `written` and is read through `read`.
async fn sent(
    written: &Arc<Resource>,
    read: &Arc<Resource>,
    yaml: &str,
    format: &Format,
) -> String {
    let store = sample::store();
    let rev = sample::put(&store, written, &object(yaml)).await;
    let encoder = sample::encoder(&store);
    let response = encoder.answer(Answer::Stored(&rev), read, format, StatusCode::OK);
    let first = sample::text(response.into_body()).await;
    // What is kept with the revision must be what was made.
    let again = encoder.answer(Answer::Stored(&rev), read, format, StatusCode::OK);
    assert_eq!(first, sample::text(again.into_body()).await);
    first
}

async fn check(resource: &Arc<Resource>, yaml: &str, format: &Format, expected: &str) {
    assert_eq!(sent(resource, resource, yaml, format).await, expected);
}

const CONFIG_MAP: &str = "
    kind: ConfigMap
    apiVersion: v1
    metadata:
      name: a
      namespace: default
      uid: u
      creationTimestamp: '2026-11-16T00:00:00Z'
    data: {of: a}
    ";

#[tokio::test]
async fn stored_bytes_are_sent_with_their_version_in_its_place() {
    let resource = sample::resource("", "v1", "configmaps");
    check(
        &resource,
        CONFIG_MAP,
        &Format::JSON,
        "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\
         \"namespace\":\"default\",\"uid\":\"u\",\"resourceVersion\":\"2\",\
         \"creationTimestamp\":\"2026-11-16T00:00:00Z\"},\"data\":{\"of\":\"a\"}}\n",
    )
    .await;
    check(
        &resource,
        CONFIG_MAP,
        &format(Encoding::Yaml, View::Object),
        "apiVersion: v1\ndata:\n  of: a\nkind: ConfigMap\nmetadata:\n  \
         creationTimestamp: \"2026-11-16T00:00:00Z\"\n  name: a\n  namespace: default\n  \
         resourceVersion: \"2\"\n  uid: u\n",
    )
    .await;
    check(
        &resource,
        CONFIG_MAP,
        &format(Encoding::Json, View::PartialObjectMetadata(MetaVersion::V1)),
        "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":\
         {\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u\",\"resourceVersion\":\"2\",\
         \"creationTimestamp\":\"2026-11-16T00:00:00Z\"}}\n",
    )
    .await;
}

#[tokio::test]
async fn protobuf_decodes_to_the_same_object() {
    let resource = sample::resource("", "v1", "configmaps");
    let store = sample::store();
    let rev = sample::put(&store, &resource, &object(CONFIG_MAP)).await;
    let encoder = sample::encoder(&store);
    let format = format(Encoding::Protobuf, View::Object);
    let response = encoder.answer(Answer::Stored(&rev), &resource, &format, StatusCode::OK);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/vnd.kubernetes.protobuf");
    let bytes = response.into_body().collect().await.expect("bodies cannot fail").to_bytes();
    let decoded = proto::decode(&bytes).expect("it is protobuf");
    assert_eq!(decoded, value(&resource, &rev).expect("it is an object"));
}

#[tokio::test]
async fn another_version_is_converted() {
    let yaml = "
        kind: Event
        apiVersion: v1
        metadata: {name: e, namespace: default, uid: u, creationTimestamp: null}
        involvedObject: {kind: Pod, name: p}
        reason: Started
        message: it started
        source: {}
        firstTimestamp: null
        lastTimestamp: null
        type: Normal
        eventTime: null
        reportingComponent: ''
        reportingInstance: ''
        ";
    let core = sample::resource("", "v1", "events");
    let events = sample::resource("events.k8s.io", "v1", "events");
    let sent = sent(&core, &events, yaml, &Format::JSON).await;
    let sent: Value = serde_json::from_str(&sent).expect("it is JSON");
    assert_eq!(sent["apiVersion"], "events.k8s.io/v1");
    assert_eq!(sent["note"], "it started");
    assert_eq!(sent["regarding"], serde_json::json!({"kind": "Pod", "name": "p"}));
    assert_eq!(sent["metadata"]["resourceVersion"], "2");
}

#[tokio::test]
async fn a_table_has_cells_of_the_hub_and_objects_of_the_request() {
    let view = View::Table { version: MetaVersion::V1, include: Ok(Include::None) };
    let resource = sample::resource("", "v1", "configmaps");
    let sent = sent(&resource, &resource, CONFIG_MAP, &format(Encoding::Json, view)).await;
    let sent: Value = serde_json::from_str(&sent).expect("it is JSON");
    assert_eq!(sent["rows"], serde_json::json!([{"cells": ["a", 1, "0s"], "object": null}]));
    assert_eq!(sent["columnDefinitions"][0]["description"], "meta/v1.ObjectMeta#name");
}

#[tokio::test]
async fn views_that_do_not_fit_are_refused() {
    let resource = sample::resource("", "v1", "configmaps");
    let check = async |view: View, code: u16, message: &str| {
        let sent = sent(&resource, &resource, CONFIG_MAP, &format(Encoding::Json, view)).await;
        let status: Status = serde_json::from_str(&sent).expect("it is a status");
        assert_eq!((status.code, status.message.as_str()), (i32::from(code), message));
    };
    check(
        View::PartialObjectMetadataList(MetaVersion::V1),
        406,
        "you requested PartialObjectMetadataList, but the requested object is not a list \
         (*core.ConfigMap)",
    )
    .await;
    check(
        View::Table { version: MetaVersion::V1, include: Err("foo".into()) },
        400,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"foo\": must be \
         'Metadata', 'Object', 'None', or empty",
    )
    .await;
}

const WIDGET: &str = "
    kind: Widget
    apiVersion: example.com/v1
    metadata: {creationTimestamp: '2026-11-16T00:00:00Z', generation: 1, name: w, namespace: default, uid: u}
    spec: {gone: 1, size: 3}
    ";

const OLD: &str = "
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
        spec: {type: object, properties: {size: {type: integer}, gone: {type: integer}}}}}}}
    - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {
        spec: {type: object, properties: {size: {type: integer}}}}}}}
    ";

const NEW: &str = "
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
        spec: {type: object, properties: {size: {type: integer}, colour: {type: string, default: red}}}}}}}
    ";

const META: &str = "\"metadata\":{\"creationTimestamp\":\"2026-11-16T00:00:00Z\",\"generation\":1,\
    \"name\":\"w\",\"namespace\":\"default\",\"resourceVersion\":\"2\",\"uid\":\"u\"}";

#[tokio::test]
async fn a_custom_resource_is_read_through_the_schema_of_now() {
    let old = widgets("v1", OLD);
    let check = async |read: &Arc<Resource>, version: &str, spec: &str| {
        let expected = format!(
            "{{\"apiVersion\":\"example.com/{version}\",\"kind\":\"Widget\",{META},\"spec\":{spec}}}\n"
        );
        assert_eq!(sent(&old, read, WIDGET, &Format::JSON).await, expected);
    };
    check(&old, "v1", "{\"gone\":1,\"size\":3}").await;
    check(&widgets("v2", OLD), "v2", "{\"size\":3}").await;
    check(&widgets("v1", NEW), "v1", "{\"colour\":\"red\",\"size\":3}").await;
}

#[tokio::test]
async fn nothing_is_kept_of_a_custom_resource_that_its_schema_does_not_change() {
    let resource = widgets("v1", OLD);
    let store = sample::store();
    let rev = sample::put(&store, &resource, &object(WIDGET)).await;
    let renderer = Renderer::new(&resource);
    for _ in 0..2 {
        let piece = renderer.json(&rev, rev.revision).expect("it is an object");
        assert!(matches!(piece, Piece::Spliced(..)), "{piece:?}");
    }
    let changed = Renderer::new(&widgets("v1", NEW));
    let piece = changed.json(&rev, rev.revision).expect("it is an object");
    assert!(matches!(piece, Piece::Whole(_)), "{piece:?}");
}

#[tokio::test]
async fn the_metadata_of_custom_resources_has_the_order_of_its_type() {
    let resource = widgets("v1", OLD);
    check(
        &resource,
        WIDGET,
        &format(Encoding::Json, View::PartialObjectMetadata(MetaVersion::V1Beta1)),
        "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1beta1\",\"metadata\":\
         {\"name\":\"w\",\"namespace\":\"default\",\"uid\":\"u\",\"resourceVersion\":\"2\",\
         \"generation\":1,\"creationTimestamp\":\"2026-11-16T00:00:00Z\"}}\n",
    )
    .await;
}

#[tokio::test]
async fn a_failure_says_when_to_try_again() {
    let status = Status::resource_version_too_large(9, 2, 1);
    let response = failure(&status, Encoding::Json);
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(response.headers()[RETRY_AFTER], "1");
    assert_eq!(response.headers()[CACHE_CONTROL], "no-cache, private");
}
