//! Which versions of objects reconciles themselves have made.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::api::ObjectMeta;

use crate::key::ObjectKey;
use crate::queue::Causes;

/// The version that each object was left in by its last reconcile. To see it come back is no
/// reason to reconcile the object again.
#[derive(Debug, Default)]
pub(crate) struct Writes(Mutex<HashMap<ObjectKey, Box<str>>>);

impl Writes {
    pub(crate) fn note(&self, key: &ObjectKey, version: &str) {
        self.versions().insert(key.clone(), version.into());
    }

    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.versions().remove(key);
    }

    /// Whether an object is as a reconcile left it.
    pub(super) fn made(&self, key: &ObjectKey, metadata: &ObjectMeta) -> bool {
        let versions = self.versions();
        versions
            .get(key)
            .is_some_and(|version| metadata.resource_version.as_deref() == Some(version))
    }

    /// Whether all that happened to an object while it was reconciled is what the reconcile did.
    pub(super) fn explain(&self, key: &ObjectKey, source: &str, causes: &Causes) -> bool {
        let versions = self.versions();
        let Some(version) = versions.get(key) else { return false };
        let is_own = |cause: &crate::queue::Cause| {
            &*cause.source == source && *cause.object == *key.as_str() && cause.revision == *version
        };
        causes.more() == 0 && causes.iter().next().is_some() && causes.iter().all(is_own)
    }

    fn versions(&self) -> MutexGuard<'_, HashMap<ObjectKey, Box<str>>> {
        // Nothing that holds it panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
