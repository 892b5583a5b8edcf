//! A pattern either compiles or is refused, and matching ends.

#![no_main]

use kubewright_apimachinery::regex::Regex;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    if let Ok(regex) = Regex::new(input.0) {
        let _ = (regex.is_match(input.1), regex.find(input.1));
    }
});
