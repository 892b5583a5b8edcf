//! Reading the fields of a valid object: what is absent is empty, as in Go.

use std::collections::BTreeMap;

use serde_json::Value;

use super::age;
use crate::selector::label::LabelSelector;
use crate::time::MicroTime;

/// A value, and the time at which it is looked at. Paths are keys with dots between them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'v> {
    pub(super) value: &'v Value,
    pub(super) now: MicroTime,
}

impl<'v> Fields<'v> {
    pub(super) fn new(value: &'v Value, now: MicroTime) -> Self {
        Fields { value, now }
    }

    pub(super) fn at(self, path: &str) -> Fields<'v> {
        Fields { value: self.find(path).unwrap_or(&Value::Null), ..self }
    }

    pub(super) fn has(self, path: &str) -> bool {
        self.find(path).is_some()
    }

    pub(super) fn text(self, path: &str) -> &'v str {
        self.find(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text, or something to show instead of none.
    pub(super) fn text_or<'t>(self, path: &str, otherwise: &'t str) -> &'t str
    where
        'v: 't,
    {
        match self.text(path) {
            "" => otherwise,
            text => text,
        }
    }

    pub(super) fn number(self, path: &str) -> i64 {
        self.find(path).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn flag(self, path: &str) -> bool {
        self.find(path).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A quantity or a number or string, as it is written.
    pub(super) fn scalar(self, path: &str, otherwise: &str) -> String {
        match self.find(path) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => otherwise.to_owned(),
        }
    }

    pub(super) fn items(self, path: &str) -> impl DoubleEndedIterator<Item = Fields<'v>> + Clone {
        let items = self.find(path).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        items.iter().map(move |value| Fields { value, ..self })
    }

    /// The texts in a list.
    pub(super) fn texts(self, path: &str) -> Vec<&'v str> {
        self.items(path).filter_map(|item| item.value.as_str()).collect()
    }

    /// How many items or members there are.
    pub(super) fn count(self, path: &str) -> usize {
        match self.find(path) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(members)) => members.len(),
            _ => 0,
        }
    }

    /// The members of a map of texts.
    pub(super) fn map(self, path: &str) -> BTreeMap<&'v str, &'v str> {
        let members = self.find(path).and_then(Value::as_object);
        let members = members.into_iter().flatten();
        members.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect()
    }

    /// The condition of this type.
    pub(super) fn condition(self, path: &str, ty: &str) -> Option<Fields<'v>> {
        self.items(path).find(|condition| condition.text("type") == ty)
    }

    pub(super) fn timestamp(self, path: &str) -> Option<MicroTime> {
        age::parse(self.text(path))
    }

    pub(super) fn since(self, path: &str) -> String {
        age::since(self.timestamp(path), self.now)
    }

    pub(super) fn name(self) -> &'v str {
        self.text("metadata.name")
    }

    pub(super) fn age(self) -> String {
        self.since("metadata.creationTimestamp")
    }

    /// A map of labels as `a=b,c=d`.
    pub(super) fn labels(self, path: &str) -> String {
        let labels = self.map(path);
        match labels.is_empty() {
            true => "<none>".to_owned(),
            false => {
                let pairs: Vec<_> =
                    labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                pairs.join(",")
            }
        }
    }

    pub(super) fn label_selector(self, path: &str) -> LabelSelector {
        let selector = self.find(path).and_then(|value| serde_json::from_value(value.clone()).ok());
        selector.unwrap_or_default()
    }

    /// The names and the images of containers.
    pub(super) fn containers(self, path: &str) -> (String, String) {
        let join = |field: &str| {
            let texts: Vec<_> = self.items(path).map(|container| container.text(field)).collect();
            texts.join(",")
        };
        (join("name"), join("image"))
    }

    fn find(self, path: &str) -> Option<&'v Value> {
        let found = path.split('.').try_fold(self.value, |value, key| value.get(key));
        found.filter(|value| !value.is_null())
    }
}

/// The first few texts, and how many more there are.
pub(super) fn with_more(texts: &[String], shown_max: usize, separator: &str) -> String {
    match texts.len().checked_sub(shown_max) {
        Some(more @ 1..) => {
            format!("{} + {more} more...", texts[..shown_max].join(separator))
        }
        _ => texts.join(separator),
    }
}
