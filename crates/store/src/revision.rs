//! Revisions: the numbers, the values they stand for, and the events between them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::Key;
use crate::engine::Head;

/// The global number of a change; `resourceVersion` in the API. An empty store is at
/// [`Revision::FIRST`], and the first change is the one after it, as in etcd.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(i64);

/// A value as it was written by one change.
pub struct Rev<I> {
    pub key: Key,
    /// The change that wrote this value.
    pub revision: Revision,
    /// The change that created the key; later ones keep it.
    pub created: Revision,
    pub value: Bytes,
    /// When the store may remove the key, in the time of [`crate::Clock`].
    pub deadline: Option<Duration>,
    /// What [`crate::Config::extract`] said about the value.
    pub extracted: I,
    renderings: Renderings<Bytes>,
}

/// A change as watchers see it.
pub struct Event<I> {
    /// The change itself; for a deletion it is younger than what was deleted.
    pub revision: Revision,
    pub key: Key,
    /// The value written, none for a deletion.
    pub current: Option<Arc<Rev<I>>>,
    /// The value replaced or deleted, none for a creation.
    pub previous: Option<Arc<Rev<I>>>,
    renderings: Renderings<Bytes>,
    /// Somebody asked for a rendering.
    asked: AtomicBool,
}

/// Names a rendering of a value or event: three numbers that the owner of the store chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    pub version: u64,
    pub schema: u64,
    pub encoding: u64,
}

/// Renderings made so far. Most revisions never have one, so it is a pointer until then.
pub(crate) struct Renderings<T>(OnceLock<Box<Made<T>>>);

type Made<T> = Mutex<Vec<(Form, T)>>;

impl Revision {
    /// Where an empty store stands.
    pub const FIRST: Self = Self(1);

    pub const fn new(revision: i64) -> Self {
        Self(revision)
    }

    pub const fn get(self) -> i64 {
        self.0
    }

    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl<I> Rev<I> {
    pub(crate) fn new(key: Key, head: Head, value: Bytes, extracted: I) -> Self {
        let Head { revision, created, deadline } = head;
        let renderings = Renderings::default();
        Self { key, revision, created, value, deadline, extracted, renderings }
    }

    /// The same revision of the same key with another value, for an owner that shows values in
    /// more than one form. No store has it.
    #[must_use]
    pub fn with_value(&self, value: Bytes, extracted: I) -> Self {
        Self::new(self.key.clone(), self.head(), value, extracted)
    }

    /// What a storage keeps of it besides its key.
    pub(crate) fn stored(&self) -> (Head, &Bytes) {
        (self.head(), &self.value)
    }

    fn head(&self) -> Head {
        Head { revision: self.revision, created: self.created, deadline: self.deadline }
    }

    /// The value in another form: made by `render` the first time, kept with the revision.
    ///
    /// Whoever asks meanwhile for any form of this revision waits, so `render` must only compute.
    pub fn rendered<E>(
        &self,
        form: Form,
        render: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        self.renderings.get_or_make(form, render)
    }
}

impl<I> Event<I> {
    pub(crate) fn new(
        key: Key,
        revision: Revision,
        current: Option<Arc<Rev<I>>>,
        previous: Option<Arc<Rev<I>>>,
    ) -> Self {
        let (renderings, asked) = (Renderings::default(), AtomicBool::new(false));
        Self { revision, key, current, previous, renderings, asked }
    }

    /// The same change between other values; see [`Rev::with_value`].
    #[must_use]
    pub fn between(&self, previous: Option<Arc<Rev<I>>>, current: Option<Arc<Rev<I>>>) -> Self {
        Self::new(self.key.clone(), self.revision, current, previous)
    }

    /// The event in some form, for instance framed for the wire: made by `render` for the first
    /// watcher, and for the second, from which on all share it. Most events are seen by one.
    pub fn rendered<E>(
        &self,
        form: Form,
        render: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        match self.asked.swap(true, Ordering::Relaxed) {
            false => render(),
            true => self.renderings.get_or_make(form, render),
        }
    }
}

impl<T: Clone> Renderings<T> {
    pub(crate) fn get_or_make<E>(
        &self,
        form: Form,
        render: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        // A panic in `render` leaves the list as it was, so poison says nothing.
        let mut made =
            self.0.get_or_init(Default::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = made.iter().find(|(known, _)| *known == form) {
            return Ok(known.clone());
        }
        let rendered = render()?;
        // There is one as a rule, and room for four would be the least otherwise.
        made.reserve_exact(1);
        made.push((form, rendered.clone()));
        Ok(rendered)
    }
}

impl<T> Default for Renderings<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<I> fmt::Debug for Rev<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rev")
            .field("key", &self.key)
            .field("revision", &self.revision)
            .field("created", &self.created)
            .field("value_bytes", &self.value.len())
            .finish_non_exhaustive()
    }
}

impl<I> fmt::Debug for Event<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("revision", &self.revision)
            .field("key", &self.key)
            .field("current", &self.current.as_ref().map(|rev| rev.revision))
            .field("previous", &self.previous.as_ref().map(|rev| rev.revision))
            .finish_non_exhaustive()
    }
}
