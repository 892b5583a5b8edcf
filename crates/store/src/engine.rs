//! The seam to blocking storage: something that keeps the latest state through a crash.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::{Key, Revision};

/// Durable storage of the latest state. Only a committer calls it, from one thread.
pub(crate) trait Engine: Send + 'static {
    /// Writes all of a batch or none of it; with `sync`, so that it and everything before it
    /// survives loss of power. After an error nothing more will be asked of it but to be dropped.
    fn commit(&mut self, batch: Batch) -> Result<(), EngineError>;

    /// What is to be written of a value, and what readers are to hold of it. An engine that has what
    /// it wrote in memory for a while lets both be the same bytes.
    fn lay_out(head: Head, value: Bytes) -> Laid;

    /// Makes everything durable and notes that `revision` was the last number used.
    fn close(&mut self, revision: Revision) -> Result<(), EngineError>;
}

/// What changes at once.
pub(crate) struct Batch {
    /// Each key once.
    pub(crate) records: Vec<Record>,
    /// The youngest change in the batch.
    pub(crate) revision: Revision,
    /// No number above this was ever used.
    pub(crate) ceiling: Revision,
    pub(crate) sync: bool,
}

pub(crate) enum Record {
    Put {
        key: Key,
        /// As [`Engine::lay_out`] made it.
        record: Bytes,
    },
    Delete {
        key: Key,
    },
}

/// What is known of a value besides its key.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) revision: Revision,
    pub(crate) created: Revision,
    pub(crate) deadline: Option<Duration>,
}

pub(crate) struct Laid {
    /// For readers.
    pub(crate) value: Bytes,
    /// To be written.
    pub(crate) record: Bytes,
}

pub(crate) type EngineError = Arc<dyn Error + Send + Sync>;
