//! A server over TLS that stands for a kubelet, and clients that are led to it.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::connect::Access;
use crate::outbound::Identity;
use crate::outbound::tests::{Pair, authority, issued};
use crate::relay::{Switchable, Switched};
use crate::server::Server;
use crate::server::tests::{ask, server_with};
use crate::user::User;

/// Tells in its answer what it was asked. A path that ends in a number is answered with that
/// status. Who leaves HTTP is told so in its own words, and everything it says is said again.
struct Kubelet {
    address: SocketAddr,
    _server: JoinSet<()>,
}

impl Kubelet {
    /// Knows only clients that this certificate vouches for.
    async fn start(pair: &Pair, client_ca: &str) -> Self {
        let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(client_ca.as_bytes()).expect("one")).expect("it");
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(verifier.build().expect("a verifier"))
            .with_single_cert(chain, key)
            .expect("a pair");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut server = JoinSet::new();
        server.spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.expect("a client");
                let Ok(mut socket) = acceptor.accept(socket).await else { continue };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match socket.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
                let line = head.lines().next().unwrap_or_default();
                let target = line.split(' ').nth(1).unwrap_or_default();
                if head.contains("\r\nupgrade: spdy/3.1\r\n") {
                    let answer = format!(
                        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n\
                         upgrade: SPDY/3.1\r\nx-asked: {line}\r\n\r\n"
                    );
                    let _ = socket.write_all(answer.as_bytes()).await;
                    let (mut reader, mut writer) = tokio::io::split(socket);
                    let _ = tokio::io::copy(&mut reader, &mut writer).await;
                    continue;
                }
                let code = target.rsplit('/').next().and_then(|last| last.parse::<u16>().ok());
                let answer = format!(
                    "HTTP/1.1 {} Ok\r\ncontent-type: text/x\r\ncontent-length: {}\r\n\
                     connection: close\r\n\r\n{line}",
                    code.unwrap_or(200),
                    line.len(),
                );
                let _ = socket.write_all(answer.as_bytes()).await;
                let _ = socket.shutdown().await;
            }
        });
        Kubelet { address, _server: server }
    }
}

/// A server, a kubelet that it can reach, and a pod there. The container's name is a status.
async fn scene(authorities: fn(&str) -> Option<Vec<u8>>) -> (Server, Kubelet) {
    let (nodes, clients) = (authority("nodes"), authority("clients"));
    let own = issued(&clients, &["kube-apiserver-kubelet-client"], |_| {});
    let kubelet = Kubelet::start(&issued(&nodes, &["127.0.0.1"], |_| {}), &clients.pem()).await;
    let identity = Identity { certificate: own.certificate.into(), key: own.key.into() };
    let server = server_with(Access {
        authorities: authorities(&nodes.pem()),
        identity: Some(identity),
        ..Access::default()
    });
    let named = |name: &str| json!({ "metadata": { "name": name } });
    let containers = json!([{ "name": "main", "image": "i" }, { "name": "500", "image": "i" },
        { "name": "400", "image": "i" }, { "name": "404", "image": "i" }]);
    let pod = json!({ "metadata": { "name": "web" },
        "spec": { "nodeName": "n", "containers": containers } });
    for (path, object) in [
        ("namespaces", named("a")),
        ("namespaces/a/serviceaccounts", named("default")),
        ("nodes", named("n")),
        ("namespaces/a/pods", pod),
    ] {
        let (code, answer) = ask(&server, &format!("POST /api/v1/{path}"), object).await;
        assert_eq!(code, 201, "{answer}");
    }
    let (_, mut node) = ask(&server, "GET /api/v1/nodes/n", Value::Null).await;
    node["status"] = json!({
        "addresses": [{ "type": "ExternalIP", "address": "192.0.2.1" },
            { "type": "InternalIP", "address": "127.0.0.1" }],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": kubelet.address.port() } },
    });
    let (code, answer) = ask(&server, "PUT /api/v1/nodes/n/status", node).await;
    assert_eq!(code, 200, "{answer}");
    (server, kubelet)
}

fn request(method: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(format!("/api/v1/namespaces/a/{path}"))
        .header("authorization", "Bearer secret")
        .extension(Arc::new(User::new("admin", ["system:masters".to_owned()])))
}

async fn get(server: &Server, path: &str) -> (StatusCode, String) {
    let request = request("GET", path).body(Empty::<Bytes>::new()).expect("a request");
    let response = server.call(request).await;
    let code = response.status();
    let body = response.into_body().collect().await.expect("it ends").to_bytes();
    (code, String::from_utf8(body.to_vec()).expect("text"))
}

#[tokio::test]
async fn a_log_is_read_from_the_node() {
    let (server, _kubelet) = scene(|nodes| Some(nodes.into())).await;
    let check = async |query: &str, expected: &str| {
        let (code, said) = get(&server, &format!("pods/web/log?container=main{query}")).await;
        assert_eq!((code, said.as_str()), (StatusCode::OK, expected), "{query}");
    };
    check("", "get /containerlogs/a/web/main http/1.1").await;
    check(
        "&tailLines=5&follow=true&previous=0&sinceTime=2026-01-01T00:00:00%2B01:00&limitBytes=9",
        "get /containerlogs/a/web/main?follow=true&limitbytes=9&\
         sincetime=2025-12-31t23%3a00%3a00z&taillines=5 http/1.1",
    )
    .await;
}

#[tokio::test]
async fn what_a_node_complains_about_is_told() {
    let (server, _kubelet) = scene(|nodes| Some(nodes.into())).await;
    let check = async |container: &str, code: u16, message: &str| {
        let (found, said) = get(&server, &format!("pods/web/log?container={container}")).await;
        let said: Value = serde_json::from_str(&said).expect("a status");
        assert_eq!((found.as_u16(), &said["message"]), (code, &json!(message)));
    };
    let asked = |container: &str| format!("get /containerlogs/a/web/{container} http/1.1");
    check("500", 500, &format!("Internal error occurred: {}", asked("500"))).await;
    check("400", 400, &asked("400")).await;
    let message = "the server could not find the requested resource ( pods/log web)";
    check("404", 404, message).await;
}

#[tokio::test]
async fn a_node_must_be_who_it_says_unless_the_client_does_not_mind() {
    let (server, kubelet) = scene(|_| Some(authority("others").pem().into())).await;
    let (code, said) = get(&server, "pods/web/log?container=main").await;
    assert_eq!(code, 500);
    let said: Value = serde_json::from_str(&said).expect("a status");
    let message = format!(
        "Get \"https://{}/containerLogs/a/web/main\": tls: failed to verify certificate: x509: \
         certificate signed by unknown authority",
        kubelet.address
    );
    assert_eq!(said["message"], message);
    assert_eq!(said.get("reason"), None);
    let (code, _) =
        get(&server, "pods/web/log?container=main&insecureSkipTLSVerifyBackend=true").await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn a_stream_leaves_http_on_both_sides() {
    let (server, _kubelet) = scene(|_| None).await;
    for (method, path, expected) in [
        (
            "POST",
            "pods/web/exec?container=main&command=sh&command=-c&stdin=true&stdout=1&tty=0",
            "post /exec/a/web/main?command=sh&command=-c&input=1&output=1 http/1.1",
        ),
        (
            "GET",
            "pods/web/attach?container=main&stderr=true",
            "get /attach/a/web/main?error=1 http/1.1",
        ),
        ("POST", "pods/web/portforward", "post /portforward/a/web http/1.1"),
        ("GET", "pods/web/portforward?ports=80,81", "get /portforward/a/web?port=80%2c81 http/1.1"),
        (
            "GET",
            "pods/web/portforward?ports=80&ports=81",
            "get /portforward/a/web?port=80%2c81 http/1.1",
        ),
    ] {
        let request = request(method, path)
            .header("connection", "Upgrade")
            .header("upgrade", "SPDY/3.1")
            .extension(Switchable)
            .body(Empty::<Bytes>::new())
            .expect("a request");
        let response = server.call(request).await;
        assert_eq!(response.status(), 101, "{path}");
        let switched = response.extensions().get::<Switched>().expect("a connection");
        assert_eq!(switched.headers["x-asked"], expected);
        let mut stream = TokioIo::new(switched.take().expect("once"));
        stream.write_all(b"ping").await.expect("it is heard");
        let mut said = [0; 4];
        stream.read_exact(&mut said).await.expect("it is said again");
        assert_eq!(&said, b"ping");
    }
}

#[tokio::test]
async fn a_stream_must_leave_http() {
    let (server, _kubelet) = scene(|_| None).await;
    let (code, said) = get(&server, "pods/web/exec?container=main&command=ls").await;
    let said: Value = serde_json::from_str(&said).expect("a status");
    assert_eq!((code.as_u16(), &said["message"]), (400, &json!("Upgrade request required")));
}

#[tokio::test]
async fn nobody_is_led_to_this_machine_by_way_of_a_node() {
    let (server, _kubelet) = scene(|_| None).await;
    let (code, answer) = ask(&server, "GET /api/v1/nodes/n/proxy/stats/summary", Value::Null).await;
    assert_eq!((code.as_u16(), &answer["message"]), (400, &json!("address not allowed")));
}
