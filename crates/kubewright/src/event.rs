//! Events: what a controller tells people about an object.
//!
//! They are written by the way, after each other and never in the way of a reconcile. What is told
//! again and again becomes one event with a count, and nobody can be told more about an object than
//! a person could read.

mod journal;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as Stored;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, warn};

use self::journal::{Journal, Step};
use crate::clock::Clock;

/// How many events may wait to be written. Beyond that they are dropped: what matters is in status.
const WAITING_MAX: usize = 1000;
/// What the server takes.
const NOTE_BYTES_MAX: usize = 1024;

/// Something that people may want to know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    severity: Severity,
    reason: String,
    action: String,
    note: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Severity {
    Normal,
    Warning,
}

/// Writes events in the name of a controller. A clone is another handle on the same one.
#[derive(Clone)]
pub struct Recorder {
    controller: Arc<str>,
    waiting: mpsc::Sender<Record>,
}

struct Record {
    controller: Arc<str>,
    regarding: ObjectReference,
    event: Event,
}

impl Event {
    /// What happens as it should. The reason is one word, as `Launched`.
    pub fn normal(reason: &str, note: impl Into<String>) -> Self {
        Event::new(Severity::Normal, reason, note.into())
    }

    /// What somebody should look at.
    pub fn warning(reason: &str, note: impl Into<String>) -> Self {
        Event::new(Severity::Warning, reason, note.into())
    }

    /// What the controller was about; `Reconcile` unless it is said.
    pub fn action(self, action: &str) -> Self {
        Event { action: action.to_owned(), ..self }
    }

    fn new(severity: Severity, reason: &str, mut note: String) -> Self {
        note.truncate(note.floor_char_boundary(NOTE_BYTES_MAX));
        let (reason, action) = (reason.to_owned(), "Reconcile".to_owned());
        Event { severity, reason, action, note }
    }
}

impl Recorder {
    /// A recorder for a process that calls itself `instance`, and what must run for events to be
    /// written. That ends when all recorders are gone and all they were told is written.
    pub fn new(
        client: Client,
        instance: &str,
        clock: Clock,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (waiting, records) = mpsc::channel(WAITING_MAX);
        let scribe = Scribe {
            client,
            instance: instance.to_owned(),
            clock,
            journal: Journal::default(),
            last: 0,
        };
        (Recorder { controller: instance.into(), waiting }, scribe.run(records))
    }

    /// The same recorder in the name of a controller.
    pub fn of(&self, controller: &str) -> Self {
        Recorder { controller: controller.into(), waiting: self.waiting.clone() }
    }

    /// Tells people something about an object.
    pub fn record(&self, regarding: &ObjectReference, event: Event) {
        let (controller, regarding) = (Arc::clone(&self.controller), regarding.clone());
        if self.waiting.try_send(Record { controller, regarding, event }).is_err() {
            warn!("an event is dropped: too many wait to be written");
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recorder").field(&self.controller).finish()
    }
}

/// Writes what recorders are told.
struct Scribe {
    client: Client,
    instance: String,
    clock: Clock,
    journal: Journal,
    /// When the last event was, by its name: two at the same moment must not have the same.
    last: i128,
}

impl Scribe {
    async fn run(mut self, mut records: mpsc::Receiver<Record>) {
        while let Some(record) = records.recv().await {
            let written = match self.journal.step(&record, Instant::now()) {
                Step::Nothing => Ok(()),
                Step::Count { name, count } => self.count(&record, &name, count).await,
                Step::Create => self.create(&record).await,
            };
            if let Err(error) = written {
                // Nothing depends on an event.
                warn!(%error, reason = record.event.reason, "an event is not written");
            }
        }
    }

    async fn create(&mut self, record: &Record) -> Result<(), Error> {
        let now = self.clock.now();
        self.last = now.as_nanosecond().max(self.last + 1);
        let name = name(&record.regarding, self.last);
        let event = self.event(record, &name, now);
        debug!(name, reason = record.event.reason, "an event");
        self.api(record).create(&PostParams::default(), &event).await?;
        self.journal.created(record, name, Instant::now());
        Ok(())
    }

    /// Says how often the same has been told by now.
    async fn count(&mut self, record: &Record, name: &str, count: i32) -> Result<(), Error> {
        let series = json!({"count": count, "lastObservedTime": MicroTime(self.clock.now())});
        let patch = Patch::Merge(json!({ "series": series }));
        match self.api(record).patch(name, &PatchParams::default(), &patch).await {
            // It was forgotten meanwhile.
            Err(Error::Api(status)) if status.code == 404 => self.create(record).await,
            patched => patched.map(drop),
        }
    }

    fn event(&self, record: &Record, name: &str, now: Timestamp) -> Stored {
        let Event { severity, reason, action, note } = &record.event;
        Stored {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(namespace(&record.regarding).to_owned()),
                ..ObjectMeta::default()
            },
            action: Some(action.clone()),
            event_time: Some(MicroTime(now)),
            note: Some(note.clone()),
            reason: Some(reason.clone()),
            regarding: Some(record.regarding.clone()),
            reporting_controller: Some(record.controller.to_string()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(format!("{severity:?}")),
            ..Stored::default()
        }
    }

    fn api(&self, record: &Record) -> Api<Stored> {
        Api::namespaced(self.client.clone(), namespace(&record.regarding))
    }
}

/// Where events about an object are; those about objects without a namespace have their own place.
fn namespace(regarding: &ObjectReference) -> &str {
    regarding.namespace.as_deref().unwrap_or("default")
}

fn name(regarding: &ObjectReference, nanosecond: i128) -> String {
    let object = regarding.name.as_deref().unwrap_or_default();
    format!("{object}.{nanosecond:x}")
}
