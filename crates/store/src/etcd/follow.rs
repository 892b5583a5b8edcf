//! Keeps an image equal to what etcd holds: one watch over the store's prefix, resumed where it broke.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::client::{Backoff, CallError, Client};
use super::feed::{Ended, Feed, Step};
use super::load::{Loaded, load};
use super::wire::{
    Event, KeyValue, RangeRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest, event,
    prefix_end,
};
use crate::engine::Head;
use crate::image::{Changed, Image, Stored};
use crate::{Key, Rev, Revision};

/// How long an unanswered question for progress is given before it is asked again. etcd drops the
/// question while the watch is still catching up.
const PROGRESS_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Follower<I> {
    pub(super) client: Arc<Client>,
    pub(super) image: Arc<Image<I>>,
    pub(super) prefix: Bytes,
    /// The cluster that the image was loaded from.
    pub(super) cluster: u64,
    /// The revision that somebody waits for.
    pub(super) wanted: watch::Receiver<Revision>,
}

/// Why following stopped for now.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("ask etcd")]
    Call(#[from] CallError),
    #[error("read the watch")]
    Feed(#[from] Ended),
    #[error("read the watch")]
    Stream(#[from] Box<tonic::Status>),
    #[error("read a watch that etcd ended")]
    Closed,
}

impl<I: Send + Sync + 'static> Follower<I> {
    /// Runs until dropped; etcd being away is never the end.
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
        loop {
            let Err(lost) = self.follow(&mut backoff).await;
            if let Lost::Feed(Ended::Compacted { compacted }) = lost {
                tracing::warn!(compacted, "etcd forgot what was missed; everything is read again");
                match self.reload().await {
                    Ok(()) => continue,
                    Err(error) => log(&error, "etcd could not be read again"),
                }
            } else {
                log(&lost, "the watch on etcd broke and will be resumed");
            }
            sleep(backoff.pause()).await;
        }
    }

    /// Opens a watch after the image's revision and publishes what it says, until it breaks.
    async fn follow(&mut self, backoff: &mut Backoff) -> Result<std::convert::Infallible, Lost> {
        self.recognize().await?;
        let applied = self.image.revision();
        let (mut requests, receiver) = mpsc::channel(1);
        // The sender's own slot holds the first request until the stream is open.
        requests.try_send(self.create(applied)).expect("the channel is empty");
        let mut stream = self.client.watch(receiver).await?;
        let mut feed = Feed::after(applied.get());
        let mut ask_at = Instant::now();
        loop {
            let behind = *self.wanted.borrow_and_update() > self.image.revision();
            // Every arm only waits, so nothing is lost when another one is faster.
            tokio::select! {
                message = stream.message() => {
                    let answer = message.map_err(Box::new)?.ok_or(Lost::Closed)?;
                    match feed.accept(answer)? {
                        Step::Wait => {}
                        Step::Events(events) => self.publish(events),
                        Step::Progress(revision) => {
                            self.image.publish(Vec::new(), Revision::new(revision));
                            ask_at = Instant::now();
                        }
                    }
                    backoff.reset();
                }
                // An error says that the store is gone, and this task with it.
                _ = self.wanted.changed() => {}
                () = sleep_until(ask_at), if behind => {
                    // No room means that a question is already waiting to be sent.
                    let _ = requests.try_send(WatchProgressRequest {}.into());
                    ask_at = Instant::now() + PROGRESS_PAUSE;
                }
            }
        }
    }

    /// Makes sure that etcd is still the one we know. A watch from a revision that etcd has not
    /// reached would wait silently, so a cluster restored from an old backup must be noticed here.
    async fn recognize(&mut self) -> Result<(), CallError> {
        let request =
            RangeRequest { key: self.prefix.clone(), keys_only: true, ..RangeRequest::default() };
        let header = self.client.range(request).await?.header.unwrap_or_default();
        let known = self.image.revision();
        if header.cluster_id == self.cluster && header.revision >= known.get() {
            return Ok(());
        }
        tracing::error!(
            cluster = self.cluster,
            revision = %known,
            found_cluster = header.cluster_id,
            found_revision = header.revision,
            "etcd is not the one it was, or lost writes; everything is read again",
        );
        self.reload().await
    }

    async fn reload(&mut self) -> Result<(), CallError> {
        let Loaded { cluster, revision, kvs } = load(&self.client, &self.prefix).await?;
        self.cluster = cluster;
        self.image.reset(stored(kvs), Revision::new(revision));
        Ok(())
    }

    fn create(&self, applied: Revision) -> WatchRequest {
        WatchCreateRequest {
            key: self.prefix.clone(),
            range_end: prefix_end(&self.prefix),
            start_revision: applied.next().get(),
            // Now and then, etcd tells an idle watch how far it is: where to resume after a long
            // silence, when everything older may be compacted.
            progress_notify: true,
            fragment: true,
            ..WatchCreateRequest::default()
        }
        .into()
    }

    fn publish(&self, events: Vec<Event>) {
        let Some(last) = events.last().and_then(|event| event.kv.as_ref()) else { return };
        let revision = Revision::new(last.mod_revision);
        let extract = self.image.config().extract;
        let changes = events.into_iter().filter_map(|event| changed(event, extract)).collect();
        self.image.publish(changes, revision);
    }
}

fn log(error: &(dyn Error + 'static), what: &str) {
    tracing::warn!(error, "{what}");
}

/// What was loaded, as the image takes it.
pub(super) fn stored(kvs: Vec<KeyValue>) -> Vec<Stored> {
    let stored = |kv: KeyValue| {
        Some(Stored {
            key: key(kv.key)?,
            revision: Revision::new(kv.mod_revision),
            created: Revision::new(kv.create_revision),
            // etcd keeps the time of what expires, and deletes it by itself.
            deadline: None,
            value: Bytes::from(kv.value),
        })
    };
    kvs.into_iter().filter_map(stored).collect()
}

/// A key-value as a revision of its own.
pub(super) fn rev<I>(kv: KeyValue, extract: fn(&Key, &Bytes) -> I) -> Option<Arc<Rev<I>>> {
    let key = key(kv.key)?;
    let value = Bytes::from(kv.value);
    let extracted = extract(&key, &value);
    let (revision, created) = (Revision::new(kv.mod_revision), Revision::new(kv.create_revision));
    let head = Head { revision, created, deadline: None };
    Some(Arc::new(Rev::new(key, head, value, extracted)))
}

fn changed<I>(event: Event, extract: fn(&Key, &Bytes) -> I) -> Option<Changed<I>> {
    let deleted = event.r#type() == event::EventType::Delete;
    let kv = event.kv?;
    if deleted {
        let revision = Revision::new(kv.mod_revision);
        return Some(Changed { key: key(kv.key)?, revision, current: None, near: None });
    }
    let current = rev(kv, extract)?;
    let (key, revision) = (current.key.clone(), current.revision);
    Some(Changed { key, revision, current: Some(current), near: None })
}

/// Keys of a store are text. A key that is not was put there by somebody else, and is left alone.
fn key(bytes: Vec<u8>) -> Option<Key> {
    match String::from_utf8(bytes) {
        Ok(key) => Some(Key::from(key)),
        Err(error) => {
            let key = String::from_utf8_lossy(error.as_bytes()).into_owned();
            tracing::warn!(key, "a key in etcd is not UTF-8 and is ignored");
            None
        }
    }
}
