//! What to do about a CronJob and its Jobs.

#[cfg(test)]
mod tests;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use kubewright::Event;
use kubewright_apimachinery::cron::{self, Schedule};

use super::starts::{Starts, TooDense};
use crate::part::text;

/// When a Job was due, in the zone of its CronJob.
const SCHEDULED_AT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// What to do, in this order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan<'a> {
    /// The finished Jobs that are too many.
    pub(super) forget: Vec<&'a Job>,
    /// What status says, before anything is started.
    pub(super) status: CronJobStatus,
    /// What people are told of what was seen.
    pub(super) events: Vec<Event>,
    pub(super) start: Option<Start>,
    /// When to look again if nothing is started and nothing happens before.
    pub(super) again_after: Option<SignedDuration>,
}

/// A Job that is due.
#[derive(Debug, PartialEq)]
pub(super) struct Start {
    pub(super) job: Job,
    pub(super) at: Timestamp,
    /// The Jobs that it takes the place of.
    pub(super) instead_of: Vec<ObjectReference>,
}

/// Decides about a CronJob. `jobs` are those it controls; `exists` tells of any Job whether it is
/// there.
pub(super) fn plan<'a>(
    cron_job: &CronJob,
    jobs: &[&'a Job],
    exists: impl Fn(&ObjectReference) -> bool,
    now: Timestamp,
) -> Plan<'a> {
    let mut plan = Plan {
        status: cron_job.status.clone().unwrap_or_default(),
        forget: forget(cron_job, jobs),
        ..Plan::default()
    };
    for job in &plan.forget {
        drop_active(&mut plan.status, text(&job.metadata.uid));
    }
    let left = jobs
        .iter()
        .copied()
        .filter(|job| !plan.forget.iter().any(|gone| gone.metadata.uid == job.metadata.uid));
    let left: Vec<&Job> = left.collect();
    note_ends(&mut plan, &left);
    note_losses(&mut plan, jobs, exists);
    if cron_job.metadata.deletion_timestamp.is_none() {
        schedule(cron_job, &mut plan, now);
    }
    plan
}

/// When to look again after a start.
pub(super) fn wait(cron_job: &CronJob, now: Timestamp) -> Option<SignedDuration> {
    starts(cron_job).ok()?.wait(cron_job, now)
}

/// The oldest of the finished Jobs, as far as they are too many.
fn forget<'a>(cron_job: &CronJob, jobs: &[&'a Job]) -> Vec<&'a Job> {
    let spec = &cron_job.spec;
    let mut forgotten = Vec::new();
    let limits = [
        ("Complete", spec.successful_jobs_history_limit),
        ("Failed", spec.failed_jobs_history_limit),
    ];
    for (end, limit) in limits {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
        let mut ended: Vec<&Job> =
            jobs.iter().copied().filter(|job| self::end(job) == Some(end)).collect();
        ended.sort_by_key(|job| {
            let started = job.status.as_ref().and_then(|status| status.start_time.as_ref());
            (started.is_none(), started.map(|time| time.0), job.metadata.name.clone())
        });
        ended.truncate(ended.len().saturating_sub(limit));
        forgotten.extend(ended);
    }
    forgotten
}

fn note_ends(plan: &mut Plan<'_>, jobs: &[&Job]) {
    for job in jobs {
        let (name, uid) = (text(&job.metadata.name), text(&job.metadata.uid));
        let active = plan.status.active.iter().flatten();
        let is_active = active.into_iter().any(|known| known.uid.as_deref() == Some(uid));
        let Some(end) = end(job) else {
            if !is_active {
                let note =
                    format!("Saw a job that the controller did not create or forgot: {name}");
                plan.events.push(Event::warning("UnexpectedJob", note));
            }
            continue;
        };
        if is_active {
            drop_active(&mut plan.status, uid);
            let note = format!("Saw completed job: {name}, condition: {end}");
            plan.events.push(Event::normal("SawCompletedJob", note));
        }
        let completed = job.status.as_ref().and_then(|status| status.completion_time.as_ref());
        if let Some(completed) = completed.filter(|_| end == "Complete")
            && plan.status.last_successful_time.as_ref().is_none_or(|last| last.0 < completed.0)
        {
            plan.status.last_successful_time = Some(completed.clone());
        }
    }
}

fn note_losses(plan: &mut Plan<'_>, jobs: &[&Job], exists: impl Fn(&ObjectReference) -> bool) {
    for active in plan.status.active.clone().into_iter().flatten() {
        let is_own = jobs.iter().any(|job| job.metadata.uid == active.uid);
        if !is_own && !exists(&active) {
            let note = format!("Active job went missing: {}", text(&active.name));
            plan.events.push(Event::normal("MissingJob", note));
            drop_active(&mut plan.status, text(&active.uid));
        }
    }
}

fn schedule(cron_job: &CronJob, plan: &mut Plan<'_>, now: Timestamp) {
    let spec = &cron_job.spec;
    if let Some(zone) = &spec.time_zone
        && let Err(error) = cron::zone(zone)
    {
        let note = format!("invalid timeZone: {zone:?}: {error}");
        plan.events.push(Event::warning("UnknownTimeZone", note));
        return;
    }
    if spec.suspend == Some(true) {
        return;
    }
    if spec.schedule.contains("TZ") {
        let note = format!(
            "CRON_TZ or TZ used in schedule {:?} is not officially supported, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
            spec.schedule
        );
        plan.events.push(Event::warning("UnsupportedSchedule", note));
    }
    let starts = match starts(cron_job) {
        Ok(starts) => starts,
        Err(error) => {
            let note = format!("unparseable schedule: {:?} : {error}", spec.schedule);
            plan.events.push(Event::warning("UnparseableSchedule", note));
            return;
        }
    };
    let due = match starts.due(cron_job, now) {
        Ok(due) => due,
        Err(error @ TooDense) => {
            let note = format!("invalid schedule: {} : {error}", spec.schedule);
            plan.events.push(Event::warning("InvalidSchedule", note));
            return;
        }
    };
    plan.again_after = starts.wait(cron_job, now);
    let Some(due) = due else { return };
    if due.are_many_missed {
        let note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or \
                    check clock skew";
        plan.events.push(Event::warning("TooManyMissedTimes", note));
    }
    let late = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    if late.is_some_and(|late| now.duration_since(due.at) > late) {
        let at = due.at.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S %z").to_string();
        let note = format!("Missed scheduled time to start a job: {at}");
        plan.events.push(Event::warning("MissSchedule", note));
        return;
    }
    let name = format!("{}-{}", text(&cron_job.metadata.name), due.at.as_second() / 60);
    let active = plan.status.active.clone().unwrap_or_default();
    let is_started = active.iter().any(|active| active.name.as_deref() == Some(&name));
    let is_last = plan.status.last_schedule_time.as_ref().is_some_and(|last| last.0 == due.at);
    if is_started || is_last {
        return;
    }
    match spec.concurrency_policy.as_deref() {
        Some("Forbid") if !active.is_empty() => {
            let note = "Not starting job because prior execution is running and concurrency policy \
                        is Forbid";
            plan.events.push(Event::normal("JobAlreadyActive", note));
        }
        policy => {
            let instead_of = if policy == Some("Replace") { active } else { Vec::new() };
            let job = job(cron_job, name, due.at, &starts.zone);
            plan.start = Some(Start { job, at: due.at, instead_of });
        }
    }
}

/// A CronJob whose schedule cannot be read is left alone.
fn starts(cron_job: &CronJob) -> Result<Starts, cron::ParseError> {
    let schedule = Schedule::parse(&cron_job.spec.schedule)?;
    let zone = cron_job.spec.time_zone.as_deref();
    let zone = zone.and_then(|name| cron::zone(name).ok()).unwrap_or(TimeZone::UTC);
    Ok(Starts { schedule, zone })
}

fn job(cron_job: &CronJob, name: String, at: Timestamp, zone: &TimeZone) -> Job {
    let template = cron_job.spec.job_template.clone();
    let metadata = template.metadata.unwrap_or_default();
    let mut annotations = metadata.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED_AT.to_owned(), local(at, zone));
    Job {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: cron_job.metadata.namespace.clone(),
            labels: metadata.labels,
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

/// A time as clocks of a zone show it, and how far they are from UTC.
fn local(at: Timestamp, zone: &TimeZone) -> String {
    let at = at.to_zoned(zone.clone());
    match at.offset().seconds() {
        0 => at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        _ => at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    }
}

/// How a Job has ended, if it has.
fn end(job: &Job) -> Option<&'static str> {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut held = conditions.filter(|condition| condition.status == "True");
    held.find_map(|condition| {
        ["Complete", "Failed"].into_iter().find(|end| *end == condition.type_)
    })
}

/// Notes that a Job does not run any more.
pub(super) fn drop_active(status: &mut CronJobStatus, uid: &str) {
    if let Some(active) = &mut status.active {
        active.retain(|known| known.uid.as_deref() != Some(uid));
    }
    status.active = status.active.take().filter(|active| !active.is_empty());
}

/// Notes that a Job was started.
pub(super) fn note_start(status: &mut CronJobStatus, job: &Job, at: Timestamp) {
    status.active.get_or_insert_default().push(ObjectReference {
        api_version: Some("batch/v1".to_owned()),
        kind: Some("Job".to_owned()),
        namespace: job.metadata.namespace.clone(),
        name: job.metadata.name.clone(),
        uid: job.metadata.uid.clone(),
        resource_version: job.metadata.resource_version.clone(),
        ..ObjectReference::default()
    });
    status.last_schedule_time = Some(Time(at));
}
