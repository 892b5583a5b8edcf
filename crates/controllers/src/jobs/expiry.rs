//! Jobs that are over go after a while, if they say so.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DeleteParams, Preconditions};
use kubewright::{Action, Context, Controller, Error, Reconciler};

use crate::part;
use crate::part::text;

const AT_ONCE: usize = 5;

pub(crate) fn controller() -> Controller<Job, Expiry> {
    part::controller("ttl-after-finished-controller", Expiry).at_once(AT_ONCE)
}

/// The controller of Jobs that are over.
pub(crate) struct Expiry;

impl Reconciler<Job> for Expiry {
    async fn reconcile(&self, job: &mut Job, ctx: &Context) -> Result<Action, Error> {
        let (namespace, name) = (text(&job.metadata.namespace), text(&job.metadata.name));
        let jobs: Api<Job> = Api::namespaced(ctx.client().clone(), namespace);
        match left(job, ctx.now()) {
            None => return Ok(Action::Done),
            Some(left) if left > SignedDuration::ZERO => return Ok(again_after(left)),
            Some(_) => {}
        }
        // What is cached may be older than a change of mind.
        let Some(live) = jobs.get_opt(name).await? else { return Ok(Action::Done) };
        match left(&live, ctx.now()) {
            None => return Ok(Action::Done),
            Some(left) if left > SignedDuration::ZERO => return Ok(again_after(left)),
            Some(_) => {}
        }
        let preconditions = Preconditions { uid: live.metadata.uid, ..Preconditions::default() };
        let params = DeleteParams::foreground().preconditions(preconditions);
        match jobs.delete(name, &params).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            deleted => drop(deleted?),
        }
        Ok(Action::Done)
    }
}

fn again_after(left: SignedDuration) -> Action {
    Action::RequeueAfter(Duration::try_from(left).unwrap_or_default())
}

/// How long a Job stays yet, if it is to go by itself.
fn left(job: &Job, now: Timestamp) -> Option<SignedDuration> {
    let seconds = job.spec.as_ref()?.ttl_seconds_after_finished?;
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut conditions = job.status.as_ref()?.conditions.iter().flatten();
    let end = conditions.find(|condition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    })?;
    let ended = end.last_transition_time.as_ref()?.0;
    Some(SignedDuration::from_secs(seconds.into()) - now.duration_since(ended))
}
