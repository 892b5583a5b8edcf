//! Pods whose Job is gone: nobody will count them, so nothing holds them.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewright::informer::Change;
use kubewright::predicate::Predicate;
use kubewright::{Action, Context, Controller, Error, Reconciler};

use super::terms::{self, Terms};
use crate::part;
use crate::part::text;

const AT_ONCE: usize = 5;

pub(crate) fn controller() -> Controller<Pod, Strays> {
    let may_matter = Predicate::new(|old: &Pod, new: &Pod| {
        old.metadata.finalizers != new.metadata.finalizers
            || old.metadata.owner_references != new.metadata.owner_references
            || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
    });
    let is_orphaned = |change: &Change<Job>, pod: &Pod| match change {
        Change::Deleted(job) => {
            controller_of(pod).is_some_and(|it| it.uid == text(&job.metadata.uid))
        }
        Change::Applied { .. } => false,
    };
    part::controller("job-controller", Strays)
        .depends_on::<Job>(is_orphaned)
        .when(may_matter)
        .at_once(AT_ONCE)
        .until_gone()
}

/// The controller of pods without a Job.
pub(crate) struct Strays;

impl Reconciler<Pod> for Strays {
    async fn reconcile(&self, pod: &mut Pod, ctx: &Context) -> Result<Action, Error> {
        if !terms::is_tracked(pod) {
            return Ok(Action::Done);
        }
        if let Some(owner) = controller_of(pod) {
            if !is_job(owner) {
                return Ok(Action::Done);
            }
            let job = ctx.get::<Job>(None, &owner.name).await?;
            let job = job.filter(|job| job.metadata.uid.as_ref() == Some(&owner.uid));
            let is_held = |job: &Job| !Terms(job).is_ours() || !Terms(job).is_finished();
            if job.is_some_and(|job| is_held(&job)) {
                return Ok(Action::Done);
            }
        }
        super::release(ctx, pod).await?;
        Ok(Action::Done)
    }
}

fn controller_of(pod: &Pod) -> Option<&OwnerReference> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

fn is_job(owner: &OwnerReference) -> bool {
    owner.kind == "Job" && owner.api_version == "batch/v1"
}
