//! What a volume is made of: exactly one of many things.

use k8s_openapi::api::core::v1::{PersistentVolumeSpec, SecretReference};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::regex::Regex;
use serde_json::{Map, Value};

use super::super::{check, edit};

/// A kind of source, in the order in which upstream looks at them.
struct Source {
    field: &'static str,
    /// What upstream calls it in errors, where that differs.
    shown: &'static str,
    /// Texts that may not be empty.
    required: &'static [&'static str],
    takes_mount_options: bool,
}

const fn source(field: &'static str, required: &'static [&'static str]) -> Source {
    Source { field, shown: field, required, takes_mount_options: true }
}

const SOURCES: [Source; 22] = [
    Source { takes_mount_options: false, ..source("hostPath", &["path"]) },
    Source { shown: "persistentDisk", ..source("gcePersistentDisk", &["pdName"]) },
    source("awsElasticBlockStore", &["volumeID"]),
    source("glusterfs", &["endpoints", "path"]),
    Source { takes_mount_options: false, ..source("flocker", &[]) },
    source("nfs", &["server", "path"]),
    source("rbd", &["monitors", "image"]),
    source("quobyte", &["volume"]),
    source("cephfs", &["monitors"]),
    source("iscsi", &["targetPortal"]),
    source("cinder", &["volumeID"]),
    Source { takes_mount_options: false, ..source("fc", &[]) },
    Source { takes_mount_options: false, ..source("flexVolume", &["driver"]) },
    source("azureFile", &["secretName", "shareName"]),
    source("vsphereVolume", &["volumePath"]),
    source("photonPersistentDisk", &["pdID"]),
    Source { takes_mount_options: false, ..source("portworxVolume", &["volumeID"]) },
    source("azureDisk", &["diskName", "diskURI"]),
    Source {
        takes_mount_options: false,
        ..source("scaleIO", &["gateway", "system", "volumeName"])
    },
    Source { takes_mount_options: false, ..source("local", &["path"]) },
    Source { takes_mount_options: false, ..source("storageos", &["volumeName"]) },
    Source { takes_mount_options: false, ..source("csi", &[]) },
];

const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

pub(in crate::kinds) fn default(spec: &mut Value) {
    let texts: [(&str, &str, Value); 11] = [
        ("hostPath", "type", "".into()),
        ("rbd", "pool", "rbd".into()),
        ("rbd", "user", "admin".into()),
        ("rbd", "keyring", "/etc/ceph/keyring".into()),
        ("iscsi", "iscsiInterface", "default".into()),
        ("azureDisk", "cachingMode", "ReadWrite".into()),
        ("azureDisk", "fsType", "ext4".into()),
        ("azureDisk", "readOnly", false.into()),
        ("azureDisk", "kind", "Shared".into()),
        ("scaleIO", "storageMode", "ThinProvisioned".into()),
        ("scaleIO", "fsType", "xfs".into()),
    ];
    for (source, field, value) in texts {
        if let Some(source) = spec.get_mut(source).filter(|source| source.is_object()) {
            edit::fill(source, field, value);
        }
    }
}

/// One source, and a sound one.
pub(super) fn check(spec: &PersistentVolumeSpec, volume: &str, at: &Path<'_>) -> Vec<Error> {
    let tree = check::shown(spec);
    let mut errors = Vec::new();
    let mut n_sources = 0;
    for source in &SOURCES {
        let Some(fields) = tree.get(source.field).filter(|value| !value.is_null()) else {
            continue;
        };
        // Upstream forgot to count what came before a flexVolume.
        if n_sources > 0 && source.field != "flexVolume" {
            let field = if source.field == "cephfs" { "cephFS" } else { source.field };
            let detail = "may not specify more than 1 volume type";
            errors.push(Error::forbidden(&at.child(field), detail));
            continue;
        }
        n_sources += 1;
        let source_at = at.child(source.shown);
        for field in source.required {
            if is_empty(&fields[*field]) {
                errors.push(Error::required(&source_at.child(field), ""));
            }
        }
        errors.extend(check_source(source.field, fields, spec, volume, &source_at));
        if source.field == "local" && spec.node_affinity.is_none() {
            let detail = "Local volume requires node affinity";
            errors.push(Error::required(&at.child("nodeAffinity"), detail));
        }
    }
    if n_sources == 0 {
        errors.push(Error::required(at, "must specify a volume type"));
    }
    errors
}

/// What there is to say of a source besides the texts that it requires.
fn check_source(
    field: &str,
    fields: &Value,
    spec: &PersistentVolumeSpec,
    volume: &str,
    at: &Path<'_>,
) -> Vec<Error> {
    match field {
        "hostPath" => check_host_path(fields, at),
        "local" => check_backsteps(fields, at).into_iter().collect(),
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            let partition = fields["partition"].as_i64().unwrap_or(0);
            let detail = "must be between 1 and 255, inclusive";
            let is_sound = (0..=255).contains(&partition);
            let error = Error::invalid(&at.child("partition"), partition, detail);
            (!is_sound).then_some(error).into_iter().collect()
        }
        "glusterfs" => check_glusterfs(fields, at),
        "flocker" => check_flocker(fields, at),
        "nfs" => {
            let path = text(fields, "path");
            let error = Error::invalid(&at.child("path"), path, "must be an absolute path");
            (!path.starts_with('/')).then_some(error).into_iter().collect()
        }
        "quobyte" => check_quobyte(fields, at),
        "iscsi" => check_iscsi(fields, volume, at),
        "cinder" => check_secret(&fields["secretRef"], &at.child("secretRef")),
        "fc" => check_fibre_channel(fields, at),
        "flexVolume" => check_flex(fields, at),
        "azureFile" => {
            let namespace = fields.get("secretNamespace").filter(|value| value.is_string());
            let is_blank = namespace.is_some_and(|namespace| namespace == "");
            let error = Error::required(&at.child("secretNamespace"), "");
            is_blank.then_some(error).into_iter().collect()
        }
        "azureDisk" => check_azure_disk(fields, at),
        "storageos" => check_storage_os(fields, at),
        "csi" => check_csi(spec, at),
        _ => Vec::new(),
    }
}

pub(super) fn takes_mount_options(spec: &PersistentVolumeSpec) -> bool {
    let tree = check::shown(spec);
    let given =
        SOURCES.iter().filter(|source| tree.get(source.field).is_some_and(Value::is_object));
    given.into_iter().any(|source| source.takes_mount_options)
}

fn check_host_path(fields: &Value, at: &Path<'_>) -> Vec<Error> {
    if text(fields, "path").is_empty() {
        return Vec::new();
    }
    let mut errors: Vec<Error> = check_backsteps(fields, at).into_iter().collect();
    errors.extend(check::one_of(&at.child("type"), text(fields, "type"), &HOST_PATH_TYPES));
    errors
}

fn check_backsteps(fields: &Value, at: &Path<'_>) -> Option<Error> {
    let path = text(fields, "path");
    path.split('/')
        .any(|part| part == "..")
        .then(|| Error::invalid(&at.child("path"), path, "must not contain '..'"))
}

fn check_glusterfs(fields: &Value, at: &Path<'_>) -> Vec<Error> {
    let at = at.child("endpointsNamespace");
    match fields.get("endpointsNamespace").and_then(Value::as_str) {
        None => Vec::new(),
        Some("") => {
            let detail = "if the endpointnamespace is set, it must be a valid namespace name";
            vec![Error::invalid(&at, "", detail)]
        }
        Some(namespace) => check::dns_label(&at, namespace),
    }
}

fn check_flocker(fields: &Value, at: &Path<'_>) -> Vec<Error> {
    let (name, uuid) = (text(fields, "datasetName"), text(fields, "datasetUUID"));
    let mut errors = Vec::new();
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => {
            errors.push(Error::required(at, "one of datasetName and datasetUUID is required"));
        }
        (false, false) => errors.push(Error::invalid(
            at,
            "resource",
            "datasetName and datasetUUID can not be specified simultaneously",
        )),
        _ => {}
    }
    if name.contains('/') {
        errors.push(Error::invalid(&at.child("datasetName"), name, "must not contain '/'"));
    }
    errors
}

fn check_quobyte(fields: &Value, at: &Path<'_>) -> Vec<Error> {
    let registry = text(fields, "registry");
    let wanted = "must be a host:port pair or multiple pairs separated by commas";
    let at_registry = at.child("registry");
    if registry.is_empty() {
        return vec![Error::required(&at_registry, wanted)];
    }
    if text(fields, "tenant").len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        return vec![Error::required(&at.child("tenant"), detail)];
    }
    let unsound = registry.split(',').filter(|pair| !is_host_and_port(pair));
    unsound.map(|_| Error::invalid(&at_registry, registry, wanted)).collect()
}

/// One colon, or one after a host in brackets.
fn is_host_and_port(pair: &str) -> bool {
    match pair.strip_prefix('[') {
        Some(rest) => rest.split_once("]:").is_some_and(|(host, port)| {
            !host.contains(['[', ']']) && !port.contains([':', '[', ']'])
        }),
        None => pair.matches(':').count() == 1 && !pair.contains(['[', ']']),
    }
}

fn check_iscsi(fields: &Value, volume: &str, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let portal = text(fields, "targetPortal");
    let initiator = fields.get("initiatorName").and_then(Value::as_str);
    if initiator.is_some() && volume.len() + 1 + portal.len() > 64 {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
                      characters if iscsi.initiatorName is specified.";
        errors.push(Error::invalid(&at.child("targetportal"), portal, detail));
    }
    match text(fields, "iqn") {
        "" => errors.push(Error::required(&at.child("iqn"), "")),
        iqn => errors.extend(check_qualified(iqn, &at.child("iqn"))),
    }
    let lun = fields["lun"].as_i64().unwrap_or(0);
    errors.extend(check::in_range(&at.child("lun"), lun, 0, 255));
    let secret = fields.get("secretRef").filter(|secret| secret.is_object());
    let wants_secret =
        ["chapAuthDiscovery", "chapAuthSession"].iter().any(|name| fields[*name] == true);
    let secret_at = at.child("secretRef");
    match secret {
        None if wants_secret => errors.push(Error::required(&secret_at, "")),
        Some(secret) if text(secret, "name").is_empty() => {
            errors.push(Error::required(&secret_at.child("name"), ""));
        }
        _ => {}
    }
    if let Some(initiator) = initiator {
        errors.extend(check_qualified(initiator, &at.child("initiatorname")));
    }
    errors
}

/// A name of a target or initiator in one of three schemes.
fn check_qualified(text: &str, at: &Path<'_>) -> Option<Error> {
    let scheme = match text.get(..3) {
        Some("iqn") => r"iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$",
        Some("eui") => r"^eui.[[:alnum:]]{16}$",
        Some("naa") => r"^naa.[[:alnum:]]{32}$",
        _ => return Some(Error::invalid(at, text, "must be valid format")),
    };
    let scheme = Regex::new(scheme).expect("the pattern is sound");
    (!scheme.is_match(text)).then(|| Error::invalid(at, text, "must be valid format"))
}

fn check_fibre_channel(fields: &Value, at: &Path<'_>) -> Vec<Error> {
    let names = fields["targetWWNs"].as_array().map_or(0, Vec::len);
    let ids = fields["wwids"].as_array().map_or(0, Vec::len);
    let names_at = at.child("targetWWNs");
    let mut errors = Vec::new();
    match (names, ids) {
        (0, 0) => errors.push(Error::required(
            &names_at,
            "must specify either targetWWNs or wwids, but not both",
        )),
        (0, _) | (_, 0) => {}
        _ => errors.push(Error::invalid(
            &names_at,
            fields["targetWWNs"].clone(),
            "targetWWNs and wwids can not be specified simultaneously",
        )),
    }
    if names > 0 {
        let at = at.child("lun");
        match fields["lun"].as_i64() {
            None => errors.push(Error::required(&at, "lun is required if targetWWNs is specified")),
            Some(lun) => errors.extend(check::in_range(&at, lun, 0, 255)),
        }
    }
    errors
}

fn check_flex(fields: &Value, at: &Path<'_>) -> Vec<Error> {
    let at = at.child("options");
    let mut errors = Vec::new();
    for key in fields["options"].as_object().into_iter().flat_map(Map::keys) {
        let namespace = key.split_once('/').map_or(key.as_str(), |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(Error::invalid(&at.key(key), key.as_str(), detail));
        }
    }
    errors
}

fn check_azure_disk(fields: &Value, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let (mode, kind, uri) =
        (text(fields, "cachingMode"), text(fields, "kind"), text(fields, "diskURI"));
    let modes = ["None", "ReadOnly", "ReadWrite"];
    errors.extend(check::one_of(&at.child("cachingMode"), mode, &modes));
    errors.extend(check::one_of(&at.child("kind"), kind, &["Dedicated", "Managed", "Shared"]));
    let (prefix, form) = match kind {
        "Managed" => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/\
             {disk-id}",
        ),
        _ => (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        ),
    };
    if !uri.starts_with(prefix) {
        errors.push(Error::not_supported(&at.child("diskURI"), uri, &[form]));
    }
    errors
}

fn check_storage_os(fields: &Value, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for field in ["volumeName", "volumeNamespace"] {
        let value = text(fields, field);
        if !value.is_empty() {
            errors.extend(check::dns_label(&at.child(field), value));
        }
    }
    errors.extend(check_secret(&fields["secretRef"], &at.child("secretRef")));
    errors
}

/// A reference to a secret, which must be complete if there is one.
fn check_secret(secret: &Value, at: &Path<'_>) -> Vec<Error> {
    let missing = ["name", "namespace"].into_iter().filter(|field| text(secret, field).is_empty());
    match secret.is_object() {
        true => missing.map(|field| Error::required(&at.child(field), "")).collect(),
        false => Vec::new(),
    }
}

fn check_csi(spec: &PersistentVolumeSpec, at: &Path<'_>) -> Vec<Error> {
    let Some(csi) = &spec.csi else { return Vec::new() };
    let mut errors = check_driver(&csi.driver, &at.child("driver"));
    if csi.volume_handle.is_empty() {
        errors.push(Error::required(&at.child("volumeHandle"), ""));
    }
    for (field, secret) in [
        ("controllerPublishSecretRef", &csi.controller_publish_secret_ref),
        ("controllerExpandSecretRef", &csi.controller_expand_secret_ref),
        ("nodePublishSecretRef", &csi.node_publish_secret_ref),
        ("nodeExpandSecretRef", &csi.node_expand_secret_ref),
    ] {
        if let Some(secret) = secret {
            errors.extend(check_csi_secret(secret, &at.child(field)));
        }
    }
    errors
}

/// The name of a driver: a subdomain in any case of letters, and a short one.
pub(in crate::kinds) fn check_driver(driver: &str, at: &Path<'_>) -> Vec<Error> {
    if driver.is_empty() {
        return vec![Error::required(at, "")];
    }
    let mut errors = Vec::new();
    if driver.len() > name::LABEL_BYTES_MAX {
        errors.push(Error::too_long(at, name::LABEL_BYTES_MAX));
    }
    let complaints = name::dns1123_subdomain(&driver.to_lowercase());
    errors.extend(check::invalid(at, driver, complaints));
    errors
}

fn check_csi_secret(secret: &SecretReference, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    match secret.name.as_deref().unwrap_or_default() {
        "" => errors.push(Error::required(&at.child("name"), "")),
        name => errors.extend(check::dns_subdomain(&at.child("name"), name)),
    }
    match secret.namespace.as_deref().unwrap_or_default() {
        "" => errors.push(Error::required(&at.child("namespace"), "")),
        namespace => errors.extend(check::dns_label(&at.child("namespace"), namespace)),
    }
    errors
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => value.is_null(),
    }
}

fn text<'a>(fields: &'a Value, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}
