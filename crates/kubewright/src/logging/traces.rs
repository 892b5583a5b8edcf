//! Traces that go to a collector, by OTLP over gRPC.

#[cfg(test)]
mod tests;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
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
