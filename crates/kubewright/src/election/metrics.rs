//! Who leads, as a metric.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// `leader_election_master_status`, as client-go has it: 1 for the one that leads.
#[derive(Debug, Clone)]
pub struct Metrics {
    status: Family<Labels, Gauge>,
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
        Metrics { status }
    }

    pub(super) fn leads(&self, name: &str, leads: bool) {
        let labels = Labels { name: name.to_owned() };
        self.status.get_or_create(&labels).set(leads.into());
    }
}
