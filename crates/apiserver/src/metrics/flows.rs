//! Requests by the flow they belong to.
//!
//! Nobody waits in a queue here, so what upstream tells of seats, shares and queues has no meaning
//! and is not told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use super::histogram::{EXECUTION_SECONDS, Histogram};
use super::text::{Kind, Page};

/// What is counted of the requests of one flow.
#[derive(Debug)]
pub(crate) struct Meter {
    dispatched: AtomicU64,
    rejected: AtomicU64,
    executing: AtomicI64,
    regular: Histogram,
    /// Until they begin to send.
    watches: Histogram,
}

/// A request that is being answered; counted until dropped.
pub(crate) struct Executing {
    meter: Arc<Meter>,
    begun: Instant,
    is_watch: bool,
}

/// By the names of schema and level.
#[derive(Debug, Default)]
pub(super) struct Meters(RwLock<BTreeMap<[String; 2], Arc<Meter>>>);

impl Default for Meter {
    fn default() -> Self {
        Meter {
            dispatched: AtomicU64::default(),
            rejected: AtomicU64::default(),
            executing: AtomicI64::default(),
            regular: Histogram::new(&EXECUTION_SECONDS),
            watches: Histogram::new(&EXECUTION_SECONDS),
        }
    }
}

impl Meter {
    /// A request is about to be answered.
    pub(crate) fn dispatch(self: &Arc<Self>, is_watch: bool) -> Executing {
        self.dispatched.fetch_add(1, Relaxed);
        self.executing.fetch_add(1, Relaxed);
        Executing { meter: Arc::clone(self), begun: Instant::now(), is_watch }
    }

    /// There were too many requests already.
    pub(crate) fn reject(&self) {
        self.rejected.fetch_add(1, Relaxed);
    }
}

impl Drop for Executing {
    fn drop(&mut self) {
        self.meter.executing.fetch_sub(1, Relaxed);
        let durations = if self.is_watch { &self.meter.watches } else { &self.meter.regular };
        durations.observe_time(self.begun.elapsed());
    }
}

impl Meters {
    pub(super) fn of(&self, schema: &str, level: &str) -> Arc<Meter> {
        let mut meters = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(meters.entry([schema.to_owned(), level.to_owned()]).or_default())
    }

    pub(super) fn write(&self, page: &mut Page) {
        let meters = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<(Labels<'_>, &Meter)> = meters
            .iter()
            .filter(|(_, meter)| meter.dispatched.load(Relaxed) + meter.rejected.load(Relaxed) > 0)
            .map(|([schema, level], meter)| (Labels { schema, level }, &**meter))
            .collect();
        page.family(
            "apiserver_flowcontrol_current_executing_requests",
            Kind::Gauge,
            "[BETA] Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution \
             stage in the API Priority and Fairness subsystem",
        );
        for (labels, meter) in &all {
            page.sample(&labels.both(), meter.executing.load(Relaxed) as f64);
        }
        page.family(
            "apiserver_flowcontrol_dispatched_requests_total",
            Kind::Counter,
            "[BETA] Number of requests executed by API Priority and Fairness subsystem",
        );
        for (labels, meter) in &all {
            page.sample(&labels.both(), meter.dispatched.load(Relaxed) as f64);
        }
        page.family(
            "apiserver_flowcontrol_rejected_requests_total",
            Kind::Counter,
            "[BETA] Number of requests rejected by API Priority and Fairness subsystem",
        );
        for (labels, meter) in &all {
            let rejected = meter.rejected.load(Relaxed);
            if rejected > 0 {
                page.sample(&labels.and("reason", "concurrency-limit"), rejected as f64);
            }
        }
        page.family(
            "apiserver_flowcontrol_request_execution_seconds",
            Kind::Histogram,
            "[ALPHA] Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of \
             request execution in the API Priority and Fairness subsystem",
        );
        for (labels, meter) in &all {
            for (kind, durations) in [("regular", &meter.regular), ("watch", &meter.watches)] {
                if durations.count() > 0 {
                    page.histogram(&labels.and("type", kind), durations);
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Labels<'a> {
    schema: &'a str,
    level: &'a str,
}

impl<'a> Labels<'a> {
    fn both(self) -> [(&'static str, &'a str); 2] {
        [("flow_schema", self.schema), ("priority_level", self.level)]
    }

    fn and(self, name: &'static str, value: &'a str) -> [(&'static str, &'a str); 3] {
        let [schema, level] = self.both();
        [schema, level, (name, value)]
    }
}
