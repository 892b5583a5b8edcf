//! The environment of a container, and references to fields of its pod.

use k8s_openapi::api::core::v1::{
    EnvFromSource, EnvVar, EnvVarSource, FileKeySelector, ObjectFieldSelector,
    ResourceFieldSelector,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::quantity::Quantity;

use super::file;
use super::volume::Volumes;
use crate::kinds::check::{self, text};

/// Fields that a variable may hold.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields that there are to be referred to, though not from everywhere.
const KNOWN_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const CPU_DIVISORS: &[&str] = &["1m", "1"];
const BYTE_DIVISORS: &[&str] =
    &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Who refers to a resource of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    /// The container itself.
    Container,
    /// A volume, which must say of which container.
    Volume,
}

pub(super) fn validate(variables: &[EnvVar], path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, variable) in variables.iter().enumerate() {
        let path = path.index(index);
        let name_path = path.child("name");
        match variable.name.as_str() {
            "" => errors.push(Error::required(&name_path, "")),
            name => {
                errors.extend(check::invalid(&name_path, name, name::relaxed_env_var_name(name)));
            }
        }
        if let Some(source) = &variable.value_from {
            let path = path.child("valueFrom");
            errors.extend(validate_source(source, text(&variable.value), &path));
        }
    }
    errors
}

pub(super) fn validate_from(sources: &[EnvFromSource], path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let item_path = path.index(index);
        let prefix = text(&source.prefix);
        if !prefix.is_empty() {
            errors.extend(check::invalid(
                &item_path.child("prefix"),
                prefix,
                name::relaxed_env_var_name(prefix),
            ));
        }
        let map = source.config_map_ref.as_ref().map(|map| ("configMapRef", &map.name));
        let secret = source.secret_ref.as_ref().map(|secret| ("secretRef", &secret.name));
        for (member, name) in [map, secret].into_iter().flatten() {
            let path = item_path.child(member);
            let path = path.child("name");
            match name.as_str() {
                "" => errors.push(Error::required(&path, "")),
                // The name may be made from a prefix, so it may end in a dash.
                name => errors.extend(check::invalid(
                    &path,
                    name,
                    name::Rule::Subdomain.check_prefix(name),
                )),
            }
        }
        match (map, secret) {
            (None, None) => errors.push(Error::invalid(
                path,
                "",
                "must specify one of: `configMapRef` or `secretRef`",
            )),
            (Some(_), Some(_)) => errors.push(Error::invalid(
                path,
                "",
                "may not have more than one field specified at a time",
            )),
            _ => {}
        }
    }
    errors
}

/// Files of variables can only be in volumes that are there and that the pod fills itself.
pub(super) fn validate_files(
    variables: &[EnvVar],
    volumes: &Volumes<'_>,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, variable) in variables.iter().enumerate() {
        let source = variable.value_from.as_ref().and_then(|source| source.file_key_ref.as_ref());
        let Some(FileKeySelector { volume_name, .. }) = source else { continue };
        let path = path.index(index);
        let path = path.child("valueFrom");
        let path = path.child("fileKeyRef");
        let path = path.child("volumeName");
        match volumes.get(volume_name.as_str()) {
            None => errors.push(Error::not_found(&path, volume_name.as_str())),
            Some(volume) if volume.empty_dir.is_none() => errors.push(Error::invalid(
                &path,
                volume_name.as_str(),
                "referenced volume must be of type emptyDir",
            )),
            Some(_) => {}
        }
    }
    errors
}

fn validate_source(source: &EnvVarSource, value: &str, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut count = 0;
    if let Some(field) = &source.field_ref {
        count += 1;
        errors.extend(field_ref(field, FIELDS, &path.child("fieldRef")));
    }
    if let Some(resource) = &source.resource_field_ref {
        count += 1;
        let path = path.child("resourceFieldRef");
        errors.extend(resource_ref(resource, Asker::Container, &path));
    }
    if let Some(map) = &source.config_map_key_ref {
        count += 1;
        errors.extend(key_ref(&map.name, &map.key, &path.child("configMapKeyRef")));
    }
    if let Some(secret) = &source.secret_key_ref {
        count += 1;
        errors.extend(key_ref(&secret.name, &secret.key, &path.child("secretKeyRef")));
    }
    if let Some(file) = &source.file_key_ref {
        count += 1;
        errors.extend(file_ref(file, &path.child("fileKeyRef")));
    }
    let problem = match count {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`"
        }
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return errors,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(Error::invalid(path, "", problem));
    errors
}

/// A reference to a field of the pod, which must be one of these.
pub(super) fn field_ref(
    field: &ObjectFieldSelector,
    supported: &[&str],
    path: &Path<'_>,
) -> Vec<Error> {
    let version = text(&field.api_version);
    let field_path = path.child("fieldPath");
    let name = field.field_path.as_str();
    if version.is_empty() {
        return vec![Error::required(&path.child("apiVersion"), "")];
    }
    if name.is_empty() {
        return vec![Error::required(&field_path, "")];
    }
    let unconvertible = |why: String| {
        vec![Error::invalid(&field_path, name, format!("error converting fieldPath: {why}"))]
    };
    if version != "v1" {
        return unconvertible(format!("unsupported pod version: {version}"));
    }
    match subscripted(name) {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            check::qualified_name(path, &key)
        }
        Some(("metadata.labels", key)) => check::qualified_name(path, key),
        Some(_) => unconvertible(format!("field label does not support subscript: {name}")),
        None => {
            // The node once was the host.
            let name = if name == "spec.host" { "spec.nodeName" } else { name };
            if !KNOWN_FIELDS.contains(&name) {
                return unconvertible(format!("field label not supported: {name}"));
            }
            check::one_of(&field_path, name, supported).into_iter().collect()
        }
    }
}

/// `metadata.labels['key']`.
fn subscripted(name: &str) -> Option<(&str, &str)> {
    let (field, key) = name.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// A reference to a resource of a container.
pub(super) fn resource_ref(
    reference: &ResourceFieldSelector,
    asker: Asker,
    path: &Path<'_>,
) -> Vec<Error> {
    let resource = reference.resource.as_str();
    let is_huge_pages = ["requests.hugepages-", "limits.hugepages-"]
        .iter()
        .any(|prefix| resource.starts_with(prefix));
    let mut errors = Vec::new();
    if asker == Asker::Volume && text(&reference.container_name).is_empty() {
        errors.push(Error::required(&path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(Error::required(&path.child("resource"), ""));
    } else if !is_huge_pages {
        errors.extend(check::one_of(&path.child("resource"), resource, RESOURCES));
    }
    let divisor = reference.divisor.as_ref().map(check::quantity);
    if let Some(divisor) = divisor.filter(|divisor| !divisor.is_zero()) {
        errors.extend(validate_divisor(resource, &divisor, is_huge_pages, path));
    }
    errors
}

fn validate_divisor(
    resource: &str,
    divisor: &Quantity,
    is_huge_pages: bool,
    path: &Path<'_>,
) -> Option<Error> {
    let (supported, what) = match resource.split_once('.') {
        Some(("limits" | "requests", "cpu")) => (CPU_DIVISORS, "cpu"),
        Some(("limits" | "requests", "memory")) => (BYTE_DIVISORS, "memory"),
        Some(("limits" | "requests", "ephemeral-storage")) => {
            (BYTE_DIVISORS, "local ephemeral storage")
        }
        _ if is_huge_pages => (BYTE_DIVISORS, "hugepages"),
        _ => return None,
    };
    if supported.contains(&divisor.to_string().as_str()) {
        return None;
    }
    let values = match supported {
        CPU_DIVISORS => CPU_DIVISORS.join(" and "),
        _ => supported.join(", "),
    };
    let problem = format!("only divisor's values {values} are supported with the {what} resource");
    Some(Error::invalid(&path.child("divisor"), resource, problem))
}

fn key_ref(name: &str, key: &str, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    errors.extend(check::dns_subdomain(&path.child("name"), name));
    let key_path = path.child("key");
    match key {
        "" => errors.push(Error::required(&key_path, "")),
        key => errors.extend(check::invalid(&key_path, key, name::config_map_key(key))),
    }
    errors
}

fn file_ref(reference: &FileKeySelector, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let key_path = path.child("key");
    match reference.key.as_str() {
        "" => errors.push(Error::required(&key_path, "")),
        key => errors.extend(check::invalid(&key_path, key, name::relaxed_env_var_name(key))),
    }
    let volume_path = path.child("volumeName");
    match reference.volume_name.as_str() {
        "" => errors.push(Error::required(&volume_path, "")),
        volume => errors.extend(check::dns_label(&volume_path, volume)),
    }
    let file_path = path.child("path");
    match reference.path.as_str() {
        "" => errors.push(Error::required(&file_path, "")),
        file => errors.extend(file::without_backsteps(&file_path, file)),
    }
    errors
}
