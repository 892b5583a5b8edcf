//! The body of an answer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream;
use futures::stream::BoxStream;
use http_body::{Frame, SizeHint};

/// The body of an answer: bytes, or bytes to come.
pub enum Body {
    /// Everything, taken when sent.
    Whole(Option<Bytes>),
    /// A list too long to be made at once, or a watch.
    Stream(BoxStream<'static, Bytes>),
    /// The answer of another server, which may break off.
    Passed(BoxStream<'static, Result<Bytes, Broken>>),
}

/// The answer of another server broke off.
#[derive(Debug, thiserror::Error)]
#[error("pass on the whole answer of another server")]
pub struct Broken;

impl Body {
    pub fn empty() -> Self {
        Body::Whole(None)
    }

    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Body::Stream(Box::pin(stream))
    }

    pub fn passed(stream: impl Stream<Item = Result<Bytes, Broken>> + Send + 'static) -> Self {
        Body::Passed(Box::pin(stream))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Body::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let bytes = match self.get_mut() {
            Body::Whole(bytes) => bytes.take(),
            Body::Stream(stream) => ready!(stream.as_mut().poll_next(context)),
            Body::Passed(stream) => {
                let piece = ready!(stream.as_mut().poll_next(context));
                return Poll::Ready(piece.map(|piece| piece.map(Frame::data)));
            }
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Stream(_) | Body::Passed(_) => SizeHint::default(),
        }
    }
}
