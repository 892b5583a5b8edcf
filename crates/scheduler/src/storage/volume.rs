//! What a volume is good for.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kubewright::placement::NodeTerms;
use kubewright_apimachinery::selector::label::Selector;

use crate::node::Node;
use crate::resources::amount;
use crate::selector::{self, NO_LABELS};

const STORAGE: &str = "storage";
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Whether a volume can be used on a node.
pub(crate) fn admits(volume: &PersistentVolume, node: &Node) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.is_none_or(|required| NodeTerms::of(required).matches(&node.name, node.labels()))
}

/// How many bytes a claim asks for.
pub(crate) fn requested(claim: &PersistentVolumeClaim) -> i64 {
    let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    let size = resources.and_then(|it| it.requests.as_ref()).and_then(|it| it.get(STORAGE));
    size.map(|size| amount(STORAGE, size)).unwrap_or_default()
}

pub(super) fn capacity(volume: &PersistentVolume) -> i64 {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref());
    let size = capacity.and_then(|capacity| capacity.get(STORAGE));
    size.map(|size| amount(STORAGE, size)).unwrap_or_default()
}

/// Whether a volume was made for a claim, by name.
pub(super) fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else {
        return false;
    };
    reference.name == claim.metadata.name
        && reference.namespace == claim.metadata.namespace
        && reference.uid.as_ref().is_none_or(|uid| Some(uid) == claim.metadata.uid.as_ref())
}

/// Whether a claim could have a volume, wherever that is.
pub(super) fn fits(
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
    claim_class: &str,
) -> bool {
    let (Some(has), Some(wants)) = (&volume.spec, &claim.spec) else { return false };
    let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "Filesystem".to_owned());
    let same_mode = mode(&has.volume_mode) == mode(&wants.volume_mode);
    let is_large_enough = capacity(volume) >= requested(claim);
    if volume.metadata.deletion_timestamp.is_some() || !same_mode || !is_large_enough {
        return false;
    }
    if has.volume_attributes_class_name != wants.volume_attributes_class_name {
        return false;
    }
    if has.claim_ref.is_some() {
        return is_for(volume, claim);
    }
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let annotated = volume.metadata.annotations.as_ref().and_then(|it| it.get(CLASS));
    let class = annotated.or(has.storage_class_name.as_ref()).map_or("", String::as_str);
    let modes = has.access_modes.as_deref().unwrap_or_default();
    let selector =
        wants.selector.as_ref().map_or(Ok(Selector::EVERYTHING), |it| selector::labels(Some(it)));
    phase == Some("Available")
        && class == claim_class
        && wants.access_modes.iter().flatten().all(|mode| modes.contains(mode))
        && selector
            .is_ok_and(|it| it.matches(volume.metadata.labels.as_ref().unwrap_or(&NO_LABELS)))
}
