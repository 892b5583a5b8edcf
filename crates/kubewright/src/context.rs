//! What a reconcile can look at and do.
//!
//! Kinds are read from the cache, and only those that the controller has declared: what it may do
//! in a cluster is rendered from the same declarations. A read sees all that was written through
//! the context before it.

mod subject;
mod write;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, ObjectMeta, Preconditions};
use kube::core::{PartialObjectMeta, Selector, Status};
use kube::{Client, Resource};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(crate) use self::subject::Subject;
pub(crate) use self::write::{Unsent, Write};
use crate::apply::{self, settled};
use crate::cache::Cache;
use crate::clock::Clock;
use crate::condition;
use crate::endpoint::Endpoint;
use crate::event::{Event, Recorder};
use crate::informer::{Informer, NotReady, Object, Scope};
use crate::key::ObjectKey;
use crate::reconcile::Request;
use crate::shard::Work;

/// The index by which the objects that something controls are found.
pub(crate) const CONTROLLER: &str = "controller";

/// What a kind must be to be written.
pub trait Kind: Object + Resource<DynamicType = (), Scope: 'static> + Serialize {}

impl<K: Object + Resource<DynamicType = (), Scope: 'static> + Serialize> Kind for K {}

/// What the reconcile of one object can look at and do.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use kubewright::{Action, Context, Error, Event, Reconciler};
///
/// struct Locksmith;
///
/// impl Reconciler<ConfigMap> for Locksmith {
///     async fn reconcile(&self, door: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
///         // From the cache, beside the object that is reconciled.
///         let Some(key) = ctx.get::<Secret>(None, "key").await? else {
///             ctx.event(Event::warning("KeyMissing", "there is no Secret `key`"));
///             return Ok(Action::Done);
///         };
///         // What is changed is written at the end.
///         let version = key.metadata.resource_version.clone().unwrap_or_default();
///         door.data.get_or_insert_default().insert("key".to_owned(), version);
///         Ok(Action::Done)
///     }
/// }
/// ```
pub struct Context {
    site: Arc<Site>,
    subject: Subject,
    /// What makes the object this replica's, where objects are shared out.
    work: Option<Arc<Work>>,
}

/// What all reconciles of a controller have in common.
pub(crate) struct Site {
    /// What the controller is called.
    pub(crate) controller: Arc<str>,
    pub(crate) client: Client,
    pub(crate) cache: Cache,
    /// Who sets fields.
    pub(crate) manager: Arc<str>,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    /// When a leader has lost its lease.
    pub(crate) revoked: CancellationToken,
    /// How the controller's own objects are written.
    pub(crate) write: Write,
    pub(crate) informers: Informers,
    /// What the server found nothing to change in, though it looked different: the hash of what
    /// was applied, and the version it was applied to.
    pub(crate) idle: Mutex<HashMap<(TypeId, ObjectKey), (u64, String)>>,
}

/// The informers of the kinds that a controller has declared: by type, a list of [`Declared`].
#[derive(Default)]
pub(crate) struct Informers(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

/// The informers of one kind. No scope is wider than one before it.
struct Declared<T>(Vec<(Scope, Informer<T>)>);

/// Why a kind cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(
        "{kind} is not declared: say `.reads::<{kind}>()` or `.owns::<{kind}>()` of the controller"
    )]
    Undeclared { kind: String },
    #[error("the owners of {kind} are not known: say `.owns::<{kind}>()` of the controller")]
    Unowned { kind: String },
    #[error(
        "{kind} has no index {index:?}: say `.indexed::<{kind}>({index:?}, …)` of the controller"
    )]
    Unindexed { kind: String, index: String },
    #[error(transparent)]
    NotReady(#[from] NotReady),
}

/// Why an object was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The author's mistake.
    #[error("a {kind} without a name cannot be applied")]
    Nameless { kind: String },
    /// The author's mistake.
    #[error("{kind} {name} is in no namespace, and neither is its owner: give it one")]
    Homeless { kind: String, name: String },
    /// The author's mistake.
    #[error("{kind} {key} cannot be owned by an object in namespace {owner}")]
    OutOfReach { kind: String, key: ObjectKey, owner: String },
    /// Somebody else's. It is not taken from them.
    #[error("{kind} {key} is controlled by {owner}")]
    Taken { kind: String, key: ObjectKey, owner: String },
    #[error("{kind} {key} cannot be written as JSON")]
    Unwritable { kind: String, key: ObjectKey, source: serde_json::Error },
    #[error("write {kind} {key}")]
    Refused { kind: String, key: ObjectKey, source: kube::Error },
}

impl ReadError {
    /// Whether the kind is not served.
    pub fn is_missing(&self) -> bool {
        matches!(self, ReadError::NotReady(NotReady::Missing { .. }))
    }

    /// Whether the operator may not read the kind.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, ReadError::NotReady(NotReady::Forbidden { .. }))
    }
}

impl WriteError {
    /// Whether the kind is not served.
    pub fn is_missing(&self) -> bool {
        matches!(self, WriteError::Unreadable(error) if error.is_missing())
    }

    /// Whether the operator may not read the kind, or not write the object.
    pub fn is_forbidden(&self) -> bool {
        match self {
            WriteError::Unreadable(error) => error.is_forbidden(),
            error => error.code() == Some(403),
        }
    }

    /// What the server said, if it was asked.
    pub fn answer(&self) -> Option<&Status> {
        match self {
            WriteError::Refused { source: kube::Error::Api(status), .. } => Some(status),
            _ => None,
        }
    }

    /// The HTTP code of what the server said.
    pub fn code(&self) -> Option<u16> {
        self.answer().map(|status| status.code)
    }

    /// The server's word for why, as `AlreadyExists`.
    pub fn reason(&self) -> Option<&str> {
        self.answer().map(|status| status.reason.as_str())
    }
}

impl Context {
    pub(crate) fn new<K: Resource<DynamicType = ()>>(
        site: &Arc<Site>,
        request: &Request<K>,
        object: &K,
    ) -> Self {
        let work = request.work.clone();
        Context { site: Arc::clone(site), subject: Subject::of(object), work }
    }

    /// The client, for what is not offered here.
    pub fn client(&self) -> &Client {
        self.work.as_ref().map_or(&self.site.client, |work| work.client())
    }

    pub fn now(&self) -> Timestamp {
        self.site.clock.now()
    }

    /// Cancelled when the object may be another replica's although this reconcile has not ended:
    /// its lease is lost, or the leader's. The reconcile itself is then given up at its next
    /// `await`, so this is for what it has begun elsewhere and that does not end with it: a thread, a
    /// task, a request that another program carries out. An operator that is to end lets reconciles
    /// end, and cancels nothing.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright::{Action, Context, Error, Reconciler};
    /// struct Copyist;
    ///
    /// impl Reconciler<ConfigMap> for Copyist {
    ///     async fn reconcile(&self, map: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
    ///         let (lost, pages) = (ctx.lost(), map.data.clone().unwrap_or_default());
    ///         let copied = tokio::task::spawn_blocking(move || {
    ///             // Nobody can interrupt a thread: it looks between two pages.
    ///             pages.values().take_while(|_| !lost.is_cancelled()).count()
    ///         });
    ///         println!("{} pages", copied.await?);
    ///         Ok(Action::Done)
    ///     }
    /// }
    /// ```
    pub fn lost(&self) -> CancellationToken {
        self.work.as_ref().map_or_else(|| self.site.revoked.clone(), |work| work.lost())
    }

    /// An object, if it is there. Without a namespace, one beside the object that is reconciled.
    pub async fn get<T: Kind>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Arc<T>>, ReadError> {
        let namespace = namespace.or(self.subject.namespace()).filter(|_| is_namespaced::<T>());
        self.find::<T>(&ObjectKey::new(namespace, name)).await
    }

    /// All objects of a kind that there are, in the order of their keys.
    pub async fn list<T: Kind>(&self) -> Result<Vec<Arc<T>>, ReadError> {
        Ok(self.fresh::<T>().await?.list()?)
    }

    /// The objects of a kind in a namespace, in the order of their names. Of an operator of some
    /// namespaces, another one cannot be read.
    pub async fn list_in<T: Kind>(&self, namespace: &str) -> Result<Vec<Arc<T>>, ReadError> {
        Ok(self.fresh::<T>().await?.list_in(namespace)?)
    }

    /// The objects of a kind that have such labels, wherever they are, in the order of their keys.
    /// What is asked for again and again among thousands is better found
    /// [by an index](Context::by_index).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{Pod, Service};
    /// use kube::core::Selector;
    /// use kubewright::{Action, Context, Error, Reconciler};
    ///
    /// struct Counter;
    ///
    /// impl Reconciler<Service> for Counter {
    ///     async fn reconcile(&self, service: &mut Service, ctx: &Context) -> Result<Action, Error> {
    ///         let labels = service.spec.iter().flat_map(|spec| spec.selector.clone());
    ///         let behind: Selector = labels.flatten().collect();
    ///         let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    ///         let pods = ctx.select_in::<Pod>(namespace, &behind).await?;
    ///         println!("{} of {}", pods.len(), ctx.list_in::<Pod>(namespace).await?.len());
    ///         Ok(Action::Done)
    ///     }
    /// }
    /// ```
    pub async fn select<T: Kind>(&self, selector: &Selector) -> Result<Vec<Arc<T>>, ReadError> {
        Ok(self.fresh::<T>().await?.select(selector)?)
    }

    /// The objects of a kind in a namespace that have such labels, in the order of their names.
    pub async fn select_in<T: Kind>(
        &self,
        namespace: &str,
        selector: &Selector,
    ) -> Result<Vec<Arc<T>>, ReadError> {
        Ok(self.fresh::<T>().await?.select_in(namespace, selector)?)
    }

    /// The objects of an owned kind that the reconciled object controls.
    pub async fn children<T: Kind>(&self) -> Result<Vec<Arc<T>>, ReadError> {
        Ok(self.owned::<T>().await?.by_index(CONTROLLER, self.subject.uid())?)
    }

    /// The objects of a kind with a value in an [index](crate::Controller::indexed) of the
    /// controller, in the order of their keys.
    pub async fn by_index<T: Kind>(
        &self,
        index: &str,
        value: &str,
    ) -> Result<Vec<Arc<T>>, ReadError> {
        self.informer::<T>()?;
        let name = self::index(&self.site.controller, index);
        let informer = self
            .site
            .informers
            .indexed::<T>(&name)
            .ok_or_else(|| ReadError::Unindexed { kind: kind::<T>(), index: index.to_owned() })?;
        informer.fresh().await;
        Ok(informer.by_index(&name, value)?)
    }

    /// The cache that all of the operator share, for kinds that are known only at run time: they are
    /// followed for as long as somebody holds their informer. What is not declared must be allowed
    /// by [`may`](crate::Controller::may).
    pub fn cache(&self) -> &Cache {
        &self.site.cache
    }

    /// The informer of a kind, for what is not offered here.
    pub fn informer<T: Kind>(&self) -> Result<&Informer<T>, ReadError> {
        self.site.informers.get().ok_or_else(|| ReadError::Undeclared { kind: kind::<T>() })
    }

    /// Sees to it that a child is as it is given here, whoever else sets other fields of it. What
    /// is not given any more is taken back, and what is so already is not sent.
    ///
    /// The child is controlled by the object that is reconciled: it comes to the same namespace if
    /// it has none, its changes lead to a reconcile, and it goes when its owner goes.
    pub async fn apply<T: Kind>(&self, mut child: T) -> Result<Arc<T>, WriteError> {
        self.adopt(&mut child)?;
        self.apply_unowned(child).await
    }

    /// The same for an object that is nobody's child.
    pub async fn apply_unowned<T: Kind>(&self, mut object: T) -> Result<Arc<T>, WriteError> {
        self.place(&mut object)?;
        let key = ObjectKey::of(object.meta());
        if key.name().is_empty() {
            return Err(WriteError::Nameless { kind: kind::<T>() });
        }
        let unwritable =
            |source| WriteError::Unwritable { kind: kind::<T>(), key: key.clone(), source };
        let wanted = apply::wanted(&object).map_err(unwritable)?;
        let live = self.find::<T>(&key).await?;
        let hash = hash(&wanted);
        if let Some(live) = &live {
            self.may_have(object.meta(), live.as_ref())?;
            let seen = serde_json::to_value(live.as_ref()).map_err(unwritable)?;
            if settled::is_settled(&wanted, &seen, &self.site.manager)
                || self.is_idle::<T>(&key, hash, live.as_ref())
            {
                return Ok(Arc::clone(live));
            }
        }
        let endpoint = Endpoint::of::<T>(self.client(), key.namespace());
        let applied: T = endpoint
            .apply(key.name(), &self.site.manager, &wanted)
            .await
            .map_err(|source| refused::<T>(&key, source))?;
        if let Some(live) = live
            && live.meta().resource_version == applied.meta().resource_version
        {
            self.note_idle(&key, hash, &applied);
        }
        self.site.informers.expect::<T>(applied.meta());
        Ok(Arc::new(applied))
    }

    /// Makes a child whose name the server completes (`generateName`), or that must be new. Of a
    /// kind that is only written, and not read, the right to do so is enough:
    /// `.may(Access::written::<T>())`.
    pub async fn create<T: Kind>(&self, mut child: T) -> Result<Arc<T>, WriteError> {
        self.adopt(&mut child)?;
        self.create_unowned(child).await
    }

    /// The same for an object that is nobody's child.
    pub async fn create_unowned<T: Kind>(&self, mut object: T) -> Result<Arc<T>, WriteError> {
        self.place(&mut object)?;
        let key = ObjectKey::of(object.meta());
        let endpoint = Endpoint::of::<T>(self.client(), key.namespace());
        let created = endpoint.create(&self.site.manager, &object).await;
        let created: T = created.map_err(|source| refused::<T>(&key, source))?;
        self.site.informers.expect::<T>(created.meta());
        Ok(Arc::new(created))
    }

    /// Deletes an object, if it is still the one that was seen. That it is gone is as good.
    pub async fn delete<T: Kind>(&self, object: &T) -> Result<(), WriteError> {
        let (metadata, key) = (object.meta(), ObjectKey::of(object.meta()));
        let preconditions = Preconditions { uid: metadata.uid.clone(), ..Preconditions::default() };
        let params = DeleteParams::background().preconditions(preconditions);
        let endpoint = Endpoint::of::<T>(self.client(), key.namespace());
        match endpoint.delete(key.name(), &params).await {
            Ok(()) => {
                self.site.informers.expect_gone::<T>(metadata);
                Ok(())
            }
            // Gone; or another one of the same name.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(source) => Err(refused::<T>(&key, source)),
        }
    }

    /// Changes another object, if it is still the one that was seen: what `change` makes different
    /// is sent, to its status too. If lists are among it, nobody may have changed the object since.
    pub async fn edit<T: Kind + Clone>(
        &self,
        seen: &T,
        change: impl FnOnce(&mut T),
    ) -> Result<Arc<T>, WriteError> {
        let mut object = seen.clone();
        change(&mut object);
        self.send(Write::Difference, seen, &object).await
    }

    /// Puts another object in the place of the version that was seen, if it is still that one. For
    /// accounts that may `update` it, but not `patch`; otherwise [`edit`](Context::edit) is better.
    pub async fn replace<T: Kind + Clone>(
        &self,
        seen: &T,
        change: impl FnOnce(&mut T),
    ) -> Result<Arc<T>, WriteError> {
        let mut object = seen.clone();
        change(&mut object);
        self.send(Write::Whole, seen, &object).await
    }

    /// The objects of an owned kind that nobody controls, beside the one that is reconciled.
    pub async fn orphans<T: Kind>(&self) -> Result<Vec<Arc<T>>, ReadError> {
        let orphans = orphans(self.subject.namespace());
        Ok(self.owned::<T>().await?.by_index(CONTROLLER, &orphans)?)
    }

    /// The children that an object with a selector should have, in the order of their keys: orphans
    /// that are selected are adopted, and children that are not any more are let go. Those that are
    /// not `among` them at all, as pods that are over, stay as they are and out of it.
    ///
    /// An object that is being deleted, by what the server says now, neither adopts nor lets go;
    /// and what is being deleted is not adopted.
    pub async fn claim<T: Kind + Clone>(
        &self,
        among: impl Fn(&T) -> bool + Send,
        selects: impl Fn(&T) -> bool + Send,
    ) -> Result<Vec<Arc<T>>, WriteError> {
        let mut claimed = Vec::new();
        let mut children = self.children::<T>().await?;
        children.retain(|child| among(child));
        for child in children {
            if selects(&child) {
                claimed.push(child);
            } else if !self.subject.is_deleting() {
                self.let_go(child.as_ref()).await?;
            }
        }
        let mut orphans = self.orphans::<T>().await?;
        orphans.retain(|orphan| {
            orphan.meta().deletion_timestamp.is_none() && among(orphan) && selects(orphan)
        });
        if orphans.is_empty() || !self.may_adopt::<T>().await? {
            return Ok(claimed);
        }
        for orphan in orphans {
            let adopted = self.edit(orphan.as_ref(), |orphan| {
                orphan
                    .meta_mut()
                    .owner_references
                    .get_or_insert_default()
                    .push(self.subject.owner());
            });
            match adopted.await {
                Ok(adopted) => claimed.push(adopted),
                Err(error) if error.code() == Some(404) => {}
                Err(error) => return Err(error),
            }
        }
        claimed.sort_by_cached_key(|child| ObjectKey::of(child.meta()));
        Ok(claimed)
    }

    /// Tells people something about the object that is reconciled.
    pub fn event(&self, event: Event) {
        self.site.recorder.record(self.subject.reference(), event);
    }

    /// Tells people something about another object.
    pub fn event_about<T: Kind>(&self, object: &T, event: Event) {
        self.site.recorder.record(Subject::of(object).reference(), event);
    }

    /// A condition of the object that is reconciled, as it is from now on.
    pub fn condition(
        &self,
        kind: &str,
        status: impl Into<condition::Status>,
        reason: &str,
        message: &str,
    ) -> Condition {
        Condition {
            observed_generation: self.subject.generation(),
            ..condition::new(kind, status, reason, message, self.now())
        }
    }

    async fn send<T: Kind>(
        &self,
        write: Write,
        seen: &T,
        wanted: &T,
    ) -> Result<Arc<T>, WriteError> {
        let key = ObjectKey::of(seen.meta());
        let unwritable =
            |source| WriteError::Unwritable { kind: kind::<T>(), key: key.clone(), source };
        let before = serde_json::to_value(seen).map_err(unwritable)?;
        let after = serde_json::to_value(wanted).map_err(unwritable)?;
        let written = self.site.write_by(self.client(), write, &key, &before, after).await;
        let written: Option<T> = written.map_err(|unsent| match unsent {
            Unsent::Status(source) | Unsent::Object(source) => refused::<T>(&key, source),
        })?;
        let written = match written {
            Some(written) => written,
            None => serde_json::from_value(before).map_err(unwritable)?,
        };
        self.site.informers.expect::<T>(written.meta());
        Ok(Arc::new(written))
    }

    /// Whether the reconciled object is still there and not being deleted, by the server's word:
    /// what it adopts when it is about to go would be lost.
    async fn may_adopt<T: Kind>(&self) -> Result<bool, WriteError> {
        if self.subject.is_deleting() {
            return Ok(false);
        }
        let endpoint = Endpoint::at(self.client(), self.subject.path());
        let live = endpoint.get::<PartialObjectMeta>(self.subject.name()).await;
        match live {
            Ok(live) => Ok(live.metadata.uid.as_deref() == Some(self.subject.uid())
                && live.metadata.deletion_timestamp.is_none()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(source) => {
                let key = ObjectKey::new(self.subject.namespace(), self.subject.name());
                Err(refused::<T>(&key, source))
            }
        }
    }

    /// Ends the control over a child. That it is gone is as good.
    async fn let_go<T: Kind + Clone>(&self, child: &T) -> Result<(), WriteError> {
        let released = self.edit(child, |child| {
            if let Some(owners) = &mut child.meta_mut().owner_references {
                owners.retain(|owner| owner.uid != self.subject.uid());
            }
        });
        match released.await {
            Err(error) if !matches!(error.code(), Some(404 | 422)) => Err(error),
            _ => Ok(()),
        }
    }

    /// The object of this key, as new as what was written of it.
    async fn find<T: Kind>(&self, key: &ObjectKey) -> Result<Option<Arc<T>>, ReadError> {
        let informer = self.informer::<T>()?;
        informer.fresh_of(key).await;
        Ok(informer.get(key)?)
    }

    async fn fresh<T: Kind>(&self) -> Result<&Informer<T>, ReadError> {
        let informer = self.informer::<T>()?;
        informer.fresh().await;
        Ok(informer)
    }

    /// The informer by which the owners of a kind are known.
    async fn owned<T: Kind>(&self) -> Result<&Informer<T>, ReadError> {
        self.informer::<T>()?;
        let owned = self.site.informers.indexed::<T>(CONTROLLER);
        let informer = owned.ok_or_else(|| ReadError::Unowned { kind: kind::<T>() })?;
        informer.fresh().await;
        Ok(informer)
    }

    /// Puts an object where its owner is, if it is nowhere.
    fn place<T: Kind>(&self, object: &mut T) -> Result<(), WriteError> {
        let metadata = object.meta_mut();
        if !is_namespaced::<T>() {
            metadata.namespace = None;
        } else if metadata.namespace.is_none() {
            let name = metadata.name.clone().unwrap_or_default();
            let homeless = || WriteError::Homeless { kind: kind::<T>(), name };
            metadata.namespace = Some(self.subject.namespace().ok_or_else(homeless)?.to_owned());
        }
        Ok(())
    }

    /// Makes the reconciled object the controller of another.
    fn adopt<T: Kind>(&self, child: &mut T) -> Result<(), WriteError> {
        self.place(child)?;
        let key = ObjectKey::of(child.meta());
        if let Some(owner) = self.subject.namespace()
            && key.namespace() != Some(owner)
        {
            let owner = owner.to_owned();
            return Err(WriteError::OutOfReach { kind: kind::<T>(), key, owner });
        }
        let owners = child.meta_mut().owner_references.get_or_insert_default();
        owners.retain(|owner| owner.uid != self.subject.uid());
        owners.push(self.subject.owner());
        Ok(())
    }

    /// Refuses to take an object from another controller.
    fn may_have<T: Kind>(&self, wanted: &ObjectMeta, live: &T) -> Result<(), WriteError> {
        let controller = |metadata: &ObjectMeta| {
            let mut owners = metadata.owner_references.iter().flatten();
            owners.find(|owner| owner.controller == Some(true)).cloned()
        };
        match (controller(wanted), controller(live.meta())) {
            (Some(wanted), Some(found)) if wanted.uid != found.uid => Err(WriteError::Taken {
                kind: kind::<T>(),
                key: ObjectKey::of(live.meta()),
                owner: format!("{} {}", found.kind, found.name),
            }),
            _ => Ok(()),
        }
    }

    fn is_idle<T: Kind>(&self, key: &ObjectKey, hash: u64, live: &T) -> bool {
        let idle = self.site.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.get(&(TypeId::of::<T>(), key.clone())).is_some_and(|(known, version)| {
            *known == hash && live.meta().resource_version.as_ref() == Some(version)
        })
    }

    fn note_idle<T: Kind>(&self, key: &ObjectKey, hash: u64, live: &T) {
        let version = live.meta().resource_version.clone().unwrap_or_default();
        let mut idle = self.site.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.insert((TypeId::of::<T>(), key.clone()), (hash, version));
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.subject).finish()
    }
}

impl Informers {
    pub(crate) fn insert<T: Object>(&mut self, scope: Scope, informer: Informer<T>) {
        let entry = self.0.entry(TypeId::of::<T>());
        let declared = entry.or_insert_with(|| Box::new(Declared::<T>(Vec::new())));
        let Some(Declared(all)) = declared.downcast_mut::<Declared<T>>() else { return };
        if all.iter().all(|(known, _)| *known != scope) {
            let at = all.iter().position(|(known, _)| known.is_within(&scope));
            all.insert(at.unwrap_or(all.len()), (scope, informer));
        }
    }

    /// The one whose scope is widest.
    pub(crate) fn get<T: Object>(&self) -> Option<&Informer<T>> {
        self.all::<T>().first().map(|(_, informer)| informer)
    }

    /// The widest of those that have an index.
    fn indexed<T: Object>(&self, index: &str) -> Option<&Informer<T>> {
        let mut informers = self.all::<T>().iter().map(|(_, informer)| informer);
        informers.find(|informer| informer.has_index(index))
    }

    /// Lets objects of a kind be found, wherever they are looked at. What an informer has already it
    /// has from the same controller, which may be run again.
    pub(crate) fn index<T: Object>(
        &self,
        name: &str,
        values: impl Fn(&T) -> Vec<String> + Clone + Send + Sync + 'static,
    ) {
        for (_, informer) in self.all::<T>() {
            if !informer.has_index(name) {
                informer.index(name, values.clone());
            }
        }
    }

    /// Takes note that an object was written. What is selected is expected only where it is sure to
    /// be seen: whoever waited for another would do so in vain.
    pub(crate) fn expect<T: Object>(&self, written: &ObjectMeta) {
        let key = ObjectKey::of(written);
        for (at, (scope, informer)) in self.all::<T>().iter().enumerate() {
            let is_selected = scope.labels.is_some() || scope.fields.is_some();
            if at == 0 || !is_selected || informer.has(&key) {
                informer.expect(written);
            }
        }
    }

    fn expect_gone<T: Object>(&self, deleted: &ObjectMeta) {
        self.all::<T>().iter().for_each(|(_, informer)| informer.expect_gone(deleted));
    }

    fn all<T: Object>(&self) -> &[(Scope, Informer<T>)] {
        let declared = self.0.get(&TypeId::of::<T>());
        let declared = declared.and_then(|declared| declared.downcast_ref::<Declared<T>>());
        declared.map(|Declared(all)| all.as_slice()).unwrap_or_default()
    }
}

/// What an index of a controller's own is called: others may have one of the same name in the same
/// informer.
pub(crate) fn index(controller: &str, name: &str) -> String {
    format!("{controller}/{name}")
}

/// What stands in the index of controllers for those that have none.
pub(crate) fn orphans(namespace: Option<&str>) -> String {
    format!("orphans/{}", namespace.unwrap_or_default())
}

pub(crate) fn is_namespaced<T: Resource<DynamicType = (), Scope: 'static>>() -> bool {
    TypeId::of::<T::Scope>() == TypeId::of::<NamespaceResourceScope>()
}

fn kind<T: Resource<DynamicType = ()>>() -> String {
    T::kind(&()).into_owned()
}

fn refused<T: Kind>(key: &ObjectKey, source: kube::Error) -> WriteError {
    WriteError::Refused { kind: kind::<T>(), key: key.clone(), source }
}

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}
