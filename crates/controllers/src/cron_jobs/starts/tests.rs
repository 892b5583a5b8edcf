use serde_json::{Value, json};

use super::*;

fn cron_job(created: &str, last: Option<&str>, late: Option<i64>) -> CronJob {
    let spec = json!({ "schedule": "", "jobTemplate": {}, "startingDeadlineSeconds": late });
    let metadata = json!({ "creationTimestamp": created });
    let status: Value = json!({ "lastScheduleTime": last });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": status }))
        .expect("one")
}

fn starts(schedule: &str, zone: &str) -> Starts {
    let schedule = Schedule::parse(schedule).expect("a schedule");
    Starts { schedule, zone: TimeZone::get(zone).expect("a zone") }
}

/// When it was made or last started, when it is, the start that is due, and how long until the next.
#[track_caller]
fn check(starts: &Starts, cron_job: &CronJob, now: &str, due: Option<(&str, bool)>, wait: i64) {
    let now: Timestamp = now.parse().expect("a time");
    let expected =
        due.map(|(at, are_many_missed)| Due { at: at.parse().expect("a time"), are_many_missed });
    assert_eq!(starts.due(cron_job, now), Ok(expected));
    assert_eq!(starts.wait(cron_job, now), Some(SignedDuration::from_secs(wait) + DELAY));
}

#[test]
fn the_last_start_that_was_missed_is_due() {
    let hourly = starts("0 * * * *", "UTC");
    let made = cron_job("2026-01-01T09:30:00Z", None, None);
    check(&hourly, &made, "2026-01-01T09:59:59Z", None, 1);
    check(&hourly, &made, "2026-01-01T10:00:00Z", Some(("2026-01-01T10:00:00Z", false)), 3600);
    check(&hourly, &made, "2026-01-01T13:10:00Z", Some(("2026-01-01T13:00:00Z", false)), 3000);
    check(&hourly, &made, "2026-01-09T13:10:00Z", Some(("2026-01-09T13:00:00Z", true)), 3000);
}

#[test]
fn a_start_that_was_made_is_not_due_again() {
    let hourly = starts("0 * * * *", "UTC");
    let last = cron_job("2026-01-01T00:00:00Z", Some("2026-01-01T10:00:00Z"), None);
    check(&hourly, &last, "2026-01-01T10:00:01Z", None, 3599);
}

#[test]
fn what_may_not_be_late_any_more_is_not_due() {
    let hourly = starts("0 * * * *", "UTC");
    let strict = cron_job("2026-01-01T00:00:00Z", None, Some(60));
    check(&hourly, &strict, "2026-01-01T10:10:00Z", None, 3000);
    check(&hourly, &strict, "2026-01-01T10:00:30Z", Some(("2026-01-01T10:00:00Z", false)), 3570);
}

#[test]
fn clocks_are_those_of_the_zone() {
    let daily = starts("30 8 * * *", "Europe/Berlin");
    let made = cron_job("2026-03-28T12:00:00Z", None, None);
    // The clocks go forward in the night.
    check(&daily, &made, "2026-03-29T06:00:00Z", None, 1800);
}

#[test]
fn a_schedule_without_any_start_is_an_error() {
    let never = starts("0 0 30 2 *", "UTC");
    let made = cron_job("2026-01-01T00:00:00Z", None, None);
    assert_eq!(never.due(&made, "2026-01-02T00:00:00Z".parse().expect("a time")), Err(TooDense));
}
