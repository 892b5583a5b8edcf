//! A store that lives as long as its process: commits happen in place, on the caller's task,
//! so it needs no thread and runs under a paused clock.

use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use crate::commit::{Answer, Committer, Request};
use crate::engine::{Batch, Engine, EngineError};
use crate::history::Floor;
use crate::image::Image;
use crate::write::{Conflicts, Draft, Rejected, Writer};
use crate::{Config, Revision, Store, Unavailable};

impl<I: Send + Sync + 'static> Store<I> {
    /// An empty store in memory.
    pub fn memory(config: Config<I>) -> Self {
        let revision = Revision::FIRST;
        let image = Image::new(config, Vec::new(), revision, Floor::at(revision));
        let committer = Committer::new(Arc::clone(&image), Nowhere, Revision::new(i64::MAX));
        let writer = InPlace { image: Arc::clone(&image), committer: Mutex::new(Some(committer)) };
        Self::new(image, Arc::new(writer))
    }
}

/// Commits one write at a time under a lock that is held for microseconds.
struct InPlace<I> {
    image: Arc<Image<I>>,
    committer: Mutex<Option<Committer<I, Nowhere>>>,
}

/// The engine of those who keep nothing.
struct Nowhere;

impl<I: Send + Sync + 'static> Writer<I> for InPlace<I> {
    fn write(&self, draft: Draft<I>, conflicts: Conflicts) -> BoxFuture<'_, Answer<I>> {
        async move {
            let closed = || Rejected::Unavailable(Unavailable::Closed);
            let (answer, answered) = oneshot::channel();
            match &mut *self.committer.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(committer) => committer.commit([Request { draft, conflicts, answer }.into()]),
                None => return Err(closed()),
            }
            // The answer is there; awaiting it counts against the task's budget, so that a loop
            // of writes lets watchers on the same thread run.
            answered.await.unwrap_or_else(|_| Err(closed()))
        }
        .boxed()
    }

    fn latest(&self) -> BoxFuture<'_, Result<Revision, Unavailable>> {
        std::future::ready(Ok(self.image.revision())).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        std::future::ready(()).boxed()
    }
}

impl Engine for Nowhere {
    fn commit(&mut self, _: Batch<'_>) -> Result<(), EngineError> {
        Ok(())
    }

    fn close(&mut self, _: Revision) -> Result<(), EngineError> {
        Ok(())
    }
}
