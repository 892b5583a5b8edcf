//! Where a container finds volumes: as folders, or as devices.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, VolumeDevice, VolumeMount};
use kubewright_apimachinery::field::{Error, Path};

use super::file;
use super::volume::Volumes;
use crate::kinds::check::{self, list, text};

const PROPAGATIONS: &[&str] = &["Bidirectional", "HostToContainer", "None"];
const RECURSIVE_READ_ONLY: &[&str] = &["Disabled", "Enabled", "IfPossible"];

/// What is wrong with the mounts of a container and with its devices.
pub(super) fn validate(
    container: &Container,
    volumes: &Volumes<'_>,
    path: &Path<'_>,
) -> Vec<Error> {
    let (mounts, devices) = (list(&container.volume_mounts), list(&container.volume_devices));
    let context = container.security_context.as_ref();
    let is_privileged = context.is_some_and(|context| context.privileged == Some(true));
    let mut errors = Vec::new();
    errors.extend(validate_mounts(
        mounts,
        devices,
        volumes,
        is_privileged,
        &path.child("volumeMounts"),
    ));
    errors.extend(validate_devices(devices, mounts, volumes, &path.child("volumeDevices")));
    errors
}

fn validate_mounts(
    mounts: &[VolumeMount],
    devices: &[VolumeDevice],
    volumes: &Volumes<'_>,
    is_privileged: bool,
    path: &Path<'_>,
) -> Vec<Error> {
    // By name, so that of two devices of a volume only the last one counts, as upstream has it.
    let devices: BTreeMap<&str, &str> =
        devices.iter().map(|d| (d.name.as_str(), d.device_path.as_str())).collect();
    let mut places = BTreeSet::new();
    let mut errors = Vec::new();
    for (index, mount) in mounts.iter().enumerate() {
        let item_path = path.index(index);
        let (name_path, place_path) = (item_path.child("name"), item_path.child("mountPath"));
        let (name, place) = (mount.name.as_str(), mount.mount_path.as_str());
        errors.extend(check::required(&name_path, name));
        if !volumes.contains_key(name) {
            errors.push(Error::not_found(&name_path, name));
        }
        errors.extend(check::required(&place_path, place));
        if !places.insert(place) {
            errors.push(Error::invalid(&place_path, place, "must be unique"));
        }
        if devices.contains_key(name) {
            let problem = "must not already exist in volumeDevices";
            errors.push(Error::invalid(&name_path, name, problem));
        }
        if devices.values().any(|device| *device == place) {
            let problem = "must not already exist as a path in volumeDevices";
            errors.push(Error::invalid(&place_path, place, problem));
        }
        // From here on upstream mostly leaves out which of the mounts it is.
        let (sub_path, expression) = (text(&mount.sub_path), text(&mount.sub_path_expr));
        if !sub_path.is_empty() {
            errors.extend(file::descending(&path.child("subPath"), sub_path));
        }
        if !expression.is_empty() {
            if !sub_path.is_empty() {
                errors.push(Error::invalid(
                    &item_path.child("subPathExpr"),
                    expression,
                    "subPathExpr and subPath are mutually exclusive",
                ));
            }
            errors.extend(file::descending(&path.child("subPathExpr"), expression));
        }
        errors.extend(validate_propagation(mount, is_privileged, path));
        errors.extend(validate_recursion(mount, path));
    }
    errors
}

fn validate_propagation(mount: &VolumeMount, is_privileged: bool, path: &Path<'_>) -> Vec<Error> {
    let Some(mode) = mount.mount_propagation.as_deref() else { return Vec::new() };
    let path = path.child("mountPropagation");
    let mut errors = Vec::new();
    errors.extend(check::one_of(&path, mode, PROPAGATIONS));
    if mode == "Bidirectional" && !is_privileged {
        let problem = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(Error::forbidden(&path, problem));
    }
    errors
}

fn validate_recursion(mount: &VolumeMount, path: &Path<'_>) -> Vec<Error> {
    let path = path.child("recursiveReadOnly");
    let mut errors = Vec::new();
    match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if mount.read_only != Some(true) {
                let problem = "may only be specified when readOnly is true";
                errors.push(Error::forbidden(&path, problem));
            }
            if mount.mount_propagation.as_ref().is_some_and(|mode| mode != "None") {
                let problem =
                    "may only be specified when mountPropagation is None or not specified";
                errors.push(Error::forbidden(&path, problem));
            }
        }
        Some(other) => errors.push(Error::not_supported(&path, other, RECURSIVE_READ_ONLY)),
    }
    errors
}

fn validate_devices(
    devices: &[VolumeDevice],
    mounts: &[VolumeMount],
    volumes: &Volumes<'_>,
    path: &Path<'_>,
) -> Vec<Error> {
    let mounts: BTreeMap<&str, &str> =
        mounts.iter().map(|m| (m.name.as_str(), m.mount_path.as_str())).collect();
    let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
    let mut errors = Vec::new();
    for (index, device) in devices.iter().enumerate() {
        let path = path.index(index);
        let (name_path, place_path) = (path.child("name"), path.child("devicePath"));
        let (name, place) = (device.name.as_str(), device.device_path.as_str());
        errors.extend(check::required(&name_path, name));
        if names.contains(name) {
            errors.push(Error::invalid(&name_path, name, "must be unique"));
        }
        match volumes.get(name) {
            None => errors.push(Error::not_found(&name_path, name)),
            Some(volume)
                if volume.persistent_volume_claim.is_none() && volume.ephemeral.is_none() =>
            {
                let problem = "can only use volume source type of PersistentVolumeClaim or \
                               Ephemeral for block mode";
                errors.push(Error::invalid(&name_path, name, problem));
            }
            Some(_) => {}
        }
        errors.extend(check::required(&place_path, place));
        if places.contains(place) {
            errors.push(Error::invalid(&place_path, place, "must be unique"));
        }
        if file::without_backsteps(&place_path, place).is_some() {
            let problem = "can not contain backsteps ('..')";
            errors.push(Error::invalid(&place_path, place, problem));
        } else {
            places.insert(place);
        }
        if mounts.contains_key(name) {
            let problem = "must not already exist in volumeMounts";
            errors.push(Error::invalid(&name_path, name, problem));
        }
        if mounts.values().any(|mount| *mount == place) {
            let problem = "must not already exist as a path in volumeMounts";
            errors.push(Error::invalid(&place_path, place, problem));
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
    errors
}
