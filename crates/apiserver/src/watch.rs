//! WATCH: changes as they happen, framed once and shared by all who watch.
//!
//! A watch is a stream that the connection polls; it has no task of its own. It holds a cursor into
//! the history of its resource and takes the next events only when the client has taken the last,
//! so a slow client costs nobody anything. When history has moved past its cursor it is told that
//! its version is too old.

mod definition;
mod follow;
mod frame;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, stream};
use http::header::HeaderValue;
use http::{Response, StatusCode};
use kubewright_apimachinery::status::Status;
use kubewright_store::{Revision, Start, WatchError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::definition::Definition;
use self::follow::{Follow, Initial};
use self::frame::Frames;
use crate::body::Body;
use crate::encode;
use crate::list_options::{ListOptions, unexpected, version};
use crate::metrics::Histogram;
use crate::negotiate::{Encoding, View};
use crate::read::{Reader, not_older_than, revision};
use crate::resource::Origin;

/// Watches that say nothing about it end after this, or up to twice as long.
const TIMEOUT_MIN: Duration = Duration::from_secs(30 * 60);
/// Watches that ask for more end after this, some 292 years: what Go's durations can hold.
const TIMEOUT_MAX: Duration = Duration::from_nanos(i64::MAX.unsigned_abs());

/// Where a watch begins.
struct Beginning {
    initial: Option<Initial>,
    watch: kubewright_store::Watch<crate::index::Index>,
    /// Events up to here are not wanted.
    skip: Revision,
}

impl Reader<'_> {
    /// Answers with the changes of a collection. The stream ends when its time is up, when the
    /// client goes away, or when `shutdown` is cancelled. The sizes of its events are counted in
    /// `sizes`.
    pub(crate) async fn watch(
        &self,
        options: &ListOptions,
        shutdown: CancellationToken,
        sizes: Arc<Histogram>,
    ) -> Result<Response<Body>, Box<Status>> {
        let asked = version(&options.resource_version).map_err(unexpected)?;
        // Once the version could be read, what goes wrong is an event.
        let beginning = self.begin(asked, options).await;
        let frames = Frames::new(self, sizes)?;
        self.format.check_stream()?;

        let media_type = match self.format.encoding {
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            _ => "application/json",
        };
        let body = match beginning {
            // Nobody can show an event as a list.
            _ if matches!(self.format.view, View::PartialObjectMetadataList(_)) => Body::empty(),
            Err(refusal) => frames.error(&refusal).into(),
            Ok(beginning) => {
                let follow = self.follow(beginning, frames, options, shutdown);
                Body::stream(stream::unfold(follow, |mut follow| async move {
                    let bytes = follow.next().await?;
                    Some((bytes, follow))
                }))
            }
        };
        let media_type = HeaderValue::from_static(media_type);
        Ok(encode::typed(StatusCode::OK, media_type, body))
    }

    fn follow(
        &self,
        beginning: Beginning,
        frames: Frames,
        options: &ListOptions,
        shutdown: CancellationToken,
    ) -> Follow {
        let now = Instant::now();
        let timeout = match options.timeout_seconds {
            None | Some(0) => TIMEOUT_MIN.mul_f64(1.0 + random()),
            Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
        };
        let timeout = timeout.min(TIMEOUT_MAX);
        let Beginning { initial, watch, skip } = beginning;
        let is_list = options.send_initial_events == Some(true) && options.allow_bookmarks;
        let definition = match &self.resource.origin {
            Origin::Builtin(_) => None,
            Origin::Custom(custom) => Definition::watch(self.store, custom),
        };
        Follow {
            initial_end: initial.as_ref().filter(|_| is_list).map(Initial::revision),
            initial,
            watch,
            skip,
            frames,
            selection: options.selection.clone(),
            queue: Default::default(),
            deadline: now + timeout,
            end: follow::end(now + timeout, shutdown.clone()).boxed(),
            bookmark: match options.allow_bookmarks {
                true => follow::next_bookmark(now, now + timeout),
                false => None,
            },
            definition,
            shutdown,
            is_over: false,
        }
    }

    /// Finds out where to begin, and waits for it if need be.
    async fn begin(&self, asked: u64, options: &ListOptions) -> Result<Beginning, Box<Status>> {
        let prefix = match self.single(options) {
            Some(key) => key.as_str().to_owned(),
            None => self.resource.prefix_in(self.narrowed(options)),
        };
        let is_unset = options.resource_version.is_empty();
        let with_initial = match options.send_initial_events {
            Some(wanted) => wanted,
            None => asked == 0,
        };
        if with_initial {
            let snapshot = match is_unset && options.send_initial_events.is_some() {
                true => self.latest("watch").await?,
                false => not_older_than(self.store, asked).await?,
            };
            let from = snapshot.revision();
            let watch = self.store.watch(&prefix, Start::After(from)).map_err(refused)?;
            return Ok(Beginning {
                initial: Some(Initial::new(snapshot, prefix)),
                watch,
                skip: from,
            });
        }
        let from = match asked {
            0 if is_unset => self.latest("watch").await?.revision(),
            0 => self.store.revision(),
            asked => revision(asked),
        };
        let watch = match self.store.watch(&prefix, Start::After(from)) {
            // What is still to come will be seen when it comes.
            Err(WatchError::Future { .. }) => self.store.watch(&prefix, Start::Now),
            other => other,
        };
        Ok(Beginning { initial: None, watch: watch.map_err(refused)?, skip: from })
    }
}

/// Why a watch cannot begin or go on.
fn refused(error: WatchError) -> Box<Status> {
    Box::new(match error {
        WatchError::Compacted { requested, oldest } => {
            Status::expired(format!("too old resource version: {requested} ({oldest})"))
        }
        WatchError::Future { .. } | WatchError::Closed => {
            Status::service_unavailable("the storage is closed")
        }
    })
}

/// A number between zero and one.
fn random() -> f64 {
    let bytes = getrandom::u32().unwrap_or_default();
    f64::from(bytes) / f64::from(u32::MAX)
}
