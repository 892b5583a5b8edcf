//! How long a Job waits before it tries again what has failed.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::terms;

/// The pause after the first failure; each further one doubles it.
const PAUSE: SignedDuration = SignedDuration::from_secs(10);
const PAUSE_MAX: SignedDuration = SignedDuration::from_mins(10);

/// The failures of a Job since its last success. Kept in memory only: after a restart there is one
/// pause less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    failures: u32,
    last: Option<Timestamp>,
}

impl Backoff {
    /// With pods that have ended since.
    pub(super) fn after(self, succeeded: &[&Pod], failed: &[&Pod]) -> Self {
        let success = succeeded.iter().map(|pod| finished_at(pod)).max();
        let mut failures: Vec<Timestamp> = failed.iter().map(|pod| finished_at(pod)).collect();
        failures.retain(|failure| success.is_none_or(|success| *failure > success));
        let before = if success.is_some() { Backoff::default() } else { self };
        Backoff {
            failures: before.failures + u32::try_from(failures.len()).unwrap_or(u32::MAX),
            last: failures.into_iter().max().or(before.last),
        }
    }

    /// How long it is to wait yet.
    pub(super) fn remaining(self, now: Timestamp) -> SignedDuration {
        self.last.map_or(SignedDuration::ZERO, |last| remaining(self.failures, last, now))
    }
}

/// How long an index is to wait yet whose last pod has failed.
pub(super) fn remaining_of_index(pod: &Pod, now: Timestamp) -> SignedDuration {
    let failures = terms::failures(pod) + terms::ignored_failures(pod) + 1;
    remaining(u32::try_from(failures).unwrap_or_default(), finished_at(pod), now)
}

fn remaining(failures: u32, last: Timestamp, now: Timestamp) -> SignedDuration {
    if failures == 0 {
        return SignedDuration::ZERO;
    }
    let doublings = (failures - 1).min(16);
    let pause = (PAUSE * (1 << doublings)).min(PAUSE_MAX);
    (pause - now.duration_since(last)).max(SignedDuration::ZERO)
}

/// When a pod ended, as well as can be told.
pub(super) fn finished_at(pod: &Pod) -> Timestamp {
    containers_finished_at(pod)
        .or_else(|| unready_since(pod))
        .or_else(|| told_to_end_at(pod))
        .or(pod.metadata.creation_timestamp.as_ref().map(|time| time.0))
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// When the last container ended; none if one has not.
fn containers_finished_at(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let inits = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars: Vec<&str> = inits
        .filter(|container| container.restart_policy.as_deref() == Some("Always"))
        .map(|container| container.name.as_str())
        .collect();
    let inits = status.init_container_statuses.iter().flatten();
    let sidecars = inits.filter(|container| sidecars.contains(&container.name.as_str()));
    let ended = |container: &ContainerStatus| {
        let ended = container.state.as_ref()?.terminated.as_ref()?;
        ended.finished_at.as_ref().map(|time| time.0)
    };
    let containers = status.container_statuses.iter().flatten().chain(sidecars);
    let ends: Option<Vec<Timestamp>> = containers.map(ended).collect();
    ends?.into_iter().max()
}

fn unready_since(pod: &Pod) -> Option<Timestamp> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready")?;
    let since = ready.last_transition_time.as_ref().filter(|_| ready.status == "False")?;
    Some(since.0)
}

fn told_to_end_at(pod: &Pod) -> Option<Timestamp> {
    let deadline = pod.metadata.deletion_timestamp.as_ref()?.0;
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
    deadline.checked_sub(SignedDuration::from_secs(grace)).ok()
}
