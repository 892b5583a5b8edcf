//! A node and the pods on it, with totals that are kept as pods come and go.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;

use crate::pod::{HostPort, Pod};
use crate::resources::{NonZero, PODS, Resources, amount};
use crate::selector::{Labels, NO_LABELS};

/// A node and what is on it, pods that are about to be there among them.
#[derive(Debug, Clone)]
pub struct Node {
    pub object: Arc<core::Node>,
    pub name: Arc<str>,
    pub allocatable: Resources,
    pub(crate) pods_max: i64,
    pub requested: Resources,
    pub(crate) non_zero: NonZero,
    pub pods: Vec<Arc<Pod>>,
    /// Those among them that care who is near, and those that bear not everybody near.
    pub(crate) with_affinity: Vec<Arc<Pod>>,
    pub(crate) with_anti_affinity: Vec<Arc<Pod>>,
    pub(crate) ports: Vec<HostPort>,
    /// Bytes by name.
    pub(crate) images: Arc<HashMap<String, i64>>,
}

impl Node {
    pub fn new(object: Arc<core::Node>) -> Self {
        let name = object.metadata.name.as_deref().unwrap_or_default().into();
        let mut node = Node {
            object,
            name,
            allocatable: Resources::default(),
            pods_max: 0,
            requested: Resources::default(),
            non_zero: NonZero::default(),
            pods: Vec::new(),
            with_affinity: Vec::new(),
            with_anti_affinity: Vec::new(),
            ports: Vec::new(),
            images: Arc::default(),
        };
        node.read();
        node
    }

    /// The same node, changed; its pods stay.
    pub(crate) fn update(&mut self, object: Arc<core::Node>) {
        self.object = object;
        self.read();
    }

    fn read(&mut self) {
        let status = self.object.status.as_ref();
        let allocatable = status.and_then(|status| status.allocatable.as_ref());
        self.allocatable = Resources::of(allocatable);
        let pods = allocatable.and_then(|allocatable| allocatable.get(PODS));
        self.pods_max = pods.map(|pods| amount(PODS, pods)).unwrap_or_default();
        let images = status.iter().flat_map(|status| status.images.iter().flatten());
        let images = images.flat_map(|image| {
            let names = image.names.iter().flatten();
            names.map(|name| (name.clone(), image.size_bytes.unwrap_or_default()))
        });
        self.images = Arc::new(images.collect());
    }

    pub fn labels(&self) -> &Labels {
        self.object.metadata.labels.as_ref().unwrap_or(&NO_LABELS)
    }

    pub(crate) fn taints(&self) -> &[core::Taint] {
        let spec = self.object.spec.as_ref();
        spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
    }

    pub(crate) fn is_unschedulable(&self) -> bool {
        self.object.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default()
    }

    /// Nodes of one zone share this.
    pub(crate) fn zone(&self) -> (&str, &str) {
        let label = |names: [&str; 2]| {
            let found = names.iter().find_map(|&name| self.labels().get(name));
            found.map_or("", String::as_str)
        };
        (
            label(["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"]),
            label(["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"]),
        )
    }

    pub(crate) fn add(&mut self, pod: Arc<Pod>) {
        self.requested.add(&pod.requests);
        self.non_zero.milli_cpu += pod.non_zero.milli_cpu;
        self.non_zero.memory += pod.non_zero.memory;
        self.ports.extend_from_slice(&pod.ports);
        if pod.has_affinity() {
            self.with_affinity.push(Arc::clone(&pod));
        }
        if !pod.anti_affinity.is_empty() {
            self.with_anti_affinity.push(Arc::clone(&pod));
        }
        self.pods.push(pod);
    }

    /// Takes a pod away, if it is here.
    pub(crate) fn remove(&mut self, uid: &str) -> Option<Arc<Pod>> {
        let pod = take(&mut self.pods, uid)?;
        self.requested.subtract(&pod.requests);
        self.non_zero.milli_cpu -= pod.non_zero.milli_cpu;
        self.non_zero.memory -= pod.non_zero.memory;
        for port in &pod.ports {
            if let Some(index) = self.ports.iter().position(|used| used == port) {
                self.ports.swap_remove(index);
            }
        }
        if pod.has_affinity() {
            take(&mut self.with_affinity, uid);
        }
        if !pod.anti_affinity.is_empty() {
            take(&mut self.with_anti_affinity, uid);
        }
        Some(pod)
    }
}

fn take(pods: &mut Vec<Arc<Pod>>, uid: &str) -> Option<Arc<Pod>> {
    let index = pods.iter().position(|pod| *pod.uid == *uid)?;
    Some(pods.swap_remove(index))
}
