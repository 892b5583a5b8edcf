//! How long a node waits before a pod that has failed there is replaced: longer each time, so that a
//! pod that cannot run does not keep the cluster busy.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;

const FIRST: Duration = Duration::from_secs(1);
const MAX: Duration = Duration::from_secs(15 * 60);

/// The failures of pods, by DaemonSet and node.
#[derive(Debug, Default)]
pub(super) struct Backoffs(HashMap<(String, String), (Duration, Timestamp)>);

/// A DaemonSet as it is now: with another spec, it begins anew.
pub(super) fn subject(set: &DaemonSet) -> String {
    let uid = set.metadata.uid.as_deref().unwrap_or_default();
    let observed = set.status.as_ref().and_then(|status| status.observed_generation);
    format!("{uid}/{}", observed.unwrap_or_default())
}

impl Backoffs {
    /// How long the node has to wait.
    pub(super) fn remaining(&self, subject: &str, node: &str, now: Timestamp) -> Option<Duration> {
        let (delay, since) = self.0.get(&(subject.to_owned(), node.to_owned()))?;
        let waited = Duration::try_from(now.duration_since(*since)).unwrap_or_default();
        delay.checked_sub(waited).filter(|left| !left.is_zero())
    }

    /// A pod that has failed there is replaced now.
    pub(super) fn note(&mut self, subject: &str, node: &str, now: Timestamp) {
        let is_recent = |since: Timestamp| {
            Duration::try_from(now.duration_since(since)).is_ok_and(|age| age <= 2 * MAX)
        };
        self.0.retain(|_, (_, since)| is_recent(*since));
        let known = self.0.entry((subject.to_owned(), node.to_owned()));
        let (delay, since) = known.or_insert((Duration::ZERO, now));
        *delay = (*delay * 2).clamp(FIRST, MAX);
        *since = now;
    }
}
