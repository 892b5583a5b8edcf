//! What connects one client with the cluster: it can be slow, and it can be cut.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use kube::client::Body;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tower_service::Service;

/// The line between one client and the cluster. A clone is another handle on the same one.
///
/// What is sent over a line that is cut waits until it is mended, unless its sender gives up
/// first; answers and watches wait as well. What is on its way cannot be called back.
#[derive(Clone, Default)]
pub struct Line(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cut: watch::Sender<bool>,
    delay: Mutex<Option<Delay>>,
    /// Requests on their way.
    carried: TaskTracker,
}

type Delay = Box<dyn FnMut() -> Duration + Send>;

impl Line {
    /// A line on which every request takes so long to arrive.
    pub fn slow(delay: impl FnMut() -> Duration + Send + 'static) -> Self {
        let line = Line::default();
        *line.0.delay.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(delay));
        line
    }

    /// Lets nothing through.
    pub fn cut(&self) {
        self.0.cut.send_replace(true);
    }

    /// Lets everything through again, what waits first.
    pub fn mend(&self) {
        self.0.cut.send_replace(false);
    }

    /// A server at the other end of this line.
    pub(crate) fn to<S>(&self, server: S) -> Far<S> {
        Far { server, line: self.clone() }
    }

    async fn mended(&self) {
        // Its sender is here.
        let _ = self.0.cut.subscribe().wait_for(|cut| !cut).await;
    }

    fn delay(&self) -> Duration {
        let mut delay = self.0.delay.lock().unwrap_or_else(PoisonError::into_inner);
        delay.as_mut().map(|next| next()).unwrap_or_default()
    }
}

/// A server at the other end of a line.
#[derive(Clone)]
pub(crate) struct Far<S> {
    server: S,
    line: Line,
}

impl<S, B> Service<Request<Body>> for Far<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Send,
{
    type Response = Response<UnsyncBoxBody<Bytes, B::Error>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.server.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut server, line) = (self.server.clone(), self.line.clone());
        Box::pin(async move {
            line.mended().await;
            let delay = line.delay();
            let carried = line.0.carried.spawn(async move {
                tokio::time::sleep(delay).await;
                server.call(request).await
            });
            let answer = carried.await.unwrap_or_else(|error| panic!("the server: {error}"))?;
            line.mended().await;
            Ok(answer.map(|body| {
                let frames = stream::unfold((body, line), |(mut body, line)| async move {
                    let frame = body.frame().await?;
                    line.mended().await;
                    Some((frame, (body, line)))
                });
                StreamBody::new(frames).boxed_unsync()
            }))
        })
    }
}
