use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{KEYS_MAX, Leases, whole_seconds};

const HOUR: u64 = 3600;

#[test]
fn values_written_within_a_minute_share_a_lease() {
    let leases = Leases::default();
    let start = Instant::now();
    let first = leases.take(start, HOUR);
    let soon = leases.take(start + Duration::from_secs(59), HOUR);
    let later = leases.take(start + Duration::from_secs(61), HOUR);
    assert!(Arc::ptr_eq(&first, &soon));
    assert!(!Arc::ptr_eq(&first, &later), "the first lease would end a second too early");
}

#[test]
fn a_short_time_to_live_is_not_stretched() {
    let leases = Leases::default();
    let start = Instant::now();
    let first = leases.take(start, 10);
    let soon = leases.take(start + Duration::from_millis(1), 10);
    assert!(!Arc::ptr_eq(&first, &soon));
}

#[test]
fn a_lease_takes_a_bounded_number_of_keys() {
    let leases = Leases::default();
    let start = Instant::now();
    let first = leases.take(start, HOUR);
    for _ in 1..KEYS_MAX {
        assert!(Arc::ptr_eq(&first, &leases.take(start, HOUR)));
    }
    assert!(!Arc::ptr_eq(&first, &leases.take(start, HOUR)));
}

#[test]
fn each_time_to_live_has_its_own_lease() {
    let leases = Leases::default();
    let start = Instant::now();
    let hour = leases.take(start, HOUR);
    let day = leases.take(start, 24 * HOUR);
    assert!(!Arc::ptr_eq(&hour, &day));
    assert!(Arc::ptr_eq(&hour, &leases.take(start, HOUR)));
}

#[test]
fn a_lease_that_is_gone_is_not_used_again() {
    let leases = Leases::default();
    let start = Instant::now();
    let first = leases.take(start, HOUR);
    first.set(7).expect("nobody else sets it");
    leases.forget(7);
    assert!(!Arc::ptr_eq(&first, &leases.take(start, HOUR)));
}

#[test]
fn a_fraction_of_a_second_counts_as_a_whole_one() {
    let check = |millis, expected| {
        assert_eq!(whole_seconds(Duration::from_millis(millis)), expected);
    };
    check(0, 1);
    check(1000, 1);
    check(1001, 2);
}
