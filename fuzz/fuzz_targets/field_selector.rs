//! A field selector that reads also reads once printed.

#![no_main]

use kubewright_apimachinery::selector::field::Selector;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let Ok(selector) = Selector::parse(input) else { return };
    let again = Selector::parse(&selector.to_string()).expect("what is printed is a selector");
    assert_eq!(again.to_string(), selector.to_string());
});
