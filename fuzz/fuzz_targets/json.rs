//! Whatever is read as JSON reads the same once written.

#![no_main]

use kubewright_apimachinery::json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(decoded) = json::decode(input) else { return };
    let text = json::to_string(&decoded.value);
    let again = json::decode(text.as_bytes()).expect("what was written is JSON");
    assert!(again.violations.is_empty(), "keys are written once");
    // A float `-0` is written as `-0`, which reads as the integer zero, as in Go. Once only.
    let settled = json::to_string(&again.value);
    let last = json::decode(settled.as_bytes()).expect("what was written is JSON");
    assert_eq!(json::to_string(&last.value), settled);
});
