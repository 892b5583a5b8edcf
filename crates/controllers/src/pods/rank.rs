//! Which of several pods is missed least.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::{is_active, is_ready, node, phase, ready_since};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// How many pods that do the same are on each node.
#[derive(Debug, Default)]
pub(crate) struct Doubling(HashMap<String, usize>);

impl Doubling {
    pub(crate) fn new<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> Self {
        let mut nodes = HashMap::new();
        for pod in pods.into_iter().filter(|pod| is_active(pod)) {
            *nodes.entry(node(pod).to_owned()).or_default() += 1;
        }
        Doubling(nodes)
    }

    fn of(&self, pod: &Pod) -> usize {
        self.0.get(node(pod)).copied().unwrap_or_default()
    }
}

/// Sorts pods so that those that should be deleted first come first: those that do not run yet,
/// are not ready, are cheap by their own word, are not alone on their node, or are young. Ages are
/// compared by their order of magnitude, and then by chance, which uids are, so that not always
/// the youngest goes.
pub(crate) fn deletion_order(pods: &mut [Arc<Pod>], doubling: &Doubling, now: Timestamp) {
    // A key for each, not a comparison of two: upstream's comparison tells uids apart before
    // restarts if ages differ a little, and restarts before uids if they do not, which is no
    // order of three pods.
    pods.sort_by_cached_key(|pod| {
        let is_ready = is_ready(pod);
        let state = (!node(pod).is_empty(), phase_order(pod), is_ready, deletion_cost(pod));
        let ready = ready_since(pod).filter(|_| is_ready).map(|since| magnitude(since, now));
        let age = created(pod).map(|since| magnitude(since, now));
        let uid = pod.metadata.uid.clone();
        (state, Reverse(doubling.of(pod)), ready, Reverse(restarts(pod)), age, uid)
    });
}

fn phase_order(pod: &Pod) -> u8 {
    match phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        "Running" => 2,
        // Upstream looks phases up in a table of these three, in which others are zero.
        _ => 0,
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    let cost = pod.metadata.annotations.as_ref().and_then(|all| all.get(DELETION_COST));
    cost.and_then(|cost| cost.parse().ok()).unwrap_or_default()
}

fn created(pod: &Pod) -> Option<Timestamp> {
    Some(pod.metadata.creation_timestamp.as_ref()?.0)
}

/// The order of magnitude of an age, in powers of two.
fn magnitude(since: Timestamp, now: Timestamp) -> i32 {
    let nanos = now.duration_since(since).as_nanos();
    u128::try_from(nanos).ok().and_then(u128::checked_ilog2).map_or(-1, u32::cast_signed)
}

/// The most restarts of a container, and of a sidecar.
fn restarts(pod: &Pod) -> (i32, i32) {
    let Some((status, spec)) = pod.status.as_ref().zip(pod.spec.as_ref()) else { return (0, 0) };
    let regular = status.container_statuses.iter().flatten().map(|status| status.restart_count);
    let sidecars: Vec<&str> = spec
        .init_containers
        .iter()
        .flatten()
        .filter(|container| container.restart_policy.as_deref() == Some("Always"))
        .map(|container| container.name.as_str())
        .collect();
    let sidecar = status.init_container_statuses.iter().flatten();
    let sidecar = sidecar.filter(|status| sidecars.contains(&status.name.as_str()));
    let sidecar = sidecar.map(|status| status.restart_count);
    (regular.max().unwrap_or_default(), sidecar.max().unwrap_or_default())
}
