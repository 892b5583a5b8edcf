//! What a Deployment says of itself: counts, whether it is available, and whether it gets on.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetCondition,
};

use super::history::{History, available};
use super::rollout::{Wanted, total};
use crate::part::{count, time};

pub(super) const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Reasons of [`PROGRESSING`] by which is decided.
const NEW_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// A deadline that means none.
const NEVER: i32 = i32::MAX;

/// A condition as it is from now on.
pub(super) fn condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> DeploymentCondition {
    DeploymentCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: Some(time(now)),
        last_update_time: Some(time(now)),
    }
}

/// Puts a condition in the place of the one of its type, unless that one says the same.
pub(super) fn set(conditions: &mut Vec<DeploymentCondition>, mut condition: DeploymentCondition) {
    let known = find(conditions, &condition.type_);
    if let Some(known) = known.filter(|known| known.status == condition.status) {
        if known.reason == condition.reason {
            return;
        }
        condition.last_transition_time = known.last_transition_time.clone();
    }
    remove(conditions, &condition.type_);
    conditions.push(condition);
}

pub(super) fn find<'c>(
    conditions: &'c [DeploymentCondition],
    kind: &str,
) -> Option<&'c DeploymentCondition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

fn remove(conditions: &mut Vec<DeploymentCondition>, kind: &str) {
    conditions.retain(|condition| condition.type_ != kind);
}

/// How long the Deployment may take without getting on, if there is a limit.
pub(super) fn deadline(deployment: &Deployment) -> Option<Duration> {
    let seconds = deployment.spec.as_ref()?.progress_deadline_seconds?;
    let seconds = u64::try_from(seconds).ok().filter(|_| seconds != NEVER)?;
    Some(Duration::from_secs(seconds))
}

/// Notes that a Deployment was paused or goes on, so that the time between does not count.
pub(super) fn note_pause(deployment: &mut Deployment, now: Timestamp) {
    if deadline(deployment).is_none() {
        return;
    }
    let is_paused = is_paused(deployment);
    let conditions = conditions(deployment);
    let reason = find(conditions, PROGRESSING).and_then(|known| known.reason.as_deref());
    let (reason, message) = match (is_paused, reason) {
        (_, Some(TIMED_OUT)) => return,
        (true, Some(PAUSED)) => return,
        (true, _) => (PAUSED, "Deployment is paused"),
        (false, Some(PAUSED)) => ("DeploymentResumed", "Deployment is resumed"),
        (false, _) => return,
    };
    set(conditions, condition(PROGRESSING, "Unknown", reason, message.to_owned(), now));
}

pub(super) fn is_paused(deployment: &Deployment) -> bool {
    deployment.spec.as_ref().is_some_and(|spec| spec.paused == Some(true))
}

pub(super) fn conditions(deployment: &mut Deployment) -> &mut Vec<DeploymentCondition> {
    deployment.status.get_or_insert_default().conditions.get_or_insert_default()
}

/// The status that follows from ReplicaSets as they are.
pub(super) fn counted(
    deployment: &Deployment,
    history: &History,
    wanted: &Wanted,
    now: Timestamp,
) -> DeploymentStatus {
    let before = deployment.status.clone().unwrap_or_default();
    let sum = |of: &dyn Fn(&ReplicaSet) -> i32| history.all().map(|set| of(set)).sum::<i32>();
    let available = sum(&available);
    let mut conditions = before.conditions.unwrap_or_default();
    let is_available = available >= wanted.replicas - wanted.unavailable;
    let (status, reason, message) = match is_available {
        true => ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => {
            let message = "Deployment does not have minimum availability.";
            ("False", "MinimumReplicasUnavailable", message)
        }
    };
    set(&mut conditions, condition(AVAILABLE, status, reason, message.to_owned(), now));
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: count(sum(&replicas)),
        updated_replicas: count(history.new.as_deref().map_or(0, replicas)),
        ready_replicas: count(sum(&ready)),
        available_replicas: count(available),
        unavailable_replicas: count((total(history.all()) - available).max(0)),
        terminating_replicas: terminating(history),
        collision_count: before.collision_count,
        conditions: (!conditions.is_empty()).then_some(conditions),
    }
}

/// The same, with whether an update gets on.
pub(super) fn progressed(
    deployment: &Deployment,
    history: &History,
    wanted: &Wanted,
    now: Timestamp,
) -> DeploymentStatus {
    let before = deployment.status.clone().unwrap_or_default();
    let mut status = counted(deployment, history, wanted, now);
    let mut conditions = status.conditions.take().unwrap_or_default();
    let known = find(&conditions, PROGRESSING).cloned();
    match deadline(deployment) {
        None => remove(&mut conditions, PROGRESSING),
        Some(deadline) => {
            let was_complete =
                known.as_ref().is_some_and(|known| reason(known) == NEW_SET_AVAILABLE);
            if status.replicas != status.updated_replicas || !was_complete {
                let stage = if is_complete(deployment, wanted, &status) {
                    Some(Stage::Complete)
                } else if has_progressed(&before, &status) {
                    Some(Stage::Progressing)
                } else if known.as_ref().is_some_and(|known| is_late(known, deadline, now)) {
                    Some(Stage::TimedOut)
                } else {
                    None
                };
                if let Some(stage) = stage {
                    tell(&mut conditions, stage, known, &subject(deployment, history), now);
                }
            }
        }
    }
    match failure(history) {
        Some(failure) => set(&mut conditions, failure),
        None => remove(&mut conditions, REPLICA_FAILURE),
    }
    status.conditions = (!conditions.is_empty()).then_some(conditions);
    status
}

/// How far an update is.
enum Stage {
    Complete,
    Progressing,
    TimedOut,
}

fn tell(
    conditions: &mut Vec<DeploymentCondition>,
    stage: Stage,
    known: Option<DeploymentCondition>,
    subject: &str,
    now: Timestamp,
) {
    let (status, reason, what) = match stage {
        Stage::Complete => ("True", NEW_SET_AVAILABLE, "has successfully progressed."),
        Stage::Progressing => ("True", "ReplicaSetUpdated", "is progressing."),
        Stage::TimedOut => ("False", TIMED_OUT, "has timed out progressing."),
    };
    let mut next = condition(PROGRESSING, status, reason, format!("{subject} {what}"), now);
    if let (Stage::Progressing, Some(known)) = (stage, known) {
        // It is told anew each time, so that the time of the last progress is known.
        if known.status == "True" {
            next.last_transition_time = known.last_transition_time;
        }
        remove(conditions, PROGRESSING);
    }
    set(conditions, next);
}

fn subject(deployment: &Deployment, history: &History) -> String {
    let (kind, name) = match &history.new {
        Some(set) => ("ReplicaSet", &set.metadata.name),
        None => ("Deployment", &deployment.metadata.name),
    };
    format!("{kind} {:?}", name.as_deref().unwrap_or_default())
}

/// How long until the Deployment must be looked at again, to see whether it has got stuck.
pub(super) fn next_check(
    deployment: &Deployment,
    wanted: &Wanted,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let deadline = deadline(deployment)?;
    let known = find(status.conditions.as_deref().unwrap_or_default(), PROGRESSING)?;
    if is_complete(deployment, wanted, status) || reason(known) == TIMED_OUT {
        return None;
    }
    let waited = now.duration_since(known.last_update_time.as_ref()?.0);
    let waited = Duration::try_from(waited).unwrap_or_default();
    Some(deadline.saturating_sub(waited) + Duration::from_secs(1))
}

/// Whether all pods there are are new, and as many as wanted.
pub(super) fn is_complete(
    deployment: &Deployment,
    wanted: &Wanted,
    status: &DeploymentStatus,
) -> bool {
    let is_all = |count: Option<i32>| count.unwrap_or_default() == wanted.replicas;
    is_all(status.updated_replicas)
        && is_all(status.replicas)
        && is_all(status.available_replicas)
        && status.observed_generation >= deployment.metadata.generation
}

fn has_progressed(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| {
        status.replicas.unwrap_or_default() - status.updated_replicas.unwrap_or_default()
    };
    after.updated_replicas > before.updated_replicas
        || old(after) < old(before)
        || after.ready_replicas > before.ready_replicas
        || after.available_replicas > before.available_replicas
}

fn is_late(known: &DeploymentCondition, deadline: Duration, now: Timestamp) -> bool {
    match reason(known) {
        NEW_SET_AVAILABLE => false,
        TIMED_OUT => true,
        _ => known.last_update_time.as_ref().is_some_and(|since| {
            let limit = SignedDuration::try_from(deadline).unwrap_or(SignedDuration::MAX);
            now.duration_since(since.0) > limit
        }),
    }
}

fn reason(condition: &DeploymentCondition) -> &str {
    condition.reason.as_deref().unwrap_or_default()
}

/// Why some ReplicaSet cannot have its pods; the new one's word counts first.
fn failure(history: &History) -> Option<DeploymentCondition> {
    let mut sets = history.new.iter().chain(&history.old);
    let failed = sets.find_map(|set| {
        let conditions = set.status.as_ref()?.conditions.as_deref()?;
        conditions.iter().find(|condition| condition.type_ == REPLICA_FAILURE)
    });
    let ReplicaSetCondition { type_, status, reason, message, last_transition_time } =
        failed?.clone();
    let last_update_time = last_transition_time.clone();
    Some(DeploymentCondition {
        type_,
        status,
        reason,
        message,
        last_transition_time,
        last_update_time,
    })
}

fn replicas(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas)
}

fn ready(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default()
}

/// How many pods are on their way out, if every ReplicaSet that was ever looked at tells.
fn terminating(history: &History) -> Option<i32> {
    let mut sum = 0;
    for status in history.all().filter_map(|set| set.status.as_ref()) {
        match (status.terminating_replicas, status.observed_generation.unwrap_or_default()) {
            (Some(count), _) => sum += count,
            (None, 0) => {}
            (None, _) => return None,
        }
    }
    Some(sum)
}
