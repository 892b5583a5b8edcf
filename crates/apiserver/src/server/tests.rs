//! The whole server, in memory.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kubewright_store::Config;
use serde_json::{Value, json};

use super::*;
use crate::authn::Verifier;
use crate::index;

/// A server with nothing in it, and somebody who may do anything.
pub(crate) fn server() -> Server {
    server_with(connect::Access::default())
}

/// The same, which reaches nodes as it is told.
pub(crate) fn server_with(kubelets: connect::Access) -> Server {
    made(kubelets, true)
}

/// The same, where no container may be privileged.
pub(crate) fn strict_server() -> Server {
    made(connect::Access::default(), false)
}

fn made(kubelets: connect::Access, allows_privileged: bool) -> Server {
    let clock = || Duration::from_secs(1_700_000_000);
    let store = Store::memory(Config::new(index::extract, index::resource_of, clock));
    let modes = vec![authz::Mode::Node, authz::Mode::Rbac];
    let authorizer = Arc::new(Authorizer::new(store.clone()).with_modes(modes));
    let authenticator = Authenticator::new(
        store.clone(),
        authorizer,
        Default::default(),
        Verifier::new(Vec::new(), Vec::new(), Vec::new()),
    );
    Server::new(Settings {
        store,
        authenticator,
        issuer: None,
        address: "127.0.0.1:6443".to_owned(),
        service_cidrs: vec!["10.0.0.0/24".to_owned()],
        node_ports: 30_000..=32_767,
        shutdown: CancellationToken::new(),
        audit: None,
        identity: None,
        kubelets,
        companions: Vec::new(),
        admission: PluginSet::default().with(admission::Plugin::NodeRestriction),
        allows_privileged,
        version: crate::version::GIT_VERSION.to_owned(),
    })
}

/// Makes a request as an administrator; the body is the path's second line.
pub(crate) async fn ask(server: &Server, line: &str, body: Value) -> (StatusCode, Value) {
    ask_as(server, line, "application/json", body).await
}

async fn ask_as(server: &Server, line: &str, media: &str, body: Value) -> (StatusCode, Value) {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let bytes = match body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .extension(Arc::new(User::new("admin", ["system:masters".to_owned()])))
        .body(Full::new(bytes))
        .expect("the request is well-formed");
    let response = server.call(request).await;
    let code = response.status();
    let body = response.into_body().collect().await.expect("a body ends").to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// What is inside a server, for those who go step by step.
pub(crate) fn inner(server: &Server) -> &Inner {
    &server.0
}

async fn with_namespace() -> Server {
    let server = server();
    let namespace = json!({"metadata": {"name": "a"}});
    let (code, answer) = ask(&server, "POST /api/v1/namespaces", namespace).await;
    assert_eq!(code, 201, "{answer}");
    server
}

#[tokio::test]
async fn an_object_is_created_changed_and_deleted() {
    let server = with_namespace().await;
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "1"}});
    let (code, created) = ask(&server, "POST /api/v1/namespaces/a/configmaps", map).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["metadata"]["namespace"], "a");

    let path = "/api/v1/namespaces/a/configmaps/m";
    let patch = json!({"data": {"k": "2"}});
    let merge = "application/merge-patch+json";
    let (code, patched) = ask_as(&server, &format!("PATCH {path}"), merge, patch.clone()).await;
    assert_eq!((code.as_u16(), &patched["data"]["k"]), (200, &json!("2")), "{patched}");
    let (_, again) = ask_as(&server, &format!("PATCH {path}"), merge, patch).await;
    assert_eq!(again["metadata"]["resourceVersion"], patched["metadata"]["resourceVersion"]);

    let (code, stale) = ask(&server, &format!("PUT {path}"), created).await;
    assert_eq!((code.as_u16(), &stale["reason"]), (409, &json!("Conflict")), "{stale}");

    let (code, deleted) = ask(&server, &format!("DELETE {path}"), Value::Null).await;
    assert_eq!((code.as_u16(), &deleted["status"]), (200, &json!("Success")), "{deleted}");
    let (code, gone) = ask(&server, &format!("DELETE {path}"), Value::Null).await;
    assert_eq!((code.as_u16(), &gone["reason"]), (404, &json!("NotFound")), "{gone}");
}

#[tokio::test]
async fn an_object_with_finalizers_waits_for_them() {
    let server = with_namespace().await;
    let map = json!({"metadata": {"name": "m", "finalizers": ["example.com/wait"]}});
    ask(&server, "POST /api/v1/namespaces/a/configmaps", map).await;
    let path = "/api/v1/namespaces/a/configmaps/m";
    let (_, marked) = ask(&server, &format!("DELETE {path}"), Value::Null).await;
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    let patch = json!({"metadata": {"finalizers": null}});
    let merge = "application/merge-patch+json";
    let (code, last) = ask_as(&server, &format!("PATCH {path}"), merge, patch).await;
    assert_eq!(code, 200, "{last}");
    let (code, _) = ask(&server, &format!("DELETE {path}"), Value::Null).await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn an_apply_creates_and_owns() {
    let server = with_namespace().await;
    let path = "PATCH /api/v1/namespaces/a/configmaps/m?fieldManager=me";
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"},
        "data": {"k": "1"}});
    let (code, applied) = ask_as(&server, path, "application/apply-patch+yaml", config).await;
    assert_eq!(code, 201, "{applied}");
    assert_eq!(applied["metadata"]["managedFields"][0]["manager"], "me", "{applied}");
}

#[tokio::test]
async fn nothing_is_created_where_there_is_no_namespace() {
    let server = server();
    let map = json!({"metadata": {"name": "m"}});
    let (code, refused) = ask(&server, "POST /api/v1/namespaces/a/configmaps", map).await;
    assert_eq!(code, 404);
    assert_eq!(refused["message"], "namespaces \"a\" not found");
}

#[tokio::test]
async fn what_is_defined_is_served_at_once_and_goes_with_its_definition() {
    let server = with_namespace().await;
    let shutdown = CancellationToken::new();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "properties": {"size": {"type": "integer", "default": 3}},
                }}},
            }}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, created) = ask(&server, &format!("POST {definitions}"), definition).await;
    assert_eq!(code, 201, "{created}");
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w"}, "spec": {"unknown": 1}});
    let widgets = "POST /apis/example.com/v1/namespaces/a/widgets";
    let (code, made) = ask(&server, widgets, widget).await;
    assert_eq!((code.as_u16(), &made["spec"]), (201, &json!({"size": 3})), "{made}");

    let leave = async {
        let path = format!("DELETE {definitions}/widgets.example.com");
        let (code, marked) = ask(&server, &path, Value::Null).await;
        assert_eq!(code, 200, "{marked}");
        while server.0.store.get(&format!("{}widgets.example.com", crd::DEFINITIONS)).is_some() {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.0.store.count("/registry/example.com/"), 0);
        shutdown.cancel();
    };
    tokio::join!(server.run(shutdown.clone()), leave);
}

#[tokio::test]
async fn no_container_is_privileged_where_none_may_be() {
    let server = strict_server();
    let account = json!({"metadata": {"name": "default"}});
    ask(&server, "POST /api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    ask(&server, "POST /api/v1/namespaces/a/serviceaccounts", account).await;
    let container = |privileged: bool| json!({"name": "c", "image": "i", "securityContext": {"privileged": privileged}});
    let pod = |privileged| json!({"metadata": {"name": "p"}, "spec": {"containers": [container(privileged)]}});
    let pods = "POST /api/v1/namespaces/a/pods";
    let (code, refused) = ask(&server, pods, pod(true)).await;
    let why = "Pod \"p\" is invalid: spec.containers[0].securityContext.privileged: Forbidden: \
               disallowed by cluster policy";
    assert_eq!((code.as_u16(), &refused["message"]), (422, &json!(why)), "{refused}");
    let (code, created) = ask(&server, pods, pod(false)).await;
    assert_eq!(code, 201, "{created}");

    let labels = json!({"app": "a"});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container(true)]}},
    }});
    let path = "POST /apis/apps/v1/namespaces/a/deployments";
    let (code, refused) = ask(&server, path, deployment).await;
    let why = "Deployment.apps \"d\" is invalid: \
               spec.template.spec.containers[0].securityContext.privileged: Forbidden: disallowed \
               by cluster policy";
    assert_eq!((code.as_u16(), &refused["message"]), (422, &json!(why)), "{refused}");
}
