//! What was reconciled last, and why.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::key::ObjectKey;
use crate::queue::Causes;

const KEPT_MAX: usize = 32;

/// The last reconciles, for those who look after a controller.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<Entry>>);

struct Entry {
    key: ObjectKey,
    causes: Causes,
    ended: String,
    took: Duration,
}

impl Recent {
    pub(super) fn add(&self, key: &ObjectKey, causes: &Causes, ended: String, took: Duration) {
        let (key, causes) = (key.clone(), causes.clone());
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.truncate(KEPT_MAX - 1);
        entries.push_front(Entry { key, causes, ended, took });
    }

    /// The last one first.
    pub(crate) fn report(&self) -> Vec<Value> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tell = |entry: &Entry| {
            json!({
                "key": entry.key.as_str(),
                "causes": entry.causes.to_string(),
                "ended": entry.ended,
                "milliseconds": entry.took.as_secs_f64() * 1000.0,
            })
        };
        entries.iter().map(tell).collect()
    }
}
