//! Every object there is, as far as metadata tells: one watch for each kind, shared by all
//! controllers.
//!
//! Kinds come and go with definitions. The census watches those too, so a custom resource is known
//! as soon as its definition is served.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use kube::api::ObjectMeta;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::answer::Refusal as _;
use crate::backoff::Backoff;
use crate::controller::{Change, Controller, text};
use crate::feed::{self, Seen};
use crate::kinds::{Kind, Kinds};

pub(crate) struct Census {
    client: Client,
    controllers: Vec<Arc<dyn Controller>>,
    progress: Arc<Progress>,
}

/// What the feeds of a census tell it.
struct Progress {
    /// Whether every kind that is served was listed, or could not be.
    complete: watch::Sender<bool>,
    unread: Mutex<HashSet<Arc<str>>>,
    /// Something about the served kinds changed.
    definitions: Notify,
    /// Names of definitions, and whether discovery must know them by now.
    expected: Mutex<HashMap<String, bool>>,
}

/// A watch on one kind.
struct Feed {
    kind: Arc<Kind>,
    stop: CancellationToken,
}

impl Census {
    pub(crate) fn new(client: Client) -> Self {
        let progress = Progress {
            complete: watch::Sender::new(false),
            unread: Mutex::default(),
            definitions: Notify::new(),
            expected: Mutex::default(),
        };
        Self { client, controllers: Vec::new(), progress: Arc::new(progress) }
    }

    /// Tells this controller of all changes from the first.
    pub(crate) fn tell(&mut self, controller: Arc<dyn Controller>) {
        self.controllers.push(controller);
    }

    /// Whether what the controllers were told is all there was at some moment since the served kinds
    /// last changed.
    pub(crate) fn complete(&self) -> watch::Receiver<bool> {
        self.progress.complete.subscribe()
    }

    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut tasks = JoinSet::new();
        shutdown.run_until_cancelled(self.follow(&mut tasks, &shutdown)).await;
        while tasks.join_next().await.is_some() {}
    }

    async fn follow(&self, tasks: &mut JoinSet<()>, shutdown: &CancellationToken) {
        let mut feeds: HashMap<Arc<str>, Feed> = HashMap::new();
        let mut known = Arc::default();
        let mut backoff = Backoff::default();
        loop {
            let settled = match Kinds::discover(&self.client).await {
                Ok(kinds) => {
                    if kinds != *known {
                        known = Arc::new(kinds);
                        self.update(&known, &mut feeds, tasks, shutdown);
                    }
                    self.progress.is_settled(&known)
                }
                Err(error) => {
                    warn!(error = %error.text(), "discovery failed");
                    false
                }
            };
            // Whoever was stopped has ended by now, or will before `run` does.
            while tasks.try_join_next().is_some() {}
            tokio::select! {
                () = self.progress.definitions.notified() => backoff.reset(),
                () = backoff.wait(), if !settled => {}
            }
        }
    }

    fn update(
        &self,
        kinds: &Arc<Kinds>,
        feeds: &mut HashMap<Arc<str>, Feed>,
        tasks: &mut JoinSet<()>,
        shutdown: &CancellationToken,
    ) {
        let wanted: HashMap<Arc<str>, &Arc<Kind>> = kinds
            .preferred
            .iter()
            .filter(|kind| self.follows(kind))
            .map(|kind| (Arc::from(kind.definition()), kind))
            .collect();
        feeds.retain(|name, Feed { kind, stop }| {
            // Of a group whose server is away nothing is known, least of all that it is empty.
            let away =
                kinds.stale.iter().any(|stale| stale.starts_with(&format!("{}/", kind.group)));
            let stays = wanted.get(name).is_some_and(|wanted| *wanted == kind) || away;
            if !stays {
                stop.cancel();
            }
            stays
        });
        let new: Vec<_> =
            wanted.into_iter().filter(|(name, _)| !feeds.contains_key(name)).collect();
        for (name, _) in &new {
            self.progress.begin(name);
        }
        // Whoever hears of a kind finds it unread until its objects are known.
        self.progress.tell();
        for controller in &self.controllers {
            controller.observe(&Change::Kinds(kinds));
        }
        for (name, kind) in new {
            debug!(%kind, "watch");
            let stop = shutdown.child_token();
            feeds.insert(Arc::clone(&name), Feed { kind: Arc::clone(kind), stop: stop.clone() });
            tasks.spawn(self.feed(name, kind).run(kind.everywhere(&self.client), stop));
        }
    }

    fn follows(&self, kind: &Kind) -> bool {
        let wanted = is_definition(kind) || self.controllers.iter().any(|one| one.wants(kind));
        wanted && kind.can("list") && kind.can("watch")
    }

    fn feed(&self, name: Arc<str>, kind: &Arc<Kind>) -> Reader {
        let wants = |one: &&Arc<dyn Controller>| one.wants(kind);
        Reader {
            name,
            kind: Arc::clone(kind),
            controllers: self.controllers.iter().filter(wants).cloned().collect(),
            objects: HashMap::new(),
            progress: Arc::clone(&self.progress),
        }
    }
}

/// Kinds whose objects decide what is served.
fn is_definition(kind: &Kind) -> bool {
    is_custom(kind) || kind.is("apiregistration.k8s.io", "apiservices")
}

fn is_custom(kind: &Kind) -> bool {
    kind.is("apiextensions.k8s.io", "customresourcedefinitions")
}

impl Progress {
    fn begin(&self, name: &Arc<str>) {
        self.unread().insert(Arc::clone(name));
    }

    fn end(&self, name: &Arc<str>) {
        if self.unread().remove(name) {
            self.tell();
        }
    }

    fn tell(&self) {
        let complete = self.unread().is_empty();
        self.complete.send_if_modified(|was| std::mem::replace(was, complete) != complete);
    }

    /// Whether discovery knows all definitions that were seen. It may be behind for a moment.
    fn is_settled(&self, kinds: &Kinds) -> bool {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        // What is gone is of interest only until discovery knows.
        expected.retain(|name, there| *there || kinds.defines(name));
        expected.iter().all(|(name, there)| *there == kinds.defines(name))
    }

    fn definition(&self, kind: &Kind, object: &ObjectMeta, there: bool) {
        if is_custom(kind) {
            let name = text(&object.name).to_owned();
            let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
            if there && object.deletion_timestamp.is_some() {
                expected.remove(&name);
            } else {
                expected.insert(name, there);
            }
        }
        self.definitions.notify_one();
    }

    fn unread(&self) -> std::sync::MutexGuard<'_, HashSet<Arc<str>>> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns what one feed tells into changes.
struct Reader {
    name: Arc<str>,
    kind: Arc<Kind>,
    controllers: Vec<Arc<dyn Controller>>,
    /// The uids of what is there.
    objects: HashMap<Place, Box<str>>,
    progress: Arc<Progress>,
}

impl Reader {
    async fn run(mut self, api: kube::Api<kube::api::DynamicObject>, stop: CancellationToken) {
        stop.run_until_cancelled(feed::follow(api, |seen| self.see(seen))).await;
        // A kind that is not served any more has no objects.
        for (place, uid) in std::mem::take(&mut self.objects) {
            self.tell(&Change::Deleted(&self.kind, &place.last_seen(&uid)));
        }
        self.progress.end(&self.name);
    }

    fn see(&mut self, seen: Seen<ObjectMeta>) {
        match seen {
            Seen::Applied(object) => self.applied(object),
            Seen::Deleted(object) => {
                self.objects.remove(&Place::of(&object));
                self.deleted(&object);
            }
            Seen::Listed(objects) => {
                let mut gone = std::mem::take(&mut self.objects);
                for object in objects {
                    let place = Place::of(&object);
                    let before = gone.remove(&place);
                    if let Some(before) = before.filter(|before| **before != *text(&object.uid)) {
                        self.deleted(&place.last_seen(&before));
                    }
                    self.applied(object);
                }
                for (place, uid) in gone {
                    self.deleted(&place.last_seen(&uid));
                }
                self.progress.end(&self.name);
            }
            Seen::Unreadable => self.progress.end(&self.name),
        }
    }

    fn applied(&mut self, object: ObjectMeta) {
        self.tell(&Change::Applied(&self.kind, &object));
        if is_definition(&self.kind) {
            self.progress.definition(&self.kind, &object, true);
        }
        self.objects.insert(Place::of(&object), text(&object.uid).into());
    }

    fn deleted(&self, object: &ObjectMeta) {
        self.tell(&Change::Deleted(&self.kind, object));
        if is_definition(&self.kind) {
            self.progress.definition(&self.kind, object, false);
        }
    }

    fn tell(&self, change: &Change<'_>) {
        for controller in &self.controllers {
            controller.observe(change);
        }
    }
}

/// Where an object is among those of its kind.
#[derive(PartialEq, Eq, Hash)]
struct Place {
    /// Empty for an object without one.
    namespace: Box<str>,
    name: Box<str>,
}

impl Place {
    fn of(object: &ObjectMeta) -> Self {
        Place { namespace: text(&object.namespace).into(), name: text(&object.name).into() }
    }

    /// As much as is kept of an object that is gone.
    fn last_seen(&self, uid: &str) -> ObjectMeta {
        ObjectMeta {
            namespace: Some(self.namespace.to_string()).filter(|name| !name.is_empty()),
            name: Some(self.name.to_string()),
            uid: Some(uid.to_owned()),
            ..ObjectMeta::default()
        }
    }
}
