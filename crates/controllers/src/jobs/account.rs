//! How pods that have ended are counted, each once, whatever goes wrong.
//!
//! A pod is held by a finalizer until status names it as uncounted; only then it is let go, and
//! only when it is let go it moves from the list into the count.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::plan::{Indexed, Plan, Verdict};
use super::policy::Failure;
use super::terms::{self, Terms};

/// How many pods status may name.
const UNCOUNTED_MAX: usize = 500;

/// What has become of the deed of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) created: usize,
    pub(super) deleted: usize,
    /// How many of those deleted were ready.
    pub(super) deleted_ready: usize,
    /// Whether there was more to do.
    pub(super) is_short: bool,
}

/// What status should say before pods are let go.
#[derive(Debug, PartialEq)]
pub(super) struct Account<'a> {
    pub(super) status: JobStatus,
    /// The pods that can then be let go.
    pub(super) release: Vec<&'a Pod>,
    /// Those of them and of the others that are not counted.
    tracked: HashSet<String>,
    verdict: Option<Verdict>,
    /// Whether there are more pods than status can name.
    is_full: bool,
    terminating: usize,
    /// Whether it was suspended or resumed by this.
    pub(super) suspension: Option<Suspension>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspension {
    Suspended,
    Resumed,
}

/// What status should say of a Job once the deed of a plan is done.
pub(super) fn account<'a>(job: &Job, plan: &Plan<'a>, done: Done, now: Timestamp) -> Account<'a> {
    let tally = &plan.tally;
    let mut status = job.status.clone().unwrap_or_default();
    status.start_time = plan.start_time.map(Time);
    let verdict = plan.verdict.clone().filter(|_| !done.is_short);
    let suspension = match plan.verdict.is_none() && !Terms(job).is_deleting() {
        true => suspend(job, &mut status, now),
        false => None,
    };
    let active = tally.active.len() + done.created - done.deleted;
    let ready = tally.active.iter().filter(|pod| terms::is_ready(pod)).count();
    let terminating = tally.terminating + done.deleted;
    status.active = some(active);
    status.ready = Some(number(ready.saturating_sub(done.deleted_ready)));
    status.terminating = Some(number(terminating));

    let tracked: HashSet<String> = tally
        .pods
        .iter()
        .filter(|pod| terms::is_tracked(pod))
        .map(|pod| terms::uid(pod).to_owned())
        .collect();
    settle(&mut status, &tracked);
    let (release, succeeded, is_full) = count(job, plan, verdict.as_ref(), &mut status);
    if let Some(indexed) = &tally.indexed {
        let all = indexed.known.union(&succeeded.into_iter().collect());
        let all = all.union(&indexed.succeeded);
        status.succeeded = some(all.len());
        status.completed_indexes = Some(all.to_string()).filter(|text| !text.is_empty());
        status.failed_indexes = indexed.failed.as_ref().map(ToString::to_string);
    }
    if let Some(verdict) = verdict.as_ref().filter(|verdict| !verdict.is_known) {
        let kind = if verdict.is_success { "SuccessCriteriaMet" } else { "FailureTarget" };
        let conditions = status.conditions.get_or_insert_default();
        conditions.push(condition(kind, "True", &verdict.reason, &verdict.message, now));
    }
    Account { status, release, tracked, verdict, is_full, terminating, suspension }
}

impl Account<'_> {
    /// What status should say now that pods are let go, and how the Job ended if it is over.
    pub(super) fn close(
        &self,
        released: &HashSet<String>,
        now: Timestamp,
    ) -> (JobStatus, Option<&Verdict>) {
        let mut status = self.status.clone();
        let left = self.tracked.difference(released).cloned().collect();
        settle(&mut status, &left);
        let uncounted = status.uncounted_terminated_pods.as_ref();
        let is_counted = uncounted.is_none_or(|uncounted| {
            uncounted.succeeded.iter().flatten().chain(uncounted.failed.iter().flatten()).count()
                == 0
        });
        let ended =
            self.verdict.as_ref().filter(|_| is_counted && !self.is_full && self.terminating == 0);
        if let Some(verdict) = ended {
            let kind = if verdict.is_success { "Complete" } else { "Failed" };
            let conditions = status.conditions.get_or_insert_default();
            conditions.push(condition(kind, "True", &verdict.reason, &verdict.message, now));
            if verdict.is_success {
                status.completion_time = Some(Time(now));
            }
        }
        (status, ended)
    }
}

/// Moves pods that were let go from the lists into the counts.
fn settle(status: &mut JobStatus, tracked: &HashSet<String>) {
    let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
    let settle = |list: &mut Option<Vec<String>>, count: &mut Option<i32>| {
        let before = list.as_ref().map_or(0, Vec::len);
        if let Some(uids) = list {
            uids.retain(|uid| tracked.contains(uid));
        }
        let counted = before - list.as_ref().map_or(0, Vec::len);
        if counted > 0 {
            *count = Some(count.unwrap_or_default() + number(counted));
        }
        *list = list.take().filter(|uids| !uids.is_empty());
    };
    settle(&mut uncounted.succeeded, &mut status.succeeded);
    settle(&mut uncounted.failed, &mut status.failed);
}

/// Names the pods that have ended in status; gives those to let go, the indexes that have succeeded,
/// and whether there was no room for all.
fn count<'a>(
    job: &Job,
    plan: &Plan<'a>,
    verdict: Option<&Verdict>,
    status: &mut JobStatus,
) -> (Vec<&'a Pod>, Vec<u32>, bool) {
    let terms = Terms(job);
    let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
    let (mut release, mut indexes) = (Vec::new(), Vec::new());
    for pod in plan.tally.pods.iter().copied().filter(|pod| terms::is_tracked(pod)) {
        let has_failed = terms.has_failed(pod);
        if !may_go(job, plan.tally.indexed.as_ref(), verdict, pod) {
            continue;
        }
        release.push(pod);
        let uid = terms::uid(pod).to_owned();
        let is_in = |list: &Option<Vec<String>>| list.iter().flatten().any(|known| *known == uid);
        let was_failed = is_in(&uncounted.failed);
        if terms::phase(pod) == "Succeeded" && !was_failed {
            match &plan.tally.indexed {
                Some(indexed) => {
                    indexes.extend(terms::index(pod).filter(|index| {
                        terms.has_place_for(pod) && !indexed.known.contains(*index)
                    }))
                }
                None if !is_in(&uncounted.succeeded) => {
                    uncounted.succeeded.get_or_insert_default().push(uid);
                }
                None => {}
            }
        } else if (has_failed || verdict.is_some_and(|verdict| !verdict.is_success))
            && !was_failed
            && terms.has_place_for(pod)
            && Failure::of(job, pod).counts()
        {
            uncounted.failed.get_or_insert_default().push(uid);
        }
        let len = |list: &Option<Vec<String>>| list.as_ref().map_or(0, Vec::len);
        if indexes.len() + len(&uncounted.succeeded) + len(&uncounted.failed) >= UNCOUNTED_MAX {
            return (release, indexes, true);
        }
    }
    (release, indexes, false)
}

/// Whether nothing more is to be known of a pod.
fn may_go(job: &Job, indexed: Option<&Indexed<'_>>, verdict: Option<&Verdict>, pod: &Pod) -> bool {
    let is_delayed = || {
        let kept = terms::index(pod).and_then(|index| indexed?.delayed.get(&index));
        kept.is_some_and(|kept| terms::uid(kept) == terms::uid(pod))
    };
    Terms(job).is_deleting()
        || verdict.is_some()
        || terms::phase(pod) == "Succeeded"
        || (Terms(job).has_failed(pod) && !is_delayed())
}

/// Says whether a Job is suspended; that it is not only if it was.
fn suspend(job: &Job, status: &mut JobStatus, now: Timestamp) -> Option<Suspension> {
    let (value, reason, message) = match Terms(job).is_suspended() {
        true => ("True", "JobSuspended", "Job suspended"),
        false => ("False", "JobResumed", "Job resumed"),
    };
    let new = condition("Suspended", value, reason, message, now);
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|known| known.type_ == "Suspended") {
        Some(known) if known.status == new.status && known.reason == new.reason => return None,
        Some(known) => *known = new,
        None if Terms(job).is_suspended() => conditions.push(new),
        None => {
            status.conditions = status.conditions.take().filter(|all| !all.is_empty());
            return None;
        }
    }
    // A Job that goes on begins anew, and may be changed before as if it had never begun.
    status.start_time = (!Terms(job).is_suspended()).then_some(Time(now));
    Some(if Terms(job).is_suspended() { Suspension::Suspended } else { Suspension::Resumed })
}

fn condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> JobCondition {
    JobCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// How many, if any: status leaves out what is none.
fn some(count: usize) -> Option<i32> {
    Some(number(count)).filter(|count| *count > 0)
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
