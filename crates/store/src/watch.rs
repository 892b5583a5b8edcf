//! A watch: a cursor into the history of a resource.

use std::sync::Arc;

use tokio::sync::watch;

use crate::history::Resource;
use crate::image::Image;
use crate::{Event, Revision, WatchError};

/// Enough to keep a lock and a wake-up cheap per event, few enough to hold it only briefly.
const BATCH: usize = 256;

/// Where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the next change.
    Now,
    /// With the first change after this revision.
    After(Revision),
}

/// The changes under a prefix, in order, each once, none missing.
///
/// A watch that is read too slowly never delays a writer; it gets [`WatchError::Compacted`].
pub struct Watch<I> {
    image: Arc<Image<I>>,
    resource: Arc<Resource<I>>,
    changed: watch::Receiver<()>,
    prefix: Box<str>,
    cursor: u64,
    progress: Revision,
}

impl<I: Send + Sync + 'static> Watch<I> {
    pub(crate) fn new(
        image: Arc<Image<I>>,
        prefix: &str,
        start: Start,
    ) -> Result<Self, WatchError> {
        let resource = image.resource(prefix);
        let changed = resource.subscribe();
        let (progress, cursor) = {
            // The revision is read under the lock, so that nothing is dropped between the two.
            let ring = resource.ring();
            let requested = match start {
                Start::Now => image.revision(),
                Start::After(revision) => revision,
            };
            let from = image.resume(ring.floor(), requested)?;
            (from, ring.cursor_after(from))
        };
        Ok(Self { image, resource, changed, prefix: prefix.into(), cursor, progress })
    }

    /// The next events, at least one; waits for it. May be dropped while waiting.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event<I>>>, WatchError> {
        loop {
            self.changed.borrow_and_update();
            let events = self.take()?;
            if !events.is_empty() {
                return Ok(events);
            }
            if self.image.is_closed() {
                return Err(WatchError::Closed);
            }
            self.changed.changed().await.map_err(|_| WatchError::Closed)?;
        }
    }

    /// The events that are there, maybe none; does not wait.
    pub fn take(&mut self) -> Result<Vec<Arc<Event<I>>>, WatchError> {
        // Before the ring: the ring is complete up to here, and what it holds beyond is not yet
        // visible to readers.
        let visible = self.image.revision();
        let ring = self.resource.ring();
        let Some(since) = ring.since(self.cursor) else {
            let oldest = ring.floor().oldest;
            return Err(WatchError::Compacted { requested: self.progress, oldest });
        };
        let mut events: Vec<Arc<Event<I>>> = Vec::new();
        let mut progress = visible;
        for event in since {
            if event.revision > visible {
                break;
            }
            // A bunch ends between revisions, so that every progress is a place to resume.
            if events.len() >= BATCH
                && events.last().is_some_and(|last| last.revision < event.revision)
            {
                progress = events.last().map_or(visible, |last| last.revision);
                break;
            }
            if event.key.as_str().starts_with(&*self.prefix) {
                events.push(Arc::clone(event));
            }
            self.cursor += 1;
        }
        self.progress = self.progress.max(progress);
        Ok(events)
    }

    /// The revision up to which everything was delivered: what a bookmark may say. It moves on
    /// with the store when there is nothing to deliver.
    pub fn progress(&mut self) -> Revision {
        let visible = self.image.revision();
        let ring = self.resource.ring();
        let unread = ring
            .since(self.cursor)
            .is_none_or(|mut since| since.next().is_some_and(|event| event.revision <= visible));
        if !unread {
            self.progress = self.progress.max(visible);
        }
        self.progress
    }
}
