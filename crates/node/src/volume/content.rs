//! What is in the volumes that a node fills.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{
    ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret, ServiceAccountTokenProjection,
    Volume, VolumeMount,
};
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::resources::MEMORY;
use kubewright_apimachinery::resources::pod::{self, Side};
use serde_json::Value;

use super::{File, Files};
use crate::environment::{Missing, Sources, pod_field, resource_field};

const MODE: i32 = 0o644;

/// What a volume is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Contents {
    /// A directory of the pod's own.
    Empty { medium: String },
    /// A directory that the node fills.
    Files(Files),
    /// Something of the machine.
    Host { path: String, type_: String },
    /// What a claim is bound to.
    Claim {
        name: String,
        /// It was made for this pod, and is deleted with it.
        is_own: bool,
    },
}

/// Why a volume cannot be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ContentError {
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error("references non-existent config key: {0}")]
    Key(String),
    #[error("volumes of this kind are not supported by this runtime")]
    Unsupported,
}

/// Whether no container may write in a volume of a pod, whatever it asks for: what the node fills is
/// the node's, and a claim can be asked for so.
pub(crate) fn is_read_only(pod: &Pod, name: &str) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let volume = volumes.into_iter().flatten().find(|volume| volume.name == name);
    volume.is_some_and(|volume| {
        let claim = volume.persistent_volume_claim.as_ref();
        volume.config_map.is_some()
            || volume.secret.is_some()
            || volume.projected.is_some()
            || volume.downward_api.is_some()
            || claim.is_some_and(|claim| claim.read_only == Some(true))
    })
}

/// The paths in a volume at which containers of a pod have other volumes, none of which is in another.
pub(crate) fn nested(pod: &Pod, name: &str) -> Vec<PathBuf> {
    let spec = pod.spec.as_ref();
    let main = spec.into_iter().flat_map(|spec| &spec.containers);
    let first = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let mut found = BTreeSet::new();
    for container in main.chain(first) {
        let mounts: Vec<&VolumeMount> = container.volume_mounts.iter().flatten().collect();
        let is_part = |mount: &VolumeMount| {
            let parts = [&mount.sub_path, &mount.sub_path_expr];
            parts.into_iter().flatten().any(|part| !part.is_empty())
        };
        let own = mounts.iter().filter(|mount| mount.name == name && !is_part(mount));
        for outer in own.map(|mount| Path::new(&mount.mount_path)) {
            let inside =
                mounts.iter().filter_map(|it| Path::new(&it.mount_path).strip_prefix(outer).ok());
            let is_plain = |path: &&Path| {
                path.components().next().is_some()
                    && path.components().all(|part| matches!(part, Component::Normal(_)))
            };
            let inside: BTreeSet<&Path> = inside.filter(is_plain).collect();
            let is_outermost =
                |path: &Path| !path.ancestors().skip(1).any(|other| inside.contains(other));
            let outermost = inside.iter().filter(|path| is_outermost(path));
            found.extend(outermost.map(|path| path.to_path_buf()));
        }
    }
    found.into_iter().collect()
}

/// So much a volume in memory may hold: no more than the node has, than its pod may use, and than it
/// says itself.
pub(crate) fn memory_bytes(pod: &Pod, volume: &Volume, node: i64) -> i64 {
    let bytes = |quantity: &k8s_openapi::apimachinery::pkg::api::resource::Quantity| {
        Quantity::parse(&quantity.0).ok().map(|quantity| quantity.value())
    };
    let own = volume.empty_dir.as_ref().and_then(|empty| bytes(empty.size_limit.as_ref()?));
    let limits = [pod_memory_bytes(pod), own];
    limits.into_iter().flatten().filter(|limit| *limit > 0).fold(node, i64::min)
}

/// What a pod is held to as a whole, as kubelet has it for its control group: none if one of its
/// containers, also of those that only run first, may use what there is.
fn pod_memory_bytes(pod: &Pod) -> Option<i64> {
    let pod = serde_json::to_value(pod).ok()?;
    let spec = &pod["spec"];
    let own = |container: &Value| Side::Limits.of(container).get(MEMORY).map_or(0, Quantity::value);
    let items = |list: &str| spec[list].as_array().map(Vec::as_slice).unwrap_or_default();
    // One that runs first is held to what those before it are that run on, too.
    let mut lasting = 0;
    let is_limited_at_first = |container: &Value| {
        let own = own(container);
        if container["restartPolicy"] == "Always" {
            lasting += own;
        }
        own + lasting > 0
    };
    let is_limited = own(spec) > 0
        || (items("containers").iter().all(|container| own(container) > 0)
            && items("initContainers").iter().all(is_limited_at_first));
    let limits = pod::limits(&pod, |container| Side::Limits.of(container));
    limits.get(MEMORY).map(Quantity::value).filter(|bytes| is_limited && *bytes > 0)
}

/// # Errors
/// If a mount is to be read-only with all that is mounted in it, which no runtime here sees to.
pub(crate) fn refuse_recursive(mount: &VolumeMount) -> Result<(), String> {
    let name = &mount.name;
    let refused = |why: &str| {
        Err(format!("volume {name:?} requested recursive read-only mode, but it is {why}"))
    };
    let mode = mount.recursive_read_only.as_deref().unwrap_or("Disabled");
    let propagation = mount.mount_propagation.as_deref().unwrap_or("None");
    match mode {
        "Disabled" => Ok(()),
        _ if mount.read_only != Some(true) => refused("not read-only"),
        _ if propagation != "None" => {
            refused(&format!("not compatible with propagation {propagation:?}"))
        }
        "IfPossible" => Ok(()),
        "Enabled" => refused("not supported by the runtime"),
        other => Err(format!("unknown recursive read-only mode {other:?}")),
    }
}

/// The names of the ConfigMaps and Secrets that a pod's volumes are made of.
pub(crate) fn references(volumes: &[Volume]) -> (Vec<String>, Vec<String>) {
    let (mut config_maps, mut secrets) = (Vec::new(), Vec::new());
    for volume in volumes {
        config_maps.extend(volume.config_map.iter().map(|it| it.name.clone()));
        secrets.extend(volume.secret.iter().filter_map(|it| it.secret_name.clone()));
        let projected = volume.projected.iter().flat_map(|it| it.sources.iter().flatten());
        for source in projected {
            config_maps.extend(source.config_map.iter().map(|it| it.name.clone()));
            secrets.extend(source.secret.iter().map(|it| it.name.clone()));
        }
    }
    (config_maps, secrets)
}

/// The tokens that a pod's volumes hold, each with the key by which [`content`] finds it.
pub(crate) fn tokens(volumes: &[Volume]) -> Vec<(String, ServiceAccountTokenProjection)> {
    let mut tokens = Vec::new();
    for volume in volumes {
        let projected = volume.projected.iter().flat_map(|it| it.sources.iter().flatten());
        for token in projected.filter_map(|source| source.service_account_token.as_ref()) {
            tokens.push((format!("{}/{}", volume.name, token.path), token.clone()));
        }
    }
    tokens
}

/// What a volume holds. `tokens` has those that were issued.
pub(crate) fn content(
    pod: &Pod,
    volume: &Volume,
    sources: &Sources,
    tokens: &BTreeMap<String, String>,
) -> Result<Contents, ContentError> {
    if let Some(empty) = &volume.empty_dir {
        return Ok(Contents::Empty { medium: empty.medium.clone().unwrap_or_default() });
    }
    if volume.ephemeral.is_some() {
        // As the controller calls the claim that it makes for it.
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        let name = format!("{pod}-{}", volume.name);
        return Ok(Contents::Claim { name, is_own: true });
    }
    if let Some(host) = &volume.host_path {
        let type_ = host.type_.clone().unwrap_or_default();
        return Ok(Contents::Host { path: host.path.clone(), type_ });
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        return Ok(Contents::Claim { name: claim.claim_name.clone(), is_own: false });
    }
    let mut files = Files::new();
    if let Some(source) = &volume.config_map {
        let items = Items::new(source.items.as_deref(), source.default_mode, source.optional);
        items.config_map(&mut files, &source.name, sources)?;
    } else if let Some(source) = &volume.secret {
        let items = Items::new(source.items.as_deref(), source.default_mode, source.optional);
        let name = source.secret_name.as_deref().unwrap_or_default();
        items.secret(&mut files, name, sources)?;
    } else if let Some(source) = &volume.downward_api {
        let mode = source.default_mode;
        downward(&mut files, pod, source.items.as_deref(), mode, sources)?;
    } else if let Some(projected) = &volume.projected {
        let mode = projected.default_mode;
        for source in projected.sources.iter().flatten() {
            if let Some(source) = &source.config_map {
                let items = Items::new(source.items.as_deref(), mode, source.optional);
                items.config_map(&mut files, &source.name, sources)?;
            }
            if let Some(source) = &source.secret {
                let items = Items::new(source.items.as_deref(), mode, source.optional);
                items.secret(&mut files, &source.name, sources)?;
            }
            if let Some(source) = &source.downward_api {
                downward(&mut files, pod, source.items.as_deref(), mode, sources)?;
            }
            if let Some(token) = &source.service_account_token {
                let key = format!("{}/{}", volume.name, token.path);
                let bytes = tokens.get(&key).cloned().unwrap_or_default().into_bytes();
                files.insert(token.path.clone(), self::token(pod, bytes, mode));
            }
        }
    } else {
        return Err(ContentError::Unsupported);
    }
    Ok(Contents::Files(files))
}

/// Which keys of an object become which files.
struct Items<'a> {
    items: Option<&'a [KeyToPath]>,
    mode: Option<i32>,
    is_optional: bool,
}

impl<'a> Items<'a> {
    fn new(items: Option<&'a [KeyToPath]>, mode: Option<i32>, optional: Option<bool>) -> Self {
        let items = items.filter(|items| !items.is_empty());
        Items { items, mode, is_optional: optional == Some(true) }
    }

    fn config_map(
        &self,
        files: &mut Files,
        name: &str,
        sources: &Sources,
    ) -> Result<(), ContentError> {
        let Some(map) = sources.config_maps.get(name) else {
            return self.absent(Missing::ConfigMap(name.to_owned()));
        };
        self.select(files, &bytes_of_map(map))
    }

    fn secret(&self, files: &mut Files, name: &str, sources: &Sources) -> Result<(), ContentError> {
        let Some(secret) = sources.secrets.get(name) else {
            return self.absent(Missing::Secret(name.to_owned()));
        };
        self.select(files, &bytes_of_secret(secret))
    }

    fn absent(&self, missing: Missing) -> Result<(), ContentError> {
        if self.is_optional { Ok(()) } else { Err(missing.into()) }
    }

    fn select(
        &self,
        files: &mut Files,
        data: &BTreeMap<String, Vec<u8>>,
    ) -> Result<(), ContentError> {
        let Some(items) = self.items else {
            let all = data.iter();
            files.extend(all.map(|(key, it)| (key.clone(), file(it.clone(), None, self.mode))));
            return Ok(());
        };
        for item in items {
            match data.get(&item.key) {
                Some(bytes) => {
                    files.insert(item.path.clone(), file(bytes.clone(), item.mode, self.mode));
                }
                None if self.is_optional => {}
                None => return Err(ContentError::Key(item.key.clone())),
            }
        }
        Ok(())
    }
}

fn bytes_of_map(map: &ConfigMap) -> BTreeMap<String, Vec<u8>> {
    let text = map.data.iter().flatten();
    let text = text.map(|(key, value)| (key.clone(), value.clone().into_bytes()));
    let binary = map.binary_data.iter().flatten();
    text.chain(binary.map(|(key, value)| (key.clone(), value.0.clone()))).collect()
}

fn bytes_of_secret(secret: &Secret) -> BTreeMap<String, Vec<u8>> {
    let data = secret.data.iter().flatten();
    data.map(|(key, value)| (key.clone(), value.0.clone())).collect()
}

fn downward(
    files: &mut Files,
    pod: &Pod,
    items: Option<&[DownwardAPIVolumeFile]>,
    mode: Option<i32>,
    sources: &Sources,
) -> Result<(), ContentError> {
    for item in items.into_iter().flatten() {
        let mut text = String::new();
        if let Some(field) = &item.field_ref {
            text = pod_field(pod, &field.field_path, sources)?;
        } else if let Some(field) = &item.resource_field_ref {
            // It names a container: there is none that it could mean by itself.
            text = resource_field(pod, &Default::default(), field, sources);
        }
        files.insert(item.path.clone(), file(text.into_bytes(), item.mode, mode));
    }
    Ok(())
}

fn file(bytes: Vec<u8>, own: Option<i32>, otherwise: Option<i32>) -> File {
    let mode = own.or(otherwise).unwrap_or(MODE);
    File { bytes, mode: u32::try_from(mode).unwrap_or(0o644), owner: None }
}

/// A token is for nobody but whom the pod runs as, where all of its containers say that it is one
/// user, or but its group, where it has one: what a group may is added when files are given to it.
fn token(pod: &Pod, bytes: Vec<u8>, mode: Option<i32>) -> File {
    let owner = user(pod);
    let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let has_group = context.is_some_and(|context| context.fs_group.is_some());
    let file = file(bytes, None, mode);
    match owner.is_some() || has_group {
        true => File { mode: 0o600, owner, ..file },
        false => file,
    }
}

/// The user that all containers of a pod run as, if they all say so.
fn user(pod: &Pod) -> Option<u32> {
    let spec = pod.spec.as_ref()?;
    let of_pod = spec.security_context.as_ref().and_then(|context| context.run_as_user);
    let main = spec.init_containers.iter().flatten().chain(&spec.containers);
    let contexts = main.map(|container| container.security_context.as_ref());
    let ephemeral = spec.ephemeral_containers.iter().flatten();
    let contexts = contexts.chain(ephemeral.map(|container| container.security_context.as_ref()));
    let mut users = contexts.map(|own| own.and_then(|own| own.run_as_user).or(of_pod));
    let first = users.next()??;
    let is_one = users.all(|user| user == Some(first));
    is_one.then(|| u32::try_from(first).ok())?
}
