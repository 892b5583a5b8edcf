//! Whether a node is still heard of.
//!
//! What counts is when a sign of life was seen here, not when the node says it was sent: clocks of
//! nodes differ.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// How long a node may be silent.
const GRACE: SignedDuration = SignedDuration::from_secs(50);
/// How long a new node may take to say something.
const STARTUP_GRACE: SignedDuration = SignedDuration::from_secs(60);
/// What is unknown of a node that is silent.
const CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The last sign of life of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pulse {
    seen_at: Timestamp,
    /// The heartbeat in its status, if it has a status.
    heartbeat: Option<Option<Timestamp>>,
    /// When its lease was renewed.
    renewed: Option<Timestamp>,
}

/// How it is with a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Health {
    /// It is heard of, or was not long ago; how long that is enough.
    Alive(SignedDuration),
    /// It is silent, and its status says so.
    Silent,
    /// It is silent, and its status should say this.
    Falls(Vec<NodeCondition>),
}

impl Pulse {
    /// With what is seen of a node now.
    pub(super) fn of(
        node: &Node,
        renewed: Option<Timestamp>,
        before: Option<Pulse>,
        now: Timestamp,
    ) -> Self {
        let heartbeat = ready(node).map(|it| it.last_heartbeat_time.as_ref().map(|time| time.0));
        let made = node.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        let mut pulse = match before {
            Some(before) if before.heartbeat == heartbeat => before,
            None if heartbeat.is_none() => Pulse { seen_at: made, heartbeat, renewed: None },
            before => {
                let renewed = before.and_then(|before| before.renewed);
                Pulse { seen_at: now, heartbeat, renewed }
            }
        };
        if renewed.is_some() && renewed > pulse.renewed {
            pulse = Pulse { seen_at: now, renewed, ..pulse };
        }
        pulse
    }

    /// How it is with the node.
    pub(super) fn health(self, node: &Node, now: Timestamp) -> Health {
        let grace = if self.heartbeat.is_some() { GRACE } else { STARTUP_GRACE };
        let left = grace - now.duration_since(self.seen_at);
        if !left.is_negative() {
            return Health::Alive(left);
        }
        let before = node.status.as_ref().and_then(|status| status.conditions.clone());
        let before = before.unwrap_or_default();
        let mut after = before.clone();
        for kind in CONDITIONS {
            match after.iter_mut().find(|condition| condition.type_ == kind) {
                Some(known) if known.status == "Unknown" => {}
                Some(known) => {
                    known.status = "Unknown".to_owned();
                    known.reason = Some("NodeStatusUnknown".to_owned());
                    known.message = Some("Kubelet stopped posting node status.".to_owned());
                    known.last_transition_time = Some(Time(now));
                }
                None => after.push(NodeCondition {
                    type_: kind.to_owned(),
                    status: "Unknown".to_owned(),
                    reason: Some("NodeStatusNeverUpdated".to_owned()),
                    message: Some("Kubelet never posted node status.".to_owned()),
                    last_heartbeat_time: node.metadata.creation_timestamp.clone(),
                    last_transition_time: Some(Time(now)),
                }),
            }
        }
        if after == before { Health::Silent } else { Health::Falls(after) }
    }
}

/// Whether a node is ready: `True`, `False` or `Unknown`, if anybody has said.
pub(super) fn readiness(node: &Node) -> Option<&str> {
    ready(node).map(|condition| condition.status.as_str())
}

fn ready(node: &Node) -> Option<&NodeCondition> {
    let mut conditions = node.status.as_ref()?.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == "Ready")
}
