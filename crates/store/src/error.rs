//! What can go wrong, as the choices a caller has.

use std::error::Error;
use std::sync::Arc;

use crate::Revision;

/// What the caller of [`crate::Store::put`] can do about a failed write.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// Read again, apply again, try again. What was found is visible to readers.
    #[error("put, expecting {expected:?} but finding {found:?}")]
    Conflict { expected: crate::Expect, found: Option<Revision> },
    /// No retry will help.
    #[error("put {bytes} bytes, more than {limit}")]
    TooLarge { bytes: usize, limit: usize },
    #[error("put")]
    Unavailable(#[source] Unavailable),
}

/// What the caller of [`crate::Store::delete`] can do about a failed deletion.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// Nothing is left to do.
    #[error("delete what is not there")]
    NotFound,
    /// Read again and decide again. What was found is visible to readers.
    #[error("delete, expecting {expected:?} but finding {found}")]
    Conflict { expected: crate::Expect, found: Revision },
    #[error("delete")]
    Unavailable(#[source] Unavailable),
}

/// What the caller of [`crate::Store::update`] can do about a failed update.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError<E> {
    /// The caller's own decision; what it was based on is visible to readers.
    #[error("update as asked")]
    Refused(E),
    /// No retry will help.
    #[error("put {bytes} bytes, more than {limit}")]
    TooLarge { bytes: usize, limit: usize },
    #[error("update")]
    Unavailable(#[source] Unavailable),
}

/// Why a list at an exact revision cannot be answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// List the latest instead; in the API, 410.
    #[error("list at revision {requested}, older than {oldest}")]
    Compacted { requested: Revision, oldest: Revision },
    /// Wait for it with [`crate::Store::wait_for`], or give up.
    #[error("list at revision {requested}, younger than {current}")]
    Future { requested: Revision, current: Revision },
}

/// Why a watch cannot start or go on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// List, then watch from there; in the API, 410. A slow watcher gets this too.
    #[error("watch from revision {requested}, older than {oldest}")]
    Compacted { requested: Revision, oldest: Revision },
    /// Wait for it with [`crate::Store::wait_for`], or give up.
    #[error("watch from revision {requested}, younger than {current}")]
    Future { requested: Revision, current: Revision },
    /// The store was closed; there will be no more events.
    #[error("watch a closed store")]
    Closed,
}

/// The store cannot take or prove a write now: wait, or answer 503.
///
/// A write answered with this may have happened or not.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unavailable {
    /// Open the store again.
    #[error("reach a closed store")]
    Closed,
    /// A write or sync failed. What the disk holds is unknown until the store is opened again,
    /// so nothing more is written; reads go on.
    #[error("write after the storage failed")]
    Failed(#[source] Arc<dyn Error + Send + Sync>),
    /// A later attempt may succeed.
    #[error("reach the storage")]
    Unreachable(#[source] Arc<dyn Error + Send + Sync>),
}
