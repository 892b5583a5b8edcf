//! What to do about a claim.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kubewright::Event;

use crate::part::text;
use crate::storage::matching;
use crate::storage::{BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE};

const DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// What to do.
#[derive(Debug, PartialEq)]
pub(super) enum Step<'a> {
    Bind(&'a PersistentVolume),
    Wait(Option<Event>),
    /// Its volume is gone, or somebody else's.
    Lose(Event),
    /// Give it this class, since it asks for none in particular.
    Class(String),
    /// Have a volume provided.
    Ask {
        provisioner: String,
        event: Event,
    },
}

/// Decides about a claim. `pods` are those beside it.
pub(super) fn plan<'a>(
    claim: &PersistentVolumeClaim,
    volumes: &[&'a PersistentVolume],
    classes: &[&StorageClass],
    pods: &[&Pod],
) -> Step<'a> {
    let named = claim.spec.as_ref().map_or("", |spec| text(&spec.volume_name));
    let volume = volumes.iter().copied().find(|volume| text(&volume.metadata.name) == named);
    if has(claim, BIND_COMPLETED) {
        let lost = |note: &str| Step::Lose(Event::warning("ClaimLost", note));
        return match (named, volume) {
            ("", _) => lost(
                "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
            ),
            (_, None) => {
                lost("Bound claim has lost its PersistentVolume. Data on the volume is lost!")
            }
            (_, Some(volume)) => match matching::claim_of(volume) {
                Some(other) if other.uid != claim.metadata.uid => Step::Lose(Event::warning(
                    "ClaimMisbound",
                    "Two claims are bound to the same volume, this one is bound incorrectly",
                )),
                _ => Step::Bind(volume),
            },
        };
    }
    match (named, volume) {
        ("", _) => find(claim, volumes, classes, pods),
        (_, None) => Step::Wait(None),
        (_, Some(volume)) if matching::claim_of(volume).is_none() => {
            match matching::mismatch(volume, claim) {
                None => Step::Bind(volume),
                Some(why) => {
                    let note = format!("Cannot bind to requested volume {named:?}: {why}");
                    Step::Wait(Some(Event::warning("VolumeMismatch", note)))
                }
            }
        }
        (_, Some(volume)) if matching::is_claimed_by(volume, claim) => Step::Bind(volume),
        (_, Some(_)) => {
            let note = format!("volume {named:?} already bound to a different claim.");
            Step::Wait(Some(Event::warning("FailedBinding", note)))
        }
    }
}

fn find<'a>(
    claim: &PersistentVolumeClaim,
    volumes: &[&'a PersistentVolume],
    classes: &[&StorageClass],
    pods: &[&Pod],
) -> Step<'a> {
    let wanted = matching::requested_class(claim);
    let class = classes.iter().find(|class| text(&class.metadata.name) == wanted);
    let is_delayed = class
        .is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"));
    if let Some(volume) = matching::find(claim, volumes, is_delayed) {
        return Step::Bind(volume);
    }
    if !matching::has_class(claim)
        && let Some(default) = default_class(classes)
    {
        return Step::Class(text(&default.metadata.name).to_owned());
    }
    if is_delayed && !has(claim, SELECTED_NODE) {
        return Step::Wait(Some(waiting(claim, pods)));
    }
    let failed = |note: String| Step::Wait(Some(Event::warning("ProvisioningFailed", note)));
    match (wanted, class) {
        ("", _) => {
            let note = "no persistent volumes available for this claim and no storage class is set";
            Step::Wait(Some(Event::normal("FailedBinding", note)))
        }
        (name, None) => failed(format!("storageclass.storage.k8s.io {name:?} not found")),
        (_, Some(class)) if class.provisioner.starts_with("kubernetes.io/") => {
            failed(format!("no volume plugin matched name: {}", class.provisioner))
        }
        (_, Some(class)) => {
            let provisioner = class.provisioner.clone();
            let note = format!(
                "Waiting for a volume to be created either by the external provisioner \
                 '{provisioner}' or manually by the system administrator. If volume creation is \
                 delayed, please verify that the provisioner is running and correctly registered."
            );
            Step::Ask { provisioner, event: Event::normal("ExternalProvisioning", note) }
        }
    }
}

/// For whom a claim waits that is bound where its first pod will be.
fn waiting(claim: &PersistentVolumeClaim, pods: &[&Pod]) -> Event {
    let uses = |pod: &&&Pod| {
        let Some(spec) = &pod.spec else { return false };
        let name = claim.metadata.name.as_ref();
        text(&spec.node_name).is_empty()
            && spec.volumes.iter().flatten().any(|volume| {
                let source = volume.persistent_volume_claim.as_ref();
                source.is_some_and(|source| Some(&source.claim_name) == name)
            })
    };
    let names: Vec<&str> = pods.iter().filter(uses).map(|pod| text(&pod.metadata.name)).collect();
    let scheduled = |note: String| Event::normal("WaitForPodScheduled", note);
    match names.as_slice() {
        [] => Event::normal(
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding",
        ),
        [name] => scheduled(format!("waiting for pod {name} to be scheduled")),
        names => scheduled(format!("waiting for pods {} to be scheduled", names.join(","))),
    }
}

/// The class of claims that ask for none: of several, the newest.
fn default_class<'a>(classes: &[&'a StorageClass]) -> Option<&'a StorageClass> {
    let is_default = |class: &&&StorageClass| {
        let annotations = class.metadata.annotations.as_ref();
        DEFAULT
            .iter()
            .any(|key| annotations.and_then(|it| it.get(*key)).is_some_and(|it| it == "true"))
    };
    let newest = |class: &&&StorageClass| {
        let created = class.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (created, std::cmp::Reverse(class.metadata.name.clone()))
    };
    classes.iter().filter(is_default).max_by_key(newest).copied()
}

/// Has a volume name a claim; tells whether it did not before.
pub(super) fn claim_volume(volume: &mut PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let is_ours = matching::is_claimed_by(volume, claim);
    let known = matching::claim_of(volume);
    if is_ours && known.is_some_and(|known| known.uid == claim.metadata.uid) {
        return false;
    }
    volume.spec.get_or_insert_default().claim_ref = Some(ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        ..ObjectReference::default()
    });
    if !is_ours {
        let annotations = volume.metadata.annotations.get_or_insert_default();
        annotations.insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    true
}

/// Has a claim name the volume that names it.
pub(super) fn bind_claim(claim: &mut PersistentVolumeClaim, volume: &PersistentVolume) {
    let annotations = claim.metadata.annotations.get_or_insert_default();
    annotations.insert(BIND_COMPLETED.to_owned(), "yes".to_owned());
    let spec = claim.spec.get_or_insert_default();
    if spec.volume_name != volume.metadata.name {
        spec.volume_name.clone_from(&volume.metadata.name);
        annotations.insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    let offered = volume.spec.clone().unwrap_or_default();
    let was_bound = phase(claim) == "Bound";
    let status = claim.status.get_or_insert_default();
    status.access_modes = offered.access_modes;
    if !was_bound {
        status.capacity = offered.capacity;
        status.current_volume_attributes_class_name = offered.volume_attributes_class_name;
        status.phase = Some("Bound".to_owned());
    }
}

/// Says of a claim without a volume how it is with it.
pub(super) fn set_phase(claim: &mut PersistentVolumeClaim, phase: &str) {
    let status = claim.status.get_or_insert_default();
    status.phase = Some(phase.to_owned());
    status.access_modes = None;
    status.capacity = None;
    status.current_volume_attributes_class_name = None;
}

pub(super) fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().map_or("", |status| text(&status.phase))
}

pub(super) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    has(claim, BIND_COMPLETED)
}

fn has(claim: &PersistentVolumeClaim, annotation: &str) -> bool {
    claim.metadata.annotations.as_ref().is_some_and(|it| it.contains_key(annotation))
}
