//! Which autoscalers scale the same pods, which none of them then may.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use kubewright::ObjectKey;
use kubewright_apimachinery::selector::label::Selector;

/// The selectors of all autoscalers that have looked at their target.
#[derive(Default)]
pub(super) struct Selectors {
    known: Mutex<HashMap<ObjectKey, Selector>>,
}

impl Selectors {
    /// All autoscalers, if there are several, that select any of the pods with these labels; takes
    /// note of what this one selects.
    pub(super) fn sharers(
        &self,
        key: &ObjectKey,
        selector: Selector,
        pods: impl Iterator<Item = BTreeMap<String, String>>,
    ) -> Option<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key.clone(), selector);
        let beside: Vec<_> =
            known.iter().filter(|(other, _)| other.namespace() == key.namespace()).collect();
        if beside.len() < 2 {
            return None;
        }
        let mut keys = BTreeSet::new();
        for labels in pods {
            let selecting = beside.iter().filter(|(_, selector)| selector.matches(&labels));
            keys.extend(selecting.map(|(other, _)| {
                format!("{{{} {}}}", other.name(), other.namespace().unwrap_or_default())
            }));
        }
        (keys.len() > 1).then(|| format!("[{}]", Vec::from_iter(keys).join(" ")))
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
