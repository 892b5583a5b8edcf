//! The environment of a container, as its specification and the cluster make it. Pure.

mod field;
mod file;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVarSource, Pod, Secret, Service};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

pub(crate) use self::field::{pod_field, resource_field};

/// What a container's environment is made of, besides its specification.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    pub(crate) config_maps: BTreeMap<String, ConfigMap>,
    pub(crate) secrets: BTreeMap<String, Secret>,
    /// Those of the pod's namespace, and the one of the API server.
    pub(crate) services: Vec<Service>,
    /// Where the API server really is, where Services have no addresses that lead anywhere.
    pub(crate) server: Option<(String, u16)>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) host: Option<IpAddr>,
    /// What is in files of volumes, by volume and path; why it is not known, where it is not.
    pub(crate) files: BTreeMap<(String, String), Result<String, String>>,
    /// What there is of each resource, for containers that may use all of it.
    pub(crate) capacity: BTreeMap<String, Quantity>,
}

/// What a container wants, and is not there. It is looked for again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Missing {
    #[error("configmap {0:?} not found")]
    ConfigMap(String),
    #[error("secret {0:?} not found")]
    Secret(String),
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    Key { kind: &'static str, namespace: String, name: String, key: String },
    #[error("unsupported fieldPath: {0}")]
    Field(String),
    #[error("couldn't parse env file: {0}")]
    File(String),
    #[error("environment variable key {key:?} not found in file {path:?}")]
    Variable { key: String, path: String },
}

/// The files of volumes that a container's environment is made of: volumes and paths in them.
pub(crate) fn files(container: &Container) -> impl Iterator<Item = (String, String)> {
    let sources = container.env.iter().flatten().filter_map(|it| it.value_from.as_ref());
    let files = sources.filter_map(|source| source.file_key_ref.as_ref());
    files.map(|file| (file.volume_name.clone(), file.path.clone()))
}

/// The names of the ConfigMaps and Secrets that a container's environment is made of.
pub(crate) fn references(container: &Container) -> (Vec<String>, Vec<String>) {
    let (mut config_maps, mut secrets) = (Vec::new(), Vec::new());
    for from in container.env_from.iter().flatten() {
        config_maps.extend(from.config_map_ref.iter().map(|it| it.name.clone()));
        secrets.extend(from.secret_ref.iter().map(|it| it.name.clone()));
    }
    for source in container.env.iter().flatten().filter_map(|it| it.value_from.as_ref()) {
        config_maps.extend(source.config_map_key_ref.iter().map(|it| it.name.clone()));
        secrets.extend(source.secret_key_ref.iter().map(|it| it.name.clone()));
    }
    (config_maps, secrets)
}

/// The environment, in the order of names.
pub(crate) fn environment(
    pod: &Pod,
    container: &Container,
    sources: &Sources,
) -> Result<BTreeMap<String, String>, Missing> {
    let mut own = BTreeMap::new();
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        if let Some(reference) = &from.config_map_ref {
            match sources.config_maps.get(&reference.name) {
                Some(map) => own.extend(
                    map.data
                        .iter()
                        .flatten()
                        .map(|(key, it)| (format!("{prefix}{key}"), it.clone())),
                ),
                None if reference.optional == Some(true) => {}
                None => return Err(Missing::ConfigMap(reference.name.clone())),
            }
        }
        if let Some(reference) = &from.secret_ref {
            match sources.secrets.get(&reference.name) {
                Some(secret) => own.extend(secret.data.iter().flatten().map(|(key, it)| {
                    (format!("{prefix}{key}"), String::from_utf8_lossy(&it.0).into_owned())
                })),
                None if reference.optional == Some(true) => {}
                None => return Err(Missing::Secret(reference.name.clone())),
            }
        }
    }
    let links = links(pod, sources);
    for variable in container.env.iter().flatten() {
        let value = match &variable.value_from {
            None => {
                let text = variable.value.as_deref().unwrap_or_default();
                Some(expand(text, |name| own.get(name).or_else(|| links.get(name)).cloned()))
            }
            Some(source) => value_from(pod, container, source, sources)?,
        };
        if let Some(value) = value {
            own.insert(variable.name.clone(), value);
        }
    }
    for (name, value) in links {
        own.entry(name).or_insert(value);
    }
    Ok(own)
}

/// The value of a variable that comes from elsewhere; none if it may be missing and is.
fn value_from(
    pod: &Pod,
    container: &Container,
    source: &EnvVarSource,
    sources: &Sources,
) -> Result<Option<String>, Missing> {
    let namespace = || pod.metadata.namespace.clone().unwrap_or_default();
    if let Some(field) = &source.field_ref {
        return pod_field(pod, &field.field_path, sources).map(Some);
    }
    if let Some(field) = &source.resource_field_ref {
        return Ok(Some(resource_field(pod, container, field, sources)));
    }
    if let Some(reference) = &source.config_map_key_ref {
        let is_optional = reference.optional == Some(true);
        let Some(map) = sources.config_maps.get(&reference.name) else {
            return optional(is_optional, Missing::ConfigMap(reference.name.clone()));
        };
        let value = map.data.as_ref().and_then(|data| data.get(&reference.key));
        let missing = || Missing::Key {
            kind: "ConfigMap",
            namespace: namespace(),
            name: reference.name.clone(),
            key: reference.key.clone(),
        };
        return value.map_or_else(|| optional(is_optional, missing()), |it| Ok(Some(it.clone())));
    }
    if let Some(reference) = &source.secret_key_ref {
        let is_optional = reference.optional == Some(true);
        let Some(secret) = sources.secrets.get(&reference.name) else {
            return optional(is_optional, Missing::Secret(reference.name.clone()));
        };
        let value = secret.data.as_ref().and_then(|data| data.get(&reference.key));
        let missing = || Missing::Key {
            kind: "Secret",
            namespace: namespace(),
            name: reference.name.clone(),
            key: reference.key.clone(),
        };
        return value.map_or_else(
            || optional(is_optional, missing()),
            |it| Ok(Some(String::from_utf8_lossy(&it.0).into_owned())),
        );
    }
    if let Some(reference) = &source.file_key_ref {
        let (volume, path) = (&reference.volume_name, &reference.path);
        let text = match sources.files.get(&(volume.clone(), path.clone())) {
            Some(Ok(text)) => text,
            Some(Err(why)) => return Err(Missing::File(why.clone())),
            None => return Err(Missing::File(format!("volume {volume:?} has no files here"))),
        };
        let value = file::variable(text, &reference.key).map_err(Missing::File)?;
        let missing = Missing::Variable { key: reference.key.clone(), path: path.clone() };
        return match value {
            Some(value) => Ok(Some(value)),
            None => optional(reference.optional == Some(true), missing),
        };
    }
    Ok(None)
}

fn optional(is_optional: bool, missing: Missing) -> Result<Option<String>, Missing> {
    if is_optional { Ok(None) } else { Err(missing) }
}

/// The variables by which a container finds Services.
fn links(pod: &Pod, sources: &Sources) -> BTreeMap<String, String> {
    let is_linked = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    let mut links = BTreeMap::new();
    for service in &sources.services {
        let name = service.metadata.name.as_deref().unwrap_or_default();
        let is_server =
            name == "kubernetes" && service.metadata.namespace.as_deref() == Some("default");
        let is_near = service.metadata.namespace == pod.metadata.namespace;
        let Some(spec) = &service.spec else { continue };
        let address = spec.cluster_ip.as_deref().filter(|ip| !matches!(*ip, "" | "None"));
        if let Some(address) = address.filter(|_| is_server || is_near && is_linked) {
            let mut ports = spec.ports.clone().unwrap_or_default();
            let mut address = address.to_owned();
            if let (true, Some((host, port))) = (is_server, &sources.server) {
                address.clone_from(host);
                ports.truncate(1);
                ports.iter_mut().for_each(|it| it.port = (*port).into());
            }
            link(&mut links, name, &address, &ports);
        }
    }
    links
}

fn link(
    links: &mut BTreeMap<String, String>,
    service: &str,
    address: &str,
    ports: &[k8s_openapi::api::core::v1::ServicePort],
) {
    let name = variable(service);
    let host = match address.contains(':') {
        true => format!("[{address}]"),
        false => address.to_owned(),
    };
    links.insert(format!("{name}_SERVICE_HOST"), address.to_owned());
    for (index, port) in ports.iter().enumerate() {
        let number = port.port;
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let place = format!("{}://{host}:{number}", protocol.to_lowercase());
        if index == 0 {
            links.insert(format!("{name}_SERVICE_PORT"), number.to_string());
            links.insert(format!("{name}_PORT"), place.clone());
        }
        if let Some(own) = &port.name {
            links.insert(format!("{name}_SERVICE_PORT_{}", variable(own)), number.to_string());
        }
        let prefix = format!("{name}_PORT_{number}_{}", protocol.to_uppercase());
        links.insert(format!("{prefix}_PROTO"), protocol.to_lowercase());
        links.insert(format!("{prefix}_PORT"), number.to_string());
        links.insert(format!("{prefix}_ADDR"), address.to_owned());
        links.insert(prefix, place);
    }
}

fn variable(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

/// Puts values where a text has `$(NAME)`. What is not known stays as it is; `$$` is `$`.
pub(crate) fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            expanded.push('$');
            rest = after;
            continue;
        }
        let name = rest.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        match name {
            Some((name, after)) => {
                match value(name) {
                    Some(value) => expanded.push_str(&value),
                    None => expanded.extend(["$(", name, ")"]),
                }
                rest = after;
            }
            None => expanded.push('$'),
        }
    }
    expanded.push_str(rest);
    expanded
}

/// Puts values where a path has `$(NAME)`.
///
/// # Errors
/// Which of them have none: a path must not end up elsewhere.
pub(crate) fn expand_all(
    text: &str,
    variables: &BTreeMap<String, String>,
) -> Result<String, String> {
    let missing = RefCell::new(BTreeSet::new());
    let expanded = expand(text, |name| {
        let value = variables.get(name).filter(|value| !value.is_empty()).cloned();
        if value.is_none() {
            missing.borrow_mut().insert(name.to_owned());
        }
        value
    });
    let missing: Vec<String> = missing.into_inner().into_iter().collect();
    match missing.is_empty() {
        true => Ok(expanded),
        false => Err(format!("missing value for {}", missing.join(", "))),
    }
}
