//! Texts that become values.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{agree, agree_on_success};
use crate::quantity::Quantity;
use crate::selector::{field, label};
use crate::time::GoDuration;
use crate::{json as codec, name, regex, yaml};

fn text(text: &String) -> Value {
    json!({ "text": text })
}

/// Strings put together from `pieces`, with now and then a character that nobody expects.
fn pieced(pieces: &'static [&'static str], n_max: usize) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        12 => prop::sample::select(pieces).prop_map(str::to_owned),
        // Go's lexers take NUL for the end of their input; ours refuse it, as any other.
        1 => any::<char>().prop_filter("NUL", |c| *c != '\0').prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..n_max).prop_map(|pieces| pieces.concat())
}

#[test]
fn json_is_read_and_printed_as_go_does() {
    let whole = super::object().prop_map(|value| value.to_string());
    let broken = pieced(
        &[
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"a\"",
            "\"b\"",
            "\"a\":",
            "null",
            "true",
            "1",
            "-0",
            "1.0",
            "1e3",
            "1E400",
            "9223372036854775808",
            "0.1",
            " ",
            "\n",
            "\"\\u00e9\"",
            "\"\\ud800\"",
            "\"<&>\"",
            "nul",
            "01",
            "\"\\x\"",
            "1.",
            "\"b\":{\"c\":1,\"c\":2}",
        ],
        12,
    )
    .prop_map(|middle| format!("{{{middle}}}"));
    agree("json", prop_oneof![1 => whole, 2 => broken], text, |input| {
        let decoded = codec::decode(input.as_bytes()).map_err(|error| error.to_string())?;
        let mut value = decoded.value;
        codec::sort_keys(&mut value);
        let strict: Vec<_> = decoded.violations.iter().map(ToString::to_string).collect();
        Ok(json!({ "printed": codec::to_string(&value) + "\n", "strict": strict }))
    });
}

#[test]
fn strings_are_quoted_as_go_does() {
    agree("quote", any::<String>(), text, |input| Ok(codec::go_quote(input).into()));
}

#[test]
fn patterns_mean_what_they_mean_in_go() {
    let pattern = pieced(
        &[
            "a",
            "b",
            ".",
            "*",
            "+",
            "?",
            "{2}",
            "{1,}",
            "{,2}",
            "{1001}",
            "(",
            ")",
            "(?:",
            "(?i)",
            "(?P<n>",
            "(?<n>",
            "[",
            "]",
            "^",
            "$",
            "-",
            "|",
            "\\d",
            "\\w",
            "\\S",
            "\\b",
            "\\B",
            "\\Q",
            "\\E",
            "\\pL",
            "\\p{Greek}",
            "\\PN",
            "[[:alpha:]]",
            "[^a-c]",
            "\\x{61}",
            "\\07",
            "\\z",
            "\\A",
            "\\Z",
            "\\C",
            "\\-",
            "&&",
            "~~",
            "\\",
            "é",
            "(?U)",
            "(?s)",
            "(?-u)",
            "*?",
        ],
        8,
    );
    let input = (pattern, pieced(&["a", "b", "é", "0", " ", "\n", "-", "&", "A", "{", "}"], 6));
    agree(
        "regexp",
        input,
        |(pattern, text)| json!({ "pattern": pattern, "text": text }),
        |(pattern, text)| {
            let compiled = regex::Regex::new(pattern).map_err(|error| error.to_string())?;
            let found = compiled.find(text).map(|found| {
                let start = found.as_ptr() as usize - text.as_ptr() as usize;
                [start, start + found.len()]
            });
            Ok(json!({ "found": found, "matches": compiled.is_match(text) }))
        },
    );
}

#[test]
fn label_selectors_read_print_and_match_as_go_does() {
    let selector = pieced(
        &[
            "a", "b", "a.b/c", "=", "==", "!=", ",", " ", "in", " in ", "notin", "(", ")", "(a,b)",
            "!", ">", "<", "1", "x y", "A_", "-", "a=b", "b in (a)", "!a",
        ],
        8,
    );
    let labels =
        prop::collection::btree_map("[ab]", prop::sample::select(&["a", "b", "1", "2"][..]), 0..3);
    agree(
        "label-selector",
        (selector, labels),
        |(text, labels)| json!({ "text": text, "labels": labels }),
        |(text, labels)| {
            let selector = label::Selector::parse(text).map_err(|error| error.to_string())?;
            let labels: serde_json::Map<String, Value> =
                labels.iter().map(|(key, value)| (key.clone(), (*value).into())).collect();
            Ok(json!({ "canonical": selector.to_string(), "matches": selector.matches(&labels) }))
        },
    );
}

#[test]
fn field_selectors_read_print_and_match_as_go_does() {
    let selector = pieced(&["a", "b", "=", "==", "!=", ",", "\\", "\\,", "\\=", "", " "], 8);
    let fields = prop::collection::btree_map("[ab]", "[ab,=]{0,2}", 0..3);
    agree(
        "field-selector",
        (selector, fields),
        |(text, fields)| json!({ "text": text, "fields": fields }),
        |(text, fields)| {
            let selector = field::Selector::parse(text).map_err(|error| error.to_string())?;
            let field = |name: &str| fields.get(name).map_or("", String::as_str);
            Ok(json!({ "canonical": selector.to_string(), "matches": selector.matches(field) }))
        },
    );
}

#[test]
fn names_are_refused_in_go_s_words() {
    let name = prop_oneof![
        pieced(&["a", "B", "-", ".", "_", "/", "0", "a.b", " ", "..", "9", "é"], 6),
        "[a-z0-9.]{60,70}",
        "[a-z]{250,256}",
    ];
    agree("name", name, text, |text| {
        Ok(json!({
            "config-map-key": verdict(name::config_map_key(text)),
            "dns1035-label": verdict(name::dns1035_label(text)),
            "dns1123-label": verdict(name::dns1123_label(text)),
            "dns1123-subdomain": verdict(name::dns1123_subdomain(text)),
            "env-var-name": verdict(name::env_var_name(text)),
            "label-value": verdict(name::label_value(text)),
            "port-name": verdict(name::port_name(text)),
            "qualified-name": verdict(name::label_key(text)),
        }))
    });
}

/// Go has no empty list where it found nothing wrong.
fn verdict(messages: Vec<String>) -> Value {
    match messages.is_empty() {
        true => Value::Null,
        false => messages.into(),
    }
}

#[test]
fn quantities_are_read_and_printed_as_go_does() {
    let quantity = pieced(
        &[
            "1",
            "0",
            "9",
            "12",
            "000",
            ".",
            ".5",
            "-",
            "+",
            "e",
            "E",
            "e3",
            "E-2",
            "m",
            "u",
            "n",
            "k",
            "Ki",
            "Mi",
            "G",
            "Gi",
            "T",
            "P",
            "Ei",
            "E",
            "9223372036854775807",
            "0.0000000001",
        ],
        4,
    );
    agree("quantity", quantity, text, |text| {
        let quantity = Quantity::parse(text).map_err(|error| error.to_string())?;
        let sign = match (quantity.is_zero(), quantity.is_negative()) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        Ok(json!({
            "canonical": quantity.to_string(),
            "milli": quantity.milli_value(),
            "sign": sign,
            "value": quantity.value(),
        }))
    });
}

#[test]
fn durations_are_read_and_printed_as_go_does() {
    let duration = pieced(
        &["1", "0", "90", ".", "5", "-", "+", "h", "m", "s", "ms", "us", "µs", "ns", "1h30m", "d"],
        6,
    );
    agree("duration", duration, text, |text| {
        let duration = GoDuration::parse(text).map_err(|error| error.to_string())?;
        Ok(json!({ "canonical": duration.to_string(), "nanos": duration.nanos.to_string() }))
    });
}

/// Not the grammar: in what is no YAML, the two parsers differ on when to say so.
#[test]
fn yaml_scalars_are_read_and_written_as_go_does() {
    let scalar = prop_oneof![
        "[0-9_.+eExXobn:-]{1,7}",
        "[a-zA-Z0-9~<=.]{1,5}",
        "'[ a-z0-9#:-]{0,6}'",
        prop::sample::select(
            &["yes", "Off", "0644", ".inf", "1e400", "~", "2024-01-01", "!!str 1"][..]
        )
        .prop_map(str::to_owned),
    ];
    let document = scalar.prop_map(|scalar| format!("key: {scalar}\n"));
    agree_on_success("yaml", document, text, |text| {
        let decoded = yaml::decode(text).map_err(|error| error.to_string())?;
        let mut value = decoded.value;
        codec::sort_keys(&mut value);
        Ok(json!({ "json": codec::to_string(&value), "yaml": yaml::to_string(&value) }))
    });
}
