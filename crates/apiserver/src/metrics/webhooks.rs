//! What webhooks were asked, and how they answered.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::histogram::{Histogram, WEBHOOK_SECONDS};
use super::text::{Kind, Page};
use crate::admission::{Operation, Role};

/// A webhook was asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WebhookCall<'a> {
    pub(crate) name: &'a str,
    pub(crate) role: Role,
    pub(crate) operation: Operation,
    pub(crate) elapsed: Duration,
    /// As HTTP has it; zero where nothing was asked.
    pub(crate) code: i32,
    /// Why the request does not pass: whose fault it is.
    pub(crate) error: Option<&'static str>,
    /// The request passes all the same.
    pub(crate) fails_open: bool,
}

/// Codes beyond this are told apart no more.
const CODE_MAX: i32 = 600;

/// By name first, which is how the page has them.
#[derive(Debug, Default)]
pub(super) struct Webhooks(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// By name, operation, whether it was rejected, and role.
    durations: BTreeMap<(String, &'static str, bool, &'static str), Histogram>,
    /// By code, name, operation, whether it was rejected, and role.
    requests: BTreeMap<(i32, String, &'static str, bool, &'static str), u64>,
    /// By error, name, operation, code, and role.
    rejections: BTreeMap<(&'static str, String, &'static str, i32, &'static str), u64>,
    /// By name and role.
    open: BTreeMap<(String, &'static str), u64>,
}

impl Webhooks {
    pub(super) fn asked(&self, call: &WebhookCall<'_>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, operation) = (call.name.to_owned(), call.operation.as_str());
        let (role, code) = (call.role.as_str(), call.code.min(CODE_MAX));
        let rejection = call.error.filter(|_| !call.fails_open);
        let is_rejected = rejection.is_some();
        let key = (name.clone(), operation, is_rejected, role);
        let durations = counts.durations.entry(key);
        durations.or_insert_with(|| Histogram::new(&WEBHOOK_SECONDS)).observe_time(call.elapsed);
        *counts.requests.entry((code, name.clone(), operation, is_rejected, role)).or_default() +=
            1;
        if let Some(error) = rejection {
            let key = (error, name.clone(), operation, code, role);
            *counts.rejections.entry(key).or_default() += 1;
        }
        if call.fails_open {
            *counts.open.entry((name, role)).or_default() += 1;
        }
    }

    pub(super) fn write(&self, page: &mut Page) {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let word = |is_rejected: bool| if is_rejected { "true" } else { "false" };
        page.family(
            "apiserver_admission_webhook_admission_duration_seconds",
            Kind::Histogram,
            "[STABLE] Admission webhook latency histogram in seconds, identified by name and broken \
             out for each operation and API resource and type (validate or admit).",
        );
        for ((name, operation, is_rejected, role), durations) in &counts.durations {
            let labels = [
                ("name", name.as_str()),
                ("operation", *operation),
                ("rejected", word(*is_rejected)),
                ("type", *role),
            ];
            page.histogram(&labels, durations);
        }
        page.family(
            "apiserver_admission_webhook_fail_open_count",
            Kind::Counter,
            "[ALPHA] Admission webhook fail open count, identified by name and broken out for each \
             admission type (validating or admit).",
        );
        for ((name, role), count) in &counts.open {
            page.sample(&[("name", name.as_str()), ("type", *role)], *count as f64);
        }
        page.family(
            "apiserver_admission_webhook_rejection_count",
            Kind::Counter,
            "[ALPHA] Admission webhook rejection count, identified by name and broken out for each \
             admission type (validating or admit) and operation. Additional labels specify an error \
             type (calling_webhook_error or apiserver_internal_error if an error occurred; no_error \
             otherwise) and optionally a non-zero rejection code if the webhook rejects the request \
             with an HTTP status code (honored by the apiserver when the code is greater or equal to \
             400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality \
             bounded.",
        );
        for ((error, name, operation, code, role), count) in &counts.rejections {
            let code = code.to_string();
            let labels = [
                ("error_type", *error),
                ("name", name.as_str()),
                ("operation", *operation),
                ("rejection_code", code.as_str()),
                ("type", *role),
            ];
            page.sample(&labels, *count as f64);
        }
        page.family(
            "apiserver_admission_webhook_request_total",
            Kind::Counter,
            "[ALPHA] Admission webhook request total, identified by name and broken out for each \
             admission type (validating or admit) and operation. Additional labels specify whether \
             the request was rejected or not and an HTTP status code. Codes greater than 600 are \
             truncated to 600, to keep the metrics cardinality bounded.",
        );
        for ((code, name, operation, is_rejected, role), count) in &counts.requests {
            let code = code.to_string();
            let labels = [
                ("code", code.as_str()),
                ("name", name.as_str()),
                ("operation", *operation),
                ("rejected", word(*is_rejected)),
                ("type", *role),
            ];
            page.sample(&labels, *count as f64);
        }
    }
}
