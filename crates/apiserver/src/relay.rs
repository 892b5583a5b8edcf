//! Passing requests on to another server: what is the same whoever that is.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::TryStreamExt as _;
use http::header::{CONNECTION, HeaderMap};
use http::{Request, Response, StatusCode};
use http_body_util::BodyDataStream;
use hyper::upgrade::Upgraded;

use crate::body::{Body, Broken};
use crate::outbound::{Answer, CallError, Line};

/// A connection that has left HTTP, for the edge to join with the client's. In the extensions of an
/// answer with status 101.
#[derive(Clone)]
pub(crate) struct Switched {
    /// What the server has answered, which the client gets as it is.
    pub(crate) headers: HeaderMap,
    stream: Arc<Mutex<Option<Upgraded>>>,
}

/// That the client's connection can leave HTTP. In the extensions of requests.
#[derive(Clone, Copy)]
pub(crate) struct Switchable;

/// What becomes of a request to leave HTTP.
pub(crate) enum Switch {
    /// The client leaves it too.
    Done(Response<Body>),
    /// The server says no.
    Refused(Response<Answer>),
}

/// Why nobody leaves HTTP, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SwitchError {
    #[error("error dialing backend: {0}")]
    Unreached(CallError),
    #[error("invalid upgrade response: status code {0}")]
    Ignored(u16),
    #[error("request connection cannot be hijacked")]
    Stuck,
}

impl Switched {
    /// The connection, once.
    pub(crate) fn take(&self) -> Option<Upgraded> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Whether a client asks to leave HTTP. Any word of the header will do, as upstream has it.
pub(crate) fn asks_to_switch(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// Asks a server to leave HTTP, and if it does, has the client leave it too.
pub(crate) async fn switch<B>(
    line: &Line,
    request: Request<B>,
    is_switchable: bool,
) -> Result<Switch, SwitchError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut answer = line.send(request).await.map_err(SwitchError::Unreached)?;
    match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS => {}
        status if status.as_u16() >= 400 => return Ok(Switch::Refused(answer)),
        status => return Err(SwitchError::Ignored(status.as_u16())),
    }
    if !is_switchable {
        return Err(SwitchError::Stuck);
    }
    let headers = std::mem::take(answer.headers_mut());
    let stream = Answer::switch(answer).await.map_err(SwitchError::Unreached)?;
    let stream = Arc::new(Mutex::new(Some(stream)));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.extensions_mut().insert(Switched { headers, stream });
    Ok(Switch::Done(response))
}

/// The body of another server's answer, as it comes.
pub(crate) fn passed(body: Answer) -> Body {
    Body::passed(BodyDataStream::new(body).map_err(|error| {
        tracing::debug!(%error, "an answer broke off");
        Broken
    }))
}
