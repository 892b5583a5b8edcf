//! One pod, one decision: which nodes will do, and which of them is best.
//!
//! Functions of a [`Snapshot`], without time, tasks or IO. What lies between them and the API is in
//! [`run`](crate::run); what extenders say is asked there, between [`search`] and [`score`].

mod diagnosis;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use self::diagnosis::Diagnosis;
pub(crate) use self::diagnosis::NO_NODES;
use crate::node::Node;
use crate::plugin::{Code, Filter, Point, Prepared, Rejection, Remedy};
use crate::pod::Pod;
use crate::profile::Profile;
use crate::snapshot::Snapshot;

/// Below this, all nodes are looked at, and at least so many are compared.
const FEASIBLE_MIN: usize = 100;
const PERCENTAGE_MIN: usize = 5;

/// What all filters of a profile have to say for a pod.
pub struct Filters<'a> {
    /// With the place of its plugin in the profile.
    all: Vec<(usize, Box<dyn Filter + 'a>)>,
    nominated: &'a Snapshot,
    pod: &'a Pod,
}

/// An attempt that found no node.
pub struct Attempt<'a> {
    pub pod: &'a Pod,
    pub snapshot: &'a Snapshot,
    pub filters: &'a Filters<'a>,
    pub diagnosis: &'a Diagnosis,
    /// Where among nodes to begin.
    pub offset: usize,
}

/// Nodes that will do.
pub(crate) struct Feasible<'a> {
    pub(crate) nodes: Vec<&'a Node>,
    pub(crate) diagnosis: Diagnosis,
    pub(crate) filters: Filters<'a>,
    /// How many nodes were looked at.
    pub(crate) visited: usize,
}

/// How a search goes about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    /// The node to begin with: others may begin where this one ended.
    pub(crate) start: usize,
    /// Nothing will be compared, so the first that will do is as good as any.
    pub(crate) is_first_enough: bool,
    /// How many nodes to compare, of a hundred. None lets their number decide.
    pub(crate) percentage: Option<u32>,
}

/// Looks for nodes that will do for a pod.
///
/// # Errors
/// It could not be found out.
pub(crate) fn search<'a>(
    profile: &'a Profile,
    pod: &'a Pod,
    snapshot: &'a Snapshot,
    scope: Scope,
) -> Result<Feasible<'a>, String> {
    let mut diagnosis = Diagnosis::new(snapshot.len());
    let mut filters = Filters { all: Vec::new(), nominated: snapshot, pod };
    let mut among: Option<BTreeSet<&str>> = None;
    let mut narrowed_by = BTreeSet::new();
    for (index, plugin) in profile.filters() {
        let filter = match plugin.filter(pod, snapshot) {
            Ok(Prepared::Anywhere) => continue,
            Ok(Prepared::Check(filter)) => filter,
            Ok(Prepared::Among(names, filter)) => {
                narrowed_by.insert(plugin.name());
                diagnosis.rejected_by.insert(index);
                among = Some(match among {
                    Some(known) => known.intersection(&names).copied().collect(),
                    None => names,
                });
                filter
            }
            Err(rejection) if rejection.code == Code::Error => {
                let (name, message) = (plugin.name(), rejection.message());
                return Err(format!("running PreFilter plugin {name:?}: {message}"));
            }
            Err(rejection) => {
                diagnosis.reject_all(index, rejection);
                return Ok(Feasible { nodes: Vec::new(), diagnosis, filters, visited: 0 });
            }
        };
        filters.all.push((index, filter));
    }
    let nominated = snapshot.nominated.node_of(&pod.uid).map(|name| &**name);
    if let Some(node) = nominated.and_then(|name| snapshot.node(name))
        && filters.check(node).is_ok()
    {
        let nodes = vec![node];
        return Ok(Feasible { nodes, diagnosis, filters, visited: 0 });
    }
    let narrowed: Option<Vec<&Node>> =
        among.map(|names| names.into_iter().filter_map(|name| snapshot.node(name)).collect());
    if narrowed.is_some() {
        let names: Vec<&str> = narrowed_by.into_iter().collect();
        let reason = format!("node(s) didn't satisfy plugin(s) [{}]", names.join(" "));
        diagnosis.absent = Rejection::unresolvable(reason);
    }
    let count = narrowed.as_ref().map_or(snapshot.len(), Vec::len);
    let wanted = if scope.is_first_enough { 1 } else { feasible_max(count, scope.percentage) };
    let mut nodes = Vec::with_capacity(wanted);
    let mut visited = 0;
    for step in 0..count {
        let place = (scope.start + step) % count;
        let node = narrowed.as_ref().map_or_else(|| snapshot.nth(place), |nodes| nodes[place]);
        visited += 1;
        match filters.check(node) {
            Ok(()) => nodes.push(node),
            Err((index, rejection)) if rejection.code == Code::Error => {
                let (name, message) = (profile.name_of(index), rejection.message());
                return Err(format!("running {name:?} filter plugin: {message}"));
            }
            Err((index, rejection)) => diagnosis.reject(&node.name, index, rejection),
        }
        if nodes.len() == wanted {
            break;
        }
    }
    Ok(Feasible { nodes, diagnosis, filters, visited })
}

/// How good each of the nodes is, by all plugins of a profile together.
pub(crate) fn score(
    profile: &Profile,
    pod: &Pod,
    snapshot: &Snapshot,
    nodes: &[&Node],
) -> Vec<i64> {
    let mut totals = vec![0; nodes.len()];
    let mut scores = Vec::with_capacity(nodes.len());
    for (plugin, weight) in profile.scores() {
        let Some(scorer) = plugin.score(pod, snapshot, nodes) else { continue };
        scores.clear();
        scores.extend(nodes.iter().map(|node| scorer.score(node)));
        scorer.normalize(&mut scores);
        for (total, score) in totals.iter_mut().zip(&scores) {
            *total += score * weight;
        }
    }
    totals
}

/// What can be done about a pod that fits nowhere, by the first plugin that knows something. If
/// none does, all of them say why.
pub(crate) fn remedy(profile: &Profile, attempt: &Attempt<'_>) -> Option<Remedy> {
    let (mut reasons, mut is_of_no_use) = (Vec::new(), false);
    for plugin in profile.at_point(Point::PostFilter) {
        match plugin.post_filter(attempt) {
            None => {}
            Some(Remedy::Nothing(why)) => reasons.push(why),
            Some(Remedy::NoUse(why)) => {
                reasons.push(why);
                is_of_no_use = true;
            }
            Some(preempt @ Remedy::Preempt(_)) => return Some(preempt),
        }
    }
    let why = reasons.join(", ");
    match is_of_no_use {
        true => Some(Remedy::NoUse(why)),
        false => (!why.is_empty()).then_some(Remedy::Nothing(why)),
    }
}

/// The best of all nodes. Where several are, a number that is drawn below their count decides.
pub(crate) fn choose(scores: &[i64], draw: impl FnOnce(usize) -> usize) -> Option<usize> {
    let best = scores.iter().max()?;
    let ties: Vec<usize> = (0..scores.len()).filter(|&index| scores[index] == *best).collect();
    match ties[..] {
        [only] => Some(only),
        _ => Some(ties[draw(ties.len())]),
    }
}

/// How many nodes that will do are enough to choose from.
fn feasible_max(nodes: usize, percentage: Option<u32>) -> usize {
    if nodes < FEASIBLE_MIN {
        return nodes;
    }
    let percentage = match percentage.filter(|&percentage| percentage > 0) {
        Some(percentage) => percentage as usize,
        None => 50_usize.saturating_sub(nodes / 125).max(PERCENTAGE_MIN),
    };
    (nodes * percentage / 100).clamp(FEASIBLE_MIN, nodes)
}

impl<'a> Filters<'a> {
    /// Whether the pod fits a node, with and without those that room is made for there: they may
    /// never come.
    ///
    /// # Errors
    /// It does not: which plugin says so, and why.
    pub(crate) fn check(&self, node: &Node) -> Result<(), (usize, Rejection)> {
        if self.nominated.nominated.is_empty() {
            return self.check_alone(node);
        }
        let expected: Vec<&Arc<Pod>> = self
            .nominated
            .nominated
            .on(&node.name)
            .iter()
            .filter(|other| other.priority >= self.pod.priority && other.uid != self.pod.uid)
            .collect();
        if !expected.is_empty() {
            let (mut filters, mut crowded) = (self.copy(), node.clone());
            for other in expected {
                crowded.add(Arc::clone(other));
                filters.add(other, &crowded);
            }
            filters.check_alone(&crowded)?;
        }
        self.check_alone(node)
    }

    fn check_alone(&self, node: &Node) -> Result<(), (usize, Rejection)> {
        for (index, filter) in &self.all {
            filter.check(node).map_err(|rejection| (*index, rejection))?;
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, other: &Pod, node: &Node) {
        self.all.iter_mut().for_each(|(_, filter)| filter.add(other, node));
    }

    pub(crate) fn remove(&mut self, other: &Pod, node: &Node) {
        self.all.iter_mut().for_each(|(_, filter)| filter.remove(other, node));
    }

    pub(crate) fn copy(&self) -> Filters<'a> {
        let all = self.all.iter().map(|(index, filter)| (*index, filter.boxed())).collect();
        Filters { all, nominated: self.nominated, pod: self.pod }
    }
}
