//! What controllers of pods have in common: how a pod is doing, how one is made and deleted, and
//! what people are told of it.

mod rank;
#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use kube::api::ObjectMeta;
use kubewright::context::WriteError;
use kubewright::{Context, Event};

pub(crate) use rank::{Doubling, deletion_order};

/// The cause by which the server says that a namespace takes nothing new.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";
/// Of names that the server completes, so much is left for what it adds.
const NAME_PREFIX_MAX: usize = 253;

/// Whether a pod runs or will.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_over(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Whether a pod is on its way out and still runs.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    !is_over(pod) && pod.metadata.deletion_timestamp.is_some()
}

/// Whether all containers of a pod have ended for good.
pub(crate) fn is_over(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    ready_condition(pod).is_some()
}

/// Since when a pod is ready, if it is and says so.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    Some(ready_condition(pod)?.last_transition_time.as_ref()?.0)
}

fn ready_condition(pod: &Pod) -> Option<&PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_deref().unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
    ready.filter(|ready| ready.status == "True")
}

/// Whether a pod has been ready for long enough to count on it.
pub(crate) fn is_available(pod: &Pod, min_ready: Duration, now: Timestamp) -> bool {
    is_ready(pod)
        && (min_ready.is_zero()
            || ready_since(pod).is_some_and(|since| {
                now.duration_since(since) >= SignedDuration::try_from(min_ready).unwrap_or_default()
            }))
}

/// How long it takes until the next of these pods becomes available, if nothing else happens.
pub(crate) fn next_available<'p>(
    pods: impl IntoIterator<Item = &'p Pod>,
    min_ready: Duration,
    now: Timestamp,
) -> Option<Duration> {
    let waits = pods.into_iter().filter(|pod| !is_available(pod, min_ready, now));
    let waits = waits.filter_map(|pod| {
        let waited = now.duration_since(ready_since(pod)?);
        Some(min_ready.saturating_sub(Duration::try_from(waited).unwrap_or_default()))
    });
    waits.min()
}

/// The pod that a template describes, for an owner of this name.
pub(crate) fn from_template(template: &PodTemplateSpec, owner: &str) -> Pod {
    let described = template.metadata.clone().unwrap_or_default();
    // The dash is left out where it would make the name too long.
    let dash = if owner.len() < NAME_PREFIX_MAX { "-" } else { "" };
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{owner}{dash}")),
            labels: described.labels,
            annotations: described.annotations,
            finalizers: described.finalizers,
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// Makes a pod, and tells people whether it worked. In a namespace that is going, nothing can be
/// made, and nobody need know.
pub(crate) async fn create(ctx: &Context, pod: Pod) -> Result<(), WriteError> {
    match ctx.create(pod).await {
        Ok(pod) => {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            ctx.event(Event::normal("SuccessfulCreate", format!("Created pod: {name}")));
            Ok(())
        }
        Err(error) if is_namespace_terminating(&error) => Ok(()),
        Err(error) => {
            let note = format!("Error creating: {}", message(&error));
            ctx.event(Event::warning("FailedCreate", note));
            Err(error)
        }
    }
}

/// Deletes a pod, and tells people whether it worked.
pub(crate) async fn delete(ctx: &Context, pod: &Pod) -> Result<(), WriteError> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let deleted = ctx.delete(pod).await;
    ctx.event(match &deleted {
        Ok(()) => Event::normal("SuccessfulDelete", format!("Deleted pod: {name}")),
        Err(error) => Event::warning("FailedDelete", format!("Error deleting: {}", message(error))),
    });
    deleted
}

/// Does the same many times, few at first and then more and more at once: if it fails, it fails
/// for most for the same reason, and should not be tried hundreds of times to find out. The first
/// failure ends it.
pub(crate) async fn slow_start<F, E>(
    count: usize,
    mut attempt: impl FnMut(usize) -> F,
) -> Result<(), E>
where
    F: Future<Output = Result<(), E>>,
{
    let (mut done, mut batch) = (0, 1);
    while done < count {
        let next = (done + batch).min(count);
        let ended = join_all((done..next).map(&mut attempt)).await;
        ended.into_iter().collect::<Result<(), E>>()?;
        (done, batch) = (next, batch * 2);
    }
    Ok(())
}

/// What the server said, as it is told to people.
pub(crate) fn message(error: &WriteError) -> String {
    match error.answer() {
        Some(status) => status.message.clone(),
        None => error.to_string(),
    }
}

pub(crate) fn is_namespace_terminating(error: &WriteError) -> bool {
    let details = error.answer().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| {
        details.causes.iter().any(|cause| cause.reason == NAMESPACE_TERMINATING)
    })
}
