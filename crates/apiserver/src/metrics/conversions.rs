//! What webhooks made of the versions of custom resources.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::histogram::{CONVERSION_SECONDS, DECISION_SECONDS, Histogram};
use super::text::{Kind, Page};

/// Objects were to be converted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Converted<'a> {
    /// The name of the definition.
    pub(crate) definition: &'a str,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) elapsed: Duration,
    pub(crate) failure: Option<Failure>,
}

/// What is wrong with a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Failure {
    /// Nobody answered, or in no form that can be read.
    Call,
    /// What was answered is no answer.
    Malformed,
    /// As many objects should come as went.
    Partial,
    /// An object came that is not the one that went.
    InvalidObject,
}

#[derive(Debug, Default)]
pub(super) struct Conversions(Mutex<Durations>);

#[derive(Debug, Default)]
struct Durations {
    /// By definition, version from, whether it worked, and version to.
    versions: BTreeMap<[String; 4], Histogram>,
    /// By failure.
    calls: BTreeMap<Option<Failure>, Histogram>,
}

impl Failure {
    fn as_str(self) -> &'static str {
        match self {
            Failure::Call => "conversion_webhook_call_failure",
            Failure::Malformed => "conversion_webhook_malformed_response_failure",
            Failure::Partial => "conversion_webhook_partial_response_failure",
            Failure::InvalidObject => "conversion_webhook_invalid_converted_object_failure",
        }
    }
}

impl Conversions {
    pub(super) fn converted(&self, conversion: &Converted<'_>) {
        let Converted { definition, from, to, elapsed, failure } = *conversion;
        let mut durations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let succeeded = failure.is_none().to_string();
        let key = [definition.to_owned(), from.to_owned(), succeeded, to.to_owned()];
        let versions = durations.versions.entry(key);
        versions.or_insert_with(|| Histogram::new(&DECISION_SECONDS)).observe_time(elapsed);
        let calls = durations.calls.entry(failure);
        calls.or_insert_with(|| Histogram::new(&CONVERSION_SECONDS)).observe_time(elapsed);
    }

    pub(super) fn write(&self, page: &mut Page) {
        let durations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let labels = |failure: Option<Failure>| {
            let result = if failure.is_some() { "failure" } else { "success" };
            [("failure_type", failure.map_or("", Failure::as_str)), ("result", result)]
        };
        page.family(
            "apiserver_conversion_webhook_duration_seconds",
            Kind::Histogram,
            "[ALPHA] Conversion webhook request latency",
        );
        for (failure, durations) in &durations.calls {
            page.histogram(&labels(*failure), durations);
        }
        page.family(
            "apiserver_conversion_webhook_request_total",
            Kind::Counter,
            "[ALPHA] Counter for conversion webhook requests with success/failure and failure error \
             type",
        );
        for (failure, durations) in &durations.calls {
            page.sample(&labels(*failure), durations.count() as f64);
        }
        page.family(
            "apiserver_crd_conversion_webhook_duration_seconds",
            Kind::Histogram,
            "[ALPHA] CRD webhook conversion duration in seconds",
        );
        for ([definition, from, succeeded, to], durations) in &durations.versions {
            let labels = [
                ("crd_name", definition.as_str()),
                ("from_version", from.as_str()),
                ("succeeded", succeeded.as_str()),
                ("to_version", to.as_str()),
            ];
            page.histogram(&labels, durations);
        }
    }
}
