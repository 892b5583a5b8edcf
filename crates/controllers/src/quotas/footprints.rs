//! What was last seen of the objects of one kind, as far as quotas can see it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::Timestamp;
use kube::api::DynamicObject;
use kubewright_apimachinery::quota::Evaluator;

use crate::controller::text;
use crate::feed::Seen;

pub(super) struct Footprints {
    evaluator: Evaluator,
    /// A hash of each footprint, by UID: there are many, and none is looked at again.
    hashes: HashMap<String, u64>,
}

impl Footprints {
    pub(super) fn new(evaluator: Evaluator) -> Self {
        Self { evaluator, hashes: HashMap::new() }
    }

    /// The namespaces in which an object counts otherwise than before. What is new was charged, and
    /// what is gone is told by others.
    pub(super) fn see(&mut self, seen: &Seen<DynamicObject>, now: Timestamp) -> BTreeSet<String> {
        match seen {
            Seen::Listed(objects) => {
                let mut before = std::mem::take(&mut self.hashes);
                let changed = objects.iter().filter(|object| {
                    let uid = text(&object.metadata.uid);
                    let before = before.remove(uid);
                    if let Some(before) = before {
                        self.hashes.insert(uid.to_owned(), before);
                    }
                    self.note(object, now)
                });
                changed.map(namespace).collect()
            }
            Seen::Applied(object) => {
                self.note(object, now).then(|| namespace(object)).into_iter().collect()
            }
            Seen::Deleted(object) => {
                self.hashes.remove(text(&object.metadata.uid));
                BTreeSet::new()
            }
            Seen::Unreadable => BTreeSet::new(),
        }
    }

    /// Whether an object was known and is another.
    fn note(&mut self, object: &DynamicObject, now: Timestamp) -> bool {
        let whole = serde_json::to_value(object).expect("an object is JSON");
        let footprint = self.evaluator.measure(&whole, now);
        let mut hasher = DefaultHasher::new();
        format!("{footprint:?}").hash(&mut hasher);
        let hash = hasher.finish();
        let before = self.hashes.insert(text(&object.metadata.uid).to_owned(), hash);
        before.is_some_and(|before| before != hash)
    }
}

fn namespace(object: &DynamicObject) -> String {
    text(&object.metadata.namespace).to_owned()
}
