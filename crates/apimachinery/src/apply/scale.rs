//! Ownership of the number of replicas, carried between a resource and its `/scale`.
//!
//! A write to `/scale` is tracked on the small object it shows, in which only `spec.replicas` can
//! be owned. The parent's entries are narrowed to that field before, and what came of them is
//! folded back after.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::managed::{Entry, Identity, Managed, ManagedFieldsError};
use super::path::PathElement;
use super::set::Set;

/// Where each version of the parent keeps its replicas; `None` for a version without scale.
pub type ReplicasPaths = BTreeMap<String, Option<Vec<PathElement>>>;

const SCALE_VERSION: &str = "autoscaling/v1";

/// The managed fields of `/scale`, from those of its parent.
///
/// # Errors
/// When the parent's entries cannot be read.
pub fn scale_from_parent(
    parent: &[Value],
    paths: &ReplicasPaths,
) -> Result<Vec<Value>, ManagedFieldsError> {
    let mut managed = Managed::read(parent)?;
    managed.entries.retain(|_, entry| {
        let owns_replicas = paths
            .get(&entry.api_version)
            .is_some_and(|path| path.as_ref().is_some_and(|path| entry.set.contains(path)));
        entry.api_version = SCALE_VERSION.to_owned();
        entry.set = set_of(&replicas_path());
        owns_replicas
    });
    Ok(managed.write())
}

/// The managed fields of the parent after a write to `/scale` through the parent's `api_version`,
/// from those it had and those that `/scale` came out with.
///
/// # Errors
/// When either side's entries cannot be read.
pub fn scale_to_parent(
    parent: &[Value],
    scale: &[Value],
    api_version: &str,
    paths: &ReplicasPaths,
) -> Result<Vec<Value>, ManagedFieldsError> {
    let (before, mut scale) = (Managed::read(parent)?, Managed::read(scale)?);
    // An updater's entry in the scale is of the scale's version, and so never the parent's; an
    // applier's is the same in both.
    let times: BTreeMap<Identity, Option<Timestamp>> =
        before.entries.iter().map(|(identity, entry)| (identity.clone(), entry.time)).collect();
    let mut after = Managed::default();
    for (identity, mut entry) in before.entries {
        // Entries of unknown versions are dropped.
        let Some(path) = paths.get(&entry.api_version) else { continue };
        if let Some(path) = path.as_ref().filter(|path| entry.set.contains(path))
            && scale.entries.remove(&identity).is_none()
        {
            entry.set = entry.set.difference(&set_of(path));
        }
        if !entry.set.is_empty() {
            after.entries.insert(identity, entry);
        }
    }
    let path = paths.get(api_version).cloned().flatten().unwrap_or_default();
    for (identity, entry) in scale.entries {
        if entry.set.contains(&replicas_path()) {
            // The time of the write is lost on the way, as it is upstream: only the parent's count.
            let time = times.get(&identity).copied().flatten();
            let entry =
                Entry { api_version: api_version.to_owned(), set: set_of(&path), time, ..entry };
            after.entries.insert(identity, entry);
        }
    }
    Ok(after.write())
}

fn replicas_path() -> [PathElement; 2] {
    [PathElement::field("spec"), PathElement::field("replicas")]
}

fn set_of(path: &[PathElement]) -> Set {
    let mut set = Set::new();
    set.insert(path.iter().cloned());
    set
}
