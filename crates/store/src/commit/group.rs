//! The committer on a thread of its own, where it may block.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::commit::{Answer, Committer, Job, Order, Request};
use crate::engine::Engine;
use crate::image::Image;
use crate::write::{Conflicts, Draft, Rejected, Writer};
use crate::{Revision, Unavailable};

/// A batch is at most this; more gains nothing per write and delays the first of them.
const BATCH_MAX: usize = 1024;
/// Two batches: one being written and one to follow. Further callers wait in line.
const QUEUE_MAX: usize = 2 * BATCH_MAX;

/// Hands writes to the committer's thread and owns that thread.
pub(crate) struct GroupWriter<I> {
    image: Arc<Image<I>>,
    /// Taken when the store is closed, which ends the thread.
    requests: Mutex<Option<mpsc::Sender<Order<I>>>>,
    thread: Mutex<Option<Thread>>,
}

struct Thread {
    ended: oneshot::Receiver<()>,
    handle: JoinHandle<()>,
}

impl<I: Send + Sync + 'static> GroupWriter<I> {
    pub(crate) fn start<E: Engine>(
        image: Arc<Image<I>>,
        engine: E,
        ceiling: Revision,
    ) -> std::io::Result<Self> {
        let (sender, mut requests) = mpsc::channel(QUEUE_MAX);
        let (end, ended) = oneshot::channel();
        let mut committer = Committer::new(Arc::clone(&image), engine, ceiling);
        let last_act = EndsWatches(Arc::clone(&image));
        let handle =
            std::thread::Builder::new().name("kubewright-store".into()).spawn(move || {
                let mut batch = Vec::new();
                // Whatever queued while the last batch was being written is the next one.
                while requests.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
                    committer.commit(batch.drain(..));
                }
                committer.close();
                drop(last_act);
                // Nobody may be waiting.
                let _ = end.send(());
            })?;
        Ok(Self {
            image,
            requests: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(Thread { ended, handle })),
        })
    }

    /// Has several keys changed at one revision. What comes of it, the job itself tells; it is
    /// dropped when the store is closed.
    pub(crate) async fn transact(&self, job: Job<I>) {
        if let Some(requests) = self.sender() {
            let _ = requests.send(Order::Transaction(job)).await;
        }
    }

    fn sender(&self) -> Option<mpsc::Sender<Order<I>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stop(&self) -> Option<Thread> {
        drop(self.requests.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Tells readers that there will be no more changes when the committer ends, even by a panic:
/// whoever waits for a change must not wait for ever.
struct EndsWatches<I: Send + Sync + 'static>(Arc<Image<I>>);

impl<I: Send + Sync + 'static> Drop for EndsWatches<I> {
    fn drop(&mut self) {
        self.0.halt(Unavailable::Closed);
    }
}

impl<I: Send + Sync + 'static> Writer<I> for GroupWriter<I> {
    fn write(&self, draft: Draft<I>, conflicts: Conflicts) -> BoxFuture<'_, Answer<I>> {
        async move {
            let closed = || Rejected::Unavailable(Unavailable::Closed);
            let (answer, answered) = oneshot::channel();
            let requests = self.sender().ok_or_else(closed)?;
            let request = Request { draft, conflicts, answer };
            requests.send(request.into()).await.map_err(|_| closed())?;
            drop(requests);
            answered.await.unwrap_or_else(|_| Err(closed()))
        }
        .boxed()
    }

    fn latest(&self) -> BoxFuture<'_, Result<Revision, Unavailable>> {
        std::future::ready(Ok(self.image.revision())).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            if let Some(Thread { ended, handle }) = self.stop() {
                // An error means that the thread panicked, which `join` says too.
                let _ = ended.await;
                if handle.join().is_err() {
                    tracing::error!("the committer panicked");
                }
            }
        }
        .boxed()
    }
}

impl<I> Drop for GroupWriter<I> {
    /// Waits for the last batch, so that whoever opens the directory next finds it unlocked.
    fn drop(&mut self) {
        drop(self.requests.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic was already reported by the panic hook.
            let _ = thread.handle.join();
        }
    }
}
