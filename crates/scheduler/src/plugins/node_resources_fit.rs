//! A pod fits where what it asks for is left, and goes where most is left, or least.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as core;
use kubewright_apimachinery::resources::{CPU, MEMORY, is_extended};

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Code, Filter, Plugin, Point, Prepared, Rejection, SCORE_MAX, Score};
use crate::pod::Pod;
use crate::resources::{self, Resources};
use crate::snapshot::Snapshot;

const UTILIZATION_MAX: i64 = 100;

/// What is counted, and how nodes are compared.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeResourcesFit {
    /// Extended resources that somebody else counts: by name, and by the domain of their names.
    pub(crate) ignored: BTreeSet<String>,
    pub(crate) ignored_groups: BTreeSet<String>,
    pub(crate) strategy: Strategy,
    pub(crate) resources: Vec<Weight>,
}

/// Which nodes are better.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Strategy {
    #[default]
    LeastAllocated,
    MostAllocated,
    /// By points of a line that gives a score for each utilization.
    RequestedToCapacityRatio(Vec<(i64, i64)>),
}

/// How much a resource counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Weight {
    pub(crate) name: String,
    pub(crate) weight: i64,
}

#[derive(Clone)]
struct Fit<'a> {
    plugin: &'a NodeResourcesFit,
    requests: &'a Resources,
}

struct Allocation<'a> {
    plugin: &'a NodeResourcesFit,
    pod: &'a Pod,
}

impl NodeResourcesFit {
    pub(crate) const NAME: &str = "NodeResourcesFit";

    fn is_ignored(&self, name: &str) -> bool {
        is_extended(name)
            && (self.ignored.contains(name)
                || name.split('/').next().is_some_and(|it| self.ignored_groups.contains(it)))
    }
}

impl Plugin for NodeResourcesFit {
    fn name(&self) -> &str {
        NodeResourcesFit::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::PreFilter, Point::Filter, Point::PreScore, Point::Score]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        _snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        Ok(Prepared::Check(Box::new(Fit { plugin: self, requests: &pod.requests })))
    }

    fn score<'a>(
        &'a self,
        pod: &'a Pod,
        _snapshot: &'a Snapshot,
        _nodes: &[&Node],
    ) -> Option<Box<dyn Score + 'a>> {
        Some(Box::new(Allocation { plugin: self, pod }))
    }

    fn helps(&self, pod: &Pod, change: &Change) -> bool {
        let fit = Fit { plugin: self, requests: &pod.requests };
        let could_hold = |node: &core::Node| fit.check(&Node::new(node.clone().into())).is_ok();
        match change {
            Change::PodDeleted(_) => true,
            Change::PodUpdated { old, new } => is_less(&new.requests, &old.requests),
            Change::SelfUpdated { old, new } => is_less(&new.requests, &old.requests),
            Change::NodeAdded(node) => could_hold(node),
            Change::NodeUpdated { old, new } => has_grown(pod, old, new) && could_hold(new),
            _ => false,
        }
    }
}

impl Filter for Fit<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        let (wanted, has, used) = (self.requests, &node.allocatable, &node.requested);
        let is_full = node.pods.len() as i64 + 1 > node.pods_max;
        // What nearly all nodes come to: nothing is missing.
        if !is_full && wanted.is_nothing() {
            return Ok(());
        }
        let mut missing = Vec::new();
        let mut code = Code::Unschedulable;
        if is_full {
            missing.push("Too many pods".into());
        }
        let mut compare = |name: &str, wanted: i64, has: i64, used: i64| {
            if wanted > 0 && wanted > has - used {
                missing.push(format!("Insufficient {name}").into());
                if wanted > has {
                    code = Code::Unresolvable;
                }
            }
        };
        compare(CPU, wanted.milli_cpu, has.milli_cpu, used.milli_cpu);
        compare(MEMORY, wanted.memory, has.memory, used.memory);
        let storage = (wanted.ephemeral_storage, has.ephemeral_storage, used.ephemeral_storage);
        compare("ephemeral-storage", storage.0, storage.1, storage.2);
        for (name, wanted) in &wanted.scalars {
            if !self.plugin.is_ignored(name) {
                compare(name, *wanted, has.get(name), used.get(name));
            }
        }
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Rejection { code, reasons: missing }),
        }
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

impl Score for Allocation<'_> {
    fn score(&self, node: &Node) -> i64 {
        let strategy = &self.plugin.strategy;
        let (mut sum, mut weights) = (0, 0);
        for Weight { name, weight } in &self.plugin.resources {
            let (wanted, used) = match name.as_str() {
                CPU => (self.pod.non_zero.milli_cpu, node.non_zero.milli_cpu),
                MEMORY => (self.pod.non_zero.memory, node.non_zero.memory),
                _ => (self.pod.requests.get(name), node.requested.get(name)),
            };
            // A resource that the pod does not ask for says nothing about it.
            if wanted == 0 && resources::is_scalar(name) {
                continue;
            }
            let has = node.allocatable.get(name);
            if has == 0 {
                continue;
            }
            let score = strategy.score(used + wanted, has);
            if score > 0 || !matches!(strategy, Strategy::RequestedToCapacityRatio(_)) {
                sum += score * weight;
                weights += weight;
            }
        }
        match (strategy, weights) {
            (_, 0) => 0,
            (Strategy::RequestedToCapacityRatio(_), _) => {
                (sum as f64 / weights as f64).round() as i64
            }
            _ => sum / weights,
        }
    }
}

impl Strategy {
    fn score(&self, requested: i64, capacity: i64) -> i64 {
        match self {
            Strategy::LeastAllocated if requested > capacity => 0,
            Strategy::LeastAllocated => (capacity - requested) * SCORE_MAX / capacity,
            Strategy::MostAllocated => requested.min(capacity) * SCORE_MAX / capacity,
            Strategy::RequestedToCapacityRatio(shape) if requested > capacity => {
                on_line(shape, UTILIZATION_MAX)
            }
            Strategy::RequestedToCapacityRatio(shape) => {
                on_line(shape, requested * UTILIZATION_MAX / capacity)
            }
        }
    }
}

/// The value of a line through some points.
fn on_line(points: &[(i64, i64)], at: i64) -> i64 {
    let Some(next) = points.iter().position(|(x, _)| at <= *x) else {
        return points.last().map_or(0, |(_, y)| *y);
    };
    let (x, y) = points[next];
    match next.checked_sub(1).map(|before| points[before]) {
        None => y,
        Some((x0, y0)) => y0 + (y - y0) * (at - x0) / (x - x0),
    }
}

/// Whether anything that one asks for, the other asks for less of.
fn is_less(new: &Resources, old: &Resources) -> bool {
    new.milli_cpu < old.milli_cpu
        || new.memory < old.memory
        || new.ephemeral_storage < old.ephemeral_storage
        || old.scalars.iter().any(|(name, amount)| new.get(name) < *amount)
}

/// Whether a node has more of anything that a pod asks for.
fn has_grown(pod: &Pod, old: &core::Node, new: &core::Node) -> bool {
    let (old, new) = (Node::new(old.clone().into()), Node::new(new.clone().into()));
    let more = |wanted: i64, old: i64, new: i64| wanted > 0 && new > old;
    let (wanted, old_has, new_has) = (&pod.requests, &old.allocatable, &new.allocatable);
    new.pods_max > old.pods_max
        || more(wanted.milli_cpu, old_has.milli_cpu, new_has.milli_cpu)
        || more(wanted.memory, old_has.memory, new_has.memory)
        || more(wanted.ephemeral_storage, old_has.ephemeral_storage, new_has.ephemeral_storage)
        || wanted.scalars.iter().any(|(it, wanted)| more(*wanted, old_has.get(it), new_has.get(it)))
}
