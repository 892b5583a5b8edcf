//! What reads as a pod is in normal form: it reads again as itself.

#![no_main]

use kubewright_apimachinery::{builtin, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let kind = builtin::kind("", "v1", "Pod").expect("there are pods");
    let Ok(document) = json::decode_shaped(input, builtin::shape(kind)) else { return };
    let Ok(pod) = builtin::decode(kind, document.value) else { return };
    let again = builtin::decode(kind, pod.value.clone()).expect("normal form is readable");
    assert_eq!(again.value, pod.value);
});
