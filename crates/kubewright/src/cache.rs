//! Informers, shared.
//!
//! Whoever asks a [`Cache`] for a kind gets an [`Informer`] of it. All who ask for the same objects
//! get the same one, with one watch; when the last of them has let go of it, the watch ends and its
//! memory is given back. A kind that is not served yet is looked for now and then; whoever may list
//! and watch CustomResourceDefinitions looks again as soon as one arrives.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::core::PartialObjectMeta;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::error;

use crate::informer::{
    Informer, Object, Project, Report, Scope, Source, State, Subscription, WeakInformer, WriteText,
};

/// All informers of a process. A clone is another handle on the same ones.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewright::Cache;
/// use kubewright::informer::Scope;
/// # async fn example(client: kube::Client) -> Result<(), kubewright::informer::NotReady> {
///
/// let (cache, run) = Cache::new(client);
/// let mut tasks = tokio::task::JoinSet::new();
/// tasks.spawn(run);
/// let pods = cache.informer::<Pod>(&Scope::within(["shop"]));
/// // The same watch, of which another has a handle.
/// let same = cache.informer::<Pod>(&Scope::within(["shop"]));
/// pods.synced(std::time::Duration::from_secs(10)).await?;
/// assert_eq!(pods.list()?.len(), same.list()?.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

/// A cache that others have a handle on, if they still do.
#[derive(Clone)]
pub struct WeakCache(Weak<Inner>);

struct Inner {
    client: Client,
    informers: Mutex<HashMap<Id, Box<dyn Entry>>>,
    /// Kinds whose objects keep the record of who set which field.
    managed: Mutex<HashSet<TypeId>>,
    /// Whether kinds that controllers have declared are waited for.
    needed: Mutex<HashMap<TypeId, bool>>,
    /// What kinds lose before they are kept: by type, a [`Projection`].
    projections: Mutex<HashMap<TypeId, Box<dyn Any + Send + Sync>>>,
    /// Objects are kept as texts.
    is_text: bool,
    /// Wakes informers whose kind was not served, when a definition changes.
    definitions: Mutex<Option<Subscription>>,
    /// Unbounded: no more than one for each informer.
    start: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
}

/// What makes two informers the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Id {
    type_id: TypeId,
    /// Of kinds that are known only at run time, several have one type.
    path: String,
    scope: Scope,
}

impl Cache {
    /// A cache, and what must run for its informers to be informed. That ends when the cache and
    /// all its clones are gone.
    ///
    /// Objects are kept as they are read: readers share them.
    pub fn new(client: Client) -> (Self, impl Future<Output = ()> + Send + 'static) {
        Cache::build(client, false)
    }

    /// The same, but objects are kept as the texts they came in, shortened, and read when somebody
    /// looks; what was looked at lately is shared. They take a fraction of the memory, and those who
    /// look at thousands at a time should not.
    pub fn of_texts(client: Client) -> (Self, impl Future<Output = ()> + Send + 'static) {
        Cache::build(client, true)
    }

    pub(crate) fn build(
        client: Client,
        is_text: bool,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (start, mut started) = mpsc::unbounded_channel::<BoxFuture<'static, ()>>();
        let inner = Inner {
            client,
            informers: Mutex::default(),
            managed: Mutex::default(),
            needed: Mutex::default(),
            projections: Mutex::default(),
            is_text,
            definitions: Mutex::default(),
            start,
        };
        let run = async move {
            let mut running = JoinSet::new();
            loop {
                tokio::select! {
                    next = started.recv() => match next {
                        Some(informer) => drop(running.spawn(informer)),
                        None => break,
                    },
                    Some(ended) = running.join_next() => {
                        if let Err(error) = ended {
                            error!(%error, "a kind is not followed any more");
                        }
                    }
                }
            }
            running.shutdown().await;
        };
        (Cache(Arc::new(inner)), run)
    }

    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The informer of a kind.
    pub fn informer<K>(&self, scope: &Scope) -> Informer<K>
    where
        K: Object,
        K::DynamicType: Default + Send + Sync,
    {
        self.informer_of(K::DynamicType::default(), scope)
    }

    /// The informer of a kind that is known only at run time.
    pub fn informer_of<K>(&self, dynamic: K::DynamicType, scope: &Scope) -> Informer<K>
    where
        K: Object,
        K::DynamicType: Send + Sync,
    {
        self.shared(dynamic, scope, |source| source)
    }

    /// The informer of a kind of whose objects only metadata are of interest.
    pub fn metadata<K>(&self, scope: &Scope) -> Informer<PartialObjectMeta<K>>
    where
        K: kube::Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        self.metadata_of((), scope)
    }

    /// The same of a kind that is known only at run time. Metadata is kept as text: who follows
    /// kinds that come and go, follows many.
    pub fn metadata_of<K>(
        &self,
        dynamic: K::DynamicType,
        scope: &Scope,
    ) -> Informer<PartialObjectMeta<K>>
    where
        K: kube::Resource<DynamicType: Send + Sync> + Send + Sync + 'static,
    {
        self.shared(dynamic, scope, |source| source.metadata_only().as_text())
    }

    /// Lets the objects of a kind keep their `managedFields`, from the next informer on. Nobody
    /// else needs them, and they are often the larger half of an object.
    pub fn keep_managed_fields<K: Object>(&self) {
        lock(&self.0.managed).insert(TypeId::of::<K>());
    }

    /// Takes note that a kind is declared, and whether it is waited for: it is if it is by anybody.
    pub(crate) fn declare<K: Object>(&self, is_needed: bool) {
        *lock(&self.0.needed).entry(TypeId::of::<K>()).or_default() |= is_needed;
    }

    /// Whether there are kinds that nobody waits for.
    pub(crate) fn can_do_without(&self) -> bool {
        lock(&self.0.needed).values().any(|is_needed| !is_needed)
    }

    /// Lets each object of a kind lose what nobody will read before it is kept, also as text, from
    /// the next informer on. Who is called again for the same kind takes away more.
    pub fn project<K: Object + Serialize>(&self, project: impl Fn(&mut K) + Send + Sync + 'static) {
        let mut projections = lock(&self.0.projections);
        let known = projections.remove(&TypeId::of::<K>());
        let before = known.and_then(|known| known.downcast::<Projection<K>>().ok());
        let project = move |object: &mut K| {
            before.iter().for_each(|before| (before.project)(object));
            project(object);
        };
        let projection =
            Projection::<K> { project: Arc::new(project), write: serde_json::to_string };
        projections.insert(TypeId::of::<K>(), Box::new(projection));
    }

    /// How it is with all informers, in the order of their kinds.
    pub fn report(&self) -> Vec<Report> {
        let needed = lock(&self.0.needed).clone();
        let informers = lock(&self.0.informers);
        let reports = informers.iter().filter_map(|(id, entry)| {
            let is_needed = needed.get(&id.type_id).copied().unwrap_or(true);
            Some(Report { is_needed, ..entry.report()? })
        });
        let mut reports: Vec<Report> = reports.collect();
        reports.sort_by(|left, right| left.kind.cmp(&right.kind));
        reports
    }

    /// A handle that does not keep informers informed.
    pub fn downgrade(&self) -> WeakCache {
        WeakCache(Arc::downgrade(&self.0))
    }

    fn shared<K>(
        &self,
        dynamic: K::DynamicType,
        scope: &Scope,
        adapt: impl FnOnce(Source<K>) -> Source<K>,
    ) -> Informer<K>
    where
        K: Object,
        K::DynamicType: Send + Sync,
    {
        let id = Id {
            type_id: TypeId::of::<K>(),
            path: K::url_path(&dynamic, None),
            scope: scope.clone(),
        };
        let mut informers = lock(&self.0.informers);
        let known = informers.get(&id).and_then(|entry| entry.informer());
        if let Some(known) = known.and_then(|known| known.downcast::<Informer<K>>().ok()) {
            return *known;
        }
        let source = adapt(Source::new(self.0.client.clone(), dynamic, scope.clone()));
        let is_managed = lock(&self.0.managed).contains(&id.type_id);
        let projection = lock(&self.0.projections).get(&id.type_id).and_then(|known| {
            let known = known.downcast_ref::<Projection<K>>()?;
            Some((Arc::clone(&known.project), known.write))
        });
        let (project, write) = projection.unzip();
        let source = source.project(move |object| {
            if !is_managed {
                object.meta_mut().managed_fields = None;
            }
            if let Some(project) = &project {
                project(object);
            }
        });
        let source = match write {
            Some(write) => source.written(write),
            None => source,
        };
        // A text is kept without what is managed.
        let source = if self.0.is_text && !is_managed { source.as_text() } else { source };
        let (informer, run) = Informer::new(source);
        informers.retain(|_, entry| entry.is_held());
        informers.insert(id, Box::new(informer.downgrade()));
        let (missing, cache) = (informer.missing(), Arc::downgrade(&self.0));
        let alert = async move {
            missing.await;
            if let Some(cache) = cache.upgrade() {
                Cache(cache).watch_definitions();
            }
            std::future::pending().await
        };
        let run = async move {
            tokio::select! {
                // Ends with the last handle on the informer.
                () = run => {}
                () = alert => {}
            }
        };
        // The cache may be ending: then nobody is informed any more.
        let _ = self.0.start.send(Box::pin(run));
        informer
    }

    /// Looks again for what is not served, whenever a definition changes.
    ///
    /// This only saves time, so nobody need be allowed to: it is told in no report, and those who
    /// may not look at definitions find what they wait for a little later.
    fn watch_definitions(&self) {
        let mut definitions = lock(&self.0.definitions);
        if definitions.is_some() {
            return;
        }
        let client = self.0.client.clone();
        let source = Source::<PartialObjectMeta<CustomResourceDefinition>>::all(client);
        let (informer, run) = Informer::new(source.metadata_only().as_text());
        let cache = Arc::downgrade(&self.0);
        *definitions = Some(informer.subscribe(move |_| {
            if let Some(cache) = cache.upgrade() {
                lock(&cache.informers).values().for_each(|entry| entry.wake());
            }
        }));
        // The cache may be ending: then nobody is informed any more.
        let _ = self.0.start.send(Box::pin(run));
    }
}

/// What the objects of a kind lose.
struct Projection<K> {
    project: Project<K>,
    /// Makes a text of what is left.
    write: WriteText<K>,
}

impl WeakCache {
    pub fn upgrade(&self) -> Option<Cache> {
        self.0.upgrade().map(Cache)
    }
}

impl fmt::Debug for WeakCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakCache").field(&self.upgrade()).finish()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cache").field(&self.report()).finish()
    }
}

/// An informer of some kind.
trait Entry: Send + Sync {
    /// The `Informer<K>`, if somebody still holds it.
    fn informer(&self) -> Option<Box<dyn Any>>;

    fn is_held(&self) -> bool;

    fn report(&self) -> Option<Report>;

    /// Looks again for the kind, if it is not served.
    fn wake(&self);
}

impl<K: Object> Entry for WeakInformer<K> {
    fn informer(&self) -> Option<Box<dyn Any>> {
        self.upgrade().map(|informer| Box::new(informer) as Box<dyn Any>)
    }

    fn is_held(&self) -> bool {
        self.upgrade().is_some()
    }

    fn report(&self) -> Option<Report> {
        self.upgrade().map(|informer| informer.report())
    }

    fn wake(&self) {
        if let Some(informer) = self.upgrade()
            && informer.state() == State::Missing
        {
            informer.wake();
        }
    }
}

/// Nothing that holds these panics half-way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
