//! Pods that must or want to be near others, or away from them.

use std::collections::HashMap;

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Filter, Plugin, Point, Prepared, Rejection, SCORE_MAX, Score};
use crate::pod::{AffinityTerm, Pod};
use crate::selector::NO_LABELS;
use crate::snapshot::Snapshot;

const REASON_EXISTING: &str = "node(s) didn't satisfy existing pods anti-affinity rules";
const REASON_AFFINITY: &str = "node(s) didn't match pod affinity rules";
const REASON_ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";

#[derive(Debug, Clone)]
pub(crate) struct InterPodAffinity {
    /// How much a pod that is there wants those near that it cannot be without.
    pub(crate) hard_weight: i64,
    pub(crate) ignores_wishes_of_others: bool,
}

/// Numbers by topology: key and value of a label.
#[derive(Debug, Clone, Default)]
struct Counts(HashMap<String, HashMap<String, i64>>);

#[derive(Clone)]
struct Required<'s> {
    pod: &'s Pod,
    snapshot: &'s Snapshot,
    /// Where pods are that cannot bear this one.
    unwelcome: Counts,
    /// Where pods are that this one must be near, and that it cannot bear.
    affinity: Counts,
    anti_affinity: Counts,
}

struct Preferred(Counts);

impl InterPodAffinity {
    pub(crate) const NAME: &str = "InterPodAffinity";
}

impl Plugin for InterPodAffinity {
    fn name(&self) -> &str {
        InterPodAffinity::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::PreFilter, Point::Filter, Point::PreScore, Point::Score]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        let cares = !(pod.affinity.is_empty() && pod.anti_affinity.is_empty());
        if !cares && !snapshot.has_anti_affinity() {
            return Ok(Prepared::Anywhere);
        }
        let mut required = Required {
            pod,
            snapshot,
            unwelcome: Counts::default(),
            affinity: Counts::default(),
            anti_affinity: Counts::default(),
        };
        for node in snapshot.nodes() {
            for other in &node.with_anti_affinity {
                required.count_unwelcome(other, node, 1);
            }
            for other in node.pods.iter().filter(|_| cares) {
                required.count_wanted(other, node, 1);
            }
        }
        Ok(match cares || !required.unwelcome.0.is_empty() {
            true => Prepared::Check(Box::new(required)),
            false => Prepared::Anywhere,
        })
    }

    fn score<'a>(
        &'a self,
        pod: &'a Pod,
        snapshot: &'a Snapshot,
        _nodes: &[&Node],
    ) -> Option<Box<dyn Score + 'a>> {
        let wishes = !(pod.preferred_affinity.is_empty() && pod.preferred_anti_affinity.is_empty());
        if !wishes && (self.ignores_wishes_of_others || !snapshot.has_affinity()) {
            return None;
        }
        let mut scores = Counts::default();
        for node in snapshot.nodes() {
            let others = if wishes { &node.pods } else { &node.with_affinity };
            for other in others {
                self.weigh(&mut scores, pod, other, node, snapshot);
            }
        }
        (!scores.0.is_empty()).then(|| Box::new(Preferred(scores)) as Box<dyn Score>)
    }

    fn helps(&self, pod: &Pod, change: &Change) -> bool {
        let is_named = |terms: &[AffinityTerm], other: &Pod| {
            terms.iter().any(|term| term.matches(other, &NO_LABELS))
        };
        // The labels of a namespace are not at hand here: what asks for them is not decided.
        let concerns = |other: &Pod| {
            is_named(&pod.affinity, other)
                || is_named(&pod.anti_affinity, other)
                || is_named(&other.anti_affinity, pod)
                || pod.affinity.iter().chain(&pod.anti_affinity).any(AffinityTerm::spans_namespaces)
                || other.anti_affinity.iter().any(AffinityTerm::spans_namespaces)
        };
        match change {
            Change::PodAssigned(other) | Change::PodDeleted(other) => concerns(other),
            Change::PodUpdated { old, new } => {
                old.labels() != new.labels() && (concerns(old) || concerns(new))
            }
            Change::NodeAdded(_) | Change::Namespace | Change::SelfUpdated { .. } => true,
            Change::NodeUpdated { old, new } => old.metadata.labels != new.metadata.labels,
            Change::NodeDeleted | Change::Storage => false,
        }
    }
}

impl InterPodAffinity {
    /// What a pod and one that is there want of each other.
    fn weigh(&self, scores: &mut Counts, pod: &Pod, other: &Pod, node: &Node, snapshot: &Snapshot) {
        let own = snapshot.namespace(pod.namespace());
        let others = snapshot.namespace(other.namespace());
        let mut weigh = |term: &AffinityTerm, matches: bool, weight: i64| {
            if matches {
                scores.add(node, &term.topology_key, weight);
            }
        };
        for it in &pod.preferred_affinity {
            weigh(&it.term, it.term.matches(other, others), it.weight);
        }
        for it in &pod.preferred_anti_affinity {
            weigh(&it.term, it.term.matches(other, others), -it.weight);
        }
        for term in other.affinity.iter().filter(|_| self.hard_weight > 0) {
            weigh(term, term.matches(pod, own), self.hard_weight);
        }
        for it in &other.preferred_affinity {
            weigh(&it.term, it.term.matches(pod, own), it.weight);
        }
        for it in &other.preferred_anti_affinity {
            weigh(&it.term, it.term.matches(pod, own), -it.weight);
        }
    }
}

impl Required<'_> {
    fn count_unwelcome(&mut self, other: &Pod, node: &Node, change: i64) {
        let namespace = self.snapshot.namespace(self.pod.namespace());
        for term in other.anti_affinity.iter().filter(|term| term.matches(self.pod, namespace)) {
            self.unwelcome.add(node, &term.topology_key, change);
        }
    }

    fn count_wanted(&mut self, other: &Pod, node: &Node, change: i64) {
        let namespace = self.snapshot.namespace(other.namespace());
        if self.are_met_by(other) {
            for term in &self.pod.affinity {
                self.affinity.add(node, &term.topology_key, change);
            }
        }
        for term in self.pod.anti_affinity.iter().filter(|term| term.matches(other, namespace)) {
            self.anti_affinity.add(node, &term.topology_key, change);
        }
    }

    /// Whether a pod is what all terms ask for.
    fn are_met_by(&self, other: &Pod) -> bool {
        let namespace = self.snapshot.namespace(other.namespace());
        let terms = &self.pod.affinity;
        !terms.is_empty() && terms.iter().all(|term| term.matches(other, namespace))
    }

    fn is_near(&self, node: &Node) -> bool {
        let mut are_there = true;
        for term in &self.pod.affinity {
            if !node.labels().contains_key(&term.topology_key) {
                return false;
            }
            are_there &= self.affinity.at(node, &term.topology_key) > 0;
        }
        // The first of pods that want each other must begin somewhere.
        are_there || (self.affinity.0.is_empty() && self.are_met_by(self.pod))
    }
}

impl Filter for Required<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        if !self.is_near(node) {
            return Err(Rejection::unresolvable(REASON_AFFINITY));
        }
        let mut terms = self.pod.anti_affinity.iter();
        if terms.any(|term| self.anti_affinity.at(node, &term.topology_key) > 0) {
            return Err(Rejection::unschedulable(REASON_ANTI_AFFINITY));
        }
        if self.unwelcome.0.keys().any(|key| self.unwelcome.at(node, key) > 0) {
            return Err(Rejection::unschedulable(REASON_EXISTING));
        }
        Ok(())
    }

    fn add(&mut self, other: &Pod, node: &Node) {
        self.count_unwelcome(other, node, 1);
        self.count_wanted(other, node, 1);
    }

    fn remove(&mut self, other: &Pod, node: &Node) {
        self.count_unwelcome(other, node, -1);
        self.count_wanted(other, node, -1);
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

impl Score for Preferred {
    fn score(&self, node: &Node) -> i64 {
        self.0.0.keys().map(|key| self.0.at(node, key)).sum()
    }

    fn normalize(&self, scores: &mut [i64]) {
        let lowest = scores.iter().copied().min().unwrap_or_default();
        let highest = scores.iter().copied().max().unwrap_or_default();
        let range = highest - lowest;
        for score in scores {
            let share = if range > 0 { (*score - lowest) as f64 / range as f64 } else { 0.0 };
            *score = (SCORE_MAX as f64 * share) as i64;
        }
    }
}

impl Counts {
    /// What there is where a node is.
    fn at(&self, node: &Node, key: &str) -> i64 {
        let values = self.0.get(key).zip(node.labels().get(key));
        values.and_then(|(values, value)| values.get(value)).copied().unwrap_or_default()
    }

    fn add(&mut self, node: &Node, key: &str, amount: i64) {
        let Some(value) = node.labels().get(key) else { return };
        if !self.0.contains_key(key) {
            self.0.insert(key.to_owned(), HashMap::new());
        }
        let Some(values) = self.0.get_mut(key) else { return };
        match values.get_mut(value) {
            Some(count) => *count += amount,
            None => drop(values.insert(value.clone(), amount)),
        }
        if values.get(value) == Some(&0) {
            values.remove(value);
        }
        if values.is_empty() {
            self.0.remove(key);
        }
    }
}
