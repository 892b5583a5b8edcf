//! What every server does with the process it has.

use anyhow::{Context as _, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::warn;

/// The signals by which a person or a supervisor ends a process.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the process cannot be told of signals.
    pub fn new() -> Result<Self> {
        let take = |kind| signal(kind).context("listen to signals");
        Ok(Signals {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
            hangup: take(SignalKind::hangup())?,
        })
    }

    /// Waits for one of them.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// A watch is a file, and the usual limit is for programs that have a few.
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        warn!(%error, "the limit of open files stays as it is");
    }
}
