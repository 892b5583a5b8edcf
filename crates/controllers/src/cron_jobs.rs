//! CronJobs: a Job whenever it is due.

mod plan;
mod starts;

use std::time::Duration;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kubewright::context::WriteError;
use kubewright::{Action, Context, Controller, Error, Event, Reconciler};

use crate::part;
use crate::part::text;
use plan::Start;

const AT_ONCE: usize = 5;

pub(crate) fn controller() -> Controller<CronJob, CronJobs> {
    part::controller("cronjob-controller", CronJobs).owns::<Job>().at_once(AT_ONCE).until_gone()
}

pub(crate) struct CronJobs;

impl Reconciler<CronJob> for CronJobs {
    async fn reconcile(&self, cron_job: &mut CronJob, ctx: &Context) -> Result<Action, Error> {
        let jobs = ctx.children::<Job>().await?;
        let known = ctx.informer::<Job>()?;
        let namespace = cron_job.metadata.namespace.clone();
        let now = ctx.now();
        let plan = {
            let jobs: Vec<&Job> = jobs.iter().map(AsRef::as_ref).collect();
            let exists = |job: &k8s_openapi::api::core::v1::ObjectReference| {
                let key = kubewright::ObjectKey::new(namespace.as_deref(), text(&job.name));
                known.get(&key).is_ok_and(|job| job.is_some())
            };
            plan::plan(cron_job, &jobs, exists, now)
        };
        for job in &plan.forget {
            delete(ctx, job).await?;
        }
        plan.events.into_iter().for_each(|event| ctx.event(event));
        cron_job.status = Some(plan.status);
        let Some(start) = plan.start else { return Ok(again(plan.again_after)) };
        self.start(cron_job, ctx, start).await?;
        Ok(again(plan::wait(cron_job, now)))
    }
}

impl CronJobs {
    async fn start(
        &self,
        cron_job: &mut CronJob,
        ctx: &Context,
        start: Start,
    ) -> Result<(), Error> {
        for active in &start.instead_of {
            if let Some(job) = ctx.get::<Job>(None, text(&active.name)).await? {
                delete(ctx, &job).await?;
            }
            plan::drop_active(cron_job.status.get_or_insert_default(), text(&active.uid));
        }
        let name = text(&start.job.metadata.name).to_owned();
        let job = match ctx.create(start.job).await {
            Ok(job) => {
                let note = format!("Created job {}", text(&job.metadata.name));
                ctx.event(Event::normal("SuccessfulCreate", note));
                job
            }
            Err(error) if error.reason() == Some("AlreadyExists") => {
                // It was made before a restart, or is somebody else's.
                let jobs = ctx.children::<Job>().await?;
                let own = jobs.into_iter().find(|job| job.metadata.name.as_ref() == Some(&name));
                match own {
                    Some(job) => job,
                    None => return Ok(()),
                }
            }
            Err(error) => {
                ctx.event(Event::warning(
                    "FailedCreate",
                    format!("Error creating job: {}", why(&error)),
                ));
                return Err(error.into());
            }
        };
        plan::note_start(cron_job.status.get_or_insert_default(), &job, start.at);
        Ok(())
    }
}

async fn delete(ctx: &Context, job: &Job) -> Result<(), WriteError> {
    match ctx.delete(job).await {
        Ok(()) => {
            let note = format!("Deleted job {}", text(&job.metadata.name));
            ctx.event(Event::normal("SuccessfulDelete", note));
            Ok(())
        }
        Err(error) => {
            ctx.event(Event::warning("FailedDelete", format!("Deleted job: {}", why(&error))));
            Err(error)
        }
    }
}

/// What the server said, or else what went wrong.
fn why(error: &WriteError) -> String {
    error.answer().map_or_else(|| error.to_string(), |status| status.message.clone())
}

fn again(after: Option<jiff::SignedDuration>) -> Action {
    match after {
        Some(after) => Action::RequeueAfter(Duration::try_from(after).unwrap_or_default()),
        None => Action::Done,
    }
}
