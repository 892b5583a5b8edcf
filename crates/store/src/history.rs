//! The recent past of one resource: a ring of events, bounded by time and bytes.
//!
//! Watches read it through a cursor, a sequence number that outlives the events it pointed at;
//! exact lists undo its younger part.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::sync::watch;

use crate::bunch::Recent;
use crate::{Event, HistoryBounds, Key, Rev, Revision};

/// What an event holds besides the value: the event itself, the revision, a key, a ring slot.
const EVENT_BYTES: usize = 320;

/// One resource: its ring, and a bell that rings when the ring has grown.
pub(crate) struct Resource<I> {
    ring: RwLock<Ring<I>>,
    /// Locked when the ring is, if both are.
    recent: Mutex<Recent<I>>,
    changed: watch::Sender<()>,
}

pub(crate) struct Ring<I> {
    events: VecDeque<Kept<I>>,
    /// The sequence number of the oldest event kept.
    first: u64,
    floor: Floor,
    bytes: usize,
}

/// The oldest revision whose successors are all known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Floor {
    pub(crate) oldest: Revision,
    /// One older revision that is known to mean the same: where the disk stood when the store
    /// was opened, while numbering continues above the persisted ceiling.
    pub(crate) same: Option<Revision>,
}

struct Kept<I> {
    at: Duration,
    event: Arc<Event<I>>,
}

impl<I> Resource<I> {
    pub(crate) fn new(floor: Floor) -> Self {
        let ring = Ring { events: VecDeque::new(), first: 0, floor, bytes: 0 };
        Self { ring: RwLock::new(ring), recent: Mutex::default(), changed: watch::Sender::new(()) }
    }

    pub(crate) fn ring(&self) -> RwLockReadGuard<'_, Ring<I>> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ring_mut(&self) -> RwLockWriteGuard<'_, Ring<I>> {
        self.ring.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What those who watch have taken last.
    pub(crate) fn recent(&self) -> MutexGuard<'_, Recent<I>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether several watch.
    pub(crate) fn is_shared(&self) -> bool {
        self.changed.receiver_count() > 1
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Wakes every watcher.
    pub(crate) fn ring_bell(&self) {
        self.changed.send_replace(());
    }
}

impl<I> Ring<I> {
    pub(crate) fn floor(&self) -> Floor {
        self.floor
    }

    pub(crate) fn push(&mut self, at: Duration, event: Arc<Event<I>>, bounds: HistoryBounds) {
        self.bytes += event_bytes(&event);
        self.events.push_back(Kept { at, event });
        self.trim(at, bounds);
    }

    /// Drops what is older than the window or more than the bytes allowed.
    pub(crate) fn trim(&mut self, now: Duration, bounds: HistoryBounds) {
        while let Some(oldest) = self.events.front()
            && (self.bytes > bounds.bytes_max || now.saturating_sub(oldest.at) > bounds.window)
        {
            self.bytes -= event_bytes(&oldest.event);
            self.floor = Floor { oldest: oldest.event.revision, same: None };
            self.first += 1;
            self.events.pop_front();
        }
    }

    /// Drops what is older than `revision`.
    pub(crate) fn compact(&mut self, revision: Revision) {
        while let Some(oldest) = self.events.front()
            && oldest.event.revision < revision
        {
            self.bytes -= event_bytes(&oldest.event);
            self.floor = Floor { oldest: oldest.event.revision, same: None };
            self.first += 1;
            self.events.pop_front();
        }
    }

    /// Forgets everything up to `floor`, which also ends every watch.
    pub(crate) fn reset(&mut self, floor: Floor) {
        // One more than there are events, so that cursors at the end are left behind too.
        self.first += self.events.len() as u64 + 1;
        self.events.clear();
        self.bytes = 0;
        self.floor = floor;
    }

    /// The cursor of the first event after `revision`.
    pub(crate) fn cursor_after(&self, revision: Revision) -> u64 {
        self.first + self.events.partition_point(|kept| kept.event.revision <= revision) as u64
    }

    /// The events from `cursor` on, or none if the ring has moved past it.
    pub(crate) fn since(&self, cursor: u64) -> Option<impl Iterator<Item = &Arc<Event<I>>>> {
        let skip = usize::try_from(cursor.checked_sub(self.first)?).ok()?;
        Some(self.events.range(skip.min(self.events.len())..).map(|kept| &kept.event))
    }

    /// What the keys under `prefix` that changed in `(since, until]` held at `since`.
    pub(crate) fn undone(
        &self,
        prefix: &str,
        since: Revision,
        until: Revision,
    ) -> BTreeMap<Key, Option<Arc<Rev<I>>>> {
        let start = self.events.partition_point(|kept| kept.event.revision <= since);
        let mut held = BTreeMap::new();
        for Kept { event, .. } in self.events.range(start..) {
            if event.revision > until {
                break;
            }
            if event.key.as_str().starts_with(prefix) {
                // Only the oldest of several changes knows what was there before.
                held.entry(event.key.clone()).or_insert_with(|| event.previous.clone());
            }
        }
        held
    }
}

impl Floor {
    pub(crate) fn at(oldest: Revision) -> Self {
        Self { oldest, same: None }
    }

    /// The revision to continue from when asked for `requested`, or the oldest possible.
    pub(crate) fn resolve(self, requested: Revision) -> Result<Revision, Revision> {
        if requested >= self.oldest {
            Ok(requested)
        } else if self.same == Some(requested) {
            Ok(self.oldest)
        } else {
            Err(self.oldest)
        }
    }
}

/// What an event keeps in memory that would otherwise be gone.
fn event_bytes<I>(event: &Event<I>) -> usize {
    // What is current is held by the image, or was replaced and is counted by the event that
    // replaced it.
    let previous = event.previous.as_ref().map_or(0, |rev| rev.value.len());
    EVENT_BYTES + event.key.as_str().len() + previous
}
