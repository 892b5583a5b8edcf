//! A port of a node is had by one pod at a time.

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Filter, Plugin, Point, Prepared, Rejection};
use crate::pod::{HostPort, Pod};
use crate::snapshot::Snapshot;

const REASON: &str = "node(s) didn't have free ports for the requested pod ports";

pub(crate) struct NodePorts;

#[derive(Clone)]
struct Wanted<'a>(&'a [HostPort]);

impl NodePorts {
    pub(crate) const NAME: &str = "NodePorts";
}

impl Plugin for NodePorts {
    fn name(&self) -> &str {
        NodePorts::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::PreFilter, Point::Filter]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        _snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        Ok(match pod.ports.is_empty() {
            true => Prepared::Anywhere,
            false => Prepared::Check(Box::new(Wanted(&pod.ports))),
        })
    }

    fn helps(&self, pod: &Pod, change: &Change) -> bool {
        match change {
            Change::PodDeleted(gone) => are_taken(&pod.ports, &gone.ports),
            Change::NodeAdded(_) => true,
            _ => false,
        }
    }
}

impl Filter for Wanted<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        match are_taken(self.0, &node.ports) {
            true => Err(Rejection::unschedulable(REASON)),
            false => Ok(()),
        }
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

fn are_taken(wanted: &[HostPort], used: &[HostPort]) -> bool {
    wanted.iter().any(|port| used.iter().any(|used| used.conflicts(port)))
}
