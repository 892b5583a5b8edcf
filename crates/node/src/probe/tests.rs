use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, TCPSocketAction};
use kubewright::Clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic_health::ServingStatus;

use super::*;
use crate::runtime::{Fake, Id, ProbeKind};

fn fake() -> Fake {
    Fake::new(Clock::starting_at(Timestamp::UNIX_EPOCH), Vec::new())
}

/// A container of this machine.
fn target() -> Target {
    Target {
        kind: ProbeKind::Readiness,
        pod: Arc::new(Pod::default()),
        container: Arc::new(Container::default()),
        id: Id::new("t://main"),
        since: Timestamp::UNIX_EPOCH,
        address: Some(Ipv4Addr::LOCALHOST.into()),
    }
}

/// What a probe over gRPC finds at a port of this machine.
async fn probe(port: u16, service: Option<&str>) -> Health {
    let grpc = GRPCAction { port: port.into(), service: service.map(str::to_owned) };
    run(&fake(), &target(), &Probe { grpc: Some(grpc), ..Probe::default() }).await
}

fn get(port: u16, path: &str) -> HTTPGetAction {
    let (port, path) = (IntOrString::Int(port.into()), Some(path.to_owned()));
    HTTPGetAction { port, path, ..HTTPGetAction::default() }
}

/// What a probe over HTTP finds at a port of this machine.
async fn probe_http(port: u16, path: &str) -> Health {
    let http_get = Some(get(port, path));
    run(&fake(), &target(), &Probe { http_get, ..Probe::default() }).await
}

/// A server that takes so long and then says what the path asks for, and its port.
async fn listen(takes: Duration, tasks: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut asked: Vec<u8> = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                if stream.read_buf(&mut asked).await.expect("a request") == 0 {
                    break;
                }
            }
            tokio::time::sleep(takes).await;
            let asked = String::from_utf8_lossy(&asked).into_owned();
            let said = said(asked.split(' ').nth(1).unwrap_or_default(), port);
            // Who only connects does not read.
            let _ = stream.write_all(said.as_bytes()).await;
        }
    });
    port
}

fn said(path: &str, port: u16) -> String {
    let (status, location) = match path {
        "/well" => ("200 OK", String::new()),
        "/ill" => ("503 Service Unavailable", String::new()),
        "/near/here" => ("302 Found", "../well".to_owned()),
        "/absolute" => ("301 Moved Permanently", format!("http://127.0.0.1:{port}/near/here")),
        "/to-ill" => ("307 Temporary Redirect", "/ill".to_owned()),
        "/round" => ("302 Found", "/round".to_owned()),
        "/far" => ("302 Found", "http://example.com/well".to_owned()),
        "/nowhere" => ("302 Found", String::new()),
        _ => ("404 Not Found", String::new()),
    };
    let location = match location.as_str() {
        "" => String::new(),
        location => format!("location: {location}\r\n"),
    };
    format!("HTTP/1.1 {status}\r\n{location}content-length: 4\r\nconnection: close\r\n\r\nsaid")
}

/// A server of services whose health is known, and its port.
async fn serve<S>(service: S, tasks: &mut JoinSet<()>) -> u16
where
    S: tonic::codegen::Service<
            http::Request<tonic::body::Body>,
            Response = http::Response<tonic::body::Body>,
            Error = std::convert::Infallible,
        > + tonic::server::NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let server = tonic::transport::Server::builder().add_service(service);
    tasks.spawn(async move { server.serve_with_incoming(incoming).await.expect("it serves") });
    port
}

#[tokio::test]
async fn a_grpc_service_is_as_well_as_it_says() {
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status("ready", ServingStatus::Serving).await;
    reporter.set_service_status("busy", ServingStatus::NotServing).await;
    let mut tasks = JoinSet::new();
    let port = serve(health, &mut tasks).await;
    assert_eq!(probe(port, None).await, Health::Well);
    assert_eq!(probe(port, Some("ready")).await, Health::Well);
    let busy = "service unhealthy (responded with \"NOT_SERVING\")";
    assert_eq!(probe(port, Some("busy")).await, Health::Ill(busy.to_owned()));
    let unknown = "error: health rpc probe failed: \
                   rpc error: code = NotFound desc = service not registered";
    assert_eq!(probe(port, Some("other")).await, Health::Ill(unknown.to_owned()));
    tasks.shutdown().await;
}

/// A service that is called so and never answers.
#[derive(Clone)]
struct Mute<const IS_HEALTH: bool>;

impl tonic::server::NamedService for Mute<true> {
    const NAME: &'static str = "grpc.health.v1.Health";
}

impl tonic::server::NamedService for Mute<false> {
    const NAME: &'static str = "example.Other";
}

impl<const IS_HEALTH: bool> tonic::codegen::Service<http::Request<tonic::body::Body>>
    for Mute<IS_HEALTH>
{
    type Response = http::Response<tonic::body::Body>;
    type Error = std::convert::Infallible;
    type Future = std::future::Pending<Result<Self::Response, Self::Error>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<tonic::body::Body>) -> Self::Future {
        std::future::pending()
    }
}

#[tokio::test]
async fn a_server_without_the_health_protocol_is_told_so() {
    let mut tasks = JoinSet::new();
    let port = serve(Mute::<false>, &mut tasks).await;
    let expected = "error: this server does not implement the grpc health protocol \
                    (grpc.health.v1.Health): ";
    assert_eq!(probe(port, None).await, Health::Ill(expected.to_owned()));
    tasks.shutdown().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_or_is_not_there_takes_too_long() {
    let mut tasks = JoinSet::new();
    let port = serve(Mute::<true>, &mut tasks).await;
    let mute = "timeout: health rpc did not complete within 1s";
    assert_eq!(probe(port, None).await, Health::Ill(mute.to_owned()));
    tasks.shutdown().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let gone = format!(
        "timeout: failed to connect service \"127.0.0.1:{port}\" within 1s: \
         context deadline exceeded"
    );
    assert_eq!(probe(port, None).await, Health::Ill(gone));
}

#[tokio::test]
async fn a_server_is_as_well_as_its_last_answer_says() {
    let mut tasks = JoinSet::new();
    let port = listen(Duration::ZERO, &mut tasks).await;
    let ill = |why: &str| Health::Ill(why.to_owned());
    let warned = "Probe terminated redirects, Response body: said";
    for (path, expected) in [
        ("/well", Health::Well),
        ("well", Health::Well),
        ("/ill", ill("HTTP probe failed with statuscode: 503")),
        ("/near/here", Health::Well),
        ("/absolute", Health::Well),
        ("/to-ill", ill("HTTP probe failed with statuscode: 503")),
        ("/round", ill("Get \"/round\": stopped after 10 redirects")),
        ("/far", Health::Warned(warned.to_owned())),
        ("/nowhere", Health::Warned(warned.to_owned())),
    ] {
        assert_eq!(probe_http(port, path).await, expected, "{path}");
    }
    tasks.shutdown().await;
}

#[tokio::test]
async fn a_port_is_as_well_as_it_takes_connections() {
    let mut tasks = JoinSet::new();
    let port = listen(Duration::ZERO, &mut tasks).await;
    let tcp = |port: u16| Probe {
        tcp_socket: Some(TCPSocketAction {
            port: IntOrString::Int(port.into()),
            ..TCPSocketAction::default()
        }),
        ..Probe::default()
    };
    assert_eq!(run(&fake(), &target(), &tcp(port)).await, Health::Well);
    tasks.shutdown().await;
    let refused = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
    assert_eq!(run(&fake(), &target(), &tcp(port)).await, Health::Ill(refused.clone()));
    let refused = format!("Get \"http://127.0.0.1:{port}/well\": {refused}");
    assert_eq!(probe_http(port, "/well").await, Health::Ill(refused));
}

#[test]
fn a_command_says_by_its_end_whether_its_container_is_well() {
    assert_eq!(told(Ok((0, b"fine".to_vec()))), Health::Well);
    assert_eq!(told(Ok((1, b"tired".to_vec()))), Health::Ill("tired".to_owned()));
    let gone = RuntimeError::NotFound("gone".to_owned());
    assert_eq!(told(Err(gone)), Health::Unknown("gone".to_owned()));
}

/// Hooks were cut off after a second, as probes are, and failed with what they were told.
#[tokio::test(start_paused = true)]
async fn a_hook_waits_for_any_answer() {
    let mut tasks = JoinSet::new();
    let port = listen(Duration::from_secs(60), &mut tasks).await;
    assert_eq!(call(&fake(), &target(), &get(port, "/ill")).await, Ok(()));
    assert_eq!(call(&fake(), &target(), &get(port, "/far")).await, Ok(()));
    tasks.shutdown().await;
    let nobody = call(&fake(), &target(), &get(port, "/ill")).await;
    assert!(matches!(nobody, Err(RuntimeError::Failed(_))), "{nobody:?}");
}
