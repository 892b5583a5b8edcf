//! Volumes of storage systems, which the node reaches over a network. Few of them still work; all
//! of them are still judged.

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{
    AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, AzureFileVolumeSource,
    CSIVolumeSource, CephFSVolumeSource, CinderVolumeSource, FCVolumeSource, FlexVolumeSource,
    FlockerVolumeSource, GCEPersistentDiskVolumeSource, GitRepoVolumeSource, GlusterfsVolumeSource,
    ISCSIVolumeSource, NFSVolumeSource, QuobyteVolumeSource, RBDVolumeSource, ScaleIOVolumeSource,
    StorageOSVolumeSource,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::regex::Regex;
use serde_json::json;

use crate::kinds::check::{self, list, text};
use crate::kinds::pod_spec::validate::file;

/// The name of the volume, a colon and the portal become a name that may not be longer.
pub(super) const ISCSI_NAME_BYTES_MAX: usize = 64;
const CSI_DRIVER_BYTES_MAX: usize = 63;
const QUOBYTE_TENANT_BYTES_MAX: usize = 64;

const CACHING_MODES: &[&str] = &["None", "ReadOnly", "ReadWrite"];
const DISK_KINDS: &[&str] = &["Dedicated", "Managed", "Shared"];
const MANAGED_DISK: &str = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const BLOB_DISK: &str =
    "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";

static IQN: LazyLock<Regex> =
    LazyLock::new(|| regex(r"iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$"));
static EUI: LazyLock<Regex> = LazyLock::new(|| regex("^eui.[[:alnum:]]{16}$"));
static NAA: LazyLock<Regex> = LazyLock::new(|| regex("^naa.[[:alnum:]]{32}$"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

pub(super) fn git_repo(source: &GitRepoVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("repository"), &source.repository));
    errors.extend(file::descending(&path.child("directory"), text(&source.directory)));
    errors
}

pub(super) fn gce_persistent_disk(
    source: &GCEPersistentDiskVolumeSource,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("pdName"), &source.pd_name));
    errors.extend(partition(source.partition, path));
    errors
}

pub(super) fn aws_elastic_block_store(
    source: &AWSElasticBlockStoreVolumeSource,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("volumeID"), &source.volume_id));
    errors.extend(partition(source.partition, path));
    errors
}

/// Zero is none, though the message does not say so.
fn partition(partition: Option<i32>, path: &Path<'_>) -> Option<Error> {
    let number = partition.filter(|number| *number != 0)?;
    check::in_range(&path.child("partition"), number.into(), 1, 255)
}

pub(super) fn nfs(source: &NFSVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let folder_path = path.child("path");
    errors.extend(check::required(&path.child("server"), &source.server));
    errors.extend(check::required(&folder_path, &source.path));
    if !source.path.starts_with('/') {
        let problem = "must be an absolute path";
        errors.push(Error::invalid(&folder_path, source.path.as_str(), problem));
    }
    errors
}

pub(super) fn iscsi(source: &ISCSIVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("targetPortal"), &source.target_portal));
    let name_path = path.child("iqn");
    match source.iqn.as_str() {
        "" => errors.push(Error::required(&name_path, "")),
        name => errors.extend(iscsi_name(name, &name_path)),
    }
    errors.extend(check::in_range(&path.child("lun"), source.lun.into(), 0, 255));
    let authenticates =
        source.chap_auth_discovery == Some(true) || source.chap_auth_session == Some(true);
    if authenticates && source.secret_ref.is_none() {
        errors.push(Error::required(&path.child("secretRef"), ""));
    }
    if let Some(name) = &source.initiator_name {
        errors.extend(iscsi_name(name, &path.child("initiatorname")));
    }
    errors
}

fn iscsi_name(name: &str, path: &Path<'_>) -> Option<Error> {
    let form = [("iqn", &IQN), ("eui", &EUI), ("naa", &NAA)];
    let problem = match form.iter().find(|(prefix, _)| name.starts_with(prefix)) {
        None => "must be valid format starting with iqn, eui, or naa",
        Some((_, form)) if !form.is_match(name) => "must be valid format",
        Some(_) => return None,
    };
    Some(Error::invalid(path, name, problem))
}

pub(super) fn glusterfs(source: &GlusterfsVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("endpoints"), &source.endpoints));
    errors.extend(check::required(&path.child("path"), &source.path));
    errors
}

pub(super) fn flocker(source: &FlockerVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let (name, uuid) = (text(&source.dataset_name), text(&source.dataset_uuid));
    let mut errors = Vec::new();
    match (name, uuid) {
        ("", "") => {
            errors.push(Error::required(path, "one of datasetName and datasetUUID is required"));
        }
        ("", _) | (_, "") => {}
        _ => errors.push(Error::invalid(
            path,
            "resource",
            "datasetName and datasetUUID can not be specified simultaneously",
        )),
    }
    if name.contains('/') {
        errors.push(Error::invalid(&path.child("datasetName"), name, "must not contain '/'"));
    }
    errors
}

pub(super) fn rbd(source: &RBDVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    if source.monitors.is_empty() {
        errors.push(Error::required(&path.child("monitors"), ""));
    }
    errors.extend(check::required(&path.child("image"), &source.image));
    errors
}

pub(super) fn cinder(source: &CinderVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("volumeID"), &source.volume_id));
    if let Some(secret) = &source.secret_ref {
        errors.extend(check::required(&path.child("secretRef").child("name"), &secret.name));
    }
    errors
}

pub(super) fn ceph_fs(source: &CephFSVolumeSource, path: &Path<'_>) -> Vec<Error> {
    match source.monitors.is_empty() {
        true => vec![Error::required(&path.child("monitors"), "")],
        false => Vec::new(),
    }
}

pub(super) fn quobyte(source: &QuobyteVolumeSource, path: &Path<'_>) -> Vec<Error> {
    const REGISTRY: &str = "must be a host:port pair or multiple pairs separated by commas";
    let mut errors = Vec::new();
    let registry = source.registry.as_str();
    if registry.is_empty() {
        errors.push(Error::required(&path.child("registry"), REGISTRY));
    } else if text(&source.tenant).len() > QUOBYTE_TENANT_BYTES_MAX {
        let problem = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(Error::required(&path.child("tenant"), problem));
    } else {
        let unsound = registry.split(',').filter(|pair| !is_host_and_port(pair));
        errors.extend(unsound.map(|_| Error::invalid(&path.child("registry"), registry, REGISTRY)));
    }
    errors.extend(check::required(&path.child("volume"), &source.volume));
    errors
}

/// As Go splits them: whatever they are, there is one colon between them, or brackets before it.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let unbracketed = !host.contains([':', '[', ']']);
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| !host.contains(['[', ']']));
    (unbracketed || bracketed) && !port.contains(['[', ']'])
}

pub(super) fn fibre_channel(source: &FCVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let (names, ids) = (list(&source.target_wwns), list(&source.wwids));
    let names_path = path.child("targetWWNs");
    let mut errors = Vec::new();
    if names.is_empty() && ids.is_empty() {
        let problem = "must specify either targetWWNs or wwids, but not both";
        errors.push(Error::required(&names_path, problem));
    }
    if !names.is_empty() && !ids.is_empty() {
        let problem = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(Error::invalid(&names_path, json!(names), problem));
    }
    if !names.is_empty() {
        let path = path.child("lun");
        errors.extend(match source.lun {
            Some(lun) => check::in_range(&path, lun.into(), 0, 255),
            None => Some(Error::required(&path, "lun is required if targetWWNs is specified")),
        });
    }
    errors
}

pub(super) fn flex_volume(source: &FlexVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("driver"), &source.driver));
    for key in source.options.iter().flat_map(|options| options.keys()) {
        let domain = key.split_once('/').map_or(key.as_str(), |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            errors.push(Error::invalid(
                &path.child("options").key(key),
                key.as_str(),
                "kubernetes.io and k8s.io namespaces are reserved",
            ));
        }
    }
    errors
}

pub(super) fn azure_file(source: &AzureFileVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("secretName"), &source.secret_name));
    errors.extend(check::required(&path.child("shareName"), &source.share_name));
    errors
}

pub(super) fn azure_disk(source: &AzureDiskVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let uri = source.disk_uri.as_str();
    let uri_path = path.child("diskURI");
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("diskName"), &source.disk_name));
    errors.extend(check::required(&uri_path, uri));
    if let Some(mode) = &source.caching_mode {
        errors.extend(check::one_of(&path.child("cachingMode"), mode, CACHING_MODES));
    }
    if let Some(kind) = &source.kind {
        errors.extend(check::one_of(&path.child("kind"), kind, DISK_KINDS));
        let (start, form) = match kind.as_str() {
            "Managed" => ("/subscriptions/", MANAGED_DISK),
            _ => ("https://", BLOB_DISK),
        };
        if !uri.starts_with(start) {
            errors.push(Error::not_supported(&uri_path, uri, &[form]));
        }
    }
    errors
}

pub(super) fn storage_os(source: &StorageOSVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let name_path = path.child("volumeName");
    match text(&source.volume_name) {
        "" => errors.push(Error::required(&name_path, "")),
        name => errors.extend(check::dns_label(&name_path, name)),
    }
    let namespace = text(&source.volume_namespace);
    if !namespace.is_empty() {
        errors.extend(check::dns_label(&path.child("volumeNamespace"), namespace));
    }
    if let Some(secret) = &source.secret_ref {
        errors.extend(check::required(&path.child("secretRef").child("name"), &secret.name));
    }
    errors
}

pub(super) fn scale_io(source: &ScaleIOVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::required(&path.child("gateway"), &source.gateway));
    errors.extend(check::required(&path.child("system"), &source.system));
    errors.extend(check::required(&path.child("volumeName"), text(&source.volume_name)));
    errors
}

pub(super) fn csi(source: &CSIVolumeSource, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let driver_path = path.child("driver");
    let driver = source.driver.as_str();
    if driver.is_empty() {
        errors.push(Error::required(&driver_path, ""));
    } else {
        if driver.len() > CSI_DRIVER_BYTES_MAX {
            errors.push(Error::too_long(&driver_path, CSI_DRIVER_BYTES_MAX));
        }
        let problems = name::dns1123_subdomain(&driver.to_lowercase());
        errors.extend(check::invalid(&driver_path, driver, problems));
    }
    if let Some(secret) = &source.node_publish_secret_ref {
        match secret.name.as_str() {
            "" => {
                let path = path.child("nodePublishSecretRef");
                errors.push(Error::required(&path.child("name"), ""));
            }
            name => errors.extend(check::dns_subdomain(&path.child("name"), name)),
        }
    }
    errors
}
