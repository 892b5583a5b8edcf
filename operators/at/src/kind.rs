//! The custom resource.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const NAME: &str = "metadata.name: must have at most 63 characters, since it becomes a label of the \
                    pod: choose a shorter one";

/// A command, and the time at which it is to run.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cnat.programming-kubernetes.info",
    version = "v1alpha1",
    kind = "At",
    plural = "ats",
    singular = "at",
    namespaced,
    status = "AtStatus",
    printcolumn = r#"{"name": "Schedule", "type": "string", "jsonPath": ".spec.schedule"}"#,
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    validation = Rule::new("self.metadata.name.size() <= 63").message(NAME),
    derive = "PartialEq"
)]
pub struct AtSpec {
    /// When the command runs, in UTC, as `2019-07-03T02:00:00Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// What runs: a program and its arguments, separated by spaces. There is no shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct AtStatus {
    /// `PENDING` until the time has come, `RUNNING` while the pod runs, then `DONE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// How far an [`At`] is. A text in the schema: what others have written there is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Phase {
    /// The time has not come.
    Pending,
    /// The pod is to run, or runs.
    Running,
    /// The pod has ended. Nothing comes after this.
    Done,
    /// Somebody else's.
    Unknown(String),
}

impl Phase {
    pub fn as_str(&self) -> &str {
        match self {
            Phase::Pending => "PENDING",
            Phase::Running => "RUNNING",
            Phase::Done => "DONE",
            Phase::Unknown(other) => other,
        }
    }
}

impl From<String> for Phase {
    fn from(text: String) -> Self {
        match text.as_str() {
            // What has no phase yet waits for its time.
            "PENDING" | "" => Phase::Pending,
            "RUNNING" => Phase::Running,
            "DONE" => Phase::Done,
            _ => Phase::Unknown(text),
        }
    }
}

impl From<Phase> for String {
    fn from(phase: Phase) -> Self {
        phase.as_str().to_owned()
    }
}

impl At {
    pub fn phase(&self) -> Phase {
        let phase = self.status.as_ref().and_then(|status| status.phase.clone());
        phase.unwrap_or(Phase::Pending)
    }
}
