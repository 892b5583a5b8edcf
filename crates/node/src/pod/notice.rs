//! What people are told about a pod, in the words of upstream's kubelet.

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kubewright::Event;

use super::life::{Life, Role};

/// Something to tell about a pod, or about one of its containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) container: Option<String>,
    pub(crate) event: Event,
}

impl Notice {
    pub(crate) fn of_pod(event: Event) -> Self {
        Notice { container: None, event }
    }

    pub(crate) fn of(container: &str, event: Event) -> Self {
        Notice { container: Some(container.to_owned()), event }
    }

    /// What it is about.
    pub(crate) fn regarding(&self, life: &Life) -> ObjectReference {
        let path = self.container.as_ref().map(|name| {
            let list = match life.member(name).map(|member| member.role) {
                Some(Role::Init | Role::Sidecar) => "initContainers",
                Some(Role::Ephemeral) => "ephemeralContainers",
                Some(Role::Main) | None => "containers",
            };
            format!("spec.{list}{{{name}}}")
        });
        ObjectReference { field_path: path, ..reference(&life.pod) }
    }
}

/// How a text names a pod: `web_default(8c0c…)`.
pub(crate) fn pod_name(pod: &Pod) -> String {
    let metadata = &pod.metadata;
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}_{}({})", part(&metadata.name), part(&metadata.namespace), part(&metadata.uid))
}

/// A pause as Go prints it: `10s`, `1m20s`, `5m0s`.
pub(crate) fn pause(pause: std::time::Duration) -> String {
    let seconds = pause.as_secs();
    match seconds / 60 {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m{}s", seconds % 60),
    }
}

/// What tells of a pod refer to.
pub(crate) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: pod.metadata.name.clone(),
        namespace: pod.metadata.namespace.clone(),
        uid: pod.metadata.uid.clone(),
        resource_version: pod.metadata.resource_version.clone(),
        field_path: None,
    }
}
