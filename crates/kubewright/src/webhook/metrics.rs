//! What is counted of webhooks, under controller-runtime's names.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// How webhooks fare.
#[derive(Debug)]
pub struct Metrics {
    latency: Family<Path, Histogram, fn() -> Histogram>,
    requests: Family<Outcome, Counter>,
    in_flight: Family<Path, Gauge>,
    pub(super) panics: Counter,
    pub(super) conversion_panics: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Path {
    webhook: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    webhook: String,
    code: u16,
}

/// A request that is being answered.
pub(super) struct InFlight(Gauge);

impl Metrics {
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Metrics {
            latency: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(10e-9, 10.0, 12))
            }),
            requests: Family::default(),
            in_flight: Family::default(),
            panics: Counter::default(),
            conversion_panics: Counter::default(),
        };
        let registry = registry.sub_registry_with_prefix("controller_runtime");
        registry.register(
            "webhook_latency_seconds",
            "Histogram of the latency of processing admission requests",
            metrics.latency.clone(),
        );
        registry.register(
            "webhook_requests",
            "Total number of admission requests by HTTP status code",
            metrics.requests.clone(),
        );
        registry.register(
            "webhook_requests_in_flight",
            "Current number of admission requests being served",
            metrics.in_flight.clone(),
        );
        registry.register(
            "webhook_panics",
            "Total number of webhook panics",
            metrics.panics.clone(),
        );
        registry.register(
            "conversion_webhook_panics",
            "Total number of conversion webhook panics",
            metrics.conversion_panics.clone(),
        );
        metrics
    }

    /// Shows a webhook from the start, with the most likely outcomes, so that rates can be told.
    pub(super) fn expect(&self, webhook: &str) {
        for code in [200, 500] {
            let outcome = Outcome { webhook: webhook.to_owned(), code };
            let _ = self.requests.get_or_create(&outcome);
        }
        let path = Path { webhook: webhook.to_owned() };
        let _ = (self.in_flight.get_or_create(&path), self.latency.get_or_create(&path));
    }

    pub(super) fn begin(&self, webhook: &str) -> InFlight {
        let path = Path { webhook: webhook.to_owned() };
        let gauge = self.in_flight.get_or_create_owned(&path);
        gauge.inc();
        InFlight(gauge)
    }

    pub(super) fn end(&self, webhook: &str, code: u16, took: Duration) {
        let path = Path { webhook: webhook.to_owned() };
        self.latency.get_or_create(&path).observe(took.as_secs_f64());
        let outcome = Outcome { webhook: webhook.to_owned(), code };
        self.requests.get_or_create(&outcome).inc();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}
