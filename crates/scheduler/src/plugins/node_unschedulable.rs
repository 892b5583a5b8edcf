//! Nodes that are cordoned take no pods but those that bear it.

use k8s_openapi::api::core::v1 as core;
use kubewright::placement::tolerates;

use super::taint_toleration::NO_SCHEDULE;
use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Filter, Plugin, Point, Prepared, Rejection};
use crate::pod::Pod;
use crate::snapshot::Snapshot;

const REASON: &str = "node(s) were unschedulable";
const TAINT: &str = "node.kubernetes.io/unschedulable";

pub(crate) struct NodeUnschedulable;

#[derive(Clone)]
struct OnlySchedulable;

impl NodeUnschedulable {
    pub(crate) const NAME: &str = "NodeUnschedulable";
}

impl Plugin for NodeUnschedulable {
    fn name(&self) -> &str {
        NodeUnschedulable::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::Filter]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        _snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        Ok(match is_tolerated(pod) {
            true => Prepared::Anywhere,
            false => Prepared::Check(Box::new(OnlySchedulable)),
        })
    }

    fn helps(&self, pod: &Pod, change: &Change) -> bool {
        let is_off = |node: &core::Node| {
            node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default()
        };
        match change {
            Change::NodeAdded(node) => !is_off(node),
            Change::NodeUpdated { old, new } => is_off(old) && !is_off(new),
            Change::SelfUpdated { .. } => is_tolerated(pod),
            _ => false,
        }
    }
}

impl Filter for OnlySchedulable {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        match node.is_unschedulable() {
            true => Err(Rejection::unresolvable(REASON)),
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

fn is_tolerated(pod: &Pod) -> bool {
    let taint = core::Taint {
        key: TAINT.to_owned(),
        effect: NO_SCHEDULE.to_owned(),
        ..core::Taint::default()
    };
    pod.tolerations().iter().any(|toleration| tolerates(toleration, &taint))
}
