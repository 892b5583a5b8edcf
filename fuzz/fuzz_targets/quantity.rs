//! Quantities print as themselves, and sums can be undone.

#![no_main]

use kubewright_apimachinery::quantity::Quantity;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let (Ok(a), Ok(b)) = (Quantity::parse(input.0), Quantity::parse(input.1)) else { return };
    assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
    let mut negated = a.clone();
    negated.neg();
    negated.neg();
    assert_eq!(negated, a);
    let (mut sum, mut other) = (a.clone(), b.clone());
    sum.add(&b);
    other.add(&a);
    assert_eq!(sum, other);
    let _ = (a.to_string(), a.value(), a.milli_value(), a.as_approximate_float());
    let _ = (sum.to_string(), sum.round_up(0), sum.mul(7));
});
