//! Traces that go to a collector, by OTLP over gRPC.

#[cfg(test)]
mod tests;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::LoggingError;

pub(super) struct Traces(SdkTracerProvider);

/// Sends spans under the name of the operator, in batches.
pub(super) fn start(name: &str, endpoint: &str) -> Result<Option<Traces>, LoggingError> {
    let exporter =
        SpanExporter::builder().with_tonic().with_endpoint(endpoint).build().map_err(|error| {
            LoggingError::Traces { endpoint: endpoint.to_owned(), cause: error.to_string() }
        })?;
    let resource = Resource::builder().with_service_name(name.to_owned()).build();
    let provider =
        SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    Ok(Some(Traces(provider)))
}

impl Traces {
    pub(super) fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer().with_tracer(self.0.tracer("kubewright"))
    }

    /// Sends what is left; it waits for the collector.
    pub(super) fn finish(self) -> Result<(), String> {
        self.0.shutdown().map_err(|error| error.to_string())
    }
}

/// Says in headers which span this is, as W3C has it.
pub(super) fn tell(headers: &mut HeaderMap) {
    let context = Span::current().context();
    TraceContextPropagator::new().inject_context(&context, &mut Told(headers));
}

/// Has a span be part of what headers tell of, if they do.
pub(super) fn follow(span: &Span, headers: &HeaderMap) {
    let parent = TraceContextPropagator::new().extract(&Heard(headers));
    // A span that is not traced follows nobody.
    let _ = span.set_parent(parent);
}

struct Told<'a>(&'a mut HeaderMap);

impl Injector for Told<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}

struct Heard<'a>(&'a HeaderMap);

impl Extractor for Heard<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}
