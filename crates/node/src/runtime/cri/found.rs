//! What a runtime has of a pod, and how containers ended.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use tonic::Status;

use super::api::{self, ContainerState, ContainerStatus};
use super::{Cri, container, is_ready, name_of, sandbox};
use crate::runtime::supply::uid;
use crate::runtime::{Ended, Found, FoundContainer, Started, last_words};

impl Cri {
    /// What the runtime has of a pod.
    pub(super) async fn find(&self, pod: &Pod) -> Result<Found, Status> {
        let mut found = Found::default();
        let sandboxes = self.sandboxes(uid(pod)).await?;
        if let Some(ready) = sandboxes.iter().find(|sandbox| is_ready(sandbox)) {
            found.addresses = Some(self.addresses(pod, &ready.id).await?);
        }
        found.is_lost = found.addresses.is_none() && !sandboxes.is_empty();
        let mut newest: BTreeMap<String, api::Container> = BTreeMap::new();
        let number = |it: &api::Container| it.metadata.as_ref().map_or(0, |it| it.attempt);
        for container in self.containers(uid(pod)).await? {
            // What was never started is as if it were not there.
            let is_new = container.state() == ContainerState::ContainerCreated;
            let name = name_of(&container).to_owned();
            let is_newer = newest.get(&name).is_none_or(|known| number(known) < number(&container));
            if !is_new && is_newer {
                newest.insert(name, container);
            }
        }
        for (name, container) in newest {
            let status = self.status(&container.id).await?;
            let has_ended = status.state() == ContainerState::ContainerExited;
            found.containers.push(FoundContainer {
                name,
                number: number(&container),
                started: self.started(&status),
                ended: has_ended.then(|| self.ended(&status)),
            });
        }
        Ok(found)
    }

    pub(super) fn started(&self, status: &ContainerStatus) -> Started {
        Started {
            id: self.id(&status.id),
            image_id: status.image_ref.clone(),
            at: timestamp(status.started_at),
        }
    }

    /// How a container ended, with its last words.
    pub(super) fn ended(&self, status: &ContainerStatus) -> Ended {
        let uid = status.labels.get(sandbox::POD_UID).map_or("", String::as_str);
        let metadata = status.metadata.clone().unwrap_or_default();
        self.place.end_log(uid, &metadata.name, metadata.attempt);
        let reason = match (status.reason.as_str(), status.exit_code) {
            ("", 0) => "Completed".to_owned(),
            ("", _) => "Error".to_owned(),
            (reason, _) => reason.to_owned(),
        };
        let annotation = |name| status.annotations.get(name).map(String::as_str);
        let mut said = None;
        if annotation(container::MESSAGE_PATH).is_some_and(|path| !path.is_empty()) {
            let path = self.place.last_words(uid, &metadata.name, metadata.attempt);
            said = last_words::beginning(&std::fs::read(path).unwrap_or_default());
        }
        let is_from_log = annotation(container::MESSAGE_POLICY) == Some("FallbackToLogsOnError");
        if said.is_none() && status.exit_code != 0 && is_from_log {
            let log = self.place.log(uid, &metadata.name, metadata.attempt);
            let log = log.and_then(|log| std::fs::read(log).ok()).unwrap_or_default();
            said = last_words::last_lines(&log);
        }
        let parts = [said.as_deref().unwrap_or_default(), status.message.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Ended {
            code: status.exit_code,
            reason,
            message: Some(parts.join(": ")).filter(|message| !message.is_empty()),
            at: timestamp(status.finished_at),
        }
    }
}

/// Of a container that is not there any more, and did not say how it ended.
pub(super) fn lost(at: Timestamp) -> Ended {
    Ended {
        code: 137,
        reason: "ContainerStatusUnknown".to_owned(),
        message: Some("The container could not be located".to_owned()),
        at,
    }
}

pub(super) fn timestamp(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}
