//! What happened in the cluster that may help a pod which fitted nowhere.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;

use crate::pod::Pod;

/// Something that changed.
#[derive(Debug, Clone)]
pub enum Change {
    NodeAdded(Arc<core::Node>),
    NodeUpdated {
        old: Arc<core::Node>,
        new: Arc<core::Node>,
    },
    NodeDeleted,
    /// A pod has a node now.
    PodAssigned(Arc<Pod>),
    /// A pod that has a node changed.
    PodUpdated {
        old: Arc<Pod>,
        new: Arc<Pod>,
    },
    /// A pod is gone from its node, or from where room was made for it.
    PodDeleted(Arc<Pod>),
    /// The pod itself, which waits for a node, changed.
    SelfUpdated {
        old: Arc<Pod>,
        new: Arc<Pod>,
    },
    /// Claims, volumes, classes, and what is known of storage.
    Storage,
    /// Labels of namespaces, by which pods choose their neighbours.
    Namespace,
}
