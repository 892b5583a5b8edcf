//! What to do about a volume.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use crate::part::text;
use crate::storage::{BOUND_BY_CONTROLLER, PROVISIONED_BY, matching};

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    Phase(&'static str),
    /// It was bound to a claim that is bound to another: let it be free again.
    Unbind,
    /// It names a claim that does not suit it.
    Mismatch,
    /// Nobody here can do with it what it says.
    Fail {
        reason: &'static str,
        why: String,
    },
}

/// Decides about a volume. `claim` is the one it names, if that is still there.
pub(super) fn plan(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> Step {
    let Some(reference) = matching::claim_of(volume) else { return phase_is(volume, "Available") };
    if text(&reference.uid).is_empty() {
        // Somebody keeps it for a claim that is to come.
        return phase_is(volume, "Available");
    }
    let Some(claim) = claim else { return release(volume) };
    let named =
        claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
    if named.is_empty() {
        // The claim is about to be bound to it.
        return match matching::have_one_mode(claim, volume) {
            true => Step::Nothing,
            false => Step::Mismatch,
        };
    }
    if named == text(&volume.metadata.name) {
        return phase_is(volume, "Bound");
    }
    let is_ours_to_delete = has(volume, PROVISIONED_BY) && policy(volume) == "Delete";
    match is_ours_to_delete {
        true => release(volume),
        false => Step::Unbind,
    }
}

/// What becomes of a volume whose claim is gone.
fn release(volume: &PersistentVolume) -> Step {
    if !matches!(phase(volume), "Released" | "Failed") {
        return Step::Phase("Released");
    }
    let name = text(&volume.metadata.name);
    match policy(volume) {
        // Whoever has provided it deletes it.
        "Delete" if has(volume, PROVISIONED_BY) || is_external(volume) => Step::Nothing,
        "Delete" => Step::Fail {
            reason: "VolumeFailedDelete",
            why: format!(
                "error getting deleter volume plugin for volume {name:?}: no deletable volume plugin matched"
            ),
        },
        "Recycle" => Step::Fail {
            reason: "VolumeFailedRecycle",
            why: "No recycler plugin found for the volume!".to_owned(),
        },
        _ => Step::Nothing,
    }
}

/// Lets a volume be free again; if a person has bound it, for the same claim.
pub(super) fn unbind(volume: &mut PersistentVolume) {
    let is_ours = has(volume, BOUND_BY_CONTROLLER);
    let spec = volume.spec.get_or_insert_default();
    if is_ours {
        spec.claim_ref = None;
        if let Some(annotations) = &mut volume.metadata.annotations {
            annotations.remove(BOUND_BY_CONTROLLER);
        }
    } else if let Some(claim) = &mut spec.claim_ref {
        claim.uid = None;
    }
    set_phase(volume, "Available", None);
}

pub(super) fn set_phase(volume: &mut PersistentVolume, phase: &str, message: Option<&str>) {
    let status = volume.status.get_or_insert_default();
    status.phase = Some(phase.to_owned());
    status.message = message.map(str::to_owned);
}

pub(super) fn phase(volume: &PersistentVolume) -> &str {
    volume.status.as_ref().map_or("", |status| text(&status.phase))
}

fn phase_is(volume: &PersistentVolume, wanted: &'static str) -> Step {
    if phase(volume) == wanted { Step::Nothing } else { Step::Phase(wanted) }
}

fn policy(volume: &PersistentVolume) -> &str {
    let spec = volume.spec.as_ref();
    spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref()).unwrap_or("Retain")
}

/// Whether a driver outside sees to the volume.
fn is_external(volume: &PersistentVolume) -> bool {
    volume.spec.as_ref().is_some_and(|spec| spec.csi.is_some() || spec.flex_volume.is_some())
}

fn has(volume: &PersistentVolume, annotation: &str) -> bool {
    volume.metadata.annotations.as_ref().is_some_and(|it| it.contains_key(annotation))
}
