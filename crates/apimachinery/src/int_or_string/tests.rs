use serde_json::json;

use super::*;

#[test]
fn a_value_is_a_number_or_a_text() {
    let check = |value: Value, expected: &str| {
        let found = match IntOrString::from_value(&value) {
            Ok(found) => serde_json::to_string(&found).unwrap(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    };
    check(json!(80), "80");
    check(json!("80"), r#""80""#);
    check(json!(null), "0");
    check(json!(1.5), "json: cannot unmarshal number 1.5 into Go value of type int32");
    check(
        json!(1_i64 << 31),
        "json: cannot unmarshal number 2147483648 into Go value of type int32",
    );
    check(json!(true), "json: cannot unmarshal bool into Go value of type int32");
    assert_eq!(IntOrString::parse("-7"), IntOrString::Int(-7));
    assert_eq!(IntOrString::parse("http").to_string(), "http");
    assert_eq!(IntOrString::String("12".to_owned()).int_value(), 12);
}

#[test]
fn percentages_are_shares_of_a_total() {
    let check = |value: IntOrString, total, rounding, expected: &str| {
        let found = match value.scaled(total, rounding) {
            Ok(number) => number.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    };
    let text = |text: &str| IntOrString::String(text.to_owned());
    check(IntOrString::Int(3), 100, Rounding::Up, "3");
    check(text("25%"), 10, Rounding::Up, "3");
    check(text("25%"), 10, Rounding::Down, "2");
    check(text("100%"), 7, Rounding::Down, "7");
    check(
        text("25"),
        10,
        Rounding::Up,
        "invalid value for IntOrString: invalid type: string is not a percentage",
    );
    check(
        text("a%"),
        10,
        Rounding::Up,
        r#"invalid value for IntOrString: invalid value "a%": strconv.Atoi: parsing "a": invalid syntax"#,
    );
    check(
        text("99999999999999999999%"),
        10,
        Rounding::Up,
        r#"invalid value for IntOrString: invalid value "99999999999999999999%": strconv.Atoi: parsing "99999999999999999999": value out of range"#,
    );
}
