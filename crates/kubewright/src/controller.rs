//! From changes to reconciles.
//!
//! A [`Controller`] turns what its informers tell into keys of a queue, and lets a few reconciles
//! at a time work on them, never two on one key. One that fails, panics or takes too long is tried
//! again, later each time, and harms no other.

mod worker;

use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::informer::{Change, Informer, NotReady, Object, Subscription};
use crate::key::ObjectKey;
use crate::predicate::Predicate;
use crate::queue::{Add, Cause, Queue};
use crate::reconcile::{Action, Error, Request};

use self::worker::Worker;

/// What was there before anybody looked is less urgent than what happens.
const INITIAL_PRIORITY: i32 = -100;
/// How long informers may take to be ready.
const SYNC_MAX: Duration = Duration::from_secs(120);

/// A controller of the objects of one kind.
pub struct Controller<K: Object> {
    name: Arc<str>,
    primary: Informer<K>,
    queue: Arc<Queue<ObjectKey>>,
    predicate: Option<Predicate<K>>,
    /// Each begins to listen to an informer, once it is ready.
    others: Vec<Box<dyn Listen>>,
    at_once: usize,
    deadline: Option<Duration>,
}

/// Adds keys to the queue of a controller from outside: whatever happens, wherever.
#[derive(Clone)]
pub struct Trigger {
    source: Arc<str>,
    queue: Arc<Queue<ObjectKey>>,
}

impl<K: Object> Controller<K> {
    /// A controller that reconciles the objects of `primary` when they change.
    pub fn new(name: &str, primary: &Informer<K>) -> Self {
        Controller {
            name: name.into(),
            primary: primary.clone(),
            queue: Arc::default(),
            predicate: None,
            others: Vec::new(),
            at_once: 1,
            deadline: None,
        }
    }

    /// Reconciles objects only when a change of theirs matters.
    pub fn when(self, predicate: Predicate<K>) -> Self {
        Controller { predicate: Some(predicate), ..self }
    }

    /// Reconciles objects also when those that they control change.
    pub fn owns<C: Object>(self, children: &Informer<C>) -> Self
    where
        K: Resource<DynamicType = ()>,
    {
        self.watches(children, |child: &C| controlled_by::<K>(child).into_iter().collect())
    }

    /// Reconciles the objects that `map` gives for each object that changes, as it was and as it
    /// is.
    pub fn watches<C: Object>(
        mut self,
        others: &Informer<C>,
        map: impl Fn(&C) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.others.push(Box::new(Mapped { informer: others.clone(), map: Arc::new(map) }));
        self
    }

    /// How many reconciles may run at a time. One, unless said otherwise.
    pub fn at_once(self, at_once: usize) -> Self {
        Controller { at_once: at_once.max(1), ..self }
    }

    /// How long a reconcile may take before it is given up and tried again.
    pub fn deadline(self, deadline: Duration) -> Self {
        Controller { deadline: Some(deadline), ..self }
    }

    /// Lets others say that an object should be looked at.
    pub fn trigger(&self, source: &str) -> Trigger {
        Trigger { source: source.into(), queue: Arc::clone(&self.queue) }
    }

    /// Reconciles until `shutdown`, then lets those under way end.
    ///
    /// # Errors
    /// If an informer has nothing to read after two minutes.
    pub async fn run<F, R>(self, shutdown: CancellationToken, reconcile: F) -> Result<(), NotReady>
    where
        F: Fn(Request<K>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, Error>> + Send + 'static,
    {
        let Some(ready) = shutdown.run_until_cancelled(self.ready()).await else { return Ok(()) };
        ready?;
        let listening = self.listen();
        let worker = Arc::new(Worker {
            name: Arc::clone(&self.name),
            primary: self.primary.clone(),
            queue: Arc::clone(&self.queue),
            deadline: self.deadline,
            reconcile,
        });
        let mut workers = JoinSet::new();
        for _ in 0..self.at_once {
            workers.spawn(Arc::clone(&worker).run());
        }
        shutdown.cancelled().await;
        drop(listening);
        self.queue.close();
        while workers.join_next().await.is_some() {}
        Ok(())
    }

    async fn ready(&self) -> Result<(), NotReady> {
        self.primary.synced(SYNC_MAX).await?;
        for other in &self.others {
            other.synced().await?;
        }
        Ok(())
    }

    /// Begins to listen to all informers.
    fn listen(&self) -> Vec<Subscription> {
        let (queue, source) = (Arc::clone(&self.queue), self.primary.source());
        let predicate = self.predicate.clone();
        let own = self.primary.subscribe(move |change| {
            let (object, priority) = match change {
                Change::Applied { object, old: Some(old), .. } => {
                    if predicate.as_ref().is_some_and(|predicate| !predicate.holds(old, object)) {
                        return;
                    }
                    (object, 0)
                }
                Change::Applied { object, initial: true, .. } => (object, INITIAL_PRIORITY),
                Change::Applied { object, .. } | Change::Deleted(object) => (object, 0),
            };
            let key = ObjectKey::of(object.meta());
            let cause = cause(&source, object.as_ref());
            queue.add_with(key, Add::default().priority(priority).because(cause));
        });
        let others = self.others.iter().map(|other| other.listen(&self.queue));
        std::iter::once(own).chain(others).collect()
    }
}

impl Trigger {
    /// Has an object looked at.
    pub fn fire(&self, key: ObjectKey) {
        self.fire_with(key, Add::default());
    }

    /// Has an object looked at, with another priority, or later.
    pub fn fire_with(&self, key: ObjectKey, add: Add) {
        let cause = Cause {
            source: Arc::clone(&self.source),
            object: Box::default(),
            revision: Box::default(),
        };
        self.queue.add_with(key, add.because(cause));
    }
}

/// Another informer that a controller listens to.
trait Listen: Send + Sync {
    fn listen(&self, queue: &Arc<Queue<ObjectKey>>) -> Subscription;

    fn synced(&self) -> futures::future::BoxFuture<'_, Result<(), NotReady>>;
}

struct Mapped<C, M> {
    informer: Informer<C>,
    map: Arc<M>,
}

impl<C, M> Listen for Mapped<C, M>
where
    C: Object,
    M: Fn(&C) -> Vec<ObjectKey> + Send + Sync + 'static,
{
    fn listen(&self, queue: &Arc<Queue<ObjectKey>>) -> Subscription {
        let (queue, map, source) =
            (Arc::clone(queue), Arc::clone(&self.map), self.informer.source());
        self.informer.subscribe(move |change| {
            let (object, old, priority) = match change {
                Change::Applied { object, old, initial: true } => (object, old, INITIAL_PRIORITY),
                Change::Applied { object, old, initial: false } => (object, old, 0),
                Change::Deleted(object) => (object, &None, 0),
            };
            let mut keys = map(object);
            if let Some(old) = old {
                keys.extend(map(old));
                keys.sort_unstable();
                keys.dedup();
            }
            for key in keys {
                let cause = cause(&source, object.as_ref());
                queue.add_with(key, Add::default().priority(priority).because(cause));
            }
        })
    }

    fn synced(&self) -> futures::future::BoxFuture<'_, Result<(), NotReady>> {
        Box::pin(self.informer.synced(SYNC_MAX))
    }
}

/// The object of kind `K` that controls another one.
fn controlled_by<K: Resource<DynamicType = ()>>(child: &impl Resource) -> Option<ObjectKey> {
    let owners = child.meta().owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    let owner = controllers.find(|owner| {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        owner.kind == K::kind(&()) && group == K::group(&())
    })?;
    Some(ObjectKey::new(child.meta().namespace.as_deref(), &owner.name))
}

fn cause(source: &Arc<str>, object: &impl Resource) -> Cause {
    let metadata = object.meta();
    Cause {
        source: Arc::clone(source),
        object: ObjectKey::of(metadata).as_str().into(),
        revision: metadata.resource_version.as_deref().unwrap_or_default().into(),
    }
}
