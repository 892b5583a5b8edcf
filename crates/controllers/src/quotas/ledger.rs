//! Which quotas there are, and whom a change concerns.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubewright_apimachinery::quota::Evaluator;
use serde_json::Value;

use crate::kinds::{Kind, Kinds};

/// A quota.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) namespace: String,
    pub(super) name: String,
}

#[derive(Default)]
pub(super) struct Ledger {
    pub(super) kinds: Arc<Kinds>,
    /// What each quota limits, by namespace and name.
    quotas: BTreeMap<String, BTreeMap<String, Value>>,
}

impl Ledger {
    /// Takes note of what a quota says. Whether it is new, or says something else than before.
    pub(super) fn apply(&mut self, key: &Key, spec: Value) -> bool {
        let quotas = self.quotas.entry(key.namespace.clone()).or_default();
        let before = quotas.insert(key.name.clone(), spec);
        before.as_ref() != quotas.get(&key.name)
    }

    pub(super) fn delete(&mut self, key: &Key) {
        let Some(quotas) = self.quotas.get_mut(&key.namespace) else { return };
        quotas.remove(&key.name);
        if quotas.is_empty() {
            self.quotas.remove(&key.namespace);
        }
    }

    /// Forgets all quotas but these.
    pub(super) fn retain(&mut self, keys: &BTreeSet<Key>) {
        for gone in self.all().iter().filter(|key| !keys.contains(key)) {
            self.delete(gone);
        }
    }

    pub(super) fn all(&self) -> Vec<Key> {
        self.quotas.keys().flat_map(|namespace| self.within(namespace, |_| true)).collect()
    }

    /// The quotas that count such objects in a namespace.
    pub(super) fn concerned(&self, evaluator: &Evaluator, namespace: &str) -> Vec<Key> {
        self.within(namespace, |spec| counts(evaluator, spec))
    }

    /// Takes note of which kinds are served. The quotas that count one of those that were not
    /// before.
    pub(super) fn learn(&mut self, kinds: &Arc<Kinds>) -> Vec<Key> {
        let before = std::mem::replace(&mut self.kinds, Arc::clone(kinds));
        let new = kinds.preferred.iter().filter(|kind| !before.defines(&kind.definition()));
        let new: Vec<Evaluator> = new.filter_map(|kind| evaluator(kind)).collect();
        let is_affected = |spec: &Value| new.iter().any(|evaluator| counts(evaluator, spec));
        self.quotas.keys().flat_map(|namespace| self.within(namespace, is_affected)).collect()
    }

    fn within(&self, namespace: &str, is_meant: impl Fn(&Value) -> bool) -> Vec<Key> {
        let quotas = self.quotas.get(namespace).into_iter().flatten();
        quotas
            .filter(|(_, spec)| is_meant(spec))
            .map(|(name, _)| Key { namespace: namespace.to_owned(), name: name.clone() })
            .collect()
    }
}

/// How objects of a kind are counted, if they are.
pub(super) fn evaluator(kind: &Kind) -> Option<Evaluator> {
    let verbs = ["create", "list", "watch", "delete"];
    let is_countable = kind.namespaced && verbs.iter().all(|verb| kind.can(verb));
    is_countable.then(|| Evaluator::of(&kind.group, &kind.plural)).flatten()
}

/// Whether a quota limits something that these objects count for.
pub(super) fn counts(evaluator: &Evaluator, spec: &Value) -> bool {
    let limited = spec["hard"].as_object().into_iter().flat_map(|hard| hard.keys());
    limited.into_iter().any(|name| evaluator.counts(name))
}
