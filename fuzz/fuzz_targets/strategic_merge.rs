//! Patching a pod with anything ends.

#![no_main]

use kubewright_apimachinery::patch::strategic::{self, Schema};
use kubewright_apimachinery::{builtin, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let decoded = (json::decode(input.0.as_bytes()), json::decode(input.1.as_bytes()));
    let (Ok(pod), Ok(patch)) = decoded else { return };
    let kind = builtin::kind("", "v1", "Pod").expect("there are pods");
    let _ = strategic::apply(pod.value, patch.value, Schema::of(kind.ty()));
});
