//! One kind, followed and kept in memory.
//!
//! An [`Informer`] lists the objects of a kind once, watches them from there, and keeps what it
//! saw. Readers get objects as they are, never copies unless it keeps [texts](Source::as_text), and
//! are told at once when there is nothing to read yet; [`State`] says why. Subscribers are told of every change, and of what was there
//! before them: no object is left out, no deletion lost, whatever becomes of the connection.

mod feed;
mod kept;
mod objects;
mod progress;
mod shared;
mod shorthand;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use kube::api::ObjectMeta;
use kube::core::{Selector, SelectorExt as _};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::key::ObjectKey;
use crate::panics::Panics;

pub use self::feed::Source;
pub(crate) use self::kept::{Project, WriteText};
use self::objects::Objects;
pub use self::shared::Change;
use self::shared::Shared;

/// How long a reader waits for what was written.
const FRESH_MAX: Duration = Duration::from_secs(10);

/// What an object must be to be followed.
pub trait Object: Resource + DeserializeOwned + Send + Sync + 'static {}

impl<K: Resource + DeserializeOwned + Send + Sync + 'static> Object for K {}

/// Which objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Empty for all namespaces, and for kinds that have none. Each of several is followed by
    /// itself: the user need not be allowed to look at all of them.
    pub namespaces: BTreeSet<String>,
    /// A label selector.
    pub labels: Option<String>,
    /// A field selector.
    pub fields: Option<String>,
}

impl Scope {
    /// All objects in these namespaces, or in all of them if there are none.
    pub fn within<T: Into<String>>(namespaces: impl IntoIterator<Item = T>) -> Self {
        let namespaces = namespaces.into_iter().map(Into::into).collect();
        Scope { namespaces, ..Scope::default() }
    }

    /// Whether another scope has all that is in this one. Of two selectors that are different it is
    /// not known.
    pub(crate) fn is_within(&self, other: &Scope) -> bool {
        let is_among =
            |own: &Option<String>, other: &Option<String>| other.is_none() || own == other;
        let is_near = other.namespaces.is_empty()
            || (!self.namespaces.is_empty() && self.namespaces.is_subset(&other.namespaces));
        is_near && is_among(&self.labels, &other.labels) && is_among(&self.fields, &other.fields)
    }
}

/// How it is with an informer; of several namespaces, with the one that is worst off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It lists for the first time, or will.
    Listing,
    /// What it has is what there is.
    Live,
    /// What it has was so before the server could not be reached. It tries to catch up.
    Stale(String),
    /// The kind is not served. It looks again now and then, and when it is told to.
    Missing,
    /// The user may not list or watch the kind. It tries again now and then.
    Forbidden(String),
}

/// Nothing can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    #[error("{kind} is not listed yet")]
    Listing { kind: String },
    #[error("{kind} is not served: is its CustomResourceDefinition installed?")]
    Missing { kind: String },
    #[error("{kind} may not be listed and watched: {why}")]
    Forbidden { kind: String, why: String },
    #[error("{kind} is not watched in namespace {namespace:?}")]
    Unwatched { kind: String, namespace: String },
}

/// A kind that is followed for as long as somebody holds a clone of this.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewright::informer::{Change, Informer, Source};
/// # async fn example(client: kube::Client) {
///
/// let (pods, run) = Informer::<Pod>::new(Source::all(client));
/// let _told = pods.subscribe(|change| match change {
///     Change::Applied { object, .. } => println!("{:?} is there", object.metadata.name),
///     Change::Deleted(object) => println!("{:?} is gone", object.metadata.name),
/// });
/// run.await;
/// # }
/// ```
pub struct Informer<K> {
    shared: Arc<Shared<K>>,
    _end: Arc<End>,
}

/// An informer that others hold, if they still do.
pub(crate) struct WeakInformer<K> {
    shared: Weak<Shared<K>>,
    end: Weak<End>,
}

/// How it is with an informer, for those who look after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub kind: String,
    pub state: State,
    /// Whether somebody waits for it if it is not served.
    pub is_needed: bool,
    pub objects: usize,
    /// How long the texts are that the objects were read from.
    pub bytes: usize,
    /// How often everything was listed.
    pub lists: u64,
    /// How often the kind could not be followed.
    pub failures: u64,
    /// How often what authors have written about the kind panicked: predicates, mappings, indexes.
    pub panics: u64,
}

/// Ends the following.
struct End(CancellationToken);

/// Somebody is told of changes, and the kind followed, for as long as this is there.
#[must_use = "nobody is told any more when this is dropped"]
pub struct Subscription(Option<Box<dyn FnOnce() + Send + Sync>>);

impl<K: Object> Informer<K> {
    /// An informer, and what must run for it to be informed.
    pub fn new(source: Source<K>) -> (Self, impl Future<Output = ()> + Send + 'static)
    where
        K::DynamicType: Send + Sync,
    {
        let shared = Arc::new(Shared::new(source.opener(), source.namespaces()));
        let end = CancellationToken::new();
        let informer = Informer { shared: Arc::clone(&shared), _end: Arc::new(End(end.clone())) };
        let run = async move {
            end.run_until_cancelled(feed::follow(source, &shared)).await;
        };
        (informer, run)
    }

    pub fn state(&self) -> State {
        self.shared.state()
    }

    /// Waits until there is something to read, for so long.
    ///
    /// # Errors
    /// Why there is nothing after that time.
    pub async fn synced(&self, timeout: Duration) -> Result<(), NotReady> {
        let synced = self.shared.synced();
        match tokio::time::timeout(timeout, synced).await {
            Ok(()) => Ok(()),
            Err(_) => self.shared.ready(),
        }
    }

    /// An object, if it is there.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, NotReady> {
        let found: Vec<_> = self.shared.read_in(key.namespace(), |objects| objects.get(key))?;
        Ok(found.into_iter().next())
    }

    /// All objects, in the order of their keys.
    pub fn list(&self) -> Result<Vec<Arc<K>>, NotReady> {
        self.shared.read(|objects| objects.all())
    }

    /// The objects of a namespace, in the order of their names.
    pub fn list_in(&self, namespace: &str) -> Result<Vec<Arc<K>>, NotReady> {
        self.shared.read_in(Some(namespace), |objects| objects.in_namespace(namespace))
    }

    /// The objects that have such labels, in the order of their keys.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube::core::{Expression, Selector};
    /// use kubewright::informer::{Informer, NotReady};
    ///
    /// fn stragglers(pods: &Informer<Pod>) -> Result<usize, NotReady> {
    ///     let mut old: Selector = [("app", "web")].into_iter().collect();
    ///     old.extend([Expression::NotEqual("release".to_owned(), "9".to_owned())]);
    ///     Ok(pods.select(&old)?.len() + pods.select_in("staging", &old)?.len())
    /// }
    /// ```
    pub fn select(&self, selector: &Selector) -> Result<Vec<Arc<K>>, NotReady> {
        Ok(selected(self.list()?, selector))
    }

    /// The objects of a namespace that have such labels, in the order of their names.
    pub fn select_in(&self, namespace: &str, selector: &Selector) -> Result<Vec<Arc<K>>, NotReady> {
        Ok(selected(self.list_in(namespace)?, selector))
    }

    /// What was there when it was last looked at, though that may be long ago: what is not served
    /// any more, or may not be read, is still among it.
    pub fn last_seen(&self) -> Vec<Arc<K>> {
        self.shared.open(Objects::all)
    }

    /// The objects of a namespace as they were last seen; all of a kind that is in none.
    pub(crate) fn last_seen_beside(&self, namespace: &str) -> Vec<Arc<K>> {
        self.shared.open(|objects| objects.beside(namespace))
    }

    /// What can be read now: a namespace that cannot hides none of the others.
    pub(crate) fn readable(&self) -> Vec<Arc<K>> {
        self.shared.readable()
    }

    /// Lets objects be found by the values that `values` gives for them, which must be the same
    /// whenever it is asked about the same object.
    pub fn index(&self, name: &str, values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) {
        self.shared.index(name, Box::new(values));
    }

    /// The objects with a value in an index, in the order of their keys.
    ///
    /// # Panics
    /// If there is no index of that name.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<Arc<K>>, NotReady> {
        self.shared.read(|objects| objects.by_index(name, value))
    }

    pub(crate) fn has_index(&self, name: &str) -> bool {
        self.shared.has_index(name)
    }

    /// Whether an object was there when it was last looked at.
    pub(crate) fn has(&self, key: &ObjectKey) -> bool {
        self.shared.has(key)
    }

    /// Tells `observe` of everything that is there, then of every change, until the subscription
    /// is dropped. It is called by whoever watches, so it must only note; it may read the informer,
    /// and must not subscribe to it.
    pub fn subscribe(&self, observe: impl Fn(&Change<K>) + Send + Sync + 'static) -> Subscription {
        self.subscribe_by_key(move |_, change| observe(change))
    }

    /// The same, with the key of the object: whoever keeps it shares it.
    pub(crate) fn subscribe_by_key(
        &self,
        observe: impl Fn(&ObjectKey, &Change<K>) + Send + Sync + 'static,
    ) -> Subscription {
        let number = self.shared.subscribe(Box::new(observe));
        let informer = self.clone();
        Subscription(Some(Box::new(move || {
            // All of it: a closure that used a part would keep only that, and the rest would end.
            let informer = &informer;
            informer.shared.unsubscribe(number);
        })))
    }

    /// Ends when the kind turns out not to be served. Does not keep it followed.
    pub(crate) fn missing(&self) -> impl Future<Output = ()> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        async move { shared.until(|state| *state == State::Missing).await }
    }

    /// Waits for a state.
    pub async fn until(&self, is_so: impl FnMut(&State) -> bool) {
        self.shared.until(is_so).await;
    }

    /// Takes note that an object of this kind was written and has this version now: what is read
    /// after [`fresh`](Informer::fresh) is at least as new.
    pub fn expect(&self, written: &ObjectMeta) {
        self.shared.expect(written);
    }

    /// Takes note that an object of this kind was deleted: after [`fresh`](Informer::fresh) it is
    /// gone, or marked.
    pub fn expect_gone(&self, deleted: &ObjectMeta) {
        let uid = deleted.uid.as_deref().unwrap_or_default();
        self.shared.expect_gone(ObjectKey::of(deleted), uid);
    }

    /// Waits until all that was written and noted has been seen, but no longer than ten seconds.
    pub async fn fresh(&self) {
        self.shared.fresh(FRESH_MAX).await;
    }

    /// The same of one object: what was written of others is not waited for.
    pub async fn fresh_of(&self, key: &ObjectKey) {
        self.shared.fresh_of(key, FRESH_MAX).await;
    }

    pub fn report(&self) -> Report {
        self.shared.report()
    }

    pub(crate) fn downgrade(&self) -> WeakInformer<K> {
        WeakInformer { shared: Arc::downgrade(&self.shared), end: Arc::downgrade(&self._end) }
    }

    /// Takes from an object what is not kept of others.
    pub(crate) fn project(&self, object: &mut K) {
        self.shared.project(object);
    }

    /// Calls what authors have written about the kind.
    pub(crate) fn panics(&self) -> &Panics {
        self.shared.panics()
    }

    /// How causes call this: `watch Pod`.
    pub(crate) fn source(&self) -> Arc<str> {
        format!("watch {}", self.kind()).into()
    }

    pub(crate) fn kind(&self) -> &str {
        self.shared.kind()
    }

    /// Looks again for a kind that was missing or forbidden.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// Waits until an object has been seen in this version, for so long at most; tells whether it
    /// has.
    pub async fn caught_up(&self, written: &ObjectMeta, timeout: Duration) -> bool {
        self.shared.caught_up(written, timeout).await
    }
}

impl<K> WeakInformer<K> {
    pub(crate) fn upgrade(&self) -> Option<Informer<K>> {
        // In this order: what has ended must not be taken up again.
        let _end = self.end.upgrade()?;
        Some(Informer { shared: self.shared.upgrade()?, _end })
    }
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Informer { shared: Arc::clone(&self.shared), _end: Arc::clone(&self._end) }
    }
}

impl<K: Object> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer").field("kind", &self.shared.kind()).finish_non_exhaustive()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

impl<K: Object> Source<K>
where
    K::DynamicType: Default,
{
    /// All objects of a kind.
    pub fn all(client: Client) -> Self {
        Source::new(client, K::DynamicType::default(), Scope::default())
    }
}

fn selected<K: Resource>(mut objects: Vec<Arc<K>>, selector: &Selector) -> Vec<Arc<K>> {
    let none = BTreeMap::new();
    objects.retain(|object| selector.matches(object.meta().labels.as_ref().unwrap_or(&none)));
    objects
}

/// What is looked at of an object besides what it is.
fn version(metadata: &ObjectMeta) -> &str {
    metadata.resource_version.as_deref().unwrap_or_default()
}
