//! What watches of one prefix take at once.
//!
//! A change wakes all who watch, and most of them then stand at the same place of the history and
//! want the same. They are handed the same bunch, so that what is made of it is made once, and no
//! count, lock or copy of a single event is needed for each of them.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;

use crate::revision::Renderings;
use crate::{Event, Form, Revision};

/// Enough to keep a lock and a wake-up cheap per event, few enough to hold it only briefly.
const EVENTS_MAX: usize = 256;
/// What is made of a bunch is about as large as its values. The last of them may be larger.
const BYTES_MAX: usize = 128 << 10;
/// Those who watch do not all keep pace; this many groups of them are told apart.
const KEPT_MAX: usize = 4;

/// Events that follow each other.
pub struct Bunch<I> {
    prefix: Box<str>,
    /// Which part of the history it covers, from one cursor to another.
    start: u64,
    pub(crate) end: u64,
    /// There was more that was left for the next one.
    is_full: bool,
    events: Vec<Arc<Event<I>>>,
    renderings: Renderings<Run>,
}

/// Events as they travel, one behind another.
#[derive(Clone, Debug)]
pub struct Run {
    pub bytes: Bytes,
    /// How long each is.
    pub lengths: Arc<[usize]>,
}

/// The bunches that were taken last.
pub(crate) struct Recent<I>(VecDeque<Arc<Bunch<I>>>);

impl<I> Bunch<I> {
    /// What of `since`, which is the history from `start` on, begins with `prefix` and is visible.
    /// It ends between revisions, so that its end is a place to resume.
    pub(crate) fn gather<'a>(
        prefix: &str,
        start: u64,
        since: impl Iterator<Item = &'a Arc<Event<I>>>,
        visible: Revision,
    ) -> Self
    where
        I: 'a,
    {
        let (mut end, mut bytes, mut is_full) = (start, 0, false);
        let mut events: Vec<Arc<Event<I>>> = Vec::new();
        for event in since.take_while(|event| event.revision <= visible) {
            if (events.len() >= EVENTS_MAX || bytes >= BYTES_MAX)
                && events.last().is_some_and(|last| last.revision < event.revision)
            {
                is_full = true;
                break;
            }
            if event.key.as_str().starts_with(prefix) {
                let shown = event.current.as_ref().or(event.previous.as_ref());
                bytes += shown.map_or(0, |rev| rev.value.len());
                events.push(Arc::clone(event));
            }
            end += 1;
        }
        let renderings = Renderings::default();
        Self { prefix: prefix.into(), start, end, is_full, events, renderings }
    }

    /// Up to where everything is known to whoever has taken it, if that is not all there is.
    pub(crate) fn progress(&self) -> Option<Revision> {
        self.events.last().filter(|_| self.is_full).map(|last| last.revision)
    }

    /// The events in some form: made by `render` the first time, for all who share the bunch.
    ///
    /// Whoever asks meanwhile for any form of it waits, so `render` must only compute.
    pub fn rendered<E>(
        &self,
        form: Form,
        render: impl FnOnce() -> Result<Run, E>,
    ) -> Result<Run, E> {
        self.renderings.get_or_make(form, render)
    }

    /// Whether it is what a watch wants that stands at `start` and sees the history to `end`.
    fn suits(&self, prefix: &str, start: u64, end: u64) -> bool {
        let is_whole = self.end == end || (self.is_full && self.end < end);
        self.start == start && is_whole && *self.prefix == *prefix
    }
}

impl<I> Deref for Bunch<I> {
    type Target = [Arc<Event<I>>];

    fn deref(&self) -> &Self::Target {
        &self.events
    }
}

impl<I> Recent<I> {
    pub(crate) fn find(&self, prefix: &str, start: u64, end: u64) -> Option<&Arc<Bunch<I>>> {
        self.0.iter().rev().find(|bunch| bunch.suits(prefix, start, end))
    }

    pub(crate) fn add(&mut self, bunch: Arc<Bunch<I>>) {
        if self.0.len() == KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(bunch);
    }

    pub(crate) fn clear(&mut self) {
        self.0 = VecDeque::new();
    }
}

impl<I> Default for Recent<I> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}
