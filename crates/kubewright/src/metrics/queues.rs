//! How queues are doing, asked of them when somebody wants to know.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::OfQueue;
use crate::key::ObjectKey;
use crate::queue::Queue;

/// The queues there are, by name.
#[derive(Debug, Default)]
pub(super) struct Queues(Mutex<Vec<(String, Weak<Queue<ObjectKey>>)>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPriority {
    name: String,
    controller: String,
    priority: String,
}

impl Queues {
    /// Takes in a queue, in the place of one that was called so before.
    pub(super) fn add(&self, name: &str, queue: &Arc<Queue<ObjectKey>>) {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|(known, queue)| known != name && queue.strong_count() > 0);
        queues.push((name.to_owned(), Arc::downgrade(queue)));
    }
}

impl Collector for Queues {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let depth = Family::<OfPriority, Gauge>::default();
        let adds = Family::<OfQueue, Counter>::default();
        let retries = Family::<OfQueue, Counter>::default();
        let unfinished = Family::<OfQueue, Gauge<f64, AtomicU64>>::default();
        let longest = Family::<OfQueue, Gauge<f64, AtomicU64>>::default();
        let queues = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (name, queue) in queues {
            let Some(queue) = queue.upgrade() else { continue };
            let stats = queue.stats();
            let labels = OfQueue { controller: name.clone(), name };
            // A queue that is empty says so.
            let depths = if stats.depth.is_empty() { [(0, 0)].into() } else { stats.depth };
            for (priority, count) in depths {
                let labels = OfPriority {
                    name: labels.name.clone(),
                    controller: labels.controller.clone(),
                    priority: priority.to_string(),
                };
                depth.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
            }
            adds.get_or_create(&labels).inc_by(stats.adds);
            retries.get_or_create(&labels).inc_by(stats.retries);
            unfinished.get_or_create(&labels).set(stats.unfinished.as_secs_f64());
            longest.get_or_create(&labels).set(stats.longest.as_secs_f64());
        }
        let mut encode = |name: &str, help: &str, family: &dyn EncodeMetric| {
            let encoder =
                encoder.encode_descriptor(name, help, None, EncodeMetric::metric_type(family))?;
            family.encode(encoder)
        };
        encode("workqueue_depth", "How many keys are ready", &depth)?;
        encode("workqueue_adds", "How often keys were added", &adds)?;
        encode("workqueue_retries", "How often keys came back after a failure", &retries)?;
        let help = "How long all work under way has taken by now";
        encode("workqueue_unfinished_work_seconds", help, &unfinished)?;
        let help = "How long the longest work under way has taken by now";
        encode("workqueue_longest_running_processor_seconds", help, &longest)
    }
}
