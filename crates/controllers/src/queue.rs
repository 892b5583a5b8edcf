//! Keys that wait for work: each once, one in flight per key, later after each failure.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{self, Either};
use futures::stream::FuturesUnordered;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::pause;

/// What becomes of a key after it was worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Until it is added again.
    Done,
    /// It failed; the pause grows with each failure in a row.
    Retry,
    /// Not sooner than this, unless it is added again.
    After(Duration),
}

pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

struct State<K> {
    ready: VecDeque<K>,
    queued: HashSet<K>,
    busy: HashSet<K>,
    /// Added while busy: what changed may have come too late for the work under way.
    again: HashSet<K>,
    failures: HashMap<K, u32>,
    delayed: BinaryHeap<Reverse<(Instant, K)>>,
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    pub(crate) fn new() -> Self {
        let state = State {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            busy: HashSet::new(),
            again: HashSet::new(),
            failures: HashMap::new(),
            delayed: BinaryHeap::new(),
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    pub(crate) fn add(&self, key: K) {
        self.state().add(key);
        self.changed.notify_one();
    }

    /// Works on keys, at most so many at a time, until `shutdown`. Work under way is then dropped:
    /// each request is whole, and whoever starts next finds what is still to do.
    pub(crate) async fn work<F, W>(&self, at_once: usize, shutdown: &CancellationToken, work: F)
    where
        F: Fn(K) -> W,
        W: Future<Output = Outcome>,
    {
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < at_once
                && let Some(key) = self.take()
            {
                let working = work(key.clone());
                running.push(async move { (key, working.await) });
            }
            let due = self.state().due();
            let due = match due {
                Some(due) => Either::Left(tokio::time::sleep_until(due)),
                None => Either::Right(future::pending()),
            };
            // Each arm may be dropped at any time: a notification not taken stays, and the future
            // of a work is kept in `running`.
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some((key, outcome)) = running.next() => {
                    self.state().finish(key, outcome, Instant::now());
                }
                () = self.changed.notified() => {}
                () = due => self.state().release(Instant::now()),
            }
        }
    }

    /// The next key. What is then done with it may add others, so nothing stays locked.
    fn take(&self) -> Option<K> {
        self.state().take()
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        // No call below panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash + Ord> State<K> {
    fn add(&mut self, key: K) {
        if self.busy.contains(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.busy.insert(key.clone());
        Some(key)
    }

    fn finish(&mut self, key: K, outcome: Outcome, now: Instant) {
        self.busy.remove(&key);
        match outcome {
            Outcome::Done | Outcome::After(_) => {
                self.failures.remove(&key);
            }
            Outcome::Retry => {}
        }
        if self.again.remove(&key) {
            self.add(key);
            return;
        }
        match outcome {
            Outcome::Done => {}
            Outcome::After(pause) => self.delayed.push(Reverse((now + pause, key))),
            Outcome::Retry => {
                let failures = self.failures.entry(key.clone()).or_default();
                self.delayed.push(Reverse((now + pause(*failures), key)));
                *failures += 1;
            }
        }
    }

    /// When the first of the delayed is to be worked on.
    fn due(&self) -> Option<Instant> {
        self.delayed.peek().map(|Reverse((due, _))| *due)
    }

    fn release(&mut self, now: Instant) {
        while let Some(Reverse((due, _))) = self.delayed.peek()
            && *due <= now
        {
            let Some(Reverse((_, key))) = self.delayed.pop() else { return };
            self.add(key);
        }
    }
}
