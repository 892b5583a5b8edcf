//! Which sites use which Secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use kube::api::ObjectMeta;
use kubewright::ObjectKey;

/// The Secrets that sites are known to use. A clone is another handle on the same ones.
///
/// A site is looked at when the operator begins, so none is missing for longer than that.
#[derive(Debug, Clone, Default)]
pub(crate) struct References(Arc<Mutex<BTreeMap<ObjectKey, BTreeSet<ObjectKey>>>>);

impl References {
    /// Takes note that a site uses this Secret, and no other.
    pub(crate) fn set(&self, site: &ObjectKey, secret: Option<ObjectKey>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, sites| {
            sites.remove(site);
            !sites.is_empty()
        });
        if let Some(secret) = secret {
            known.entry(secret).or_default().insert(site.clone());
        }
    }

    /// The sites that use a Secret.
    pub(crate) fn of(&self, secret: &ObjectMeta) -> Vec<ObjectKey> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&ObjectKey::of(secret)).into_iter().flatten().cloned().collect()
    }
}
