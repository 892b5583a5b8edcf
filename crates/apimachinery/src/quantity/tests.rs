use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures;
use crate::gvk::{GroupKind, GroupVersionKind};
use crate::status::Status;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

/// What a text prints as, and its value rounded up; or why it is none.
fn check(text: &str, expected: &str) {
    let found = match Quantity::parse(text) {
        Ok(quantity) => format!("{quantity} {}", quantity.value()),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected, "{text}");
}

#[test]
fn quantities_take_their_canonical_form() {
    check("0", "0 0");
    check("100m", "100m 1");
    check("0.1", "100m 1");
    check("1.5", "1500m 2");
    check("1000", "1k 1000");
    check("1024", "1024 1024");
    check("1000000k", "1G 1000000000");
    check("1024Ki", "1Mi 1048576");
    check("1025Ki", "1025Ki 1049600");
    check("1.5Gi", "1536Mi 1610612736");
    check("0.5Ki", "512 512");
    check("0.1Ki", "102400m 103");
    check("0.0001Ki", "102400u 1");
    check("1e3", "1e3 1000");
    check("1.5e3", "1500 1500");
    check("12345678901234567e2", "1234567890123456700 1234567890123456700");
    check("-1024Ki", "-1Mi -1048576");
    check("123456789012345678901", "123456789012345678901 -5670419503621182411");
}

#[test]
fn what_is_nearly_canonical_is_left_as_it_is() {
    check("+5", "+5 5");
    check("005", "005 5");
    check("1.100", "1.100 2");
    check("1E3", "1E3 1000");
    check("5e0", "5e0 5");
}

#[test]
fn a_billionth_is_the_least() {
    check("0.0000000001", "1n 1");
    check("-1e-10", "-1e-9 1");
    check("12.5e-9", "13e-9 1");
    check("1e-1000000", "1e-9 1");
}

#[test]
fn large_numbers_are_capped_or_odd_as_upstreams_are() {
    check("8Ei", "9223372036854775807 9223372036854775807");
    check("-100Ei", "-9223372036854775807 -9223372036854775807");
    check("10E", "10E 0");
    check("1000E", "1 0");
    check("9223372036854775808", "9223372036854775808 -9223372036854775808");
    check("1e1000000000", "10e999999999 0");
    check("1e4294967296", "1e4294967296 1");
    assert_eq!(quantity("999999999999999999").milli_value(), 3875820019684211736);
}

#[test]
fn what_is_no_quantity_is_refused_in_upstreams_words() {
    let format = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    for text in ["", "aoeu", "1 ", " 1", "1.1.1", "0x1", "1e3e", "1_0", "1Ki i"] {
        check(text, format);
    }
    for text in ["1i", "1mi", "1K", "1e", "1e+", "1Kii", "1e99999999999999999999"] {
        check(text, "unable to parse quantity's suffix");
    }
    check("+Ei", "unable to parse numeric part of quantity");
    check("-", "0 0");
    check("k", "0 0");
}

#[test]
fn sums_are_exact_and_keep_their_form() {
    let sum = |a: &str, b: &str| {
        let mut sum = quantity(a);
        sum.add(&quantity(b));
        let mut back = sum.clone();
        back.sub(&quantity(b));
        assert_eq!(back, quantity(a));
        sum.to_string()
    };
    assert_eq!(sum("1Gi", "1Mi"), "1025Mi");
    assert_eq!(sum("100m", "1"), "1100m");
    assert_eq!(sum("0", "1Ki"), "1Ki");
    assert_eq!(sum("1Ki", "1m"), "1024001m");
    assert_eq!(sum("9223372036854775807", "1n"), "9223372036854775807000000001n");
    assert_eq!(sum("1e100", "-1"), format!("{}", "9".repeat(100)));
    assert_eq!(sum("0e1000000000", "12345678901234567890"), "12345678901234567890");
    let mut huge = quantity("1e1000000000");
    huge.add(&quantity("1"));
    assert_eq!(huge.to_string(), "10e999999999", "nobody writes out a billion zeros");
}

#[test]
fn products_say_whether_they_fit() {
    let product = |a: &str, factor| {
        let mut product = quantity(a);
        let fits = product.mul(factor);
        format!("{product} {fits}")
    };
    assert_eq!(product("1m", 3), "3m true");
    assert_eq!(product("2Gi", -2), "-4Gi true");
    assert_eq!(product("5", 0), "0 true");
    assert_eq!(product("9223372036854775807", 10), "92233720368547758070 false");
}

#[test]
fn order_is_by_number_however_written() {
    let ascending = [
        "-1e1000000000",
        "-1k",
        "-1m",
        "0",
        "1n",
        "999u",
        "1m",
        "1",
        "1023",
        "1Ki",
        "1025",
        "1e1000000000",
    ];
    for (low, high) in ascending.iter().zip(&ascending[1..]) {
        assert!(quantity(low) < quantity(high), "{low} < {high}");
    }
    for (one, other) in
        [("1", "1000m"), ("1Ki", "1024"), ("1e3", "1k"), ("-0", "0"), ("0.5", "500m")]
    {
        assert_eq!(quantity(one), quantity(other));
    }
}

#[test]
fn rounding_goes_away_from_zero() {
    let round = |text: &str, exponent| {
        let mut rounded = quantity(text);
        let exact = rounded.round_up(exponent);
        format!("{rounded} {exact}")
    };
    assert_eq!(round("1.1", 0), "2 false");
    assert_eq!(round("-1.1", 0), "-2 false");
    assert_eq!(round("1100m", -3), "1100m true");
    assert_eq!(round("1234k", 6), "2M false");
    assert_eq!(round("5Gi", 0), "5Gi true");
}

#[test]
fn fields_are_texts_or_bare_numbers() {
    let read = |value: Value| Quantity::from_value(&value).unwrap().to_string();
    assert_eq!(read(json!(" 1Gi ")), "1Gi");
    assert_eq!(read(json!(2)), "2");
    assert_eq!(read(json!(0.5)), "500m");
    assert_eq!(read(json!(null)), "0");
    assert!(Quantity::from_value(&json!(true)).is_err());
    assert_eq!(serde_json::to_value(quantity("0.5")).unwrap(), json!("500m"));
}

#[test]
fn floats_are_near() {
    assert_eq!(quantity("100m").as_approximate_float(), 0.1);
    assert_eq!(quantity("1Ki").as_approximate_float(), 1024.0);
    assert_eq!(quantity("1e400").as_approximate_float(), f64::INFINITY);
    assert_eq!(quantity("1k").as_i64(), Some(1000));
    assert_eq!(quantity("1m").as_i64(), None);
}

#[test]
fn fields_may_not_be_negative_or_broken() {
    let path = Path::new("q");
    assert_eq!(
        quantity("-1").validate_non_negative(&path).unwrap().to_string(),
        r#"q: Invalid value: "-1": must be greater than or equal to 0"#
    );
    assert_eq!(
        quantity("1500m").validate_integer(&path).unwrap().to_string(),
        r#"q: Invalid value: "1500m": must be an integer"#
    );
    assert_eq!(quantity("2k").validate_integer(&path), None);
}

proptest! {
    #[test]
    fn the_canonical_form_reads_back(text in "[+-]?[0-9]{1,25}(\\.[0-9]{1,12})?(m|k|M|G|Ki|Mi|Gi|Ti|e[0-9]|e-[0-9])?") {
        let mut first = quantity(&text);
        // Forget the text.
        first.neg();
        first.neg();
        // Past the largest suffix nothing is printed for it, so it cannot read back.
        prop_assume!(!first.amount.in_thousands().0.is_empty() && first.amount.in_thousands().1 <= 18);
        let again = quantity(&first.to_string());
        prop_assert_eq!(&first, &again);
        prop_assert_eq!(first.to_string(), again.to_string());
    }

    #[test]
    fn sums_commute_and_undo(a in "-?[0-9]{1,22}(m|k|Ki|n)?", b in "-?[0-9]{1,22}(m|k|Mi|u)?") {
        let (a, b) = (quantity(&a), quantity(&b));
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.add(&b);
        ba.add(&a);
        prop_assert_eq!(&ab, &ba);
        ab.sub(&b);
        prop_assert_eq!(ab, a);
    }
}

#[test]
fn upstream_reads_prints_and_refuses_the_same() {
    for case in fixtures::load("quantities") {
        for step in case.steps {
            let body = step.request.body.unwrap();
            let answer = step.answer.body.unwrap();
            for (name, value) in body["spec"]["hard"].as_object().unwrap() {
                let label = format!("{}: {name}: {value}", case.name);
                let quantity = match Quantity::from_value(value) {
                    Ok(mut quantity) => {
                        // Upstream defaults lists of resources to whole thousandths.
                        quantity.round_up(-3);
                        quantity
                    }
                    Err(error) => {
                        let kind = GroupVersionKind::new("", "v1", "ResourceQuota");
                        let status = Status::undecodable(&kind, "ResourceQuota", error);
                        assert_eq!(serde_json::to_value(status).unwrap(), answer, "{label}");
                        continue;
                    }
                };
                let spec = Path::new("spec");
                let hard = spec.child("hard");
                let path = hard.key(name);
                let mut errors: Vec<_> =
                    quantity.validate_non_negative(&path).into_iter().collect();
                if name == "pods" {
                    errors.extend(quantity.validate_integer(&path));
                }
                if errors.is_empty() {
                    assert_eq!(answer["spec"]["hard"][name], quantity.to_string(), "{label}");
                } else {
                    let kind = GroupKind::new("", "ResourceQuota");
                    let status = Status::invalid(&kind, "a", &errors);
                    assert_eq!(serde_json::to_value(status).unwrap(), answer, "{label}");
                }
            }
        }
    }
}
