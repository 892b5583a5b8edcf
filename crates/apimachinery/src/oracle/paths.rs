//! Paths of printer columns, and the ages beside them.

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{agree, compare};
use crate::json;
use crate::jsonpath::Template;
use crate::table::age;

#[test]
fn paths_find_and_print_what_go_finds_and_prints() {
    let args = |(path, object): &(String, Value)| json!({ "path": path, "object": object });
    let ours = |(path, object): &(String, Value)| {
        let template = Template::parse_column(path).map_err(|error| error.to_string())?;
        // Which of several mistakes of a value upstream names first, no client sees.
        let find = || -> Result<Value, crate::jsonpath::EvalError> {
            let found = template.find(object)?;
            let first: Vec<_> = found.first().into_iter().flatten().collect();
            Ok(json!({ "found": first, "printed": template.render(object)? }))
        };
        // On the wire a float may have no fraction.
        let wire = |value: Value| serde_json::from_str(&json::to_string(&value));
        find()
            .map(|found| wire(found).expect("it was just written"))
            .map_err(|_| "value".to_owned())
    };
    compare("jsonpath", (path(), object()), args, ours, |ours, upstream| match (ours, upstream) {
        (Err(ours), Err(upstream)) => ours == "value" || ours == upstream,
        _ => ours == upstream,
    });
}

#[test]
fn spans_are_told_as_go_tells_them() {
    let magnitude = (0u32..34).prop_flat_map(|bits| -(1i64 << bits)..(1i64 << bits));
    let args = |seconds: &i64| json!({ "seconds": seconds });
    agree("human-duration", magnitude, args, |seconds| {
        Ok(age::human(SignedDuration::from_secs(*seconds)).into())
    });
}

/// Pieces of paths in any order; `range` and `end` are kubectl's alone.
fn path() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(
        &[
            ".a",
            ".b",
            ".a",
            ".b",
            ".a.b",
            "..a",
            "..",
            ".",
            ".*",
            "[*]",
            "[0]",
            "[1]",
            "[-1]",
            "[0:1]",
            "[1:]",
            "[:1]",
            "[::2]",
            "[0,1]",
            "['a']",
            "['a','b']",
            "['a.b']",
            "[",
            "]",
            "[x]",
            "[:]",
            "[?(@.a)]",
            "[?(@.a==1)]",
            "[?(@.a!=\"x\")]",
            "[?(@.b<2)]",
            "[?(@>=1)]",
            "[?(@.a<='x')]",
            "[?(@.a>1.5)]",
            "[?(@.a==true)]",
            "[?(@.a==@.a)]",
            "[?(@..b==1)]",
            "[?(",
            ")]",
            "@",
            "$",
            "a",
            "b",
            " ",
            "\"x\"",
            "'x'",
            "\"",
            "'",
            "'\\''",
            "\"\\u0041\"",
            "\\",
            "\\.",
            "1",
            "-1.5",
            "+",
            "1.2.3",
            "true",
            "false",
            "#",
            "{",
            "}",
            "}{",
            ",",
            "*",
            ":",
            "\n",
            "\t",
            "ü",
            "=",
            "!",
        ][..],
    );
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// An object whose maps have one key: Go's have no order.
fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0i64..3).prop_map(Value::from),
        Just(json!(1.5)),
        "[x<]{0,2}".prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            inner.clone().prop_map(|value| json!({ "a": value })),
            inner.prop_map(|value| json!({ "b": value })),
        ]
    });
    tree.prop_map(|value| json!({ "a": value }))
}
