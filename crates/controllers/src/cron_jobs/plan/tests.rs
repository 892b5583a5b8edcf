use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T10:00:05Z";

fn cron_job(spec: Value, status: Value) -> CronJob {
    let template = json!({
        "metadata": { "labels": { "app": "a" } }, "spec": { "template": { "spec": { "containers": [] } } },
    });
    let mut all = json!({ "schedule": "0 * * * *", "jobTemplate": template });
    for (key, value) in spec.as_object().expect("a spec") {
        all[key] = value.clone();
    }
    let metadata =
        json!({ "name": "c", "namespace": "n", "creationTimestamp": "2026-01-01T09:30:00Z" });
    serde_json::from_value(json!({ "metadata": metadata, "spec": all, "status": status }))
        .expect("one")
}

fn job(name: &str, end: Option<&str>, started: u8) -> Job {
    let time = format!("2026-01-01T09:00:{started:02}Z");
    let conditions = end.map(|end| json!([{ "type": end, "status": "True" }]));
    let status = json!({ "startTime": time, "completionTime": time, "conditions": conditions });
    let metadata = json!({ "name": name, "uid": name });
    serde_json::from_value(json!({ "metadata": metadata, "status": status })).expect("a job")
}

fn active(names: &[&str]) -> Value {
    json!(names.iter().map(|name| json!({ "name": name, "uid": name })).collect::<Vec<_>>())
}

fn planned<'a>(cron_job: &CronJob, jobs: &'a [Job]) -> Plan<'a> {
    let now = NOW.parse().expect("a time");
    plan(cron_job, &jobs.iter().collect::<Vec<_>>(), |_| false, now)
}

/// A CronJob, and the Job that it starts, if any.
#[track_caller]
fn check_start(spec: Value, status: Value, jobs: &[Job], expected: Option<&str>) {
    let cron_job = cron_job(spec, status);
    let plan = planned(&cron_job, jobs);
    let name = plan.start.as_ref().map(|start| text(&start.job.metadata.name));
    assert_eq!(name, expected);
}

#[test]
fn a_job_is_named_by_the_minute_it_is_due() {
    let cron_job = cron_job(json!({ "timeZone": "Asia/Tokyo" }), json!({}));
    let start = planned(&cron_job, &[]).start.expect("it is due");
    assert_eq!(start.at, "2026-01-01T10:00:00Z".parse().expect("a time"));
    let metadata = json!({
        "name": "c-29454360", "namespace": "n", "labels": { "app": "a" },
        "annotations": { SCHEDULED_AT: "2026-01-01T19:00:00+09:00" },
    });
    assert_eq!(json!(start.job.metadata), metadata);
}

#[test]
fn at_other_times_it_waits() {
    let status = json!({ "lastScheduleTime": "2026-01-01T10:00:00Z" });
    let cron_job = cron_job(json!({}), status);
    let plan = planned(&cron_job, &[]);
    let wait = SignedDuration::from_secs(3595) + SignedDuration::from_millis(100);
    assert_eq!((plan.start, plan.again_after), (None, Some(wait)));
}

#[test]
fn what_still_runs_is_left_beside_in_the_way_or_replaced() {
    let (runs, jobs) = (json!({ "active": active(&["old"]) }), [job("old", None, 0)]);
    let name = Some("c-29454360");
    check_start(json!({}), runs.clone(), &jobs, name);
    check_start(json!({ "concurrencyPolicy": "Forbid" }), runs.clone(), &jobs, None);
    check_start(json!({ "concurrencyPolicy": "Replace" }), runs.clone(), &jobs, name);
    let cron_job = cron_job(json!({ "concurrencyPolicy": "Replace" }), runs);
    let start = planned(&cron_job, &jobs).start.expect("it is due");
    assert_eq!(json!(start.instead_of), active(&["old"]));
    check_start(
        json!({}),
        json!({ "active": active(&["c-29454360"]) }),
        &[job("c-29454360", None, 0)],
        None,
    );
}

#[test]
fn a_suspended_or_deleted_one_starts_nothing() {
    check_start(json!({ "suspend": true }), json!({}), &[], None);
    let mut deleted = cron_job(json!({}), json!({}));
    deleted.metadata.deletion_timestamp = serde_json::from_value(json!(NOW)).ok();
    assert_eq!(planned(&deleted, &[]).start, None);
}

/// A CronJob, its Jobs, and what people are told.
#[track_caller]
fn check_events(spec: Value, status: Value, jobs: &[Job], expected: &[Event]) {
    let cron_job = cron_job(spec, status);
    assert_eq!(planned(&cron_job, jobs).events, expected);
}

#[test]
fn people_are_told_what_is_wrong() {
    check_events(
        json!({ "timeZone": "Mars/Base" }),
        json!({}),
        &[],
        &[Event::warning(
            "UnknownTimeZone",
            "invalid timeZone: \"Mars/Base\": unknown time zone Mars/Base",
        )],
    );
    check_events(
        json!({ "startingDeadlineSeconds": 3 }),
        json!({ "lastScheduleTime": "2026-01-01T10:00:00Z" }),
        &[],
        &[],
    );
    let note = "invalid schedule: 0 0 30 2 * : time difference between two schedules is less than 1 second";
    check_events(
        json!({ "schedule": "0 0 30 2 *" }),
        json!({}),
        &[],
        &[Event::warning("InvalidSchedule", note)],
    );
    let note =
        "Not starting job because prior execution is running and concurrency policy is Forbid";
    check_events(
        json!({ "concurrencyPolicy": "Forbid" }),
        json!({ "active": active(&["old"]) }),
        &[job("old", None, 0)],
        &[Event::normal("JobAlreadyActive", note)],
    );
}

#[test]
fn jobs_that_ended_or_went_are_active_no_more() {
    let status = json!({ "active": active(&["done", "lost", "runs"]) });
    let cron_job = cron_job(json!({ "suspend": true }), status);
    let jobs = [job("done", Some("Complete"), 7), job("runs", None, 8), job("strange", None, 9)];
    let plan = planned(&cron_job, &jobs);
    let expected =
        json!({ "active": active(&["runs"]), "lastSuccessfulTime": "2026-01-01T09:00:07Z" });
    assert_eq!(json!(plan.status), expected);
    let events = [
        Event::normal("SawCompletedJob", "Saw completed job: done, condition: Complete"),
        Event::warning(
            "UnexpectedJob",
            "Saw a job that the controller did not create or forgot: strange",
        ),
        Event::normal("MissingJob", "Active job went missing: lost"),
    ];
    assert_eq!(plan.events, events);
}

#[test]
fn the_oldest_of_too_many_are_forgotten() {
    let spec =
        json!({ "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0, "suspend": true });
    let jobs = [
        job("new", Some("Complete"), 9),
        job("old", Some("Complete"), 3),
        job("bad", Some("Failed"), 5),
        job("runs", None, 1),
    ];
    let cron_job = cron_job(spec, json!({}));
    let plan = planned(&cron_job, &jobs);
    let names: Vec<&str> = plan.forget.iter().map(|job| text(&job.metadata.name)).collect();
    assert_eq!(names, ["old", "bad"]);
}
