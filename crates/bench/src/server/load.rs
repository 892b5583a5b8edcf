//! What is asked of a server: the same of every one, closed loops of clients that wait for answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Method;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::client::{Client, Request, get, request};
use super::site::Site;
use crate::table::median;

/// How many objects there are while memory, reads and lists are measured.
pub(super) const OBJECTS: usize = 5_000;
pub(super) const DELETED: usize = 5_500;
const CLIENTS: usize = 32;
const WATCHERS: usize = 200;
const EVENTS: usize = 500;
/// More than there are clients, so that no two of them are at the same object.
const TARGETS: usize = 200;
const LISTS: usize = 21;

pub(crate) const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

/// How fast something was done.
#[derive(Clone, Copy, Default)]
pub(crate) struct Speed {
    pub(crate) per_second: f64,
    /// Seconds of processor time of the server for each.
    pub(crate) processor: f64,
}

#[derive(Clone, Copy)]
pub(crate) enum Until {
    Count(usize),
    Elapsed(Duration),
}

pub(super) async fn prepare(site: &Site) -> Result<()> {
    let mut client = site.endpoint.connect().await?;
    for name in ["bench", "apply", "status", "watch", "delete", "create"] {
        let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        client.send(request(Method::POST, "/api/v1/namespaces", JSON, body)).await?;
    }
    Ok(())
}

/// Creates the [`OBJECTS`] objects of a kilobyte that are there from then on.
pub(super) async fn furnish(site: &Site) -> Result<()> {
    fill(site, "bench", Until::Count(OBJECTS)).await.map(drop)
}

/// Creates objects of a kilobyte.
pub(super) async fn creates(site: &Site, duration: Duration) -> Result<Speed> {
    fill(site, "create", Until::Elapsed(duration)).await
}

/// Reads one object over and over.
pub(super) async fn reads(site: &Site, duration: Duration) -> Result<Speed> {
    let path = format!("{LIST}/{}", name(7));
    spread(site, Until::Elapsed(duration), move |_| get(&path)).await
}

/// Where the objects are.
pub(super) const LIST: &str = "/api/v1/namespaces/bench/configmaps";

/// Lists all objects, or the half with a label.
pub(super) async fn list(site: &Site, by_label: bool) -> Result<Duration> {
    let selector = if by_label { "?labelSelector=half%3D1" } else { "" };
    let path = format!("{LIST}{selector}");
    let expected = if by_label { OBJECTS / 2 } else { OBJECTS };
    let mut client = site.endpoint.connect().await?;
    // The same memory for all, so that time goes into the first only for the system to find some.
    let (mut times, mut list) = (Vec::new(), Vec::new());
    for _ in 0..LISTS {
        let start = Instant::now();
        client.read_into(get(&path), &mut list).await?;
        times.push(start.elapsed());
        let found = memchr::memmem::find_iter(&list, b"\"name\":\"object-").count();
        ensure!(found == expected, "a list of {expected} objects has {found}");
    }
    Ok(median(&times))
}

/// Applies ConfigMaps that exist already, each time with other data.
pub(super) async fn applies(site: &Site, duration: Duration) -> Result<Speed> {
    let apply = |number: usize| {
        let name = name(number % TARGETS);
        let path =
            format!("/api/v1/namespaces/apply/configmaps/{name}?fieldManager=bench&force=true");
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"half":"1"}}}},"data":{{"number":"{number}","payload":"{}"}}}}"#,
            payload()
        );
        request(Method::PATCH, &path, APPLY, body)
    };
    spread(site, Until::Count(TARGETS), apply).await?;
    spread(site, Until::Elapsed(duration), move |number| apply(number + TARGETS)).await
}

/// Patches the status of Deployments.
pub(super) async fn patches(site: &Site, duration: Duration) -> Result<Speed> {
    let deployments = "/apis/apps/v1/namespaces/status/deployments";
    let create = move |number: usize| {
        let name = name(number);
        let body = format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"replicas":3,"selector":{{"matchLabels":{{"app":"{name}"}}}},"template":{{"metadata":{{"labels":{{"app":"{name}"}}}},"spec":{{"containers":[{{"name":"main","image":"registry.k8s.io/pause:3.10","ports":[{{"containerPort":8080}}],"resources":{{"requests":{{"cpu":"100m","memory":"64Mi"}}}}}}]}}}}}}}}"#
        );
        request(Method::POST, deployments, JSON, body)
    };
    spread(site, Until::Count(TARGETS), create).await?;
    let patch = move |number: usize| {
        let path = format!("{deployments}/{}/status?fieldManager=bench", name(number % TARGETS));
        let body = format!(r#"{{"status":{{"observedGeneration":{number},"replicas":3}}}}"#);
        request(Method::PATCH, &path, MERGE, body)
    };
    spread(site, Until::Elapsed(duration), patch).await
}

/// Creates objects while many watch; counts what they were told of.
pub(super) async fn watch(site: &Site) -> Result<Speed> {
    // What controllers put there is there by now, and not among the events.
    let path = "/api/v1/namespaces/watch/configmaps";
    let list = site.endpoint.connect().await?.read(get(path)).await?;
    let list: serde_json::Value = serde_json::from_slice(&list).context("read a list")?;
    let version = list["metadata"]["resourceVersion"].as_str().context("a list has a version")?;
    let path = format!("{path}?watch=1&resourceVersion={version}");
    let mut watchers = JoinSet::new();
    let begun = Arc::new(Barrier::new(WATCHERS + 1));
    for _ in 0..WATCHERS {
        let (endpoint, begun, path) = (site.endpoint.clone(), Arc::clone(&begun), path.clone());
        watchers.spawn(async move {
            let mut client = endpoint.connect().await?;
            let opened = client.open(get(&path)).await;
            begun.wait().await;
            opened?;
            let mut events = 0;
            // A server may end the watch of a client that is too slow for it.
            while events < EVENTS
                && client.more(|data| events += memchr::memchr_iter(b'\n', data).count()).await?
            {
            }
            anyhow::Ok((events, Instant::now()))
        });
    }
    begun.wait().await;
    let start = Instant::now();
    let used = site.processor_time()?;
    fill(site, "watch", Until::Count(EVENTS)).await?;
    let (mut end, mut deliveries) = (start, 0);
    while let Some(watcher) = watchers.join_next().await {
        let (events, at) = watcher.context("a watcher does not panic")??;
        deliveries += events;
        end = end.max(at);
    }
    let used = site.processor_time()? - used;
    let missed = WATCHERS * EVENTS - deliveries;
    if missed > 0 {
        eprintln!("  {missed} events were not delivered: their watches were ended");
    }
    let deliveries = deliveries as f64;
    Ok(Speed {
        per_second: deliveries / (end - start).as_secs_f64(),
        processor: used.as_secs_f64() / deliveries,
    })
}

pub(super) async fn delete_collection(site: &Site) -> Result<Duration> {
    fill(site, "delete", Until::Count(DELETED)).await?;
    let mut client = site.endpoint.connect().await?;
    let start = Instant::now();
    let path = "/api/v1/namespaces/delete/configmaps";
    client.send(request(Method::DELETE, path, JSON, "")).await?;
    Ok(start.elapsed())
}

async fn fill(site: &Site, namespace: &'static str, until: Until) -> Result<Speed> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    spread(site, until, move |number| request(Method::POST, &path, JSON, object(number))).await
}

/// Lets [`CLIENTS`] clients send numbered requests, each its next one when the last is answered.
pub(crate) async fn spread(
    site: &Site,
    until: Until,
    make: impl Fn(usize) -> Request + Send + Sync + 'static,
) -> Result<Speed> {
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(site.endpoint.connect().await?);
    }
    let make = Arc::new(make);
    let next = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(AtomicUsize::new(0));
    let used = site.processor_time()?;
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for mut client in clients {
        let (make, next, done) = (Arc::clone(&make), Arc::clone(&next), Arc::clone(&done));
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let over = match until {
                    Until::Count(count) => number >= count,
                    Until::Elapsed(duration) => start.elapsed() >= duration,
                };
                if over {
                    return anyhow::Ok(client);
                }
                client.send(make(number)).await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    // Connections end after the clock has stopped.
    let mut clients = Vec::new();
    while let Some(client) = tasks.join_next().await {
        clients.push(client.context("a client does not panic")??);
    }
    let elapsed = start.elapsed();
    let used = site.processor_time()? - used;
    let done = done.load(Ordering::Relaxed) as f64;
    Ok(Speed { per_second: done / elapsed.as_secs_f64(), processor: used.as_secs_f64() / done })
}

fn name(number: usize) -> String {
    format!("object-{number:05}")
}

fn object(number: usize) -> String {
    format!(
        r#"{{"metadata":{{"name":"{}","labels":{{"half":"{}"}}}},"data":{{"payload":"{}"}}}}"#,
        name(number),
        number % 2,
        payload()
    )
}

/// As long as makes a whole object some kilobyte.
fn payload() -> &'static str {
    const PAYLOAD: [u8; 700] = [b'x'; 700];
    std::str::from_utf8(&PAYLOAD).expect("it is ASCII")
}

/// What a server answers to a read of an object.
pub(super) fn object_as_read() -> Bytes {
    let text = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{}","namespace":"bench","uid":"6f1d2c1e-3b7a-4f0e-9d5b-2a8c4e6f0a1b","resourceVersion":"1234","creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"half":"1"}},"managedFields":[{{"manager":"unknown","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{".":{{}},"f:payload":{{}}}},"f:metadata":{{"f:labels":{{".":{{}},"f:half":{{}}}}}}}}}}]}},"data":{{"payload":"{}"}}}}"#,
        name(7),
        payload()
    );
    Bytes::from(text + "\n")
}

/// What a server tells of an object that was created.
pub(super) fn event_as_read() -> Bytes {
    let object = object_as_read();
    let event = [&br#"{"type":"ADDED","object":"#[..], object.trim_ascii_end(), b"}\n"];
    Bytes::from(event.concat())
}

/// What a server answers to a list of all objects.
pub(super) fn list_as_read() -> Bytes {
    let object = object_as_read();
    let items = vec![object.trim_ascii_end(); OBJECTS].join(&b","[..]);
    let mut list = br#"{"kind":"ConfigMapList","apiVersion":"v1","items":["#.to_vec();
    list.extend_from_slice(&items);
    list.extend_from_slice(b"]}\n");
    Bytes::from(list)
}
