//! A watch: a cursor into the history of a resource.

use std::sync::Arc;

use tokio::sync::watch;

use crate::bunch::Bunch;
use crate::history::{Resource, Ring};
use crate::image::Image;
use crate::{Event, Revision, WatchError};

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
        self.ready().await?;
        self.take()
    }

    /// Returns when there are events to take. May be dropped while waiting.
    pub async fn ready(&mut self) -> Result<(), WatchError> {
        loop {
            self.changed.borrow_and_update();
            if self.has_more()? {
                return Ok(());
            }
            if self.image.is_closed() {
                return Err(WatchError::Closed);
            }
            self.changed.changed().await.map_err(|_| WatchError::Closed)?;
        }
    }

    /// The events that are there, maybe none; does not wait.
    pub fn take(&mut self) -> Result<Vec<Arc<Event<I>>>, WatchError> {
        self.take_bunch().map(|bunch| bunch.to_vec())
    }

    /// The same, in one piece that is shared with other watches where they are at the same place.
    pub fn take_bunch(&mut self) -> Result<Arc<Bunch<I>>, WatchError> {
        // Before the ring: the ring is complete up to here, and what it holds beyond is not yet
        // visible to readers.
        let visible = self.image.revision();
        let bunch = self.bunch(visible)?;
        self.cursor = bunch.end;
        self.progress = self.progress.max(bunch.progress().unwrap_or(visible));
        Ok(bunch)
    }

    fn bunch(&self, visible: Revision) -> Result<Arc<Bunch<I>>, WatchError> {
        let ring = self.resource.ring();
        let since = ring.since(self.cursor).ok_or_else(|| self.compacted(&ring))?;
        let gather = || Arc::new(Bunch::gather(&self.prefix, self.cursor, since, visible));
        if !self.resource.is_shared() {
            return Ok(gather());
        }
        let mut recent = self.resource.recent();
        let end = ring.cursor_after(visible);
        if let Some(bunch) = recent.find(&self.prefix, self.cursor, end) {
            return Ok(Arc::clone(bunch));
        }
        let bunch = gather();
        if !bunch.is_empty() {
            recent.add(Arc::clone(&bunch));
        }
        Ok(bunch)
    }

    /// Whether there are events to take. Goes on behind those that are none of its own.
    fn has_more(&mut self) -> Result<bool, WatchError> {
        let visible = self.image.revision();
        let ring = self.resource.ring();
        let since = ring.since(self.cursor).ok_or_else(|| self.compacted(&ring))?;
        for event in since.take_while(|event| event.revision <= visible) {
            if event.key.as_str().starts_with(&*self.prefix) {
                return Ok(true);
            }
            self.cursor += 1;
        }
        self.progress = self.progress.max(visible);
        Ok(false)
    }

    fn compacted(&self, ring: &Ring<I>) -> WatchError {
        WatchError::Compacted { requested: self.progress, oldest: ring.floor().oldest }
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
