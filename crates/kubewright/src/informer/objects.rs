//! What an informer has, and ways to find it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::key::ObjectKey;

/// Gives the values by which an object is found.
pub(super) type Values<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

pub(super) struct Objects<K> {
    by_key: BTreeMap<ObjectKey, Arc<K>>,
    indexes: HashMap<String, Index<K>>,
}

struct Index<K> {
    values: Values<K>,
    keys: HashMap<String, BTreeSet<ObjectKey>>,
}

impl<K> Objects<K> {
    pub(super) fn new() -> Self {
        Objects { by_key: BTreeMap::new(), indexes: HashMap::new() }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.by_key.get(key).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<K>> {
        self.by_key.values().cloned().collect()
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let from = ObjectKey::new(Some(namespace), "");
        let found = self.by_key.range(from..);
        let found = found.take_while(|(key, _)| key.namespace() == Some(namespace));
        found.map(|(_, object)| Arc::clone(object)).collect()
    }

    pub(super) fn by_index(&self, name: &str, value: &str) -> Vec<Arc<K>> {
        let index = self.indexes.get(name);
        let index = index.unwrap_or_else(|| panic!("there is no index {name:?}"));
        let keys = index.keys.get(value).into_iter().flatten();
        keys.filter_map(|key| self.get(key)).collect()
    }

    pub(super) fn keys(&self) -> BTreeSet<ObjectKey> {
        self.by_key.keys().cloned().collect()
    }

    /// Puts an object where it belongs. Gives the one that was there.
    pub(super) fn set(&mut self, key: &ObjectKey, object: Arc<K>) -> Option<Arc<K>> {
        let old = self.by_key.insert(key.clone(), Arc::clone(&object));
        for index in self.indexes.values_mut() {
            if let Some(old) = &old {
                index.remove(key, old);
            }
            index.add(key, &object);
        }
        old
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Arc<K>> {
        let old = self.by_key.remove(key)?;
        for index in self.indexes.values_mut() {
            index.remove(key, &old);
        }
        Some(old)
    }

    pub(super) fn add_index(&mut self, name: &str, values: Values<K>) {
        let mut index = Index { values, keys: HashMap::new() };
        for (key, object) in &self.by_key {
            index.add(key, object);
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
