//! The server without a socket: a client in the same process calls it as a service.

use std::convert::Infallible;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use tower_service::Service;

use super::front;
use crate::body::Body;
use crate::server::Server;
use crate::user::User;

/// A server as one user sees it: what `kube::Client::new` takes.
///
/// Requests carry the user in their extensions, which no socket can set, and are then treated like
/// any other: the user may do what it may do over TLS.
#[derive(Clone)]
pub struct Local {
    server: Server,
    user: User,
}

impl Server {
    /// The server as this user sees it, without a socket.
    pub fn as_user(&self, user: User) -> Local {
        Local { server: self.clone(), user }
    }
}

impl<B> Service<Request<B>> for Local
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let audit_id = front::audit_id(&mut request);
        request.extensions_mut().insert(self.user.clone());
        let server = self.server.clone();
        Box::pin(async move {
            let mut response = server.call(request).await;
            response.headers_mut().entry(&front::AUDIT_ID).or_insert(audit_id);
            Ok(response)
        })
    }
}
