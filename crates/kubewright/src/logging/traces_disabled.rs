//! No traces: what stands in for them without the feature `otlp`.

use http::HeaderMap;
use tracing::Span;
use tracing_subscriber::layer::Identity;

use super::LoggingError;

pub(super) enum Traces {}

pub(super) fn start(_: &str, _: &str) -> Result<Option<Traces>, LoggingError> {
    Ok(None)
}

impl Traces {
    pub(super) fn layer(&self) -> Identity {
        match *self {}
    }

    pub(super) fn finish(self) -> Result<(), String> {
        match self {}
    }
}

pub(super) fn tell(_: &mut HeaderMap) {}

pub(super) fn follow(_: &Span, _: &HeaderMap) {}
