//! From changes to reconciles.
//!
//! A [`ControlLoop`] turns what its informers tell into keys of a queue, and lets a few reconciles
//! at a time work on them, never two on one key. One that fails, panics or takes too long is tried
//! again, later each time, and harms no other. It knows nothing of how objects are written: that
//! is for a [`Controller`](crate::Controller), which runs one of these.

mod arrival;
mod recent;
mod share;
mod worker;
mod writes;

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Resource;
use kube::api::ObjectMeta;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::context::is_namespaced;
use crate::informer::{Change, Informer, NotReady, Object, State, Subscription};
use crate::key::ObjectKey;
use crate::metrics::Metrics;
use crate::panics::Panics;
use crate::predicate::Predicate;
use crate::queue::{Add, Cause, Pauses, Queue};
use crate::reconcile::{Action, Error, Request};
use crate::shard::Ring;
use crate::trail;

pub(crate) use self::recent::Recent;
use self::worker::Worker;
pub(crate) use self::writes::Writes;

/// What was there before anybody looked is less urgent than what happens.
const INITIAL_PRIORITY: i32 = -100;
/// How long informers may take to be ready.
const SYNC_MAX: Duration = Duration::from_secs(120);

/// The reconciles of the objects of one kind.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewright::informer::{Informer, NotReady, Source};
/// use kubewright::{Action, ControlLoop, Request};
/// use tokio_util::sync::CancellationToken;
/// # async fn example(client: kube::Client, shutdown: CancellationToken) -> Result<(), NotReady> {
///
/// let (pods, run) = Informer::<Pod>::new(Source::all(client));
/// let mut tasks = tokio::task::JoinSet::new();
/// tasks.spawn(run);
/// let control = ControlLoop::new("pods", &pods).at_once(4);
/// control
///     .run(shutdown, |request: Request<Pod>| async move {
///         println!("{} is to be looked at, because of {}", request.key, request.causes);
///         Ok(Action::Done)
///     })
///     .await
/// # }
/// ```
pub struct ControlLoop<K: Object> {
    name: Arc<str>,
    primary: Informer<K>,
    queue: Arc<Queue<ObjectKey>>,
    predicate: Option<Predicate<K>>,
    /// Each begins to listen to an informer, once it is ready.
    others: Vec<Box<dyn Listen<K>>>,
    at_once: usize,
    deadline: Option<Duration>,
    sync_max: Duration,
    writes: Arc<Writes>,
    recent: Arc<Recent>,
    metrics: Option<Arc<Metrics>>,
    ring: Option<Ring>,
    revoked: CancellationToken,
}

impl<K: Object> ControlLoop<K> {
    /// A controller that reconciles the objects of `primary` when they change.
    pub fn new(name: &str, primary: &Informer<K>) -> Self {
        ControlLoop {
            name: name.into(),
            primary: primary.clone(),
            queue: Arc::default(),
            predicate: None,
            others: Vec::new(),
            at_once: 1,
            deadline: None,
            sync_max: SYNC_MAX,
            writes: Arc::default(),
            recent: Arc::default(),
            metrics: None,
            ring: None,
            revoked: CancellationToken::new(),
        }
    }

    /// Reconciles objects only when a change of theirs matters.
    pub fn when(self, predicate: Predicate<K>) -> Self {
        ControlLoop { predicate: Some(predicate), ..self }
    }

    /// Reconciles objects also when those that they control change.
    pub fn owns<C: Object>(self, children: &Informer<C>) -> Self
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        self.watches(children, |child: &C| controlled_by::<K>(child).into_iter().collect())
    }

    /// The same, but of changes of children only those that matter count.
    pub fn owns_when<C: Object>(self, children: &Informer<C>, predicate: Predicate<C>) -> Self
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        let map = |child: &C| controlled_by::<K>(child).into_iter().collect();
        self.watches_when(children, predicate, map)
    }

    /// Reconciles the objects that `map` gives for each object that changes, as it was and as it
    /// is.
    pub fn watches<C: Object>(
        self,
        others: &Informer<C>,
        map: impl Fn(&C) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.mapped(others, None, map, true)
    }

    /// The same of a kind that need not be served: nobody waits for it, nor for the right to read it,
    /// and when it comes to be served and may be read, everything is reconciled that could not have it
    /// before.
    pub fn watches_if_served<C: Object>(
        self,
        others: &Informer<C>,
        map: impl Fn(&C) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.mapped(others, None, map, false)
    }

    /// Reconciles objects also when those that they control change, if there can be any: see
    /// [`watches_if_served`](ControlLoop::watches_if_served).
    pub fn owns_if_served<C: Object>(self, children: &Informer<C>) -> Self
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        self.watches_if_served(children, |child: &C| {
            controlled_by::<K>(child).into_iter().collect()
        })
    }

    /// Reconciles the objects that `map` gives for each object that changes in a way that matters.
    pub fn watches_when<C: Object>(
        self,
        others: &Informer<C>,
        predicate: Predicate<C>,
        map: impl Fn(&C) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.mapped(others, Some(predicate), map, true)
    }

    fn mapped<C: Object>(
        mut self,
        others: &Informer<C>,
        predicate: Option<Predicate<C>>,
        map: impl Fn(&C) -> Vec<ObjectKey> + Send + Sync + 'static,
        is_needed: bool,
    ) -> Self {
        let (informer, map) = (others.clone(), Arc::new(map));
        self.others.push(Box::new(Mapped { informer, predicate, map, is_needed }));
        self
    }

    /// Reconciles the objects of its own that a change of another matters to. They are looked
    /// through one by one, in the namespace of the other if both have one.
    pub fn depends_on<C: Object>(
        mut self,
        others: &Informer<C>,
        matters: impl Fn(&Change<C>, &K) -> bool + Send + Sync + 'static,
    ) -> Self {
        let (informer, primary) = (others.clone(), self.primary.clone());
        self.others.push(Box::new(Related { informer, primary, matters: Arc::new(matters) }));
        self
    }

    /// How many reconciles may run at a time. One, unless said otherwise.
    pub fn at_once(self, at_once: usize) -> Self {
        ControlLoop { at_once: at_once.max(1), ..self }
    }

    /// How long a reconcile may take before it is given up and tried again.
    pub fn deadline(self, deadline: Duration) -> Self {
        ControlLoop { deadline: Some(deadline), ..self }
    }

    /// How long an object waits after its reconcile has failed. To be said before anything else has
    /// the [queue](ControlLoop::queue).
    pub fn pauses(self, pauses: Pauses) -> Self {
        ControlLoop { queue: Arc::new(Queue::with_pauses(pauses)), ..self }
    }

    /// How long informers may take to be ready. Two minutes, unless said otherwise.
    pub fn sync_max(self, sync_max: Duration) -> Self {
        ControlLoop { sync_max, ..self }
    }

    /// Counts what it does.
    pub fn metrics(self, metrics: &Arc<Metrics>) -> Self {
        ControlLoop { metrics: Some(Arc::clone(metrics)), ..self }
    }

    /// Reconciles only what is this replica's share, now and whenever that changes. Reconciles
    /// write with the client of [`Request::work`].
    pub fn sharded(self, ring: &Ring) -> Self {
        ControlLoop { ring: Some(ring.clone()), ..self }
    }

    /// Gives reconciles under way up when this is cancelled: another may soon work on the same
    /// objects, as when a leader has [lost its lease](crate::election::Leadership::revoked).
    pub fn revoked_by(self, revoked: CancellationToken) -> Self {
        ControlLoop { revoked, ..self }
    }

    /// What it has reconciled last.
    pub(crate) fn recent(&self) -> Arc<Recent> {
        Arc::clone(&self.recent)
    }

    /// Its queue, for as long as it runs: whoever wants can add keys to it.
    pub fn queue(&self) -> Weak<Queue<ObjectKey>> {
        Arc::downgrade(&self.queue)
    }

    /// Reconciles until `shutdown`, then lets those under way end, unless they are
    /// [revoked](ControlLoop::revoked_by).
    ///
    /// # Errors
    /// If an informer has nothing to read after a while.
    pub async fn run<F, R>(self, shutdown: CancellationToken, reconcile: F) -> Result<(), NotReady>
    where
        F: Fn(Request<K>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, Error>> + Send + 'static,
    {
        let mut watching = JoinSet::new();
        for arrival in self.others.iter().filter_map(|it| it.arrival(&self.primary, &self.queue)) {
            watching.spawn(arrival);
        }
        let Some(ready) = shutdown.run_until_cancelled(self.ready()).await else { return Ok(()) };
        ready?;
        let listening = self.listen();
        let worker = Arc::new(Worker {
            name: Arc::clone(&self.name),
            primary: self.primary.clone(),
            queue: Arc::clone(&self.queue),
            deadline: self.deadline,
            writes: Arc::clone(&self.writes),
            recent: Arc::clone(&self.recent),
            ring: self.ring.clone(),
            revoked: self.revoked,
            meter: self.metrics.map(|metrics| metrics.of(&self.name, &self.queue, self.at_once)),
            reconcile,
        });
        if let Some(ring) = self.ring {
            watching.spawn(share::follow(ring, self.primary.clone(), Arc::clone(&self.queue)));
        }
        let mut workers = JoinSet::new();
        for _ in 0..self.at_once {
            workers.spawn(Arc::clone(&worker).run());
        }
        shutdown.cancelled().await;
        drop(listening);
        watching.shutdown().await;
        self.queue.close();
        while workers.join_next().await.is_some() {}
        Ok(())
    }

    async fn ready(&self) -> Result<(), NotReady> {
        self.primary.synced(self.sync_max).await?;
        for other in &self.others {
            other.synced(self.sync_max).await?;
        }
        Ok(())
    }

    /// Begins to listen to all informers.
    fn listen(&self) -> Vec<Subscription> {
        let (queue, source) = (Arc::clone(&self.queue), self.primary.source());
        let (predicate, writes) = (self.predicate.clone(), Arc::clone(&self.writes));
        let panics = self.primary.panics().clone();
        let own = self.primary.subscribe_by_key(move |key, change| {
            if !matters(change, predicate.as_ref(), &panics) {
                return;
            }
            let (object, priority) = told(change);
            match change {
                Change::Applied { .. } if writes.made(key, object.meta()) => return,
                Change::Applied { .. } => {}
                Change::Deleted(_) => writes.forget(key),
            }
            let cause = cause(&source, key.clone(), object.meta());
            add_all(&queue, [key.clone()], priority, &cause);
        });
        let others = self.others.iter().map(|other| other.listen(&self.queue));
        std::iter::once(own).chain(others).collect()
    }
}

/// Something that happened outside.
pub(crate) fn outside(source: &Arc<str>) -> Cause {
    Cause { source: Arc::clone(source), object: Arc::default(), revision: Box::default() }
}

/// Another informer that a controller listens to.
trait Listen<K>: Send + Sync {
    fn listen(&self, queue: &Arc<Queue<ObjectKey>>) -> Subscription;

    fn synced(&self, timeout: Duration) -> BoxFuture<'_, Result<(), NotReady>>;

    /// What has objects looked at when the kind arrives, if nobody waits for it.
    fn arrival(
        &self,
        primary: &Informer<K>,
        queue: &Arc<Queue<ObjectKey>>,
    ) -> Option<BoxFuture<'static, ()>> {
        let _ = (primary, queue);
        None
    }
}

struct Mapped<C, M> {
    informer: Informer<C>,
    predicate: Option<Predicate<C>>,
    map: Arc<M>,
    /// Whether nothing can be done before it can be read.
    is_needed: bool,
}

impl<K, C, M> Listen<K> for Mapped<C, M>
where
    K: Object,
    C: Object,
    M: Fn(&C) -> Vec<ObjectKey> + Send + Sync + 'static,
{
    fn listen(&self, queue: &Arc<Queue<ObjectKey>>) -> Subscription {
        let (queue, map, source) =
            (Arc::clone(queue), Arc::clone(&self.map), self.informer.source());
        let (predicate, panics) = (self.predicate.clone(), self.informer.panics().clone());
        self.informer.subscribe_by_key(move |key, change| {
            if !matters(change, predicate.as_ref(), &panics) {
                return;
            }
            let map = |object: &C| panics.caught("a mapping", || map(object)).unwrap_or_default();
            let (object, priority) = told(change);
            let mut keys = map(object);
            if let Change::Applied { old: Some(old), .. } = change {
                keys.extend(map(old));
                keys.sort_unstable();
                keys.dedup();
            }
            if !keys.is_empty() {
                let cause = cause(&source, key.clone(), object.meta());
                add_all(&queue, keys, priority, &cause);
            }
        })
    }

    fn synced(&self, timeout: Duration) -> BoxFuture<'_, Result<(), NotReady>> {
        Box::pin(async move {
            tokio::select! {
                synced = self.informer.synced(timeout) => synced,
                // That it cannot be had is known: this is as much as there is to know of it.
                () = self.informer.until(is_beyond_reach), if !self.is_needed => {
                    if let State::Forbidden(why) = self.informer.state() {
                        let kind = self.informer.kind();
                        warn!(kind, why, "a controller works without a kind that it may not read");
                    }
                    Ok(())
                }
            }
        })
    }

    fn arrival(
        &self,
        primary: &Informer<K>,
        queue: &Arc<Queue<ObjectKey>>,
    ) -> Option<BoxFuture<'static, ()>> {
        if self.is_needed {
            return None;
        }
        let (informer, primary, queue) =
            (self.informer.clone(), primary.clone(), Arc::clone(queue));
        Some(Box::pin(arrival::follow(informer, primary, queue)))
    }
}

/// Another informer whose changes matter to objects of the first.
struct Related<C, K, M> {
    informer: Informer<C>,
    primary: Informer<K>,
    matters: Arc<M>,
}

impl<C, K, M> Listen<K> for Related<C, K, M>
where
    C: Object,
    K: Object,
    M: Fn(&Change<C>, &K) -> bool + Send + Sync + 'static,
{
    fn listen(&self, queue: &Arc<Queue<ObjectKey>>) -> Subscription {
        let (queue, matters, source) =
            (Arc::clone(queue), Arc::clone(&self.matters), self.informer.source());
        let (primary, panics) = (self.primary.clone(), self.informer.panics().clone());
        self.informer.subscribe_by_key(move |key, change| {
            let (object, priority) = told(change);
            // Those that cannot be read now are tried until they can: nobody tells of this change
            // again.
            let own = match &object.meta().namespace {
                Some(namespace) => primary.last_seen_beside(namespace),
                None => primary.last_seen(),
            };
            // What nobody can tell may matter.
            let matters = |own: &Arc<K>| {
                panics.caught("a dependency", || matters(change, own)).unwrap_or(true)
            };
            let own = own.iter().filter(|own| matters(own));
            let keys: Vec<ObjectKey> = own.map(|own| ObjectKey::of(own.meta())).collect();
            if !keys.is_empty() {
                let cause = cause(&source, key.clone(), object.meta());
                add_all(&queue, keys, priority, &cause);
            }
        })
    }

    fn synced(&self, timeout: Duration) -> BoxFuture<'_, Result<(), NotReady>> {
        Box::pin(self.informer.synced(timeout))
    }
}

/// Whether a kind is known not to be there for whoever asks, for now.
fn is_beyond_reach(state: &State) -> bool {
    matches!(state, State::Missing | State::Forbidden(_))
}

/// Whether a change matters. That an object came or went always does.
fn matters<C: Object>(
    change: &Change<C>,
    predicate: Option<&Predicate<C>>,
    panics: &Panics,
) -> bool {
    let Change::Applied { object, old: Some(old), .. } = change else { return true };
    // What nobody can tell may matter.
    let holds =
        |predicate: &Predicate<C>| panics.caught("a predicate", || predicate.holds(old, object));
    predicate.and_then(holds).unwrap_or(true)
}

/// The object that a change tells of, and how urgent it is.
fn told<C>(change: &Change<C>) -> (&Arc<C>, i32) {
    match change {
        Change::Applied { object, initial: true, .. } => (object, INITIAL_PRIORITY),
        Change::Applied { object, .. } | Change::Deleted(object) => (object, 0),
    }
}

/// Has objects looked at, all in the trace of what happened.
fn add_all(
    queue: &Queue<ObjectKey>,
    keys: impl IntoIterator<Item = ObjectKey>,
    priority: i32,
    cause: &Cause,
) {
    let event = trail::event(cause);
    for key in keys {
        let add = Add::default().priority(priority).because(cause.clone());
        queue.add_with(key, add.within(&event));
    }
}

/// The object of kind `K` that controls another one.
fn controlled_by<K>(child: &impl Resource) -> Option<ObjectKey>
where
    K: Resource<DynamicType = (), Scope: 'static>,
{
    let owners = child.meta().owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    let owner = controllers.find(|owner| {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        owner.kind == K::kind(&()) && group == K::group(&())
    })?;
    // Who is in no namespace can have children in any.
    let namespace = child.meta().namespace.as_deref().filter(|_| is_namespaced::<K>());
    Some(ObjectKey::new(namespace, &owner.name))
}

fn cause(source: &Arc<str>, key: ObjectKey, metadata: &ObjectMeta) -> Cause {
    Cause {
        source: Arc::clone(source),
        object: key.into(),
        revision: metadata.resource_version.as_deref().unwrap_or_default().into(),
    }
}
