//! Pods of a kind are spread over zones, nodes, or whatever a label tells apart.

mod score;

use std::collections::HashMap;

use k8s_openapi::api::core::v1 as core;
use kubewright_apimachinery::selector::label::Selector;

use super::taint_toleration::are_tolerated;
use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Filter, Plugin, Point, Prepared, Rejection, Score};
use crate::pod::Pod;
use crate::selector::{self, Labels};
use crate::snapshot::Snapshot;

pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const REASON: &str = "node(s) didn't match pod topology spread constraints";
const REASON_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";
const HONOR: &str = "Honor";

pub(crate) struct PodTopologySpread {
    defaults: Vec<core::TopologySpreadConstraint>,
    /// Nobody chose the defaults, so nodes without their labels are no worse.
    is_system_defaulted: bool,
}

/// What a constraint does when it cannot be kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    DoNotSchedule,
    ScheduleAnyway,
}

#[derive(Debug, Clone)]
struct Constraint {
    skew_max: i64,
    key: String,
    selector: Selector,
    domains_min: usize,
    honors_affinity: bool,
    honors_taints: bool,
}

#[derive(Clone)]
struct Required<'s> {
    pod: &'s Pod,
    constraints: Vec<Counted>,
}

/// A constraint, and how many pods are in each domain.
#[derive(Clone)]
struct Counted {
    constraint: Constraint,
    /// The pod itself is one of those that are spread.
    is_one: bool,
    pods: HashMap<String, i64>,
    /// In the domain with the fewest.
    fewest: i64,
}

impl PodTopologySpread {
    pub(crate) const NAME: &str = "PodTopologySpread";

    /// With upstream's defaults: over nodes, and more roughly over zones.
    pub(crate) fn system_defaulted() -> Self {
        let constraint = |key: &str, skew| core::TopologySpreadConstraint {
            topology_key: key.to_owned(),
            max_skew: skew,
            when_unsatisfiable: "ScheduleAnyway".to_owned(),
            ..core::TopologySpreadConstraint::default()
        };
        PodTopologySpread {
            defaults: vec![constraint(HOSTNAME, 3), constraint(ZONE, 5)],
            is_system_defaulted: true,
        }
    }

    pub(crate) fn with_defaults(defaults: Vec<core::TopologySpreadConstraint>) -> Self {
        PodTopologySpread { defaults, is_system_defaulted: false }
    }

    /// What a pod asks for, or else what is asked for all pods that belong to a Service or a set.
    fn constraints(&self, pod: &Pod, snapshot: &Snapshot, action: Action) -> Vec<Constraint> {
        if let Some(own) = own_constraints(pod) {
            return of_action(own, pod.labels(), action).collect();
        }
        let mut defaults = of_action(&self.defaults, pod.labels(), action).peekable();
        if defaults.peek().is_none() {
            return Vec::new();
        }
        let selector = snapshot.workloads.selector_of(pod);
        match selector.is_everything() {
            true => Vec::new(),
            false => defaults.map(|it| Constraint { selector: selector.clone(), ..it }).collect(),
        }
    }
}

impl Plugin for PodTopologySpread {
    fn name(&self) -> &str {
        PodTopologySpread::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::PreFilter, Point::Filter, Point::PreScore, Point::Score]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        let constraints = self.constraints(pod, snapshot, Action::DoNotSchedule);
        if constraints.is_empty() {
            return Ok(Prepared::Anywhere);
        }
        let counted = |constraint: Constraint| Counted {
            is_one: constraint.selector.matches(pod.labels()),
            constraint,
            pods: HashMap::new(),
            fewest: 0,
        };
        let mut constraints: Vec<Counted> = constraints.into_iter().map(counted).collect();
        for node in snapshot.nodes() {
            if !constraints.iter().all(|it| node.labels().contains_key(&it.constraint.key)) {
                continue;
            }
            for it in constraints.iter_mut().filter(|it| it.constraint.includes(pod, node)) {
                let count = it.constraint.count(pod.namespace(), node);
                it.change(node, count);
            }
        }
        constraints.iter_mut().for_each(Counted::settle);
        Ok(Prepared::Check(Box::new(Required { pod, constraints })))
    }

    fn score<'a>(
        &'a self,
        pod: &'a Pod,
        snapshot: &'a Snapshot,
        nodes: &[&Node],
    ) -> Option<Box<dyn Score + 'a>> {
        let constraints = self.constraints(pod, snapshot, Action::ScheduleAnyway);
        let needs_all_labels = own_constraints(pod).is_some() || !self.is_system_defaulted;
        let spread = score::Spread::new(pod, snapshot, nodes, constraints, needs_all_labels)?;
        Some(Box::new(spread))
    }

    fn helps(&self, pod: &Pod, change: &Change) -> bool {
        let concerns = |other: &Pod| other.namespace() == pod.namespace();
        match change {
            Change::PodAssigned(other) | Change::PodDeleted(other) => concerns(other),
            Change::PodUpdated { old, new } => concerns(new) && old.labels() != new.labels(),
            Change::NodeAdded(_) | Change::NodeDeleted | Change::SelfUpdated { .. } => true,
            Change::NodeUpdated { old, new } => {
                let taints =
                    |node: &core::Node| node.spec.as_ref().and_then(|it| it.taints.clone());
                old.metadata.labels != new.metadata.labels || taints(old) != taints(new)
            }
            Change::Storage | Change::Namespace => false,
        }
    }
}

impl Filter for Required<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        for it in &self.constraints {
            let Some(domain) = node.labels().get(&it.constraint.key) else {
                return Err(Rejection::unresolvable(REASON_LABEL));
            };
            let fewest = if it.pods.len() < it.constraint.domains_min { 0 } else { it.fewest };
            let here = it.pods.get(domain).copied().unwrap_or_default();
            if here + i64::from(it.is_one) - fewest > it.constraint.skew_max {
                return Err(Rejection::unschedulable(REASON));
            }
        }
        Ok(())
    }

    fn add(&mut self, other: &Pod, node: &Node) {
        self.count(other, node, 1);
    }

    fn remove(&mut self, other: &Pod, node: &Node) {
        self.count(other, node, -1);
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

impl Required<'_> {
    fn count(&mut self, other: &Pod, node: &Node, change: i64) {
        let has_label = |it: &Counted| node.labels().contains_key(&it.constraint.key);
        if other.namespace() != self.pod.namespace() || !self.constraints.iter().all(has_label) {
            return;
        }
        for it in &mut self.constraints {
            if it.constraint.selector.matches(other.labels())
                && it.constraint.includes(self.pod, node)
            {
                it.change(node, change);
                it.settle();
            }
        }
    }
}

impl Counted {
    fn change(&mut self, node: &Node, change: i64) {
        let Some(domain) = node.labels().get(&self.constraint.key) else { return };
        match self.pods.get_mut(domain) {
            Some(count) => *count += change,
            None => drop(self.pods.insert(domain.clone(), change)),
        }
    }

    fn settle(&mut self) {
        self.fewest = self.pods.values().copied().min().unwrap_or_default();
    }
}

impl Constraint {
    /// Whether a node counts: where the pod cannot go, nothing is missing.
    fn includes(&self, pod: &Pod, node: &Node) -> bool {
        (!self.honors_affinity || pod.selects_node(&node.name, node.labels()))
            && (!self.honors_taints || are_tolerated(pod.tolerations(), node.taints()))
    }

    /// How many pods on a node are meant.
    fn count(&self, namespace: &str, node: &Node) -> i64 {
        if self.selector.is_everything() {
            return 0;
        }
        let is_meant = |other: &&std::sync::Arc<Pod>| {
            !other.is_deleted()
                && other.namespace() == namespace
                && self.selector.matches(other.labels())
        };
        node.pods.iter().filter(is_meant).count() as i64
    }
}

fn own_constraints(pod: &Pod) -> Option<&[core::TopologySpreadConstraint]> {
    let constraints = pod.spec()?.topology_spread_constraints.as_deref();
    constraints.filter(|constraints| !constraints.is_empty())
}

fn of_action<'a>(
    constraints: &'a [core::TopologySpreadConstraint],
    labels: &'a Labels,
    action: Action,
) -> impl Iterator<Item = Constraint> + 'a {
    let of = |it: &core::TopologySpreadConstraint| match it.when_unsatisfiable.as_str() {
        "ScheduleAnyway" => Action::ScheduleAnyway,
        _ => Action::DoNotSchedule,
    };
    constraints.iter().filter(move |it| of(it) == action).map(|it| constraint(it, labels))
}

fn constraint(it: &core::TopologySpreadConstraint, labels: &Labels) -> Constraint {
    // What is no selector selects nothing: the server takes none that is none.
    let read = selector::labels(it.label_selector.as_ref()).unwrap_or(Selector::Nothing);
    let keys = it.match_label_keys.iter().flatten();
    let own = keys.filter_map(|key| Some((key.clone(), labels.get(key)?.clone())));
    let honors = |policy: &Option<String>, otherwise: bool| {
        policy.as_deref().map_or(otherwise, |policy| policy == HONOR)
    };
    Constraint {
        skew_max: it.max_skew.into(),
        key: it.topology_key.clone(),
        selector: selector::both(read, Selector::from_labels(own)),
        domains_min: it.min_domains.unwrap_or(1).try_into().unwrap_or_default(),
        honors_affinity: honors(&it.node_affinity_policy, true),
        honors_taints: honors(&it.node_taints_policy, false),
    }
}
