//! What is said before connecting, as upstream says it; and what passes once a node is reached.

mod node;
mod proxy;

use serde_json::{Value, json};

use super::passage::Hosts;
use crate::server::Server;
use crate::server::tests::{ask, server};

/// Pods here and there, a node, and a service without endpoints.
async fn scene() -> Server {
    let server = server();
    let named = |name: &str| json!({"metadata": {"name": name}});
    let pod = |name: &str, node: &str, containers: &[&str]| {
        let containers: Vec<Value> =
            containers.iter().map(|name| json!({"name": name, "image": "i"})).collect();
        json!({
            "metadata": {"name": name},
            "spec": {"nodeName": node, "containers": containers},
        })
    };
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    for (path, object) in [
        ("namespaces", named("a")),
        ("namespaces/a/serviceaccounts", named("default")),
        ("nodes", named("n")),
        ("namespaces/a/services", service),
        ("namespaces/a/pods", pod("waits", "", &["c"])),
        ("namespaces/a/pods", pod("pair", "", &["c", "d"])),
        ("namespaces/a/pods", pod("lost", "nowhere", &["c"])),
        ("namespaces/a/pods", pod("runs", "n", &["c"])),
    ] {
        let (code, answer) = ask(&server, &format!("POST /api/v1/{path}"), object).await;
        assert_eq!(code, 201, "{answer}");
    }
    server
}

#[tokio::test]
async fn what_upstream_finds_wrong_is_said_before_connecting() {
    let server = scene().await;
    for (line, code, message) in [
        ("GET pods/waits/log", 204, ""),
        ("GET pods/waits/log?container=d", 400, "container d is not valid for pod waits"),
        ("GET pods/absent/log", 404, "pods \"absent\" not found"),
        ("GET pods/lost/log", 404, "pods \"nowhere\" not found"),
        (
            "GET pods/pair/log",
            400,
            "a container name must be specified for pod pair, choose one of: [c d]",
        ),
        ("GET pods/pair/log?container=d", 204, ""),
        ("POST pods/waits/exec", 400, "pod waits does not have a host assigned"),
        ("GET pods/waits/attach", 400, "pod waits does not have a host assigned"),
        ("GET pods/waits/portforward", 400, "pod waits does not have a host assigned"),
        ("PUT pods/waits/proxy", 400, "address not allowed"),
        ("GET pods/http:waits:80/proxy/path", 400, "address not allowed"),
        ("GET services/s/proxy", 404, "services \"s\" not found"),
    ] {
        check(&server, line, code, message).await;
    }
}

#[tokio::test]
async fn a_node_must_say_where_it_is() {
    let server = scene().await;
    for line in ["GET pods/runs/log", "POST pods/runs/exec", "GET pods/runs/portforward"] {
        let message = "no preferred addresses found; known addresses: []";
        check(&server, line, 500, message).await;
    }
}

#[tokio::test]
async fn what_is_wrong_with_options_is_said_first() {
    let server = scene().await;
    check(&server, "POST pods/waits/exec?dryRun=All", 400, "dryRun is not supported").await;
    let message = "PodLogOptions \"waits\" is invalid: tailLines: Invalid value: -1: must be greater \
                   than or equal to 0";
    check(&server, "GET pods/waits/log?tailLines=-1", 422, message).await;
}

async fn check(server: &Server, line: &str, code: u16, message: &str) {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let line = format!("{method} /api/v1/namespaces/a/{path}");
    let (found, answer) = ask(server, &line, Value::Null).await;
    let text = answer["message"].as_str().unwrap_or_default();
    assert_eq!((found.as_u16(), text), (code, message), "{line}");
}

#[test]
fn places_are_seen_from_where_the_client_is() {
    let check = |place: &str, expected: &str| {
        let hosts = Hosts { behind: "10.0.0.1:80", own: "server:6443" };
        assert_eq!(hosts.seen_by_client(place, "/api/pods/web/proxy"), expected, "{place}");
    };
    check("/login?next=1", "/api/pods/web/proxy/login?next=1");
    check("/api/pods/web/proxy/login", "/api/pods/web/proxy/login");
    check("http://10.0.0.1:80/login/", "/api/pods/web/proxy/login/");
    check("http://server:6443/login", "http://server:6443/api/pods/web/proxy/login");
    check("https://elsewhere/login", "https://elsewhere/login");
    check("login", "login");
}
