//! A container, as the runtime is asked for it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{Container, Pod};

use super::api::{
    ContainerConfig, ContainerMetadata, Image, ImageSpec, KeyValue, LinuxContainerConfig, Mount,
    MountPropagation,
};
use super::sandbox::pod_labels;
use super::{resources, security};
use crate::environment::{expand, expand_all};
use crate::runtime::Order;
use crate::volume::{is_read_only, refuse_recursive};

pub(super) const NAME: &str = "io.kubernetes.container.name";
const HASH: &str = "io.kubernetes.container.hash";
const RESTARTS: &str = "io.kubernetes.container.restartCount";
pub(super) const MESSAGE_PATH: &str = "io.kubernetes.container.terminationMessagePath";
pub(super) const MESSAGE_POLICY: &str = "io.kubernetes.container.terminationMessagePolicy";
const PRE_STOP: &str = "io.kubernetes.container.preStopHandler";
const PORTS: &str = "io.kubernetes.container.ports";
const GRACE: &str = "io.kubernetes.pod.terminationGracePeriod";
const DELETION_GRACE: &str = "io.kubernetes.pod.deletionGracePeriod";

/// What a container is made of, besides its specification.
pub(super) struct Parts {
    pub(super) owner: String,
    pub(super) image: Image,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) mounts: Vec<Mount>,
    /// The container whose processes it shares.
    pub(super) target: Option<String>,
    pub(super) memory_bytes: u64,
    /// Where the node's own profiles of seccomp are.
    pub(super) profiles: PathBuf,
}

/// # Errors
/// What of its specification cannot be.
pub(super) fn config(order: &Order, parts: Parts) -> Result<ContainerConfig, String> {
    let Order { pod, container, number, .. } = order;
    let Parts { owner, image, variables, mounts, target, memory_bytes, profiles } = parts;
    let security_context = security::of_container(pod, container, &image, target, &profiles)?;
    let known = |name: &str| variables.get(name).cloned();
    let expanded = |words: &Option<Vec<String>>| -> Vec<String> {
        words.iter().flatten().map(|word| expand(word, known)).collect()
    };
    let mut labels = pod_labels(pod, &owner);
    labels.insert(NAME.to_owned(), container.name.clone());
    Ok(ContainerConfig {
        metadata: Some(ContainerMetadata { name: container.name.clone(), attempt: *number }),
        image: Some(ImageSpec {
            image: image.id,
            user_specified_image: container.image.clone().unwrap_or_default(),
            ..ImageSpec::default()
        }),
        command: expanded(&container.command),
        args: expanded(&container.args),
        working_dir: container.working_dir.clone().unwrap_or_default(),
        envs: variables.iter().map(|(key, value)| variable(key, value)).collect(),
        mounts,
        labels,
        annotations: annotations(order),
        log_path: log_path(&container.name, *number),
        stdin: container.stdin == Some(true),
        stdin_once: container.stdin_once == Some(true),
        tty: container.tty == Some(true),
        linux: Some(LinuxContainerConfig {
            resources: Some(resources::limits(pod, container, memory_bytes)),
            security_context: Some(security_context),
        }),
    })
}

/// Where below a pod's directory of logs a container writes.
pub(super) fn log_path(container: &str, number: u32) -> String {
    format!("{container}/{number}.log")
}

fn variable(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: value.to_owned() }
}

/// What kubelet writes of a container, for those who look at it without the API.
fn annotations(order: &Order) -> HashMap<String, String> {
    let Order { pod, container, number, .. } = order;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut annotations = HashMap::from([
        (HASH.to_owned(), format!("{:x}", hash(container))),
        (RESTARTS.to_owned(), number.to_string()),
        (MESSAGE_PATH.to_owned(), text(&container.termination_message_path)),
        (MESSAGE_POLICY.to_owned(), text(&container.termination_message_policy)),
    ]);
    if let Some(grace) = pod.metadata.deletion_grace_period_seconds {
        annotations.insert(DELETION_GRACE.to_owned(), grace.to_string());
    }
    let spec = pod.spec.as_ref();
    if let Some(grace) = spec.and_then(|spec| spec.termination_grace_period_seconds) {
        annotations.insert(GRACE.to_owned(), grace.to_string());
    }
    let json = |value: serde_json::Result<String>| value.expect("a part of a pod is JSON");
    let pre_stop = container.lifecycle.as_ref().and_then(|hooks| hooks.pre_stop.as_ref());
    if let Some(hook) = pre_stop {
        annotations.insert(PRE_STOP.to_owned(), json(serde_json::to_string(hook)));
    }
    if let Some(ports) = container.ports.as_ref().filter(|ports| !ports.is_empty()) {
        annotations.insert(PORTS.to_owned(), json(serde_json::to_string(ports)));
    }
    annotations
}

/// Tells one specification from another (FNV-1a).
fn hash(container: &Container) -> u32 {
    let bytes = serde_json::to_vec(container).expect("a container is JSON");
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Where volumes and files of the node are in a container. `volume` says where each volume is.
///
/// # Errors
/// Which volume cannot be found in which container.
pub(super) fn mounts(
    pod: &Pod,
    container: &Container,
    variables: &BTreeMap<String, String>,
    mut volume: impl FnMut(&str, &str) -> Result<PathBuf, String>,
) -> Result<Vec<Mount>, String> {
    let mounts = container.volume_mounts.iter().flatten().map(|mount| {
        refuse_recursive(mount)?;
        let sub_path = match mount.sub_path_expr.as_deref().filter(|it| !it.is_empty()) {
            Some(expression) => expand_all(expression, variables)?,
            None => mount.sub_path.clone().unwrap_or_default(),
        };
        let host_path = volume(&mount.name, &sub_path)?;
        let is_absolute = mount.mount_path.starts_with('/');
        let container_path =
            if is_absolute { mount.mount_path.clone() } else { format!("/{}", mount.mount_path) };
        let propagation = match mount.mount_propagation.as_deref() {
            Some("HostToContainer") => MountPropagation::PropagationHostToContainer,
            Some("Bidirectional") => MountPropagation::PropagationBidirectional,
            _ => MountPropagation::PropagationPrivate,
        };
        Ok(Mount {
            container_path,
            host_path: host_path.to_string_lossy().into_owned(),
            readonly: mount.read_only == Some(true) || is_read_only(pod, &mount.name),
            selinux_relabel: false,
            propagation: propagation.into(),
        })
    });
    mounts.collect()
}

/// A file of the node in a container.
pub(super) fn file(host: &std::path::Path, path: &str) -> Mount {
    Mount {
        container_path: path.to_owned(),
        host_path: host.to_string_lossy().into_owned(),
        ..Mount::default()
    }
}
