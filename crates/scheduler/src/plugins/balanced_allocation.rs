//! A node is better when its resources are used evenly: memory without processors is of no use.

use super::node_resources_fit::Weight;
use crate::node::Node;
use crate::plugin::{Plugin, Point, SCORE_MAX, Score};
use crate::pod::Pod;
use crate::resources;
use crate::snapshot::Snapshot;

#[derive(Debug, Clone)]
pub(crate) struct BalancedAllocation {
    pub(crate) resources: Vec<Weight>,
}

struct Balance<'a> {
    /// What the pod asks for, by resource.
    wanted: Vec<(&'a str, i64)>,
}

impl BalancedAllocation {
    pub(crate) const NAME: &str = "NodeResourcesBalancedAllocation";
}

impl Plugin for BalancedAllocation {
    fn name(&self) -> &str {
        BalancedAllocation::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::PreScore, Point::Score]
    }

    fn score<'a>(
        &'a self,
        pod: &'a Pod,
        _snapshot: &'a Snapshot,
        _nodes: &[&Node],
    ) -> Option<Box<dyn Score + 'a>> {
        let wanted = self.resources.iter().map(|it| (it.name.as_str(), pod.requests.get(&it.name)));
        let wanted: Vec<(&str, i64)> = wanted.collect();
        // A pod that asks for nothing changes no balance.
        let matters = wanted.iter().any(|(_, amount)| *amount != 0);
        matters.then(|| Box::new(Balance { wanted }) as Box<dyn Score>)
    }
}

impl Score for Balance<'_> {
    fn score(&self, node: &Node) -> i64 {
        let with = self.evenness(node, |used, wanted| used + wanted);
        let without = self.evenness(node, |used, _| used);
        SCORE_MAX / 2 + (SCORE_MAX / 2 + with - without) / 2
    }
}

impl Balance<'_> {
    /// How near the used shares of all resources are to each other.
    fn evenness(&self, node: &Node, used: impl Fn(i64, i64) -> i64) -> i64 {
        let shares = || {
            let counted =
                self.wanted.iter().filter(|(name, it)| *it != 0 || !resources::is_scalar(name));
            counted
                .map(|(name, it)| (node.allocatable.get(name), node.requested.get(name), *it))
                .filter(|(has, ..)| *has != 0)
                .map(|(has, requested, it)| (used(requested, it) as f64 / has as f64).min(1.0))
        };
        let count = shares().count() as f64;
        let mut first = shares();
        let deviation = match (first.next(), first.next(), first.next()) {
            (Some(one), Some(other), None) => ((one - other) / 2.0).abs(),
            (_, None, _) => 0.0,
            _ => {
                let mean = shares().sum::<f64>() / count;
                let squares: f64 = shares().map(|share| (share - mean).powi(2)).sum();
                (squares / count).sqrt()
            }
        };
        ((1.0 - deviation) * SCORE_MAX as f64) as i64
    }
}
