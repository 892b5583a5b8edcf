//! Finding a value among many without looking at each.

use std::collections::HashMap;
use std::hash::Hash;

use serde_json::Value;

use super::Val;

/// Where values stand that may be equal to one another: those with the same key. What has none may
/// be equal to anything.
pub(super) struct Buckets<K> {
    by_key: HashMap<K, Vec<usize>>,
    keyless: Vec<usize>,
    len: usize,
}

/// What values have in common that are equal in any way.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Key {
    Absent,
    Null,
    Bool(bool),
    /// As a double, in which numbers of all types that are equal are the same.
    Number(u64),
    Text(Box<str>),
}

impl<K: Eq + Hash> Buckets<K> {
    pub(super) fn new(keys: impl IntoIterator<Item = Option<K>>) -> Self {
        let mut buckets = Buckets { by_key: HashMap::new(), keyless: Vec::new(), len: 0 };
        keys.into_iter().for_each(|key| buckets.push(key));
        buckets
    }

    /// Notes the value that comes next.
    pub(super) fn push(&mut self, key: Option<K>) {
        match key {
            Some(key) => self.by_key.entry(key).or_default().push(self.len),
            None => self.keyless.push(self.len),
        }
        self.len += 1;
    }

    /// The places to look at for what may be equal to something with this key.
    pub(super) fn places(&self, key: Option<&K>) -> Vec<usize> {
        let Some(key) = key else { return (0..self.len).collect() };
        let same = self.by_key.get(key).map(Vec::as_slice).unwrap_or_default();
        same.iter().chain(&self.keyless).copied().collect()
    }
}

impl Key {
    pub(super) fn of(value: &Val<'_>) -> Option<Self> {
        Some(match value {
            Val::Null => Key::Null,
            Val::Bool(value) => Key::Bool(*value),
            Val::Int(value) => Key::number(*value as f64),
            Val::Uint(value) => Key::number(*value as f64),
            Val::Double(value) => Key::number(*value),
            Val::String(text) => Key::Text((**text).into()),
            _ => return None,
        })
    }

    pub(super) fn of_json(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => Key::Null,
            Value::Bool(value) => Key::Bool(*value),
            Value::Number(value) => Key::number(value.as_f64()?),
            Value::String(text) => Key::Text(text.as_str().into()),
            Value::Array(_) | Value::Object(_) => return None,
        })
    }

    fn number(value: f64) -> Self {
        // Zero has two signs.
        Key::Number((value + 0.0).to_bits())
    }
}

/// The keys of an item of a list that is a map.
pub(super) fn item(item: &Val<'_>, keys: &[Box<str>]) -> Option<Vec<Key>> {
    let Val::Map(map) = item else { return None };
    let json = map.json()?;
    let key = |name: &str| json.get(name).map_or(Some(Key::Absent), Key::of_json);
    keys.iter().map(|name| key(name)).collect()
}
