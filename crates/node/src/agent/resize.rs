//! Resizes of pods: room for them is looked for when one is asked for, and whenever there may be
//! more.

use std::sync::Arc;
use std::time::Duration;

use kubewright::ObjectKey;

use super::{Dispatch, Entry};
use crate::pod::admit::{Needs, Verdict};
use crate::pod::reference;
use crate::pod::resize::{Allocation, Pending, Standing, Turn, deferred, generation, started};
use crate::pod::worker::Seen;

/// When resizes are tried again that nothing has made room for, as far as is known: what the node
/// has, and whom it takes, may have changed.
pub(super) const RETRY: Duration = Duration::from_secs(180);

impl Dispatch {
    /// A pod of ours has changed, or what it is allocated was recalled.
    pub(super) fn consider(&mut self, key: &ObjectKey) {
        let Some(entry) = self.pods.get_mut(key) else { return };
        let node = entry.node.clone();
        let Some(home) = self.nodes.get_mut(&node) else { return };
        if entry.allocation.is_wanted(&entry.pod) {
            // It may have been taken back.
            home.resizing.remove(key);
            entry.standing.pending = None;
            return;
        }
        home.resizing.insert(key.clone());
        self.retry(&node);
    }

    /// Tries all resizes of a node that are pending, the most urgent first.
    pub(super) fn retry(&mut self, node: &str) {
        if !self.is_complete {
            return;
        }
        let Some(home) = self.nodes.get(node) else { return };
        let waiting = home.resizing.iter().filter_map(|key| {
            let entry = self.pods.get(key)?;
            Some((Turn::of(&entry.pod, &entry.allocation, &entry.standing), key.clone()))
        });
        let mut waiting: Vec<(Turn, ObjectKey)> = waiting.collect();
        waiting.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (_, key) in waiting {
            self.resize(&key);
        }
    }

    pub(super) fn retry_all(&mut self) {
        let nodes: Vec<String> = self.nodes.keys().cloned().collect();
        for node in nodes {
            self.retry(&node);
        }
    }

    pub(super) fn has_pending(&self) -> bool {
        self.nodes.values().any(|home| !home.resizing.is_empty())
    }

    /// Allocates what a pod wants, if there is room for it.
    fn resize(&mut self, key: &ObjectKey) {
        let Some(entry) = self.pods.get(key) else { return };
        let Some(home) = self.nodes.get(&entry.node) else { return };
        let pod = Arc::clone(&entry.pod);
        let verdict = self.judge(home, &pod, &Needs::of(&pod), |other| other != key);
        let (now, recorder) = (self.clock.now(), home.around.recorder.clone());
        let Some(entry) = self.pods.get_mut(key) else { return };
        match verdict {
            Verdict::Admitted => {
                entry.allocation = Allocation::wanted(&pod);
                entry.standing = Standing { allocated: Some(generation(&pod)), pending: None };
                entry.count();
                if let Some(home) = self.nodes.get_mut(&entry.node) {
                    home.resizing.remove(key);
                }
                recorder.record(&reference(&pod), started(&pod));
            }
            Verdict::Refused(why) | Verdict::Doubted(why) => {
                let before = entry.standing.pending.take();
                let pending = Pending::deferred(&why, generation(&pod), before.as_ref(), now);
                if pending.is_news(before.as_ref()) {
                    recorder.record(&reference(&pod), deferred(&pod, &why));
                }
                entry.standing.pending = Some(pending);
            }
        }
        entry.tell();
    }
}

impl Entry {
    /// Counts anew what the pod takes.
    pub(super) fn count(&mut self) {
        self.is_settled = self.allocation.is_given(self.pod.status.as_ref());
        self.needs = Needs::held(&self.allocated());
    }

    pub(super) fn tell(&self) {
        let (pod, standing) = (self.allocated(), self.standing.clone());
        let seen = Seen { pod, standing, is_gone: false };
        self.tell.send_replace(seen);
    }

    /// The pod, with the resources that are allocated to it.
    pub(super) fn allocated(&self) -> Arc<k8s_openapi::api::core::v1::Pod> {
        match self.allocation.is_wanted(&self.pod) {
            true => Arc::clone(&self.pod),
            false => Arc::new(self.allocation.applied(&self.pod)),
        }
    }
}
