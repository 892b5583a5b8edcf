//! What others are told: conditions of pods, and pods that go for others.

use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, Error};
use kubewright::event::Recorder;
use kubewright::{Clock, Event};
use serde_json::{Value, json};
use tracing::warn;

use super::order::Turn;
use crate::plugin::Preemption;
use crate::pod::Pod;
use crate::preempt::{DISRUPTION_TARGET, PREEMPTION_REASON};

const SCHEDULED: &str = "PodScheduled";
/// What an event takes.
const NOTE_BYTES_MAX: usize = 1024;
const ELLIPSIS: &str = " ...";

/// Why a pod has no node.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reason {
    Unschedulable,
    SchedulerError,
}

/// What becomes of the node where room is made for a pod.
#[derive(Debug)]
pub(super) enum Nomination {
    Keep,
    Clear,
    Set(Arc<str>),
}

/// What a pod without a node is told.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) nomination: Nomination,
    /// It was told something else last, whether or not that is seen in it yet.
    pub(super) is_news: bool,
}

/// A message as an event can carry it.
pub(super) fn note(message: &str) -> String {
    if message.len() <= NOTE_BYTES_MAX {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(NOTE_BYTES_MAX - ELLIPSIS.len());
    format!("{}{ELLIPSIS}", &message[..end])
}

/// The change that tells a pod why it has no node; none if it knows.
pub(super) fn condition(pod: &Pod, report: &Report, now: Timestamp) -> Option<Value> {
    let mut status = json!({});
    let wanted = core::PodCondition {
        type_: SCHEDULED.to_owned(),
        status: "False".to_owned(),
        reason: Some(format!("{:?}", report.reason)),
        message: Some(report.message.clone()),
        observed_generation: pod.object.metadata.generation,
        ..core::PodCondition::default()
    };
    let (condition, is_known) = updated(pod, wanted, now);
    if report.is_news || !is_known {
        status["conditions"] = json!([condition]);
    }
    match (&report.nomination, pod.nominated_node()) {
        (Nomination::Set(node), known) if report.is_news || known != Some(&**node) => {
            status["nominatedNodeName"] = json!(**node);
        }
        (Nomination::Clear, known) if report.is_news || known.is_some() => {
            status["nominatedNodeName"] = Value::Null;
        }
        _ => {}
    }
    (status != json!({})).then(|| json!({ "status": status }))
}

pub(super) async fn patch_status(client: &Client, pod: &Pod, patch: &Value) {
    if let Err(error) = try_patch_status(client, pod, patch).await {
        warn!(pod = %pod.key, %error, "a pod's status is not written");
    }
}

/// Pods of lower priority lose the room that was made for them.
pub(super) async fn clear_nominations(client: &Client, pods: Vec<(Turn, Arc<Pod>)>) {
    let patch = json!({"status": {"nominatedNodeName": null}});
    join_all(pods.into_iter().map(async |(mut turn, pod)| {
        turn.come().await;
        patch_status(client, &pod, &patch).await;
    }))
    .await;
}

/// Takes pods away for another.
pub(super) async fn preempt(
    client: &Client,
    recorder: &Recorder,
    clock: &Clock,
    pod: &Pod,
    preemption: &Preemption,
) {
    let going = preemption.victims.iter().filter(|victim| !victim.is_deleted());
    join_all(going.map(async |victim| {
        if let Err(error) = take_away(client, pod, victim, clock.now()).await {
            warn!(victim = %victim.key, pod = %pod.key, %error, "a pod was not preempted");
            return;
        }
        let note = format!("Preempted by pod {} on node {}", pod.uid, preemption.node);
        let event = Event::normal("Preempted", note).action("Preempting");
        recorder.record(&victim.reference(), event);
    }))
    .await;
}

async fn take_away(client: &Client, pod: &Pod, victim: &Pod, now: Timestamp) -> Result<(), Error> {
    let scheduler = pod.scheduler_name();
    let wanted = core::PodCondition {
        type_: DISRUPTION_TARGET.to_owned(),
        status: "True".to_owned(),
        reason: Some(PREEMPTION_REASON.to_owned()),
        message: Some(format!("{scheduler}: preempting to accommodate a higher priority pod")),
        observed_generation: victim.object.metadata.generation,
        ..core::PodCondition::default()
    };
    let (condition, is_known) = updated(victim, wanted, now);
    if !is_known {
        let patch = json!({"status": {"conditions": [condition]}});
        try_patch_status(client, victim, &patch).await?;
    }
    let pods: Api<core::Pod> = Api::namespaced(client.clone(), victim.namespace());
    match pods.delete(victim.key.name(), &DeleteParams::default()).await {
        // It went by itself.
        Err(Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(drop),
    }
}

async fn try_patch_status(client: &Client, pod: &Pod, patch: &Value) -> Result<(), Error> {
    let pods: Api<core::Pod> = Api::namespaced(client.clone(), pod.namespace());
    let params = PatchParams::default();
    match pods.patch_status(pod.key.name(), &params, &Patch::Strategic(patch)).await {
        // It went meanwhile.
        Err(Error::Api(status)) if status.code == 404 => Ok(()),
        patched => patched.map(drop),
    }
}

/// A condition as it should be, and whether it is so already.
fn updated(
    pod: &Pod,
    mut wanted: core::PodCondition,
    now: Timestamp,
) -> (core::PodCondition, bool) {
    let conditions = pod.object.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let known = conditions.into_iter().find(|known| known.type_ == wanted.type_);
    wanted.last_transition_time = match known {
        Some(known) if known.status == wanted.status => known.last_transition_time.clone(),
        // Times have no fractions there.
        _ => Some(Time(Timestamp::from_second(now.as_second()).unwrap_or(now))),
    };
    let is_known = known == Some(&wanted);
    (wanted, is_known)
}
