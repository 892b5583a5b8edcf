//! Keys that wait for work.
//!
//! Each key waits once, however often it is added, and is worked on by one worker at a time; what
//! is added meanwhile waits until that work is over, and is then worked on again. More important
//! keys come first, equally important ones in the order of their arrival. A key whose work failed
//! comes back after a pause that doubles with every failure in a row.
//!
//! ```
//! use kubewright::queue::{Outcome, Queue};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let queue = Queue::new();
//! queue.add("pets/thor");
//! queue.add("pets/thor");
//! let work = queue.take().await.expect("it is open");
//! assert_eq!(*work.key(), "pets/thor");
//! work.finish(Outcome::Done);
//! assert_eq!(queue.len(), 0);
//! # });
//! ```

mod causes;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

pub use self::causes::{Cause, Causes};
use self::state::State;

/// What a key must be.
pub trait Key: Clone + Eq + Hash + Ord {}

impl<K: Clone + Eq + Hash + Ord> Key for K {}

/// A queue of keys, for any number of workers.
pub struct Queue<K: Key> {
    state: Mutex<State<K>>,
    changed: Notify,
}

/// How a key is added.
#[derive(Debug, Clone, Default)]
pub struct Add {
    priority: i32,
    after: Duration,
    cause: Option<Cause>,
    event: Option<Span>,
}

/// How long a key waits after its work has failed: at first the least, then twice as long each time
/// in a row, up to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    pub min: Duration,
    pub max: Duration,
}

/// What became of the work on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There is nothing to do until the key is added again.
    Done,
    /// It failed. The key comes back after a pause that grows with each failure in a row.
    Failed,
    /// It did not fail, but is not over: as after a failure.
    Again,
    /// It failed, and whoever refused has said how long to stay away: as after a failure, but not
    /// before that time has passed, whatever is added meanwhile.
    Refused(Duration),
    /// The key comes back after this time, if it is not added before.
    After(Duration),
}

/// A key that is being worked on. Dropped without an outcome, as when the work is cancelled or
/// panics, it has failed.
pub struct Work<'q, K: Key> {
    queue: &'q Queue<K>,
    taken: Option<Taken<K>>,
}

/// How a queue is doing, for those who look after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many keys of each priority are ready, or would be if they were not worked on.
    pub depth: BTreeMap<i32, usize>,
    /// How often keys were added.
    pub adds: u64,
    /// How often keys came back after a failure.
    pub retries: u64,
    /// How long all work under way has taken by now.
    pub unfinished: Duration,
    /// How long the longest work under way has taken by now.
    pub longest: Duration,
}

/// A key as a worker gets it.
#[derive(Debug)]
struct Taken<K> {
    key: K,
    priority: i32,
    causes: Causes,
    failures: u32,
    waited: Duration,
    event: Span,
}

impl<K: Key> Queue<K> {
    pub fn new() -> Self {
        Queue::with_pauses(Pauses::default())
    }

    /// A queue in which keys wait otherwise after failures.
    pub fn with_pauses(pauses: Pauses) -> Self {
        Queue { state: Mutex::new(State::new(pauses)), changed: Notify::new() }
    }

    /// Adds a key, to be worked on as soon as possible.
    pub fn add(&self, key: K) {
        self.add_with(key, Add::default());
    }

    /// Adds a key. If it waits already, the higher priority and the shorter pause count, unless it
    /// was [refused](Outcome::Refused) and must not come back yet.
    pub fn add_with(&self, key: K, add: Add) {
        self.state().add(key, add, Instant::now());
        self.changed.notify_one();
    }

    /// The next key, when there is one. None once the queue is closed.
    ///
    /// Waiting can be given up at any time, and loses nothing.
    pub async fn take(&self) -> Option<Work<'_, K>> {
        loop {
            let changed = self.changed.notified();
            let due = {
                let mut state = self.state();
                if state.is_closed() {
                    // The others are to hear of it too.
                    self.changed.notify_one();
                    return None;
                }
                if let Some(taken) = state.take(Instant::now()) {
                    if state.has_ready() {
                        self.changed.notify_one();
                    }
                    return Some(Work { queue: self, taken: Some(taken) });
                }
                state.due()
            };
            match due {
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// Works on keys, at most so many at a time, in this task, until `shutdown`. Work under way is
    /// then dropped: it has failed, and whoever starts next finds what is still to do.
    pub async fn work<F, W>(&self, at_once: usize, shutdown: &CancellationToken, work: F)
    where
        F: Fn(K) -> W,
        W: Future<Output = Outcome>,
    {
        let worker = || async {
            while let Some(taken) = self.take().await {
                let outcome = work(taken.key().clone()).await;
                taken.finish(outcome);
            }
        };
        let workers = join_all(std::iter::repeat_with(worker).take(at_once));
        shutdown.run_until_cancelled(workers).await;
    }

    /// Gives no more keys to anybody. Work under way goes on.
    pub fn close(&self) {
        self.state().close();
        self.changed.notify_one();
    }

    /// How many keys wait, those that wait for a time or for a work to end among them.
    pub fn len(&self) -> usize {
        self.state().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the queue is doing.
    pub fn stats(&self) -> Stats {
        self.state().stats(Instant::now())
    }

    fn finish(&self, taken: Taken<K>, outcome: Outcome) {
        self.state().finish(taken, outcome, Instant::now());
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        // Nothing that holds it panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key> Default for Queue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// As those who know Go's queues expect it: 5 ms to 1000 s.
impl Default for Pauses {
    fn default() -> Self {
        Pauses { min: Duration::from_millis(5), max: Duration::from_secs(1000) }
    }
}

impl Pauses {
    /// The pause after so many failures before the last one.
    fn after(&self, failures: u32) -> Duration {
        self.min.saturating_mul(2_u32.saturating_pow(failures)).min(self.max)
    }
}

impl Add {
    /// Zero unless said otherwise; higher comes first.
    pub fn priority(self, priority: i32) -> Self {
        Add { priority, ..self }
    }

    /// Not before this time has passed.
    pub fn after(self, after: Duration) -> Self {
        Add { after, ..self }
    }

    /// Why.
    pub fn because(self, cause: Cause) -> Self {
        Add { cause: Some(cause), ..self }
    }

    /// As part of the trace of what happened: the wait is, and the [work](Work::event) should be.
    pub fn within(self, event: &Span) -> Self {
        Add { event: Some(event.clone()), ..self }
    }
}

impl<K: Key> Work<'_, K> {
    pub fn key(&self) -> &K {
        &self.taken().key
    }

    /// Why the key is worked on, the first cause first.
    pub fn causes(&self) -> &Causes {
        &self.taken().causes
    }

    /// How often in a row the work on this key has failed.
    pub fn failures(&self) -> u32 {
        self.taken().failures
    }

    /// How long the key was ready before a worker took it.
    pub fn waited(&self) -> Duration {
        self.taken().waited
    }

    /// The span of what happened, which the work should be part of; it is disabled if nobody wants to
    /// know, or nothing has happened since the key was last worked on.
    pub fn event(&self) -> &Span {
        &self.taken().event
    }

    /// Takes back what was added during the work, if that is all it was added for.
    pub fn disregard(&self, is_known: impl FnOnce(&Causes) -> bool) {
        self.queue.state().disregard(self.key(), is_known);
    }

    /// Ends the work.
    pub fn finish(mut self, outcome: Outcome) {
        if let Some(taken) = self.taken.take() {
            self.queue.finish(taken, outcome);
        }
    }

    fn taken(&self) -> &Taken<K> {
        self.taken.as_ref().expect("it is taken away only at the end")
    }
}

impl<K: Key> Drop for Work<'_, K> {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            self.queue.finish(taken, Outcome::Failed);
        }
    }
}

impl<K: Key + fmt::Debug> fmt::Debug for Work<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Work").field(self.key()).finish()
    }
}
