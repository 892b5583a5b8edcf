//! The vocabulary of writes, and the seam behind which they are carried out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::{Key, Rev, Revision, Unavailable};

/// A value to be written.
#[derive(Clone, Debug)]
pub struct Put {
    pub key: Key,
    pub value: Bytes,
    pub expect: Expect,
    /// After this the store may remove the key by itself.
    pub ttl: Option<Duration>,
    pub durability: Durability,
}

/// What must be true of a key for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    Anything,
    Absent,
    /// Last written by this change.
    At(Revision),
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When it survives loss of power.
    Synced,
    /// When it survives the end of this process. For Events, which are many and worth little.
    Written,
}

/// What [`crate::Store::update`] is told to do.
#[derive(Clone, Debug)]
pub enum Change {
    Put { value: Bytes, ttl: Option<Duration>, durability: Durability },
    Delete,
    Keep,
}

/// What [`crate::Store::update`] did.
#[derive(Debug)]
pub enum Updated<I> {
    Put(Arc<Rev<I>>),
    Deleted(Deleted<I>),
    /// Nothing; this is what it was based on, now visible to readers.
    Kept(Option<Arc<Rev<I>>>),
}

/// A deletion that happened.
#[derive(Debug)]
pub struct Deleted<I> {
    /// The deletion's own number.
    pub revision: Revision,
    /// What was deleted.
    pub previous: Arc<Rev<I>>,
}

/// Carries out writes. One for each kind of store.
///
/// When a write is answered, well or ill, the image shows what the answer is based on, unless
/// [`Conflicts::Pending`] was asked for.
pub(crate) trait Writer<I>: Send + Sync + 'static {
    fn write(
        &self,
        draft: Draft<I>,
        conflicts: Conflicts,
    ) -> BoxFuture<'_, Result<Written<I>, Rejected<I>>>;

    /// A revision that is not older than any write acknowledged before the call, by anyone who
    /// shares the storage. The caller waits until the image shows it.
    fn latest(&self) -> BoxFuture<'_, Result<Revision, Unavailable>>;

    /// Ends everything that was started; no write is acknowledged afterwards.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A write whose value was already looked at, so that only order is left to decide.
pub(crate) struct Draft<I> {
    pub(crate) key: Key,
    pub(crate) expect: Expect,
    pub(crate) action: Action<I>,
}

pub(crate) enum Action<I> {
    Put {
        value: Bytes,
        extracted: I,
        ttl: Option<Duration>,
        durability: Durability,
    },
    /// Deleting what is not there is a conflict, whatever was expected.
    Delete {
        durability: Durability,
    },
}

/// When a failed precondition is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conflicts {
    /// When readers can see what was found.
    Visible,
    /// At once: the writer tries again by itself and shows nobody what it saw.
    Pending,
}

/// A write that happened.
pub(crate) struct Written<I> {
    pub(crate) revision: Revision,
    /// None after a deletion.
    pub(crate) current: Option<Arc<Rev<I>>>,
    pub(crate) previous: Option<Arc<Rev<I>>>,
}

/// A write that did not happen, or of which nobody knows.
pub(crate) enum Rejected<I> {
    Conflict {
        found: Option<Arc<Rev<I>>>,
        /// What is found is true for readers once this revision is visible.
        as_of: Revision,
    },
    Unavailable(Unavailable),
}

impl Put {
    /// Creates or replaces, durably and for good.
    pub fn new(key: impl Into<Key>, value: impl Into<Bytes>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
            expect: Expect::Anything,
            ttl: None,
            durability: Durability::Synced,
        }
    }

    pub fn expect(self, expect: Expect) -> Self {
        Self { expect, ..self }
    }

    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }
}

impl Change {
    /// Replaces, durably and for good.
    pub fn put(value: impl Into<Bytes>) -> Self {
        Self::Put { value: value.into(), ttl: None, durability: Durability::Synced }
    }
}

impl Expect {
    /// Whether it holds for a key last written at `found`.
    pub(crate) fn holds(self, found: Option<Revision>) -> bool {
        match self {
            Self::Anything => true,
            Self::Absent => found.is_none(),
            Self::At(expected) => found == Some(expected),
        }
    }
}
