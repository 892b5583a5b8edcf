//! The seam to blocking storage: something that keeps the latest state through a crash.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::{Key, Revision};

/// Durable storage of the latest state. Only a committer calls it, from one thread.
pub(crate) trait Engine: Send + 'static {
    /// Writes all of a batch or none of it; with `sync`, so that it and everything before it
    /// survives loss of power. After an error nothing more will be asked of it but to be dropped.
    fn commit(&mut self, batch: Batch<'_>) -> Result<(), EngineError>;

    /// Makes everything durable and notes that `revision` was the last number used.
    fn close(&mut self, revision: Revision) -> Result<(), EngineError>;

    /// Tells where to find all that was committed, for an engine that writes it anew at times.
    fn attach(&mut self, _latest: Arc<dyn Latest>) {}
}

/// Whoever has all that was committed.
pub(crate) trait Latest: Send + Sync {
    /// Writes it, as [`dump`](crate::dump) does, with whatever was published until it begins.
    fn dump(&self, out: &mut dyn io::Write) -> io::Result<()>;
}

/// What changes at once.
pub(crate) struct Batch<'a> {
    /// Each key once.
    pub(crate) records: Vec<Record<'a>>,
    /// The youngest change in the batch.
    pub(crate) revision: Revision,
    /// No number above this was ever used.
    pub(crate) ceiling: Revision,
    pub(crate) sync: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) key: &'a Key,
    /// None for a deletion.
    pub(crate) held: Option<(Head, &'a Bytes)>,
}

/// What is known of a value besides its key.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) revision: Revision,
    pub(crate) created: Revision,
    pub(crate) deadline: Option<Duration>,
}

pub(crate) type EngineError = Arc<dyn Error + Send + Sync>;
