//! The life of a watch: first what is there, then what happens.

use std::collections::VecDeque;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use kubewright_apimachinery::status::Status;
use kubewright_store::{Bunch, Event, Key, Revision, Snapshot, Watch, WatchError};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::definition::Definition;
use super::frame::{Change, Frames};
use super::refused;
use crate::index::{Index, Stored};
use crate::selection::Selection;

/// A watch that goes on.
pub(super) struct Follow {
    pub(super) initial: Option<Initial>,
    /// What the bookmark says that ends the beginning, if there is to be one.
    pub(super) initial_end: Option<Revision>,
    pub(super) watch: Watch<Index>,
    pub(super) skip: Revision,
    pub(super) frames: Frames,
    pub(super) selection: Selection,
    /// Taken from history, not yet from us. Bounded, since the next are taken when it is empty.
    pub(super) queue: VecDeque<Arc<Event<Index>>>,
    pub(super) deadline: Instant,
    /// Comes when the watch must end. Kept while the watch waits again and again, since it costs
    /// more to begin than all else in a turn.
    pub(super) end: BoxFuture<'static, ()>,
    /// When the next bookmark is due; `None` if the client wants none, or there is no more.
    pub(super) bookmark: Option<Pin<Box<Sleep>>>,
    pub(super) definition: Option<Definition>,
    pub(super) shutdown: CancellationToken,
    pub(super) is_over: bool,
}

/// The state that a watch begins with, and how much of it was sent.
pub(super) struct Initial {
    snapshot: Snapshot<Index>,
    prefix: String,
    after: Option<Key>,
}

/// What is sent at a time when there is more.
const CHUNK_BYTES: usize = 64 << 10;

/// How many objects of the beginning are looked at at a time.
const INITIAL_STEP: usize = 64;

/// Bookmarks come about so often,
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// and so long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// How long a conversion that fails is tried again,
const CONVERSION_RETRIES: Duration = Duration::from_secs(30);

/// and how long between.
const CONVERSION_PAUSE: Duration = Duration::from_millis(200);

impl Follow {
    /// The next bytes; none when the watch has ended.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_over || Instant::now() >= self.deadline || self.shutdown.is_cancelled() {
                return None;
            }
            if let Some(bytes) = self.initial_bytes().await {
                return Some(bytes);
            }
            if self.is_over {
                return None;
            }
            if let Some(bytes) = self.queued_bytes() {
                return Some(bytes);
            }
            match self.wait().await {
                Woken::End => return None,
                Woken::Bookmark => {
                    if let Some(bytes) = self.bookmark() {
                        return Some(bytes);
                    }
                }
                Woken::Events(ready) => {
                    // Whoever else has something to do goes first: the busier the server, the
                    // more events go out together.
                    tokio::task::yield_now().await;
                    let bunch = match ready.and_then(|()| self.watch.take_bunch()) {
                        Ok(bunch) => bunch,
                        Err(WatchError::Closed) => return None,
                        Err(error) => {
                            self.is_over = true;
                            return Some(self.frames.error(&refused(error)));
                        }
                    };
                    if let Some(bytes) = self.whole(&bunch) {
                        return Some(bytes);
                    }
                    let events = self.shown_changes(bunch.to_vec()).await?;
                    self.queue.extend(events);
                }
            }
        }
    }

    /// A bunch as all see it who want everything; none if this watch sees it in a way of its own.
    fn whole(&self, bunch: &Bunch<Index>) -> Option<Bytes> {
        let is_new = bunch.first().is_some_and(|first| first.revision > self.skip);
        let is_shown_so = self.selection.is_everything()
            && self.frames.is_shared()
            && !self.frames.renderer().resource().is_converted();
        // What cannot be shown is told in its turn, behind those that can.
        (is_new && is_shown_so).then(|| self.frames.bunch(bunch).ok())?
    }

    async fn wait(&mut self) -> Woken {
        let Follow { watch, end, bookmark, definition, .. } = self;
        let bookmark = async {
            match bookmark {
                Some(due) => due.await,
                None => pending().await,
            }
        };
        let redefined = async {
            match definition {
                Some(definition) => definition.changed().await,
                None => pending().await,
            }
        };
        // Each of these may be dropped while it waits.
        tokio::select! {
            biased;
            () = end => Woken::End,
            () = bookmark => Woken::Bookmark,
            ready = watch.ready() => Woken::Events(ready),
            () = redefined => Woken::End,
        }
    }

    /// Tells how far the watch has come, unless the client knows of later moments than we do.
    fn bookmark(&mut self) -> Option<Bytes> {
        self.bookmark = next_bookmark(Instant::now(), self.deadline);
        let progress = self.watch.progress();
        (progress >= self.skip).then(|| self.frames.bookmark(progress, false))
    }

    /// Changes as the version that is watched shows them; none when the watch is over. A webhook
    /// that fails is asked again for a while, as upstream does, and then the watch ends without a
    /// word.
    async fn shown_changes(
        &mut self,
        events: Vec<Arc<Event<Index>>>,
    ) -> Option<Vec<Arc<Event<Index>>>> {
        let resource = self.frames.renderer().resource();
        if !resource.is_converted() {
            return Some(events);
        }
        let is_selected = !self.selection.is_everything();
        let shown = async {
            let last = Instant::now() + CONVERSION_RETRIES;
            loop {
                match resource.shown_changes(&events, is_selected).await {
                    Ok(shown) => return Some(shown),
                    Err(_) if Instant::now() < last => sleep(CONVERSION_PAUSE).await,
                    Err(_) => return None,
                }
            }
        };
        // What was not waited for is asked for again by whoever wants it next.
        tokio::select! {
            biased;
            () = &mut self.end => None,
            shown = shown => shown,
        }
    }

    /// The next few objects of the beginning, as the version that is watched shows them; none when
    /// the watch is over.
    async fn shown_initial(&mut self) -> Option<Result<Vec<Stored>, Box<Status>>> {
        let found: Vec<Stored> = self.initial.as_mut()?.next().iter().cloned().collect();
        let resource = self.frames.renderer().resource();
        if !resource.is_converted() {
            return Some(Ok(found));
        }
        tokio::select! {
            biased;
            () = &mut self.end => {
                self.is_over = true;
                None
            }
            shown = resource.shown(found) => Some(shown),
        }
    }

    /// More of the beginning.
    async fn initial_bytes(&mut self) -> Option<Bytes> {
        let mut bytes = Gathered::default();
        while self.initial.is_some() && bytes.len() < CHUNK_BYTES {
            let found = match self.shown_initial().await {
                None => return None,
                Some(Ok(found)) => found,
                Some(Err(refusal)) => {
                    bytes.push(self.frames.error(&refusal));
                    self.is_over = true;
                    return bytes.finish();
                }
            };
            if found.is_empty() {
                self.initial = None;
            }
            for rev in &found {
                if self.selection.matches(self.frames.renderer(), rev) {
                    match self.frames.object(Change::Added, rev, rev.revision) {
                        Ok(frame) => bytes.push(frame),
                        Err(refusal) => {
                            bytes.push(self.frames.error(&refusal));
                            self.is_over = true;
                            return bytes.finish();
                        }
                    }
                }
            }
        }
        if self.initial.is_none()
            && let Some(end) = self.initial_end.take()
        {
            bytes.push(self.frames.bookmark(end, true));
        }
        bytes.finish()
    }

    /// What was taken from history and is wanted.
    fn queued_bytes(&mut self) -> Option<Bytes> {
        let mut bytes = Gathered::default();
        while bytes.len() < CHUNK_BYTES
            && let Some(event) = self.queue.pop_front()
        {
            let Some(change) = self.change(&event) else { continue };
            match self.frames.event(change, &event) {
                Ok(frame) => bytes.push(frame),
                Err(refusal) => {
                    bytes.push(self.frames.error(&refusal));
                    self.is_over = true;
                    break;
                }
            }
        }
        bytes.finish()
    }

    /// What an event is to someone who sees only what is selected.
    fn change(&self, event: &Event<Index>) -> Option<Change> {
        if event.revision <= self.skip {
            return None;
        }
        let is_selected = |rev: &Option<Arc<kubewright_store::Rev<Index>>>| {
            rev.as_ref().is_some_and(|rev| self.selection.matches(self.frames.renderer(), rev))
        };
        Change::between(is_selected(&event.previous), is_selected(&event.current))
    }
}

/// Why a watch goes on.
enum Woken {
    End,
    Bookmark,
    Events(Result<(), WatchError>),
}

/// When the next bookmark is due: none when the end is nearer than that.
pub(super) fn next_bookmark(now: Instant, deadline: Instant) -> Option<Pin<Box<Sleep>>> {
    let last = deadline.checked_sub(BOOKMARK_BEFORE_END)?;
    // The one before the end is the last.
    (last > now).then(|| Box::pin(sleep_until(last.min(now + BOOKMARK_EVERY))))
}

/// Waits until a watch has been long enough, or the server ends.
pub(super) async fn end(deadline: Instant, shutdown: CancellationToken) {
    // Both are dropped when one has come.
    let _ = timeout_at(deadline, shutdown.cancelled()).await;
}

impl Initial {
    pub(super) fn new(snapshot: Snapshot<Index>, prefix: String) -> Self {
        Initial { snapshot, prefix, after: None }
    }

    pub(super) fn revision(&self) -> Revision {
        self.snapshot.revision()
    }

    /// The next few objects; none when there are no more.
    fn next(&mut self) -> kubewright_store::Range<Index> {
        let after = self.after.as_ref().map(Key::as_str);
        let range = self.snapshot.range(&self.prefix, after, Some(INITIAL_STEP));
        if let Some(last) = range.iter().last() {
            self.after = Some(last.key.clone());
        }
        range
    }
}

/// Frames to be sent together. One alone is sent as it is, shared with everybody else.
#[derive(Default)]
enum Gathered {
    #[default]
    None,
    One(Bytes),
    More(Vec<u8>),
}

impl Gathered {
    fn len(&self) -> usize {
        match self {
            Gathered::None => 0,
            Gathered::One(bytes) => bytes.len(),
            Gathered::More(bytes) => bytes.len(),
        }
    }

    fn push(&mut self, frame: Bytes) {
        *self = match std::mem::take(self) {
            Gathered::None => Gathered::One(frame),
            Gathered::One(first) => {
                let mut bytes = Vec::with_capacity(4 * (first.len() + frame.len()));
                bytes.extend_from_slice(&first);
                bytes.extend_from_slice(&frame);
                Gathered::More(bytes)
            }
            Gathered::More(mut bytes) => {
                bytes.extend_from_slice(&frame);
                Gathered::More(bytes)
            }
        }
    }

    fn finish(self) -> Option<Bytes> {
        match self {
            Gathered::None => None,
            Gathered::One(bytes) => Some(bytes),
            Gathered::More(bytes) => Some(bytes.into()),
        }
    }
}
