//! Why a quota is to be counted anew.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ResourceQuota;
use kubewright::ObjectKey;
use kubewright::informer::Change;
use kubewright_apimachinery::quota::Evaluator;
use serde::Serialize;

use crate::kinds::{Kind, Kinds};

/// Whether an object has become cheaper or dearer, or changed its scope. What is new was charged,
/// and what is gone is told by others.
pub(super) fn counts_otherwise<T: Serialize>(
    change: &Change<T>,
    evaluator: &Evaluator,
    now: Timestamp,
) -> bool {
    let Change::Applied { object, old: Some(old), .. } = change else { return false };
    let measure = |object: &T| {
        let object = serde_json::to_value(object).expect("an object is JSON");
        evaluator.measure(&object, now)
    };
    measure(old) != measure(object)
}

/// The quotas that count one of these.
pub(super) fn concerned(quotas: &[Arc<ResourceQuota>], evaluators: &[Evaluator]) -> Vec<ObjectKey> {
    let quotas = quotas
        .iter()
        .filter(|quota| evaluators.iter().any(|evaluator| counts(evaluator, quota)))
        .map(|quota| ObjectKey::of(&quota.metadata));
    quotas.collect()
}

/// How objects are counted of the kinds that were not served before.
pub(super) fn new(before: &Kinds, kinds: &Kinds) -> Vec<Evaluator> {
    let new = kinds.preferred.iter().filter(|kind| !before.defines(&kind.definition()));
    new.filter_map(|kind| evaluator(kind)).collect()
}

/// How objects of a kind are counted, if they are.
pub(super) fn evaluator(kind: &Kind) -> Option<Evaluator> {
    let verbs = ["create", "list", "watch", "delete"];
    let is_countable = kind.namespaced && verbs.iter().all(|verb| kind.can(verb));
    is_countable.then(|| Evaluator::of(&kind.group, &kind.plural)).flatten()
}

/// Whether a quota limits something that these objects count for.
pub(super) fn counts(evaluator: &Evaluator, quota: &ResourceQuota) -> bool {
    let limited = quota.spec.iter().flat_map(|spec| spec.hard.iter().flatten());
    limited.into_iter().any(|(name, _)| evaluator.counts(name))
}
