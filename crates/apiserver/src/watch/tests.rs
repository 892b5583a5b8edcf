//! Watches of a store in memory, under a clock that the test moves.

use std::sync::Arc;

use http_body_util::BodyExt;
use kubewright_apimachinery::proto;
use kubewright_apimachinery::proto::{Frames as Messages, WatchEvent};
use kubewright_apimachinery::table::Include;
use kubewright_store::Expect;
use serde_json::{Value, json};

use super::*;
use crate::encode::Encoder;
use crate::index::Store;
use crate::metrics::Metrics;
use crate::negotiate::{Format, MetaVersion};
use crate::query::Query;
use crate::resource::Resource;
use crate::sample;

struct Lab {
    store: Store,
    encoder: Encoder,
    resource: Arc<Resource>,
    shutdown: CancellationToken,
}

/// A watch, as its client has it.
struct Client {
    body: Body,
    unread: String,
}

impl Lab {
    fn new(store: Store, resource: Arc<Resource>) -> Self {
        let shutdown = CancellationToken::new();
        Lab { encoder: sample::encoder(&store), store, resource, shutdown }
    }

    async fn with(names: &[&str]) -> Self {
        let lab = Lab::new(sample::store(), sample::resource("", "v1", "configmaps"));
        for name in names {
            lab.put(&sample::config_map(name)).await;
        }
        lab
    }

    async fn put(&self, object: &Value) {
        sample::put(&self.store, &self.resource, object).await;
    }

    async fn delete(&self, name: &str) {
        let key = self.resource.key(Some("default"), name);
        self.store.delete(&key, Expect::Anything).await.expect("it is there");
    }

    async fn answer(&self, query: &str, format: &Format) -> Response<Body> {
        let Lab { store, encoder, resource, shutdown } = self;
        let reader = Reader { store, encoder, resource, namespace: Some("default"), format };
        let query = Query::parse(Some(&format!("watch=1&{query}")));
        let options = ListOptions::parse(&query, resource, "");
        let sizes = Metrics::default().watch(&resource.gvr);
        let answer = match options {
            Ok(options) => reader.watch(&options, shutdown.clone(), sizes).await,
            Err(refusal) => Err(refusal),
        };
        answer.unwrap_or_else(|refusal| encode::failure(&refusal, format.failure))
    }

    async fn watch(&self, query: &str) -> Client {
        let answer = self.answer(query, &Format::JSON).await;
        assert_eq!(answer.status(), StatusCode::OK);
        Client { body: answer.into_body(), unread: String::new() }
    }
}

impl Client {
    /// The next event; none when the watch has ended.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.unread.split_once('\n') {
                let event = serde_json::from_str(line).expect("a line is an event");
                self.unread = rest.to_owned();
                return Some(event);
            }
            let data = self.body.frame().await?.expect("it cannot fail").into_data();
            let data = data.expect("there are only data");
            self.unread.push_str(std::str::from_utf8(&data).expect("it is text"));
        }
    }

    /// What the next event says: what happened, to which object, at which version.
    async fn said(&mut self) -> String {
        let Some(event) = self.next().await else { return "end".to_owned() };
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let said = [
            text("/type"),
            text("/object/metadata/name"),
            text("/object/metadata/resourceVersion"),
            text("/object/message"),
        ];
        said.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    async fn check(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.said().await, *expected);
        }
    }
}

fn labelled(name: &str, value: &str) -> Value {
    let mut object = sample::config_map(name);
    object["metadata"]["labels"] = json!({"chosen": value});
    object
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_sees_what_comes_after() {
    let lab = Lab::with(&["a", "b"]).await;
    let mut client = lab.watch("resourceVersion=2").await;
    client.check(&["ADDED b 3"]).await;
    lab.put(&labelled("a", "x")).await;
    lab.delete("b").await;
    client.check(&["MODIFIED a 4", "DELETED b 5"]).await;
    lab.shutdown.cancel();
    client.check(&["end"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_frame_is_a_line() {
    let lab = Lab::with(&["a", "b"]).await;
    let answer = lab.answer("resourceVersion=2&timeoutSeconds=1", &Format::JSON).await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(
        sample::text(answer.into_body()).await,
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":\
         {\"name\":\"b\",\"namespace\":\"default\",\"uid\":\"uid-b\",\"resourceVersion\":\"3\",\
         \"creationTimestamp\":\"2026-11-16T00:00:00Z\"},\"data\":{\"of\":\"b\"}}}\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_anywhere_begins_with_what_is_there() {
    let lab = Lab::with(&["a", "b"]).await;
    for query in ["", "resourceVersion=0"] {
        let mut client = lab.watch(query).await;
        client.check(&["ADDED a 2", "ADDED b 3"]).await;
    }
    let mut client = lab
        .watch("sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=5")
        .await;
    client.check(&["end"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_list_ends_its_beginning_with_a_bookmark() {
    let lab = Lab::with(&["a"]).await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut client = lab.watch(query).await;
    client.check(&["ADDED a 2"]).await;
    assert_eq!(
        client.next().await,
        Some(json!({"type": "BOOKMARK", "object": {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "resourceVersion": "2",
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
        }}))
    );
    lab.put(&sample::config_map("b")).await;
    client.check(&["ADDED b 3"]).await;
    let mut client = lab.watch(&format!("{query}&resourceVersion=99")).await;
    client.check(&["ERROR Timeout: Too large resource version: 99, current: 3", "end"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_selection_is_deleted_from_it() {
    let lab = Lab::with(&[]).await;
    let mut client = lab.watch("resourceVersion=1&labelSelector=chosen%3Dyes").await;
    lab.put(&sample::config_map("a")).await;
    lab.put(&labelled("a", "yes")).await;
    lab.put(&labelled("a", "no")).await;
    lab.delete("a").await;
    lab.put(&labelled("b", "yes")).await;
    client.check(&["ADDED a 3"]).await;
    let left = client.next().await.expect("it left");
    assert_eq!(left["type"], "DELETED");
    assert_eq!(left["object"]["metadata"]["labels"], json!({"chosen": "yes"}));
    assert_eq!(left["object"]["metadata"]["resourceVersion"], "4");
    client.check(&["ADDED b 6"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_one_name_sees_only_that() {
    let lab = Lab::with(&["a", "ab"]).await;
    let mut client = lab.watch("fieldSelector=metadata.name%3Da").await;
    client.check(&["ADDED a 2"]).await;
    lab.put(&labelled("ab", "x")).await;
    lab.put(&labelled("a", "x")).await;
    client.check(&["MODIFIED a 5"]).await;
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_before_the_end() {
    let lab = Lab::with(&["a"]).await;
    let started = Instant::now();
    let query = "resourceVersion=2&allowWatchBookmarks=true&timeoutSeconds=100";
    let mut client = lab.watch(query).await;
    for (seconds, said) in [(60, "BOOKMARK 2"), (98, "BOOKMARK 2"), (100, "end")] {
        client.check(&[said]).await;
        assert_eq!(started.elapsed().as_secs(), seconds, "{said}");
    }
}

/// Adding it to the time of day was a panic.
#[tokio::test(start_paused = true)]
async fn a_watch_may_be_asked_for_without_end() {
    let lab = Lab::with(&["a"]).await;
    let query = "resourceVersion=2&allowWatchBookmarks=true&timeoutSeconds=9223372036854775807";
    let mut client = lab.watch(query).await;
    lab.put(&sample::config_map("b")).await;
    client.check(&["ADDED b 3"]).await;
    lab.shutdown.cancel();
    client.check(&["end"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_still_to_come_is_not_waited_for() {
    let lab = Lab::with(&["a"]).await;
    let mut client = lab.watch("resourceVersion=4").await;
    for name in ["b", "c", "d"] {
        lab.put(&sample::config_map(name)).await;
    }
    client.check(&["ADDED d 5"]).await;
    // Nothing is known yet of the moment that this client knows of.
    let query = "resourceVersion=9&allowWatchBookmarks=true&timeoutSeconds=100";
    lab.watch(query).await.check(&["end"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_no_number_is_refused_before_the_stream() {
    let lab = Lab::with(&["a"]).await;
    let answer = lab.answer("resourceVersion=abc", &Format::JSON).await;
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let format = Format { encoding: Encoding::Yaml, ..Format::JSON };
    assert_eq!(lab.answer("", &format).await.status(), StatusCode::NOT_ACCEPTABLE);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_too_slow_is_told_so() {
    let lab = Lab::new(sample::forgetful_store(), sample::resource("", "v1", "configmaps"));
    let mut slow = lab.watch("resourceVersion=1").await;
    for n in 0..10 {
        lab.put(&sample::config_map(&format!("n{n}"))).await;
    }
    assert!(slow.said().await.starts_with("ERROR too old resource version: 1 ("));
    slow.check(&["end"]).await;
    // One that comes too late is told in the same way.
    let mut late = lab.watch("resourceVersion=1").await;
    let event = late.next().await.expect("there is an error");
    assert_eq!(
        (&event["object"]["code"], &event["object"]["reason"]),
        (&json!(410), &json!("Expired"))
    );
    late.check(&["end"]).await;
}

#[tokio::test(start_paused = true)]
async fn from_the_second_on_all_who_watch_share_bytes() {
    let lab = Lab::with(&["a"]).await;
    let mut frames = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(lab.watch("resourceVersion=2").await);
    }
    lab.put(&sample::config_map("b")).await;
    for client in &mut clients {
        let frame = client.body.frame().await.expect("there is an event").expect("it cannot fail");
        frames.push(frame.into_data().expect("there are only data"));
    }
    assert_eq!(frames[0], frames[1]);
    assert_eq!(frames[1].as_ptr(), frames[2].as_ptr());
}

#[tokio::test(start_paused = true)]
async fn tables_say_what_their_columns_are_once() {
    let lab = Lab::with(&["a", "b"]).await;
    let view = View::Table { version: MetaVersion::V1, include: Ok(Include::None) };
    let format = Format { encoding: Encoding::Json, view, failure: Encoding::Json };
    let body = lab.answer("allowWatchBookmarks=1", &format).await.into_body();
    let mut client = Client { body, unread: String::new() };
    let first = client.next().await.expect("there is one");
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(first["object"]["rows"][0], json!({"cells": ["a", 1, "0s"], "object": null}));
    let second = client.next().await.expect("there are two");
    assert_eq!(second["object"]["columnDefinitions"], Value::Null);
    let bookmark = client.next().await.expect("the beginning has an end");
    let annotations = &bookmark["object"]["rows"][0]["object"]["metadata"]["annotations"];
    assert_eq!(annotations, &json!({"k8s.io/initial-events-end": "true"}));
    lab.delete("b").await;
    let deleted = client.next().await.expect("it is gone");
    assert_eq!(deleted["object"]["metadata"]["resourceVersion"], "4");
}

#[tokio::test(start_paused = true)]
async fn protobuf_events_have_their_length_before_them() {
    let lab = Lab::with(&["a"]).await;
    let check = async |view: View, kinds: [&str; 2]| {
        let format = Format { encoding: Encoding::Protobuf, view, failure: Encoding::Json };
        let query = "allowWatchBookmarks=1&timeoutSeconds=1";
        let answer = lab.answer(query, &format).await;
        let media_type = "application/vnd.kubernetes.protobuf;stream=watch";
        assert_eq!(answer.headers()["content-type"], media_type);
        let bytes = answer.into_body().collect().await.expect("it cannot fail").to_bytes();
        let mut messages = Messages::new(1 << 20);
        messages.push(&bytes);
        for (ty, kind) in ["ADDED", "BOOKMARK"].iter().zip(kinds) {
            let message = messages.next_message().expect("it is short").expect("there is one");
            let event = WatchEvent::decode(&message).expect("it is an event");
            assert_eq!(event.event, *ty);
            assert_eq!(proto::decode(&event.object).expect("it is an object")["kind"], kind);
        }
        assert_eq!(messages.next_message(), Ok(None));
    };
    check(View::Object, ["ConfigMap"; 2]).await;
    check(View::PartialObjectMetadata(MetaVersion::V1), ["PartialObjectMetadata"; 2]).await;
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_of_a_pod_is_a_pod_without_anything() {
    let lab = Lab::new(sample::store(), sample::resource("", "v1", "pods"));
    let mut client = lab.watch("allowWatchBookmarks=1").await;
    assert_eq!(
        client.next().await.expect("the beginning has an end")["object"],
        json!({
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "resourceVersion": "1",
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
            "spec": {"containers": null},
            "status": {},
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_custom_resources_ends_when_they_are_defined_anew() {
    let versions =
        "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]";
    let lab = Lab::new(sample::store(), sample::widgets("v1", versions));
    let definitions = sample::resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let mut definition = sample::object(
        "
        kind: CustomResourceDefinition
        apiVersion: apiextensions.k8s.io/v1
        metadata: {name: widgets.example.com, uid: u}
        spec: {group: example.com}
        status: {acceptedNames: {plural: widgets}}
        ",
    );
    sample::put(&lab.store, &definitions, &definition).await;
    let mut client = lab.watch("").await;
    definition["status"]["conditions"] = json!([{"type": "Established"}]);
    sample::put(&lab.store, &definitions, &definition).await;
    let widget = "{kind: Widget, apiVersion: example.com/v1, metadata: {name: w, namespace: default, \
                  uid: u}}";
    lab.put(&sample::object(widget)).await;
    client.check(&["ADDED w 4"]).await;
    definition["spec"]["scope"] = json!("Namespaced");
    sample::put(&lab.store, &definitions, &definition).await;
    client.check(&["end"]).await;
}
