//! How a volume for a claim looks, and which go.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec,
    VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ObjectMeta;

use crate::part::text;
use crate::storage::{BIND_COMPLETED, PROVISIONED_BY, PROVISIONER, SELECTED_NODE, matching};

pub(super) const NAME: &str = "kubewright.dev/local-path";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The class that claims get which ask for none: a directory on the node of the first pod.
pub fn standard_class() -> StorageClass {
    let is_default = ("storageclass.kubernetes.io/is-default-class".to_owned(), "true".to_owned());
    StorageClass {
        metadata: ObjectMeta {
            name: Some("standard".to_owned()),
            annotations: Some([is_default].into()),
            ..ObjectMeta::default()
        },
        provisioner: NAME.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("WaitForFirstConsumer".to_owned()),
        ..StorageClass::default()
    }
}

/// Whether a claim waits for a volume of ours.
pub(super) fn is_asked(claim: &PersistentVolumeClaim) -> bool {
    let annotation = |key: &str| claim.metadata.annotations.as_ref().and_then(|it| it.get(key));
    PROVISIONER.iter().any(|key| annotation(key).is_some_and(|by| by == NAME))
        && annotation(BIND_COMPLETED).is_none()
        && claim.spec.as_ref().is_none_or(|spec| text(&spec.volume_name).is_empty())
}

pub(super) fn class_name(claim: &PersistentVolumeClaim) -> &str {
    matching::requested_class(claim)
}

/// The node that the scheduler has chosen for the first pod, if it was asked.
pub(super) fn selected_node(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.metadata.annotations.as_ref()?.get(SELECTED_NODE).map(String::as_str)
}

/// One name for each claim there ever is, so that none gets two volumes.
pub(super) fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", text(&claim.metadata.uid))
}

/// The volume for a claim.
pub(super) fn volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&Node>,
    root: &Path,
) -> PersistentVolume {
    let wanted = claim.spec.clone().unwrap_or_default();
    let requests = wanted.resources.and_then(|resources| resources.requests).unwrap_or_default();
    let capacity = requests.into_iter().filter(|(name, _)| name == "storage").collect();
    let path = directory(claim, root).to_string_lossy().into_owned();
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(volume_name(claim)),
            annotations: Some([(PROVISIONED_BY.to_owned(), NAME.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: wanted.access_modes,
            capacity: Some(capacity),
            claim_ref: Some(ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("PersistentVolumeClaim".to_owned()),
                namespace: claim.metadata.namespace.clone(),
                name: claim.metadata.name.clone(),
                uid: claim.metadata.uid.clone(),
                resource_version: claim.metadata.resource_version.clone(),
                ..ObjectReference::default()
            }),
            host_path: Some(HostPathVolumeSource {
                path,
                type_: Some("DirectoryOrCreate".to_owned()),
            }),
            mount_options: class.mount_options.clone(),
            node_affinity: node.map(affinity),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
            storage_class_name: class.metadata.name.clone(),
            volume_mode: wanted.volume_mode,
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

/// The directory of a volume that nobody wants any more, if it is one of ours.
pub(super) fn released(volume: &PersistentVolume, root: &Path) -> Option<PathBuf> {
    let by = volume.metadata.annotations.as_ref()?.get(PROVISIONED_BY)?;
    let spec = volume.spec.as_ref()?;
    let is_released = volume.status.as_ref()?.phase.as_deref() == Some("Released")
        && spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete")
        && by == NAME;
    // A volume may say anything; only what is right below the root was made here.
    let directory = PathBuf::from(&spec.host_path.as_ref()?.path);
    let is_ours = directory.parent() == Some(root)
        && directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pvc-"));
    (is_released && is_ours).then_some(directory)
}

fn directory(claim: &PersistentVolumeClaim, root: &Path) -> PathBuf {
    let (namespace, name) = (text(&claim.metadata.namespace), text(&claim.metadata.name));
    root.join(format!("{}_{namespace}_{name}", volume_name(claim)))
}

fn affinity(node: &Node) -> VolumeNodeAffinity {
    let label = node.metadata.labels.as_ref().and_then(|labels| labels.get(HOSTNAME).cloned());
    let hostname = label.unwrap_or_else(|| text(&node.metadata.name).to_owned());
    let requirement = NodeSelectorRequirement {
        key: HOSTNAME.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![hostname]),
    };
    let term = NodeSelectorTerm { match_expressions: Some(vec![requirement]), match_fields: None };
    VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: vec![term] }) }
}
