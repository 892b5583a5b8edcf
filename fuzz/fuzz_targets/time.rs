//! Times and durations read back as they are printed.

#![no_main]

use kubewright_apimachinery::time::{GoDuration, MicroTime, Time};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    if let Ok(time) = Time::parse(input) {
        let again = Time::parse(&time.to_string()).expect("what is printed is a time");
        assert_eq!(again.unix_seconds(), time.unix_seconds());
    }
    if let Ok(time) = MicroTime::parse(input) {
        assert_eq!(MicroTime::parse(&time.to_string()), Ok(time));
    }
    if let Ok(duration) = GoDuration::parse(input) {
        let _ = GoDuration::parse(&duration.to_string()).expect("what is printed is a duration");
    }
});
