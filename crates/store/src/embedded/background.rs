//! What is done beside the committer, each thing on a thread of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Something under way. Who drops it waits for its end, which it hurries.
pub(super) struct Background<T> {
    leave: Leave,
    thread: Option<JoinHandle<io::Result<T>>>,
}

/// Tells the work when nobody wants it any more.
#[derive(Clone, Default)]
pub(super) struct Leave(Arc<AtomicBool>);

impl<T: Send + 'static> Background<T> {
    /// # Errors
    /// If there can be no thread.
    pub(super) fn start(
        work: impl FnOnce(&Leave) -> io::Result<T> + Send + 'static,
    ) -> io::Result<Self> {
        let leave = Leave::default();
        let told = leave.clone();
        let builder = thread::Builder::new().name("kubewright-files".into());
        let thread = Some(builder.spawn(move || work(&told))?);
        Ok(Self { leave, thread })
    }

    /// What came of it, once.
    pub(super) fn done(&mut self) -> Option<io::Result<T>> {
        let thread = self.thread.take_if(|thread| thread.is_finished())?;
        Some(thread.join().unwrap_or_else(|_| Err(io::Error::other("it panicked"))))
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.leave.0.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was already reported by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Leave {
    /// # Errors
    /// If it is time to leave.
    pub(super) fn check(&self) -> io::Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(io::Error::other("nobody waits for it any more")),
            false => Ok(()),
        }
    }
}
