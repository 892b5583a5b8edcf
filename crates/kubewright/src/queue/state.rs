//! Which key is next. Decides only: the time is an argument, and nobody waits here.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;
use tracing::Span;

use super::{Add, Causes, Key, Outcome, Pauses, Stats, Taken};
use crate::trail::Trail;

/// Room for so many keys is kept, whether they wait or not.
const ROOMY: usize = 4096;
/// Whoever is to wait for longer than thirty years waits so long. Clocks cannot be added to without
/// end, and objects may name any number of seconds.
const PAUSE_MAX: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

pub(super) struct State<K> {
    /// All keys that wait. One that is busy too is in neither order below.
    waiting: HashMap<K, Waiting>,
    ready: BTreeSet<(Reverse<i32>, u64, K)>,
    delayed: BTreeSet<(Instant, u64, K)>,
    busy: HashMap<K, Instant>,
    /// How often in a row the work on a key has failed.
    failures: HashMap<K, u32>,
    pauses: Pauses,
    arrivals: u64,
    adds: u64,
    retries: u64,
    closed: bool,
}

struct Waiting {
    priority: i32,
    /// Keys of one priority come in this order.
    arrival: u64,
    /// When it may be worked on. The moment of its arrival if that is at once.
    due: Instant,
    /// It may not be before, whatever else comes.
    not_before: Option<Instant>,
    causes: Causes,
    /// In a box, since mostly there is none.
    trail: Option<Box<Trail>>,
}

impl<K: Key> State<K> {
    pub(super) fn new(pauses: Pauses) -> Self {
        State {
            waiting: HashMap::new(),
            ready: BTreeSet::new(),
            delayed: BTreeSet::new(),
            busy: HashMap::new(),
            failures: HashMap::new(),
            pauses,
            arrivals: 0,
            adds: 0,
            retries: 0,
            closed: false,
        }
    }

    pub(super) fn add(&mut self, key: K, add: Add, now: Instant) {
        self.adds += 1;
        let mut causes = Causes::default();
        causes.extend(add.cause);
        let waiting = Waiting {
            priority: add.priority,
            arrival: 0,
            due: after(now, add.after),
            not_before: None,
            causes,
            trail: add.event.and_then(Trail::begin),
        };
        self.wait(key, waiting, now);
    }

    /// The key to work on next.
    pub(super) fn take(&mut self, now: Instant) -> Option<Taken<K>> {
        while let Some((due, arrival, key)) = self.delayed.pop_first() {
            if due > now {
                self.delayed.insert((due, arrival, key));
                break;
            }
            let priority = self.waiting.get(&key).map_or(0, |waiting| waiting.priority);
            self.ready.insert((Reverse(priority), arrival, key));
        }
        let (_, _, key) = self.ready.pop_first()?;
        let waiting = self.waiting.remove(&key)?;
        // All objects wait at the start, and hardly ever again at once.
        if self.waiting.capacity() > ROOMY.max(self.waiting.len() * 8) {
            self.waiting.shrink_to(self.waiting.len() * 2);
        }
        self.busy.insert(key.clone(), now);
        Some(Taken {
            failures: self.failures.get(&key).copied().unwrap_or_default(),
            key,
            priority: waiting.priority,
            causes: waiting.causes,
            waited: now.saturating_duration_since(waiting.due),
            event: waiting.trail.map_or_else(Span::none, |trail| trail.end()),
        })
    }

    pub(super) fn finish(&mut self, taken: Taken<K>, outcome: Outcome, now: Instant) {
        let Taken { key, priority, causes, .. } = taken;
        self.busy.remove(&key);
        let (pause, not_before) = match outcome {
            Outcome::Done => {
                self.failures.remove(&key);
                return self.arrange(&key, now);
            }
            Outcome::After(pause) => {
                self.failures.remove(&key);
                (pause, None)
            }
            Outcome::Failed | Outcome::Again => (self.fail(&key), None),
            Outcome::Refused(least) => (self.fail(&key).max(least), Some(after(now, least))),
        };
        let due = after(now, pause);
        let waiting = Waiting { priority, arrival: 0, due, not_before, causes, trail: None };
        self.wait(key, waiting, now);
    }

    /// Counts a failure, and gives how long the key waits after it.
    fn fail(&mut self, key: &K) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        let pause = self.pauses.after(*failures);
        *failures = failures.saturating_add(1);
        self.retries += 1;
        pause
    }

    /// Takes back what was added to a key during the work on it.
    pub(super) fn disregard(&mut self, key: &K, is_known: impl FnOnce(&Causes) -> bool) {
        if self.busy.contains_key(key)
            && self.waiting.get(key).is_some_and(|waiting| is_known(&waiting.causes))
        {
            self.waiting.remove(key);
        }
    }

    pub(super) fn stats(&self, now: Instant) -> Stats {
        let mut stats = Stats { adds: self.adds, retries: self.retries, ..Stats::default() };
        for waiting in self.waiting.values().filter(|waiting| waiting.due <= now) {
            *stats.depth.entry(waiting.priority).or_default() += 1;
        }
        for since in self.busy.values() {
            let taken = now.saturating_duration_since(*since);
            stats.unfinished += taken;
            stats.longest = stats.longest.max(taken);
        }
        stats
    }

    /// When the first of the keys that wait for a time may be worked on.
    pub(super) fn due(&self) -> Option<Instant> {
        self.delayed.first().map(|(due, ..)| *due)
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Lets a key wait, or wait less if it does already. Its place among others is found here.
    fn wait(&mut self, key: K, new: Waiting, now: Instant) {
        match self.waiting.get_mut(&key) {
            Some(waiting) => {
                // Where it was; it may not be in either.
                self.ready.remove(&(Reverse(waiting.priority), waiting.arrival, key.clone()));
                self.delayed.remove(&(waiting.due, waiting.arrival, key.clone()));
                waiting.merge(new);
            }
            None => {
                self.arrivals += 1;
                self.waiting.insert(key.clone(), Waiting { arrival: self.arrivals, ..new });
            }
        }
        self.arrange(&key, now);
    }

    /// Puts a key that waits where it belongs.
    fn arrange(&mut self, key: &K, now: Instant) {
        if self.busy.contains_key(key) {
            return;
        }
        let Some(waiting) = self.waiting.get(key) else { return };
        match waiting.due <= now {
            true => {
                self.ready.insert((Reverse(waiting.priority), waiting.arrival, key.clone()));
            }
            false => {
                self.delayed.insert((waiting.due, waiting.arrival, key.clone()));
            }
        }
    }
}

impl Waiting {
    /// Takes in another reason to wait. It keeps its place.
    fn merge(&mut self, other: Waiting) {
        self.priority = self.priority.max(other.priority);
        self.not_before = self.not_before.max(other.not_before);
        self.due = self.due.min(other.due);
        if let Some(not_before) = self.not_before {
            self.due = self.due.max(not_before);
        }
        self.causes.merge(other.causes);
        match (&self.trail, other.trail) {
            (Some(trail), Some(other)) => trail.join(&other),
            (None, Some(other)) => self.trail = Some(other),
            (_, None) => {}
        }
    }
}

fn after(now: Instant, pause: Duration) -> Instant {
    now + pause.min(PAUSE_MAX)
}
