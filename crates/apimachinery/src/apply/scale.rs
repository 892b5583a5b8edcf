//! Ownership of the number of replicas, carried between a resource and its `/scale`.
//!
//! A write to `/scale` is tracked on the small object it shows, in which only `spec.replicas` can
//! be owned. The parent's entries are narrowed to that field before, and what came of them is
//! folded back after.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::managed::{Entry, Managed, ManagedFieldsError};
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
    managed.entries.retain_mut(|entry| {
        let owns_replicas = paths
            .get(&entry.api_version)
            .is_some_and(|path| path.as_ref().is_some_and(|path| entry.set.contains(path)));
        entry.api_version = SCALE_VERSION.to_owned();
        entry.set = replicas_in_scale();
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
    let times: BTreeMap<String, Option<Timestamp>> =
        before.entries.iter().map(|entry| (identity(entry), entry.time)).collect();
    let mut after = Managed::default();
    for mut entry in before.entries {
        // Entries of unknown versions are dropped.
        let Some(path) = paths.get(&entry.api_version) else { continue };
        let path = path.as_ref().filter(|path| entry.set.contains(path));
        if let Some(path) = path {
            match scale.entries.iter().position(|scaled| identity(scaled) == identity(&entry)) {
                Some(kept) => drop(scale.entries.remove(kept)),
                None => {
                    let mut replicas = Set::new();
                    replicas.insert(path.iter().cloned());
                    entry.set = entry.set.difference(&replicas);
                }
            }
        }
        if !entry.set.is_empty() {
            after.entries.push(entry);
        }
    }
    let path = paths.get(api_version).cloned().flatten().unwrap_or_default();
    for entry in scale.entries.into_iter().filter(|entry| entry.set.contains(&replicas_path())) {
        let mut set = Set::new();
        set.insert(path.iter().cloned());
        // The time of the write is lost on the way, as it is upstream: only the parent's count.
        let time = times.get(&identity(&entry)).copied().flatten();
        after.entries.retain(|other| identity(other) != identity(&entry));
        after.entries.push(Entry { api_version: api_version.to_owned(), set, time, ..entry });
    }
    Ok(after.write())
}

/// An updater's entry in the scale is of the scale's version, and so never the parent's; an
/// applier's is the same in both.
fn identity(entry: &Entry) -> String {
    entry.owner.identity(&entry.api_version)
}

fn replicas_path() -> [PathElement; 2] {
    [PathElement::field("spec"), PathElement::field("replicas")]
}

fn replicas_in_scale() -> Set {
    let mut set = Set::new();
    set.insert(replicas_path());
    set
}
