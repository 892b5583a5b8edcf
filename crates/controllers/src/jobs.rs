//! Jobs: pods until enough of them have succeeded.
//!
//! `plan` decides which pods must come or go and whether the Job has ended, `account` how those that
//! have ended are counted. `terms` is what a Job asks for, `policy` what it makes of failures,
//! `backoff` how long it waits after them, `indexes` which parts are done, and `pods` how new pods
//! look. `strays` lets go of pods whose Job is gone, and `expiry` deletes Jobs that are long over.

mod account;
mod backoff;
mod expiry;
mod indexes;
mod plan;
mod pods;
mod policy;
mod strays;
mod terms;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::Api;
use kube::core::{Selector, SelectorExt as _};
use kubewright::context::WriteError;
use kubewright::{Action, Context, Controller, Error, Event, ObjectKey, Reconciler};

use crate::part;
use crate::part::text;
use account::{Account, Done, Suspension};
use backoff::Backoff;
use plan::{Deed, Verdict};
use terms::{FINALIZER, Terms};

pub(crate) use expiry::controller as expiry;
pub(crate) use strays::controller as strays;

const AT_ONCE: usize = 5;

pub(crate) fn controller() -> Controller<Job, Jobs> {
    part::controller("job-controller", Jobs::default()).owns::<Pod>().at_once(AT_ONCE).until_gone()
}

/// The controller of all Jobs.
#[derive(Default)]
pub(crate) struct Jobs {
    backoffs: Mutex<HashMap<ObjectKey, Backoff>>,
}

impl Reconciler<Job> for Jobs {
    async fn reconcile(&self, job: &mut Job, ctx: &Context) -> Result<Action, Error> {
        let (key, terms) = (ObjectKey::of(&job.metadata), Terms(job));
        if !terms.is_ours() {
            return Ok(Action::Done);
        }
        if terms.is_finished() {
            self.backoffs().remove(&key);
            return Ok(Action::Done);
        }
        if !terms.is_known_mode() {
            let note = "Skipped Job sync because completion mode is unknown";
            ctx.event(Event::warning("UnknownCompletionMode", note));
            return Ok(Action::Done);
        }
        let pods = claim(job, ctx).await?;
        let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
        let backoff = self.backoffs().get(&key).copied().unwrap_or_default();
        let plan = plan::plan(job, &pods, backoff, ctx.now());
        let (done, outcome) = act(ctx, &plan.deed).await;
        let account = account::account(job, &plan, done, ctx.now());
        settle(job, ctx, &account).await?;
        // Only now: what failed before status was written is seen as new again.
        self.backoffs().insert(key, plan.backoff);
        outcome?;
        Ok(match plan.again_after {
            Some(after) => Action::RequeueAfter(Duration::try_from(after).unwrap_or_default()),
            None => Action::Done,
        })
    }

    fn gone(&self, key: &ObjectKey) {
        self.backoffs().remove(key);
    }
}

impl Jobs {
    fn backoffs(&self) -> MutexGuard<'_, HashMap<ObjectKey, Backoff>> {
        self.backoffs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pods of a Job. Those that nobody controls are adopted, and from then on counted.
async fn claim(job: &Job, ctx: &Context) -> Result<Vec<Arc<Pod>>, Error> {
    let selector = job.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default();
    let selector = Selector::try_from(selector).map_err(Error::terminal)?;
    let none = BTreeMap::new();
    let selects = |pod: &Pod| selector.matches(pod.metadata.labels.as_ref().unwrap_or(&none));
    let mut orphans = ctx.orphans::<Pod>().await?;
    orphans.retain(|orphan| orphan.metadata.deletion_timestamp.is_none() && selects(orphan));
    if !orphans.is_empty() && may_adopt(job, ctx).await? {
        // A pod that was adopted first and tracked later could end uncounted in between.
        for orphan in orphans {
            let adopt = |pod: &mut Pod| {
                pod.metadata.owner_references.get_or_insert_default().push(owner(job));
                pod.metadata.finalizers.get_or_insert_default().push(FINALIZER.to_owned());
            };
            match ctx.edit(orphan.as_ref(), adopt).await {
                Err(error) if error.code() != Some(404) => return Err(error.into()),
                _ => {}
            }
        }
    }
    Ok(ctx.claim::<Pod>(|_| true, selects).await?)
}

/// Whether a Job is still there and not being deleted, by what the server says now.
async fn may_adopt(job: &Job, ctx: &Context) -> Result<bool, Error> {
    let jobs: Api<Job> = Api::namespaced(ctx.client().clone(), text(&job.metadata.namespace));
    let live = jobs.get_opt(text(&job.metadata.name)).await?;
    Ok(live
        .is_some_and(|live| live.metadata.uid == job.metadata.uid && !Terms(&live).is_deleting()))
}

fn owner(job: &Job) -> OwnerReference {
    OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        name: text(&job.metadata.name).to_owned(),
        uid: text(&job.metadata.uid).to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Does what is planned, as far as it can be done.
async fn act(ctx: &Context, deed: &Deed<'_>) -> (Done, Result<(), Error>) {
    match deed {
        Deed::Nothing => (Done::default(), Ok(())),
        Deed::Create(pods) => create(ctx, pods).await,
        Deed::End(pods) => delete(ctx, pods, false).await,
        Deed::Remove(pods) => delete(ctx, pods, true).await,
    }
}

/// Makes pods, a few at first and then more and more: if none can be made, few are tried.
async fn create(ctx: &Context, pods: &[Pod]) -> (Done, Result<(), Error>) {
    let mut done = Done::default();
    let (mut rest, mut size) = (pods, 1);
    while !rest.is_empty() {
        let (now, later) = rest.split_at(size.min(rest.len()));
        let created = join_all(now.iter().map(|pod| ctx.create(pod.clone()))).await;
        let mut failure = None;
        for created in created {
            match created {
                Ok(pod) => {
                    done.created += 1;
                    let note = format!("Created pod: {}", text(&pod.metadata.name));
                    ctx.event(Event::normal("SuccessfulCreate", note));
                }
                Err(error) => {
                    ctx.event(Event::warning(
                        "FailedCreate",
                        format!("Error creating: {}", why(&error)),
                    ));
                    failure = Some(error);
                }
            }
        }
        if let Some(error) = failure {
            done.is_short = true;
            return (done, Err(error.into()));
        }
        (rest, size) = (later, size * 2);
    }
    (done, Ok(()))
}

async fn delete(ctx: &Context, pods: &[&Pod], uncounted: bool) -> (Done, Result<(), Error>) {
    let delete = |pod: &Pod| {
        let pod = pod.clone();
        async move {
            if uncounted && terms::is_tracked(&pod) {
                release(ctx, &pod).await?;
            }
            ctx.delete(&pod).await?;
            let note = format!("Deleted pod: {}", text(&pod.metadata.name));
            ctx.event(Event::normal("SuccessfulDelete", note));
            Ok::<(), WriteError>(())
        }
    };
    let deleted = join_all(pods.iter().map(|pod| delete(pod))).await;
    let (mut done, mut outcome) = (Done::default(), Ok(()));
    for (pod, deleted) in pods.iter().zip(deleted) {
        match deleted {
            Ok(()) => {
                done.deleted += 1;
                done.deleted_ready += usize::from(terms::is_ready(pod));
            }
            Err(error) => {
                ctx.event(Event::warning(
                    "FailedDelete",
                    format!("Error deleting: {}", why(&error)),
                ));
                done.is_short = true;
                outcome = Err(error.into());
            }
        }
    }
    (done, outcome)
}

/// Writes what has ended, lets those pods go, and counts them.
async fn settle(job: &Job, ctx: &Context, account: &Account<'_>) -> Result<(), Error> {
    let named = write(ctx, job, &account.status).await?;
    match account.suspension {
        Some(Suspension::Suspended) => ctx.event(Event::normal("Suspended", "Job suspended")),
        Some(Suspension::Resumed) => ctx.event(Event::normal("Resumed", "Job resumed")),
        None => {}
    }
    let released = join_all(account.release.iter().map(|pod| release(ctx, pod))).await;
    let mut outcome = Ok(());
    let mut gone = HashSet::new();
    for (pod, released) in account.release.iter().zip(released) {
        match released {
            Ok(()) => drop(gone.insert(terms::uid(pod).to_owned())),
            Err(error) => outcome = Err(error),
        }
    }
    let (status, ended) = account.close(&gone, ctx.now());
    let named = named.as_deref().unwrap_or(job);
    let ended = ended.filter(|_| outcome.is_ok());
    write(ctx, named, &status).await?;
    if let Some(verdict) = ended {
        announce(job, ctx, &status, verdict);
    }
    Ok(outcome?)
}

/// Puts a status in the place of another, if it is one.
async fn write(
    ctx: &Context,
    job: &Job,
    status: &JobStatus,
) -> Result<Option<Arc<Job>>, WriteError> {
    if job.status.as_ref() == Some(status) {
        return Ok(None);
    }
    ctx.replace(job, |job| job.status = Some(status.clone())).await.map(Some)
}

/// Lets a pod go. That it is gone is as good.
async fn release(ctx: &Context, pod: &Pod) -> Result<(), WriteError> {
    let released = ctx.edit(pod, |pod| {
        if let Some(finalizers) = &mut pod.metadata.finalizers {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
    });
    match released.await {
        Err(error) if error.code() == Some(404) => Ok(()),
        released => released.map(drop),
    }
}

fn announce(job: &Job, ctx: &Context, status: &JobStatus, verdict: &Verdict) {
    if !verdict.is_success {
        ctx.event(Event::warning(&verdict.reason, &*verdict.message));
        return;
    }
    let succeeded = usize::try_from(status.succeeded.unwrap_or_default()).unwrap_or_default();
    if Terms(job).completions().is_some_and(|completions| succeeded > completions) {
        let note = "Too many succeeded pods running after completion count reached";
        ctx.event(Event::warning("TooManySucceededPods", note));
    }
    ctx.event(Event::normal("Completed", "Job completed"));
}

/// What the server said, or else what went wrong.
fn why(error: &WriteError) -> String {
    error.answer().map_or_else(|| error.to_string(), |status| status.message.clone())
}
