//! The server without a socket: a client in the same process calls it as a service.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response};
use tower_service::Service;

use super::connection::Traffic;
use super::front::Front;
use super::{Limits, Reply};
use crate::server::Server;
use crate::user::User;

/// A server as one client sees it: what `kube::Client::new` takes.
///
/// Requests carry the user in their extensions, which no socket can set, and are then treated like
/// any other: the user may do what it may do over TLS, and is answered with the same headers and
/// within the same time. Only the log of requests does not show them.
#[derive(Clone)]
pub struct Local {
    server: Server,
    /// Nobody, if requests are to show themselves who makes them.
    user: Option<Arc<User>>,
    agent: Option<HeaderValue>,
    front: Arc<Front>,
    traffic: Arc<Traffic>,
}

impl Local {
    /// The same, for a client that does not say what program it is, which managed fields and the
    /// audit log tell.
    pub fn known_as(mut self, agent: &'static str) -> Local {
        self.agent = Some(HeaderValue::from_static(agent));
        self
    }
}

impl Server {
    /// The server as this user sees it, without a socket.
    pub fn as_user(&self, user: User) -> Local {
        self.local(Some(Arc::new(user)))
    }

    /// The server as anybody sees it, without a socket. Whoever shows no token is anonymous.
    pub fn as_anybody(&self) -> Local {
        self.local(None)
    }

    fn local(&self, user: Option<Arc<User>>) -> Local {
        let front = Front::new(&Limits::default(), false, self.shutdown().clone());
        Local {
            server: self.clone(),
            user,
            agent: None,
            front: Arc::new(front),
            traffic: Arc::default(),
        }
    }
}

impl<B> Service<Request<B>> for Local
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Reply>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Reply>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(user) = &self.user {
            request.extensions_mut().insert(Arc::clone(user));
        }
        if let Some(agent) = &self.agent {
            request.headers_mut().entry(USER_AGENT).or_insert_with(|| agent.clone());
        }
        let under_way = Traffic::begin(&self.traffic);
        let (server, front) = (self.server.clone(), Arc::clone(&self.front));
        Box::pin(async move {
            let handler = |request| async move { server.call(request).await };
            Ok(front.answer(request, under_way, handler).await)
        })
    }
}
