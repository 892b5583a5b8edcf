//! What is accepted, and with what words the rest is refused, is recorded with CronJobs; this is
//! about when schedules are due.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Schedule, ZoneError, zone};

/// The times at which a schedule is due, one after another.
fn check(schedule: &str, zone_name: &str, after: &str, expected: &[&str]) {
    let schedule = Schedule::parse(schedule).expect("a schedule");
    let zone = zone(zone_name).expect("a zone");
    let mut time: Timestamp = after.parse().expect("a time");
    let mut due = Vec::new();
    for _ in expected {
        let Some(next) = schedule.next(time, &zone) else { break };
        due.push(next.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string());
        time = next;
    }
    assert_eq!(due, expected, "{schedule:?}");
}

#[test]
fn fields_are_due_at_second_zero() {
    check(
        "*/20 * * * *",
        "UTC",
        "2024-01-31T23:25:00.5Z",
        &["2024-01-31T23:40:00+00:00", "2024-02-01T00:00:00+00:00", "2024-02-01T00:20:00+00:00"],
    );
    check("0 0 * * *", "UTC", "2024-01-01T00:00:00Z", &["2024-01-02T00:00:00+00:00"]);
    check("5/30 9-17/4 * jan,MAR *", "UTC", "2024-01-31T17:36:00Z", &["2024-03-01T09:05:00+00:00"]);
}

#[test]
fn either_field_for_days_will_do_unless_one_is_a_star() {
    check(
        "0 0 13 * fri",
        "UTC",
        "2024-09-07T00:00:00Z",
        &["2024-09-13T00:00:00+00:00", "2024-09-20T00:00:00+00:00"],
    );
    check("0 0 * * 5", "UTC", "2024-09-07T00:00:00Z", &["2024-09-13T00:00:00+00:00"]);
    // A star with a step is no star.
    check("0 0 */2 * 6", "UTC", "2024-09-07T00:00:00Z", &["2024-09-09T00:00:00+00:00"]);
}

#[test]
fn a_schedule_may_be_years_ahead_or_never_due() {
    check("0 0 29 2 *", "UTC", "2024-02-29T00:00:00Z", &["2028-02-29T00:00:00+00:00"]);
    let never = |text: &str| {
        let schedule = Schedule::parse(text).unwrap();
        assert_eq!(schedule.next(Timestamp::UNIX_EPOCH, &TimeZone::UTC), None, "{text}");
    };
    never("0 0 31 2 *");
    never(", * * * *");
}

#[test]
fn local_times_that_are_skipped_are_not_due_and_repeated_ones_are_due_twice() {
    check(
        "30 2 * * *",
        "Europe/Berlin",
        "2024-03-30T12:00:00Z",
        &["2024-04-01T02:30:00+02:00", "2024-04-02T02:30:00+02:00"],
    );
    check(
        "30 2 * * *",
        "Europe/Berlin",
        "2024-10-26T12:00:00Z",
        &["2024-10-27T02:30:00+02:00", "2024-10-27T02:30:00+01:00", "2024-10-28T02:30:00+01:00"],
    );
    // A day that starts at one.
    check("0 * * * *", "America/Sao_Paulo", "2018-11-04T02:30:00Z", &["2018-11-04T01:00:00-02:00"]);
}

#[test]
fn a_zone_in_the_text_comes_first() {
    check(
        "CRON_TZ=Asia/Tokyo 0 9 * * *",
        "UTC",
        "2024-01-01T00:00:00Z",
        &["2024-01-02T00:00:00+00:00"],
    );
    check(
        "TZ=Local 0 9 * * *",
        "Asia/Tokyo",
        "2024-01-01T00:00:00Z",
        &["2024-01-02T09:00:00+09:00"],
    );
}

#[test]
fn delays_count_whole_seconds() {
    check("@every 1h30m", "UTC", "2024-01-01T00:00:00.9Z", &["2024-01-01T01:30:00+00:00"]);
    check("@every 10ms", "UTC", "2024-01-01T00:00:00Z", &["2024-01-01T00:00:01+00:00"]);
    check("@every 1.9s", "UTC", "2024-01-01T00:00:00Z", &["2024-01-01T00:00:01+00:00"]);
}

#[test]
fn descriptors_are_short_for_fields() {
    for (short, long) in [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * ?"),
        ("@weekly", "0 0 * * sun"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ] {
        assert_eq!(Schedule::parse(short), Schedule::parse(long), "{short}");
    }
}

#[test]
fn zones_have_one_spelling() {
    assert!(zone("Europe/Berlin").is_ok());
    let unknown = |name: &str| Err(ZoneError::Unknown(name.to_owned()));
    assert_eq!(zone("europe/berlin"), unknown("europe/berlin"));
    assert_eq!(zone("Mars/Base"), unknown("Mars/Base"));
    assert_eq!(zone("../etc/passwd"), Err(ZoneError::Name));
}
