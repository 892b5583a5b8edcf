//! Which volume suits a claim.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Wire;
use kube::api::ObjectMeta;
use kube::core::{Selector, SelectorExt as _};
use kubewright_apimachinery::quantity::Quantity;

use super::OLD_CLASS;
use crate::part::text;

/// The best of the volumes for a claim: the one that names it, or else one with no more access modes
/// and no more room than need be. `is_delayed` claims wait for the scheduler's choice.
pub(super) fn find<'a>(
    claim: &PersistentVolumeClaim,
    volumes: &[&'a PersistentVolume],
    is_delayed: bool,
) -> Option<&'a PersistentVolume> {
    let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.clone()).unwrap_or_default();
    let suits = |volume: &&PersistentVolume| {
        let offered = self::modes(volume);
        modes.iter().all(|mode| offered.contains(mode))
            && capacity(volume) >= requested(claim)
            && have_one_mode(claim, volume)
            && attributes_class(claim)
                == volume
                    .spec
                    .as_ref()
                    .and_then(|it| it.volume_attributes_class_name.as_deref())
                    .unwrap_or_default()
            && volume.metadata.deletion_timestamp.is_none()
            && (claim_of(volume).is_none() || is_claimed_by(volume, claim))
    };
    let suited: Vec<&PersistentVolume> = volumes.iter().copied().filter(suits).collect();
    if let Some(named) = suited.iter().find(|volume| is_claimed_by(volume, claim)) {
        return Some(named);
    }
    let is_free = |volume: &&&PersistentVolume| {
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        phase == Some("Available")
            && class(volume) == requested_class(claim)
            && selects(claim, volume)
    };
    let free = suited.iter().filter(is_free).filter(|_| !is_delayed);
    free.min_by_key(|volume| (self::modes(volume).len(), capacity(volume))).copied()
}

/// Why a volume that a claim names does not suit it, if it does not.
pub(super) fn mismatch(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<String> {
    if volume.metadata.deletion_timestamp.is_some() {
        return Some(format!(
            "the volume is marked for deletion {:?}",
            text(&volume.metadata.name)
        ));
    }
    if capacity(volume).map(|it| it.value()) < requested(claim).map(|it| it.value()) {
        return Some("requested PV is too small".to_owned());
    }
    if class(volume) != requested_class(claim) {
        return Some("storageClassName does not match".to_owned());
    }
    let offered = volume.spec.as_ref().and_then(|it| it.volume_attributes_class_name.as_deref());
    if offered.unwrap_or_default() != attributes_class(claim) {
        return Some("volumeAttributesClassName does not match".to_owned());
    }
    if !have_one_mode(claim, volume) {
        return Some("incompatible volumeMode".to_owned());
    }
    let wanted = claim.spec.as_ref().and_then(|spec| spec.access_modes.clone()).unwrap_or_default();
    let offered = modes(volume);
    (!wanted.iter().all(|mode| offered.contains(mode)))
        .then(|| "incompatible accessMode".to_owned())
}

/// Whether a volume is for this very claim.
pub(super) fn is_claimed_by(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    claim_of(volume).is_some_and(|reference| {
        reference.name == claim.metadata.name
            && reference.namespace == claim.metadata.namespace
            && (text(&reference.uid).is_empty() || reference.uid == claim.metadata.uid)
    })
}

/// The claim that a volume is for.
pub(super) fn claim_of(
    volume: &PersistentVolume,
) -> Option<&k8s_openapi::api::core::v1::ObjectReference> {
    volume.spec.as_ref()?.claim_ref.as_ref()
}

/// The storage class that a claim asks for; empty if for none.
pub(super) fn requested_class(claim: &PersistentVolumeClaim) -> &str {
    let named = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
    old_class(&claim.metadata).or(named).unwrap_or_default()
}

/// Whether a claim says anything about its class.
pub(super) fn has_class(claim: &PersistentVolumeClaim) -> bool {
    let named = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
    old_class(&claim.metadata).is_some() || named.is_some()
}

pub(super) fn have_one_mode(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let wanted = claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref());
    let offered = volume.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref());
    wanted.unwrap_or("Filesystem") == offered.unwrap_or("Filesystem")
}

fn class(volume: &PersistentVolume) -> &str {
    let named = volume.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
    old_class(&volume.metadata).or(named).unwrap_or_default()
}

fn old_class(metadata: &ObjectMeta) -> Option<&str> {
    metadata.annotations.as_ref()?.get(OLD_CLASS).map(String::as_str)
}

fn attributes_class(claim: &PersistentVolumeClaim) -> &str {
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    named.unwrap_or_default()
}

fn selects(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let Some(selector) = claim.spec.as_ref().and_then(|spec| spec.selector.clone()) else {
        return true;
    };
    let none = BTreeMap::new();
    let labels = volume.metadata.labels.as_ref().unwrap_or(&none);
    Selector::try_from(selector).is_ok_and(|selector| selector.matches(labels))
}

fn modes(volume: &PersistentVolume) -> &[String] {
    volume.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default()
}

fn capacity(volume: &PersistentVolume) -> Option<Quantity> {
    storage(volume.spec.as_ref()?.capacity.as_ref())
}

fn requested(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    storage(claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref())
}

fn storage(amounts: Option<&BTreeMap<String, Wire>>) -> Option<Quantity> {
    Quantity::parse(&amounts?.get("storage")?.0).ok()
}
