//! A schema either reads or is refused.

#![no_main]

use kubewright_apimachinery::{json, schema::Structural};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(decoded) = json::decode(input) {
        let _ = Structural::parse(&decoded.value);
    }
});
