//! Replaces in an answer what changes from one recording to the next, and nothing else.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use crate::case::{self, map_strings};

/// The first second of every recording.
const EPOCH: &str = "2000-01-01T00:00:00Z";
/// How far behind or ahead of its writing a time may lie that the server chose itself: clocks
/// have whole seconds, and a grace period looks ahead.
const MARGIN: SignedDuration = SignedDuration::from_secs(60);

/// What one case has taught us about the server's choices so far.
pub(crate) struct Scrubber {
    started: Timestamp,
    uids: BTreeSet<String>,
    /// When each step was sent, if times are to be told apart by step.
    steps: Option<Vec<Timestamp>>,
}

impl Scrubber {
    pub(crate) fn new(started: Timestamp, clock: case::Clock) -> Self {
        let steps = match clock {
            case::Clock::Still => None,
            case::Clock::Steps => Some(Vec::new()),
        };
        Self { started, uids: BTreeSet::new(), steps }
    }

    pub(crate) fn step_sent(&mut self, at: Timestamp) {
        if let Some(steps) = &mut self.steps {
            steps.push(at);
        }
    }

    pub(crate) fn scrub(&mut self, answer: &mut Value) {
        self.learn_uids(answer);
        self.walk(answer);
        *answer = map_strings(answer, &|text| self.constant_for(text));
    }

    /// Uids show up again in messages and preconditions, where no key names them.
    fn learn_uids(&mut self, value: &Value) {
        for place in ["/metadata/uid", "/details/uid"] {
            if let Some(uid) = value.pointer(place).and_then(Value::as_str) {
                self.uids.insert(uid.to_owned());
            }
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn_uids(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.learn_uids(field)),
            _ => {}
        }
    }

    fn walk(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item)),
            Value::Object(fields) => {
                if let Some(metadata) = fields.get_mut("metadata") {
                    self.scrub_metadata(metadata);
                }
                if fields.get("kind").and_then(Value::as_str) == Some("Table") {
                    scrub_ages(fields);
                }
                if fields.get("kind").is_some_and(|kind| kind == "APIGroupList")
                    && let Some(groups) = fields.get_mut("groups").and_then(Value::as_array_mut)
                {
                    // Other cases are played at the same time.
                    groups.retain(|group| {
                        !text(group, "name").is_some_and(|name| name.ends_with(".kubewright.dev"))
                    });
                }
                fields.values_mut().for_each(|field| self.walk(field));
            }
            _ => {}
        }
    }

    fn scrub_metadata(&self, metadata: &mut Value) {
        replace(metadata, "resourceVersion", case::RESOURCE_VERSION.to_owned());
        replace(metadata, "continue", "continue".to_owned());
        if let Some(time) = text(metadata, "creationTimestamp") {
            replace(metadata, "creationTimestamp", self.constant_time(&time));
        }
        if let Some(prefix) = text(metadata, "generateName") {
            replace(metadata, "name", format!("{prefix}xxxxx"));
        }
        if let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
            for entry in entries.iter_mut() {
                if let Some(time) = text(entry, "time") {
                    replace(entry, "time", self.constant_time(&time));
                }
            }
            if self.steps.is_none() {
                // Upstream orders entries by operation, second, and identity. With all seconds
                // made one, identity is what is left.
                let key = |entry: &Value| {
                    ["operation", "manager", "apiVersion", "subresource"]
                        .map(|key| text(entry, key).unwrap_or_default())
                };
                entries.sort_by_key(key);
            }
        }
    }

    /// The text with known uids replaced; a time of this recording becomes a constant.
    fn constant_for(&self, text: &str) -> String {
        if let Ok(time) = text.parse::<Timestamp>()
            && time > self.started - MARGIN
            && time < Timestamp::now() + MARGIN
        {
            return self.constant_time(text);
        }
        self.uids.iter().fold(text.to_owned(), |text, uid| text.replace(uid, case::UID))
    }

    fn constant_time(&self, time: &str) -> String {
        let epoch: Timestamp = EPOCH.parse().expect("the constant is a time");
        let Some(steps) = &self.steps else { return EPOCH.to_owned() };
        let Ok(time) = time.parse::<Timestamp>() else { return time.to_owned() };
        let step = steps.iter().filter(|sent| sent.as_second() <= time.as_second()).count();
        let seconds = i64::try_from(step.saturating_sub(1)).expect("a case has few steps");
        (epoch + SignedDuration::from_secs(seconds)).to_string()
    }
}

/// The ages in a table grow while a case is played. Upstream also prints one for which it has no
/// column.
fn scrub_ages(table: &mut Map<String, Value>) {
    let Some(columns) = table.get("columnDefinitions").and_then(Value::as_array) else { return };
    let is_age: Vec<bool> = columns.iter().map(|column| column["name"] == "Age").collect();
    let rows = table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten();
    for row in rows {
        let cells = row.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten();
        for (index, cell) in cells.enumerate() {
            if *is_age.get(index).unwrap_or(&true) {
                *cell = "0s".into();
            }
        }
    }
}

fn text(object: &Value, key: &str) -> Option<String> {
    object.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Replaces a string that is there and not empty.
fn replace(object: &mut Value, key: &str, constant: String) {
    if text(object, key).is_some() {
        object[key] = Value::String(constant);
    }
}

#[cfg(test)]
mod tests;
