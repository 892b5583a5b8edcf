//! What a controller looks at besides its own kind.

use std::marker::PhantomData;
use std::sync::Arc;

use kube::Resource;
use kube::core::PartialObjectMeta;

use super::{Surroundings, scope};
use crate::cache::Cache;
use crate::context::{CONTROLLER, Informers, Kind, orphans};
use crate::control_loop::ControlLoop;
use crate::informer::{Change, Informer, Scope};
use crate::key::ObjectKey;
use crate::predicate::Predicate;

/// A kind that a controller looks at.
pub(super) trait Watch<K: Kind>: Send + Sync {
    /// Says what must be kept of objects, and whether the kind is waited for, before anybody looks.
    fn prepare(&self, cache: &Cache);

    /// Begins to look at it. Gives what has its changes lead to reconciles, if they do.
    fn inform(&self, around: &Surroundings, informers: &mut Informers) -> Option<Listen<K>>;
}

/// Lets a control loop listen to what a controller looks at. Each has the informer of its own
/// declaration: a kind can be declared twice, in different scopes.
pub(super) type Listen<K> = Box<dyn Fn(ControlLoop<K>) -> ControlLoop<K> + Send + Sync>;

/// Children, and which of their changes matter.
pub(super) struct Owned<T> {
    predicate: Option<Predicate<T>>,
    is_needed: bool,
}

/// What is only read.
pub(super) struct Read<T>(PhantomData<fn() -> T>);

/// What stands for other objects.
pub(super) struct Watched<T> {
    /// Which objects, besides what the operator looks at.
    among: Scope,
    /// Which of their changes matter.
    predicate: Option<Predicate<T>>,
    map: Arc<Map<T>>,
    is_needed: bool,
}

/// The same of which only metadata is looked at.
pub(super) struct Outlined<T>(Arc<Map<PartialObjectMeta<T>>>);

/// What matters to some of the controller's own objects.
pub(super) struct Related<K, T>(Arc<Relation<K, T>>);

type Relation<K, T> = dyn Fn(&Change<T>, &K) -> bool + Send + Sync;

type Map<T> = dyn Fn(&T) -> Vec<ObjectKey> + Send + Sync;

impl<T> Owned<T> {
    pub(super) fn new(predicate: Option<Predicate<T>>) -> Self {
        Owned { predicate, is_needed: true }
    }

    /// Of a kind that need not be served.
    pub(super) fn if_served() -> Self {
        Owned { predicate: None, is_needed: false }
    }
}

impl<T> Default for Read<T> {
    fn default() -> Self {
        Read(PhantomData)
    }
}

impl<T> Watched<T> {
    pub(super) fn new(
        among: Scope,
        predicate: Option<Predicate<T>>,
        map: impl Fn(&T) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        Watched { among, predicate, map: Arc::new(map), is_needed: true }
    }

    /// Of a kind that need not be served.
    pub(super) fn if_served(map: impl Fn(&T) -> Vec<ObjectKey> + Send + Sync + 'static) -> Self {
        Watched { is_needed: false, ..Watched::new(Scope::default(), None, map) }
    }
}

impl<T> Outlined<T> {
    pub(super) fn new(
        map: impl Fn(&PartialObjectMeta<T>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        Outlined(Arc::new(map))
    }
}

impl<K: Kind, T: Kind> Watch<K> for Owned<T> {
    /// By them it is told whether a child is as it should be.
    fn prepare(&self, cache: &Cache) {
        cache.keep_managed_fields::<T>();
        cache.declare::<T>(self.is_needed);
    }

    fn inform(&self, around: &Surroundings, informers: &mut Informers) -> Option<Listen<K>> {
        let children = look::<T>(around, scope::<T>(around), informers);
        children.index(CONTROLLER, controller_uid);
        let (predicate, is_needed) = (self.predicate.clone(), self.is_needed);
        Some(Box::new(move |control: ControlLoop<K>| match &predicate {
            Some(predicate) => control.owns_when(&children, predicate.clone()),
            None if is_needed => control.owns(&children),
            None => control.owns_if_served(&children),
        }))
    }
}

impl<K: Kind, T: Kind> Watch<K> for Read<T> {
    fn prepare(&self, cache: &Cache) {
        cache.declare::<T>(true);
    }

    fn inform(&self, around: &Surroundings, informers: &mut Informers) -> Option<Listen<K>> {
        look::<T>(around, scope::<T>(around), informers);
        None
    }
}

impl<K: Kind, T: Kind> Watch<K> for Watched<T> {
    fn prepare(&self, cache: &Cache) {
        cache.declare::<T>(self.is_needed);
    }

    fn inform(&self, around: &Surroundings, informers: &mut Informers) -> Option<Listen<K>> {
        let mut among = self.among.clone();
        if among.namespaces.is_empty() {
            among.namespaces = scope::<T>(around).namespaces;
        }
        let others = look::<T>(around, among, informers);
        let (predicate, map) = (self.predicate.clone(), Arc::clone(&self.map));
        let is_needed = self.is_needed;
        Some(Box::new(move |control: ControlLoop<K>| {
            let map = Arc::clone(&map);
            let map = move |object: &T| map(object);
            match &predicate {
                Some(predicate) => control.watches_when(&others, predicate.clone(), map),
                None if is_needed => control.watches(&others, map),
                None => control.watches_if_served(&others, map),
            }
        }))
    }
}

impl<K, T> Watch<K> for Outlined<T>
where
    K: Kind,
    T: Resource<DynamicType = (), Scope: 'static> + Send + Sync + 'static,
{
    fn prepare(&self, cache: &Cache) {
        cache.declare::<PartialObjectMeta<T>>(true);
    }

    fn inform(&self, around: &Surroundings, informers: &mut Informers) -> Option<Listen<K>> {
        let scope = scope::<PartialObjectMeta<T>>(around);
        let others = around.cache.metadata::<T>(&scope);
        informers.insert(scope, others.clone());
        let map = Arc::clone(&self.0);
        Some(Box::new(move |control: ControlLoop<K>| {
            let map = Arc::clone(&map);
            control.watches(&others, move |object| map(object))
        }))
    }
}

impl<K, T> Related<K, T> {
    pub(super) fn new(matters: impl Fn(&Change<T>, &K) -> bool + Send + Sync + 'static) -> Self {
        Related(Arc::new(matters))
    }
}

impl<K: Kind, T: Kind> Watch<K> for Related<K, T> {
    fn prepare(&self, cache: &Cache) {
        cache.declare::<T>(true);
    }

    fn inform(&self, around: &Surroundings, informers: &mut Informers) -> Option<Listen<K>> {
        let others = look::<T>(around, scope::<T>(around), informers);
        others.index(CONTROLLER, controller_uid);
        let matters = Arc::clone(&self.0);
        Some(Box::new(move |control: ControlLoop<K>| {
            let matters = Arc::clone(&matters);
            control.depends_on(&others, move |change, own| matters(change, own))
        }))
    }
}

/// Begins to look at a kind, and lets reconciles read it.
fn look<T: Kind>(around: &Surroundings, scope: Scope, informers: &mut Informers) -> Informer<T> {
    let informer = around.cache.informer::<T>(&scope);
    informers.insert(scope, informer.clone());
    informer
}

/// The uid of an object's controller, or that it is one of its namespace's orphans.
fn controller_uid(object: &impl Resource) -> Vec<String> {
    let metadata = object.meta();
    let mut owners = metadata.owner_references.iter().flatten();
    let uid = match owners.find(|owner| owner.controller == Some(true)) {
        Some(controller) => controller.uid.clone(),
        None => orphans(metadata.namespace.as_deref()),
    };
    vec![uid]
}
