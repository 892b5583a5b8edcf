//! What a reconcile can look at and do.
//!
//! Kinds are read from the cache, and only those that the controller has declared: what it may do
//! in a cluster is rendered from the same declarations. A read sees all that was written through
//! the context before it.

mod subject;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, ObjectMeta, Preconditions};
use kube::{Client, Resource};
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::subject::Subject;
use crate::apply::{self, settled};
use crate::clock::Clock;
use crate::condition;
use crate::endpoint::Endpoint;
use crate::event::{Event, Recorder};
use crate::informer::{Informer, NotReady, Object};
use crate::key::ObjectKey;

/// The index by which the objects that something controls are found.
pub(crate) const CONTROLLER: &str = "controller";

/// What a kind must be to be written.
pub trait Kind: Object + Resource<DynamicType = (), Scope: 'static> + Serialize {}

impl<K: Object + Resource<DynamicType = (), Scope: 'static> + Serialize> Kind for K {}

/// What the reconcile of one object can look at and do.
pub struct Context {
    site: Arc<Site>,
    subject: Subject,
}

/// What all reconciles of a controller have in common.
pub(crate) struct Site {
    pub(crate) client: Client,
    /// Who sets fields.
    pub(crate) manager: Arc<str>,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) informers: Informers,
    /// What the server found nothing to change in, though it looked different: the hash of what
    /// was applied, and the version it was applied to.
    pub(crate) idle: Mutex<HashMap<(TypeId, ObjectKey), (u64, String)>>,
}

/// The informers of the kinds that a controller has declared.
#[derive(Default)]
pub(crate) struct Informers(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

/// Why a kind cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(
        "{kind} is not declared: say `.reads::<{kind}>()` or `.owns::<{kind}>()` of the controller"
    )]
    Undeclared { kind: String },
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

impl Context {
    pub(crate) fn new(site: &Arc<Site>, object: &impl Resource<DynamicType = ()>) -> Self {
        Context { site: Arc::clone(site), subject: Subject::of(object) }
    }

    /// The client, for what is not offered here.
    pub fn client(&self) -> &Client {
        &self.site.client
    }

    pub fn now(&self) -> Timestamp {
        self.site.clock.now()
    }

    /// An object, if it is there. Without a namespace, one beside the object that is reconciled.
    pub async fn get<T: Kind>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Arc<T>>, ReadError> {
        let informer = self.fresh::<T>().await?;
        let namespace = namespace.or(self.subject.namespace()).filter(|_| is_namespaced::<T>());
        Ok(informer.get(&ObjectKey::new(namespace, name))?)
    }

    /// All objects of a kind that there are, in the order of their keys.
    pub async fn list<T: Kind>(&self) -> Result<Vec<Arc<T>>, ReadError> {
        Ok(self.fresh::<T>().await?.list()?)
    }

    /// The objects of an owned kind that the reconciled object controls.
    pub async fn children<T: Kind>(&self) -> Result<Vec<Arc<T>>, ReadError> {
        Ok(self.fresh::<T>().await?.by_index(CONTROLLER, self.subject.uid())?)
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
        let live = self.fresh::<T>().await?.get(&key).map_err(ReadError::from)?;
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
        let endpoint = Endpoint::of::<T>(&self.site.client, key.namespace());
        let applied: T = endpoint
            .apply(key.name(), &self.site.manager, &wanted)
            .await
            .map_err(|source| refused::<T>(&key, source))?;
        if let Some(live) = live
            && live.meta().resource_version == applied.meta().resource_version
        {
            self.note_idle(&key, hash, &applied);
        }
        self.informer::<T>()?.expect(applied.meta());
        Ok(Arc::new(applied))
    }

    /// Makes a child whose name the server completes (`generateName`), or that must be new.
    pub async fn create<T: Kind>(&self, mut child: T) -> Result<Arc<T>, WriteError> {
        self.adopt(&mut child)?;
        self.place(&mut child)?;
        let key = ObjectKey::of(child.meta());
        let endpoint = Endpoint::of::<T>(&self.site.client, key.namespace());
        let created = endpoint.create(&child).await;
        let created: T = created.map_err(|source| refused::<T>(&key, source))?;
        self.informer::<T>()?.expect(created.meta());
        Ok(Arc::new(created))
    }

    /// Deletes an object, if it is still the one that was seen. That it is gone is as good.
    pub async fn delete<T: Kind>(&self, object: &T) -> Result<(), WriteError> {
        let (metadata, key) = (object.meta(), ObjectKey::of(object.meta()));
        let preconditions = Preconditions { uid: metadata.uid.clone(), ..Preconditions::default() };
        let params = DeleteParams::background().preconditions(preconditions);
        let endpoint = Endpoint::of::<T>(&self.site.client, key.namespace());
        match endpoint.delete(key.name(), &params).await {
            Ok(()) => {
                self.informer::<T>()?.expect_gone(metadata);
                Ok(())
            }
            // Gone; or another one of the same name.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(source) => Err(refused::<T>(&key, source)),
        }
    }

    /// Tells people something about the object that is reconciled.
    pub fn event(&self, event: Event) {
        self.site.recorder.record(self.subject.reference(), event);
    }

    /// A condition of the object that is reconciled, as it is from now on.
    pub fn condition(&self, kind: &str, status: bool, reason: &str, message: &str) -> Condition {
        Condition {
            observed_generation: self.subject.generation(),
            ..condition::new(kind, status, reason, message, self.now())
        }
    }

    async fn fresh<T: Kind>(&self) -> Result<&Informer<T>, ReadError> {
        let informer = self.informer::<T>()?;
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
    pub(crate) fn insert<T: Object>(&mut self, informer: Informer<T>) {
        self.0.insert(TypeId::of::<T>(), Box::new(informer));
    }

    pub(crate) fn get<T: Object>(&self) -> Option<&Informer<T>> {
        self.0.get(&TypeId::of::<T>()).and_then(|informer| informer.downcast_ref())
    }
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
