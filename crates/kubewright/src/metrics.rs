//! What controllers and their queues count, by the names that dashboards for Go's controllers
//! know.

mod caches;
mod queues;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use self::caches::Caches;
use self::queues::Queues;
use crate::cache::Cache;
use crate::key::ObjectKey;
use crate::queue::{self, Queue};

/// In seconds: most reconciles are short, and a few wait for something.
const RECONCILE_SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];
/// In seconds.
const QUEUE_SECONDS: [f64; 12] =
    [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

/// The metrics of all controllers of an operator.
#[derive(Debug)]
pub struct Metrics {
    results: Family<OfResult, Counter>,
    errors: Family<OfController, Counter>,
    terminal_errors: Family<OfController, Counter>,
    panics: Family<OfController, Counter>,
    timeouts: Family<OfController, Counter>,
    seconds: Family<OfController, Histogram, Seconds>,
    at_once: Family<OfController, Gauge>,
    active: Family<OfController, Gauge>,
    causes: Family<OfCause, Counter>,
    queue_seconds: Family<OfQueue, Histogram, Seconds>,
    work_seconds: Family<OfQueue, Histogram, Seconds>,
    queues: Arc<Queues>,
}

/// The metrics of one controller.
pub(crate) struct Meter {
    results: [Counter; 4],
    errors: Counter,
    terminal_errors: Counter,
    panics: Counter,
    timeouts: Counter,
    seconds: Histogram,
    active: Gauge,
    causes: Causes,
    queue_seconds: Histogram,
    work_seconds: Histogram,
}

/// Reconciles of one controller by what they are due to.
struct Causes {
    controller: String,
    all: Family<OfCause, Counter>,
    /// Those there have been, so that nobody has to look for them again.
    known: Mutex<HashMap<Arc<str>, Counter>>,
}

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Result {
    Success,
    Requeue,
    RequeueAfter,
    Error,
    Terminal,
    Panicked,
    TimedOut,
}

impl Result {
    /// Whether it is to be tried again, or will never do.
    pub(crate) fn is_failure(self) -> bool {
        !matches!(self, Result::Success | Result::Requeue | Result::RequeueAfter)
    }
}

/// A reconcile is under way for as long as this is there.
pub(crate) struct Active<'m>(&'m Gauge);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfController {
    controller: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResult {
    controller: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCause {
    controller: String,
    source: String,
}

/// A queue is called as its controller is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfQueue {
    name: String,
    controller: String,
}

/// Histograms with these buckets.
#[derive(Debug, Clone, Copy)]
struct Seconds(&'static [f64]);

impl MetricConstructor<Histogram> for Seconds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

impl Default for Metrics {
    /// Metrics that nobody asks for.
    fn default() -> Self {
        Metrics::new(&mut Registry::default())
    }
}

impl Metrics {
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Metrics {
            results: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            seconds: Family::new_with_constructor(Seconds(&RECONCILE_SECONDS)),
            at_once: Family::default(),
            active: Family::default(),
            causes: Family::default(),
            queue_seconds: Family::new_with_constructor(Seconds(&QUEUE_SECONDS)),
            work_seconds: Family::new_with_constructor(Seconds(&QUEUE_SECONDS)),
            queues: Arc::default(),
        };
        let controllers = registry.sub_registry_with_prefix("controller_runtime");
        let results = "Reconciles by how they ended";
        controllers.register("reconcile", results, metrics.results.clone());
        controllers.register("reconcile_errors", "Reconciles that failed", metrics.errors.clone());
        let terminal = "Reconciles that failed for good";
        controllers.register(
            "terminal_reconcile_errors",
            terminal,
            metrics.terminal_errors.clone(),
        );
        controllers.register(
            "reconcile_panics",
            "Reconciles that panicked",
            metrics.panics.clone(),
        );
        let timeouts = "Reconciles that took too long";
        controllers.register("reconcile_timeouts", timeouts, metrics.timeouts.clone());
        let seconds = "How long reconciles take";
        controllers.register("reconcile_time_seconds", seconds, metrics.seconds.clone());
        let at_once = "How many reconciles may run at a time";
        controllers.register("max_concurrent_reconciles", at_once, metrics.at_once.clone());
        let active = "How many reconciles are under way";
        controllers.register("active_workers", active, metrics.active.clone());
        let causes = "Reconciles by what they are due to, each source of a reconcile once";
        registry.register("kubewright_reconcile_causes", causes, metrics.causes.clone());
        let waited = "How long keys wait before they are worked on";
        registry.register(
            "workqueue_queue_duration_seconds",
            waited,
            metrics.queue_seconds.clone(),
        );
        let worked = "How long the work on keys takes";
        registry.register("workqueue_work_duration_seconds", worked, metrics.work_seconds.clone());
        registry.register_collector(Box::new(Arc::clone(&metrics.queues)));
        metrics
    }

    /// Tells of a cache too, for as long as it is there.
    pub fn register_cache(&self, registry: &mut Registry, cache: &Cache) {
        registry.register_collector(Box::new(Caches(cache.downgrade())));
    }

    /// The metrics of a controller. All are there from its start, so that a rate can be seen.
    pub(crate) fn of(&self, name: &str, queue: &Arc<Queue<ObjectKey>>, at_once: usize) -> Meter {
        let of_controller = OfController { controller: name.to_owned() };
        let of_queue = OfQueue { name: name.to_owned(), controller: name.to_owned() };
        let result = |result| {
            let labels = OfResult { controller: name.to_owned(), result };
            self.results.get_or_create_owned(&labels)
        };
        let at_once = i64::try_from(at_once).unwrap_or(i64::MAX);
        self.at_once.get_or_create(&of_controller).set(at_once);
        self.queues.add(name, queue);
        Meter {
            results: ["success", "requeue", "requeue_after", "error"].map(result),
            errors: self.errors.get_or_create_owned(&of_controller),
            terminal_errors: self.terminal_errors.get_or_create_owned(&of_controller),
            panics: self.panics.get_or_create_owned(&of_controller),
            timeouts: self.timeouts.get_or_create_owned(&of_controller),
            seconds: self.seconds.get_or_create_owned(&of_controller),
            active: self.active.get_or_create_owned(&of_controller),
            causes: Causes {
                controller: name.to_owned(),
                all: self.causes.clone(),
                known: Mutex::default(),
            },
            queue_seconds: self.queue_seconds.get_or_create_owned(&of_queue),
            work_seconds: self.work_seconds.get_or_create_owned(&of_queue),
        }
    }
}

impl Meter {
    /// A reconcile begins, after its key has waited so long, for these causes.
    pub(crate) fn begin(&self, waited: Duration, causes: &queue::Causes) -> Active<'_> {
        self.queue_seconds.observe(waited.as_secs_f64());
        self.causes.count(causes);
        self.active.inc();
        Active(&self.active)
    }

    /// A reconcile has ended so, after this time.
    pub(crate) fn end(&self, result: Result, took: Duration) {
        self.seconds.observe(took.as_secs_f64());
        self.work_seconds.observe(took.as_secs_f64());
        let [success, requeue, requeue_after, error] = &self.results;
        match result {
            Result::Success => success,
            Result::Requeue => requeue,
            Result::RequeueAfter => requeue_after,
            Result::Error | Result::Terminal | Result::Panicked | Result::TimedOut => {
                self.errors.inc();
                error
            }
        }
        .inc();
        match result {
            Result::Terminal => self.terminal_errors.inc(),
            Result::Panicked => self.panics.inc(),
            Result::TimedOut => self.timeouts.inc(),
            Result::Success | Result::Requeue | Result::RequeueAfter | Result::Error => 0,
        };
    }
}

impl Causes {
    fn count(&self, causes: &queue::Causes) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, cause) in causes.iter().enumerate() {
            let source = &cause.source;
            if causes.iter().take(at).any(|before| before.source == *source) {
                continue;
            }
            let counter = known.entry(Arc::clone(source)).or_insert_with(|| {
                let (controller, source) = (self.controller.clone(), source.to_string());
                self.all.get_or_create_owned(&OfCause { controller, source })
            });
            counter.inc();
        }
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}
