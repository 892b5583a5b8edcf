//! PersistentVolumes: a piece of storage, and where it is.

mod node_affinity;
mod source;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::time::Time;
use serde_json::{Value, json};

pub(super) use node_affinity::deprecation as label_deprecation;
pub(super) use source::{check_driver, default as default_source};

use super::persistent_volume_claim::{
    BETA_CLASS, VOLUME_MODES, check_access_modes, check_amount, check_positive,
};
use super::{Context, Part, Rules, check, edit, internal, resource_name, typed};

/// The part of a spec that says where the storage is.
const SOURCE: &str = "k8s.io/api/core/v1.PersistentVolumeSource";
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |object, context| {
        let now = Time::from_unix(context.now.as_second()).to_value();
        object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
    },
    prepare_update: |object, old, _| edit::restore(object, old, "status"),
    validate: |object| {
        let volume: PersistentVolume = typed(object);
        let mut errors = check(&volume, None);
        errors.extend(check_mount_options(&volume));
        errors
    },
    validate_update: |object, old| check_update(&typed(object), &typed(old)),
    warnings: |object, _| warnings(&typed(object)),
    parts: &[("status", STATUS)],
    reset: &["status"],
    ..Rules::PLAIN
};

const STATUS: Part = Part { prepare_update: prepare_status, reset: &["spec"], ..Part::PLAIN };

fn default(object: &mut Value) {
    if let Some(status) = object.get_mut("status") {
        edit::fill_text(status, "phase", "Pending");
    }
    let Some(spec) = object.get_mut("spec") else { return };
    edit::fill_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    edit::fill(spec, "volumeMode", "Filesystem");
    resource_name::round_amounts(spec.get_mut("capacity"));
    source::default(spec);
}

/// The server notes when a phase began, unless the client knows better.
fn prepare_status(object: &mut Value, old: &Value, context: &Context<'_>) {
    const SINCE: &str = "lastPhaseTransitionTime";
    edit::restore(object, old, "spec");
    let old = &old["status"];
    let Some(status) = object.get_mut("status") else { return };
    let (same_phase, same_time) = (status["phase"] == old["phase"], status[SINCE] == old[SINCE]);
    let is_silent = status[SINCE].is_null();
    if same_phase && is_silent {
        edit::restore(status, old, SINCE);
    } else if !same_phase && (is_silent || same_time) {
        status[SINCE] = Time::from_unix(context.now.as_second()).to_value();
    } else if is_silent {
        edit::remove(status, SINCE);
    }
}

fn check(volume: &PersistentVolume, old: Option<&PersistentVolume>) -> Vec<Error> {
    let spec = volume.spec.clone().unwrap_or_default();
    let at = Path::new("spec");
    let mut errors = Vec::new();
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    if modes.is_empty() {
        errors.push(Error::required(&at.child("accessModes"), ""));
    }
    errors.extend(check_access_modes(modes, &at.child("accessModes")));
    errors.extend(check_capacity(&spec, &at.child("capacity")));
    let policy = spec.persistent_volume_reclaim_policy.as_deref().unwrap_or_default();
    let policy_at = at.child("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        errors.extend(check::one_of(&policy_at, policy, &["Delete", "Recycle", "Retain"]));
    }
    if let Some(affinity) = &spec.node_affinity {
        let old = old.and_then(|old| old.spec.as_ref()?.node_affinity.as_ref());
        errors.extend(node_affinity::check(affinity, old, &at.child("nodeAffinity")));
    }
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    errors.extend(source::check(&spec, name, &at));
    let is_root = |path: &str| path.split('/').all(|part| part.is_empty() || part == ".");
    let root = spec.host_path.as_ref().filter(|host| host.path.starts_with('/'));
    if root.is_some_and(|host| is_root(&host.path)) && policy == "Recycle" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(Error::forbidden(&policy_at, detail));
    }
    if let Some(class) = spec.storage_class_name.as_deref().filter(|class| !class.is_empty()) {
        errors.extend(check::dns_subdomain(&at.child("storageClassName"), class));
    }
    if let Some(mode) = &spec.volume_mode {
        errors.extend(check::one_of(&at.child("volumeMode"), mode, &VOLUME_MODES));
    }
    if let Some(class) = &spec.volume_attributes_class_name {
        let class_at = at.child("volumeAttributesClassName");
        match class.as_str() {
            "" => errors.push(Error::required(&class_at, "an empty string is disallowed")),
            class => errors.extend(check::dns_subdomain(&class_at, class)),
        }
        if spec.csi.is_none() {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.push(Error::required(&at.child("csi"), detail));
        }
    }
    errors
}

/// The spec of a volume that is nobody's but the attachment's that holds it.
pub(super) fn check_inline(spec: &PersistentVolumeSpec, at: &Path<'_>) -> Vec<Error> {
    let inline = "in the context of inline volumes";
    let forbidden =
        |field| Error::forbidden(&at.child(field), format!("may not be specified {inline}"));
    let mut errors = Vec::new();
    if spec.claim_ref.is_some() {
        errors.push(forbidden("claimRef"));
    }
    if spec.capacity.as_ref().is_some_and(|capacity| !capacity.is_empty()) {
        errors.push(forbidden("capacity"));
    }
    if spec.csi.is_none() {
        let detail = format!("has to be specified {inline}");
        errors.push(Error::required(&at.child("csi"), detail));
    }
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    if modes.is_empty() {
        errors.push(Error::required(&at.child("accessModes"), ""));
    }
    errors.extend(check_access_modes(modes, &at.child("accessModes")));
    let policy = spec.persistent_volume_reclaim_policy.as_deref().unwrap_or_default();
    if !matches!(policy, "" | "Retain") {
        let detail = format!("may only be Retain {inline}");
        errors.push(Error::forbidden(&at.child("persistentVolumeReclaimPolicy"), detail));
    }
    if spec.node_affinity.is_some() {
        errors.push(forbidden("nodeAffinity"));
    }
    errors.extend(source::check(spec, "", at));
    if spec.storage_class_name.as_ref().is_some_and(|class| !class.is_empty()) {
        errors.push(forbidden("storageClassName"));
    }
    if spec.volume_mode.as_ref().is_some_and(|mode| mode != "Filesystem") {
        let detail = format!("may not specify volumeMode other than Filesystem {inline}");
        errors.push(Error::forbidden(&at.child("volumeMode"), detail));
    }
    errors
}

fn check_capacity(spec: &PersistentVolumeSpec, at: &Path<'_>) -> Vec<Error> {
    let capacity = spec.capacity.clone().unwrap_or_default();
    let mut errors = Vec::new();
    if capacity.is_empty() {
        errors.push(Error::required(at, ""));
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        let shown = match capacity.is_empty() {
            true => Value::Null,
            false => check::shown(&capacity),
        };
        errors.push(Error::not_supported(at, shown, &["storage"]));
    }
    for (resource, amount) in &capacity {
        let (at, amount) = (at.key(resource), check::quantity(amount));
        errors.extend(check_amount(&amount, &at));
        errors.extend(check_positive(&amount, &at));
    }
    errors
}

fn check_mount_options(volume: &PersistentVolume) -> Option<Error> {
    let annotations = volume.metadata.annotations.as_ref()?;
    let spec = volume.spec.as_ref()?;
    (annotations.contains_key(MOUNT_OPTIONS) && !source::takes_mount_options(spec)).then(|| {
        let metadata = Path::new("metadata");
        let annotations = metadata.child("annotations");
        let detail = "may not specify mount options for this volume type";
        Error::forbidden(&annotations.child(MOUNT_OPTIONS), detail)
    })
}

fn check_update(new: &PersistentVolume, old: &PersistentVolume) -> Vec<Error> {
    // Upstream checks the whole twice, and says so twice.
    let mut errors = check(new, Some(old));
    errors.extend(check_mount_options(new));
    errors.extend(check(new, Some(old)));
    let (mut new_spec, old_spec) =
        (new.spec.clone().unwrap_or_default(), old.spec.clone().unwrap_or_default());
    if let (Some(new), Some(old)) = (&mut new_spec.csi, &old_spec.csi)
        && old.controller_expand_secret_ref.is_none()
    {
        // It came later than volumes did, so it may be added.
        new.controller_expand_secret_ref = None;
    }
    let at = Path::new("spec");
    let changed = internal::diff(SOURCE, &check::shown(&old_spec), &check::shown(&new_spec));
    if !changed.is_empty() {
        errors.push(Error::forbidden(
            &at.child("persistentvolumesource"),
            format!("spec.persistentvolumesource is immutable after creation\n{changed}"),
        ));
    }
    errors.extend(check::immutable(
        &Path::new("volumeMode"),
        &new_spec.volume_mode,
        &old_spec.volume_mode,
    ));
    if let Some(old) = &old_spec.node_affinity {
        let new = new_spec.node_affinity.as_ref();
        errors.extend(node_affinity::check_change(new, old, &Path::new("nodeAffinity")));
    }
    if old_spec.volume_attributes_class_name.is_some()
        && new_spec.volume_attributes_class_name.is_none()
    {
        let detail = "update from non-nil value to nil is forbidden";
        errors.push(Error::forbidden(&at.child("volumeAttributesClassName"), detail));
    }
    errors
}

fn warnings(volume: &PersistentVolume) -> Vec<String> {
    let spec = volume.spec.clone().unwrap_or_default();
    let mut warnings = annotation_warnings(&volume.metadata);
    if spec.persistent_volume_reclaim_policy.as_deref() == Some("Recycle") {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, \
             the recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    if let Some(affinity) = &spec.node_affinity {
        warnings.extend(node_affinity::warnings(affinity));
    }
    let deprecated = [
        ("cephfs", spec.cephfs.is_some(), "1.28", "1.31"),
        ("photonPersistentDisk", spec.photon_persistent_disk.is_some(), "1.11", "1.16"),
        ("scaleIO", spec.scale_io.is_some(), "1.16", "1.22"),
        ("storageOS", spec.storageos.is_some(), "1.22", "1.25"),
        ("glusterfs", spec.glusterfs.is_some(), "1.25", "1.26"),
        ("rbd", spec.rbd.is_some(), "1.28", "1.31"),
    ];
    for (name, _, since, gone) in deprecated.iter().filter(|(_, given, ..)| *given) {
        warnings.push(format!("spec.{name}: deprecated in v{since}, non-functional in v{gone}+"));
    }
    warnings
}

fn annotation_warnings(metadata: &ObjectMeta) -> Vec<String> {
    let deprecated = [
        (BETA_CLASS, "deprecated since v1.8; use \"storageClassName\" attribute instead"),
        (MOUNT_OPTIONS, "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ];
    let annotations = metadata.annotations.as_ref();
    let given = deprecated
        .iter()
        .filter(|(key, _)| annotations.is_some_and(|annotations| annotations.contains_key(*key)));
    given.map(|(key, words)| format!("metadata.annotations[{key}]: {words}")).collect()
}
