//! CronJobs: Jobs by the clock.

use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec};
use kubewright_apimachinery::cron::{self, Schedule};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::{Value, json};

use super::{Context, Part, Rules, check, edit, job, typed, workload};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    warnings,
    parts: &[("status", Part::STATUS)],
    reset: &["status"],
    ..Rules::PLAIN
};

/// Eleven characters, a dash and a time, are appended for the names of jobs.
const NAME_BYTES_MAX: usize = name::LABEL_BYTES_MAX - 11;
/// The longest part of the name of a time zone.
const ZONE_PART_BYTES_MAX: usize = 14;

const TEMPLATE: &str = "/spec/jobTemplate/spec/template";

fn default(object: &mut Value) {
    let spec = &mut object["spec"];
    edit::fill_text(spec, "concurrencyPolicy", "Allow");
    edit::fill(spec, "suspend", false);
    edit::fill(spec, "successfulJobsHistoryLimit", 3);
    edit::fill(spec, "failedJobsHistoryLimit", 1);
    job::default_pods(&mut spec["jobTemplate"]["spec"]);
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    object["status"] = json!({});
    workload::drop_disabled(object, None, TEMPLATE);
    edit::first_generation(object);
}

fn prepare_update(object: &mut Value, old: &Value, context: &Context<'_>) {
    workload::drop_disabled(object, Some(old), TEMPLATE);
    edit::keep_status(object, old, context);
}

fn validate(object: &Value) -> Vec<Error> {
    let cron_job: CronJob = typed(object);
    let mut errors = check_spec(&cron_job.spec, None);
    let name = cron_job.metadata.name.unwrap_or_default();
    if name.len() > NAME_BYTES_MAX {
        errors.push(Error::invalid(
            &Path::new("metadata").child("name"),
            name,
            format!("must be no more than {NAME_BYTES_MAX} characters"),
        ));
    }
    errors
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, old): (CronJob, CronJob) = (typed(object), typed(old));
    check_spec(&new.spec, Some(&old.spec))
}

fn check_spec(spec: &CronJobSpec, old: Option<&CronJobSpec>) -> Vec<Error> {
    let path = Path::new("spec");
    let mut errors = check_schedule(spec, old, &path.child("schedule"));
    if let Some(deadline) = spec.starting_deadline_seconds {
        errors.extend(check::non_negative(&path.child("startingDeadlineSeconds"), deadline));
    }
    if let Some(zone) = &spec.time_zone
        && old.is_none_or(|old| old.time_zone != spec.time_zone)
    {
        errors.extend(check_zone(zone, &path.child("timeZone")));
    }
    errors.extend(check::required_one_of(
        &path.child("concurrencyPolicy"),
        check::text(&spec.concurrency_policy),
        &["Allow", "Forbid", "Replace"],
    ));
    errors.extend(check_template(spec, old, &path.child("jobTemplate")));
    for (name, limit) in [
        ("successfulJobsHistoryLimit", spec.successful_jobs_history_limit),
        ("failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ] {
        errors.extend(limit.and_then(|limit| check::non_negative(&path.child(name), limit)));
    }
    errors
}

/// A zone in the schedule was once let through, and may stay where it is.
fn check_schedule(spec: &CronJobSpec, old: Option<&CronJobSpec>, path: &Path<'_>) -> Vec<Error> {
    let schedule = spec.schedule.as_str();
    if schedule.is_empty() {
        return vec![Error::required(path, "")];
    }
    let mut errors = Vec::new();
    if let Err(problem) = Schedule::parse(schedule) {
        errors.push(Error::invalid(path, schedule, problem.to_string()));
    }
    let had_zone = old.is_some_and(|old| old.schedule.contains("TZ"));
    if schedule.contains("TZ") && !had_zone {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(Error::invalid(path, schedule, detail));
    } else if schedule.contains("TZ") && spec.time_zone.is_some() {
        let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.push(Error::invalid(path, schedule, detail));
    }
    errors
}

fn check_zone(zone: &str, path: &Path<'_>) -> Vec<Error> {
    if zone.is_empty() {
        let detail = "timeZone must be nil or non-empty string";
        return vec![Error::invalid(path, zone, detail)];
    }
    if !zone.split('/').all(is_zone_part) {
        return vec![Error::invalid(path, zone, format!("unknown time zone {zone}"))];
    }
    let mut errors = Vec::new();
    if zone.eq_ignore_ascii_case("Local") {
        errors.push(Error::invalid(
            path,
            zone,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ));
    }
    if let Err(problem) = cron::zone(zone) {
        errors.push(Error::invalid(path, zone, problem.to_string()));
    }
    errors
}

fn is_zone_part(part: &str) -> bool {
    let is_letter = |c: u8| c.is_ascii_alphanumeric() || b".-_+".contains(&c);
    (1..=ZONE_PART_BYTES_MAX).contains(&part.len())
        && ![".", ".."].contains(&part)
        && !part.starts_with('-')
        && part.bytes().all(is_letter)
}

/// Jobs of a template get their selectors when they are made.
fn check_template(spec: &CronJobSpec, old: Option<&CronJobSpec>, path: &Path<'_>) -> Vec<Error> {
    let path = path.child("spec");
    let new = spec.job_template.spec.clone().unwrap_or_default();
    let old = old.map(|old| old.job_template.spec.clone().unwrap_or_default());
    let mut errors = job::check_spec(&new, old.as_ref(), &path);
    if let Some(selector) = &new.selector {
        let shown = check::shown(&check::label_selector(selector));
        let detail = "`selector` will be auto-generated";
        errors.push(Error::invalid(&path.child("selector"), shown, detail));
    }
    if new.manual_selector == Some(true) {
        let path = path.child("manualSelector");
        errors.push(Error::not_supported(&path, true, &["nil", "false"]));
    }
    errors
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = workload::name_warnings(object, old);
    if workload::is_another(object, old) {
        let path = Path::new("spec.jobTemplate.spec");
        warnings.extend(job::spec_warnings(object, "/spec/jobTemplate/spec", &path));
    }
    if old.is_some() && edit::text(object, "/spec/schedule").contains("TZ") {
        // The path is upstream's.
        warnings.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
    }
    warnings
}
