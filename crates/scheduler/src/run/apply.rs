//! What was seen becomes what is known, and wakes the pods that it may help.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use kube::Resource;
use kubewright::ObjectKey;
use tokio::time::Instant;

use super::Loop;
use crate::change::Change;
use crate::feed::{Event, Seen};
use crate::plugin::Point;
use crate::pod::Pod;
use crate::profile::{PluginSet, Profile};
use crate::workloads::Owner;

impl Loop {
    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Node(seen) => self.node(seen),
            Event::Pod(Seen::Applied { object, old }) => self.pod(object, old),
            Event::Pod(Seen::Deleted(last)) => self.pod_gone(&Pod::new(last)),
            Event::Namespace(seen) => self.namespace(seen),
            Event::Service(Seen::Applied { object, .. }) => {
                self.snapshot.workloads.set_service(&object);
            }
            Event::Service(Seen::Deleted(last)) => {
                self.snapshot.workloads.remove_service(&ObjectKey::of(&last.metadata));
            }
            Event::Controller(Seen::Applied { object, .. }) => {
                self.snapshot.workloads.set_controller(&object);
            }
            Event::Controller(Seen::Deleted(last)) => {
                self.set_gone(Owner::ReplicationController, &*last);
            }
            Event::ReplicaSet(Seen::Applied { object, .. }) => {
                self.snapshot.workloads.set_replica_set(&object);
            }
            Event::ReplicaSet(Seen::Deleted(last)) => self.set_gone(Owner::ReplicaSet, &*last),
            Event::StatefulSet(Seen::Applied { object, .. }) => {
                self.snapshot.workloads.set_stateful_set(&object);
            }
            Event::StatefulSet(Seen::Deleted(last)) => self.set_gone(Owner::StatefulSet, &*last),
            Event::Budget(Seen::Applied { object, .. }) => {
                self.snapshot.budgets.insert(ObjectKey::of(&object.metadata), object);
            }
            Event::Budget(Seen::Deleted(last)) => {
                self.snapshot.budgets.remove(&ObjectKey::of(&last.metadata));
            }
            other => self.storage(other),
        }
    }

    fn storage(&mut self, event: Event) {
        let storage = &mut self.snapshot.storage;
        let name = |metadata: &kube::api::ObjectMeta| metadata.name.clone().unwrap_or_default();
        match event {
            Event::Claim(Seen::Applied { object, .. }) => {
                storage.claims.insert(ObjectKey::of(&object.metadata), object);
            }
            Event::Claim(Seen::Deleted(last)) => {
                storage.claims.remove(&ObjectKey::of(&last.metadata));
            }
            Event::Volume(Seen::Applied { object, .. }) => {
                storage.volumes.insert(name(&object.metadata), object);
            }
            Event::Volume(Seen::Deleted(last)) => {
                storage.volumes.remove(&name(&last.metadata));
            }
            Event::Class(Seen::Applied { object, .. }) => {
                storage.classes.insert(name(&object.metadata), object);
            }
            Event::Class(Seen::Deleted(last)) => {
                storage.classes.remove(&name(&last.metadata));
            }
            Event::CsiNode(Seen::Applied { object, .. }) => {
                storage.csi_nodes.insert(name(&object.metadata), object);
            }
            Event::CsiNode(Seen::Deleted(last)) => {
                storage.csi_nodes.remove(&name(&last.metadata));
            }
            Event::Driver(Seen::Applied { object, .. }) => {
                storage.drivers.insert(name(&object.metadata), object);
            }
            Event::Driver(Seen::Deleted(last)) => {
                storage.drivers.remove(&name(&last.metadata));
            }
            Event::Capacity(Seen::Applied { object, .. }) => {
                storage.capacities.insert(ObjectKey::of(&object.metadata), object);
            }
            Event::Capacity(Seen::Deleted(last)) => {
                storage.capacities.remove(&ObjectKey::of(&last.metadata));
            }
            _ => return,
        }
        self.wake(&Change::Storage);
    }

    fn set_gone<K: Resource>(&mut self, set: Owner, last: &K) {
        self.snapshot.workloads.remove_set(set, ObjectKey::of(last.meta()));
    }

    fn namespace(&mut self, seen: Seen<core::Namespace>) {
        match seen {
            Seen::Applied { object, old } => {
                self.snapshot.set_namespace(&object);
                if old.is_none_or(|old| old.metadata.labels != object.metadata.labels) {
                    self.wake(&Change::Namespace);
                }
            }
            Seen::Deleted(last) => {
                self.snapshot.remove_namespace(last.metadata.name.as_deref().unwrap_or_default());
            }
        }
    }

    fn node(&mut self, seen: Seen<core::Node>) {
        match seen {
            Seen::Applied { object, old } => {
                self.snapshot.set_node(Arc::clone(&object));
                match old {
                    None => self.wake(&Change::NodeAdded(object)),
                    Some(old) if matters(&old, &object) => {
                        self.wake(&Change::NodeUpdated { old, new: object });
                    }
                    // A heartbeat.
                    Some(_) => {}
                }
            }
            Seen::Deleted(last) => {
                self.snapshot.remove_node(last.metadata.name.as_deref().unwrap_or_default());
                self.wake(&Change::NodeDeleted);
            }
        }
    }

    fn pod(&mut self, object: Arc<core::Pod>, old: Option<Arc<core::Pod>>) {
        let pod = Arc::new(Pod::new(object));
        if pod.is_over() {
            return self.pod_gone(&pod);
        }
        match pod.node_name() {
            Some(_) => self.pod_assigned(pod, old),
            None => self.pod_pending(pod),
        }
    }

    fn pod_assigned(&mut self, pod: Arc<Pod>, old: Option<Arc<core::Pod>>) {
        self.dismiss(&pod);
        self.snapshot.nominated.remove(&pod.uid);
        let was_assumed = self.snapshot.is_assumed(&pod.uid);
        self.snapshot.set_pod(Arc::clone(&pod));
        let old = old.map(|old| Arc::new(Pod::new(old)));
        match old.filter(|old| old.node_name().is_some()) {
            Some(old) => self.wake(&Change::PodUpdated { old, new: pod }),
            None => {
                if was_assumed {
                    // What was reserved for it is seen in its own objects now.
                    self.settle(&pod);
                }
                self.wake(&Change::PodAssigned(pod));
            }
        }
    }

    fn pod_pending(&mut self, pod: Arc<Pod>) {
        let name = pod.scheduler_name();
        let profile = self.profiles.iter().position(|profile| *profile.name == *name);
        // It is another scheduler's, or on its way already.
        let Some(profile) = profile else { return };
        if self.snapshot.is_assumed(&pod.uid) {
            return;
        }
        match pod.nominated_node().map(Arc::from) {
            Some(node) => self.snapshot.nominated.set(Arc::clone(&pod), node),
            // What was only just decided is not seen yet.
            None if self.queue.get(&pod.uid).is_some_and(|old| old.nominated_node().is_none()) => {}
            None => self.snapshot.nominated.remove(&pod.uid),
        }
        let is_gated = gate(&self.profiles[profile], &pod).is_err();
        let now = Instant::now();
        match self.queue.get(&pod.uid).cloned() {
            None => self.queue.add(pod, profile, is_gated, now),
            Some(old) => {
                let has_changed = old.spec() != pod.spec() || old.labels() != pod.labels();
                let change = Change::SelfUpdated { old, new: Arc::clone(&pod) };
                let profile = &self.profiles[profile];
                let helps = |by| has_changed && may_help(profile, &pod, by, &change);
                self.queue.update(Arc::clone(&pod), is_gated, now, helps);
            }
        }
    }

    /// A pod needs no node any more.
    pub(super) fn dismiss(&mut self, pod: &Pod) {
        self.queue.remove(&pod.uid);
        self.order.forget(&pod.uid);
    }

    fn pod_gone(&mut self, pod: &Pod) {
        self.dismiss(pod);
        let was_nominated = self.snapshot.nominated.node_of(&pod.uid).is_some();
        self.snapshot.nominated.remove(&pod.uid);
        let was_placed = self.snapshot.remove_pod(&pod.uid);
        if let Some(gone) = was_placed {
            self.wake(&Change::PodDeleted(gone));
        } else if was_nominated {
            self.wake(&Change::PodDeleted(Arc::new(Pod::new(Arc::clone(&pod.object)))));
        }
    }

    /// Gives pods a turn that a change may help.
    pub(super) fn wake(&mut self, change: &Change) {
        let profiles = &self.profiles;
        self.queue.wake_those(Instant::now(), |pod, profile, rejected_by| {
            may_help(&profiles[profile], pod, rejected_by, change)
        });
    }
}

/// Why a pod may not even be tried yet.
pub(super) fn gate(profile: &Profile, pod: &Pod) -> Result<(), String> {
    profile.at_point(Point::PreEnqueue).try_for_each(|plugin| plugin.admit(pod))
}

fn may_help(profile: &Profile, pod: &Pod, rejected_by: PluginSet, change: &Change) -> bool {
    // Nobody knows what an extender waits for.
    rejected_by.contains(PluginSet::EXTENDERS)
        || rejected_by.is_empty()
        || profile.those(rejected_by).any(|plugin| plugin.helps(pod, change))
}

/// Whether a node changed in a way that scheduling depends on.
fn matters(old: &core::Node, new: &core::Node) -> bool {
    let spec = |node: &core::Node| {
        let spec = node.spec.as_ref();
        (spec.and_then(|it| it.taints.clone()), spec.and_then(|it| it.unschedulable))
    };
    let allocatable =
        |node: &core::Node| node.status.as_ref().and_then(|it| it.allocatable.clone());
    old.metadata.labels != new.metadata.labels
        || old.metadata.annotations != new.metadata.annotations
        || spec(old) != spec(new)
        || allocatable(old) != allocatable(new)
}
