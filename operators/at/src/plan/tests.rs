use k8s_openapi::api::core::v1::PodStatus;

use super::*;
use crate::kind::{AtSpec, AtStatus};

const NOON: &str = "2019-07-03T12:00:00Z";

/// Plans for an `At` with this schedule, command and phase, and a pod in some phase, at noon.
fn check(at: (&str, &str, &str), pod: Option<&str>, expected: Step) {
    let (schedule, command, phase) = at;
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let spec = AtSpec { schedule: some(schedule), command: some(command) };
    let mut at = At::new("tea", spec);
    at.status =
        some(phase).map(|phase| AtStatus { phase: Some(phase.into()), conditions: Vec::new() });
    let pod = pod.map(|phase| Pod {
        status: Some(PodStatus { phase: some(phase), ..PodStatus::default() }),
        ..Pod::default()
    });
    assert_eq!(plan(&at, pod.as_ref(), NOON.parse().expect("noon")), expected);
}

#[test]
fn what_is_not_due_waits_exactly_until_it_is() {
    check(("2019-07-03T12:00:30Z", "echo", ""), None, Step::Wait(Duration::from_secs(30)));
    check(("2019-07-03T14:00:00+01:00", "echo", "PENDING"), None, Step::Wait(HOUR));
}

const HOUR: Duration = Duration::from_secs(60 * 60);

#[test]
fn what_is_due_begins() {
    check((NOON, "echo", ""), None, Step::Begin);
    check(("2019-07-03T02:00:00Z", "echo", "PENDING"), None, Step::Begin);
}

#[test]
fn a_time_that_cannot_be_known_is_refused() {
    let why = "spec.schedule: \"noon\" is no time: write it in UTC, as 2019-07-03T02:00:00Z";
    check(("noon", "echo", ""), None, Step::Refuse(why.to_owned()));
    let why = "spec.schedule: is not set: say when, as 2019-07-03T02:00:00Z";
    check(("", "echo", ""), None, Step::Refuse(why.to_owned()));
}

#[test]
fn a_pod_runs_the_words_of_the_command() {
    let at = At::new("tea", AtSpec::default());
    let words = ["echo", "YAY", "again"].map(str::to_owned).to_vec();
    let launch = Step::Launch(Box::new(pod(&at, words)));
    check((NOON, "echo YAY  again", "RUNNING"), None, launch);
    check((NOON, " ", "RUNNING"), None, Step::EndWithoutCommand);
}

#[test]
fn a_pod_is_watched_until_it_ends() {
    check((NOON, "echo", "RUNNING"), Some(""), Step::Watch);
    check((NOON, "echo", "RUNNING"), Some("Running"), Step::Watch);
    for phase in ["Succeeded", "Failed"] {
        let end = Step::End { reason: phase.to_owned(), message: String::new() };
        check((NOON, "echo", "RUNNING"), Some(phase), end);
    }
}

#[test]
fn what_is_done_or_of_somebody_else_is_left_alone() {
    check((NOON, "echo", "DONE"), None, Step::Rest);
    check(("noon", "echo", "SLEEPING"), None, Step::Rest);
}
