//! Requests and the flows that upstream's own objects, and others, give them.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, StatusCode};
use kubewright_apimachinery::yaml;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::upkeep::MANAGER;
use super::*;
use crate::genesis;
use crate::server::Server;
use crate::server::tests::{ask, server};
use crate::user::{UNAUTHENTICATED, service_account, service_account_groups};

/// Schemas and levels: those of a fresh server and these, with their names for uids.
fn flows(yaml: &str) -> Vec<Schema> {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let mut objects: Vec<Value> = genesis::flow_control(now).map(|own| own.object).collect();
    for text in yaml.split("---").filter(|text| !text.trim().is_empty()) {
        objects.push(yaml::decode(text).expect("yaml").value);
    }
    for object in &mut objects {
        object["metadata"]["uid"] = object["metadata"]["name"].clone();
    }
    let (schemas, levels): (Vec<Value>, Vec<Value>) =
        objects.into_iter().partition(|object| object["kind"] == "FlowSchema");
    compile(typed(schemas), typed(levels), &Metrics::default())
}

fn typed<T: DeserializeOwned>(objects: Vec<Value>) -> Vec<T> {
    objects.into_iter().map(|object| serde_json::from_value(object).expect("typed")).collect()
}

/// `schema -> level` for a request.
fn flow(schemas: &[Schema], user: &User, line: &str) -> String {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let method: Method = method.parse().expect("a method");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let target = Target::parse(&method, path, query == "watch=1", None);
    let schema = schemas.iter().find(|schema| schema.matches(user, &target)).expect("one matches");
    let text = |value: &HeaderValue| value.to_str().expect("text").to_owned();
    format!("{} -> {}", text(&schema.flow.schema_uid), text(&schema.flow.level_uid))
}

fn account(namespace: &str, name: &str) -> User {
    User::new(service_account(namespace, name), service_account_groups(namespace))
}

#[test]
fn a_fresh_server_tells_its_users_apart() {
    let schemas = flows("");
    let check = |user: &User, line: &str, expected: &str| {
        assert_eq!(flow(&schemas, user, line), expected, "{} {line}", user.name);
    };
    let pods = "GET /api/v1/namespaces/a/pods";
    let lease = "PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x";
    let master = User::new("admin", ["system:masters".to_owned()]);
    check(&master, pods, "exempt -> exempt");
    check(&master, "GET /healthz", "exempt -> exempt");

    let alice = User::new("alice", []);
    check(&alice, pods, "global-default -> global-default");
    check(&alice, "GET /api/v1/pods?watch=1", "global-default -> global-default");
    check(&alice, "GET /version", "global-default -> global-default");
    check(&alice, "GET /healthz", "probes -> exempt");
    check(&alice, "GET /livez/ping", "probes -> exempt");
    check(&alice, "GET /livezzz", "global-default -> global-default");
    check(&alice, "POST /healthz", "global-default -> global-default");
    check(&User::anonymous(), pods, "global-default -> global-default");
    assert!(User::anonymous().is_in(UNAUTHENTICATED));

    let scheduler = User::new("system:kube-scheduler", []);
    check(&scheduler, lease, "system-leader-election -> leader-election");
    check(&scheduler, pods, "kube-scheduler -> workload-high");
    let manager = User::new("system:kube-controller-manager", []);
    check(&manager, pods, "kube-controller-manager -> workload-high");
    let collector = account("kube-system", "generic-garbage-collector");
    check(&collector, lease, "system-leader-election -> leader-election");
    check(&collector, pods, "kube-system-service-accounts -> workload-high");
    check(&account("a", "default"), pods, "service-accounts -> workload-low");
    // Its namespace only begins like that of the system.
    check(&account("kube-system2", "x"), pods, "service-accounts -> workload-low");

    let node = User::new("system:node:n", ["system:nodes".to_owned()]);
    check(&node, pods, "system-nodes -> system");
    check(&node, "PATCH /api/v1/nodes/n/status", "system-node-high -> node-high");
    check(&node, "GET /api/v1/nodes/n", "system-node-high -> node-high");
}

const OWN: &str = "
kind: FlowSchema
metadata: {name: b-alice}
spec:
  matchingPrecedence: 9000
  priorityLevelConfiguration: {name: workload-low}
  rules:
  - subjects: [{kind: User, user: {name: alice}}]
    resourceRules:
    - {verbs: [list], apiGroups: [''], resources: [pods, nodes/status], namespaces: [a], clusterScope: true}
  - subjects: [{kind: User, user: {name: '*'}}]
    nonResourceRules:
    - {verbs: [get], nonResourceURLs: ['/openapi/*']}
---
kind: FlowSchema
metadata: {name: a-dangling}
spec:
  matchingPrecedence: 9000
  priorityLevelConfiguration: {name: nowhere}
  rules:
  - subjects: [{kind: Group, group: {name: '*'}}]
    resourceRules:
    - {verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true}
";

#[test]
fn rules_name_verbs_groups_resources_and_places() {
    let schemas = flows(OWN);
    let check = |line: &str, is_own: bool| {
        let expected = match is_own {
            true => "b-alice -> workload-low",
            false => "global-default -> global-default",
        };
        assert_eq!(flow(&schemas, &User::new("alice", []), line), expected, "{line}");
    };
    check("GET /api/v1/namespaces/a/pods", true);
    check("GET /api/v1/pods", true);
    check("GET /api/v1/namespaces/b/pods", false);
    check("GET /api/v1/namespaces/a/pods/x", false);
    check("GET /apis/apps/v1/namespaces/a/pods", false);
    check("GET /api/v1/namespaces/a/services", false);
    check("GET /openapi/v3", true);
    check("GET /openapi", false);
    check("POST /openapi/v3", false);
}

#[test]
fn what_must_be_there_is_there_before_it_is_stored() {
    let schemas = compile(Vec::new(), Vec::new(), &Metrics::default());
    assert_eq!(schemas.len(), 2);
    assert_eq!(flow(&schemas, &User::new("alice", []), "GET /api/v1/pods"), " -> ");
    assert!(schemas[0].flow.is_exempt && !schemas[1].flow.is_exempt);
}

#[test]
fn a_schema_says_whether_its_level_exists() {
    let check = |status: &str, levels: &[&str], expected: Option<(&str, &str)>| {
        let text = format!(
            "kind: FlowSchema\nspec: {{priorityLevelConfiguration: {{name: gold}}}}\n{status}"
        );
        let schema = yaml::decode(&text).expect("yaml").value;
        let schema = serde_json::from_value(schema).expect("typed");
        let condition = upkeep::condition(&schema, levels);
        let condition = condition.as_ref().map(|condition| {
            let text = |field: &str| condition[field].as_str().expect("a text");
            (text("status"), text("reason"))
        });
        assert_eq!(condition, expected, "{status}");
    };
    check("", &["silver"], Some(("True", "NotFound")));
    check("", &["silver", "gold"], Some(("False", "Found")));
    let said = "status: {conditions: [{type: Dangling, status: 'True', reason: NotFound, message: \
                'This FlowSchema references the PriorityLevelConfiguration object named \"gold\" \
                but there is no such object'}]}";
    check(said, &["silver"], None);
    check(said, &["gold"], Some(("False", "Found")));
}

/// The header of an answer to somebody who is no master.
async fn answered(server: &Server, name: &HeaderName, path: &str) -> (StatusCode, Option<String>) {
    let request = Request::get(path)
        .extension(Arc::new(User::new("alice", [])))
        .body(http_body_util::Empty::new())
        .expect("a request");
    let response = server.call(request).await;
    let header = response.headers().get(name).map(|uid| uid.to_str().expect("text").to_owned());
    (response.status(), header)
}

#[tokio::test]
async fn answers_name_the_flow_as_it_is_now() {
    let server = server();
    let (pods, exec) = ("/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/x/exec");
    let settings = genesis::Settings {
        now: jiff::Timestamp::UNIX_EPOCH,
        address: [127, 0, 0, 1].into(),
        port: 6443,
        service_cidrs: &["10.0.0.0/24"],
        client_ca: None,
        proxy: None,
        hostname: "host",
        process: "process",
    };
    server.begin(&settings).await.expect("begun");
    let schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let get =
        async |name: &str| ask(&server, &format!("GET {schemas}/{name}"), Value::Null).await.1;
    let uid = |object: &Value| object["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let (code, named) = answered(&server, &SCHEMA_UID, pods).await;
    // Also those who may not are told.
    assert_eq!((code.as_u16(), named), (403, Some(uid(&get("global-default").await))));
    let level = ask(
        &server,
        "GET /apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/global-default",
        Value::Null,
    );
    assert_eq!(answered(&server, &LEVEL_UID, pods).await.1, Some(uid(&level.await.1)));
    assert_eq!(answered(&server, &SCHEMA_UID, exec).await.1, None, "a stream has no flow");

    let shutdown = CancellationToken::new();
    let change = async {
        let mut own = json!({"metadata": {"name": "mine"}, "spec": {
            "matchingPrecedence": 50, "priorityLevelConfiguration": {"name": "gold"}, "rules": [{
                "subjects": [{"kind": "User", "user": {"name": "alice"}}],
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                    "namespaces": ["*"]}]}]}});
        let (code, made) = ask(&server, &format!("POST {schemas}"), own.clone()).await;
        assert_eq!(code, 201, "{made}");
        let dangling = async |status: &str| loop {
            let mine = get("mine").await;
            if mine["status"]["conditions"][0]["status"] == status {
                return mine;
            }
            tokio::task::yield_now().await;
        };
        let mine = dangling("True").await;
        let owner = &mine["metadata"]["managedFields"][0];
        assert_eq!((&owner["manager"], &owner["subresource"]), (&json!(MANAGER), &json!("status")));
        assert_ne!(answered(&server, &SCHEMA_UID, pods).await.1, Some(uid(&made)));

        own["spec"]["priorityLevelConfiguration"]["name"] = "system".into();
        let (code, _) = ask(&server, &format!("PUT {schemas}/mine"), own).await;
        assert_eq!(code, 200);
        dangling("False").await;
        assert_eq!(answered(&server, &SCHEMA_UID, pods).await.1, Some(uid(&made)));
        shutdown.cancel();
    };
    let work = async { tokio::join!(server.run(shutdown.clone()), change) };
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("nothing waits for ever");
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_away_is_back_after_a_minute() {
    let server = server();
    let schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let shutdown = CancellationToken::new();
    let probes = async || ask(&server, &format!("GET {schemas}/probes"), Value::Null).await.0;
    assert_eq!(probes().await, 404);
    let minute = tokio::time::timeout(2 * super::upkeep::PERIOD, server.run(shutdown.clone()));
    assert!(minute.await.is_err(), "it runs until it is told to stop");
    assert_eq!(probes().await, 200);
}
