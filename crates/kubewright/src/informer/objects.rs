//! What an informer has, and ways to find it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::key::ObjectKey;

/// Gives the values by which an object is found.
pub(super) type Values<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

pub(super) struct Objects<K> {
    by_key: BTreeMap<ObjectKey, Kept<K>>,
    /// How long the texts were that all objects were read from.
    bytes: usize,
    indexes: HashMap<String, Index<K>>,
}

struct Kept<K> {
    object: Arc<K>,
    bytes: usize,
}

struct Index<K> {
    values: Values<K>,
    keys: HashMap<String, BTreeSet<ObjectKey>>,
}

impl<K> Objects<K> {
    pub(super) fn new() -> Self {
        Objects { by_key: BTreeMap::new(), bytes: 0, indexes: HashMap::new() }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.by_key.get(key).map(|kept| Arc::clone(&kept.object))
    }

    pub(super) fn all(&self) -> Vec<Arc<K>> {
        self.by_key.values().map(|kept| Arc::clone(&kept.object)).collect()
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let from = ObjectKey::new(Some(namespace), "");
        let found = self.by_key.range(from..);
        let found = found.take_while(|(key, _)| key.namespace() == Some(namespace));
        found.map(|(_, kept)| Arc::clone(&kept.object)).collect()
    }

    pub(super) fn by_index(&self, name: &str, value: &str) -> Vec<Arc<K>> {
        let index = self.indexes.get(name);
        let index = index.unwrap_or_else(|| panic!("there is no index {name:?}"));
        let keys = index.keys.get(value).into_iter().flatten();
        keys.filter_map(|key| self.get(key)).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn keys(&self) -> BTreeSet<ObjectKey> {
        self.by_key.keys().cloned().collect()
    }

    /// Puts an object where it belongs. Gives the one that was there.
    pub(super) fn set(&mut self, key: &ObjectKey, object: Arc<K>, bytes: usize) -> Option<Arc<K>> {
        let kept = Kept { object: Arc::clone(&object), bytes };
        self.bytes += bytes;
        let old = self.by_key.insert(key.clone(), kept).map(|old| {
            self.bytes -= old.bytes;
            old.object
        });
        for index in self.indexes.values_mut() {
            if let Some(old) = &old {
                index.remove(key, old);
            }
            index.add(key, &object);
        }
        old
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Arc<K>> {
        let Kept { object: old, bytes } = self.by_key.remove(key)?;
        self.bytes -= bytes;
        for index in self.indexes.values_mut() {
            index.remove(key, &old);
        }
        Some(old)
    }

    pub(super) fn add_index(&mut self, name: &str, values: Values<K>) {
        let mut index = Index { values, keys: HashMap::new() };
        for (key, kept) in &self.by_key {
            index.add(key, &kept.object);
        }
        self.indexes.insert(name.to_owned(), index);
    }
}

impl<K> Index<K> {
    fn add(&mut self, key: &ObjectKey, object: &K) {
        for value in (self.values)(object) {
            self.keys.entry(value).or_default().insert(key.clone());
        }
    }

    fn remove(&mut self, key: &ObjectKey, object: &K) {
        for value in (self.values)(object) {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
    }
}
