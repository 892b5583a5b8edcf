//! The server without a socket: a client in the same process calls it as a service.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use tower_service::Service;

use super::front;
use crate::body::Body;
use crate::user::User;

/// A server as one user sees it: what `kube::Client::new` takes.
///
/// Requests carry the user in their extensions, which no socket can set, and are then treated like
/// any other: the user may do what it may do over TLS.
#[derive(Debug, Clone)]
pub struct Local<H> {
    handler: H,
    user: Arc<User>,
}

impl<H> Local<H> {
    pub fn new(handler: H, user: User) -> Self {
        Local { handler, user: Arc::new(user) }
    }
}

impl<H, F, B> Service<Request<B>> for Local<H>
where
    H: Fn(Request<B>) -> F,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        front::audit_id(&mut request);
        request.extensions_mut().insert(Arc::clone(&self.user));
        (self.handler)(request).map(Ok).boxed()
    }
}
