//! Who leads, as a metric, and whether leases can be had at all.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// `leader_election_master_status`, as client-go has it: 1 for the one that leads. And
/// `kubewright_lease_failures_total`, which tells one that stands by from one that cannot even try.
#[derive(Debug, Clone)]
pub struct Metrics {
    status: Family<Labels, Gauge>,
    failures: Family<Labels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    name: String,
}

impl Metrics {
    pub fn new(registry: &mut Registry) -> Self {
        let status = Family::default();
        registry.register(
            "leader_election_master_status",
            "Whether this process leads: 1 if it does, 0 if it stands by",
            status.clone(),
        );
        let failures = Family::default();
        registry.register(
            "kubewright_lease_failures",
            "How often a lease could not be read or written",
            failures.clone(),
        );
        Metrics { status, failures }
    }

    pub(super) fn leads(&self, name: &str, leads: bool) {
        self.status.get_or_create(&Labels::of(name)).set(leads.into());
    }

    /// A lease could not be read or written.
    pub(crate) fn failed(&self, name: &str) {
        self.failures.get_or_create(&Labels::of(name)).inc();
    }
}

impl Labels {
    fn of(name: &str) -> Self {
        Labels { name: name.to_owned() }
    }
}
