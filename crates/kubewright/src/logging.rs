//! Where logs and traces go.
//!
//! Logs go to standard error, as text for people or as JSON for programs; each line has the fields
//! of the spans around it, so that a reconcile's lines name their controller and key. With the
//! feature `otlp`, spans also go to a collector, by OTLP over gRPC. The feature is off by default
//! since it brings a client for gRPC.
//!
//! ```no_run
//! # async fn example() -> Result<(), kubewright::logging::LoggingError> {
//! use kubewright::logging;
//! use kubewright::settings::Settings;
//!
//! let settings = Settings::default();
//! let logging = logging::start("greeter", &settings.logs, settings.otlp_endpoint.as_deref())?;
//! tracing::info!("started");
//! logging.finish().await;
//! # Ok(())
//! # }
//! ```

#[cfg(test)]
mod tests;
#[cfg(feature = "otlp")]
mod traces;
#[cfg(not(feature = "otlp"))]
#[path = "logging/traces_disabled.rs"]
mod traces;

use std::io::{self, IsTerminal as _};

use http::HeaderMap;
use tracing::{Span, Subscriber, warn};
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::settings::{LogFormat, Logs};
use traces::Traces;

/// Which spans are traced, whatever is logged: `kube` has one for each call of the API, and a queue
/// two for each change, which nobody wants to see in every line.
const TRACED: &str = "info,kube_client=debug,kubewright::trail=debug";

/// Why nothing is logged.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    #[error("log at the level {level:?}: {cause}")]
    Level { level: String, cause: String },
    #[error("send traces to {endpoint:?}: {cause}")]
    Traces { endpoint: String, cause: String },
    /// Logs of a process go to one place, and it has been chosen.
    #[error("log: somebody else does already")]
    Started,
}

/// Logs and traces that are under way.
#[must_use = "what is not finished may be lost"]
pub struct Logging {
    traces: Option<Traces>,
}

/// Says in the headers of a request which span it is sent in (`traceparent`), so that the trace goes
/// on where it is answered.
pub fn tell_trace(headers: &mut HeaderMap) {
    traces::tell(headers);
}

/// Has the span in which a request is answered be part of the trace that its headers tell of.
pub fn follow_trace(span: &Span, headers: &HeaderMap) {
    traces::follow(span, headers);
}

/// Has this process log, and send traces if there is somewhere to send them to. To be called in a
/// runtime, which traces are sent by.
///
/// # Errors
/// The level or the endpoint is not understood, or somebody has set up logs before.
pub fn start(
    name: &str,
    logs: &Logs,
    otlp_endpoint: Option<&str>,
) -> Result<Logging, LoggingError> {
    let traces = match otlp_endpoint {
        Some(endpoint) => traces::start(name, endpoint)?,
        None => None,
    };
    let layer = traces.as_ref().map(Traces::layer);
    let color = io::stderr().is_terminal();
    let subscriber = subscriber(logs, layer, io::stderr, color)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LoggingError::Started)?;
    if let (Some(endpoint), None) = (otlp_endpoint, &traces) {
        // Clusters set the variable for everybody, so it is no reason not to start.
        warn!(endpoint, "traces are not sent: this program is built without the feature otlp");
    }
    Ok(Logging { traces })
}

impl Logging {
    /// Sends what has not been sent yet.
    pub async fn finish(self) {
        let Some(traces) = self.traces else { return };
        let finished = tokio::task::spawn_blocking(move || traces.finish()).await;
        if let Ok(Err(cause)) = finished {
            warn!(cause, "the last traces are lost");
        }
    }
}

/// Whoever hears all that happens: logs to `writer`, and traces.
fn subscriber<W>(
    logs: &Logs,
    traces: Option<impl Layer<Registry> + Send + Sync>,
    writer: W,
    color: bool,
) -> Result<impl Subscriber + Send + Sync, LoggingError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::builder().parse(&logs.level).map_err(|error| LoggingError::Level {
        level: logs.level.clone(),
        cause: error.to_string(),
    })?;
    let traces = traces.map(|traces| traces.with_filter(EnvFilter::new(TRACED)));
    let lines = lines(logs.format, filter, writer, color);
    Ok(Registry::default().with(traces).with(lines))
}

fn lines<S, W>(
    format: LogFormat,
    filter: EnvFilter,
    writer: W,
    color: bool,
) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer).with_ansi(color);
    match format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        // All spans: the innermost may be a call inside the reconcile that one looks for.
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true);
            let lines = lines.with_current_span(false).with_span_list(true);
            lines.with_filter(filter).boxed()
        }
    }
}
