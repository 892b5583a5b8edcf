//! What a webhook answers is either a verdict or refused, and its patch leaves an object or nothing.

#![no_main]

use kubewright_apiserver::admission;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(Some(object)) = admission::read_verdict(input) {
        assert!(object.is_object());
        assert_eq!(object["kind"], "ConfigMap");
    }
});
