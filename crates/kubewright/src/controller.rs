//! A controller: which objects it brings about, what it looks at, and how.
//!
//! It is declared as types and run by an operator: it holds no connection and
//! no objects until then, and can be run again after it has ended.

mod round;
mod routine;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::core::PartialObjectMeta;
use kube::{Client, Resource};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::error;

use self::round::Round;
use self::routine::Routine;
use self::source::{Listen, Outlined, Owned, Read, Related, Watch, Watched};
use crate::access::Access;
use crate::cache::Cache;
use crate::clock::Clock;
use crate::context::{self, Context, Informers, Kind, Site, Write, is_namespaced};
use crate::control_loop::{ControlLoop, Recent, outside};
use crate::event::Recorder;
use crate::informer::{Change, Informer, NotReady, Scope};
use crate::key::ObjectKey;
use crate::metrics::Metrics;
use crate::predicate::Predicate;
use crate::queue::{Add, Pauses, Queue};
use crate::reconcile::{Action, Error};
use crate::shard::Ring;
use crate::trail;

/// Everything is looked at again so often, give or take a tenth, whether or not it has changed.
const RESYNC: Duration = Duration::from_secs(10 * 60 * 60);

/// Brings about what objects of a kind say.
///
/// It is given an object as it is, not what happened to it, and may be given it again at any time.
pub trait Reconciler<K>: Send + Sync + 'static {
    /// Brings about what an object says. What is changed in `object`, its status above all, is
    /// written when this ends, also with an error; if nothing is changed, nothing is written.
    fn reconcile(
        &self,
        object: &mut K,
        ctx: &Context,
    ) -> impl Future<Output = Result<Action, Error>> + Send;

    /// Takes back what an object that is being deleted has brought about and that does not go by
    /// itself. The object goes when this is [`Action::Done`]. Only asked of controllers with a
    /// [finalizer](Controller::finalizer).
    fn cleanup(
        &self,
        object: &mut K,
        ctx: &Context,
    ) -> impl Future<Output = Result<Action, Error>> + Send {
        let _ = (object, ctx);
        async { Ok(Action::Done) }
    }

    /// Hears that an object is gone.
    fn gone(&self, key: &ObjectKey) {
        let _ = key;
    }
}

/// A controller of the objects of kind `K`.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
/// use kubewright::{Action, Context, Controller, Error, Reconciler};
///
/// /// Has a Service for each ConfigMap.
/// struct Greeter;
///
/// impl Reconciler<ConfigMap> for Greeter {
///     async fn reconcile(&self, map: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
///         let mut service = Service::default();
///         service.metadata.name.clone_from(&map.metadata.name);
///         ctx.apply(service).await?;
///         Ok(Action::Done)
///     }
/// }
///
/// let controller = Controller::new("greeter", Greeter)
///     .labelled("app=greeter")
///     .owns::<Service>()
///     .reads::<Secret>()
///     .at_once(4);
/// // What it declares is what it may do.
/// let plurals: Vec<&str> = controller.accesses().iter().map(|it| it.plural.as_str()).collect();
/// assert_eq!(plurals, ["configmaps", "services", "secrets"]);
/// ```
pub struct Controller<K: Kind, R> {
    name: Arc<str>,
    reconciler: Arc<R>,
    finalizer: Option<Arc<str>>,
    labels: Option<String>,
    predicate: Option<Predicate<K>>,
    at_once: usize,
    deadline: Option<Duration>,
    resync: Duration,
    manager: Option<Arc<str>>,
    reporter: Option<Arc<str>>,
    write: Write,
    until_gone: bool,
    pauses: Pauses,
    routines: Vec<Routine<K>>,
    watches: Vec<Box<dyn Watch<K>>>,
    indexes: Vec<Box<Index>>,
    accesses: Vec<Access>,
    slot: Slot,
}

/// Lets objects that a controller looks at be found.
type Index = dyn Fn(&Informers) + Send + Sync;

/// Has objects of a controller looked at, whatever happens wherever. A clone is another handle.
#[derive(Clone)]
pub struct Trigger {
    source: Arc<str>,
    slot: Slot,
}

/// What a controller has while it runs.
type Slot = Arc<Mutex<Term>>;

#[derive(Default)]
struct Term {
    queue: Weak<Queue<ObjectKey>>,
    recent: Arc<Recent>,
}

/// What a controller looks at, while it is looked at.
struct Followed<K: Kind> {
    primary: Informer<K>,
    informers: Informers,
    listens: Vec<Listen<K>>,
}

/// What a controller is run with.
#[derive(Clone)]
pub struct Surroundings {
    pub client: Client,
    pub cache: Cache,
    pub recorder: Recorder,
    pub clock: Clock,
    pub metrics: Arc<Metrics>,
    /// The only namespaces that are looked at; none for all.
    pub namespaces: BTreeSet<String>,
    /// Among whom the objects are shared out, if they are.
    pub ring: Option<Ring>,
    /// Cancelled when reconciles under way are to be given up, and not only to end: another may soon
    /// do the same.
    pub revoked: CancellationToken,
    /// How long informers may take before it is told that they are not ready.
    pub sync_max: Duration,
}

impl<K: Kind + Clone, R: Reconciler<K>> Controller<K, R> {
    /// A controller whose name is in its logs and metrics, and owns the fields it sets.
    pub fn new(name: &str, reconciler: R) -> Self {
        Controller {
            name: name.into(),
            reconciler: Arc::new(reconciler),
            finalizer: None,
            labels: None,
            predicate: None,
            at_once: 1,
            deadline: None,
            resync: RESYNC,
            manager: None,
            reporter: None,
            write: Write::Difference,
            until_gone: false,
            pauses: Pauses::default(),
            routines: Vec::new(),
            watches: Vec::new(),
            indexes: Vec::new(),
            accesses: vec![Access::reconciled::<K>()],
            slot: Slot::default(),
        }
    }

    /// Objects do not go before [`Reconciler::cleanup`] is done. The finalizer has the form
    /// `example.com/name`.
    pub fn finalizer(self, finalizer: &str) -> Self {
        Controller { finalizer: Some(finalizer.into()), ..self }
    }

    /// Makes children of kind `T`: their owner is reconciled when they change.
    pub fn owns<T: Kind>(self) -> Self {
        self.owning::<T>(None)
    }

    /// The same, but of changes of children only those that matter have their owner reconciled: not
    /// each time that a Deployment counts its pods anew, say.
    ///
    /// ```
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// # use kubewright::{Action, Context, Controller, Error, Reconciler, predicate};
    /// # struct Greeter;
    /// # impl Reconciler<ConfigMap> for Greeter {
    /// #     async fn reconcile(&self, _: &mut ConfigMap, _: &Context) -> Result<Action, Error> {
    /// #         Ok(Action::Done)
    /// #     }
    /// # }
    /// let controller =
    ///     Controller::new("greeter", Greeter).owns_when::<Deployment>(predicate::generation());
    /// ```
    pub fn owns_when<T: Kind>(self, predicate: Predicate<T>) -> Self {
        self.owning(Some(predicate))
    }

    /// Makes children of kind `T` where it is served: an integration that some clusters have and
    /// others do not. The controller works without it: [`Context::apply`] of it is an error that
    /// [says so](crate::context::WriteError::is_missing), `/readyz/caches-if-served` names it, and
    /// nothing is the less ready. When it comes to be served, all objects are reconciled. So it is
    /// where the kind is served and the operator may not read it, as when an administrator has left
    /// it out of its role, but that is [another error](crate::context::WriteError::is_forbidden):
    /// whoever takes it for granted that nobody has forgotten the right asks for both.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::{Action, Context, Controller, Error, Reconciler};
    /// # mod monitoring { pub use k8s_openapi::api::core::v1::ConfigMap as ServiceMonitor; }
    /// use monitoring::ServiceMonitor;
    ///
    /// struct Greeter;
    ///
    /// impl Reconciler<ConfigMap> for Greeter {
    ///     async fn reconcile(&self, map: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
    ///         let mut monitor = ServiceMonitor::default();
    ///         monitor.metadata.name.clone_from(&map.metadata.name);
    ///         match ctx.apply(monitor).await {
    ///             // Nobody monitors here.
    ///             Err(error) if error.is_missing() => {}
    ///             applied => drop(applied?),
    ///         }
    ///         Ok(Action::Done)
    ///     }
    /// }
    ///
    /// let controller = Controller::new("greeter", Greeter).owns_if_served::<ServiceMonitor>();
    /// ```
    pub fn owns_if_served<T: Kind>(mut self) -> Self {
        self.accesses.push(Access::owned::<T>());
        self.watches.push(Box::new(Owned::<T>::if_served()));
        self
    }

    fn owning<T: Kind>(mut self, predicate: Option<Predicate<T>>) -> Self {
        self.accesses.push(Access::owned::<T>());
        self.watches.push(Box::new(Owned::new(predicate)));
        self
    }

    /// Looks at objects of kind `T`. Their changes alone lead to nothing.
    pub fn reads<T: Kind>(mut self) -> Self {
        self.accesses.push(Access::read::<T>());
        self.watches.push(Box::new(Read::<T>::default()));
        self
    }

    /// The same of a kind that need not be served: reads say that it
    /// [is missing](crate::context::ReadError::is_missing), or
    /// [forbidden](crate::context::ReadError::is_forbidden), and when it comes to be served, all
    /// objects are reconciled.
    pub fn reads_if_served<T: Kind>(self) -> Self {
        self.watches_if_served::<T>(|_| Vec::new())
    }

    /// Looks at objects of kind `T`, and reconciles those that `map` gives when one changes, as it
    /// was and as it is.
    pub fn watches<T: Kind>(
        self,
        map: impl Fn(&T) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.watches_among(Scope::default(), map)
    }

    /// The same of a kind that need not be served, as with
    /// [`owns_if_served`](Controller::owns_if_served).
    pub fn watches_if_served<T: Kind>(
        self,
        map: impl Fn(&T) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.watching(Watched::if_served(map))
    }

    /// The same for some objects of kind `T` only: the others are neither looked at nor kept. The
    /// namespaces are the operator's, unless `scope` has its own. A kind can be declared several
    /// times, in different scopes; reconciles then read it in the widest of them, or if none is, in
    /// the one that was declared first.
    pub fn watches_among<T: Kind>(
        self,
        scope: Scope,
        map: impl Fn(&T) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.watching(Watched::new(scope, None, map))
    }

    /// The same for all objects of kind `T`, but of their changes only those that matter count.
    pub fn watches_when<T: Kind>(
        self,
        predicate: Predicate<T>,
        map: impl Fn(&T) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.watching(Watched::new(Scope::default(), Some(predicate), map))
    }

    fn watching<T: Kind>(mut self, watched: Watched<T>) -> Self {
        self.accesses.push(Access::read::<T>());
        self.watches.push(Box::new(watched));
        self
    }

    /// Looks at the metadata of objects of kind `T`, and reconciles those that `map` gives when
    /// something of an object changes: the server sends no more of it, and no more is kept.
    /// Reconciles read it as `PartialObjectMeta<T>`.
    pub fn watches_metadata<T>(
        mut self,
        map: impl Fn(&PartialObjectMeta<T>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self
    where
        T: Resource<DynamicType = (), Scope: 'static> + Send + Sync + 'static,
    {
        self.accesses.push(Access::read::<T>());
        self.watches.push(Box::new(Outlined::<T>::new(map)));
        self
    }

    /// Looks at objects of kind `T`, and reconciles those of its own objects that a change matters
    /// to. They are looked through one by one, in the changed object's namespace if both kinds have
    /// one: a change that matters to nobody should be told by itself, first.
    pub fn depends_on<T: Kind>(
        mut self,
        matters: impl Fn(&Change<T>, &K) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.accesses.push(Access::read::<T>());
        self.watches.push(Box::new(Related::<K, T>::new(matters)));
        self
    }

    /// Lets objects of a kind that it looks at, or of its own, be found by the values that `values`
    /// gives for them: reconciles ask [`Context::by_index`]. The values must be the same whenever it
    /// is asked about the same object.
    pub fn indexed<T: Kind>(
        mut self,
        index: &str,
        values: impl Fn(&T) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let (index, values) = (context::index(&self.name, index), Arc::new(values));
        self.indexes.push(Box::new(move |informers| {
            let values = Arc::clone(&values);
            informers.index::<T>(&index, move |object| values(object));
        }));
        self
    }

    /// May do something else: what it does through the client alone.
    pub fn may(mut self, access: Access) -> Self {
        self.accesses.push(access);
        self
    }

    /// Leaves alone the objects whose labels are not so.
    pub fn labelled(self, selector: &str) -> Self {
        Controller { labels: Some(selector.to_owned()), ..self }
    }

    /// Reconciles objects only when a change of theirs matters. Without this, every change does
    /// that the controller has not made itself.
    pub fn when(self, predicate: Predicate<K>) -> Self {
        Controller { predicate: Some(predicate), ..self }
    }

    /// Reconciles objects also while they are being deleted, though it has no finalizer: until they
    /// are gone.
    pub fn until_gone(self) -> Self {
        Controller { until_gone: true, ..self }
    }

    /// Sends its objects and their status as a whole, and not what is different. For accounts that
    /// may `update` them, but not `patch`.
    pub fn by_update(self) -> Self {
        Controller { write: Write::Whole, ..self }
    }

    /// Owns the fields it sets under this name, and not its own.
    pub fn field_manager(self, manager: &str) -> Self {
        Controller { manager: Some(manager.into()), ..self }
    }

    /// Writes events under this name, and not its own.
    pub fn reporter(self, reporter: &str) -> Self {
        Controller { reporter: Some(reporter.into()), ..self }
    }

    /// How many objects are reconciled at a time. One, unless said otherwise.
    pub fn at_once(self, at_once: usize) -> Self {
        Controller { at_once, ..self }
    }

    /// How long a reconcile may take before it is given up and tried again.
    pub fn deadline(self, deadline: Duration) -> Self {
        Controller { deadline: Some(deadline), ..self }
    }

    /// Looks at everything again so often, give or take a tenth. Ten hours, unless said otherwise.
    pub fn resync(self, resync: Duration) -> Self {
        Controller { resync, ..self }
    }

    /// How long an object waits after its reconcile has failed: `min` at first, twice as long each
    /// time in a row, at most `max`. 5 ms and 1000 s, unless said otherwise.
    pub fn back_off(self, min: Duration, max: Duration) -> Self {
        Controller { pauses: Pauses { min, max }, ..self }
    }

    /// Reconciles, every so often, those objects of which `is_due` is true then. `name` is in
    /// causes. An object that knows itself when it is to be looked at again says so with
    /// [`Action::RequeueAfter`].
    pub fn timer(
        mut self,
        name: &str,
        every: Duration,
        is_due: impl Fn(&K) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.routines.push(Routine::timer(name, every, is_due));
        self
    }

    /// Asks elsewhere, at once and then every so often, and reconciles the objects of which
    /// something else is said than the last time, or which came or went there: for what tells of
    /// no changes by itself. An answer that fails is told of and asked for again the next time.
    pub fn poll<V, F, A>(mut self, name: &str, every: Duration, ask: F) -> Self
    where
        V: PartialEq + Send + 'static,
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<BTreeMap<ObjectKey, V>, Error>> + Send + 'static,
    {
        self.routines.push(Routine::poll(name, every, ask));
        self
    }

    /// Lets others say that an object should be looked at.
    pub fn trigger(&self, source: &str) -> Trigger {
        Trigger { source: source.into(), slot: Arc::clone(&self.slot) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it must be allowed to do.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Reconciles until `shutdown`, then lets the reconciles under way end, unless they are
    /// [revoked](Surroundings::revoked). A kind that cannot be read is waited for, and told of.
    pub async fn run(&self, around: &Surroundings, shutdown: &CancellationToken) {
        let Followed { primary, informers, listens } = self.follow(around);
        let site = Arc::new(Site {
            controller: Arc::clone(&self.name),
            client: around.client.clone(),
            cache: around.cache.clone(),
            manager: Arc::clone(self.manager.as_ref().unwrap_or(&self.name)),
            recorder: around.recorder.of(self.reporter.as_ref().unwrap_or(&self.name)),
            write: self.write,
            clock: around.clock.clone(),
            revoked: around.revoked.clone(),
            informers,
            idle: Mutex::default(),
        });
        while let Err(error) = self.term(around, &primary, &listens, &site, shutdown).await {
            error!(controller = &*self.name, %error, "a controller waits for what it reads");
        }
    }

    /// Begins to look at all that it declares, for as long as this is there.
    fn follow(&self, around: &Surroundings) -> Followed<K> {
        let scope = Scope { labels: self.labels.clone(), ..scope::<K>(around) };
        let primary = around.cache.informer::<K>(&scope);
        let mut informers = Informers::default();
        informers.insert(scope, primary.clone());
        let watches = self.watches.iter();
        let listens = watches.filter_map(|watch| watch.inform(around, &mut informers)).collect();
        self.indexes.iter().for_each(|index| index(&informers));
        Followed { primary, informers, listens }
    }

    async fn term(
        &self,
        around: &Surroundings,
        primary: &Informer<K>,
        listens: &[Listen<K>],
        site: &Arc<Site>,
        shutdown: &CancellationToken,
    ) -> Result<(), NotReady> {
        let mut control = ControlLoop::new(&self.name, primary)
            .pauses(self.pauses)
            .at_once(self.at_once)
            .sync_max(around.sync_max)
            .revoked_by(around.revoked.clone())
            .metrics(&around.metrics);
        if let Some(predicate) = &self.predicate {
            control = control.when(predicate.clone());
        }
        if let Some(deadline) = self.deadline {
            control = control.deadline(deadline);
        }
        if let Some(ring) = &around.ring {
            control = control.sharded(ring);
        }
        for listen in listens {
            control = listen(control);
        }
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) =
            Term { queue: control.queue(), recent: control.recent() };
        let round = Arc::new(Round {
            site: Arc::clone(site),
            reconciler: Arc::clone(&self.reconciler),
            finalizer: self.finalizer.clone(),
            until_gone: self.until_gone,
            primary: primary.clone(),
        });
        let mut routines = JoinSet::new();
        for routine in self.routines.iter().chain([&Routine::resync(self.resync)]) {
            routines.spawn(routine.start(primary, self.trigger(&routine.source)));
        }
        let ran = control.run(shutdown.clone(), move |request| {
            let round = Arc::clone(&round);
            async move { round.reconcile(&request).await }
        });
        let ran = ran.await;
        routines.shutdown().await;
        ran
    }
}

impl<K: Kind, R> fmt::Debug for Controller<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Controller").field(&self.name).finish()
    }
}

impl Trigger {
    /// Has an object looked at. If the controller does not run, it will look at all of them when it
    /// does.
    pub fn fire(&self, key: ObjectKey) {
        self.fire_with(key, Add::default());
    }

    /// Has an object looked at, with another priority, or later.
    pub fn fire_with(&self, key: ObjectKey, add: Add) {
        let queue = self.slot.lock().unwrap_or_else(PoisonError::into_inner).queue.upgrade();
        if let Some(queue) = queue {
            let cause = outside(&self.source);
            let event = trail::event(&cause);
            queue.add_with(key, add.because(cause).within(&event));
        }
    }
}

/// A controller, whatever its kind.
pub(crate) trait Part: Send + Sync {
    fn name(&self) -> &str;

    fn accesses(&self) -> &[Access];

    /// How it is doing, and what it did last.
    fn report(&self) -> Value;

    /// Objects whose last reconcile panicked; and how many more there are.
    fn panicking(&self) -> (Vec<ObjectKey>, usize);

    /// Says what must be kept of objects, before anybody looks at them.
    fn prepare(&self, cache: &Cache);

    /// Begins to look at what it will need, before it may do anything. It is looked at for as long
    /// as this is there.
    fn warm(&self, around: &Surroundings) -> Box<dyn Send + Sync>;

    fn run<'a>(
        &'a self,
        around: &'a Surroundings,
        shutdown: &'a CancellationToken,
    ) -> BoxFuture<'a, ()>;
}

impl<K: Kind + Clone, R: Reconciler<K>> Part for Controller<K, R> {
    fn name(&self) -> &str {
        &self.name
    }

    fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    fn report(&self) -> Value {
        let term = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = term.queue.upgrade();
        let waiting = queue.as_ref().map(|queue| queue.len());
        let mut report = json!({
            "name": &*self.name,
            "running": queue.is_some(),
            "waiting": waiting,
        });
        term.recent.report(&mut report);
        report
    }

    fn panicking(&self) -> (Vec<ObjectKey>, usize) {
        let term = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        // What was so when it last ran says nothing about now.
        match term.queue.strong_count() {
            0 => Default::default(),
            _ => term.recent.panicking(),
        }
    }

    fn prepare(&self, cache: &Cache) {
        cache.declare::<K>(true);
        self.watches.iter().for_each(|watch| watch.prepare(cache));
    }

    fn warm(&self, around: &Surroundings) -> Box<dyn Send + Sync> {
        Box::new(self.follow(around))
    }

    fn run<'a>(
        &'a self,
        around: &'a Surroundings,
        shutdown: &'a CancellationToken,
    ) -> BoxFuture<'a, ()> {
        Box::pin(Controller::run(self, around, shutdown))
    }
}

/// Where objects of a kind are looked at.
fn scope<T: Kind>(around: &Surroundings) -> Scope {
    Scope::within(around.namespaces.iter().filter(|_| is_namespaced::<T>()))
}
