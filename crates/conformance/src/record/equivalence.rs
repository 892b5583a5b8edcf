//! When two recordings say the same although their bytes differ: the server iterates over maps in
//! random order when it lists causes, counts ages in seconds, and draws addresses and ports.
//!
//! A recording that still says the same is left as it is, so that playing again gives no noise.

use serde_json::{Map, Value, json};

/// Lists in which the server's order is that of a map.
const UNORDERED: &[&str] =
    &["causes", "nonResourceRules", "nonResourceURLs", "resourceRules", "warnings"];

/// Writes its status into some built-in objects when it gets to it.
const BUSYBODY: &str = "api-priority-and-fairness-config-consumer-v1";

pub(super) fn same(before: &Value, after: &Value) -> bool {
    normal(before) == normal(after)
}

/// The first line in which the two differ, for a person to read.
pub(super) fn difference(before: &Value, after: &Value) -> String {
    let (before, after) = (format!("{:#}", normal(before)), format!("{:#}", normal(after)));
    let mut lines = before.lines().zip(after.lines()).enumerate();
    let differing = lines.find(|(_, (before, after))| before != after);
    differing.map_or_else(String::new, |(number, (before, after))| {
        format!("line {}: was {}, is {}", number + 1, before.trim(), after.trim())
    })
}

fn normal(value: &Value) -> Value {
    match value {
        Value::Object(fields) => normal_object(fields),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::String(text) => without_address(text).into(),
        scalar => scalar.clone(),
    }
}

fn normal_object(fields: &Map<String, Value>) -> Value {
    let mut object: Map<String, Value> =
        fields.iter().map(|(key, value)| (key.clone(), normal(value))).collect();
    for key in UNORDERED {
        if let Some(items) = object.get_mut(*key).and_then(Value::as_array_mut) {
            items.sort_by_key(Value::to_string);
        }
    }
    if let Some(entries) = object.get_mut("managedFields").and_then(Value::as_array_mut) {
        entries.retain(|entry| entry["manager"] != BUSYBODY);
    }
    if object.get("kind") == Some(&json!("Status"))
        && let Some(Value::String(message)) = object.get_mut("message")
    {
        *message = in_order(message);
    }
    if let Some(cells) = object.get_mut("cells").and_then(Value::as_array_mut) {
        cells.iter_mut().for_each(|cell| *cell = without_age(cell));
    }
    for key in ["nodePort", "healthCheckNodePort"] {
        if object.get(key).is_some_and(Value::is_number) {
            object[key] = json!(30_000);
        }
    }
    object.into()
}

/// The parts of a message that lists several causes, in an order of our own.
fn in_order(message: &str) -> String {
    let Some((start, list)) = message.split_once('[') else { return message.to_owned() };
    let Some(list) = list.strip_suffix(']') else { return message.to_owned() };
    let mut parts: Vec<&str> = list.split(", ").collect();
    parts.sort_unstable();
    format!("{start}[{}]", parts.join(", "))
}

/// Ages of some seconds are one age.
fn without_age(cell: &Value) -> Value {
    let is_age = |text: &str| {
        text.strip_suffix('s').is_some_and(|number| number.parse::<u8>().is_ok_and(|age| age < 60))
    };
    let Some(text) = cell.as_str() else { return cell.clone() };
    let words = text.split(' ').map(|word| {
        let bare = word.trim_matches(['(', ')']);
        if is_age(bare) { word.replace(bare, "0s") } else { word.to_owned() }
    });
    words.collect::<Vec<_>>().join(" ").into()
}

/// Service addresses and node ports are drawn from a range.
fn without_address(text: &str) -> String {
    let is_port = |text: &str| {
        text.parse::<u16>().is_ok_and(|port| (30_000..=32_767).contains(&port)) && text.len() == 5
    };
    let pieces = text.split_inclusive([':', '/', ',', ' ', '"']).map(|piece| {
        let bare = piece.trim_end_matches([':', '/', ',', ' ', '"']);
        let end = &piece[bare.len()..];
        let drawn = bare.strip_prefix("10.0.0.").is_some_and(|last| last.parse::<u8>().is_ok());
        match () {
            () if drawn => format!("10.0.0.0{end}"),
            () if is_port(bare) => format!("30000{end}"),
            () => piece.to_owned(),
        }
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: Value, after: Value, expected: bool) {
        assert_eq!(same(&before, &after), expected, "{before} and {after}");
    }

    #[test]
    fn the_order_of_causes_says_nothing() {
        let status = |first: &str, second: &str| {
            json!({
                "kind": "Status",
                "message": format!("x is invalid: [{first}: bad, {second}: bad]"),
                "details": { "causes": [{ "field": first }, { "field": second }] },
            })
        };
        check(status("a", "b"), status("b", "a"), true);
        check(status("a", "b"), status("a", "c"), false);
    }

    #[test]
    fn seconds_of_age_say_nothing() {
        let row = |age: &str| json!({ "cells": ["name", age] });
        check(row("0s"), row("3s"), true);
        check(row("2 (1s ago)"), row("2 (4s ago)"), true);
        check(row("0s"), row("3m"), false);
    }

    #[test]
    fn a_drawn_address_says_nothing() {
        check(json!("10.0.0.7"), json!("10.0.0.200"), true);
        check(json!("80:30123/TCP"), json!("80:32001/TCP"), true);
        check(json!("10.0.0.7"), json!("None"), false);
        check(json!({ "nodePort": 30001 }), json!({ "nodePort": 30002 }), true);
    }
}
