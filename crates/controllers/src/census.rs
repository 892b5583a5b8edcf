//! Every object there is, as far as metadata tells: one informer of each kind, in the cache that all
//! controllers share.
//!
//! Kinds come and go with definitions. The census follows those too, so a custom resource is known
//! as soon as its definition is served.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kube::api::{DynamicObject, ObjectMeta};
use kube::core::PartialObjectMeta;
use kubewright::Cache;
use kubewright::informer::{Change as Seen, Informer, Scope, State, Subscription};
use kubewright::queue::{Outcome, Pauses, Queue};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::answer::Refusal as _;
use crate::kinds::{Kind, Kinds};
use crate::part::text;

/// How soon discovery is asked again while it does not know what definitions say.
const PAUSES: Pauses = Pauses { min: Duration::from_millis(5), max: Duration::from_secs(30) };

/// Who must know of objects of all kinds.
pub(crate) trait Listener: Send + Sync {
    /// Whether it must be told of objects of this kind.
    fn wants(&self, kind: &Kind) -> bool;

    /// Takes note of a change. Called by the task that watches, so it only notes.
    fn observe(&self, change: &Change<'_>);
}

/// Something is not as it was. Told again of what it knows, a listener loses nothing but time.
pub(crate) enum Change<'a> {
    /// Other kinds are served than before.
    Kinds(&'a Arc<Kinds>),
    /// An object is there, as it now is.
    Applied(&'a Arc<Kind>, &'a ObjectMeta),
    /// An object is gone. This is how it was last seen.
    Deleted(&'a Arc<Kind>, &'a ObjectMeta),
}

pub(crate) struct Census {
    cache: Cache,
    listeners: Vec<Arc<dyn Listener>>,
    kinds: watch::Sender<Arc<Kinds>>,
    complete: watch::Sender<bool>,
    definitions: Arc<Definitions>,
}

/// What the informers of definitions tell.
struct Definitions {
    /// The last change of definitions: whatever it is, everything is discovered again. Each has its
    /// own patience, else one that is never served would make others wait.
    queue: Queue<u64>,
    expected: Mutex<Expected>,
}

#[derive(Default)]
struct Expected {
    /// How many changes of definitions there were.
    changes: u64,
    /// Names of definitions, and whether discovery must know them by now.
    names: HashMap<String, bool>,
}

/// A kind that is followed.
struct Followed {
    kind: Arc<Kind>,
    informer: Informer<PartialObjectMeta<DynamicObject>>,
    listeners: Vec<Arc<dyn Listener>>,
    _subscription: Subscription,
}

/// All kinds that are followed, by the names that their definitions have.
type Kept = HashMap<Arc<str>, Followed>;

/// Kinds of which not all objects are known yet, each until they are or cannot be.
type Unread = FuturesUnordered<BoxFuture<'static, Arc<str>>>;

impl Census {
    pub(crate) fn new(cache: &Cache) -> Self {
        let queue = Queue::with_pauses(PAUSES);
        Self {
            cache: cache.clone(),
            listeners: Vec::new(),
            kinds: watch::Sender::default(),
            complete: watch::Sender::new(false),
            definitions: Arc::new(Definitions { queue, expected: Mutex::default() }),
        }
    }

    /// Tells this one of all changes from the first.
    pub(crate) fn tell(&mut self, listener: Arc<dyn Listener>) {
        self.listeners.push(listener);
    }

    /// Which kinds are served.
    pub(crate) fn kinds(&self) -> watch::Receiver<Arc<Kinds>> {
        self.kinds.subscribe()
    }

    /// Whether what the listeners were told is all there was at some moment since the served kinds
    /// last changed.
    pub(crate) fn complete(&self) -> watch::Receiver<bool> {
        self.complete.subscribe()
    }

    /// Follows all kinds until `shutdown`, unless nobody wants to know.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        if !self.listeners.is_empty() || self.kinds.receiver_count() > 0 {
            shutdown.run_until_cancelled(self.follow()).await;
        }
    }

    async fn follow(&self) {
        let (mut kept, mut unread, mut waiting) = (Kept::new(), Unread::new(), HashSet::new());
        self.definitions.queue.add(0);
        loop {
            tokio::select! {
                Some(work) = self.definitions.queue.take() => {
                    // What came later will do.
                    if *work.key() < self.definitions.expected().changes {
                        work.finish(Outcome::Done);
                        continue;
                    }
                    match Kinds::discover(self.cache.client()).await {
                        Ok(kinds) => {
                            let are_settled = self.definitions.are_settled(&kinds);
                            self.learn(kinds, &mut kept, &unread, &mut waiting);
                            work.finish(if are_settled { Outcome::Done } else { Outcome::Again });
                        }
                        Err(error) => {
                            warn!(error = %error.text(), "discovery failed");
                            work.finish(Outcome::Failed);
                        }
                    }
                }
                Some(name) = unread.next() => {
                    waiting.remove(&name);
                }
            }
            waiting.retain(|name| kept.contains_key(name));
            let complete = !kept.is_empty() && waiting.is_empty();
            self.complete.send_if_modified(|was| std::mem::replace(was, complete) != complete);
        }
    }

    /// Takes note of which kinds are served, and follows no others.
    fn learn(
        &self,
        kinds: Kinds,
        kept: &mut Kept,
        unread: &Unread,
        waiting: &mut HashSet<Arc<str>>,
    ) {
        if kinds == **self.kinds.borrow() {
            return;
        }
        let kinds = Arc::new(kinds);
        let wanted: HashMap<Arc<str>, &Arc<Kind>> = kinds
            .preferred
            .iter()
            .filter(|kind| self.follows(kind))
            .map(|kind| (Arc::from(kind.definition()), kind))
            .collect();
        kept.retain(|name, followed| {
            // Of a group whose server is away nothing is known, least of all that it is empty.
            let group = format!("{}/", followed.kind.group);
            let is_away = kinds.stale.iter().any(|stale| stale.starts_with(&group));
            let stays = wanted.get(name).is_some_and(|wanted| **wanted == followed.kind) || is_away;
            if !stays {
                followed.end();
            }
            stays
        });
        let new: Vec<_> = wanted.into_iter().filter(|(name, _)| !kept.contains_key(name)).collect();
        if !new.is_empty() {
            // Whoever hears of a kind finds it unread until its objects are known.
            self.complete.send_replace(false);
        }
        self.kinds.send_replace(Arc::clone(&kinds));
        for listener in &self.listeners {
            listener.observe(&Change::Kinds(&kinds));
        }
        for (name, kind) in new {
            debug!(%kind, "follow");
            let followed = self.begin(kind);
            let (informer, known) = (followed.informer.clone(), Arc::clone(&name));
            unread.push(Box::pin(async move {
                // What cannot be listed is not waited for.
                informer.until(|state| *state != State::Listing).await;
                known
            }));
            waiting.insert(Arc::clone(&name));
            kept.insert(name, followed);
        }
    }

    fn follows(&self, kind: &Kind) -> bool {
        let is_wanted = is_definition(kind) || self.listeners.iter().any(|one| one.wants(kind));
        is_wanted && kind.can("list") && kind.can("watch")
    }

    fn begin(&self, kind: &Arc<Kind>) -> Followed {
        let informer = self.cache.metadata_of::<DynamicObject>(kind.resource(), &Scope::default());
        let mut listeners: Vec<Arc<dyn Listener>> =
            self.listeners.iter().filter(|one| one.wants(kind)).cloned().collect();
        if is_definition(kind) {
            listeners.push(Arc::clone(&self.definitions) as Arc<dyn Listener>);
        }
        let (told, of) = (listeners.clone(), Arc::clone(kind));
        let subscription = informer.subscribe(move |seen| {
            let change = match seen {
                Seen::Applied { object, .. } => Change::Applied(&of, &object.metadata),
                Seen::Deleted(object) => Change::Deleted(&of, &object.metadata),
            };
            told.iter().for_each(|listener| listener.observe(&change));
        });
        Followed { kind: Arc::clone(kind), informer, listeners, _subscription: subscription }
    }
}

impl Followed {
    /// A kind that is not served any more has no objects.
    fn end(&self) {
        for object in self.informer.last_seen() {
            let change = Change::Deleted(&self.kind, &object.metadata);
            self.listeners.iter().for_each(|listener| listener.observe(&change));
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

impl Definitions {
    /// Whether discovery knows all definitions that were seen. It may be behind for a moment.
    fn are_settled(&self, kinds: &Kinds) -> bool {
        let names = &mut self.expected().names;
        // What is gone is of interest only until discovery knows.
        names.retain(|name, there| *there || kinds.defines(name));
        names.iter().all(|(name, there)| *there == kinds.defines(name))
    }

    fn expected(&self) -> MutexGuard<'_, Expected> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Definitions {
    fn wants(&self, kind: &Kind) -> bool {
        is_definition(kind)
    }

    fn observe(&self, change: &Change<'_>) {
        let mut expected = self.expected();
        match change {
            Change::Applied(kind, object) if is_custom(kind) => {
                let name = text(&object.name).to_owned();
                match &object.deletion_timestamp {
                    Some(_) => expected.names.remove(&name),
                    None => expected.names.insert(name, true),
                };
            }
            Change::Deleted(kind, object) if is_custom(kind) => {
                expected.names.insert(text(&object.name).to_owned(), false);
            }
            Change::Applied(..) | Change::Deleted(..) | Change::Kinds(_) => {}
        }
        expected.changes += 1;
        self.queue.add(expected.changes);
    }
}
