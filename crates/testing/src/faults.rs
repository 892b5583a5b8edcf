//! What can go wrong between a client and the server, on demand.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream;
use http::request::Parts;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

/// Faults of a cluster. A clone is another handle on the same ones.
#[derive(Clone, Default)]
pub struct Faults(Arc<Inner>);

#[derive(Default)]
struct Inner {
    planned: Mutex<Vec<Planned>>,
    /// Ends all watches that are open.
    cut: Mutex<CancellationToken>,
    /// The same, with a word.
    expired: Mutex<CancellationToken>,
    /// Whether watches tell nothing.
    held: watch::Sender<bool>,
}

/// What becomes of some requests.
struct Planned {
    which: Box<dyn Fn(&Parts) -> bool + Send>,
    left: usize,
    fault: Fault,
}

#[derive(Clone, Copy)]
enum Fault {
    Answer(u16),
    Delay(Duration),
}

/// Watches tell nothing for as long as this is there; then they tell all of it.
#[must_use = "watches go on when this is dropped"]
pub struct Held(Faults);

impl Faults {
    /// Answers the next `count` requests that are so with a failure: 409, 410, 429, 500, 503 and
    /// others, in the words of a server. Where one says after how long to try again, it does: 429 and
    /// 503 in a header and in the details, 504 in the details.
    pub fn answer(&self, code: u16, count: usize, which: impl Fn(&Parts) -> bool + Send + 'static) {
        self.plan(Fault::Answer(code), count, which);
    }

    /// Lets the next `count` requests that are so wait before they reach the server.
    pub fn delay(
        &self,
        delay: Duration,
        count: usize,
        which: impl Fn(&Parts) -> bool + Send + 'static,
    ) {
        self.plan(Fault::Delay(delay), count, which);
    }

    /// Ends all watches that are open, in the middle of whatever they tell.
    pub fn cut_watches(&self) {
        let mut cut = self.0.cut.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *cut).cancel();
    }

    /// Ends all watches that are open as a server does that has forgotten what came after their
    /// version: the last thing they tell is a failure with code 410.
    pub fn expire_watches(&self) {
        let mut expired = self.0.expired.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *expired).cancel();
    }

    /// Answers and delays no more requests, however many were planned.
    pub fn heal(&self) {
        self.planned().clear();
    }

    /// Lets watches, open ones and new ones, tell nothing for a while.
    pub fn hold_watches(&self) -> Held {
        self.0.held.send_replace(true);
        Held(self.clone())
    }

    /// A server that has these faults.
    pub(crate) fn around<S>(&self, server: S) -> Faulty<S> {
        Faulty { server, faults: self.clone() }
    }

    fn plan(&self, fault: Fault, count: usize, which: impl Fn(&Parts) -> bool + Send + 'static) {
        self.planned().push(Planned { which: Box::new(which), left: count, fault });
    }

    /// What is to become of a request.
    fn next(&self, request: &Parts) -> Option<Fault> {
        let mut planned = self.planned();
        let at = planned.iter().position(|plan| (plan.which)(request))?;
        let fault = planned[at].fault;
        planned[at].left -= 1;
        if planned[at].left == 0 {
            planned.remove(at);
        }
        Some(fault)
    }

    fn planned(&self) -> MutexGuard<'_, Vec<Planned>> {
        self.0.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.held.send_replace(false);
    }
}

/// A server behind faults.
#[derive(Clone)]
pub(crate) struct Faulty<S> {
    server: S,
    faults: Faults,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl<S, B> Service<Request<Body>> for Faulty<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Answer, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.server.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut server, faults) = (self.server.clone(), self.faults.clone());
        let (parts, body) = request.into_parts();
        let is_watch = parts.uri.query().is_some_and(|query| query.contains("watch=1"))
            || parts.uri.query().is_some_and(|query| query.contains("watch=true"));
        Box::pin(async move {
            match faults.next(&parts) {
                Some(Fault::Answer(code)) => return Ok(refusal(code)),
                Some(Fault::Delay(delay)) => tokio::time::sleep(delay).await,
                None => {}
            }
            let answer = server.call(Request::from_parts(parts, body)).await?;
            Ok(answer.map(|body| match is_watch {
                true => faults.watched(body),
                false => body.map_err(Into::into).boxed_unsync(),
            }))
        })
    }
}

impl Faults {
    /// A watch that can be cut and held.
    fn watched<B>(&self, body: B) -> UnsyncBoxBody<Bytes, BoxError>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let now = |token: &Mutex<CancellationToken>| {
            token.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        let (cut, expired) = (now(&self.0.cut), now(&self.0.expired));
        let told = Told { body: body.map_err(Into::into), held: self.0.held.subscribe() };
        let frames = stream::unfold(Some((told, cut, expired)), |watch| async {
            let (mut told, cut, expired) = watch?;
            tokio::select! {
                () = cut.cancelled() => {
                    Some((Err(io::Error::from(io::ErrorKind::ConnectionReset).into()), None))
                }
                () = expired.cancelled() => Some((Ok(Frame::data(expiry())), None)),
                frame = told.next() => frame.map(|frame| (frame, Some((told, cut, expired)))),
            }
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

/// What a watch tells, when it is let.
struct Told<B> {
    body: B,
    held: watch::Receiver<bool>,
}

impl<B: http_body::Body<Data = Bytes, Error = BoxError> + Unpin> Told<B> {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        // Its sender is in the faults, which the client has.
        let _ = self.held.wait_for(|held| !held).await;
        let frame = self.body.frame().await;
        let _ = self.held.wait_for(|held| !held).await;
        frame
    }
}

/// What a watch tells last whose version is too old.
fn expiry() -> Bytes {
    Bytes::from(format!("{}\n", json!({ "type": "ERROR", "object": status(410) })))
}

/// After how many seconds a server says that it may be asked again, if it does, as upstream's.
fn retry_after(code: u16) -> Option<u32> {
    matches!(code, 429 | 503 | 504).then_some(1)
}

/// A failure in the words of a server.
fn status(code: u16) -> Value {
    let reason = match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        413 => "RequestEntityTooLarge",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "a fault that a test asked for", "reason": reason, "code": code,
    });
    if let Some(seconds) = retry_after(code) {
        status["details"] = json!({ "retryAfterSeconds": seconds });
    }
    status
}

/// What a server says when it cannot, will not or must not.
fn refusal(code: u16) -> Answer {
    let body = Full::new(Bytes::from(status(code).to_string())).map_err(|never| match never {});
    let mut answer = Response::builder().status(code).header("content-type", "application/json");
    // A timeout says it in the details alone.
    if let Some(seconds) = retry_after(code).filter(|_| code != 504) {
        answer = answer.header("retry-after", seconds.to_string());
    }
    answer.body(body.boxed_unsync()).expect("an answer")
}
