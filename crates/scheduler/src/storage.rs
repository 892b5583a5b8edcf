//! Claims, volumes and classes, and which of them are spoken for already.
//!
//! A claim that waits for its first pod is bound when the pod has a node. Until the watch shows
//! that, what was decided is kept here, so that the next pod is not promised the same volume.

mod volume;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};
use kubewright::ObjectKey;
use kubewright_apimachinery::quantity::Quantity;

pub(crate) use self::volume::{admits, requested};
use crate::node::Node;
use crate::pod::Pod;
use crate::selector;

pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

pub(crate) const REASON_NODE: &str = "node(s) didn't match PersistentVolume's node affinity";
pub(crate) const REASON_BIND: &str = "node(s) didn't find available persistent volumes to bind";
pub(crate) const REASON_SPACE: &str = "node(s) did not have enough free storage";
pub(crate) const REASON_NO_VOLUME: &str =
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

#[derive(Debug, Default)]
pub(crate) struct Storage {
    pub(crate) claims: HashMap<ObjectKey, Arc<PersistentVolumeClaim>>,
    pub(crate) volumes: BTreeMap<String, Arc<PersistentVolume>>,
    pub(crate) classes: HashMap<String, Arc<StorageClass>>,
    pub(crate) csi_nodes: HashMap<String, Arc<CSINode>>,
    pub(crate) drivers: HashMap<String, Arc<CSIDriver>>,
    pub(crate) capacities: HashMap<ObjectKey, Arc<CSIStorageCapacity>>,
    /// Volumes that are about to be bound, and to which claim.
    promised: HashMap<String, ObjectKey>,
    /// Claims whose volume is about to be made, and for which node.
    selected: HashMap<ObjectKey, Arc<str>>,
}

/// The claims of a pod.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claims {
    bound: Vec<Arc<PersistentVolumeClaim>>,
    waiting: Vec<Arc<PersistentVolumeClaim>>,
    /// Those that should have been bound without a pod.
    pub(crate) immediate: Vec<Arc<PersistentVolumeClaim>>,
}

/// What is to be done for a pod's claims once it has a node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) bind: Vec<(Arc<PersistentVolume>, Arc<PersistentVolumeClaim>)>,
    pub(crate) provision: Vec<Arc<PersistentVolumeClaim>>,
}

impl Storage {
    pub(crate) fn claim(&self, pod: &Pod, name: &str) -> Option<&Arc<PersistentVolumeClaim>> {
        self.claims.get(&ObjectKey::new(Some(pod.namespace()), name))
    }

    /// The claims of a pod, all of which are there.
    pub(crate) fn claims_of(&self, pod: &Pod) -> Result<Claims, String> {
        let mut claims = Claims::default();
        for claim in pod.claims.iter().filter_map(|claim| self.claim(pod, &claim.name)) {
            let has_volume = volume_name(claim).is_some();
            if is_bound(claim) {
                claims.bound.push(Arc::clone(claim));
            } else if self.waits_for_pod(claim)? && !has_volume {
                claims.waiting.push(Arc::clone(claim));
            } else {
                claims.immediate.push(Arc::clone(claim));
            }
        }
        // Small ones first: they must not take what a larger one needs.
        claims.waiting.sort_by_key(|claim| requested(claim));
        Ok(claims)
    }

    /// What a node would mean for a pod's claims.
    ///
    /// # Errors
    /// Why it will not do.
    pub(crate) fn plan(&self, claims: &Claims, node: &Node) -> Result<Plan, Vec<&'static str>> {
        for claim in &claims.bound {
            let volume = self.volumes.get(volume_name(claim).unwrap_or_default());
            let volume = volume.ok_or_else(|| vec![REASON_NO_VOLUME])?;
            if !admits(volume, node) {
                return Err(vec![REASON_NODE]);
            }
        }
        let mut plan = Plan::default();
        for claim in &claims.waiting {
            match self.selected_node(claim) {
                Some(selected) if *selected != *node.name => return Err(vec![REASON_BIND]),
                Some(_) => plan.provision.push(Arc::clone(claim)),
                None => match self.smallest(claim, node, &plan) {
                    Some(volume) => plan.bind.push((volume, Arc::clone(claim))),
                    None => plan.provision.push(Arc::clone(claim)),
                },
            }
        }
        for claim in &plan.provision {
            self.can_provision(claim, node).map_err(|reason| vec![reason])?;
        }
        Ok(plan)
    }

    /// Takes note of what will be done.
    pub(crate) fn promise(&mut self, plan: &Plan, node: &Arc<str>) {
        for (volume, claim) in &plan.bind {
            let name = volume.metadata.name.clone().unwrap_or_default();
            self.promised.insert(name, ObjectKey::of(&claim.metadata));
        }
        for claim in &plan.provision {
            self.selected.insert(ObjectKey::of(&claim.metadata), Arc::clone(node));
        }
    }

    /// It will not be done, or the watch has shown that it was.
    pub(crate) fn release(&mut self, plan: &Plan) {
        for (volume, _) in &plan.bind {
            self.promised.remove(volume.metadata.name.as_deref().unwrap_or_default());
        }
        for claim in &plan.provision {
            self.selected.remove(&ObjectKey::of(&claim.metadata));
        }
    }

    /// The class of a claim that has one.
    pub(crate) fn class_of(&self, claim: &PersistentVolumeClaim) -> Option<&Arc<StorageClass>> {
        self.classes.get(class_name(claim))
    }

    fn waits_for_pod(&self, claim: &PersistentVolumeClaim) -> Result<bool, String> {
        let name = class_name(claim);
        if name.is_empty() {
            return Ok(false);
        }
        let Some(class) = self.classes.get(name) else { return Ok(false) };
        match class.volume_binding_mode.as_deref() {
            Some(mode) => Ok(mode == "WaitForFirstConsumer"),
            None => Err(format!("VolumeBindingMode not set for StorageClass {name:?}")),
        }
    }

    fn selected_node<'a>(&'a self, claim: &'a PersistentVolumeClaim) -> Option<&'a str> {
        let promised = self.selected.get(&ObjectKey::of(&claim.metadata)).map(|node| &**node);
        let annotations = claim.metadata.annotations.as_ref();
        promised.or_else(|| annotations?.get(SELECTED_NODE).map(String::as_str))
    }

    /// The smallest volume that a claim could have on a node.
    fn smallest(
        &self,
        claim: &PersistentVolumeClaim,
        node: &Node,
        plan: &Plan,
    ) -> Option<Arc<PersistentVolume>> {
        let key = ObjectKey::of(&claim.metadata);
        let is_free = |volume: &&Arc<PersistentVolume>| {
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            self.promised.get(name).is_none_or(|other| *other == key)
                && !plan.bind.iter().any(|(chosen, _)| Arc::ptr_eq(chosen, volume))
        };
        let fitting = self
            .volumes
            .values()
            .filter(is_free)
            .filter(|it| volume::fits(it, claim, class_name(claim)) && admits(it, node));
        // One that was made for the claim comes before all others.
        let best = fitting.min_by_key(|it| (!volume::is_for(it, claim), volume::capacity(it)));
        best.cloned()
    }

    fn can_provision(
        &self,
        claim: &PersistentVolumeClaim,
        node: &Node,
    ) -> Result<(), &'static str> {
        let class = self.class_of(claim).ok_or(REASON_BIND)?;
        if class.provisioner.is_empty() || class.provisioner == NO_PROVISIONER {
            return Err(REASON_BIND);
        }
        let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
        let is_there = |term: &k8s_openapi::api::core::v1::TopologySelectorTerm| {
            term.match_label_expressions
                .iter()
                .flatten()
                .all(|it| node.labels().get(&it.key).is_some_and(|value| it.values.contains(value)))
        };
        if !topologies.is_empty() && !topologies.iter().any(is_there) {
            return Err(REASON_BIND);
        }
        match self.has_space(claim, class, node) {
            true => Ok(()),
            false => Err(REASON_SPACE),
        }
    }

    /// Whether a driver that tells where it has space has enough of it near a node.
    fn has_space(&self, claim: &PersistentVolumeClaim, class: &StorageClass, node: &Node) -> bool {
        let driver = self.drivers.get(&class.provisioner);
        if driver.is_none_or(|driver| driver.spec.storage_capacity != Some(true)) {
            return true;
        }
        let size = requested(claim);
        self.capacities.values().any(|it| {
            let limit = it.maximum_volume_size.as_ref().or(it.capacity.as_ref());
            let limit = limit.and_then(|limit| Quantity::parse(&limit.0).ok());
            Some(&it.storage_class_name) == class.metadata.name.as_ref()
                && limit.is_some_and(|limit| limit.value() >= size)
                && it.node_topology.is_some()
                && selector::labels(it.node_topology.as_ref())
                    .is_ok_and(|topology| topology.matches(node.labels()))
        })
    }
}

impl Plan {
    pub(crate) fn is_empty(&self) -> bool {
        self.bind.is_empty() && self.provision.is_empty()
    }
}

/// A claim is bound when the controller has said so, not when it has a volume's name.
pub(crate) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    let annotations = claim.metadata.annotations.as_ref();
    volume_name(claim).is_some()
        && annotations.is_some_and(|annotations| annotations.contains_key(BIND_COMPLETED))
}

pub(crate) fn volume_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    let name = claim.spec.as_ref()?.volume_name.as_deref();
    name.filter(|name| !name.is_empty())
}

pub(crate) fn class_name(claim: &PersistentVolumeClaim) -> &str {
    let annotated = claim.metadata.annotations.as_ref().and_then(|it| it.get(CLASS));
    let named = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
    annotated.or(named).map_or("", String::as_str)
}
