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
use serde_json::json;
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
    /// Answers the next `count` requests that are so with a failure: 409, 410, 429, 500.
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
        let cut = self.0.cut.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let held = self.0.held.subscribe();
        let body = body.map_err(Into::<BoxError>::into);
        let frames = stream::unfold((body, held, cut), |(mut body, mut held, cut)| async move {
            let next = async {
                // Its sender is in the faults, which the client has.
                let _ = held.wait_for(|held| !held).await;
                let frame = body.frame().await;
                let _ = held.wait_for(|held| !held).await;
                frame
            };
            let frame: Result<Frame<Bytes>, BoxError> = tokio::select! {
                () = cut.cancelled() => Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
                frame = next => frame?,
            };
            Some((frame, (body, held, cut)))
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

/// What a server says when it cannot, will not or must not.
fn refusal(code: u16) -> Answer {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "a fault that a test asked for", "reason": reason, "code": code,
    });
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {});
    Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(body.boxed_unsync())
        .expect("an answer")
}
