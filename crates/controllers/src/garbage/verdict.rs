//! Whether an object is garbage.

#[cfg(test)]
mod tests;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ObjectMeta, PropagationPolicy};

use super::graph::{Node, Uid};
use super::{FOREGROUND, ORPHAN, holds};

/// What has become of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// There, and to stay.
    Solid,
    /// There, deleted, and waiting for what it owns.
    Waiting,
    Absent,
}

/// What to do with an object.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Keep,
    /// It stays, without these owners.
    Release(Vec<Uid>),
    /// Let it block no owner, then look again: it is part of a circle whose members would wait for
    /// each other.
    Unblock,
    Delete(PropagationPolicy),
}

/// Judges an object by its owners, which come in the order of its references, and by what it owns.
pub(super) fn judge(live: &ObjectMeta, owners: &[Owner], dependents: &[Node]) -> Verdict {
    let references = live.owner_references.as_deref().unwrap_or_default();
    if references.is_empty() {
        return Verdict::Keep;
    }
    if owners.contains(&Owner::Solid) {
        let others = references.iter().zip(owners).filter(|(_, owner)| **owner != Owner::Solid);
        let others: Vec<Uid> = others.map(|(reference, _)| reference.uid.clone()).collect();
        return if others.is_empty() { Verdict::Keep } else { Verdict::Release(others) };
    }
    if owners.contains(&Owner::Waiting) && !dependents.is_empty() {
        let circle = dependents.iter().any(Node::waits_for_dependents);
        let blocks = |reference: &OwnerReference| reference.block_owner_deletion == Some(true);
        return match circle && references.iter().any(blocks) {
            true => Verdict::Unblock,
            false => Verdict::Delete(PropagationPolicy::Foreground),
        };
    }
    // What was asked for before still holds.
    Verdict::Delete(if holds(live, ORPHAN) {
        PropagationPolicy::Orphan
    } else if holds(live, FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    })
}
