//! What a collector gets.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tracing::info_span;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use super::*;

#[tokio::test]
async fn spans_reach_a_collector_with_their_fields() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, mut calls) = mpsc::unbounded_channel();
    let mut collector = JoinSet::new();
    collector.spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let service = service_fn(move |request: Request<Incoming>| {
            let sender = sender.clone();
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect().await.expect("a body").to_bytes();
                sender.send((path, body)).expect("the test waits for it");
                let answer = Response::builder()
                    .header("content-type", "application/grpc")
                    .header("grpc-status", "0");
                Ok::<_, Infallible>(answer.body(Empty::<Bytes>::new()).expect("an answer"))
            }
        });
        // It ends with the connection, however that ends.
        let _ = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service)
            .await;
    });

    let traces = start("greeter", &endpoint).expect("it starts").expect("it sends traces");
    let subscriber = Registry::default().with(traces.layer());
    tracing::subscriber::with_default(subscriber, || {
        info_span!("reconcile", key = "shop/thor").in_scope(|| ());
    });
    // The collector's answer is too short to be taken for success, and it does not matter.
    let _ = spawn_blocking(move || traces.finish()).await.expect("it ends");

    let (path, body) = calls.recv().await.expect("a call");
    assert_eq!(path, "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
    for text in ["greeter", "reconcile", "shop/thor"] {
        let is_in = body.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        assert!(is_in, "{text} is not in {body:?}");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_none_is_refused() {
    let error = start("greeter", "not a place").err().expect("it is refused");
    assert!(error.to_string().starts_with("send traces to \"not a place\": "), "{error}");
}

#[test]
fn a_trace_goes_on_where_a_request_is_answered() {
    use opentelemetry::trace::TraceContextExt as _;

    let provider = SdkTracerProvider::builder().build();
    let subscriber = Registry::default().with(Traces(provider).layer());
    tracing::subscriber::with_default(subscriber, || {
        let id = |span: &Span| span.context().span().span_context().trace_id();
        let (asking, mut headers) = (info_span!("reconcile"), HeaderMap::new());
        asking.in_scope(|| tell(&mut headers));
        let told = headers["traceparent"].to_str().expect("a text");
        assert!(told.contains(&id(&asking).to_string()), "{told}");
        let (answering, alone) = (info_span!("grpc"), info_span!("grpc"));
        follow(&answering, &headers);
        follow(&alone, &HeaderMap::new());
        assert_eq!(id(&answering), id(&asking));
        assert_ne!(id(&alone), id(&asking));
    });
}
