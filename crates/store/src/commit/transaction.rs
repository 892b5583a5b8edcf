//! Several keys changed at one revision, for [`crate::member`], whose clients expect it of etcd.
//!
//! A job runs on the committer's thread, so nothing changes between what it reads and what it
//! writes. It must only compute.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::Held;
use crate::engine::Head;
use crate::image::Snapshot;
use crate::{Key, Rev, Revision, Unavailable};

/// Decides what changes.
pub(crate) type Job<I> = Box<dyn FnOnce(&mut Transaction<'_, I>) -> Reply + Send>;

/// Called when what the job saw and did is visible, with the revision it is visible at.
pub(crate) type Reply = Box<dyn FnOnce(Result<Revision, Unavailable>) + Send>;

/// What keys become; none where they go.
type Changes<I> = BTreeMap<Key, Option<Arc<Rev<I>>>>;

/// All keys as a job sees them, its own changes included.
pub(crate) struct Transaction<'a, I> {
    visible: &'a Snapshot<I>,
    pending: &'a HashMap<Key, Held<I>>,
    own: Changes<I>,
    /// What changes get.
    revision: Revision,
    sync: bool,
}

impl<'a, I> Transaction<'a, I> {
    pub(super) fn new(
        visible: &'a Snapshot<I>,
        pending: &'a HashMap<Key, Held<I>>,
        revision: Revision,
    ) -> Self {
        Self { visible, pending, own: BTreeMap::new(), revision, sync: false }
    }

    pub(super) fn into_changes(self) -> (Changes<I>, bool) {
        (self.own, self.sync)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Rev<I>>> {
        match self.own.get(key) {
            Some(own) => own.as_ref(),
            None => self.before(key),
        }
    }

    /// What a key was before this transaction.
    pub(crate) fn before(&self, key: &str) -> Option<&Arc<Rev<I>>> {
        match self.pending.get(key) {
            Some(held) => held.rev.as_ref(),
            None => self.visible.get(key),
        }
    }

    /// The keys from `start` on, to below `end` or else to the last, in order.
    pub(crate) fn between(&self, start: &[u8], end: Option<&[u8]>) -> Vec<Arc<Rev<I>>> {
        let visible = self.visible.between(start, end);
        let mut found: BTreeMap<&str, &Arc<Rev<I>>> =
            visible.iter().map(|rev| (rev.key.as_str(), rev)).collect();
        let pending = self.pending.iter().map(|(key, held)| (key, held.rev.as_ref()));
        let own = self.changes();
        for (key, rev) in pending.chain(own) {
            let bytes = key.as_str().as_bytes();
            if bytes < start || end.is_some_and(|end| bytes >= end) {
                continue;
            }
            match rev {
                Some(rev) => found.insert(key.as_str(), rev),
                None => found.remove(key.as_str()),
            };
        }
        found.into_values().cloned().collect()
    }

    pub(crate) fn put(&mut self, key: &Key, value: Bytes, extracted: I) {
        let created = self.get(key.as_str()).map_or(self.revision, |rev| rev.created);
        let head = Head { revision: self.revision, created, deadline: None };
        let rev = Rev::new(key.clone(), head, value, extracted);
        self.own.insert(key.clone(), Some(Arc::new(rev)));
    }

    pub(crate) fn delete(&mut self, key: &Key) {
        self.own.insert(key.clone(), None);
    }

    /// What this transaction has made of keys so far.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&Key, Option<&Arc<Rev<I>>>)> {
        self.own.iter().map(|(key, own)| (key, own.as_ref()))
    }

    /// Changes nothing after all.
    pub(crate) fn abandon(&mut self) {
        self.own.clear();
    }

    /// The answer waits until the changes survive loss of power.
    pub(crate) fn sync(&mut self) {
        self.sync = true;
    }

    /// The revision of its changes, or of the last change before if it makes none.
    pub(crate) fn as_of(&self) -> Revision {
        match self.own.is_empty() {
            true => Revision::new(self.revision.get() - 1),
            false => self.revision,
        }
    }
}
