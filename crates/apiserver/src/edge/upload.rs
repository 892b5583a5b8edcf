//! The body of a request that comes over a connection.
//!
//! Who is still sending when the answer comes may never see it: over HTTP/2 the stream is reset,
//! over HTTP/1.1 the connection closed. So what a handler left is read before the answer goes out,
//! as far as that is a matter of moments.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

/// How much is read for nobody, and for how long.
const REST_BYTES_MAX: usize = 4 << 20;
const REST_MAX: Duration = Duration::from_secs(1);

/// A body, for whoever handles the request.
pub struct Upload(Arc<Mutex<Incoming>>);

/// What is left of a body when it was handled.
pub(super) struct Rest(Arc<Mutex<Incoming>>);

impl Upload {
    pub(super) fn of(body: Incoming) -> (Self, Rest) {
        let body = Arc::new(Mutex::new(body));
        (Upload(Arc::clone(&body)), Rest(body))
    }

    fn body(&self) -> MutexGuard<'_, Incoming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rest {
    /// Reads what is left, unless somebody still reads it.
    pub(super) async fn drain(self) {
        let Some(body) = Arc::into_inner(self.0) else { return };
        let mut body = body.into_inner().unwrap_or_else(PoisonError::into_inner);
        if body.is_end_stream() {
            return;
        }
        let reading = async {
            let mut read = 0;
            while read < REST_BYTES_MAX
                && let Some(Ok(frame)) = body.frame().await
            {
                read += frame.data_ref().map_or(0, Bytes::len);
            }
        };
        // Whoever is slower than that must see for itself.
        let _ = tokio::time::timeout(REST_MAX, reading).await;
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut *self.body()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body().size_hint()
    }
}
