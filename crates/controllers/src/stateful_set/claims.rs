//! Who owns the claims of a StatefulSet's pods, and so what they go with: with the set, with the pod
//! of a number that is not wanted any more, or with nobody.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;

const DELETE: &str = "Delete";

/// What is to become of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retention {
    /// Whether they go with the set.
    pub(super) deleted: bool,
    /// Whether they go with pods that are too many.
    pub(super) scaled: bool,
}

impl Retention {
    pub(super) fn of(set: &StatefulSet) -> Self {
        let policy = set.spec.as_ref();
        let policy = policy.and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
        let deletes = |when: Option<&String>| when.is_some_and(|when| when == DELETE);
        Retention {
            deleted: deletes(policy.and_then(|policy| policy.when_deleted.as_ref())),
            scaled: deletes(policy.and_then(|policy| policy.when_scaled.as_ref())),
        }
    }
}

/// What is to be done about the owners of a claim.
#[derive(Debug, PartialEq)]
pub(super) enum Owners {
    Right,
    /// They should be these.
    Wrong(Vec<OwnerReference>),
}

/// Whether a claim belongs to another of the same name, which was there before.
pub(super) fn is_stale(claim: &PersistentVolumeClaim, owner: &ObjectMeta, kind: &Kind) -> bool {
    let reference = owners(claim).iter().find(|known| kind.is(known, owner));
    reference.is_some_and(|known| Some(known.uid.as_str()) != owner.uid.as_deref())
}

/// The kind of an owner.
pub(super) struct Kind {
    api_version: &'static str,
    kind: &'static str,
}

pub(super) const SET: Kind = Kind { api_version: "apps/v1", kind: "StatefulSet" };
pub(super) const POD: Kind = Kind { api_version: "v1", kind: "Pod" };

impl Kind {
    fn is(&self, reference: &OwnerReference, owner: &ObjectMeta) -> bool {
        reference.api_version == self.api_version
            && reference.kind == self.kind
            && Some(reference.name.as_str()) == owner.name.as_deref()
    }

    fn reference(&self, owner: &ObjectMeta) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version.to_owned(),
            kind: self.kind.to_owned(),
            name: owner.name.clone().unwrap_or_default(),
            uid: owner.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// Whether another controller has the claim, so that the policy is not for it.
pub(super) fn has_other_controller(
    claim: &PersistentVolumeClaim,
    set: &StatefulSet,
    pod: &Pod,
) -> bool {
    let retention = Retention::of(set);
    if !retention.deleted && !retention.scaled {
        return false;
    }
    owners(claim).iter().any(|known| {
        let own = [(&SET, &set.metadata), (&POD, &pod.metadata)];
        match own.iter().find(|(kind, owner)| kind.is(known, owner)) {
            Some((_, owner)) => Some(known.uid.as_str()) != owner.uid.as_deref(),
            None => known.controller == Some(true),
        }
    })
}

/// Judges the owners of the claim of a pod that is wanted, or is not any more.
pub(super) fn judge(
    claim: &PersistentVolumeClaim,
    set: &StatefulSet,
    pod: &Pod,
    is_wanted: bool,
) -> Owners {
    if is_stale(claim, &set.metadata, &SET) || is_stale(claim, &pod.metadata, &POD) {
        return Owners::Right;
    }
    let is_of = |known: &OwnerReference, owner: &ObjectMeta| {
        Some(known.uid.as_str()) == owner.uid.as_deref()
    };
    let of_set = |known: &OwnerReference| is_of(known, &set.metadata);
    let of_pod = |known: &OwnerReference| is_of(known, &pod.metadata);
    let known = owners(claim);
    let is_own = |known: &OwnerReference| of_set(known) || of_pod(known);
    let mut others: Vec<_> = known.iter().filter(|known| !is_own(known)).cloned().collect();
    if has_other_controller(claim, set, pod) {
        return match known.iter().any(is_own) {
            true => Owners::Wrong(others),
            false => Owners::Right,
        };
    }
    let retention = Retention::of(set);
    let wants_set = retention.deleted && (is_wanted || !retention.scaled);
    let wants_pod = retention.scaled && !is_wanted;
    let is_controlled = |known: &OwnerReference| !is_own(known) || known.controller == Some(true);
    let is_right = known.iter().any(of_set) == wants_set
        && known.iter().any(of_pod) == wants_pod
        && known.iter().all(is_controlled);
    if is_right {
        return Owners::Right;
    }
    others.extend(wants_set.then(|| SET.reference(&set.metadata)));
    others.extend(wants_pod.then(|| POD.reference(&pod.metadata)));
    Owners::Wrong(others)
}

fn owners(claim: &PersistentVolumeClaim) -> &[OwnerReference] {
    claim.metadata.owner_references.as_deref().unwrap_or_default()
}
