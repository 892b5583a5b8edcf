//! The store as its users see it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::image::{Image, Range, Snapshot};
use crate::write::{Action, Conflicts, Draft, Rejected, Writer, Written};
use crate::{
    Change, Config, DeleteError, Deleted, Durability, Expect, Key, Put, PutError, RangeError, Rev,
    Revision, Start, Unavailable, UpdateError, Updated, Watch, WatchError,
};

/// Far beyond any key of Kubernetes, and within what the durable engine can frame.
const KEY_BYTES_MAX: usize = 8 << 10;

/// Revisioned bytes with watch. A clone is another handle on the same store.
///
/// Reads answer from memory and never wait; see the crate's documentation for what holds.
pub struct Store<I> {
    image: Arc<Image<I>>,
    writer: Arc<dyn Writer<I>>,
}

/// What to list.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Must lie within one resource if `at` is an exact revision.
    pub prefix: &'a str,
    /// Only keys behind this one: where the last page ended.
    pub start_after: Option<&'a str>,
    pub limit: Option<usize>,
    pub at: At,
}

/// Which state to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Latest,
    Exactly(Revision),
}

impl<I: Send + Sync + 'static> Store<I> {
    pub(crate) fn new(image: Arc<Image<I>>, writer: Arc<dyn Writer<I>>) -> Self {
        Self { image, writer }
    }

    pub fn config(&self) -> &Config<I> {
        self.image.config()
    }

    /// The revision that readers see.
    pub fn revision(&self) -> Revision {
        self.image.revision()
    }

    /// The state that readers see, to be read at leisure.
    pub fn snapshot(&self) -> Snapshot<I> {
        self.image.snapshot()
    }

    /// A state that contains every write acknowledged before the call, also by other processes
    /// that share the storage. Only etcd has any; otherwise this is [`Store::snapshot`].
    pub async fn latest(&self) -> Result<Snapshot<I>, Unavailable> {
        let revision = self.writer.latest().await?;
        self.image.wait_for(revision).await?;
        Ok(self.image.snapshot())
    }

    /// Returns when readers see `revision` or a later one.
    pub async fn wait_for(&self, revision: Revision) -> Result<(), Unavailable> {
        self.image.wait_for(revision).await
    }

    pub fn get(&self, key: &str) -> Option<Arc<Rev<I>>> {
        self.image.get(key)
    }

    /// Lists keys in order. Pages at [`At::Exactly`] the first page's revision fit together.
    pub fn range(&self, query: &Query<'_>) -> Result<Range<I>, RangeError> {
        self.image.range(query)
    }

    /// How many keys begin with `prefix`.
    pub fn count(&self, prefix: &str) -> usize {
        self.image.snapshot().count(prefix)
    }

    /// Watches the keys that begin with `prefix`, which must lie within one resource.
    pub fn watch(&self, prefix: &str, start: Start) -> Result<Watch<I>, WatchError> {
        Watch::new(Arc::clone(&self.image), prefix, start)
    }

    /// Writes a value if what is expected holds.
    pub async fn put(&self, put: Put) -> Result<Arc<Rev<I>>, PutError> {
        let Put { key, value, expect, ttl, durability } = put;
        let action = self
            .action(&key, value, ttl, durability)
            .map_err(|TooLarge { bytes, limit }| PutError::TooLarge { bytes, limit })?;
        match self.writer.write(Draft { key, expect, action }, Conflicts::Visible).await {
            Ok(written) => Ok(written.put()),
            Err(Rejected::Conflict { found, .. }) => Err(PutError::Conflict {
                expected: expect,
                found: found.map(|found| found.revision),
            }),
            Err(Rejected::Unavailable(why)) => Err(PutError::Unavailable(why)),
        }
    }

    /// Deletes a key if what is expected holds.
    pub async fn delete(&self, key: &Key, expect: Expect) -> Result<Deleted<I>, DeleteError> {
        let action = Action::Delete { durability: Durability::Synced };
        let draft = Draft { key: key.clone(), expect, action };
        match self.writer.write(draft, Conflicts::Visible).await {
            Ok(written) => Ok(written.deleted()),
            Err(Rejected::Conflict { found: None, .. }) => Err(DeleteError::NotFound),
            Err(Rejected::Conflict { found: Some(found), .. }) => {
                Err(DeleteError::Conflict { expected: expect, found: found.revision })
            }
            Err(Rejected::Unavailable(why)) => Err(DeleteError::Unavailable(why)),
        }
    }

    /// Changes a key by deciding from what it is, again whenever somebody else was faster.
    ///
    /// `decide` may be shown a revision that is not durable yet, so it must not tell anybody.
    /// Whatever this returns, what it is based on is visible by then.
    pub async fn update<E, D, F>(&self, key: &Key, decide: D) -> Result<Updated<I>, UpdateError<E>>
    where
        D: FnMut(Option<Arc<Rev<I>>>) -> F,
        F: Future<Output = Result<Change, E>>,
    {
        self.update_from(key, self.get(key.as_str()), decide).await
    }

    async fn update_from<E, D, F>(
        &self,
        key: &Key,
        mut current: Option<Arc<Rev<I>>>,
        mut decide: D,
    ) -> Result<Updated<I>, UpdateError<E>>
    where
        D: FnMut(Option<Arc<Rev<I>>>) -> F,
        F: Future<Output = Result<Change, E>>,
    {
        let mut as_of = Revision::FIRST;
        loop {
            let expect = match &current {
                Some(rev) => Expect::At(rev.revision),
                None => Expect::Absent,
            };
            let change = match decide(current.clone()).await {
                Ok(change) => change,
                Err(refusal) => {
                    self.wait_for(as_of).await.map_err(UpdateError::Unavailable)?;
                    return Err(UpdateError::Refused(refusal));
                }
            };
            let action = match change {
                Change::Delete if current.is_some() => {
                    Action::Delete { durability: Durability::Synced }
                }
                Change::Keep | Change::Delete => {
                    self.wait_for(as_of).await.map_err(UpdateError::Unavailable)?;
                    return Ok(Updated::Kept(current));
                }
                Change::Put { value, ttl, durability } => self
                    .action(key, value, ttl, durability)
                    .map_err(|TooLarge { bytes, limit }| UpdateError::TooLarge { bytes, limit })?,
            };
            let draft = Draft { key: key.clone(), expect, action };
            match self.writer.write(draft, Conflicts::Pending).await {
                Ok(written) if written.current.is_some() => {
                    return Ok(Updated::Put(written.put()));
                }
                Ok(written) => return Ok(Updated::Deleted(written.deleted())),
                Err(Rejected::Conflict { found, as_of: seen }) => {
                    current = found;
                    as_of = seen;
                }
                Err(Rejected::Unavailable(why)) => return Err(UpdateError::Unavailable(why)),
            }
        }
    }

    /// Stops taking writes, ends watches, and returns when everything written is on disk and
    /// everything the store started has ended. Reads go on.
    pub async fn close(&self) {
        self.writer.close().await;
        self.image.halt(Unavailable::Closed);
    }

    pub(crate) fn image(&self) -> &Arc<Image<I>> {
        &self.image
    }

    pub(crate) fn writer(&self) -> &Arc<dyn Writer<I>> {
        &self.writer
    }

    /// Looks at the value, on the caller's time: the committer has better things to do.
    fn action(
        &self,
        key: &Key,
        value: Bytes,
        ttl: Option<Duration>,
        durability: Durability,
    ) -> Result<Action<I>, TooLarge> {
        let limits =
            [(key.as_str().len(), KEY_BYTES_MAX), (value.len(), self.config().value_bytes_max)];
        if let Some((bytes, limit)) = limits.into_iter().find(|(bytes, limit)| bytes > limit) {
            return Err(TooLarge { bytes, limit });
        }
        let extracted = (self.config().extract)(key, &value);
        Ok(Action::Put { value, extracted, ttl, durability })
    }
}

struct TooLarge {
    bytes: usize,
    limit: usize,
}

impl<'a> Query<'a> {
    /// Everything under `prefix`, as it is.
    pub fn prefix(prefix: &'a str) -> Self {
        Self { prefix, start_after: None, limit: None, at: At::Latest }
    }
}

impl<I> Written<I> {
    fn put(self) -> Arc<Rev<I>> {
        self.current.expect("a put leaves a value")
    }

    fn deleted(self) -> Deleted<I> {
        let previous = self.previous.expect("deleting nothing is a conflict");
        Deleted { revision: self.revision, previous }
    }
}

impl<I> Clone for Store<I> {
    fn clone(&self) -> Self {
        Self { image: Arc::clone(&self.image), writer: Arc::clone(&self.writer) }
    }
}

impl<I> fmt::Debug for Store<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
