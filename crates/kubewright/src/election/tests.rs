//! Which step follows from what a lease says; which times can be.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::record::{Candidate, Observed, Record, Step, decide};
use super::{BadTerms, Terms};

const LEASE: Duration = Duration::from_secs(15);

/// A moment, in seconds, by the wall clock of whoever writes.
fn wall(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
}

/// What a lease says: who, when acquired, when renewed, how many had it before.
fn record(holder: &str, acquired: i64, renewed: i64, transitions: i32) -> Record {
    Record {
        holder: holder.to_owned(),
        duration: LEASE,
        acquired: Some(wall(acquired)),
        renewed: Some(wall(renewed)),
        transitions,
    }
}

/// What `me` does at a moment of our own clock about a lease that says `found`, when it has been
/// seen to say `seen` since another one. The wall clock shows 100.
fn check(found: Option<Record>, seen: Option<(Record, u64)>, now: u64, expected: Expected) {
    let start = Instant::now();
    let at = |seconds: u64| start + Duration::from_secs(seconds);
    let me = Candidate { identity: "me".to_owned(), lease: LEASE };
    let observed = seen.map(|(record, since)| Observed::new(record, at(since)));
    let step = decide(&me, found.as_ref(), observed.as_ref(), at(now), wall(100));
    let expected = match expected {
        Expected::Writes(record) => Step::Write(record),
        Expected::WaitsUntil(seconds) => Step::Wait(at(seconds)),
    };
    assert_eq!(step, expected, "{found:?}, seen {observed:?}, at {now}");
}

enum Expected {
    Writes(Record),
    WaitsUntil(u64),
}

use Expected::{WaitsUntil, Writes};

#[test]
fn a_lease_that_is_not_there_is_made() {
    check(None, None, 0, Writes(record("me", 100, 100, 0)));
}

#[test]
fn a_holder_renews_and_keeps_when_it_began() {
    let ours = record("me", 10, 98, 3);
    check(Some(ours.clone()), Some((ours, 0)), 2, Writes(record("me", 10, 100, 3)));
    // Also when nobody has taken it since it should have ended.
    let ours = record("me", 10, 20, 3);
    check(Some(ours.clone()), Some((ours, 0)), 80, Writes(record("me", 10, 100, 3)));
}

#[test]
fn the_lease_of_another_is_waited_for_by_our_own_clock() {
    // Its clock is far ahead or far behind: it does not matter.
    for renewed in [-50_000, 0, 50_000] {
        let others = record("other", 0, renewed, 3);
        let seen = Some((others.clone(), 7));
        check(Some(others.clone()), seen.clone(), 7, WaitsUntil(22));
        check(Some(others.clone()), seen.clone(), 21, WaitsUntil(22));
        check(Some(others), seen, 22, Writes(record("me", 100, 100, 4)));
    }
}

#[test]
fn a_lease_that_was_given_away_is_taken_at_once() {
    let released = record("other", 0, 98, 3).released(wall(99));
    let left = Record { duration: Duration::from_secs(1), ..record("", 99, 99, 3) };
    assert_eq!(released, left);
    check(Some(left.clone()), Some((left, 5)), 5, Writes(record("me", 100, 100, 4)));
}

#[test]
fn a_lease_that_was_deleted_is_held_until_it_would_have_ended() {
    let others = record("other", 0, 98, 3);
    check(None, Some((others.clone(), 5)), 6, WaitsUntil(20));
    check(None, Some((others, 5)), 20, Writes(record("me", 100, 100, 0)));
    // Our own, and one that nobody held, are not.
    check(None, Some((record("me", 0, 98, 3), 5)), 6, Writes(record("me", 100, 100, 0)));
    check(None, Some((record("", 0, 98, 3), 5)), 6, Writes(record("me", 100, 100, 0)));
}

#[test]
fn only_a_change_shows_that_a_holder_lives() {
    let start = Instant::now();
    let second = |seconds: u64| start + Duration::from_secs(seconds);
    let mut observed = Observed::new(record("other", 0, 0, 3), second(0));
    observed.see(record("other", 0, 0, 3), second(8));
    assert_eq!(observed.held_until(), Some(second(15)));
    observed.see(record("other", 0, 9, 3), second(9));
    assert_eq!(observed.held_until(), Some(second(24)));
    observed.see(record("", 9, 9, 3), second(10));
    assert_eq!(observed.held_until(), None);
}

#[test]
fn times_that_cannot_be_are_refused() {
    let terms = |lease: u64, renew: u64, retry: u64| {
        let [lease, renew, retry] = [lease, renew, retry].map(Duration::from_millis);
        Terms::new(lease, renew, retry).map(drop)
    };
    assert_eq!(terms(15_000, 10_000, 2_000), Ok(()));
    assert!(matches!(terms(15_500, 10_000, 2_000), Err(BadTerms::NotInSeconds { .. })));
    assert!(matches!(terms(0, 10_000, 2_000), Err(BadTerms::NotInSeconds { .. })));
    assert!(matches!(terms(10_000, 10_000, 2_000), Err(BadTerms::LeaseTooShort { .. })));
    assert!(matches!(terms(15_000, 10_000, 8_400), Err(BadTerms::DeadlineTooShort { .. })));
    assert_eq!(terms(15_000, 10_000, 0), Err(BadTerms::NoPause));
}
