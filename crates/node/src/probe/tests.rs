use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kubewright::Clock;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic_health::ServingStatus;

use super::*;
use crate::runtime::{Fake, Id, ProbeKind};

/// What a probe finds at a port of this machine.
async fn probe(port: u16, service: Option<&str>) -> Health {
    let fake = Fake::new(Clock::starting_at(Timestamp::UNIX_EPOCH), Vec::new());
    let target = Target {
        kind: ProbeKind::Readiness,
        pod: Arc::new(Pod::default()),
        container: Arc::new(Container::default()),
        id: Id::new("t://main"),
        since: Timestamp::UNIX_EPOCH,
        address: Some(Ipv4Addr::LOCALHOST.into()),
    };
    let grpc = GRPCAction { port: port.into(), service: service.map(str::to_owned) };
    run(&fake, &target, &Probe { grpc: Some(grpc), ..Probe::default() }).await
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
