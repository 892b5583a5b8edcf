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
    let sum = |terms: usize| format!("{} == 0", vec!["1"; terms].join(" + "));
    check_alone(&sum(250), "false for 250");
    check_alone(&sum(251), "ERROR: <input>:-1:0: max recursion depth exceeded");
    check_alone(
        &"1".repeat(100_001),
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000",
    );
    let terms = vec!["true"; 10_000].join(" && ");
    check_alone(&terms, "true for 0");
}

#[test]
fn trees_are_not_deeper_than_the_stack() {
    let nested = |open: &str, inner: &str, close: &str, depth: usize| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    check_alone(&format!("size({}) == 1", nested("[", "1", "]", 248)), "true for 2");
    let counted = nested("size([", "1", "])", 124);
    check_alone(&format!("{counted} == 1"), "true for 1355");
    let quantified = nested("[1].all(x, ", "true", ")", 248);
    check_alone(&quantified, "true for 992");
    let mapped = nested("size([1].map(x, ", "1", "))", 120);
    check_alone(&format!("{mapped} == 1"), "true for 1671");
    let chosen = nested("(true ? ", "1", " : 2)", 240);
    check_alone(&format!("{chosen} == 1"), "true for 1");
    // Each chain is short enough, and begins with another one.
    let chain = " + 1".repeat(200);
    let chains = nested("(", "1", &format!("{chain})"), 100);
    check_alone(&chains, "ERROR: <input>:-1:0: max recursion depth exceeded");
    let fields = ".a".repeat(200);
    let selects = nested("(", "self", &format!("{fields})"), 100);
    check_alone(&selects, "ERROR: <input>:-1:0: max recursion depth exceeded");
}

#[test]
fn short_texts_make_no_large_things() {
    let chain = format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(30));
    check_alone(&chain, "ERROR: <input>:-1:0: expression size exceeds limit: 100000 parts");
    let long = "x".repeat(10_000);
    check_alone(
        &format!("size('{long}'.replace('', '{long}')) > 0"),
        "operation cancelled: actual cost limit exceeded for 2000",
    );
    check_alone(
        "size(lists.range(9000000)) > 0",
        "operation cancelled: actual cost limit exceeded for 12",
    );
    check_alone("size('%.99999f'.format([1.5])) == 100001", "true for 3");
    check_alone("timestamp('2020-01-01T00:00:00Z').getHours('99999999:00') >= 0", "true for 2");
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
fn signs_need_something_to_go_with() {
    let start = |text: &str, expected: &str| {
        let issues = Expression::check(text, &[]).expect_err("it is wrong").to_string();
        assert!(issues.starts_with(expected), "{text}: {issues}");
    };
    start("!-x", "ERROR: <input>:1:3: Syntax error: no viable alternative at input '-x'\n");
    start("-!x", "ERROR: <input>:1:2: Syntax error: no viable alternative at input '-!'\n");
    start("!)", "ERROR: <input>:1:2: Syntax error: extraneous input ')' expecting {'[', ");
    start("-)", "ERROR: <input>:1:2: Syntax error: no viable alternative at input '-)'\n");
    start("1 + ) - 1", "ERROR: <input>:1:5: Syntax error: extraneous input ')' expecting {'[', ");
    check_alone("!!true && --1 == 1 && - -1 == 1", "true for 2");
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

#[test]
fn fields_that_are_called_as_words_of_the_language_need_no_escape() {
    let string = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {"namespace": string, "x-y": string}});
    let object = json!({"namespace": "n"});
    check(&schema, &object, "self.namespace == self.__namespace__", "true for 5");
    check(&schema, &object, "has(self.namespace) && self.?namespace.hasValue()", "true for 4");
    let nope = "ERROR: <input>:1:5: undefined field 'package'\n | self.package\n | ....^";
    check(&schema, &object, "self.package", nope);
}

#[test]
fn hostile_texts_end_in_a_verdict() {
    use proptest::prelude::*;

    let words = [
        "self",
        ".s",
        ".l",
        ".x",
        "x",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "?",
        ":",
        ",",
        "+",
        "-",
        "!",
        "&&",
        "||",
        "==",
        "<",
        " in ",
        "1",
        "2u",
        "1.5",
        "0x",
        "'a'",
        "b'\\xff'",
        "r'''",
        "'\\u12",
        "\"",
        "`",
        ".all(",
        ".map(",
        ".transformMap(",
        "has(",
        ".?",
        "[?",
        "optional.of(",
        ".format(",
        "'%d%",
        "ä",
        "\u{1F600}",
        "\n",
        "//",
        "true",
        "null",
        "if",
        "size(",
        "duration(",
        "matches(",
        "#",
    ];
    let text = prop::collection::vec(prop::sample::select(words.to_vec()), 0..24);
    let schema = Structural::parse(&json!({"type": "object", "properties": {
        "s": {"type": "string"}, "x": {"x-kubernetes-int-or-string": true},
        "l": {"type": "array", "items": {"type": "string"}},
    }}))
    .expect("a schema");
    let object = json!({"s": "a", "x": 1, "l": ["a", "b"]});
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(words in text)| {
        let declared = Declared::new(&schema, false, "self").expect("it can be declared");
        let variables = [("self", declared.type_.clone())];
        if let Ok(expression) = Expression::check(&words.concat(), &variables) {
            expression.max_cost(&declared);
            if let Ok(program) = expression.program(&["self"]) {
                let data = Data { value: &object, schema: &schema, is_resource: false };
                let run = program.run(vec![data.to_val()], 1_000);
                prop_assert!(run.cost <= 1_000 || run.outcome.is_err());
            }
        }
    });
}

/// Runs an expression over JSON without a schema, and named expressions; the result as JSON, what
/// it cost, and what the named ones cost.
fn check_composed(object: &Value, named: &[(&str, &str)], text: &str, expected: &str) {
    const NAMES: [&str; 2] = ["object", "variables"];
    let fields = named.iter().map(|(name, _)| ((*name).into(), Type::Dyn)).collect();
    let variables =
        [("object", Type::Dyn), ("variables", Type::object("kubernetes.variables", fields))];
    let program = |text: &str| {
        let expression =
            Expression::check_in(Dialect::Patch, text, &variables).map_err(|e| e.to_string())?;
        expression.program(&NAMES).map_err(|e| e.to_string())
    };
    let compile =
        |(name, text): &(&str, &str)| Named { name: (*name).into(), program: program(text) };
    let named: Vec<Named> = named.iter().map(compile).collect();
    let found = match program(text) {
        Err(why) => why,
        Ok(program) => {
            let values = vec![Ok(Val::of_json(object)), Ok(Val::Composed)];
            let mut composition = Composition::new(&named, values, 10_000);
            let run = program.run_composed(&mut composition);
            let shown = match run.outcome {
                Ok(value) => {
                    value.to_json(Large::Number).map_or_else(|e| e, |json| json.to_string())
                }
                Err(failure) => failure.to_string(),
            };
            format!("{shown} for {} and {}", run.cost, composition.take_cost())
        }
    };
    assert_eq!(found, expected, "{text}");
}

#[test]
fn objects_without_a_schema_are_what_they_are() {
    let object =
        json!({"a": null, "n": [1, 2.5, "x"], "at": "2020-01-01T00:00:00Z", "m": {"k": 1}});
    check_composed(&object, &[], "has(object.a) && object.a == null", "true for 4 and 0");
    check_composed(&object, &[], "object.n[0] == 1 && object.n[1] > 2", "true for 8 and 0");
    check_composed(&object, &[], "object.at == '2020-01-01T00:00:00Z'", "true for 4 and 0");
    check_composed(&object, &[], "object.m", "{\"k\":1} for 2 and 0");
    check_composed(&object, &[], "object.m.all(k, k == 'k')", "true for 8 and 0");
    check_composed(&object, &[], "object.nothing", "no such key: nothing for 2 and 0");
}

#[test]
fn named_expressions_are_computed_once_when_asked_for() {
    let named = [
        ("one", "1 + 0"),
        ("two", "variables.one + variables.one"),
        ("bad", "object.nothing"),
        ("worse", "variables.bad"),
        ("unread", "1 +"),
    ];
    let check = |text: &str, expected: &str| check_composed(&json!({}), &named, text, expected);
    check("1 == 1", "true for 1 and 0");
    check("variables.two + variables.two", "4 for 5 and 6");
    check("has(variables.one)", "true for 1 and 1");
    check(
        "variables.worse",
        "composited variable \"worse\" fails to evaluate: composited variable \"bad\" fails to \
         evaluate: no such key: nothing for 2 and 4",
    );
    check("variables.bad == 1 || true", "true for 3 and 2");
}

#[test]
fn patches_are_made_of_objects_and_steps() {
    let check =
        |text: &str, expected: &str| check_composed(&json!({"l": {"a": "b"}}), &[], text, expected);
    check(
        "Object{spec: Object.spec{a: 1, l: object.l}}",
        r#"{"spec":{"a":1,"l":{"a":"b"}}} for 82 and 0"#,
    );
    check("Object{?a: object.?x, ?b: optional.of(1)}", r#"{"b":1} for 42 and 0"#);
    check("jsonpatch.escapeKey('a/b~c')", r#""a~1b~0c" for 1 and 0"#);
    check("JSONPatch{op: 'add'}.op", r#""add" for 42 and 0"#);
    check(
        "JSONPatch{op: object.l}",
        "unexpected type map for JSONPatchType 'op' field for 42 and 0",
    );
}
