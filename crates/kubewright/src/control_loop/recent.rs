//! What was reconciled last, and why.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::key::ObjectKey;
use crate::metrics::Result as Metered;
use crate::queue::Causes;

const KEPT_MAX: usize = 32;
/// How many keys are told of at a time.
const TOLD_MAX: usize = 8;

/// The last reconciles, and how many there were, for those who look after a controller.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Past>);

#[derive(Default)]
struct Past {
    reconciles: u64,
    failures: u64,
    /// Kept when others have come after it.
    last_failure: Option<String>,
    /// The last one first.
    entries: VecDeque<Entry>,
    /// Keys whose last reconcile panicked.
    panicked: BTreeSet<ObjectKey>,
}

struct Entry {
    key: ObjectKey,
    causes: Causes,
    ended: String,
    took: Duration,
}

impl Recent {
    pub(super) fn add(
        &self,
        key: &ObjectKey,
        causes: &Causes,
        result: Metered,
        why: Option<String>,
        took: Duration,
    ) {
        let (key, causes) = (key.clone(), causes.clone());
        let ended = match why {
            Some(why) => format!("{result:?}: {why}"),
            None => format!("{result:?}"),
        };
        let mut past = self.past();
        past.reconciles += 1;
        if result.is_failure() {
            past.failures += 1;
            past.last_failure = Some(format!("{}: {ended}", key.as_str()));
        }
        match result == Metered::Panicked {
            true => past.panicked.insert(key.clone()),
            false => past.panicked.remove(&key),
        };
        past.entries.truncate(KEPT_MAX - 1);
        past.entries.push_front(Entry { key, causes, ended, took });
    }

    /// A key is somebody else's now, and so is what became of it.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.past().panicked.remove(key);
    }

    /// The keys whose last reconcile panicked, as many as a person wants to read; and how many more
    /// there are.
    pub(crate) fn panicking(&self) -> (Vec<ObjectKey>, usize) {
        let panicked = &self.past().panicked;
        let told: Vec<ObjectKey> = panicked.iter().take(TOLD_MAX).cloned().collect();
        let more = panicked.len() - told.len();
        (told, more)
    }

    /// What there was, into a report.
    pub(crate) fn report(&self, report: &mut Value) {
        let past = self.past();
        let tell = |entry: &Entry| {
            json!({
                "key": entry.key.as_str(),
                "causes": entry.causes.to_string(),
                "ended": entry.ended,
                "milliseconds": entry.took.as_secs_f64() * 1000.0,
            })
        };
        report["reconciles"] = past.reconciles.into();
        report["failures"] = past.failures.into();
        report["lastFailure"] = json!(past.last_failure);
        report["recent"] = past.entries.iter().map(tell).collect();
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        // Nothing that holds it panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
