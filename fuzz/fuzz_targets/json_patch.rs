//! A JSON patch either reads or is refused, and applying it ends.

#![no_main]

use kubewright_apimachinery::{json, patch};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let decoded = (json::decode(input.0.as_bytes()), json::decode(input.1.as_bytes()));
    let (Ok(document), Ok(patch)) = decoded else { return };
    let _ = patch::merge::apply(document.value.clone(), patch.value.clone());
    if let Ok(patch) = patch::json::Patch::decode(patch.value) {
        let _ = patch.apply(&document.value);
    }
});
