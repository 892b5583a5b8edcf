//! `nodeSelector` and node affinity: what a node must have, and what it had better have.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as core;
use kubewright::placement::{NodeTerm, NodeTerms};

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{self, Filter, Plugin, Point, Prepared, Rejection, Score};
use crate::pod::{Pod, Weighted};
use crate::selector::{self, NO_LABELS};
use crate::snapshot::Snapshot;

const REASON: &str = "node(s) didn't match Pod's node affinity/selector";
const REASON_ENFORCED: &str = "node(s) didn't match scheduler-enforced node affinity";
const REASON_CONFLICT: &str = "pod affinity terms conflict";

/// With an affinity that all pods have besides their own.
#[derive(Default)]
pub(crate) struct NodeAffinity {
    required: Option<NodeTerms>,
    preferred: Vec<Weighted<NodeTerm>>,
}

#[derive(Clone)]
struct Required<'a> {
    enforced: Option<&'a NodeTerms>,
    pod: &'a Pod,
}

struct Preferred<'a>(Vec<&'a Weighted<NodeTerm>>);

impl NodeAffinity {
    pub(crate) const NAME: &str = "NodeAffinity";

    pub(crate) fn new(added: Option<&core::NodeAffinity>) -> Self {
        let required =
            added.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref());
        let preferred =
            added.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_ref());
        let preferred = preferred
            .into_iter()
            .flatten()
            .map(|it| Weighted { weight: it.weight.into(), term: NodeTerm::of(&it.preference) });
        NodeAffinity { required: required.map(NodeTerms::of), preferred: preferred.collect() }
    }
}

impl Plugin for NodeAffinity {
    fn name(&self) -> &str {
        NodeAffinity::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::PreFilter, Point::Filter, Point::PreScore, Point::Score]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        _snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        if pod.node_terms.is_none() && pod.node_labels.is_none() && self.required.is_none() {
            return Ok(Prepared::Anywhere);
        }
        let filter = Box::new(Required { enforced: self.required.as_ref(), pod });
        Ok(match names(pod) {
            Some(names) if names.is_empty() => {
                return Err(Rejection::unresolvable(REASON_CONFLICT));
            }
            Some(names) => Prepared::Among(names, filter),
            None => Prepared::Check(filter),
        })
    }

    fn score<'a>(
        &'a self,
        pod: &'a Pod,
        _snapshot: &'a Snapshot,
        _nodes: &[&Node],
    ) -> Option<Box<dyn Score + 'a>> {
        let all: Vec<_> = self.preferred.iter().chain(&pod.preferred_nodes).collect();
        (!all.is_empty()).then(|| Box::new(Preferred(all)) as Box<dyn Score>)
    }

    fn helps(&self, pod: &Pod, change: &Change) -> bool {
        let fits = |node: &core::Node| {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let labels = node.metadata.labels.as_ref().unwrap_or(&NO_LABELS);
            pod.selects_node(name, labels)
                && self.required.as_ref().is_none_or(|terms| terms.matches(name, labels))
        };
        match change {
            Change::NodeAdded(node) => fits(node),
            Change::NodeUpdated { old, new } => !fits(old) && fits(new),
            Change::SelfUpdated { .. } => true,
            _ => false,
        }
    }
}

impl Filter for Required<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        let (name, labels) = (&*node.name, node.labels());
        if self.enforced.is_some_and(|terms| !terms.matches(name, labels)) {
            return Err(Rejection::unresolvable(REASON_ENFORCED));
        }
        match self.pod.selects_node(name, labels) {
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

impl Score for Preferred<'_> {
    fn score(&self, node: &Node) -> i64 {
        let met = self.0.iter().filter(|it| it.term.matches(&node.name, node.labels()));
        met.map(|it| it.weight).sum()
    }

    fn normalize(&self, scores: &mut [i64]) {
        plugin::normalize(scores, false);
    }
}

/// The nodes that a pod names by its affinity, if all its terms do: those of DaemonSets.
fn names(pod: &Pod) -> Option<BTreeSet<&str>> {
    let nodes = pod.spec()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = nodes.required_during_scheduling_ignored_during_execution.as_ref()?;
    let terms = &required.node_selector_terms;
    let mut all = BTreeSet::new();
    for term in terms {
        all.extend(selector::names_of(term)?);
    }
    (!terms.is_empty()).then_some(all)
}
