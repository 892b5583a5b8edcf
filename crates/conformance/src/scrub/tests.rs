use serde_json::json;

use super::*;

fn check(clock: case::Clock, mut answer: Value, expected: Value) {
    let started = "2020-01-01T00:00:10Z".parse().unwrap();
    let mut scrubber = Scrubber::new(started, clock);
    for second in [10, 11, 12] {
        scrubber.step_sent(format!("2020-01-01T00:00:{second}.5Z").parse().unwrap());
    }
    scrubber.scrub(&mut answer);
    assert_eq!(answer, expected);
}

#[test]
fn what_the_server_chose_becomes_constant_wherever_it_stands() {
    check(
        case::Clock::Still,
        json!({
            "metadata": { "uid": "abc", "resourceVersion": "7", "generateName": "x-", "name": "x-abcde" },
            "message": "uid abc, not abd",
            "given": "1999-01-01T00:00:00Z",
        }),
        json!({
            "metadata": { "uid": case::UID, "resourceVersion": "1", "generateName": "x-", "name": "x-xxxxx" },
            "message": format!("uid {}, not abd", case::UID),
            "given": "1999-01-01T00:00:00Z",
        }),
    );
}

fn managed(entries: &[(&str, &str)]) -> Value {
    let entry = |(manager, time): &(&str, &str)| json!({ "manager": manager, "operation": "Update", "time": time });
    json!({ "metadata": { "managedFields": entries.iter().map(entry).collect::<Vec<_>>() } })
}

#[test]
fn on_a_still_clock_managers_come_by_name() {
    check(
        case::Clock::Still,
        managed(&[("b", "2020-01-01T00:00:10Z"), ("a", "2020-01-01T00:00:12Z")]),
        managed(&[("a", EPOCH), ("b", EPOCH)]),
    );
}

#[test]
fn on_a_clock_of_steps_times_keep_their_order() {
    check(
        case::Clock::Steps,
        managed(&[("b", "2020-01-01T00:00:10Z"), ("a", "2020-01-01T00:00:12Z")]),
        managed(&[("b", EPOCH), ("a", "2000-01-01T00:00:02Z")]),
    );
}
