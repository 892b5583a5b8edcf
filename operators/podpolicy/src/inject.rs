//! A sidecar for every pod. Decides only.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::api::core::v1::{Container, EmptyDirVolumeSource, Pod, Volume, VolumeMount};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::{DISABLED, INJECT};

/// What the sidecar is called.
pub const SIDECAR: &str = "podpolicy-sidecar";

/// What it shares with the other containers of a pod.
const VOLUME: &str = "podpolicy-logs";
const LOGS: &str = "/var/log/app";

/// Gives a pod the sidecar, unless it has it or does not want it. The containers that are there get
/// a place for their logs, if nothing is there.
pub fn inject(pod: &mut Pod, sidecar: &Container) {
    let labels = pod.metadata.labels.as_ref();
    let is_unwanted = labels.and_then(|labels| labels.get(INJECT)).is_some_and(|it| it == DISABLED);
    let Some(spec) = pod.spec.as_mut().filter(|_| !is_unwanted) else { return };
    if spec.containers.iter().any(|container| container.name == SIDECAR) {
        return;
    }
    for container in &mut spec.containers {
        let mounts = container.volume_mounts.get_or_insert_default();
        if mounts.iter().all(|mount| mount.mount_path != LOGS) {
            mounts.push(mount());
        }
    }
    let volumes = spec.volumes.get_or_insert_default();
    if volumes.iter().all(|volume| volume.name != VOLUME) {
        volumes.push(Volume {
            name: VOLUME.to_owned(),
            empty_dir: Some(EmptyDirVolumeSource::default()),
            ..Volume::default()
        });
    }
    spec.containers.push(sidecar.clone());
}

/// The sidecar of an image.
pub(crate) fn sidecar(image: &str) -> Container {
    let amounts = |cpu: &str, memory: &str| {
        BTreeMap::from([
            ("cpu".to_owned(), Quantity(cpu.to_owned())),
            ("memory".to_owned(), Quantity(memory.to_owned())),
        ])
    };
    Container {
        name: SIDECAR.to_owned(),
        image: Some(image.to_owned()),
        resources: Some(ResourceRequirements {
            requests: Some(amounts("10m", "32Mi")),
            limits: Some(amounts("100m", "64Mi")),
            ..ResourceRequirements::default()
        }),
        volume_mounts: Some(vec![mount()]),
        ..Container::default()
    }
}

fn mount() -> VolumeMount {
    VolumeMount { name: VOLUME.to_owned(), mount_path: LOGS.to_owned(), ..VolumeMount::default() }
}
