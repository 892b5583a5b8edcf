//! Which pods belong together: those of a Service, and of the set that made them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ReplicationController, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright::ObjectKey;
use kubewright_apimachinery::selector::label::Selector;

use crate::pod::Pod;
use crate::selector::{self, Labels};

/// The selectors of what pods belong to.
#[derive(Debug, Default)]
pub(crate) struct Workloads {
    /// By namespace and name.
    services: HashMap<String, BTreeMap<String, Selecting>>,
    sets: HashMap<(Owner, ObjectKey), Selector>,
}

/// What owns pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    ReplicationController,
    ReplicaSet,
    StatefulSet,
}

#[derive(Debug)]
struct Selecting {
    selector: Selector,
    labels: Labels,
}

impl Workloads {
    /// What all pods have that belong together with this one. Everything, if it belongs to nothing.
    pub(crate) fn selector_of(&self, pod: &Pod) -> Selector {
        let mut labels = Labels::new();
        for service in self.services.get(pod.namespace()).into_iter().flat_map(BTreeMap::values) {
            if service.selector.matches(pod.labels()) {
                labels.extend(service.labels.clone());
            }
        }
        let by_services = Selector::from_labels(labels);
        match self.owner_of(pod) {
            Some(by_owner) => selector::both(by_services, by_owner.clone()),
            None => by_services,
        }
    }

    fn owner_of(&self, pod: &Pod) -> Option<&Selector> {
        let owners = pod.object.metadata.owner_references.iter().flatten();
        let owner = owners.into_iter().find(|owner| owner.controller == Some(true))?;
        let set = match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("v1", "ReplicationController") => Owner::ReplicationController,
            ("apps/v1", "ReplicaSet") => Owner::ReplicaSet,
            ("apps/v1", "StatefulSet") => Owner::StatefulSet,
            _ => return None,
        };
        self.sets.get(&(set, ObjectKey::new(Some(pod.namespace()), &owner.name)))
    }

    pub(crate) fn set_service(&mut self, service: &Arc<Service>) {
        let labels = service.spec.as_ref().and_then(|spec| spec.selector.clone());
        let key = ObjectKey::of(&service.metadata);
        let Some(labels) = labels else { return self.remove_service(&key) };
        let selector = Selector::from_labels(labels.clone());
        let namespace = key.namespace().unwrap_or_default().to_owned();
        let services = self.services.entry(namespace).or_default();
        services.insert(key.name().to_owned(), Selecting { selector, labels });
    }

    pub(crate) fn remove_service(&mut self, key: &ObjectKey) {
        let namespace = key.namespace().unwrap_or_default();
        if let Some(services) = self.services.get_mut(namespace) {
            services.remove(key.name());
            if services.is_empty() {
                self.services.remove(namespace);
            }
        }
    }

    pub(crate) fn set_controller(&mut self, controller: &ReplicationController) {
        let labels = controller.spec.as_ref().and_then(|spec| spec.selector.clone());
        let key = ObjectKey::of(&controller.metadata);
        let selector = Selector::from_labels(labels.unwrap_or_default());
        self.sets.insert((Owner::ReplicationController, key), selector);
    }

    pub(crate) fn set_replica_set(&mut self, set: &ReplicaSet) {
        let selector = set.spec.as_ref().map(|spec| &spec.selector);
        self.set_set(Owner::ReplicaSet, ObjectKey::of(&set.metadata), selector);
    }

    pub(crate) fn set_stateful_set(&mut self, set: &StatefulSet) {
        let selector = set.spec.as_ref().map(|spec| &spec.selector);
        self.set_set(Owner::StatefulSet, ObjectKey::of(&set.metadata), selector);
    }

    pub(crate) fn remove_set(&mut self, set: Owner, key: ObjectKey) {
        self.sets.remove(&(set, key));
    }

    fn set_set(&mut self, set: Owner, key: ObjectKey, selector: Option<&LabelSelector>) {
        // What is no selector adds nothing to what Services say.
        if let Ok(selector) = selector::labels(selector) {
            self.sets.insert((set, key), selector);
        }
    }
}
