//! From one object to another, as JSON patches.
//!
//! An object that passes through a type loses what the type does not know, and may gain what it
//! writes out. [`carry`] brings over to the object that was sent only what the author changed;
//! [`difference`] says how to get there.

use serde::Serialize;
use serde_json::{Map, Value};

/// One step of a JSON patch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation {
    Add { path: String, value: Value },
    Remove { path: String },
    Replace { path: String, value: Value },
}

/// The steps that make `to` of `from`.
pub(super) fn difference(from: &Value, to: &Value) -> Vec<Operation> {
    let mut steps = Vec::new();
    compare(&mut steps, &mut String::new(), from, to);
    steps
}

/// A patch as a response has it: base64 of JSON.
pub(super) fn encode(steps: &[Operation]) -> String {
    let json = serde_json::to_vec(steps).expect("steps have keys of text");
    // The type's own form in JSON is base64.
    match serde_json::to_value(k8s_openapi::ByteString(json)) {
        Ok(Value::String(text)) => text,
        _ => unreachable!("bytes are written as a text"),
    }
}

/// What was `sent`, with what has changed between `before` and `after`: the same object as its
/// type wrote it out before the author changed it and after.
pub(super) fn carry(sent: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return sent.clone();
    }
    match (sent, before, after) {
        (Value::Object(sent), Value::Object(before), Value::Object(after)) => {
            Value::Object(carry_fields(sent, before, after))
        }
        // A type may have fewer items than were sent, such as a set: then places mean nothing.
        (Value::Array(sent), Value::Array(before), Value::Array(after))
            if sent.len() == before.len() =>
        {
            Value::Array(carry_items(sent, before, after))
        }
        _ => after.clone(),
    }
}

fn carry_fields(
    sent: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let is_removed = |name: &str| before.contains_key(name) && !after.contains_key(name);
    let mut fields: Map<String, Value> = sent
        .iter()
        .filter(|(name, _)| !is_removed(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, after) in after {
        let before = before.get(name);
        if before == Some(after) {
            continue;
        }
        let value = match (sent.get(name), before) {
            (Some(sent), Some(before)) => carry(sent, before, after),
            _ => after.clone(),
        };
        fields.insert(name.clone(), value);
    }
    fields
}

/// An item that is as it was, wherever it is now, is as it was sent; one that changed in its place
/// keeps what its type does not know.
fn carry_items(sent: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let mut is_taken = vec![false; before.len()];
    let unchanged: Vec<Option<usize>> = after
        .iter()
        .enumerate()
        .map(|(place, item)| {
            let same = |&other: &usize| !is_taken[other] && before[other] == *item;
            let found = Some(place)
                .filter(|place| *place < before.len())
                .filter(same)
                .or_else(|| (0..before.len()).find(same))?;
            is_taken[found] = true;
            Some(found)
        })
        .collect();
    let item = |(place, item): (usize, &Value)| match unchanged[place] {
        Some(found) => sent[found].clone(),
        None if place < before.len() && !is_taken[place] => {
            carry(&sent[place], &before[place], item)
        }
        None => item.clone(),
    };
    after.iter().enumerate().map(item).collect()
}

fn compare(steps: &mut Vec<Operation>, path: &mut String, from: &Value, to: &Value) {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => {
            for name in from.keys().filter(|name| !to.contains_key(*name)) {
                within(path, name, |path| steps.push(Operation::Remove { path: path.clone() }));
            }
            for (name, to) in to {
                within(path, name, |path| match from.get(name) {
                    Some(from) => compare(steps, path, from, to),
                    None => steps.push(Operation::Add { path: path.clone(), value: to.clone() }),
                });
            }
        }
        (Value::Array(from), Value::Array(to)) => {
            let common = from.len().min(to.len());
            for place in 0..common {
                within(path, &place.to_string(), |path| {
                    compare(steps, path, &from[place], &to[place]);
                });
            }
            // From the end, so that places stay what they are.
            for place in (common..from.len()).rev() {
                within(path, &place.to_string(), |path| {
                    steps.push(Operation::Remove { path: path.clone() });
                });
            }
            for (place, item) in to.iter().enumerate().skip(common) {
                within(path, &place.to_string(), |path| {
                    steps.push(Operation::Add { path: path.clone(), value: item.clone() });
                });
            }
        }
        (from, to) if from != to => {
            steps.push(Operation::Replace { path: path.clone(), value: to.clone() });
        }
        _ => {}
    }
}

/// Goes a step down in a path, and up again.
fn within(path: &mut String, name: &str, go: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    for letter in name.chars() {
        match letter {
            '~' => path.push_str("~0"),
            '/' => path.push_str("~1"),
            letter => path.push(letter),
        }
    }
    go(path);
    path.truncate(length);
}
