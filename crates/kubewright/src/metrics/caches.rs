//! What is in caches, asked of them when somebody wants to know.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::cache::WeakCache;
use crate::informer::State;

/// The informers of a cache.
#[derive(Debug)]
pub(super) struct Caches(pub(super) WeakCache);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    kind: String,
    state: &'static str,
}

impl Collector for Caches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(cache) = self.0.upgrade() else { return Ok(()) };
        let objects = Family::<OfKind, Gauge>::default();
        let bytes = Family::<OfKind, Gauge>::default();
        let states = Family::<OfState, Gauge>::default();
        let lists = Family::<OfKind, Counter>::default();
        let failures = Family::<OfKind, Counter>::default();
        let panics = Family::<OfKind, Counter>::default();
        // Of one kind there may be several informers, in several scopes.
        for report in cache.report() {
            let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
            let of_kind = OfKind { kind: report.kind.clone() };
            objects.get_or_create(&of_kind).inc_by(count(report.objects));
            bytes.get_or_create(&of_kind).inc_by(count(report.bytes));
            lists.get_or_create(&of_kind).inc_by(report.lists);
            failures.get_or_create(&of_kind).inc_by(report.failures);
            panics.get_or_create(&of_kind).inc_by(report.panics);
            let of_state = OfState { kind: report.kind, state: word(&report.state) };
            states.get_or_create(&of_state).inc();
        }
        let mut encode = |name: &str, help: &str, family: &dyn EncodeMetric| {
            let encoder =
                encoder.encode_descriptor(name, help, None, EncodeMetric::metric_type(family))?;
            family.encode(encoder)
        };
        encode("kubewright_cache_objects", "How many objects are cached", &objects)?;
        let help = "How long the texts are that cached objects were read from";
        encode("kubewright_cache_bytes", help, &bytes)?;
        encode("kubewright_cache_watches", "How many watches are in which state", &states)?;
        encode("kubewright_cache_lists", "How often a kind was listed", &lists)?;
        let help = "How often a kind could not be watched";
        encode("kubewright_cache_watch_failures", help, &failures)?;
        let help = "How often predicates, mappings, indexes and the like of a kind panicked";
        encode("kubewright_cache_panics", help, &panics)
    }
}

fn word(state: &State) -> &'static str {
    match state {
        State::Listing => "listing",
        State::Live => "live",
        State::Stale(_) => "stale",
        State::Missing => "missing",
        State::Forbidden(_) => "forbidden",
    }
}
