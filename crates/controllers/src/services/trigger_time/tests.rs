use serde_json::json;

use super::*;

fn service(made: u8) -> Service {
    let metadata = json!({
        "name": "web", "namespace": "n", "creationTimestamp": format!("2026-01-01T00:00:{made:02}Z"),
    });
    serde_json::from_value(json!({ "metadata": metadata })).expect("a service")
}

fn pod(name: &str, since: u8) -> Pod {
    let ready = json!({
        "type": "Ready", "status": "True",
        "lastTransitionTime": format!("2026-01-01T00:00:{since:02}Z"),
    });
    let pod = json!({ "metadata": { "name": name }, "status": { "conditions": [ready] } });
    serde_json::from_value(pod).expect("a pod")
}

/// Services with their pods, as they are seen one after the other, and the seconds that are told.
#[track_caller]
fn check(seen: &[(Service, Vec<Pod>)], expected: &[Option<i8>]) {
    let mut times = TriggerTimes::default();
    let told = seen.iter().map(|(service, pods)| times.note(service, pods));
    let second = |time: Timestamp| time.to_zoned(jiff::tz::TimeZone::UTC).second();
    assert_eq!(told.map(|time| time.map(second)).collect::<Vec<_>>(), expected);
}

#[test]
fn the_first_time_it_is_when_the_service_was_made() {
    check(&[(service(1), vec![pod("a", 5)])], &[Some(1)]);
}

#[test]
fn later_it_is_the_earliest_of_what_is_new() {
    check(
        &[
            (service(1), vec![pod("a", 5)]),
            (service(1), vec![pod("a", 5), pod("b", 9), pod("c", 7)]),
            (service(1), vec![pod("a", 11), pod("b", 9)]),
        ],
        &[Some(1), Some(7), Some(11)],
    );
}

#[test]
fn nothing_new_has_no_time() {
    check(&[(service(1), vec![pod("a", 5)]), (service(1), vec![])], &[Some(1), None]);
}

#[test]
fn a_service_that_went_is_new_again() {
    let mut times = TriggerTimes::default();
    times.note(&service(1), &[]);
    times.forget(&ObjectKey::new(Some("n"), "web"));
    assert!(times.note(&service(2), &[]).is_some());
}
