use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::json;
use crate::json::strict;

/// What a text reads as, as JSON; or why it does not.
fn check(text: &str, expected: &str) {
    let found = match decode(text) {
        Ok(decoded) => json::to_string(&decoded.value),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected, "{text}");
}

#[test]
fn plain_scalars_mean_what_they_meant_in_yaml_1_1() {
    check("[yes, No, on, OFF, y, N, true]", "[true,false,true,false,true,false,true]");
    check("[~, null, Null, '', '~']", r#"[null,null,null,"","~"]"#);
    check("[0644, 0o644, 0x1F, 0b101, 1_000, -010, +7]", "[420,420,31,5,1000,-8,7]");
    check("[08, 1.0, 1e3, .5, 5., 1.50, -0.0]", "[8,1,1000,0.5,5,1.5,0]");
    check("[.2_5, 1__0, .5_, ._5]", r#"[0.25,10,".5_","._5"]"#);
    check(
        "[9223372036854775807, 18446744073709551615]",
        "[9223372036854775807,18446744073709552000]",
    );
    check(
        "[1.2.3, 0x, 1e400, '12', 12:30:45, nope]",
        r#"["1.2.3","0x","1e400","12","12:30:45","nope"]"#,
    );
    check("[2001-12-14, 2001-12-14T21:59:43Z]", r#"["2001-12-14","2001-12-14T21:59:43Z"]"#);
    check("[!!str 1, !!float 2, !!int '3', !x 4]", r#"["1",2,3,"4"]"#);
    check("!!binary aGk=", r#""hi""#);
    check("", "null");
    check("# nothing\n", "null");
}

#[test]
fn keys_become_texts() {
    check("{1: a, true: b, 1.5: c, 0x10: d}", r#"{"1":"a","true":"b","1.5":"c","16":"d"}"#);
    check("{? [a] : b}", r#"yaml: invalid map key: []interface {}{"a"}"#);
    check("{~: b}", "unsupported map key of type: %!s(<nil>), key: <nil>");
    check("{.inf: 1, -.INF: 2, .NaN: 3}", r#"{".inf":1,"-.inf":2,".nan":3}"#);
    check("[-.inf]", "json: unsupported value: -Inf");
}

#[test]
fn merges_take_effect_where_they_stand() {
    check("b: &b {x: 1, z: 2}\na: {<<: *b, x: 3}\n", r#"{"b":{"x":1,"z":2},"a":{"x":3,"z":2}}"#);
    check("b: &b {x: 1}\na: {x: 3, <<: *b}\n", r#"{"b":{"x":1},"a":{"x":1}}"#);
    check(
        "[&a {x: 1}, &b {x: 2, z: 2}, {<<: [*a, *b]}]",
        r#"[{"x":1},{"x":2,"z":2},{"x":1,"z":2}]"#,
    );
    check("{'<<': {a: 1}}", r#"{"\u003c\u003c":{"a":1}}"#);
    check("{<<: 1}", "yaml: map merge requires map or sequence of maps as the value");
}

#[test]
fn aliases_are_bounded() {
    check("[&a [1], *a, *a]", "[[1],[1],[1]]");
    check("&a [*a]", "yaml: anchor 'a' value contains itself");
    check("[*b]", "yaml: unknown anchor 'b' referenced");
    let bomb: String = (0..9)
        .map(|n| {
            let aliases = vec![format!("*a{n}"); 9].join(",");
            format!("a{}: &a{} [{aliases}]\n", n + 1, n + 1)
        })
        .collect();
    check(&format!("a0: &a0 [x]\n{bomb}"), "yaml: document contains excessive aliasing");
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 99].join(","));
    check(&long, "yaml: document contains excessive aliasing");
    let open: String = (0..100).map(|n| format!("&a{n} [")).collect();
    let nested = format!("{open}{}{}", "0,".repeat(1 << 19), "]".repeat(100));
    check(&nested, "yaml: document contains excessive aliasing");
    assert!(decode(&format!("&a [&b [{}]]", "0,".repeat(1 << 19))).is_ok());
}

#[test]
fn depth_is_bounded() {
    let flow = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(decode(&flow(json::DEPTH_MAX)).is_ok());
    assert!(decode(&flow(json::DEPTH_MAX + 1)).is_err());
    assert!(decode(&flow(1_000_000)).is_err());
    let block: String = (0..500).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert!(decode(&block).is_err());
    let grown: String = (1..200).map(|n| format!("- &a{n} [*a{}]\n", n - 1)).collect();
    assert!(decode(&format!("- &a0 []\n{grown}")).is_err(), "by aliases");
}

#[test]
fn repeated_keys_are_one_complaint() {
    let decoded = decode("a: 1\nb:\n  c: 1\n  c: 2\na:\n  3\n1: x\n1: z\n").unwrap();
    assert_eq!(json::to_string(&decoded.value), r#"{"a":3,"b":{"c":2},"1":"z"}"#);
    assert_eq!(
        strict::error(&decoded.violations),
        "strict decoding error: yaml: unmarshal errors:\n  line 4: key \"c\" already set in map\n  line 6: key \"a\" already set in map\n  line 8: key 1 already set in map"
    );
    assert_eq!(strict::warnings(&decoded.violations).len(), 3);
}

#[test]
fn a_stream_is_taken_apart_before_it_is_read() {
    let check = |stream: &str, expected: &[&str]| {
        assert_eq!(documents(stream).unwrap(), expected);
    };
    check("", &[]);
    check("a: 1\n---\nb: 2\n", &["a: 1\n", "b: 2\n"]);
    check("---\na: 1\n--- # next\n---\nb: 2", &["a: 1\n", "b: 2"]);
    check("a: |\n  x\n  ---\n", &["a: |\n  x\n  ---\n"]);
    assert_eq!(
        documents("--- a: 1\n").unwrap_err().to_string(),
        "invalid Yaml document separator: a: 1"
    );
    assert!(is_json(b" \n{}"));
    assert!(!is_json(b"[]"));
}

fn check_written(value: Value, expected: &str) {
    let written = to_string(&value);
    assert_eq!(written, expected);
    assert_eq!(decode(&written).unwrap().value, value);
}

#[test]
fn trees_are_laid_out_as_kubectl_prints_them() {
    check_written(
        json!({
            "spec": {"list": [{"b": 1, "a": [1, [2, 3]]}, {}, []], "empty": {}, "none": null},
            "kind": "A",
        }),
        "kind: A\nspec:\n  empty: {}\n  list:\n  - a:\n    - 1\n    - - 2\n      - 3\n    b: 1\n  - {}\n  - []\n  none: null\n",
    );
    check_written(json!([]), "[]\n");
    check_written(json!([[1], {"a": 2}]), "- - 1\n- a: 2\n");
    check_written(
        json!({"a10": 1, "a2": 2, "a": 3, "B": 4, "0": 5, "_": 6}),
        "_: 6\n\"0\": 5\nB: 4\na: 3\na2: 2\na10: 1\n",
    );
    check_written(
        json!({"f": 1.5, "g": 1234567.5, "h": 1e-7}),
        "f: 1.5\ng: 1.2345675e+06\nh: 1e-07\n",
    );
}

#[test]
fn texts_are_quoted_when_they_must_be() {
    let check = |text: &str, expected: &str| {
        check_written(json!({"k": text}), &format!("k: {expected}\n"));
    };
    check("plain text", "plain text");
    check("", "\"\"");
    check("yes", "\"yes\"");
    check("012", "\"012\"");
    check("1e3", "\"1e3\"");
    check("12:30:45", "\"12:30:45\"");
    check("2001-12-14", "\"2001-12-14\"");
    check("2024-01-01T00:00:00Z", "\"2024-01-01T00:00:00Z\"");
    check("null", "\"null\"");
    check("<<", "<<");
    check_written(json!({"<<": 1}), "'<<': 1\n");
    check("a: b", "'a: b'");
    check("a:b", "a:b");
    check("a #b", "'a #b'");
    check("a#b", "a#b");
    check("- a", "'- a'");
    check("-a", "-a");
    check("--- a", "'--- a'");
    check("*a", "'*a'");
    check("it's", "it's");
    check("'a'", "'''a'''");
    check(" a", "' a'");
    check("a ", "'a '");
    check("a\tb", "\"a\\tb\"");
    check("é", "é");
    check("😀", "\"\\U0001F600\"");
    check("{{ x }}", "'{{ x }}'");
    check("a\nb", "|-\n  a\n  b");
    check("a\nb\n", "|\n  a\n  b");
    check("a\n\n", "|+\n  a\n");
    check(" a\nb\n", "|2\n   a\n  b");
    check("a \nb", "\"a \\nb\"");
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6).prop_map(Value::from),
        "[ -~\n\té😀]{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["yes", "1_0", "0x1", "1:20", ".5", "~", "<<", "? a", "2001-1-1"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[ -~é\n]{0,8}|[a-z]{130}", inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value in tree()) {
        let written = to_string(&value);
        let read = decode(&written).unwrap();
        // Through JSON, where 1.0 is 1.
        let expected = json::decode(json::to_string(&value).as_bytes()).unwrap().value;
        prop_assert_eq!(read.value, expected, "{}", written);
        prop_assert!(read.violations.is_empty());
    }

    #[test]
    fn whatever_comes_is_read_or_refused(text in r#"[\[\]{}:,"'&*!|>?\-#a-c0-9 \n~<]{0,60}"#) {
        let _ = decode(&text);
    }
}

#[test]
fn mistakes_are_told_in_libyamls_words() {
    // As upstream answered.
    let told = [
        ("a: [", "line 1: did not find expected node content"),
        ("a: [1,", "line 1: did not find expected node content"),
        ("[a", "line 1: did not find expected ',' or ']'"),
        ("{a", "line 1: did not find expected ',' or '}'"),
        ("key: [a, b}", "did not find expected ',' or ']'"),
        ("a: }", "did not find expected node content"),
        ("a: {b: c}}", "did not find expected key"),
        ("a: \"x", "found unexpected end of stream"),
        ("a: 'b'c", "did not find expected key"),
        ("a:\n\tb: c", "line 2: found character that cannot start any token"),
        ("a: @x", "found character that cannot start any token"),
        ("a: \0", "control characters are not allowed"),
        ("a: b: c", "mapping values are not allowed in this context"),
        ("a: - b", "block sequence entries are not allowed in this context"),
        ("- a\nb: c", "line 1: did not find expected '-' indicator"),
        ("a: |\n b\nc", "line 4: could not find expected ':'"),
        ("- a: b\n  c\n- d", "line 3: could not find expected ':'"),
        ("a: b #c\n  d: e", "line 1: did not find expected key"),
        ("a:\n  b: c\n d: e", "line 2: did not find expected key"),
        ("a: \"\\q\"", "found unknown escape character"),
        ("a: \"\\u12\"", "did not find expected hexdecimal number"),
        ("&", "did not find expected alphabetic or numeric character"),
        ("%YAML 9.9\n---\na: b", "found incompatible YAML document"),
    ];
    for (text, expected) in told {
        let error = decode(text).expect_err(text).to_string();
        assert_eq!(error, format!("yaml: {expected}"), "{text:?}");
    }
}
