use proptest::prelude::*;
use serde_json::json;

use super::strict::{Shape, Violation};
use super::*;
use crate::fixtures::{self, Step};
use crate::gvk::GroupVersionKind;
use crate::status::Status;
use crate::yaml;

fn check(input: &str, expected: &str) {
    let found = match decode(input.as_bytes()) {
        Ok(decoded) => to_string(&decoded.value),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected, "{input}");
}

#[test]
fn numbers_are_integers_when_they_fit_and_floats_when_not() {
    check(
        "[0, -0, 9223372036854775807, -9223372036854775808]",
        "[0,0,9223372036854775807,-9223372036854775808]",
    );
    check("9223372036854775808", "9223372036854776000");
    check("18446744073709551615", "18446744073709552000");
    check("[1.0, 1e3, 1E-7, -0.0, 1e21, 1.5e300]", "[1,1000,1e-7,-0,1e+21,1.5e+300]");
    check("[0.000001, 0.0000001, 123456789.125]", "[0.000001,1e-7,123456789.125]");
    check("[900719925474099.25, 5e-324, 123456.789]", "[900719925474099.2,5e-324,123456.789]");
    check("1e-400", "0");
    check("1e400", "json: cannot unmarshal number 1e400 into Go value of type float64");
    assert!(decode(b"1.0").unwrap().value.is_f64(), "`1.0` is not `1`");
}

#[test]
fn malformed_documents_are_refused_in_gos_words() {
    check("", "unexpected end of JSON input");
    check("{", "unexpected end of JSON input");
    check(r#"{"a"#, "unexpected end of JSON input");
    check("tru", "unexpected end of JSON input");
    check("xyz", "invalid character 'x' looking for beginning of value");
    check("[1,]", "invalid character ']' looking for beginning of value");
    check("{,}", "invalid character ',' looking for beginning of object key string");
    check(r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string");
    check(r#"{"a" 1}"#, "invalid character '1' after object key");
    check(r#"{"a":1 "b":2}"#, "invalid character '\"' after object key:value pair");
    check("[1 2]", "invalid character '2' after array element");
    check("{} x", "invalid character 'x' after top-level value");
    check("1 '", r"invalid character '\'' after top-level value");
    check("nul]", "invalid character ']' in literal null (expecting 'l')");
    check("fals3", "invalid character '3' in literal false (expecting 'e')");
    check("01", "invalid character '1' after top-level value");
    check("-x", "invalid character 'x' in numeric literal");
    check("1.x", "invalid character 'x' after decimal point in numeric literal");
    check("1e+x", "invalid character 'x' in exponent of numeric literal");
    check(r#""\q""#, "invalid character 'q' in string escape code");
    check(r#""\u12g4""#, "invalid character 'g' in \\u hexadecimal character escape");
    check("\"a\nb\"", "invalid character '\\n' in string literal");
    check("\u{e9}", "invalid character 'Ã' looking for beginning of value");
    check("1e999 x", "invalid character 'x' after top-level value");
}

#[test]
fn what_is_not_unicode_becomes_the_replacement_character() {
    check(r#""\ud83d\ude00""#, "\"😀\"");
    check(r#""\ud83d""#, "\"\u{fffd}\"");
    check(r#""\ude00\ud83d""#, "\"\u{fffd}\u{fffd}\"");
    check(r#""\ud83dA""#, "\"\u{fffd}A\"");
    check(r#""\ud83d\u0041""#, "\"\u{fffd}A\"");
    check(r#""\ud83d\ud83d\ude00""#, "\"\u{fffd}😀\"");
    let decoded = decode(b"\"a\xe2\x82b\xff\"").unwrap();
    assert_eq!(decoded.value, json!("a\u{fffd}\u{fffd}b\u{fffd}"), "one for each bad byte");
}

#[test]
fn depth_is_bounded_and_the_bound_is_an_error() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(decode(nested(DEPTH_MAX).as_bytes()).is_ok());
    check(&nested(DEPTH_MAX + 1), "invalid character '[' exceeded max depth");
    check(&"{\"a\":".repeat(1_000_000), "invalid character '{' exceeded max depth");
}

fn violations(input: &str) -> Vec<String> {
    let decoded = decode(input.as_bytes()).unwrap();
    decoded.violations.iter().map(ToString::to_string).collect()
}

#[test]
fn the_last_of_two_wins_and_both_are_reported() {
    let input = r#"{"spec":{"a":1,"l":[{"b":1,"b":2}],"a":2,"a":3},"spec":{"a":4}}"#;
    assert_eq!(
        violations(input),
        [
            r#"duplicate field "spec.l[0].b""#,
            r#"duplicate field "spec.a""#,
            r#"duplicate field "spec""#
        ]
    );
    check(input, r#"{"spec":{"a":4}}"#);
}

#[test]
fn a_document_full_of_duplicates_reports_a_hundred() {
    let fields: Vec<_> = (0..150).map(|n| format!(r#""f{n}":1,"f{n}":2"#)).collect();
    let found = violations(&format!("{{{}}}", fields.join(",")));
    assert_eq!(found.len(), 100);
    assert_eq!(found[99], r#"duplicate field "f99""#);
}

/// `{known: {}, list: [{known}], raw: anything}`.
#[derive(Clone, Copy)]
enum Known {
    Object,
    Raw,
}

impl Shape for Known {
    fn field(self, name: &str) -> Option<Self> {
        match name {
            "known" | "list" => Some(Known::Object),
            "raw" => Some(Known::Raw),
            _ => None,
        }
    }

    fn item(self) -> Self {
        self
    }

    fn is_opaque(self) -> bool {
        matches!(self, Known::Raw)
    }
}

#[test]
fn unknown_and_duplicate_fields_are_told_in_the_order_of_the_document() {
    let input = br#"{
        "known": {"x": {"d": 1, "d": 2}},
        "list": [{}, {"known": 1, "known": 2, "y\"": 1}],
        "known": 1,
        "x": 1, "x": 2,
        "raw": {"q": 1, "q": 2, "z": [{"q": 1, "q": 1}]}
    }"#;
    let decoded = decode_shaped(input, Known::Object).unwrap();
    assert_eq!(
        decoded.violations,
        [
            Violation::UnknownField("known.x".to_owned()),
            Violation::DuplicateField("list[1].known".to_owned()),
            Violation::UnknownField("list[1].y\"".to_owned()),
            Violation::DuplicateField("known".to_owned()),
            Violation::UnknownField("x".to_owned()),
        ]
    );
    assert_eq!(
        strict::error(&decoded.violations),
        r#"strict decoding error: unknown field "known.x", duplicate field "list[1].known", unknown field "list[1].y\"", duplicate field "known", unknown field "x""#
    );
}

#[test]
fn a_yaml_readers_complaint_is_a_warning_for_each_line() {
    let text = "yaml: unmarshal errors:\n  line 3: key \"a\" already set in map\n  line 4: key \"b\" already set in map";
    let found = strict::warnings(&[
        Violation::Yaml(text.to_owned()),
        Violation::UnspecifiedField("spec.x".to_owned()),
    ]);
    assert_eq!(
        found,
        [
            "line 3: key \"a\" already set in map",
            "line 4: key \"b\" already set in map",
            "unknown field \"spec.x\""
        ]
    );
}

/// Texts are looked at several bytes at a time.
#[test]
fn what_is_special_in_a_text_is_found_wherever_it_stands() {
    let written = [
        ("\"", "\\\""),
        ("\\", "\\\\"),
        ("<", "\\u003c"),
        ("\u{1f}", "\\u001f"),
        ("\u{2028}", "\\u2028"),
        ("\u{2027}", "\u{2027}"),
        ("é", "é"),
        (" ", " "),
    ];
    for before in 0..40 {
        for (special, expected) in written {
            let (before, after) = ("x".repeat(before), "y".repeat(before / 2));
            let value = Value::from(format!("{before}{special}{after}"));
            let text = to_string(&value);
            assert_eq!(text, format!("\"{before}{expected}{after}\""));
            assert_eq!(decode(text.as_bytes()).expect("it is JSON").value, value);
        }
    }
}

#[test]
fn strings_are_escaped_as_gos_encoder_does() {
    let text = "\"\\/<>&\u{8}\u{c}\n\r\t\u{1}\u{7f}\u{2028}\u{2029}é😀";
    assert_eq!(
        to_string(&json!({ text: text })),
        "{K:K}".replace(
            'K',
            "\"\\\"\\\\/\\u003c\\u003e\\u0026\\b\\f\\n\\r\\t\\u0001\u{7f}\\u2028\\u2029é😀\""
        )
    );
}

#[test]
fn pretty_printing_leaves_empty_things_on_one_line() {
    let value = json!({"a": [], "b": {}, "c": [1, {"d": null}]});
    assert_eq!(
        to_string_pretty(&value),
        "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": null\n    }\n  ]\n}"
    );
}

#[test]
fn keys_sort_by_bytes_at_every_level() {
    let mut value = json!({"b": {"z": 1, "Z": 2}, "a": [{"y": 1, "x": 2}]});
    sort_keys(&mut value);
    assert_eq!(to_string(&value), r#"{"a":[{"x":2,"y":1}],"b":{"Z":2,"z":1}}"#);
}

#[test]
fn quoting_is_gos() {
    let check = |text: &str, expected: &str| assert_eq!(go_quote(text), expected);
    check("", r#""""#);
    check("a\"b\\c'd", r#""a\"b\\c'd""#);
    check("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#);
    check("\0\u{1b}\u{7f}", r#""\x00\x1b\x7f""#);
    check("é中😀\u{301}", "\"é中😀\u{301}\"");
    check("\u{80}\u{a0}\u{ad}\u{200b}\u{feff}", r#""\u0080\u00a0\u00ad\u200b\ufeff""#);
    check("\u{e0001}\u{10ffff}", r#""\U000e0001\U0010ffff""#);
    check("\u{fffd}", "\"\u{fffd}\"");
}

/// Any tree, a few levels deep.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Equal once the floats that print as integers are integers.
fn as_written(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            decode(to_string(&Value::Number(number)).as_bytes()).unwrap().value
        }
        Value::Array(items) => items.into_iter().map(as_written).collect(),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, as_written(v))).collect(),
        other => other,
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value in tree()) {
        for text in [to_string(&value), to_string_pretty(&value)] {
            let decoded = decode(text.as_bytes()).unwrap();
            prop_assert_eq!(&decoded.value, &as_written(value.clone()));
            prop_assert!(decoded.violations.is_empty());
        }
    }

    #[test]
    fn whatever_comes_is_read_or_refused_as_serde_json_would(input in r#"[\[\]{}:,"0-9.eE+\-a-z \\]{0,40}"#) {
        let ours = decode(input.as_bytes()).is_ok();
        let theirs = serde_json::from_str::<Value>(&input).is_ok();
        prop_assert_eq!(ours, theirs);
    }
}

/// As much of a config map as the recordings need.
#[derive(Clone, Copy)]
enum ConfigMap {
    Root,
    Metadata,
    Owner,
    ManagedFields,
    Map,
    Opaque,
}

impl Shape for ConfigMap {
    fn field(self, name: &str) -> Option<Self> {
        Some(match (self, name) {
            (ConfigMap::Root, "metadata") => ConfigMap::Metadata,
            (ConfigMap::Root, "data") | (ConfigMap::Metadata, "labels" | "annotations") => {
                ConfigMap::Map
            }
            (ConfigMap::Metadata, "ownerReferences") => ConfigMap::Owner,
            (ConfigMap::Metadata, "managedFields") => ConfigMap::ManagedFields,
            (ConfigMap::ManagedFields, "fieldsV1") => ConfigMap::Opaque,
            (ConfigMap::Root, "apiVersion" | "kind" | "immutable")
            | (ConfigMap::Metadata, "name")
            | (ConfigMap::Owner, "apiVersion" | "kind" | "name" | "uid")
            | (ConfigMap::ManagedFields, "manager" | "operation" | "apiVersion" | "fieldsType")
            | (ConfigMap::Map, _) => ConfigMap::Opaque,
            _ => return None,
        })
    }

    fn item(self) -> Self {
        self
    }

    fn is_opaque(self) -> bool {
        matches!(self, ConfigMap::Opaque)
    }
}

#[test]
fn upstream_reads_and_refuses_the_same() {
    for case in fixtures::load("decode") {
        for step in &case.steps {
            let Some(text) = &step.request.text else { continue };
            let is_strict =
                step.request.query.get("fieldValidation").is_some_and(|v| v == "Strict");
            let warns = !step.request.query.contains_key("fieldValidation");
            let expected =
                if step.request.path.contains("widgets") { "Widget" } else { "ConfigMap" };
            let label = format!("{}: {text}", case.name);

            let (value, violations) = match read(step, text) {
                Ok(read) => read,
                Err(status) => {
                    let status = serde_json::to_value(status).unwrap();
                    assert_eq!(Some(&status), step.answer.body.as_ref(), "{label}");
                    continue;
                }
            };
            if is_strict && !violations.is_empty() {
                let kind = GroupVersionKind::interpret(&value).unwrap();
                let status = Status::undecodable(&kind, expected, strict::error(&violations));
                let status = serde_json::to_value(status).unwrap();
                assert_eq!(Some(&status), step.answer.body.as_ref(), "{label}");
                continue;
            }
            if warns {
                assert_eq!(step.answer.warnings, strict::warnings(&violations), "{label}");
            }
            // The rest is for whoever knows the types; what came through did so unharmed.
            if step.answer.status == 201 {
                let answer = step.answer.body.as_ref().unwrap();
                for field in ["spec", "data"] {
                    let (found, expected) = (&value[field], &answer[field]);
                    assert_eq!(
                        to_string(&as_written(found.clone())),
                        to_string(expected),
                        "{label}"
                    );
                }
                let path = "/metadata/annotations";
                assert_eq!(value.pointer(path), answer.pointer(path), "{label}");
            }
        }
    }
}

/// The body as a tree with what is wrong with it, or the answer that refuses it.
fn read(step: &Step, text: &str) -> Result<(Value, Vec<Violation>), Box<Status>> {
    let is_custom = step.request.path.contains("widgets");
    let expected = if is_custom { "Widget" } else { "ConfigMap" };
    let unrecognized = |why: String| Box::new(Status::unrecognized(expected, why, text.as_bytes()));
    if step.request.content_type == "application/yaml" {
        let decoded = yaml::decode(text).map_err(|error| unrecognized(error.to_string()))?;
        return Ok((decoded.value, decoded.violations));
    }
    let decoded = match is_custom {
        true => decode(text.as_bytes()),
        false => decode_shaped(text.as_bytes(), ConfigMap::Root),
    };
    let mut decoded = decoded.map_err(|error| match error {
        DecodeError::Syntax { .. } => {
            unrecognized(format!("couldn't get version/kind; json parse error: {error}"))
        }
        DecodeError::NumberOutOfRange { .. } => {
            let kind = GroupVersionKind::new("", "v1", expected);
            Box::new(Status::undecodable(&kind, expected, error))
        }
    })?;
    GroupVersionKind::interpret(&decoded.value).map_err(|error| unrecognized(error.to_string()))?;
    sort_keys(&mut decoded.value);
    Ok((decoded.value, decoded.violations))
}
