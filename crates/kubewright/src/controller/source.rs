//! What a controller looks at besides its own kind.

use std::marker::PhantomData;
use std::sync::Arc;

use kube::Resource;

use super::{Surroundings, scope};
use crate::cache::Cache;
use crate::context::{CONTROLLER, Informers, Kind};
use crate::control_loop::ControlLoop;
use crate::informer::Informer;
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
pub(super) struct Watched<T>(Arc<Map<T>>);

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
    pub(super) fn new(map: impl Fn(&T) -> Vec<ObjectKey> + Send + Sync + 'static) -> Self {
        Watched(Arc::new(map))
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
        informers.insert(around.cache.informer::<T>(&scope::<T>(around)));
    }

    fn listen(&self, control: ControlLoop<K>, informers: &Informers) -> ControlLoop<K> {
        let map = Arc::clone(&self.0);
        control.watches(informer::<T>(informers), move |object| map(object))
    }
}

fn informer<T: Kind>(informers: &Informers) -> &Informer<T> {
    informers.get().expect("it was put there before anybody listens")
}

/// The uid of an object's controller.
fn controller_uid(object: &impl Resource) -> Vec<String> {
    let owners = object.meta().owner_references.iter().flatten();
    owners.filter(|owner| owner.controller == Some(true)).map(|owner| owner.uid.clone()).collect()
}
