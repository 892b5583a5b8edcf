//! What there is to decide by: nodes, the pods on them, and what else pods refer to.
//!
//! It is kept up to date change by change, never built anew. Pods that were given a node count as
//! there from that moment: what the watch says later is no news.

mod nominated;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kubewright::ObjectKey;

use self::nominated::Nominated;
use crate::node::Node;
use crate::pod::Pod;
use crate::selector::{Labels, NO_LABELS};
use crate::storage::Storage;
use crate::workloads::Workloads;

/// All that decisions depend on.
#[derive(Debug, Default)]
pub struct Snapshot {
    nodes: Vec<Node>,
    by_name: HashMap<Arc<str>, usize>,
    /// Nodes in the order in which they are tried: one of each zone in turn.
    order: Vec<usize>,
    /// Where pods are, by uid.
    placed: HashMap<Arc<str>, Placed>,
    /// Pods of nodes that are not there.
    stranded: HashMap<Arc<str>, Vec<Arc<Pod>>>,
    /// How many nodes have an image.
    images: HashMap<String, usize>,
    /// How many pods use a claim.
    claims: HashMap<String, usize>,
    /// How many pods have requirements or wishes about others, and how many cannot bear others.
    with_affinity: usize,
    with_anti_affinity: usize,
    namespaces: HashMap<String, Labels>,
    pub(crate) nominated: Nominated,
    pub(crate) storage: Storage,
    pub(crate) workloads: Workloads,
    /// By namespace and name.
    pub(crate) budgets: HashMap<ObjectKey, Arc<PodDisruptionBudget>>,
}

#[derive(Debug)]
struct Placed {
    pod: Arc<Pod>,
    node: Arc<str>,
    /// The watch has not shown it there yet.
    is_assumed: bool,
}

impl Snapshot {
    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn node(&self, name: &str) -> Option<&Node> {
        self.by_name.get(name).map(|&index| &self.nodes[index])
    }

    /// All nodes, in no particular order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node that is `place`th to be tried.
    pub(crate) fn nth(&self, place: usize) -> &Node {
        &self.nodes[self.order[place]]
    }

    /// The labels of a namespace.
    pub fn namespace(&self, name: &str) -> &Labels {
        self.namespaces.get(name).unwrap_or(&NO_LABELS)
    }

    /// How many nodes have an image.
    pub(crate) fn nodes_with(&self, image: &str) -> usize {
        self.images.get(image).copied().unwrap_or_default()
    }

    /// Whether a pod that has a node uses a claim.
    pub(crate) fn is_used(&self, namespace: &str, claim: &str) -> bool {
        self.claims.contains_key(&claim_key(namespace, claim))
    }

    pub(crate) fn has_affinity(&self) -> bool {
        self.with_affinity > 0
    }

    pub(crate) fn has_anti_affinity(&self) -> bool {
        self.with_anti_affinity > 0
    }

    pub(crate) fn set_namespace(&mut self, namespace: &core::Namespace) {
        let name = namespace.metadata.name.clone().unwrap_or_default();
        self.namespaces.insert(name, namespace.metadata.labels.clone().unwrap_or_default());
    }

    pub(crate) fn remove_namespace(&mut self, name: &str) {
        self.namespaces.remove(name);
    }

    /// A node is there, or has changed.
    pub fn set_node(&mut self, object: Arc<core::Node>) {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        if let Some(&index) = self.by_name.get(name) {
            let old = Arc::clone(&self.nodes[index].images);
            self.count_images(&old, false);
            let node = &mut self.nodes[index];
            let was = (node.zone().0.to_owned(), node.zone().1.to_owned());
            node.update(object);
            let has_moved = node.zone() != (was.0.as_str(), was.1.as_str());
            let images = Arc::clone(&node.images);
            self.count_images(&images, true);
            if has_moved {
                self.order.clear();
            }
            return;
        }
        let mut node = Node::new(object);
        for pod in self.stranded.remove(&node.name).unwrap_or_default() {
            node.add(pod);
        }
        self.count_images(&Arc::clone(&node.images), true);
        self.by_name.insert(Arc::clone(&node.name), self.nodes.len());
        self.nodes.push(node);
        self.order.clear();
    }

    pub fn remove_node(&mut self, name: &str) {
        let Some(index) = self.by_name.remove(name) else { return };
        let node = self.nodes.remove(index);
        for place in self.by_name.values_mut().filter(|place| **place > index) {
            *place -= 1;
        }
        self.count_images(&node.images, false);
        if !node.pods.is_empty() {
            self.stranded.insert(node.name, node.pods);
        }
        self.order.clear();
    }

    /// A pod has a node, as the watch says.
    pub fn set_pod(&mut self, pod: Arc<Pod>) {
        let Some(node) = pod.node_name().map(Arc::from) else { return };
        self.place(pod, node, false);
    }

    /// A pod will have a node.
    pub(crate) fn assume(&mut self, pod: Arc<Pod>, node: &Arc<str>) {
        self.place(pod, Arc::clone(node), true);
    }

    /// A pod that was to have a node will not. Tells whether it was so.
    pub(crate) fn forget(&mut self, uid: &str) -> bool {
        self.is_assumed(uid) && self.remove_pod(uid).is_some()
    }

    pub(crate) fn is_assumed(&self, uid: &str) -> bool {
        self.placed.get(uid).is_some_and(|placed| placed.is_assumed)
    }

    /// A pod is gone from wherever it was.
    pub fn remove_pod(&mut self, uid: &str) -> Option<Arc<Pod>> {
        let placed = self.placed.remove(uid)?;
        self.with_affinity -= usize::from(placed.pod.has_affinity());
        self.with_anti_affinity -= usize::from(!placed.pod.anti_affinity.is_empty());
        for key in claim_keys(&placed.pod) {
            if let Some(users) = self.claims.get_mut(&key) {
                *users -= 1;
                if *users == 0 {
                    self.claims.remove(&key);
                }
            }
        }
        match self.by_name.get(&placed.node) {
            Some(&index) => drop(self.nodes[index].remove(uid)),
            None => {
                if let Some(pods) = self.stranded.get_mut(&placed.node) {
                    pods.retain(|pod| *pod.uid != *uid);
                }
            }
        }
        Some(placed.pod)
    }

    /// Brings nodes into the order in which they are tried, after some have come or gone.
    pub(crate) fn arrange(&mut self) {
        if self.order.len() == self.nodes.len() {
            return;
        }
        let mut zones: Vec<((&str, &str), Vec<usize>)> = Vec::new();
        let mut known: HashMap<(&str, &str), usize> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let zone = *known.entry(node.zone()).or_insert_with(|| {
                zones.push((node.zone(), Vec::new()));
                zones.len() - 1
            });
            zones[zone].1.push(index);
        }
        let rounds = zones.iter().map(|(_, nodes)| nodes.len()).max().unwrap_or_default();
        let turn = |round: usize| zones.iter().filter_map(move |(_, nodes)| nodes.get(round));
        self.order = (0..rounds).flat_map(turn).copied().collect();
    }

    fn place(&mut self, pod: Arc<Pod>, node: Arc<str>, is_assumed: bool) {
        self.remove_pod(&pod.uid);
        self.with_affinity += usize::from(pod.has_affinity());
        self.with_anti_affinity += usize::from(!pod.anti_affinity.is_empty());
        for key in claim_keys(&pod) {
            *self.claims.entry(key).or_default() += 1;
        }
        match self.by_name.get(&node) {
            Some(&index) => self.nodes[index].add(Arc::clone(&pod)),
            None => self.stranded.entry(Arc::clone(&node)).or_default().push(Arc::clone(&pod)),
        }
        self.placed.insert(Arc::clone(&pod.uid), Placed { pod, node, is_assumed });
    }

    fn count_images(&mut self, images: &HashMap<String, i64>, are_there: bool) {
        for name in images.keys() {
            let count = self.images.entry(name.clone()).or_default();
            match are_there {
                true => *count += 1,
                false => *count -= 1,
            }
            if *count == 0 {
                self.images.remove(name);
            }
        }
    }
}

fn claim_keys(pod: &Pod) -> impl Iterator<Item = String> {
    pod.claims.iter().map(|claim| claim_key(pod.namespace(), &claim.name))
}

fn claim_key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}
