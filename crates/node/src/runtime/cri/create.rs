//! How a container comes to be: what of the cluster and of the node is in it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use tonic::Status;

use super::api::{self, ContainerState, CreateContainerRequest, RemoveContainerRequest};
use super::{Cri, attempt_of, container, image, is_ready, message, name_of, sandbox};
use crate::environment::{self, environment};
use crate::runtime::supply::{files_of, uid};
use crate::runtime::{Order, StartError, names};

impl Cri {
    /// What is to be run for a container.
    async fn order(&self, order: &Order) -> Result<api::ContainerConfig, StartError> {
        let Order { pod, container, addresses, .. } = order;
        let refused = |error: String| StartError::Config(error);
        let whereabouts = self.whereabouts(addresses);
        let references = environment::references(container);
        let sources = self.supply.sources(pod, references, &whereabouts).await;
        let mut sources = sources.map_err(|error| refused(error.to_string()))?;
        sources.files = files_of(container, |volume| self.place.volume(uid(pod), volume));
        let variables = environment(pod, container, &sources);
        let variables = variables.map_err(|missing| refused(missing.to_string()))?;
        let image = container.image.as_deref().unwrap_or_default();
        let image = image::find(&self.api, image).await.map_err(StartError::Create)?;
        let image = image.ok_or_else(|| {
            StartError::Create(format!("image {:?} is not there any more", container.image))
        })?;
        let mounts = self.mounts(order, &variables).map_err(refused)?;
        let target = self.target(pod, &container.name).await;
        let parts = container::Parts {
            owner: self.owner.clone(),
            image,
            variables,
            mounts,
            target,
            memory_bytes: self.memory_bytes,
            profiles: self.place.profiles(),
        };
        container::config(order, parts).map_err(refused)
    }

    /// What of the node is in a container, and where.
    fn mounts(
        &self,
        order: &Order,
        variables: &BTreeMap<String, String>,
    ) -> Result<Vec<api::Mount>, String> {
        let Order { pod, container, addresses, .. } = order;
        let (uid, name) = (uid(pod), &container.name);
        let mut number = 0..;
        let mut mounts = container::mounts(pod, container, variables, |volume, path| {
            let number = number.next().unwrap_or_default();
            self.place.in_volume(uid, (volume, path), (name, number)).map_err(|error| {
                let what = if path.is_empty() { "" } else { "subPath for " };
                format!(
                    "failed to prepare {what}volumeMount {volume:?} of container {name:?}: {error}"
                )
            })
        })?;
        let text = |error: std::io::Error| error.to_string();
        if !mounts.iter().any(|mount| mount.container_path == "/etc/hosts") {
            let node = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
            let hosts = names::hosts(pod, addresses, &self.resolver.domain, &node);
            let hosts = self.place.hosts(uid, &hosts).map_err(text)?;
            mounts.push(container::file(&hosts, "/etc/hosts"));
        }
        let path = container.termination_message_path.as_deref().unwrap_or_default();
        if !path.is_empty() {
            let last_words = self.place.make_last_words(uid, name, order.number).map_err(text)?;
            mounts.push(container::file(&last_words, path));
        }
        Ok(mounts)
    }

    /// The container whose processes an ephemeral one wants to see.
    async fn target(&self, pod: &Pod, container: &str) -> Option<String> {
        let mut ephemeral = pod.spec.as_ref()?.ephemeral_containers.iter().flatten();
        let wanted = ephemeral.find(|it| it.name == container)?.target_container_name.as_ref()?;
        let found = self.containers(uid(pod)).await.ok()?;
        let target = found
            .into_iter()
            .find(|it| name_of(it) == wanted && it.state() == ContainerState::ContainerRunning);
        target.map(|target| target.id)
    }

    /// Makes a container that can be started, in the sandbox of its pod.
    pub(super) async fn create(&self, order: &Order) -> Result<String, StartError> {
        let create = |status: Status| StartError::Create(message(&status));
        let (uid, name) = (uid(&order.pod), &order.container.name);
        for left in self.containers(uid).await.map_err(create)? {
            let number = left.metadata.as_ref().map_or(0, |metadata| metadata.attempt);
            let is_running = left.state() == ContainerState::ContainerRunning;
            // One of the same number was never started: its agent was killed before it could be.
            // Of the others, one is kept for its log.
            let is_kept = number + 1 == order.number;
            if name_of(&left) == name && !is_running && !is_kept {
                self.remove_container(&left.id).await.map_err(create)?;
                self.place.remove_log(uid, name, number);
            }
        }
        self.place.remove_log(uid, name, order.number);
        let config = self.order(order).await?;
        let sandboxes = self.sandboxes(uid).await.map_err(create)?;
        let Some(sandbox) = sandboxes.into_iter().find(is_ready) else {
            return Err(StartError::Sandbox);
        };
        let logs = self.place.logs(&order.pod);
        let attempt = attempt_of(&sandbox);
        let sandbox_config =
            sandbox::config(&order.pod, attempt, &self.owner, &logs, &self.resolver);
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox.id,
            config: Some(config),
            sandbox_config: Some(sandbox_config),
        };
        let created = self.api.runtime.clone().create_container(request).await;
        Ok(created.map_err(create)?.into_inner().container_id)
    }

    async fn remove_container(&self, own: &str) -> Result<(), Status> {
        let request = RemoveContainerRequest { container_id: own.to_owned() };
        self.api.runtime.clone().remove_container(request).await.map(drop)
    }
}
