//! What a claim leads to on this machine, if it is a pod's to use. Pure, in the words of upstream's
//! kubelet.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};

/// Who has made a volume notes it there.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Provides directories of this machine, and leaves it to whoever mounts them to make them.
const LOCAL_PATH: &str = "kubewright.dev/local-path";
/// Keeps claims that pods use.
const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// The mode of volumes that hold files.
const FILES: &str = "Filesystem";

/// A place of this machine that is a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Backing {
    /// Whatever is at a path, if it is of this type.
    Host { path: String, type_: String },
    /// A directory for whoever claims it, which is made if it is not there.
    Provided { path: String },
    /// A disk that somebody has put there, which a pod's group is given.
    Local { path: String },
}

/// The name of the volume that a claim of a pod is bound to. `is_own` says that it was made for
/// the pod.
///
/// # Errors
/// Why it is none that the pod may use.
pub(crate) fn bound<'a>(
    pod: &Pod,
    claim: &'a PersistentVolumeClaim,
    is_own: bool,
) -> Result<&'a str, String> {
    let refused = |why: &str| Err(unprocessed(pod, name(claim.metadata.name.as_deref()), why));
    let finalizers = claim.metadata.finalizers.as_deref().unwrap_or_default();
    if claim.metadata.deletion_timestamp.is_some() && !finalizers.iter().any(|it| it == PROTECTION)
    {
        return refused("PVC is being deleted");
    }
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase != Some("Bound") {
        return refused("PVC is not bound");
    }
    let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
    let Some(volume) = volume.filter(|volume| !volume.is_empty()) else {
        return refused("PVC has empty pvc.Spec.VolumeName");
    };
    let owners = claim.metadata.owner_references.as_deref().unwrap_or_default();
    let mut owners = owners.iter().filter(|owner| owner.controller == Some(true));
    if is_own && !owners.any(|owner| Some(&owner.uid) == pod.metadata.uid.as_ref()) {
        let namespace = name(pod.metadata.namespace.as_deref());
        return Err(format!(
            "PVC {namespace}/{} was not created for pod {namespace}/{} (pod is not owner)",
            name(claim.metadata.name.as_deref()),
            name(pod.metadata.name.as_deref()),
        ));
    }
    Ok(volume)
}

/// Where a volume is, if it is bound to the claim. `as_` is what the pod calls it.
///
/// # Errors
/// Why it cannot be used.
pub(crate) fn backing(
    pod: &Pod,
    as_: &str,
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
) -> Result<Backing, String> {
    let claim_name = name(claim.metadata.name.as_deref());
    let volume_name = name(volume.metadata.name.as_deref());
    let spec = volume.spec.clone().unwrap_or_default();
    let Some(of) = &spec.claim_ref else {
        let why = format!(
            "found PV object {volume_name} but it has a nil pv.Spec.ClaimRef indicating it is not \
             yet bound to the claim"
        );
        return Err(unprocessed(pod, claim_name, &why));
    };
    if of.uid != claim.metadata.uid {
        let why = format!(
            "found PV object {volume_name} but its pv.Spec.ClaimRef.UID {} does not point to \
             claim.UID {}",
            name(of.uid.as_deref()),
            name(claim.metadata.uid.as_deref()),
        );
        return Err(unprocessed(pod, claim_name, &why));
    }
    suits(pod, as_, spec.volume_mode.as_deref().unwrap_or(FILES))?;
    let annotations = volume.metadata.annotations.as_ref();
    let by = annotations.and_then(|annotations| annotations.get(PROVISIONED_BY));
    if let Some(host) = spec.host_path {
        return Ok(match by.is_some_and(|by| by == LOCAL_PATH) {
            true => Backing::Provided { path: host.path },
            false => Backing::Host { path: host.path, type_: host.type_.unwrap_or_default() },
        });
    }
    let local = spec.local.map(|local| Backing::Local { path: local.path });
    local.ok_or_else(|| format!("volume {volume_name:?} is not on this machine"))
}

/// Whether a volume of this mode is what the containers of a pod take it for.
fn suits(pod: &Pod, volume: &str, mode: &str) -> Result<(), String> {
    let spec = pod.spec.as_ref();
    let init = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let mut all = spec.into_iter().flat_map(|spec| &spec.containers).chain(init);
    let mut devices = all.clone().flat_map(|it| it.volume_devices.iter().flatten());
    let is_device = devices.any(|device| device.name == volume);
    let is_mounted =
        all.any(|it| it.volume_mounts.iter().flatten().any(|mount| mount.name == volume));
    let refused = |what: &str| {
        Err(format!("volume {volume} has volumeMode {mode}, but is specified in {what}"))
    };
    match mode {
        FILES if is_device => refused("volumeDevices"),
        FILES => Ok(()),
        _ if is_mounted => refused("volumeMounts"),
        _ => Err("block devices are not supported by this runtime".to_owned()),
    }
}

/// As errors about claims begin.
pub(crate) fn unprocessed(pod: &Pod, claim: &str, why: &str) -> String {
    let namespace = name(pod.metadata.namespace.as_deref());
    format!("error processing PVC {namespace}/{claim}: {why}")
}

fn name(name: Option<&str>) -> &str {
    name.unwrap_or_default()
}
