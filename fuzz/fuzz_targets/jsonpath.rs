//! A template either reads or is refused, and evaluating it ends.

#![no_main]

use kubewright_apimachinery::{json, jsonpath::Template};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let Ok(document) = json::decode(input.1.as_bytes()) else { return };
    for template in
        [Template::parse(input.0), Template::parse_column(input.0)].into_iter().flatten()
    {
        let _ = (template.find(&document.value), template.render(&document.value));
    }
});
