//! How many requests a client makes, what comes of them, and how long that takes.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

/// client-go's buckets, in seconds.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// What is counted of requests, under client-go's names.
#[derive(Debug)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    duration: Family<DurationLabels, Histogram, fn() -> Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    /// `<error>` when there was no answer.
    code: String,
    method: String,
    host: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    verb: String,
    host: String,
}

impl Metrics {
    pub fn new(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        let metrics = Metrics {
            requests: Family::default(),
            duration: Family::new_with_constructor(histogram),
        };
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host",
            metrics.requests.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Request latency in seconds, until the head of the answer. Broken down by verb, and host",
            metrics.duration.clone(),
        );
        metrics
    }

    fn count(&self, method: &str, host: &str, code: Option<u16>, started: Instant) {
        let (method, host) = (method.to_owned(), host.to_owned());
        let verb = DurationLabels { verb: method.clone(), host: host.clone() };
        self.duration.get_or_create(&verb).observe(started.elapsed().as_secs_f64());
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        self.requests.get_or_create(&RequestLabels { code, method, host }).inc();
    }
}

/// Measures the requests of a client to a host.
#[derive(Debug, Clone)]
pub struct Measure {
    metrics: Option<Arc<Metrics>>,
    host: Arc<str>,
}

impl Measure {
    /// Without metrics nothing is measured. The host is what is shown: requests do not know it yet
    /// when they pass by.
    pub fn new(metrics: Option<Arc<Metrics>>, host: impl Into<Arc<str>>) -> Self {
        Measure { metrics, host: host.into() }
    }
}

impl<S> Layer<S> for Measure {
    type Service = Measured<S>;

    fn layer(&self, inner: S) -> Measured<S> {
        Measured { inner, measure: self.clone() }
    }
}

/// A client whose requests are measured.
#[derive(Debug, Clone)]
pub struct Measured<S> {
    inner: S,
    measure: Measure,
}

impl<S, A, B> Service<Request<A>> for Measured<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let Measure { metrics, host } = self.measure.clone();
        let method = request.method().clone();
        let started = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if let Some(metrics) = metrics {
                let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
                metrics.count(method.as_str(), &host, code, started);
            }
            answer
        })
    }
}
