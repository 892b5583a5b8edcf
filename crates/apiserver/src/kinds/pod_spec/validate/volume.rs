//! Volumes: each has a name of its own and exactly one source.

mod claim;
mod projected;
mod remote;

pub(in crate::kinds) use claim::validate_metadata as validate_claim_metadata;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, DownwardAPIVolumeFile, HostPathVolumeSource, ImageVolumeSource,
    KeyToPath, SecretVolumeSource, Volume,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::name;
use kubewright_apimachinery::quantity::Quantity;

use super::{Allowed, container, env, file};
use crate::kinds::check::{self, list, text};

/// Volumes by name.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Volume>;

/// Fields that a file made of the pod itself may hold.
const FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// What is wrong with the volumes, and those that can be mounted since nothing is wrong with them.
/// The name is that of the pod, if it has one yet.
pub(super) fn validate<'a>(
    volumes: &'a [Volume],
    pod_name: Option<&str>,
    path: &Path<'_>,
    allowed: &Allowed,
) -> (Volumes<'a>, Vec<Error>) {
    let mut sound = Volumes::new();
    let mut errors = Vec::new();
    let made_claims: BTreeSet<String> = pod_name
        .into_iter()
        .flat_map(|pod| {
            let made = volumes.iter().filter(|volume| volume.ephemeral.is_some());
            made.map(move |volume| claim_name(pod, volume))
        })
        .collect();
    for (index, volume) in volumes.iter().enumerate() {
        let path = path.index(index);
        let name_path = path.child("name");
        let mut wrong = source(volume, pod_name, &path, allowed);
        match volume.name.as_str() {
            "" => wrong.push(Error::required(&name_path, "")),
            name => wrong.extend(check::dns_label(&name_path, name)),
        }
        if sound.contains_key(volume.name.as_str()) {
            wrong.push(Error::duplicate(&name_path, volume.name.as_str()));
        }
        if wrong.is_empty() {
            sound.insert(&volume.name, volume);
        }
        errors.extend(wrong);
        let claim = volume.persistent_volume_claim.as_ref().map(|claim| &claim.claim_name);
        if let Some(claim) = claim.filter(|claim| made_claims.contains(*claim)) {
            errors.push(Error::invalid(
                &path.child("persistentVolumeClaim").child("claimName"),
                claim.as_str(),
                "must not reference a PVC that gets created for an ephemeral volume",
            ));
        }
    }
    (sound, errors)
}

/// The claim that is made for a volume and goes with the pod.
fn claim_name(pod: impl Display, volume: &Volume) -> String {
    format!("{pod}-{}", volume.name)
}

fn claim_name_errors(volume: &Volume, pod_name: Option<&str>, path: &Path<'_>) -> Vec<Error> {
    let Some(pod) = pod_name.filter(|_| !volume.name.is_empty()) else { return Vec::new() };
    let claim = claim_name(pod, volume);
    let problems = name::dns1123_subdomain(&claim).into_iter();
    problems
        .map(|problem| {
            let problem = format!("PVC name {}: {problem}", go_quote(&claim));
            Error::invalid(&path.child("name"), volume.name.as_str(), problem)
        })
        .collect()
}

/// Looks at the sources one after the other: the first one counts, any other is one too many.
struct Sources<'a> {
    path: &'a Path<'a>,
    found: bool,
    errors: Vec<Error>,
}

impl<'a> Sources<'a> {
    fn see<S>(
        &mut self,
        name: &str,
        source: &'a Option<S>,
        validate: impl FnOnce(&'a S, &Path<'_>) -> Vec<Error>,
    ) {
        self.see_as(name, name, source, validate);
    }

    /// Of some sources upstream says another name in one case than in the other.
    fn see_as<S>(
        &mut self,
        name: &str,
        name_of_second: &str,
        source: &'a Option<S>,
        validate: impl FnOnce(&'a S, &Path<'_>) -> Vec<Error>,
    ) {
        let Some(source) = source else { return };
        if self.found {
            let path = self.path.child(name_of_second);
            self.errors.push(Error::forbidden(&path, "may not specify more than 1 volume type"));
        } else {
            self.found = true;
            self.errors.extend(validate(source, &self.path.child(name)));
        }
    }
}

fn source(
    volume: &Volume,
    pod_name: Option<&str>,
    path: &Path<'_>,
    allowed: &Allowed,
) -> Vec<Error> {
    let mut sources = Sources { path, found: false, errors: Vec::new() };
    sources.see("emptyDir", &volume.empty_dir, |dir, path| {
        let limit = dir.size_limit.as_ref().map(check::quantity);
        let problem = "SizeLimit field must be a valid resource quantity";
        let negative = limit.filter(Quantity::is_negative);
        negative.map(|_| Error::forbidden(&path.child("sizeLimit"), problem)).into_iter().collect()
    });
    sources.see("hostPath", &volume.host_path, host_path);
    sources.see("gitRepo", &volume.git_repo, remote::git_repo);
    sources.see_as(
        "persistentDisk",
        "gcePersistentDisk",
        &volume.gce_persistent_disk,
        remote::gce_persistent_disk,
    );
    let aws = &volume.aws_elastic_block_store;
    sources.see("awsElasticBlockStore", aws, remote::aws_elastic_block_store);
    sources.see("secret", &volume.secret, secret);
    sources.see("nfs", &volume.nfs, remote::nfs);
    sources.see("iscsi", &volume.iscsi, remote::iscsi);
    if let Some(iscsi) = &volume.iscsi
        && iscsi.initiator_name.is_some()
        && volume.name.len() + 1 + iscsi.target_portal.len() > remote::ISCSI_NAME_BYTES_MAX
    {
        sources.errors.push(Error::invalid(
            &path.child("name"),
            volume.name.as_str(),
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
             iscsi.initiatorName is specified.",
        ));
    }
    sources.see("glusterfs", &volume.glusterfs, remote::glusterfs);
    sources.see("flocker", &volume.flocker, remote::flocker);
    sources.see("persistentVolumeClaim", &volume.persistent_volume_claim, |claim, path| {
        check::required(&path.child("claimName"), &claim.claim_name).into_iter().collect()
    });
    sources.see("rbd", &volume.rbd, remote::rbd);
    sources.see("cinder", &volume.cinder, remote::cinder);
    sources.see_as("cephfs", "cephFS", &volume.cephfs, remote::ceph_fs);
    sources.see("quobyte", &volume.quobyte, remote::quobyte);
    sources.see_as("downwardAPI", "downwarAPI", &volume.downward_api, |downward, path| {
        let mut errors = Vec::new();
        errors.extend(file::mode(&path.child("defaultMode"), downward.default_mode));
        for item in list(&downward.items) {
            errors.extend(downward_file(item, path));
        }
        errors
    });
    sources.see("fc", &volume.fc, remote::fibre_channel);
    sources.see("flexVolume", &volume.flex_volume, remote::flex_volume);
    sources.see("configMap", &volume.config_map, config_map);
    sources.see("azureFile", &volume.azure_file, remote::azure_file);
    sources.see("vsphereVolume", &volume.vsphere_volume, |vsphere, path| {
        check::required(&path.child("volumePath"), &vsphere.volume_path).into_iter().collect()
    });
    sources.see("photonPersistentDisk", &volume.photon_persistent_disk, |photon, path| {
        check::required(&path.child("pdID"), &photon.pd_id).into_iter().collect()
    });
    sources.see("portworxVolume", &volume.portworx_volume, |portworx, path| {
        check::required(&path.child("volumeID"), &portworx.volume_id).into_iter().collect()
    });
    sources.see("azureDisk", &volume.azure_disk, remote::azure_disk);
    sources.see("storageos", &volume.storageos, remote::storage_os);
    sources.see("projected", &volume.projected, |projected, path| {
        projected::validate(projected, path, allowed)
    });
    sources.see("scaleIO", &volume.scale_io, remote::scale_io);
    sources.see("csi", &volume.csi, remote::csi);
    sources.see("ephemeral", &volume.ephemeral, |ephemeral, source_path| {
        let template_path = source_path.child("volumeClaimTemplate");
        let mut errors = match &ephemeral.volume_claim_template {
            Some(template) => claim::validate_template(template, &template_path),
            None => vec![Error::required(&template_path, "")],
        };
        errors.extend(claim_name_errors(volume, pod_name, path));
        errors
    });
    sources.see("image", &volume.image, |source, path| image(source, path, allowed));
    if !sources.found {
        sources.errors.push(Error::required(path, "must specify a volume type"));
    }
    sources.errors
}

fn host_path(source: &HostPathVolumeSource, path: &Path<'_>) -> Vec<Error> {
    if source.path.is_empty() {
        return vec![Error::required(&path.child("path"), "")];
    }
    let mut errors = Vec::new();
    errors.extend(file::without_backsteps(&path.child("path"), &source.path));
    if let Some(kind) = &source.type_ {
        errors.extend(check::one_of(&path.child("type"), kind, HOST_PATH_TYPES));
    }
    errors
}

fn secret(source: &SecretVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("secretName"), text(&source.secret_name)));
    errors.extend(file::mode(&path.child("defaultMode"), source.default_mode));
    errors.extend(items(list(&source.items), path));
    errors
}

fn config_map(source: &ConfigMapVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("name"), &source.name));
    errors.extend(file::mode(&path.child("defaultMode"), source.default_mode));
    errors.extend(items(list(&source.items), path));
    errors
}

fn items(items: &[KeyToPath], path: &Path<'_>) -> Vec<Error> {
    let path = path.child("items");
    let items = items.iter().enumerate();
    items.flat_map(|(index, item)| file::key_to_path(&path.index(index), item)).collect()
}

/// A file that holds something of the pod itself.
fn downward_file(item: &DownwardAPIVolumeFile, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let file_path = path.child("path");
    errors.extend(check::required(&file_path, &item.path));
    errors.extend(file::unreserved(&file_path, &item.path));
    match (&item.field_ref, &item.resource_field_ref) {
        (Some(field), resource) => {
            errors.extend(env::field_ref(field, FIELDS, &path.child("fieldRef")));
            if resource.is_some() {
                errors.push(Error::invalid(
                    path,
                    "resource",
                    "fieldRef and resourceFieldRef can not be specified simultaneously",
                ));
            }
        }
        (None, Some(resource)) => {
            let path = path.child("resourceFieldRef");
            errors.extend(env::resource_ref(resource, env::Asker::Volume, &path));
        }
        (None, None) => {
            let problem = "one of fieldRef and resourceFieldRef is required";
            errors.push(Error::required(path, problem));
        }
    }
    errors.extend(file::mode(&path.child("mode"), item.mode));
    errors
}

fn image(source: &ImageVolumeSource, path: &Path<'_>, allowed: &Allowed) -> Vec<Error> {
    let mut errors = Vec::new();
    if allowed.is_pod {
        errors.extend(check::required(&path.child("reference"), text(&source.reference)));
    }
    let policy = text(&source.pull_policy);
    errors.extend(container::pull_policy(policy, &path.child("pullPolicy")));
    errors
}

/// Whether the old spec has token files outside of their volumes.
pub(super) fn has_stray_tokens(volumes: &[Volume]) -> bool {
    let projected = volumes.iter().filter_map(|volume| volume.projected.as_ref());
    projected.into_iter().any(projected::has_stray_token)
}
