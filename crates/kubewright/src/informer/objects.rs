//! What an informer has, and ways to find it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Object;
use super::kept::{Kept, Opener};
use crate::key::ObjectKey;
use crate::panics::Panics;

/// Gives the values by which an object is found.
pub(super) type Values<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

pub(super) struct Objects<K> {
    opener: Opener<K>,
    by_key: BTreeMap<ObjectKey, Kept<K>>,
    /// How long the texts were that all objects were read from.
    bytes: usize,
    indexes: HashMap<String, Index<K>>,
}

struct Index<K> {
    values: Values<K>,
    /// Objects by their values, each with its key, so that none has to be looked for.
    found: HashMap<String, BTreeMap<ObjectKey, Kept<K>>>,
}

impl<K: Object> Objects<K> {
    pub(super) fn new(opener: Opener<K>) -> Self {
        Objects { opener, by_key: BTreeMap::new(), bytes: 0, indexes: HashMap::new() }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Kept<K>> {
        self.by_key.get(key).cloned()
    }

    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.by_key.contains_key(key)
    }

    pub(super) fn all(&self) -> Vec<Kept<K>> {
        self.by_key.values().cloned().collect()
    }

    pub(super) fn entries(&self) -> Vec<(ObjectKey, Kept<K>)> {
        self.by_key.iter().map(|(key, kept)| (key.clone(), kept.clone())).collect()
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Kept<K>> {
        self.within(namespace).map(|(_, kept)| kept.clone()).collect()
    }

    /// The objects of a namespace, or if they are of a kind that is in none, all.
    pub(super) fn beside(&self, namespace: &str) -> Vec<Kept<K>> {
        match self.by_key.first_key_value() {
            Some((key, _)) if key.namespace().is_none() => self.all(),
            _ => self.in_namespace(namespace),
        }
    }

    pub(super) fn by_index(&self, name: &str, value: &str) -> Vec<Kept<K>> {
        let index = self.indexes.get(name);
        let index = index.unwrap_or_else(|| panic!("there is no index {name:?}"));
        index.found.get(value).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The keys in a namespace, or all.
    pub(super) fn keys(&self, namespace: Option<&str>) -> BTreeSet<ObjectKey> {
        match namespace {
            Some(namespace) => self.within(namespace).map(|(key, _)| key.clone()).collect(),
            None => self.by_key.keys().cloned().collect(),
        }
    }

    /// Puts an object where it belongs. Gives the one that was there.
    pub(super) fn set(&mut self, key: &ObjectKey, object: Kept<K>) -> Option<Kept<K>> {
        self.bytes += object.bytes();
        let old = self.by_key.insert(key.clone(), object.clone());
        self.bytes -= old.as_ref().map_or(0, Kept::bytes);
        self.index(key, old.as_ref(), Some(&object));
        old
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Kept<K>> {
        let old = self.by_key.remove(key)?;
        self.bytes -= old.bytes();
        self.index(key, Some(&old), None);
        Some(old)
    }

    /// Puts objects where they belong. Gives those that were there, in the order of the new ones.
    ///
    /// It takes no more room than needed, neither then nor meanwhile: objects that come one by one in
    /// the order of their keys leave half of it empty, and what is given back later is hard to use
    /// again.
    pub(super) fn set_all(&mut self, all: &[(ObjectKey, Kept<K>)]) -> Vec<Option<Kept<K>>> {
        if self.by_key.is_empty() {
            self.by_key = all.iter().cloned().collect();
            if self.by_key.len() == all.len() {
                for (key, kept) in all {
                    self.bytes += kept.bytes();
                    self.index(key, None, Some(kept));
                }
                return vec![None; all.len()];
            }
            // Some came twice.
            self.by_key.clear();
        }
        let before = all.iter().map(|(key, kept)| self.set(key, kept.clone())).collect();
        self.by_key = std::mem::take(&mut self.by_key).into_iter().collect();
        before
    }

    pub(super) fn add_index(&mut self, name: &str, values: Values<K>) {
        let mut index = Index { values, found: HashMap::new() };
        for (key, kept) in &self.by_key {
            if let Some(object) = self.opener.open(kept) {
                index.add(key, kept, &object, &self.opener.panics);
            }
        }
        self.indexes.insert(name.to_owned(), index);
    }

    pub(super) fn has_index(&self, name: &str) -> bool {
        self.indexes.contains_key(name)
    }

    /// Has the object found by what it is, and no more by what it was.
    fn index(&mut self, key: &ObjectKey, old: Option<&Kept<K>>, new: Option<&Kept<K>>) {
        if self.indexes.is_empty() {
            return;
        }
        let old = old.map(|kept| self.opener.open(kept));
        let new = new.and_then(|kept| Some((kept, self.opener.open(kept)?)));
        for index in self.indexes.values_mut() {
            if let Some(old) = &old {
                index.remove(key, old.as_deref(), &self.opener.panics);
            }
            if let Some((kept, new)) = &new {
                index.add(key, kept, new, &self.opener.panics);
            }
        }
    }

    fn within<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Kept<K>)> {
        let from = ObjectKey::new(Some(namespace), "");
        self.by_key.range(from..).take_while(move |(key, _)| key.namespace() == Some(namespace))
    }
}

impl<K> Index<K> {
    /// What has no values since they could not be told is not found.
    fn add(&mut self, key: &ObjectKey, kept: &Kept<K>, object: &K, panics: &Panics) {
        let values = panics.caught("an index", || (self.values)(object));
        for value in values.into_iter().flatten() {
            self.found.entry(value).or_default().insert(key.clone(), kept.clone());
        }
    }

    /// Takes out what was found as this object; none if it cannot be read any more.
    fn remove(&mut self, key: &ObjectKey, object: Option<&K>, panics: &Panics) {
        let values = |object| panics.caught("an index", || (self.values)(object));
        let Some(values) = object.and_then(values) else {
            // It may be anywhere.
            self.found.retain(|_, objects| {
                objects.remove(key);
                !objects.is_empty()
            });
            return;
        };
        for value in values {
            if let Some(objects) = self.found.get_mut(&value) {
                objects.remove(key);
                if objects.is_empty() {
                    self.found.remove(&value);
                }
            }
        }
    }
}
