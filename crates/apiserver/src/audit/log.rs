//! Where events wait to be written, and who writes them.
//!
//! A request never waits for the disk, only for room: it may not begin while too many events wait.
//! What it leaves later finds room in any case, so that there are never more events than that and
//! a few for each request under way, and none is dropped.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use kubewright_store::Clock;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::event::Event;
use super::file::{File, Rotation};
use super::policy::{Level, Policy, Verdict};
use crate::target::Target;
use crate::user::User;

/// As many as upstream buffers where it does.
const EVENTS_MAX: usize = 10_000;
/// Events have whole requests and answers in them if the policy says so.
const BYTES_MAX: usize = 64 << 20;
/// How many events are written at a time.
const BATCH: usize = 512;

/// What a log is to be.
#[derive(Debug, Clone)]
pub struct Config {
    pub policy: Policy,
    pub output: Output,
}

/// Where lines go.
#[derive(Debug, Clone)]
pub enum Output {
    Stdout,
    File { path: PathBuf, rotation: Rotation },
}

/// A log cannot be written where it is to be.
#[derive(Debug, thiserror::Error)]
#[error("open {}", path.display())]
pub struct OpenError {
    path: PathBuf,
    source: io::Error,
}

/// The log of a server. A clone is another handle on it. Somebody must [`Log::run`] it, or requests
/// will wait for room in the end.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    policy: Policy,
    clock: Clock,
    queue: Mutex<Queue>,
    /// There is something to write.
    arrived: Notify,
    /// Something was written.
    room: Notify,
    /// Until somebody writes.
    writer: Mutex<Option<Writer>>,
    levels: [AtomicU64; Level::ALL.len()],
    events: AtomicU64,
    errors: AtomicU64,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    weight: usize,
    /// Nobody will write any more.
    is_closed: bool,
}

/// What a log has counted.
#[derive(Default)]
pub(crate) struct Counts {
    /// How many requests were judged to which level.
    pub(crate) levels: Vec<(Level, u64)>,
    pub(crate) events: u64,
    pub(crate) errors: u64,
}

impl Log {
    /// Opens the file, where there is one.
    pub fn open(config: Config, clock: Clock) -> Result<Self, OpenError> {
        let writer = match config.output {
            Output::Stdout => Writer::Stdout,
            Output::File { path, rotation } => {
                let file = File::open(path.clone(), rotation, clock.clone());
                Writer::File(file.map_err(|source| OpenError { path, source })?)
            }
        };
        Ok(Log(Arc::new(Inner {
            policy: config.policy,
            clock,
            queue: Mutex::default(),
            arrived: Notify::new(),
            room: Notify::new(),
            writer: Mutex::new(Some(writer)),
            levels: Default::default(),
            events: AtomicU64::default(),
            errors: AtomicU64::default(),
        })))
    }

    /// Writes until `stop`, and then what is left. To be stopped after whatever makes requests.
    ///
    /// # Panics
    /// If it is run twice.
    pub async fn run(&self, stop: CancellationToken) {
        let writer = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut writer = writer.expect("a log has one writer");
        loop {
            let batch = self.batch(stop.is_cancelled());
            match batch {
                Batch::Events(events) => {
                    self.0.room.notify_waiters();
                    let count = events.len() as u64;
                    let outcome;
                    (writer, outcome) = tokio::task::spawn_blocking(move || {
                        let outcome = writer.write(&events);
                        (writer, outcome)
                    })
                    .await
                    .expect("writing does not panic");
                    if let Err(error) = outcome {
                        self.0.errors.fetch_add(count, Relaxed);
                        tracing::error!(%error, count, "audit events are lost");
                    }
                }
                Batch::Nothing => tokio::select! {
                    () = self.0.arrived.notified() => {}
                    () = stop.cancelled() => {}
                },
                Batch::End => break,
            }
        }
        self.0.room.notify_waiters();
    }

    /// The next events; without any, `stop` ends the log.
    fn batch(&self, stop: bool) -> Batch {
        let mut queue = self.queue();
        if queue.events.is_empty() {
            queue.is_closed = stop;
            return if stop { Batch::End } else { Batch::Nothing };
        }
        let count = queue.events.len().min(BATCH);
        let events: Vec<Event> = queue.events.drain(..count).collect();
        queue.weight -= events.iter().map(Event::weight).sum::<usize>();
        Batch::Events(events)
    }

    /// What is logged of a request.
    pub(super) fn judge(&self, user: Option<&User>, target: &Target) -> Verdict {
        let verdict = self.0.policy.judge(user, target);
        self.0.levels[verdict.level as usize].fetch_add(1, Relaxed);
        verdict
    }

    /// Waits until not too much is left to be written.
    pub(super) async fn room(&self) {
        loop {
            // Before the look, so that nothing that is written after it is missed.
            let room = self.0.room.notified();
            if self.queue().has_room() {
                return;
            }
            room.await;
        }
    }

    /// Takes an event to be written. After the end of the log there is nobody to do so.
    pub(super) fn take(&self, event: Event) {
        self.0.events.fetch_add(1, Relaxed);
        let mut queue = self.queue();
        if queue.is_closed {
            self.0.errors.fetch_add(1, Relaxed);
            return;
        }
        queue.weight += event.weight();
        queue.events.push_back(event);
        drop(queue);
        self.0.arrived.notify_one();
    }

    /// Since the Unix epoch.
    pub(super) fn now(&self) -> Duration {
        self.0.clock.now()
    }

    pub(crate) fn counts(&self) -> Counts {
        let count = |level: Level| (level, self.0.levels[level as usize].load(Relaxed));
        Counts {
            levels: Level::ALL.map(count).into(),
            events: self.0.events.load(Relaxed),
            errors: self.0.errors.load(Relaxed),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn has_room(&self) -> bool {
        self.is_closed || (self.events.len() < EVENTS_MAX && self.weight < BYTES_MAX)
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

enum Batch {
    Events(Vec<Event>),
    Nothing,
    End,
}

enum Writer {
    Stdout,
    File(File),
}

impl Writer {
    fn write(&mut self, events: &[Event]) -> io::Result<()> {
        let lines = events.iter().map(Event::line);
        match self {
            Writer::Stdout => {
                use io::Write as _;
                let mut out = io::stdout().lock();
                lines.into_iter().try_for_each(|line| out.write_all(&line))?;
                out.flush()
            }
            Writer::File(file) => file.append(lines),
        }
    }
}
