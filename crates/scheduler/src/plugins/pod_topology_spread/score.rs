//! Nodes are better where fewer pods of the same kind are, near or on them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Constraint, HOSTNAME};
use crate::node::Node;
use crate::plugin::{SCORE_MAX, Score};
use crate::pod::Pod;
use crate::snapshot::Snapshot;

/// What a node gets that has not all labels, until scores are compared.
const INVALID: i64 = -1;

pub(super) struct Spread<'s> {
    namespace: &'s str,
    constraints: Vec<Weighed>,
    /// Nodes that have not all labels that they need.
    ignored: HashSet<Arc<str>>,
}

struct Weighed {
    constraint: Constraint,
    /// Pods by domain; for nodes they are counted when a node is looked at.
    pods: HashMap<String, i64>,
    /// Domains are the less different the more there are.
    weight: f64,
}

impl<'s> Spread<'s> {
    /// None if there is nothing to be spread.
    pub(super) fn new(
        pod: &'s Pod,
        snapshot: &Snapshot,
        nodes: &[&Node],
        constraints: Vec<Constraint>,
        needs_all_labels: bool,
    ) -> Option<Self> {
        if constraints.is_empty() {
            return None;
        }
        let has_labels = |node: &Node| {
            !needs_all_labels || constraints.iter().all(|it| node.labels().contains_key(&it.key))
        };
        let (rated, ignored): (Vec<&&Node>, Vec<&&Node>) =
            nodes.iter().partition(|node| has_labels(node));
        let considered: Vec<&Node> =
            snapshot.nodes().iter().filter(|node| has_labels(node)).collect();
        let weigh = |constraint: Constraint| {
            let is_host = constraint.key == HOSTNAME;
            let mut pods: HashMap<String, i64> = HashMap::new();
            if !is_host {
                let domains = rated.iter().map(|node| domain(node, &constraint.key));
                pods.extend(domains.map(|domain| (domain.to_owned(), 0)));
                // Nodes without the label are one domain, with those that have it without a value;
                // if there are none of these, nobody will ask about it.
                let is_empty = |value: &String| value.is_empty();
                let asks_empty = rated
                    .iter()
                    .any(|node| node.labels().get(&constraint.key).is_some_and(is_empty));
                for node in &considered {
                    let domain = domain(node, &constraint.key);
                    if (asks_empty || !domain.is_empty())
                        && let Some(count) = pods.get_mut(domain)
                        && constraint.includes(pod, node)
                    {
                        *count += constraint.count(pod.namespace(), node);
                    }
                }
            }
            let domains = if is_host { rated.len() } else { pods.len() };
            Weighed { constraint, pods, weight: (domains as f64 + 2.0).ln() }
        };
        let ignored = ignored.iter().map(|node| Arc::clone(&node.name)).collect();
        let constraints = constraints.iter().cloned().map(weigh).collect();
        Some(Spread { namespace: pod.namespace(), constraints, ignored })
    }
}

impl Score for Spread<'_> {
    fn score(&self, node: &Node) -> i64 {
        if self.ignored.contains(&node.name) {
            return INVALID;
        }
        let mut score = 0.0;
        for it in &self.constraints {
            let Some(domain) = node.labels().get(&it.constraint.key) else { continue };
            let count = match it.constraint.key.as_str() {
                HOSTNAME => it.constraint.count(self.namespace, node),
                _ => it.pods.get(domain).copied().unwrap_or_default(),
            };
            score += count as f64 * it.weight + (it.constraint.skew_max - 1) as f64;
        }
        score.round() as i64
    }

    fn normalize(&self, scores: &mut [i64]) {
        let valid = || scores.iter().copied().filter(|score| *score != INVALID);
        let highest = valid().max().unwrap_or_default();
        let lowest = valid().min().unwrap_or_default();
        for score in scores {
            *score = match (*score, highest) {
                (INVALID, _) => 0,
                (_, 0) => SCORE_MAX,
                (score, _) => SCORE_MAX * (highest + lowest - score) / highest,
            };
        }
    }
}

fn domain<'n>(node: &'n Node, key: &str) -> &'n str {
    node.labels().get(key).map_or("", String::as_str)
}
