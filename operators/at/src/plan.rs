//! What is next for an `At`. Decides only.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::api::ObjectMeta;

use crate::kind::{At, Phase};

/// What is next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing, for ever, or until somebody changes it.
    Rest,
    /// To wait for its time.
    Wait(Duration),
    /// To tell that the time cannot be known, and wait for a change.
    Refuse(String),
    /// The time has come.
    Begin,
    /// To make the pod.
    Launch(Box<Pod>),
    /// The pod is under way.
    Watch,
    /// The pod has ended, so.
    End { reason: String, message: String },
    /// There was nothing to run.
    EndWithoutCommand,
}

/// Decides by the `At`, the pod of its name if there is one, and the time.
pub fn plan(at: &At, pod: Option<&Pod>, now: Timestamp) -> Step {
    match at.phase() {
        Phase::Pending => match due(at) {
            Ok(due) if due > now => {
                let wait = Duration::try_from(due.duration_since(now));
                Step::Wait(wait.unwrap_or(Duration::ZERO))
            }
            Ok(_) => Step::Begin,
            Err(why) => Step::Refuse(why),
        },
        Phase::Running => match (pod, command(at)) {
            (Some(pod), _) => watch(pod),
            (None, command) if command.is_empty() => Step::EndWithoutCommand,
            (None, command) => Step::Launch(Box::new(self::pod(at, command))),
        },
        Phase::Done | Phase::Unknown(_) => Step::Rest,
    }
}

/// What the pod of an `At` is called.
pub fn pod_name(at: &At) -> String {
    format!("{}-pod", at.metadata.name.as_deref().unwrap_or_default())
}

/// When the command is to run.
///
/// # Errors
/// Why that cannot be known.
pub(crate) fn due(at: &At) -> Result<Timestamp, String> {
    let schedule = at.spec.schedule.as_deref().unwrap_or_default();
    if schedule.is_empty() {
        return Err("spec.schedule: is not set: say when, as 2019-07-03T02:00:00Z".to_owned());
    }
    schedule.parse().map_err(|_| {
        format!("spec.schedule: {schedule:?} is no time: write it in UTC, as 2019-07-03T02:00:00Z")
    })
}

/// The pod that runs the command of an `At`.
pub fn pod(at: &At, command: Vec<String>) -> Pod {
    let name = at.metadata.name.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            name: Some(pod_name(at)),
            namespace: at.metadata.namespace.clone(),
            labels: Some(BTreeMap::from([("app".to_owned(), name)])),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![Container {
                name: "busybox".to_owned(),
                image: Some("busybox".to_owned()),
                command: Some(command),
                ..Container::default()
            }],
            restart_policy: Some("OnFailure".to_owned()),
            ..PodSpec::default()
        }),
        ..Pod::default()
    }
}

fn command(at: &At) -> Vec<String> {
    let command = at.spec.command.as_deref().unwrap_or_default();
    command.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn watch(pod: &Pod) -> Step {
    let status = pod.status.clone().unwrap_or_default();
    match status.phase.as_deref() {
        Some(phase @ ("Succeeded" | "Failed")) => Step::End {
            reason: status.reason.unwrap_or_else(|| phase.to_owned()),
            message: status.message.unwrap_or_default(),
        },
        _ => Step::Watch,
    }
}
