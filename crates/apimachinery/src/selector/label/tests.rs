use proptest::prelude::*;
use serde_json::json;

use super::*;

/// What a text reads as, printed again; or why it does not.
fn check(text: &str, expected: &str) {
    let found = match Selector::parse(text) {
        Ok(selector) => selector.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_selector_prints_in_the_order_of_its_keys() {
    check("", "");
    check(" a ", "a");
    check("b=1,a", "a,b=1");
    check("!b,a==x", "a==x,!b");
    check("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()");
    check("x in (,)", "x in ()");
    check("x in (b,a,b)", "x in (a,b)");
    check("x=", "x=");
    check("x!=,y=", "x!=,y=");
    check("x>7,y<1,z!=a", "x>7,y<1,z!=a");
    check("example.com/a=b\n", "example.com/a=b");
    check("in in (in),notin=in", "in in (in),notin=in");
}

#[test]
fn nonsense_is_refused_in_upstreams_words() {
    check("a in", "unable to parse requirement: found '' expected: '('");
    check("a in (b", "unable to parse requirement: found '', expected: ',' or ')'");
    check("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier");
    check("a in (b,=", "unable to parse requirement: found '=', expected: ',', or identifier");
    check("a=b=c", "found '=', expected: ',' or 'end of string'");
    check("a===b", "unable to parse requirement: found '=', expected: identifier");
    check("a,", "found '', expected: identifier after ','");
    check("a,,b", "found ',', expected: identifier after ','");
    check(",a", "found ',', expected: !, identifier, or 'end of string'");
    check("!", "unable to parse requirement: found '', expected: identifier");
    check("!a=b", "found '=', expected: ',' or 'end of string'");
    check("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
    check(
        "a>x",
        r#"unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer"#,
    );
    check(
        "a/b/c",
        "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
    );
}

#[test]
fn requirements_hold_as_they_say() {
    let labels =
        BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x".to_owned())]);
    for holds in [
        "",
        "a",
        "!c",
        "a=1",
        "a==1",
        "a!=2",
        "c!=2",
        "a in (1,2)",
        "a notin (2)",
        "c notin (1)",
        "a>0",
        "a<2",
        "a=1,b=x",
    ] {
        assert!(Selector::parse(holds).unwrap().matches(&labels), "{holds}");
    }
    for fails in [
        "c",
        "!a",
        "a=2",
        "c=",
        "a!=1",
        "a in (2)",
        "c in ()",
        "a notin (1)",
        "a>1",
        "a<1",
        "b>0",
        "c>0",
        "a=1,b=y",
    ] {
        assert!(!Selector::parse(fails).unwrap().matches(&labels), "{fails}");
    }
    assert!(!Selector::Nothing.matches(&labels));
    assert!(Selector::EVERYTHING.matches(&None::<&BTreeMap<String, String>>));
    let object = json!({"a": "1"});
    assert!(Selector::parse("a=1").unwrap().matches(&object.as_object()));
}

#[test]
fn an_exact_label_is_found() {
    let selector = Selector::parse("a=1,b in (2),c in (3,4),d!=5").unwrap();
    let exact = ["a", "b", "c", "d", "e"].map(|key| selector.exact(key));
    assert_eq!(exact, [Some("1"), Some("2"), None, None, None]);
    let from = Selector::from_labels([("b", "2"), ("a", "1")]);
    assert_eq!(from.to_string(), "a=1,b=2");
}

fn object(value: Value) -> LabelSelector {
    serde_json::from_value(value).unwrap()
}

#[test]
fn an_object_becomes_a_selector() {
    let check = |value, expected: &str| {
        let found = match object(value).to_selector() {
            Ok(selector) => selector.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    };
    check(json!({"matchLabels": null, "matchExpressions": []}), "");
    check(
        json!({
            "matchLabels": {"b": "1"},
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["y", "x"]},
                {"key": "c", "operator": "DoesNotExist"},
            ],
        }),
        "a in (x,y),b=1,!c",
    );
    check(
        json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
        r#""Gt" is not a valid label selector operator"#,
    );
    check(
        json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
    );
    check(
        json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
        r#"values: Invalid value: ["b"]: values set must be empty for exists and does not exist"#,
    );
    assert_eq!(object(json!({})).to_string(), "<none>");
    assert_eq!(object(json!({"matchExpressions": [{}]})).to_string(), "<error>");
}

#[test]
fn an_object_is_validated_whole() {
    let errors = object(json!({
        "matchLabels": {"a b": "c"},
        "matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["c d"]},
            {"key": "a", "operator": "Maybe"},
        ],
    }))
    .validate(Leniency::default(), &Path::new("selector"));
    let starts: Vec<_> =
        errors.iter().map(|e| e.to_string().chars().take(64).collect::<String>()).collect();
    assert_eq!(
        starts,
        [
            "selector.matchLabels: Invalid value: \"a b\": name part must consi",
            "selector.matchExpressions[0].values: Required value: must be spe",
            "selector.matchExpressions[1].values: Forbidden: may not be speci",
            "selector.matchExpressions[1].values[0]: Invalid value: \"c d\": a ",
            "selector.matchExpressions[2].operator: Invalid value: \"Maybe\": n",
        ]
    );
    let lenient = Leniency { invalid_values: true, unknown_operators: true };
    let forgiven =
        object(json!({"matchExpressions": [{"key": "a", "operator": "X", "values": ["c d"]}]}));
    assert_eq!(forgiven.validate(lenient, &Path::ROOT), []);
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(
        parts in prop::collection::vec(
            ("[a-z]{1,3}", prop::sample::select(vec!["", "=", "==", "!=", ">", "<", " in ", " notin ", "!"]), prop::collection::vec("[0-9]{1,2}", 1..4)),
            0..5,
        )
    ) {
        let texts: Vec<_> = parts.iter().map(|(key, operator, values)| match *operator {
            "" => key.clone(),
            "!" => format!("!{key}"),
            " in " | " notin " => format!("{key}{operator}({})", values.join(",")),
            _ => format!("{key}{operator}{}", values[0]),
        }).collect();
        let selector = Selector::parse(&texts.join(",")).unwrap();
        prop_assert_eq!(Selector::parse(&selector.to_string()).unwrap(), selector);
    }
}
