//! Requests that are passed on to a pod, and its answers.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::body::Body;
use crate::connect::destination::{Destination, Guard, Way};
use crate::connect::passage::{Asked, pass};
use crate::outbound::Line;
use crate::refusal::Refusal;
use crate::sample::store;

/// Answers one request, and tells what it was.
async fn pod(answer: String) -> (SocketAddr, JoinSet<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await.expect("a head"));
        }
        socket.write_all(answer.as_bytes()).await.expect("heard");
        String::from_utf8(head).expect("text").to_ascii_lowercase()
    });
    (address, serving)
}

/// Asks for what is below a proxy, as a client at `server:6443` would.
async fn ask(address: SocketAddr, path: &str, target: &str) -> Result<Response<Body>, Refusal> {
    let host = address.ip().to_string();
    let line = Line::to_host(store(), host, address.port(), None);
    let way = Way::Proxy { path: path.to_owned(), guard: Guard::Open };
    let request = Request::get(target)
        .header("host", "server:6443")
        .header("authorization", "Bearer secret")
        .header("connection", "x-hop")
        .header("x-hop", "1")
        .body(())
        .expect("a request");
    let (parts, ()) = request.into_parts();
    let asked = Asked { parts: &parts, body: Empty::<Bytes>::new(), name: "web" };
    pass(Destination { line, way }, asked).await
}

fn answer(headers: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

const PROXY: &str = "/api/v1/namespaces/a/pods/web/proxy";

#[tokio::test]
async fn a_request_is_passed_on_without_what_is_for_this_server() {
    let (address, mut serving) = pod(answer("content-type: text/x\r\nx-own: 1\r\n", "said")).await;
    let target = format!("{PROXY}/a%20b/?z=1&y=%2F");
    let response = ask(address, "/a b/", &target).await.expect("an answer");
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-own"], "1");
    let body = response.into_body().collect().await.expect("it ends").to_bytes();
    assert_eq!(body.as_ref(), b"said");
    let asked = serving.join_next().await.expect("it served").expect("without a panic");
    assert!(asked.starts_with("get /a%20b/?z=1&y=%2f http/1.1\r\n"), "{asked}");
    assert!(asked.contains("\r\nhost: server:6443\r\n"), "{asked}");
    let uri = format!("\r\nx-forwarded-uri: {PROXY}/a%20b/\r\n");
    assert!(asked.contains(&uri), "{asked}");
    for gone in ["authorization", "x-hop", "connection: x-hop"] {
        assert!(!asked.contains(gone), "{asked}");
    }
}

#[tokio::test]
async fn links_of_pages_lead_through_the_proxy() {
    let page = "<a href=\"/x\">x</a><a href=\"y\">y</a>";
    let (address, _serving) = pod(answer("content-type: text/html; charset=utf-8\r\n", page)).await;
    let response = ask(address, "/a b", &format!("{PROXY}/a%20b")).await.expect("an answer");
    let body = response.into_body().collect().await.expect("it ends").to_bytes();
    let expected = format!("<a href=\"{PROXY}/x\">x</a><a href=\"y\">y</a>");
    assert_eq!(String::from_utf8_lossy(&body), expected);
}

#[tokio::test]
async fn the_root_has_a_slash() {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
    let response = ask(nowhere, "", &format!("{PROXY}?a=1")).await.expect("an answer");
    let place = response.headers()["location"].to_str().expect("text");
    assert_eq!((response.status().as_u16(), place), (301, &*format!("{PROXY}/?a=1")));
}

#[tokio::test]
async fn a_pod_that_does_not_answer_is_unavailable() {
    let (address, mut serving) = pod(String::new()).await;
    serving.shutdown().await;
    let refusal = ask(address, "/", &format!("{PROXY}/")).await.err().expect("nobody is there");
    let message =
        format!("error trying to reach service: dial tcp {address}: connect: connection refused");
    assert_eq!((refusal.code, refusal.message), (503, message));
}
