//! What a controller looks at besides its own kind.

use std::marker::PhantomData;
use std::sync::Arc;

use kube::Resource;

use super::{Surroundings, scope};
use crate::cache::Cache;
use crate::context::{CONTROLLER, Informers, Kind, orphans};
use crate::control_loop::ControlLoop;
use crate::informer::{Change, Informer, Scope};
use crate::key::ObjectKey;

/// A kind that a controller looks at.
pub(super) trait Watch<K: Kind>: Send + Sync {
    /// Says what must be kept of objects, before anybody looks at them.
    fn prepare(&self, cache: &Cache) {
        let _ = cache;
    }

    /// Begins to look at it.
    fn inform(&self, around: &Surroundings, informers: &mut Informers);

    /// Has changes lead to reconciles.
    fn listen(&self, control: ControlLoop<K>, informers: &Informers) -> ControlLoop<K> {
        let _ = informers;
        control
    }
}

/// Children.
pub(super) struct Owned<T>(PhantomData<fn() -> T>);

/// What is only read.
pub(super) struct Read<T>(PhantomData<fn() -> T>);

/// What stands for other objects.
pub(super) struct Watched<T> {
    /// Which objects, besides what the operator looks at.
    among: Scope,
    map: Arc<Map<T>>,
}

/// What matters to some of the controller's own objects.
pub(super) struct Related<K, T>(Arc<Relation<K, T>>);

type Relation<K, T> = dyn Fn(&Change<T>, &K) -> bool + Send + Sync;

type Map<T> = dyn Fn(&T) -> Vec<ObjectKey> + Send + Sync;

impl<T> Default for Owned<T> {
    fn default() -> Self {
        Owned(PhantomData)
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
        map: impl Fn(&T) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        Watched { among, map: Arc::new(map) }
    }
}

impl<K: Kind, T: Kind> Watch<K> for Owned<T> {
    /// By them it is told whether a child is as it should be.
    fn prepare(&self, cache: &Cache) {
        cache.keep_managed_fields::<T>();
    }

    fn inform(&self, around: &Surroundings, informers: &mut Informers) {
        let informer = around.cache.informer::<T>(&scope::<T>(around));
        informer.index(CONTROLLER, controller_uid);
        informers.insert(informer);
    }

    fn listen(&self, control: ControlLoop<K>, informers: &Informers) -> ControlLoop<K> {
        control.owns(informer::<T>(informers))
    }
}

impl<K: Kind, T: Kind> Watch<K> for Read<T> {
    fn inform(&self, around: &Surroundings, informers: &mut Informers) {
        informers.insert(around.cache.informer::<T>(&scope::<T>(around)));
    }
}

impl<K: Kind, T: Kind> Watch<K> for Watched<T> {
    fn inform(&self, around: &Surroundings, informers: &mut Informers) {
        let mut among = self.among.clone();
        if among.namespaces.is_empty() {
            among.namespaces = scope::<T>(around).namespaces;
        }
        informers.insert(around.cache.informer::<T>(&among));
    }

    fn listen(&self, control: ControlLoop<K>, informers: &Informers) -> ControlLoop<K> {
        let map = Arc::clone(&self.map);
        control.watches(informer::<T>(informers), move |object| map(object))
    }
}

impl<K, T> Related<K, T> {
    pub(super) fn new(matters: impl Fn(&Change<T>, &K) -> bool + Send + Sync + 'static) -> Self {
        Related(Arc::new(matters))
    }
}

impl<K: Kind, T: Kind> Watch<K> for Related<K, T> {
    fn inform(&self, around: &Surroundings, informers: &mut Informers) {
        let informer = around.cache.informer::<T>(&scope::<T>(around));
        informer.index(CONTROLLER, controller_uid);
        informers.insert(informer);
    }

    fn listen(&self, control: ControlLoop<K>, informers: &Informers) -> ControlLoop<K> {
        let matters = Arc::clone(&self.0);
        control.depends_on(informer::<T>(informers), move |change, own| matters(change, own))
    }
}

fn informer<T: Kind>(informers: &Informers) -> &Informer<T> {
    informers.get().expect("it was put there before anybody listens")
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
