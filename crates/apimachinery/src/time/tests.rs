use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check(text: &str, expected: &str) {
    let found = match Time::parse(text) {
        Ok(time) => time.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_time_is_written_in_utc_to_the_second() {
    check("2024-02-29T12:34:56Z", "2024-02-29T12:34:56Z");
    check("2024-02-29T12:34:56.987654321Z", "2024-02-29T12:34:56Z");
    check("2024-02-29T12:34:56,5+02:00", "2024-02-29T10:34:56Z");
    check("2024-02-29T1:34:56-01:30", "2024-02-29T03:04:56Z");
    check("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z");
    check("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z");
    check("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z");
}

#[test]
fn what_is_no_time_is_refused_in_gos_words() {
    let mismatch = |text: &str, rest: &str, element: &str| {
        check(
            text,
            &format!(
                "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {rest:?} as {element:?}"
            ),
        );
    };
    mismatch("", "", "2006");
    mismatch("yesterday", "yesterday", "2006");
    mismatch("2024/02/29", "/02/29", "-");
    mismatch("2024-2-29T00:00:00Z", "2-29T00:00:00Z", "01");
    mismatch("2024-02-29", "", "T");
    mismatch("2024-02-29t00:00:00Z", "t00:00:00Z", "T");
    mismatch("2024-02-29T00:00:00", "", "Z07:00");
    mismatch("2024-02-29T00:00:00z", "z", "Z07:00");
    mismatch("2024-02-29T00:00:00+0200", "+0200", "Z07:00");
    check("2024-13-01T00:00:00Z", r#"parsing time "2024-13-01T00:00:00Z": month out of range"#);
    check("2023-02-29T00:00:00Z", r#"parsing time "2023-02-29T00:00:00Z": day out of range"#);
    check("2023-02-28T24:00:00Z", r#"parsing time "2023-02-28T24:00:00Z": hour out of range"#);
    check("2023-02-28T00:00:60Z", r#"parsing time "2023-02-28T00:00:60Z": second out of range"#);
    check("2023-02-28T00:00:00Zx", r#"parsing time "2023-02-28T00:00:00Zx": extra text: "x""#);
    check(
        "é",
        r#"parsing time "\xc3\xa9" as "2006-01-02T15:04:05Z07:00": cannot parse "\xc3\xa9" as "2006""#,
    );
}

#[test]
fn microseconds_are_six_digits() {
    let time = MicroTime::parse("2024-02-29T12:34:56.000001+00:00").unwrap();
    assert_eq!(time.to_string(), "2024-02-29T12:34:56.000001Z");
    assert_eq!(
        MicroTime::parse("2024-02-29T12:34:56Z").unwrap_err().to_string(),
        r#"parsing time "2024-02-29T12:34:56Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#
    );
    assert!(MicroTime::parse("2024-02-29T12:34:56.0000001Z").is_err());
}

#[test]
fn null_is_no_time() {
    assert_eq!(Time::from_value(&json!(null)), Ok(None));
    assert_eq!(Time::ZERO.to_value(), json!(null));
    assert_eq!(Time::from_unix(0).to_value(), json!("1970-01-01T00:00:00Z"));
    assert_eq!(
        Time::from_value(&json!(1)).unwrap_err().to_string(),
        "json: cannot unmarshal number into Go value of type string"
    );
}

#[test]
fn durations_are_gos() {
    let check = |text: &str, expected: &str| {
        let found = match GoDuration::parse(text) {
            Ok(duration) => duration.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{text}");
    };
    check("0", "0s");
    check("-0", "0s");
    check("1h30m", "1h30m0s");
    check("1.5h", "1h30m0s");
    check("90s", "1m30s");
    check("100ms", "100ms");
    check("1500us", "1.5ms");
    check("-1.000000001s", "-1.000000001s");
    check(".5s", "500ms");
    check("5.s", "5s");
    check("3µs", "3µs");
    check("2562047h47m16.854775807s", "2562047h47m16.854775807s");
    check("-2562047h47m16.854775808s", "-2562047h47m16.854775808s");
    check("2562047h47m16.854775808s", r#"time: invalid duration "2562047h47m16.854775808s""#);
    check("", r#"time: invalid duration """#);
    check("-", r#"time: invalid duration "-""#);
    check(".", r#"time: invalid duration ".""#);
    check(".s", r#"time: invalid duration ".s""#);
    check("1", r#"time: missing unit in duration "1""#);
    check("1d", r#"time: unknown unit "d" in duration "1d""#);
    check("1h x", r#"time: unknown unit "h x" in duration "1h x""#);
    check("99999999999999999999s", r#"time: invalid duration "99999999999999999999s""#);
}

proptest! {
    #[test]
    fn a_time_reads_back(seconds in -62_167_219_200_i64..253_402_300_800) {
        let time = Time::from_unix(seconds);
        prop_assert_eq!(Time::parse(&time.to_string()), Ok(time));
    }

    #[test]
    fn a_duration_reads_back(nanos: i64) {
        let duration = GoDuration { nanos };
        // Fractions go through floats, as in Go; up to a minute's worth they are exact.
        let back = GoDuration::parse(&duration.to_string()).unwrap();
        prop_assert_eq!(back, duration);
    }
}
