//! Compression of long answers, for clients that asked for it.

use std::collections::VecDeque;
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt as _;
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;
use http_body::{Body as _, Frame};

use crate::body::{Body, Broken};

/// Shorter answers are sent as they are: on a fast network compressing them costs more time than
/// it saves.
const BYTES_MIN: usize = 128 << 10;
/// How much is compressed before other requests get their turn.
const PIECE_BYTES: usize = 64 << 10;

/// An answer that is compressed while it is sent.
pub(super) struct Gzip {
    body: Body,
    /// What was read of the body but not compressed yet.
    rest: Bytes,
    /// None when the end was written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

/// An answer that is long enough to be compressed, or not.
pub(super) enum Choice {
    Plain(Body),
    Compressed(Box<Gzip>),
}

/// Whether the client reads gzip. As upstream has it, a client that adds a quality does not.
pub(super) fn is_accepted(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.split(',').any(|token| token.trim() == "gzip"))
}

/// Compresses an answer if it is long.
pub(super) async fn choose(body: Body) -> Choice {
    match body {
        Body::Whole(Some(bytes)) if bytes.len() > BYTES_MIN => {
            Choice::Compressed(Box::new(Gzip::new(Body::empty(), bytes)))
        }
        Body::Whole(bytes) => Choice::Plain(Body::Whole(bytes)),
        // Whoever made it has decided.
        passed @ Body::Passed(_) => Choice::Plain(passed),
        Body::Stream(mut stream) => {
            let mut head = VecDeque::new();
            let mut length = 0;
            while length <= BYTES_MIN {
                let Some(bytes) = stream.next().await else {
                    return Choice::Plain(Vec::from(head).concat::<u8>().into());
                };
                length += bytes.len();
                head.push_back(bytes);
            }
            let rest = head.pop_front().unwrap_or_default();
            let body = Body::stream(futures::stream::iter(head).chain(stream));
            Choice::Compressed(Box::new(Gzip::new(body, rest)))
        }
    }
}

impl Gzip {
    fn new(body: Body, rest: Bytes) -> Self {
        // Level 1 comes close to higher ones on JSON, at a fraction of their cost.
        let encoder = GzEncoder::new(Vec::with_capacity(PIECE_BYTES / 4), Compression::fast());
        Gzip { body, rest, encoder: Some(encoder) }
    }

    pub(super) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        while let Some(encoder) = &mut self.encoder {
            if self.rest.is_empty() {
                match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                    Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                    Some(Err(broken)) => return Poll::Ready(Some(Err(broken))),
                    None => {
                        let end = self.encoder.take().map(GzEncoder::finish);
                        let end = end.and_then(Result::ok).unwrap_or_default();
                        return Poll::Ready(Some(Ok(Frame::data(end.into()))));
                    }
                }
                continue;
            }
            let piece = self.rest.split_to(self.rest.len().min(PIECE_BYTES));
            encoder.write_all(&piece).expect("memory can be written to");
            let compressed = std::mem::take(encoder.get_mut());
            if !compressed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(compressed.into()))));
            }
        }
        Poll::Ready(None)
    }
}
