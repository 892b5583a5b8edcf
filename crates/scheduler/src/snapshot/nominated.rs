//! Pods for which room is being made on a node: others of no higher priority must leave it to them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::pod::Pod;

#[derive(Debug, Default)]
pub(crate) struct Nominated {
    by_node: HashMap<Arc<str>, Vec<Arc<Pod>>>,
    /// By uid.
    nodes: HashMap<Arc<str>, Arc<str>>,
}

impl Nominated {
    /// Pods that are meant for a node.
    pub(crate) fn on(&self, node: &str) -> &[Arc<Pod>] {
        self.by_node.get(node).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(crate) fn node_of(&self, uid: &str) -> Option<&Arc<str>> {
        self.nodes.get(uid)
    }

    /// A pod is meant for a node now, and for no other.
    pub(crate) fn set(&mut self, pod: Arc<Pod>, node: Arc<str>) {
        self.remove(&pod.uid);
        self.nodes.insert(Arc::clone(&pod.uid), Arc::clone(&node));
        self.by_node.entry(node).or_default().push(pod);
    }

    pub(crate) fn remove(&mut self, uid: &str) {
        let Some(node) = self.nodes.remove(uid) else { return };
        if let Some(pods) = self.by_node.get_mut(&node) {
            pods.retain(|pod| *pod.uid != *uid);
            if pods.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }
}
