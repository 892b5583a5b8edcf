//! A field selector that reads also reads once printed.

#![no_main]

use kubewright_apimachinery::selector::field::Selector;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let Ok(selector) = Selector::parse(input) else { return };
    let again = Selector::parse(&selector.to_string()).expect("what is printed is a selector");
    // Terms sort by how they were written, and `==` is printed as `=`.
    let sorted = |selector: &Selector| {
        let mut terms: Vec<_> = selector.terms.iter().map(ToString::to_string).collect();
        terms.sort();
        terms
    };
    assert_eq!(sorted(&again), sorted(&selector));
});
