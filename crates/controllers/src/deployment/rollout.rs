//! How large each ReplicaSet of a Deployment should become next.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;

use kubewright_apimachinery::int_or_string::Rounding;

use super::history::{DESIRED_REPLICAS, History, MAX_REPLICAS, annotation, available, size};
use crate::part::scaled;
use crate::pods;

/// What a Deployment asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) replicas: i32,
    /// How many pods there may be beyond those.
    pub(super) surge: i32,
    /// How many of them may be unavailable.
    pub(super) unavailable: i32,
    pub(super) strategy: Strategy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    Rolling,
    Recreate,
}

/// A ReplicaSet should have more or fewer pods than before; or as many, but say so anew.
#[derive(Debug, Clone)]
pub(super) struct Resize {
    pub(super) set: Arc<ReplicaSet>,
    pub(super) from: i32,
    pub(super) to: i32,
}

impl Wanted {
    pub(super) fn of(deployment: &Deployment) -> Self {
        let spec = deployment.spec.as_ref();
        let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
        let strategy = spec.and_then(|spec| spec.strategy.as_ref());
        if strategy.is_some_and(|strategy| strategy.type_.as_deref() == Some("Recreate")) {
            return Wanted { replicas, surge: 0, unavailable: 0, strategy: Strategy::Recreate };
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let surge = surge.map_or(0, |surge| scaled(surge, replicas, Rounding::Up));
        let unavailable =
            unavailable.map_or(0, |unavailable| scaled(unavailable, replicas, Rounding::Down));
        // Percentages of few may both come to nothing, and then nothing could move.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        let unavailable = unavailable.min(replicas);
        Wanted { replicas, surge, unavailable, strategy: Strategy::Rolling }
    }

    fn min_available(&self) -> i32 {
        self.replicas - self.unavailable
    }
}

/// How large the new ReplicaSet may be, which has this size.
pub(super) fn new_size(wanted: &Wanted, history: &History, size: i32) -> i32 {
    match wanted.strategy {
        Strategy::Recreate => wanted.replicas,
        Strategy::Rolling => {
            let room = wanted.replicas + wanted.surge - total(history.all());
            size + room.min(wanted.replicas - size).max(0)
        }
    }
}

/// The next steps of a rolling update: the new ReplicaSet grows as far as the surge allows, and only
/// when it cannot, old ones shrink as far as availability allows.
pub(super) fn rolling(wanted: &Wanted, history: &History) -> Vec<Resize> {
    let Some(new) = &history.new else { return Vec::new() };
    let size_now = size(new);
    let target = match size_now > wanted.replicas {
        true => wanted.replicas,
        false => new_size(wanted, history, size_now),
    };
    if target != size_now {
        return vec![Resize { set: Arc::clone(new), from: size_now, to: target }];
    }
    shrink_old(wanted, history, new)
}

fn shrink_old(wanted: &Wanted, history: &History, new: &ReplicaSet) -> Vec<Resize> {
    let old: Vec<_> = history.old.iter().filter(|set| size(set) > 0).collect();
    let unavailable = size(new) - available(new);
    let dispensable = total(history.all()) - wanted.min_available() - unavailable;
    if old.is_empty() || dispensable <= 0 {
        return Vec::new();
    }
    let mut sizes: HashMap<&str, i32> = old.iter().map(|set| (name(set), size(set))).collect();
    let mut steps = Vec::new();
    // Pods that are not available serve nobody: they go first, whatever the availability.
    let mut left = dispensable;
    for set in &old {
        let count = left.min(size(set) - available(set)).max(0);
        shrink(set, count, &mut sizes, &mut steps);
        left -= count;
    }
    let serving: i32 = old.iter().map(|set| available(set)).sum::<i32>() + available(new);
    let mut left = serving - wanted.min_available();
    for set in &old {
        let count = left.min(sizes[name(set)]).max(0);
        shrink(set, count, &mut sizes, &mut steps);
        left -= count;
    }
    steps
}

fn shrink<'s>(
    set: &'s Arc<ReplicaSet>,
    count: i32,
    sizes: &mut HashMap<&'s str, i32>,
    steps: &mut Vec<Resize>,
) {
    if count > 0
        && let Some(size) = sizes.get_mut(name(set))
    {
        steps.push(Resize { set: Arc::clone(set), from: *size, to: *size - count });
        *size -= count;
    }
}

/// All old ReplicaSets that should have pods become empty.
pub(super) fn empty_old(history: &History) -> Vec<Resize> {
    let active = history.old.iter().filter(|set| size(set) > 0);
    active.map(|set| Resize { set: Arc::clone(set), from: size(set), to: 0 }).collect()
}

/// Whether a pod of an old template is not over yet, though it may be on its way.
pub(super) fn old_pods_run(history: &History, pods: &[Arc<Pod>]) -> bool {
    let replicas = |set: &ReplicaSet| set.status.as_ref().map_or(0, |status| status.replicas);
    if history.old.iter().any(|set| replicas(set) > 0) {
        return true;
    }
    let old: Vec<_> = history.old.iter().filter_map(|set| set.metadata.uid.as_deref()).collect();
    let is_old = |pod: &Pod| {
        let mut owners = pod.metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true));
        owner.is_some_and(|owner| old.contains(&owner.uid.as_str()))
    };
    pods.iter().any(|pod| !pods::is_over(pod) && is_old(pod))
}

/// Whether somebody has changed how many pods the Deployment should have.
pub(super) fn is_scaling(wanted: &Wanted, history: &History) -> bool {
    let active = history.all().filter(|set| size(set) > 0);
    active.filter_map(|set| number(set, DESIRED_REPLICAS)).any(|told| told != wanted.replicas)
}

/// What a change of the Deployment's size means for its ReplicaSets, in the middle of an update too:
/// then each grows or shrinks in proportion.
pub(super) fn scale(wanted: &Wanted, history: &History, replicas_now: i32) -> Vec<Resize> {
    let mut active: Vec<_> = history.all().filter(|set| size(set) > 0).collect();
    let only = match active[..] {
        // Of many that are empty, the present one or the youngest.
        [] => history.new.as_ref().or(history.old.last()),
        [only] => Some(only),
        _ => None,
    };
    if let Some(only) = only {
        let (from, to) = (size(only), wanted.replicas);
        return Vec::from_iter((from != to).then(|| Resize { set: Arc::clone(only), from, to }));
    }
    if history.new.as_ref().is_some_and(|new| is_saturated(wanted, new)) {
        return empty_old(history);
    }
    if wanted.strategy != Strategy::Rolling || active.is_empty() {
        return Vec::new();
    }
    let allowed = if wanted.replicas > 0 { wanted.replicas + wanted.surge } else { 0 };
    let add = allowed - total(active.iter().copied());
    // The largest take what is left over; of equals, the younger grow and the older shrink first.
    active.sort_by_key(|set| age(set));
    if add > 0 {
        active.reverse();
    }
    active.sort_by_key(|set| Reverse(size(set)));
    let mut added = 0;
    let mut steps: Vec<Resize> = Vec::new();
    for set in active {
        let (share, left) = (share(wanted, set, replicas_now), add - added);
        let share = match left.cmp(&0) {
            Ordering::Greater => share.min(left),
            Ordering::Equal => 0,
            Ordering::Less => share.max(left),
        };
        added += share;
        steps.push(Resize { set: Arc::clone(set), from: size(set), to: size(set) + share });
    }
    if let Some(first) = steps.first_mut() {
        first.to = (first.to + add - added).max(0);
    }
    steps
}

/// By how much a ReplicaSet should grow for its part.
fn share(wanted: &Wanted, set: &ReplicaSet, replicas_now: i32) -> i32 {
    if wanted.replicas == 0 {
        return -size(set);
    }
    let before = number(set, MAX_REPLICAS).filter(|max| *max != 0).unwrap_or(replicas_now);
    if before == 0 {
        return 0;
    }
    let scaled = f64::from(size(set) * (wanted.replicas + wanted.surge)) / f64::from(before);
    #[expect(clippy::cast_possible_truncation, reason = "sizes fit, and so does their ratio")]
    let scaled = scaled.round() as i32;
    scaled - size(set)
}

/// Whether the new ReplicaSet is all that is needed.
fn is_saturated(wanted: &Wanted, new: &ReplicaSet) -> bool {
    size(new) == wanted.replicas
        && number(new, DESIRED_REPLICAS) == Some(wanted.replicas)
        && available(new) == wanted.replicas
}

pub(super) fn total<'s>(sets: impl IntoIterator<Item = &'s Arc<ReplicaSet>>) -> i32 {
    sets.into_iter().map(|set| size(set)).sum()
}

fn number(set: &ReplicaSet, key: &str) -> Option<i32> {
    annotation(&set.metadata, key)?.parse().ok().filter(|number| *number >= 0)
}

fn name(set: &ReplicaSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

fn age(set: &ReplicaSet) -> impl Ord + use<> {
    let created = set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, set.metadata.name.clone())
}
