//! What a reconcile is asked, and what it answers.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::chain::chain;
use crate::control_loop::Writes;
use crate::key::ObjectKey;
use crate::queue::Causes;
use crate::shard::Work;

/// Which object to bring about. It does not say what happened, only what is.
#[derive(Debug, Clone)]
pub struct Request<K> {
    pub key: ObjectKey,
    /// The object as the cache has it; none if it is gone.
    pub object: Option<Arc<K>>,
    /// How often in a row this has failed before.
    pub failures: u32,
    /// Why: for people, in logs. Never decide by it.
    pub causes: Causes,
    pub(crate) writes: Arc<Writes>,
    pub(crate) work: Option<Arc<Work>>,
}

impl<K> Request<K> {
    /// Takes note that this reconcile has left the object in this version, which is wholly what it
    /// wants: to see it is no reason to reconcile the object again.
    pub fn wrote(&self, version: &str) {
        self.writes.note(&self.key, version);
    }

    /// What makes the key this replica's, if keys are shared out: whoever writes does so with its
    /// client.
    pub fn work(&self) -> Option<&Work> {
        self.work.as_deref()
    }
}

/// What is to come after a reconcile that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing, until something changes.
    Done,
    /// Again, after a pause that grows as after a failure.
    Requeue,
    /// Again after this time, if nothing changes before.
    RequeueAfter(Duration),
}

/// Why a reconcile failed. Whatever is an error becomes one that is worth another try; say
/// [`Error::terminal`] of what will be no better the next time.
pub struct Error {
    cause: Box<dyn StdError + Send + Sync>,
    terminal: bool,
}

impl Error {
    /// It is not tried again until something changes: the object itself is wrong. What the reconcile
    /// has changed in it, as a condition that says so, is written before; that is tried again.
    pub fn terminal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Error { cause: cause.into(), terminal: true }
    }

    /// It is tried again. For what is no error by type, such as a text.
    pub fn retry(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Error { cause: cause.into(), terminal: false }
    }

    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    pub fn cause(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.cause
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(cause: E) -> Self {
        Error::retry(cause)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The whole chain, since this is where errors end.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&chain(&*self.cause))
    }
}
