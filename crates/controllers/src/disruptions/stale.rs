//! Pods that were to be disrupted, and then were not.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright::predicate::Predicate;
use kubewright::{Action, Context, Controller, Error, Reconciler};

use crate::part;

/// How long a pod may be said to be about to go.
const STALE_AFTER: SignedDuration = SignedDuration::from_mins(2);
const KIND: &str = "DisruptionTarget";

pub(crate) fn controller() -> Controller<Pod, Stale> {
    let may_matter = Predicate::new(|old: &Pod, new: &Pod| target(old) != target(new));
    part::controller("disruption-controller", Stale).when(may_matter)
}

/// The controller of pods that are said to be about to go.
pub(crate) struct Stale;

impl Reconciler<Pod> for Stale {
    async fn reconcile(&self, pod: &mut Pod, ctx: &Context) -> Result<Action, Error> {
        let now = ctx.now();
        match left(pod, now) {
            None => {}
            Some(left) if left.is_positive() => {
                return Ok(Action::RequeueAfter(Duration::try_from(left).unwrap_or_default()));
            }
            Some(_) => {
                let conditions =
                    pod.status.iter_mut().flat_map(|it| it.conditions.iter_mut().flatten());
                for condition in conditions.filter(|condition| condition.type_ == KIND) {
                    *condition = PodCondition {
                        type_: KIND.to_owned(),
                        status: "False".to_owned(),
                        last_transition_time: Some(Time(now)),
                        ..PodCondition::default()
                    };
                }
            }
        }
        Ok(Action::Done)
    }
}

fn target(pod: &Pod) -> Option<&PodCondition> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == KIND && condition.status == "True")
}

/// How long it may yet be said of a pod, if it is said and not so.
fn left(pod: &Pod, now: Timestamp) -> Option<SignedDuration> {
    let phase = pod.status.as_ref()?.phase.as_deref();
    if pod.metadata.deletion_timestamp.is_some() || matches!(phase, Some("Succeeded" | "Failed")) {
        return None;
    }
    let said = target(pod).filter(|it| it.reason.as_deref() != Some("TerminationByKubelet"))?;
    let since = said.last_transition_time.as_ref().map_or(now, |time| time.0);
    Some(STALE_AFTER - now.duration_since(since))
}
