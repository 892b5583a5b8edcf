//! The body of an answer on its way out, with all that lasts as long as it does.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::connection::UnderWay;
use super::gzip::Gzip;
use crate::body::{Body, Broken};

/// The body of an answer on its way out.
pub struct Reply {
    content: Content,
    end: End,
    _under_way: Option<UnderWay>,
    _permit: Option<OwnedSemaphorePermit>,
}

pub(super) enum Content {
    Plain(Body),
    Compressed(Box<Gzip>),
    /// It was ended before its end.
    Ended,
}

/// What ends an answer that has not ended itself.
pub(super) enum End {
    Never,
    /// The server stops: the client sees a whole answer, and asks again.
    Whole(BoxFuture<'static, ()>),
    /// Its time is up: the client must not take it for a whole answer.
    Broken(BoxFuture<'static, ()>),
}

/// Why the client must not take an answer for a whole one.
#[derive(Debug, thiserror::Error)]
pub enum Unfinished {
    /// It outlasted its request's deadline.
    #[error("send the whole answer in time")]
    Late,
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl Reply {
    pub(super) fn new(
        content: Content,
        end: End,
        under_way: UnderWay,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Reply { content, end, _under_way: Some(under_way), _permit: permit }
    }

    /// A few words of the edge's own.
    pub(super) fn text(text: &'static str) -> Self {
        let content = Content::Plain(Bytes::from_static(text.as_bytes()).into());
        Reply { content, end: End::Never, _under_way: None, _permit: None }
    }
}

impl http_body::Body for Reply {
    type Data = Bytes;
    type Error = Unfinished;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unfinished>>> {
        let reply = self.get_mut();
        let ended = match &mut reply.end {
            End::Never => None,
            End::Whole(end) => end.as_mut().poll(context).is_ready().then_some(None),
            End::Broken(end) => {
                let is_late = end.as_mut().poll(context).is_ready();
                is_late.then_some(Some(Err(Unfinished::Late)))
            }
        };
        if let Some(last) = ended {
            reply.content = Content::Ended;
            reply.end = End::Never;
            return Poll::Ready(last);
        }
        let frame = match &mut reply.content {
            Content::Plain(body) => Pin::new(body).poll_frame(context),
            Content::Compressed(gzip) => gzip.poll_frame(context),
            Content::Ended => return Poll::Ready(None),
        };
        frame.map(|frame| frame.map(|frame| frame.map_err(Unfinished::Broken)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Plain(body) => body.is_end_stream(),
            Content::Compressed(_) => false,
            Content::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Plain(body) => body.size_hint(),
            Content::Compressed(_) => SizeHint::default(),
            Content::Ended => SizeHint::with_exact(0),
        }
    }
}
