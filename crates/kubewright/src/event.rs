//! Events: what a controller tells people about an object.
//!
//! They are written by the way, after each other and never in the way of a reconcile. What is told
//! again and again becomes one event with a count, and nobody can be told more about an object than
//! a person could read.

mod journal;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Event as Counted, EventSource, ObjectReference};
use k8s_openapi::api::events::v1::Event as Stored;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, Error, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
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
        Recorder::writing(Form::Series { instance: instance.to_owned() }, instance, client, clock)
    }

    /// The same for a program that writes as kubelet and kube-controller-manager do: into the older
    /// API, where events have a count and tell when they were seen first and last, by which people
    /// sort them. It must be allowed to create and patch `events` of the core; the rights that an
    /// [`Operator`](crate::Operator) renders are for the newer ones. A program that is one of many
    /// says on which `host` it is.
    pub fn counting(
        client: Client,
        component: &str,
        host: Option<&str>,
        clock: Clock,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let form = Form::Counts { host: host.map(str::to_owned) };
        Recorder::writing(form, component, client, clock)
    }

    fn writing(
        form: Form,
        controller: &str,
        client: Client,
        clock: Clock,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (waiting, records) = mpsc::channel(WAITING_MAX);
        let scribe = Scribe { client, form, clock, journal: Journal::default(), last: 0 };
        (Recorder { controller: controller.into(), waiting }, scribe.run(records))
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

/// As what events are written.
enum Form {
    /// Those of `events.k8s.io`.
    Series { instance: String },
    /// Those of the core.
    Counts { host: Option<String> },
}

/// Writes what recorders are told.
struct Scribe {
    client: Client,
    form: Form,
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
        debug!(name, reason = record.event.reason, "an event");
        let metadata = ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(namespace(&record.regarding).to_owned()),
            ..ObjectMeta::default()
        };
        match &self.form {
            Form::Series { instance } => {
                self.post(record, &stored(record, metadata, instance, now)).await?;
            }
            Form::Counts { host } => {
                self.post(record, &counted(record, metadata, host.as_deref(), now)).await?;
            }
        }
        self.journal.created(record, name, Instant::now());
        Ok(())
    }

    /// Says how often the same has been told by now.
    async fn count(&mut self, record: &Record, name: &str, count: i32) -> Result<(), Error> {
        let now = self.clock.now();
        let patched = match &self.form {
            Form::Series { .. } => {
                let series = json!({ "count": count, "lastObservedTime": MicroTime(now) });
                self.patch::<Stored>(record, name, json!({ "series": series })).await
            }
            Form::Counts { .. } => {
                let last = json!({ "count": count, "lastTimestamp": Time(now) });
                self.patch::<Counted>(record, name, last).await
            }
        };
        match patched {
            // It was forgotten meanwhile.
            Err(Error::Api(status)) if status.code == 404 => self.create(record).await,
            patched => patched,
        }
    }

    async fn post<E: AnyEvent>(&self, record: &Record, event: &E) -> Result<(), Error> {
        self.api::<E>(record).create(&PostParams::default(), event).await.map(drop)
    }

    async fn patch<E: AnyEvent>(
        &self,
        record: &Record,
        name: &str,
        patch: serde_json::Value,
    ) -> Result<(), Error> {
        let (api, params) = (self.api::<E>(record), PatchParams::default());
        api.patch(name, &params, &Patch::Merge(patch)).await.map(drop)
    }

    fn api<E: AnyEvent>(&self, record: &Record) -> Api<E> {
        Api::namespaced(self.client.clone(), namespace(&record.regarding))
    }
}

/// Either of the two kinds of events.
trait AnyEvent:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + fmt::Debug
    + Serialize
    + DeserializeOwned
{
}

impl AnyEvent for Stored {}
impl AnyEvent for Counted {}

fn stored(record: &Record, metadata: ObjectMeta, instance: &str, now: Timestamp) -> Stored {
    let Event { severity, reason, action, note } = &record.event;
    Stored {
        metadata,
        action: Some(action.clone()),
        event_time: Some(MicroTime(now)),
        note: Some(note.clone()),
        reason: Some(reason.clone()),
        regarding: Some(record.regarding.clone()),
        reporting_controller: Some(record.controller.to_string()),
        reporting_instance: Some(instance.to_owned()),
        type_: Some(format!("{severity:?}")),
        ..Stored::default()
    }
}

/// Without an action, as client-go writes them.
fn counted(record: &Record, metadata: ObjectMeta, host: Option<&str>, now: Timestamp) -> Counted {
    let Event { severity, reason, action: _, note } = &record.event;
    let component = record.controller.to_string();
    Counted {
        metadata,
        count: Some(1),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        involved_object: record.regarding.clone(),
        message: Some(note.clone()),
        reason: Some(reason.clone()),
        reporting_component: Some(component.clone()),
        reporting_instance: Some(host.unwrap_or_default().to_owned()),
        source: Some(EventSource { component: Some(component), host: host.map(str::to_owned) }),
        type_: Some(format!("{severity:?}")),
        ..Counted::default()
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
