//! Which changes matter.
//!
//! A predicate compares an object with what it was before. That an object came or went always
//! matters, so no predicate is asked about it.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kubewright::predicate::{self, Predicate};
//!
//! let matters: Predicate<Pod> = predicate::generation().or(predicate::labels());
//! let mut old = Pod::default();
//! old.metadata.generation = Some(1);
//! let mut new = old.clone();
//! new.metadata.annotations.get_or_insert_default().insert("seen".into(), "yes".into());
//! assert!(!matters.holds(&old, &new));
//! new.metadata.generation = Some(2);
//! assert!(matters.holds(&old, &new));
//! ```

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kube::Resource;

/// Whether a change of an object matters.
pub struct Predicate<K>(Arc<Compare<K>>);

type Compare<K> = dyn Fn(&K, &K) -> bool + Send + Sync;

/// The generation, which counts changes of what is wanted; not those of status or metadata. Kinds
/// that do not count it change always.
pub fn generation<K: Resource + 'static>() -> Predicate<K> {
    Predicate::new(|old: &K, new: &K| {
        let (old, new) = (old.meta(), new.meta());
        old.generation != new.generation
            || new.generation.is_none()
            || old.deletion_timestamp.is_some() != new.deletion_timestamp.is_some()
    })
}

pub fn labels<K: Resource + 'static>() -> Predicate<K> {
    Predicate::new(|old: &K, new: &K| old.meta().labels != new.meta().labels)
}

pub fn annotations<K: Resource + 'static>() -> Predicate<K> {
    Predicate::new(|old: &K, new: &K| old.meta().annotations != new.meta().annotations)
}

/// The version. It stays the same when everything is listed again, or a resync has an object looked
/// at; of other changes all matter.
pub fn resource_version<K: Resource + 'static>() -> Predicate<K> {
    Predicate::new(|old: &K, new: &K| old.meta().resource_version != new.meta().resource_version)
}

impl<K: 'static> Predicate<K> {
    /// Is given the object as it was and as it is.
    pub fn new(holds: impl Fn(&K, &K) -> bool + Send + Sync + 'static) -> Self {
        Predicate(Arc::new(holds))
    }

    pub fn holds(&self, old: &K, new: &K) -> bool {
        (self.0)(old, new)
    }

    pub fn or(self, other: Predicate<K>) -> Self {
        Predicate::new(move |old, new| self.holds(old, new) || other.holds(old, new))
    }

    pub fn and(self, other: Predicate<K>) -> Self {
        Predicate::new(move |old, new| self.holds(old, new) && other.holds(old, new))
    }
}

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        Predicate(Arc::clone(&self.0))
    }
}

impl<K: 'static> std::ops::Not for Predicate<K> {
    type Output = Self;

    fn not(self) -> Self {
        Predicate::new(move |old, new| !self.holds(old, new))
    }
}
