//! Expressions on their own. What upstream says about rules is replayed by the tests of `schema`.

use serde_json::{Value, json};

use super::*;
use crate::schema::Structural;

/// Runs an expression over `self`, which has the schema; the result or the failure as text.
fn check(schema: &Value, object: &Value, text: &str, expected: &str) {
    let schema = Structural::parse(schema).expect("a schema");
    let declared = Declared::new(&schema, false, "self").expect("it can be declared");
    let variables = [("self", declared.type_.clone())];
    let found = match Expression::check(text, &variables) {
        Err(issues) => issues.to_string(),
        Ok(expression) => match expression.program(&["self"]) {
            Err(failure) => failure.to_string(),
            Ok(program) => {
                let data = Data { value: object, schema: &schema, is_resource: false };
                let run = program.run(vec![data.to_val()], 10_000);
                let cost = run.cost;
                match run.outcome {
                    Ok(value) => format!("{value} for {cost}"),
                    Err(failure) => format!("{failure} for {cost}"),
                }
            }
        },
    };
    assert_eq!(found, expected, "{text}");
}

fn check_alone(text: &str, expected: &str) {
    check(&json!({"type": "object", "properties": {}}), &json!({}), text, expected);
}

#[test]
fn logic_settles_what_it_can_despite_errors() {
    check_alone("1 / 0 == 1 || true", "true for 2");
    check_alone("true || 1 / 0 == 1", "true for 0");
    check_alone("1 / 0 == 1 && false", "false for 2");
    check_alone("1 / 0 == 1 && true", "division by zero for 2");
    check_alone("[1, 0].exists(x, 2 / x == 2)", "true for 11");
    check_alone("[0, 1].all(x, 2 / x == 2)", "division by zero for 13");
}

#[test]
fn costs_are_upstreams() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "object", "properties": {"b": {"type": "string"}}},
        "l": {"type": "array", "items": {"type": "integer"}},
    }});
    let object = json!({"a": {"b": "0123456789abc"}, "l": [1, 2, 3]});
    check(&schema, &object, "self.a.b", "0123456789abc for 3");
    check(&schema, &object, "has(self.a.b)", "true for 2");
    check(&schema, &object, "true ? self.a.b : ''", "0123456789abc for 2");
    check(&schema, &object, "self.a.b.startsWith('0')", "true for 5");
    check(&schema, &object, "self.l[1]", "2 for 3");
    check(&schema, &object, "self.l.all(x, x > 0)", "true for 18");
    check(&schema, &object, "self.l.map(x, x).size()", "3 for 43");
    check(&schema, &object, "2 in [1, 2, 3]", "true for 0");
}

#[test]
fn nothing_outlives_its_cost() {
    let numbers = |count: usize| vec!["0"; count].join(", ");
    let list = numbers(100);
    check_alone(
        &format!("[{list}].all(a, [{list}].all(b, [{list}].all(c, a == b && b == c)))"),
        "operation cancelled: actual cost limit exceeded for 10001",
    );
}

#[test]
fn deep_and_long_texts_are_refused_and_not_followed() {
    let nested = format!("{}1{}", "(".repeat(100_000 / 2 - 1), ")".repeat(100_000 / 2 - 1));
    check_alone(&nested, "ERROR: <input>:-1:0: expression recursion limit exceeded: 250");
    let chain = vec!["1"; 400].join(" + ");
    check_alone(&chain, "ERROR: <input>:-1:0: expression recursion limit exceeded: 250");
    check_alone(
        &"1".repeat(100_001),
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000",
    );
    let terms = vec!["true"; 10_000].join(" && ");
    check_alone(&terms, "true for 0");
}

#[test]
fn complaints_point_at_characters() {
    check_alone(
        "'ä' == 'ö' &&\n  x",
        "ERROR: <input>:2:3: undeclared reference to 'x' (in container '')\n |   x\n | ..^",
    );
    check_alone(
        "'ä' + x == ''",
        "ERROR: <input>:1:7: undeclared reference to 'x' (in container '')\n | 'ä' + x == ''\n | .．....^",
    );
}

#[test]
fn names_are_escaped_and_found_again() {
    for (name, escaped) in [
        ("plain", Some("plain")),
        ("x-y", Some("x__dash__y")),
        ("a.b/c", Some("a__dot__b__slash__c")),
        ("in", Some("__in__")),
        ("a__b", Some("a__underscores__b")),
        ("___", Some("__underscores___")),
        ("1", None),
        ("ä", None),
        ("", None),
    ] {
        assert_eq!(escape::escape(name).as_deref(), escaped, "{name}");
        if let Some(escaped) = escaped.filter(|_| name != "___") {
            assert_eq!(escape::unescape(escaped).as_deref(), Some(name));
        }
    }
    assert_eq!(escape::unescape("a__nope__b"), None);
    assert_eq!(escape::unescape("a__in__b"), None);
}
