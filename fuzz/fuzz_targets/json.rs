//! Whatever is read as JSON reads the same once written.

#![no_main]

use kubewright_apimachinery::json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(decoded) = json::decode(input) else { return };
    let text = json::to_string(&decoded.value);
    let again = json::decode(text.as_bytes()).expect("what was written is JSON");
    assert!(again.violations.is_empty(), "keys are written once");
    assert_eq!(json::to_string(&again.value), text);
});
