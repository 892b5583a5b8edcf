//! A pod that names its node goes nowhere else.

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Filter, Plugin, Point, Prepared, Rejection};
use crate::pod::Pod;
use crate::snapshot::Snapshot;

const REASON: &str = "node(s) didn't match the requested node name";

pub(crate) struct NodeName;

#[derive(Clone)]
struct Named<'a>(&'a str);

impl NodeName {
    pub(crate) const NAME: &str = "NodeName";
}

impl Plugin for NodeName {
    fn name(&self) -> &str {
        NodeName::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::Filter]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        _snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        Ok(match pod.node_name() {
            Some(name) => Prepared::Check(Box::new(Named(name))),
            None => Prepared::Anywhere,
        })
    }

    fn helps(&self, pod: &Pod, change: &Change) -> bool {
        match change {
            Change::NodeAdded(node) => node.metadata.name.as_deref() == pod.node_name(),
            _ => false,
        }
    }
}

impl Filter for Named<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        match *node.name == *self.0 {
            true => Ok(()),
            false => Err(Rejection::unresolvable(REASON)),
        }
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}
