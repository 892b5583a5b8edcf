//! The log of a whole server in memory.
//!
//! `tests/recorded.jsonl` is what kube-apiserver 1.36.4 wrote with `--audit-log-path` and the policy
//! beside it: for each request, its events. Uids, versions, times, generated names and the cells of
//! tables are made constant.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use kubewright_store::Config as StoreConfig;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::authn::key::SigningKey;
use crate::authn::token::{Issuer, Lifetimes};
use crate::authn::{Authenticator, StaticTokens, Verifier};
use crate::authz::Authorizer;
use crate::edge::{Peer, Shown};
use crate::genesis;
use crate::index::{self, Store};
use crate::server::{Server, Settings};

const TOKENS: &str = "admin,admin,admin,system:masters\nbob,bob,bob-uid,\"dev,ops\"\n";
const POLICY: &str = include_str!("tests/policy.yaml");
const RECORDED: &str = include_str!("tests/recorded.jsonl");

/// A request, and the events that upstream left of it.
#[derive(Deserialize)]
struct Recorded {
    step: Step,
    events: Vec<Value>,
}

#[derive(Deserialize)]
struct Step {
    request: String,
    body: Option<Value>,
    text: Option<String>,
    #[serde(rename = "type", default = "json_type")]
    media_type: String,
    #[serde(default = "json_type")]
    accept: String,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    /// Empty for nobody.
    #[serde(default = "admin")]
    token: String,
}

fn json_type() -> String {
    "application/json".to_owned()
}

fn admin() -> String {
    "admin".to_owned()
}

impl Step {
    fn new(request: &str) -> Self {
        serde_json::from_value(json!({ "request": request })).expect("the rest is optional")
    }
}

/// A server, its log, and the server's choices that a later request may need.
struct Site {
    server: Server,
    log: Log,
    dir: tempfile::TempDir,
    seen: Value,
}

impl Site {
    async fn new(policy: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let clock = || Duration::new(1_700_000_000, 123_456_789);
        let config = StoreConfig::new(index::extract, index::resource_of, clock);
        let policy = Policy::parse(policy).expect("it is sound");
        let rotation = Rotation::default();
        let output = Output::File { path: dir.path().join("logs/audit.log"), rotation };
        let log = Log::open(Config { policy, output }, config.clock.clone()).expect("a file");
        let server = server(Store::memory(config), log.clone()).await;
        Site { server, log, dir, seen: Value::Null }
    }

    /// Makes a request as the `at`th; gives the code and the answer.
    async fn ask(&mut self, at: usize, step: &Step) -> (StatusCode, Value) {
        let (method, path) = step.request.split_once(' ').expect("a method and a path");
        let id = format!("step-{at:03}");
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("audit-id", id)
            .header("accept", &step.accept)
            .extension(Arc::new(Peer {
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, 50_000)),
                shown: Shown::Nothing,
                proxy: None,
                certified: OnceLock::new(),
            }));
        if !step.headers.contains_key("User-Agent") {
            request = request.header("user-agent", "test/1");
        }
        if !step.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", step.token));
        }
        for (name, value) in &step.headers {
            request = request.header(name, value);
        }
        let text = step.text.clone().or_else(|| Some(step.body.as_ref()?.to_string()));
        let metadata = |field: &str| self.seen["metadata"][field].as_str().unwrap_or_default();
        let text = text.unwrap_or_default();
        let text = text.replace("{uid}", metadata("uid"));
        let text = text.replace("{rv}", metadata("resourceVersion"));
        if !text.is_empty() {
            request = request.header("content-type", &step.media_type);
        }
        let request = request.body(Full::new(Bytes::from(text))).expect("a request");
        let response = self.server.call(request).await;
        let code = response.status();
        let body = response.into_body().collect().await.expect("a body ends").to_bytes();
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if answer["metadata"]["uid"].is_string() {
            self.seen = answer.clone();
        }
        (code, answer)
    }

    /// Ends the log, and reads it.
    async fn events(self) -> Vec<Value> {
        let stop = CancellationToken::new();
        stop.cancel();
        self.log.run(stop).await;
        read(&self.dir.path().join("logs/audit.log"))
    }
}

async fn server(store: Store, log: Log) -> Server {
    let pair = rcgen::KeyPair::generate().expect("a key");
    let key = SigningKey::from_pem(pair.serialize_pem().as_bytes()).expect("a key");
    let names = vec!["https://kubernetes.default.svc".to_owned()];
    let verifier = Verifier::new(names.clone(), names.clone(), vec![key.public.clone()]);
    let authorizer = Arc::new(Authorizer::new(store.clone()));
    let tokens = StaticTokens::parse(TOKENS).expect("they are sound");
    let server = Server::new(Settings {
        authenticator: Authenticator::new(store.clone(), authorizer, tokens, verifier),
        store,
        issuer: Some(Issuer {
            url: names[0].clone(),
            keys_url: None,
            audiences: names,
            key,
            lifetimes: Lifetimes::default(),
        }),
        address: "127.0.0.1:17443".to_owned(),
        service_cidrs: vec!["10.0.0.0/24".to_owned()],
        node_ports: 30_000..=32_767,
        shutdown: CancellationToken::new(),
        audit: Some(log),
        identity: None,
        kubelets: Default::default(),
        companions: Vec::new(),
        admission: crate::admission::PluginSet::default(),
        allows_privileged: true,
        version: crate::version::GIT_VERSION.to_owned(),
    });
    let settings = genesis::Settings {
        now: Timestamp::from_second(1_700_000_000).expect("a time"),
        address: Ipv4Addr::LOCALHOST.into(),
        port: 6443,
        service_cidrs: &["10.0.0.0/24"],
        client_ca: None,
        proxy: None,
        hostname: "host",
        process: "2b3a5f8e-6f2b-4a57-9f0e-0d6a6c1e7a11",
    };
    server.begin(&settings).await.expect("memory is always there");
    server
}

fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// The event without what is another one each time.
fn scrub(value: Value, field: &str) -> Value {
    match value {
        Value::Object(fields) => {
            let prefix = fields.get("generateName").and_then(Value::as_str).map(str::to_owned);
            let scrubbed = fields.into_iter().map(|(name, value)| {
                let value = match (name.as_str(), &prefix) {
                    ("name", Some(prefix)) => format!("{prefix}xxxxx").into(),
                    ("cells", _) => json!([]),
                    _ => scrub(value, &name),
                };
                (name, value)
            });
            Value::Object(scrubbed.collect())
        }
        Value::Array(items) => items.into_iter().map(|item| scrub(item, "")).collect(),
        Value::String(text) if field == "resourceVersion" && !text.is_empty() => "1".into(),
        Value::String(text) if text.parse::<Timestamp>().is_ok() => "TIME".into(),
        Value::String(text) => without_uids(&text).into(),
        other => other,
    }
}

fn without_uids(text: &str) -> String {
    let is_uid =
        |start: usize| text.get(start..start + 36).is_some_and(|at| Uuid::try_parse(at).is_ok());
    match (0..text.len()).find(|start| is_uid(*start)) {
        Some(start) => {
            format!("{}UID{}", &text[..start], without_uids(&text[start + 36..]))
        }
        None => text.to_owned(),
    }
}

fn keys(event: &Value) -> Vec<&String> {
    event.as_object().map(|fields| fields.keys().collect()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn the_same_requests_leave_the_same_events_as_upstream() {
    let recorded: Vec<Recorded> = RECORDED
        .lines()
        .map(|line| serde_json::from_str(line).expect("a recorded request"))
        .collect();
    let mut site = Site::new(POLICY).await;
    for (at, Recorded { step, .. }) in recorded.iter().enumerate() {
        site.ask(at, step).await;
    }
    let events = site.events().await;
    let mut differences = Vec::new();
    for (at, Recorded { step, events: expected }) in recorded.iter().enumerate() {
        let id = format!("step-{at:03}");
        let found = events.iter().filter(|event| event["auditID"] == id);
        let found: Vec<Value> = found.map(|event| scrub(event.clone(), "")).collect();
        let order = |events: &[Value]| format!("{:?}", events.iter().map(keys).collect::<Vec<_>>());
        if found != *expected || order(&found) != order(expected) {
            let text = |events: &[Value]| {
                events.iter().map(|event| format!("{event}\n")).collect::<String>()
            };
            differences.push(format!(
                "{id} {}\nupstream:\n{}ours:\n{}",
                step.request,
                text(expected),
                text(&found)
            ));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

const EVERYTHING: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n";

#[tokio::test]
async fn a_patch_in_yaml_is_logged_as_json_and_one_that_is_neither_is_left_out() {
    let mut site = Site::new(EVERYTHING).await;
    let patch = |media: &str, text: &str| Step {
        media_type: media.to_owned(),
        text: Some(text.to_owned()),
        ..Step::new("PATCH /api/v1/namespaces/default?fieldManager=me")
    };
    let text = "apiVersion: v1\nkind: Namespace\nmetadata: {labels: {a: b}}\n";
    let (code, answer) = site.ask(0, &patch("application/apply-patch+yaml", text)).await;
    assert_eq!(code, 200, "{answer}");
    let (code, _) = site.ask(1, &patch("application/merge-patch+json", "{\"a")).await;
    assert_eq!(code, 400);
    let events = site.events().await;
    let stages: Vec<&Value> = events.iter().map(|event| &event["stage"]).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseComplete"].repeat(2));
    let expected =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"a": "b"}}});
    assert_eq!(events[1]["requestObject"], expected);
    assert_eq!(events[3].get("requestObject"), None);
    assert_eq!(events[3]["responseStatus"]["code"], 400);
}

#[tokio::test]
async fn managed_fields_stay_unless_the_policy_omits_them() {
    let namespaces = async |policy: &str| {
        let mut site = Site::new(policy).await;
        let body = Some(json!({"metadata": {"name": "a", "labels": {"b": "c"}}}));
        site.ask(0, &Step { body, ..Step::new("POST /api/v1/namespaces") }).await;
        site.ask(1, &Step::new("GET /api/v1/namespaces")).await;
        let event = site.events().await.pop().expect("an event");
        let items = event["responseObject"]["items"].as_array().cloned().unwrap_or_default();
        assert!(!items.is_empty(), "{event}");
        items.iter().any(|item| item["metadata"].get("managedFields").is_some())
    };
    assert!(namespaces(EVERYTHING).await);
    assert!(!namespaces(&format!("{EVERYTHING}omitManagedFields: true\n")).await);
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_is_told_to_its_end() {
    let mut site = Site::new(EVERYTHING).await;
    let mut step = Step::new("POST /api/v1/namespaces");
    step.body = Some(json!({"metadata": {"name": "a"}}));
    // Polled once, then dropped: the body was not read.
    {
        let server = site.server.clone();
        let body = http_body_util::StreamBody::new(futures::stream::pending::<
            Result<http_body::Frame<Bytes>, std::convert::Infallible>,
        >());
        let request = Request::post("/api/v1/namespaces")
            .header("authorization", "Bearer admin")
            .body(body)
            .expect("a request");
        let call = std::pin::pin!(server.call(request));
        assert!(futures::poll!(call).is_pending());
    }
    site.ask(1, &step).await;
    let events = site.events().await;
    let told = events.iter().map(|event| {
        let status = &event["responseStatus"];
        let word = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
        let code = status["code"].as_i64().unwrap_or_default();
        (word(&event["stage"]), code, word(&status["message"]))
    });
    let told: Vec<(String, i64, String)> = told.collect();
    let told: Vec<(&str, i64, &str)> =
        told.iter().map(|(stage, code, message)| (&**stage, *code, &**message)).collect();
    assert_eq!(
        told,
        [
            ("RequestReceived", 0, ""),
            ("ResponseComplete", 200, "Connection closed early"),
            ("RequestReceived", 0, ""),
            ("ResponseComplete", 201, ""),
        ]
    );
    let id = events[0]["auditID"].as_str().expect("an id");
    assert!(Uuid::try_parse(id).is_ok(), "{id}: it is made up where the request brings none");
    assert_eq!(events[0]["requestReceivedTimestamp"], "2023-11-14T22:13:20.123456Z");
}

#[tokio::test]
async fn a_panic_is_the_last_that_is_told() {
    let site = Site::new(EVERYTHING).await;
    let (parts, ()) = Request::get("/version").body(()).expect("a request").into_parts();
    let user = User::anonymous();
    let trail = Trail::begin(&site.log, Some(&user), &parts).await.expect("it is logged");
    trail.panicked("assertion failed");
    drop(trail);
    let events = site.events().await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[1]["stage"], "Panic");
    assert_eq!(
        events[1]["responseStatus"],
        json!({"metadata": {}, "status": "Failure", "message": "APIServer panic'd: assertion failed",
            "reason": "InternalError", "code": 500})
    );
}

#[tokio::test]
async fn what_the_policy_does_not_want_leaves_nothing() {
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
                  - {level: None, verbs: [get]}\n- {level: Metadata}\n";
    let mut site = Site::new(policy).await;
    site.ask(0, &Step::new("GET /version")).await;
    site.ask(1, &Step::new("GET /api/v1/namespaces")).await;
    let counts = site.log.counts();
    let events = site.events().await;
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["auditID"], &events[0]["verb"]), (&json!("step-001"), &json!("list")));
    assert_eq!((counts.events, counts.errors), (1, 0));
    assert_eq!(counts.levels[..2], [(Level::None, 1), (Level::Metadata, 1)]);
}

#[tokio::test]
async fn a_log_that_is_full_holds_requests_back_and_drops_none() {
    let site = Site::new(EVERYTHING).await;
    let (parts, ()) = Request::get("/version").body(()).expect("a request").into_parts();
    let user = User::anonymous();
    let begin = || Trail::begin(&site.log, Some(&user), &parts);
    let mut trails = 0;
    loop {
        let mut next = std::pin::pin!(begin());
        match futures::poll!(&mut next) {
            std::task::Poll::Ready(trail) => drop(trail),
            std::task::Poll::Pending => break,
        }
        trails += 1;
    }
    let stop = CancellationToken::new();
    let waiting = async {
        begin().await;
        stop.cancel();
    };
    tokio::join!(site.log.run(stop.clone()), waiting);
    let counts = site.log.counts();
    assert_eq!((counts.events, counts.errors), (2 * (trails + 1), 0));
    let written = read(&site.dir.path().join("logs/audit.log")).len();
    assert_eq!(written as u64, counts.events);
}
