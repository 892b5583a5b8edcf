//! Which of a DaemonSet's pods should appear and which should go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright_apimachinery::int_or_string::Rounding;

use super::nodes::{Fit, fit, target};
use crate::part::{count, scaled, seconds};
use crate::pods::{self, is_available, is_ready, phase};
use crate::revisions::HASH;

const GENERATION_LABEL: &str = "pod-template-generation";
const GENERATION: &str = "deprecated.daemonset.template.generation";

/// A DaemonSet and all that it looks at.
pub(super) struct View<'v> {
    pub(super) set: &'v DaemonSet,
    pub(super) nodes: &'v [Arc<Node>],
    /// The pods on each node, or meant for it.
    pub(super) pods: BTreeMap<String, Vec<Arc<Pod>>>,
    /// The hash of the present template.
    pub(super) hash: &'v str,
    pub(super) now: Timestamp,
}

/// What should be done, in the order of nodes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Nodes that need a pod.
    pub(super) create: Vec<String>,
    pub(super) delete: Vec<Arc<Pod>>,
    /// Of those deleted, the ones that have ended by themselves, and their nodes.
    pub(super) ended: Vec<(String, Arc<Pod>)>,
    /// How long until the next failed pod may be deleted.
    pub(super) wait: Option<Duration>,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }
}

impl<'v> View<'v> {
    pub(super) fn new(
        set: &'v DaemonSet,
        nodes: &'v [Arc<Node>],
        pods: &[Arc<Pod>],
        hash: &'v str,
        now: Timestamp,
    ) -> Self {
        let mut by_node: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in pods {
            let is_gone = pods::is_over(pod) && pod.metadata.deletion_timestamp.is_some();
            if let Some(node) = target(pod).filter(|_| !is_gone) {
                by_node.entry(node.to_owned()).or_default().push(Arc::clone(pod));
            }
        }
        by_node.values_mut().for_each(|pods| pods.sort_by_cached_key(|pod| seniority(pod)));
        View { set, nodes, pods: by_node, hash, now }
    }

    fn on(&self, node: &str) -> &[Arc<Pod>] {
        self.pods.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    fn min_ready(&self) -> Duration {
        seconds(self.set.spec.as_ref().and_then(|spec| spec.min_ready_seconds))
    }

    fn is_available(&self, pod: &Pod) -> bool {
        is_available(pod, self.min_ready(), self.now)
    }

    /// Whether a pod is of the present template.
    fn is_updated(&self, pod: &Pod) -> bool {
        let label = |key: &str| pod.metadata.labels.as_ref().and_then(|labels| labels.get(key));
        let generation = generation(self.set);
        let is_of_hash = !self.hash.is_empty() && label(HASH).is_some_and(|own| own == self.hash);
        is_of_hash || generation.is_some() && label(GENERATION_LABEL) == generation.as_ref()
    }

    /// How many pods may be too many, and how many missing, of so many, during an update.
    fn limits(&self, desired: i32) -> Option<(usize, usize)> {
        let strategy = self.set.spec.as_ref()?.update_strategy.as_ref()?;
        let rolling = strategy.rolling_update.as_ref().filter(|_| is_rolling(self.set));
        let scale = |value: Option<&IntOrString>| {
            let scaled = value.map_or(0, |value| scaled(value, desired, Rounding::Up));
            usize::try_from(scaled).unwrap_or_default()
        };
        let surge = scale(rolling.and_then(|rolling| rolling.max_surge.as_ref()));
        let unavailable = scale(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()));
        match (surge, unavailable) {
            (0, 0) if desired > 0 => Some((0, 1)),
            limits => Some(limits),
        }
    }

    /// The pod of the present template and the one of an older one on a node; nothing if there are
    /// more, which others see to.
    fn pair(&self, pods: &[Arc<Pod>]) -> Option<(MaybePod, MaybePod)> {
        let live = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let (new, old): (Vec<_>, Vec<_>) = live.partition(|pod| self.is_updated(pod));
        let only = |pods: Vec<&Arc<Pod>>| (pods.len() <= 1).then(|| pods.first().copied().cloned());
        Some((only(new)?, only(old)?))
    }
}

type MaybePod = Option<Arc<Pod>>;

/// The label that tells the number of a template, as once was the only way.
pub(super) fn generation_label(set: &DaemonSet) -> Option<(String, String)> {
    generation(set).map(|generation| (GENERATION_LABEL.to_owned(), generation))
}

fn generation(set: &DaemonSet) -> Option<String> {
    let generation = set.metadata.annotations.as_ref()?.get(GENERATION)?;
    generation.parse::<i64>().ok().map(|generation| generation.to_string())
}

/// The oldest first, and those that are on a node already before those that are not.
fn seniority(pod: &Pod) -> impl Ord + use<> {
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (pods::node(pod).is_empty(), created, pod.metadata.name.clone())
}

pub(super) fn is_rolling(set: &DaemonSet) -> bool {
    let strategy = set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
    strategy.is_none_or(|strategy| strategy.type_.as_deref() != Some("OnDelete"))
}

/// Sees to it that each node has its pod. `backoff` tells how long a node must wait before a pod
/// that has failed there is replaced.
pub(super) fn manage(view: &View<'_>, backoff: impl Fn(&str) -> Option<Duration>) -> Plan {
    let allows_surge = view.limits(1).is_some_and(|(surge, _)| surge > 0);
    let mut plan = Plan::default();
    for node in view.nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let (fit, pods) = (fit(view.set, node), view.on(name));
        match fit {
            Fit::Wanted if pods.is_empty() => plan.create.push(name.to_owned()),
            Fit::Wanted | Fit::Bearable => {
                let running = replace_ended(&mut plan, name, pods, &backoff);
                if running.is_empty() {
                    if allows_surge && fit == Fit::Wanted {
                        plan.create.push(name.to_owned());
                    }
                } else if allows_surge {
                    plan.delete.extend(doubled(view, &running));
                } else {
                    plan.delete.extend(running.into_iter().skip(1));
                }
            }
            Fit::Unfit => {
                let live = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
                plan.delete.extend(live.cloned());
            }
        }
    }
    // What was meant for a node that is gone will never be anywhere.
    let known: BTreeSet<_> =
        view.nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
    let lost = view.pods.iter().filter(|(node, _)| !known.contains(node.as_str()));
    let lost = lost.flat_map(|(_, pods)| pods).filter(|pod| pods::node(pod).is_empty());
    plan.delete.extend(lost.cloned());
    plan
}

/// Has pods that have ended deleted, and gives the others.
fn replace_ended(
    plan: &mut Plan,
    node: &str,
    pods: &[Arc<Pod>],
    backoff: &impl Fn(&str) -> Option<Duration>,
) -> Vec<Arc<Pod>> {
    let mut running = Vec::new();
    for pod in pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        match phase(pod) {
            "Failed" => {
                if let Some(delay) = backoff(node) {
                    plan.wait = Some(plan.wait.map_or(delay, |wait| wait.min(delay)));
                    continue;
                }
            }
            "Succeeded" => {}
            _ => {
                running.push(Arc::clone(pod));
                continue;
            }
        }
        plan.ended.push((node.to_owned(), Arc::clone(pod)));
        plan.delete.push(Arc::clone(pod));
    }
    running
}

/// Where a new pod may start before the old one ends: those that are more than these two, and the
/// old one once it is of no use any more.
fn doubled(view: &View<'_>, running: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    let of_hash = |pod: &Pod| {
        let labels = pod.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(HASH)).is_some_and(|hash| hash == view.hash)
    };
    let (new, old): (Vec<_>, Vec<_>) = running.iter().partition(|pod| of_hash(pod));
    let mut surplus: Vec<_> = new.iter().skip(1).chain(old.iter().skip(1)).copied().collect();
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!is_ready(old) || view.is_available(new))
    {
        surplus.push(old);
    }
    surplus.into_iter().cloned().collect()
}

/// The next pods to be replaced by ones of the present template.
pub(super) fn roll(view: &View<'_>) -> Plan {
    let wanted: Vec<&str> = view
        .nodes
        .iter()
        .filter(|node| fit(view.set, node) == Fit::Wanted)
        .filter_map(|node| node.metadata.name.as_deref())
        .collect();
    let desired = i32::try_from(wanted.len()).unwrap_or(i32::MAX);
    let Some((surge, unavailable)) = view.limits(desired) else { return Plan::default() };
    let mut nodes: BTreeSet<&str> = wanted.iter().copied().collect();
    nodes.extend(view.pods.keys().map(String::as_str));
    match surge {
        0 => roll_in_place(view, &nodes, unavailable),
        surge => roll_beside(view, &nodes, &wanted, surge),
    }
}

/// Old pods go first, and as many at a time as may be missing. Those that are of no use anyway may
/// always go.
fn roll_in_place(view: &View<'_>, nodes: &BTreeSet<&str>, unavailable_max: usize) -> Plan {
    let (mut unavailable, mut replaced, mut candidates) = (0, Vec::new(), Vec::new());
    for node in nodes {
        match view.pair(view.on(node)) {
            Some((None, Some(old))) if view.is_available(&old) => {
                if unavailable < unavailable_max {
                    candidates.push(old);
                }
            }
            Some((None, Some(old))) => {
                replaced.push(old);
                unavailable += 1;
            }
            Some((Some(new), None)) if view.is_available(&new) => {}
            _ => unavailable += 1,
        }
    }
    candidates.truncate(unavailable_max.saturating_sub(unavailable));
    replaced.extend(candidates);
    Plan { delete: replaced, ..Plan::default() }
}

/// New pods come first, and as many at a time as may be too many.
fn roll_beside(view: &View<'_>, nodes: &BTreeSet<&str>, wanted: &[&str], surge_max: usize) -> Plan {
    let mut plan = Plan::default();
    let (mut surge, mut available, mut candidates, mut unwanted) = (0, 0, Vec::new(), Vec::new());
    for node in nodes {
        let Some((new, old)) = view.pair(view.on(node)) else {
            surge += 1;
            continue;
        };
        if old.as_ref().or(new.as_ref()).is_some_and(|pod| view.is_available(pod)) {
            available += 1;
        }
        match (new, old) {
            (_, None) => {}
            (None, Some(old)) => match (wanted.contains(node), view.is_available(&old)) {
                (true, false) => plan.create.push((*node).to_owned()),
                (true, true) if surge < surge_max => candidates.push((*node).to_owned()),
                (true, true) => {}
                (false, false) => plan.delete.push(old),
                (false, true) => unwanted.push(old),
            },
            (Some(new), Some(old)) => match view.is_available(&new) {
                true => plan.delete.push(old),
                false => surge += 1,
            },
        }
    }
    unwanted.truncate(usize::saturating_sub(available, wanted.len()));
    plan.delete.extend(unwanted);
    candidates.truncate(surge_max.saturating_sub(surge));
    plan.create.extend(candidates);
    plan
}

/// What the DaemonSet says of itself.
pub(super) fn status(view: &View<'_>) -> DaemonSetStatus {
    let mut status = DaemonSetStatus {
        observed_generation: view.set.metadata.generation,
        ..view.set.status.clone().unwrap_or_default()
    };
    let (mut available, mut updated) = (0, 0);
    let counts = [
        &mut status.desired_number_scheduled,
        &mut status.current_number_scheduled,
        &mut status.number_misscheduled,
        &mut status.number_ready,
    ];
    let [desired, current, misplaced, ready] = counts;
    (*desired, *current, *misplaced, *ready) = (0, 0, 0, 0);
    for node in view.nodes {
        let pods = view.on(node.metadata.name.as_deref().unwrap_or_default());
        match (fit(view.set, node), pods.first()) {
            (Fit::Wanted, first) => {
                *desired += 1;
                let Some(pod) = first else { continue };
                *current += 1;
                *ready += i32::from(is_ready(pod));
                available += i32::from(view.is_available(pod));
                updated += i32::from(view.is_updated(pod));
            }
            (_, Some(_)) => *misplaced += 1,
            (_, None) => {}
        }
    }
    let unavailable = *desired - available;
    DaemonSetStatus {
        number_available: count(available),
        number_unavailable: count(unavailable),
        updated_number_scheduled: count(updated),
        ..status
    }
}

/// How long until the next pod becomes available, if nothing else happens.
pub(super) fn next_available(view: &View<'_>) -> Option<Duration> {
    let pods = view.pods.values().flatten().map(Arc::as_ref);
    pods::next_available(pods, view.min_ready(), view.now)
}
