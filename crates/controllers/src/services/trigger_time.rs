//! Since when a change of a Service's members waits to be written.
//!
//! Programs that measure how long changes take to reach a node read it. It is the earliest change
//! that was not known the last time; for a Service that was not known at all, when it was made.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};
use kubewright::ObjectKey;

use crate::part::text;

/// What was known of each Service the last time.
#[derive(Debug, Default)]
pub(super) struct TriggerTimes(HashMap<ObjectKey, Seen>);

#[derive(Debug, Default)]
struct Seen {
    service: Option<Timestamp>,
    /// When each pod became ready or ceased to be.
    pods: HashMap<String, Timestamp>,
}

impl TriggerTimes {
    /// Takes note of a Service and its pods; gives the time of what is new about them.
    pub(super) fn note<'a>(
        &mut self,
        service: &Service,
        pods: impl IntoIterator<Item = &'a Pod>,
    ) -> Option<Timestamp> {
        let made = service.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let pods = pods.into_iter().filter_map(|pod| {
            let since = ready_since(pod)?;
            Some((text(&pod.metadata.name).to_owned(), since))
        });
        let seen = Seen { service: made, pods: pods.collect() };
        let key = ObjectKey::of(&service.metadata);
        let Some(known) = self.0.get(&key) else {
            self.0.insert(key, seen);
            return made;
        };
        let of_pods = seen
            .pods
            .iter()
            .filter(|(name, since)| known.pods.get(*name).is_none_or(|known| known < *since));
        let of_service = seen.service.filter(|made| known.service.is_none_or(|it| it < *made));
        let earliest = of_pods.map(|(_, since)| *since).chain(of_service).min();
        self.0.insert(key, seen);
        earliest
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }
}

fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}
