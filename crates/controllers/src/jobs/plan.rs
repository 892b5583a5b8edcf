//! What to do about the pods of a Job.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::api::core::v1::Pod;

use super::backoff::{self, Backoff};
use super::indexes::Indexes;
use super::pods;
use super::policy::{self, Failure};
use super::terms::{self, Terms};

/// How many pods are made or deleted before all is looked at again.
const PODS_AT_ONCE: usize = 500;

/// What to do, and what it was decided by.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) deed: Deed<'a>,
    /// That it has ended, if it has; the deed is then to end what still runs.
    pub(super) verdict: Option<Verdict>,
    /// When to look again, if nothing happens before.
    pub(super) again_after: Option<SignedDuration>,
    pub(super) backoff: Backoff,
    pub(super) start_time: Option<Timestamp>,
    /// What is known of the pods now.
    pub(super) tally: Tally<'a>,
}

/// What to do with pods.
#[derive(Debug, PartialEq)]
pub(super) enum Deed<'a> {
    Nothing,
    /// Delete them; they are counted when they are over.
    End(Vec<&'a Pod>),
    /// Delete them; they are not counted.
    Remove(Vec<&'a Pod>),
    Create(Vec<Pod>),
}

/// How a Job has ended. What remains is to count its last pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) is_success: bool,
    pub(super) reason: String,
    pub(super) message: String,
    /// Whether its status says so already.
    pub(super) is_known: bool,
}

/// The pods of a Job, sorted.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    pub(super) pods: Vec<&'a Pod>,
    pub(super) active: Vec<&'a Pod>,
    pub(super) terminating: usize,
    /// How many have done it, those not counted yet among them.
    pub(super) succeeded: usize,
    /// How many have failed, those not counted yet among them.
    pub(super) failed: i64,
    pub(super) indexed: Option<Indexed<'a>>,
}

/// The same by index.
#[derive(Debug)]
pub(super) struct Indexed<'a> {
    /// As status says.
    pub(super) known: Indexes,
    pub(super) succeeded: Indexes,
    /// None unless indexes fail each for itself.
    pub(super) failed: Option<Indexes>,
    /// The last pod of each index that is to be tried again. It is kept until there is another one,
    /// since it knows how often the index has failed.
    pub(super) delayed: BTreeMap<u32, &'a Pod>,
}

/// Decides what to do about a Job that is not finished. `pods` are those it controls.
pub(super) fn plan<'a>(job: &Job, pods: &[&'a Pod], backoff: Backoff, now: Timestamp) -> Plan<'a> {
    let terms = Terms(job);
    let status = job.status.clone().unwrap_or_default();
    let (new_succeeded, new_failed) = newly_ended(job, &status, pods);
    let backoff = backoff.after(&new_succeeded, &new_failed);
    let tally = Tally::new(job, &status, pods, &new_succeeded, &new_failed);
    let start_time = status.start_time.as_ref().map(|time| time.0);
    let start_time = start_time.or((!terms.is_suspended()).then_some(now));
    let deadline = deadline(job, start_time, now);
    let mut plan =
        Plan { deed: Deed::Nothing, verdict: None, again_after: None, backoff, start_time, tally };
    plan.verdict = verdict(job, &status, &plan.tally, deadline);
    if plan.verdict.is_some() {
        plan.deed = match plan.tally.active.is_empty() {
            true => Deed::Nothing,
            false => Deed::End(plan.tally.active.clone()),
        };
        return plan;
    }
    plan.again_after = deadline;
    if !terms.is_deleting() {
        manage(job, &mut plan, now);
    }
    let is_idle = plan.deed == Deed::Nothing && plan.tally.active.is_empty();
    let is_complete = match terms.completions() {
        None => plan.tally.succeeded > 0,
        Some(completions) => plan.tally.succeeded >= completions,
    };
    if is_idle && is_complete {
        plan.verdict = Some(Verdict {
            is_success: true,
            reason: "CompletionsReached".to_owned(),
            message: "Reached expected number of succeeded pods".to_owned(),
            is_known: false,
        });
    }
    plan
}

/// The pods that have ended and that status does not know of.
fn newly_ended<'a>(
    job: &Job,
    status: &JobStatus,
    pods: &[&'a Pod],
) -> (Vec<&'a Pod>, Vec<&'a Pod>) {
    let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let is_in = |list: &Option<Vec<String>>, pod: &Pod| {
        list.iter().flatten().any(|uid| uid == terms::uid(pod))
    };
    let terms = Terms(job);
    let fresh = pods.iter().copied().filter(|it| terms::is_tracked(it) && terms.has_place_for(it));
    let fresh: Vec<&Pod> = fresh.collect();
    let succeeded =
        |pod: &&&Pod| terms::phase(pod) == "Succeeded" && !is_in(&uncounted.succeeded, pod);
    let failed = |pod: &&&Pod| terms.has_failed(pod) && !is_in(&uncounted.failed, pod);
    (
        fresh.iter().filter(succeeded).copied().collect(),
        fresh.iter().filter(failed).copied().collect(),
    )
}

impl<'a> Tally<'a> {
    fn new(
        job: &Job,
        status: &JobStatus,
        pods: &[&'a Pod],
        new_succeeded: &[&Pod],
        new_failed: &[&Pod],
    ) -> Self {
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let len = |list: &Option<Vec<String>>| list.as_ref().map_or(0, Vec::len);
        let counting = new_failed.iter().filter(|pod| Failure::of(job, pod).counts()).count();
        let failed = i64::from(status.failed.unwrap_or_default())
            + i64::try_from(counting + len(&uncounted.failed)).unwrap_or(i64::MAX);
        let succeeded = usize::try_from(status.succeeded.unwrap_or_default()).unwrap_or_default()
            + new_succeeded.len()
            + len(&uncounted.succeeded);
        let mut pods = pods.to_vec();
        if Terms(job).is_indexed() {
            pods.sort_by_key(|pod| terms::index(pod));
        }
        let active = pods.iter().copied().filter(|pod| terms::is_active(pod)).collect();
        let terminating = pods.iter().filter(|pod| terms::is_terminating(pod)).count();
        let mut tally = Tally { pods, active, terminating, succeeded, failed, indexed: None };
        if Terms(job).is_indexed() {
            let indexed = Indexed::new(job, status, &tally);
            tally.succeeded = indexed.succeeded.len();
            tally.indexed = Some(indexed);
        }
        tally
    }
}

impl<'a> Indexed<'a> {
    fn new(job: &Job, status: &JobStatus, tally: &Tally<'a>) -> Self {
        let (terms, below) = (Terms(job), Terms(job).indexes());
        let tracked: Vec<&Pod> = tally
            .pods
            .iter()
            .copied()
            .filter(|pod| terms::is_tracked(pod) && terms.has_place_for(pod))
            .collect();
        let indexes = |is_meant: &dyn Fn(&Pod) -> bool| -> Indexes {
            tracked.iter().filter(|pod| is_meant(pod)).filter_map(|pod| terms::index(pod)).collect()
        };
        let known = Indexes::parse(status.completed_indexes.as_deref().unwrap_or_default(), below);
        let succeeded = known.union(&indexes(&|pod| terms::phase(pod) == "Succeeded"));
        let Some(limit) = terms.limit_per_index() else {
            return Indexed { known, succeeded, failed: None, delayed: BTreeMap::new() };
        };
        let is_failed = |pod: &Pod| {
            terms.has_failed(pod)
                && match Failure::of(job, pod) {
                    Failure::FailsIndex => true,
                    Failure::Ignored => false,
                    Failure::Counts | Failure::FailsJob(_) => terms::failures(pod) >= limit,
                }
        };
        let failed = Indexes::parse(status.failed_indexes.as_deref().unwrap_or_default(), below);
        let failed = failed.union(&indexes(&is_failed));
        let mut delayed: BTreeMap<u32, &Pod> = BTreeMap::new();
        let settled = succeeded.union(&failed).union(&indexes(&terms::is_active));
        for pod in tracked.iter().copied().filter(|pod| terms.has_failed(pod)) {
            let Some(index) = terms::index(pod).filter(|it| !settled.contains(*it)) else {
                continue;
            };
            let last = |pod: &Pod| {
                let failures = terms::failures(pod) + terms::ignored_failures(pod);
                (failures, backoff::finished_at(pod))
            };
            let known = delayed.entry(index).or_insert(pod);
            if last(known) <= last(pod) {
                *known = pod;
            }
        }
        Indexed { known, succeeded, failed: Some(failed), delayed }
    }
}

/// How long a Job may go on; nothing or less if it may not.
fn deadline(job: &Job, start_time: Option<Timestamp>, now: Timestamp) -> Option<SignedDuration> {
    let seconds = job.spec.as_ref()?.active_deadline_seconds?;
    let start_time = start_time.filter(|_| !Terms(job).is_suspended())?;
    Some(SignedDuration::from_secs(seconds).saturating_sub(now.duration_since(start_time)))
}

/// That a Job has ended, if it has for a reason other than that all is done.
fn verdict(
    job: &Job,
    status: &JobStatus,
    tally: &Tally<'_>,
    deadline: Option<SignedDuration>,
) -> Option<Verdict> {
    known_verdict(status).or_else(|| {
        let (is_success, reason, message) = new_verdict(job, tally, deadline)?;
        Some(Verdict { is_success, reason: reason.to_owned(), message, is_known: false })
    })
}

fn known_verdict(status: &JobStatus) -> Option<Verdict> {
    let find = |kind: &str| {
        let mut conditions = status.conditions.iter().flatten();
        conditions.find(|condition| condition.type_ == kind && condition.status == "True")
    };
    let known = |is_success: bool, condition: &JobCondition| Verdict {
        is_success,
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
        is_known: true,
    };
    let success = find("SuccessCriteriaMet").map(|condition| known(true, condition));
    success.or_else(|| find("FailureTarget").map(|condition| known(false, condition)))
}

fn new_verdict(
    job: &Job,
    tally: &Tally<'_>,
    deadline: Option<SignedDuration>,
) -> Option<(bool, &'static str, String)> {
    let failed = |reason, message: &str| Some((false, reason, message.to_owned()));
    let fails_job = |pod: &&Pod| match Failure::of(job, pod) {
        Failure::FailsJob(message) if Terms(job).has_failed(pod) => Some(message),
        _ => None,
    };
    if let Some(message) = tally.pods.iter().find_map(fails_job) {
        return Some((false, "PodFailurePolicy", message));
    }
    if tally.failed > i64::from(Terms(job).backoff_limit()) || restarts_exceed(job, tally) {
        return failed("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    if deadline.is_some_and(|left| left <= SignedDuration::ZERO) {
        return failed("DeadlineExceeded", "Job was active longer than specified deadline");
    }
    let indexed = tally.indexed.as_ref()?;
    if let Some(indexes) = &indexed.failed {
        let max = job.spec.as_ref().and_then(|spec| spec.max_failed_indexes);
        if max.is_some_and(|max| indexes.len() > usize::try_from(max).unwrap_or_default()) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return failed("MaxFailedIndexesExceeded", message);
        }
        let ended = indexes.len() + indexed.succeeded.len();
        if indexes.len() > 0 && ended >= Terms(job).completions().unwrap_or_default() {
            return failed("FailedIndexes", "Job has failed indexes");
        }
    }
    let message = policy::success(job, &indexed.succeeded, Terms(job).indexes())?;
    Some((true, "SuccessPolicy", message))
}

/// Whether containers were restarted in place too often.
fn restarts_exceed(job: &Job, tally: &Tally<'_>) -> bool {
    let template = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    if template.and_then(|spec| spec.restart_policy.as_deref()) != Some("OnFailure") {
        return false;
    }
    let pods = tally.pods.iter().filter(|pod| matches!(terms::phase(pod), "Running" | "Pending"));
    let statuses = pods.flat_map(|pod| pod.status.iter()).flat_map(|status| {
        let inits = status.init_container_statuses.iter().flatten();
        inits.chain(status.container_statuses.iter().flatten())
    });
    let restarts: i32 = statuses.map(|status| status.restart_count).sum();
    restarts > 0 && restarts >= Terms(job).backoff_limit()
}

/// Decides which pods must come or go for a Job to go on.
fn manage(job: &Job, plan: &mut Plan<'_>, now: Timestamp) {
    let (terms, tally) = (Terms(job), &plan.tally);
    let active = tally.active.len();
    let wanted = match terms.completions() {
        _ if terms.is_suspended() => 0,
        // Nobody can say when the rest is done but they themselves.
        None if tally.succeeded > 0 => active,
        None => terms.parallelism(),
        Some(completions) => completions.saturating_sub(tally.succeeded).min(terms.parallelism()),
    };
    let mut surplus = pods::surplus(job, &tally.active, active.saturating_sub(wanted));
    if !surplus.is_empty() {
        if !terms.is_suspended() {
            surplus.truncate(PODS_AT_ONCE);
        }
        plan.deed = Deed::Remove(surplus);
        return;
    }
    let leaving = if terms.replaces_only_failed() { tally.terminating } else { 0 };
    let missing = wanted.saturating_sub(leaving + active);
    if missing == 0 {
        return;
    }
    if terms.limit_per_index().is_none() {
        let pause = plan.backoff.remaining(now);
        if pause > SignedDuration::ZERO {
            plan.again_after = sooner(plan.again_after, pause);
            return;
        }
    }
    let missing = missing.min(PODS_AT_ONCE);
    let Some(indexed) = &tally.indexed else {
        plan.deed = Deed::Create((0..missing).map(|_| pods::new(job)).collect());
        return;
    };
    let pending: Vec<u32> = pending(job, tally, indexed).take(missing).collect();
    let pause = |index: &u32| {
        let last = indexed.delayed.get(index);
        last.map_or(SignedDuration::ZERO, |last| backoff::remaining_of_index(last, now))
    };
    let ready: Vec<u32> =
        pending.iter().copied().filter(|it| pause(it) == SignedDuration::ZERO).collect();
    if ready.is_empty() {
        if let Some(pause) = pending.iter().map(pause).min() {
            plan.again_after = sooner(plan.again_after, pause);
        }
        return;
    }
    let new = |index| pods::new_for(job, index, indexed.delayed.get(&index).copied());
    plan.deed = Deed::Create(ready.into_iter().map(new).collect());
}

/// The indexes that have no pod and need one, in order.
fn pending(job: &Job, tally: &Tally<'_>, indexed: &Indexed<'_>) -> impl Iterator<Item = u32> {
    let terms = Terms(job);
    let is_there = |pod: &&&Pod| {
        terms::is_active(pod) || (terms.replaces_only_failed() && terms::is_terminating(pod))
    };
    let there: Indexes =
        tally.pods.iter().filter(is_there).filter_map(|pod| terms::index(pod)).collect();
    let mut settled = indexed.succeeded.union(&there);
    if let Some(failed) = &indexed.failed {
        settled = settled.union(failed);
    }
    (0..terms.indexes()).filter(move |index| !settled.contains(*index))
}

fn sooner(known: Option<SignedDuration>, new: SignedDuration) -> Option<SignedDuration> {
    Some(known.map_or(new, |known| known.min(new)))
}
