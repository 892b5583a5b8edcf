//! What has been told already. Decides only: the time is an argument.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Event, Record};

/// What is told again within this time is the same event, once more.
const SERIES_MAX: Duration = Duration::from_secs(6 * 60);
/// How often the count of a series is written.
const COUNT_EVERY: Duration = Duration::from_secs(30);
/// How many events about one object there may be at once, and how long until there may be another.
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(5 * 60);
/// So many series and objects are remembered; then those that are over are forgotten.
const KNOWN_MAX: usize = 4096;

#[derive(Default)]
pub(super) struct Journal {
    series: HashMap<Topic, Series>,
    /// By the uid of objects.
    spent: HashMap<String, Spent>,
}

/// What is to be done about something that was told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    Create,
    /// An event says how often it was told.
    Count {
        name: String,
        count: i32,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Topic {
    controller: Arc<str>,
    object: String,
    event: Event,
}

struct Series {
    name: String,
    count: i32,
    last: Instant,
    written: Instant,
}

/// How many events an object has used up.
struct Spent {
    count: u32,
    since: Instant,
}

impl Journal {
    pub(super) fn step(&mut self, record: &Record, now: Instant) -> Step {
        self.forget(now);
        if let Some(series) = self.series.get_mut(&topic(record))
            && now.duration_since(series.last) < SERIES_MAX
        {
            series.count = series.count.saturating_add(1);
            series.last = now;
            if series.count > 2 && now.duration_since(series.written) < COUNT_EVERY {
                return Step::Nothing;
            }
            series.written = now;
            return Step::Count { name: series.name.clone(), count: series.count };
        }
        match self.spend(record, now) {
            true => Step::Create,
            false => Step::Nothing,
        }
    }

    pub(super) fn created(&mut self, record: &Record, name: String, now: Instant) {
        let series = Series { name, count: 1, last: now, written: now };
        self.series.insert(topic(record), series);
    }

    /// Whether there may be another event about an object.
    fn spend(&mut self, record: &Record, now: Instant) -> bool {
        let spent = self.spent.entry(object(record)).or_insert(Spent { count: 0, since: now });
        while spent.count > 0 && now.duration_since(spent.since) >= REFILL {
            spent.count -= 1;
            spent.since += REFILL;
        }
        if spent.count == 0 {
            spent.since = now;
        }
        let may = spent.count < BURST;
        spent.count += u32::from(may);
        may
    }

    fn forget(&mut self, now: Instant) {
        if self.series.len() > KNOWN_MAX {
            self.series.retain(|_, series| now.duration_since(series.last) < SERIES_MAX);
        }
        if self.spent.len() > KNOWN_MAX {
            self.spent.retain(|_, spent| {
                now.duration_since(spent.since) < REFILL.saturating_mul(spent.count)
            });
        }
    }
}

fn topic(record: &Record) -> Topic {
    Topic {
        controller: Arc::clone(&record.controller),
        object: object(record),
        event: record.event.clone(),
    }
}

/// Which object an event is about. Those that have no uid are told apart by name.
fn object(record: &Record) -> String {
    let regarding = &record.regarding;
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    match &regarding.uid {
        Some(uid) => uid.clone(),
        None => {
            let place = [&regarding.kind, &regarding.namespace, &regarding.name];
            place.map(part).join("/")
        }
    }
}
