//! Servers of an operator: where they listen, and how they end.
//!
//! A [`Listener`] speaks HTTP, over TLS if it is given a certificate, and answers by a function.
//! [`probes`] tell the kubelet how the operator fares, [`metrics`] tell Prometheus, behind
//! [`Access`]; webhooks are served by [`crate::webhook::Server`].

mod access;
mod bind;
mod connection;
pub mod debug;
pub mod metrics;
pub mod probes;
mod process;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use crate::certificate::Current;

use self::connection::Endpoint;

pub use self::access::{Access, Refused};
pub use self::bind::{Bind, BindError, UnknownBind};
pub use self::probes::Check;
pub use self::process::Process;

/// What a request is answered with.
pub type Answer = Response<Full<Bytes>>;

/// How long those who have asked are still answered when a server ends.
const DRAIN_MAX: Duration = Duration::from_secs(60);

/// A place where HTTP is spoken.
pub struct Listener {
    name: &'static str,
    listener: TcpListener,
    address: SocketAddr,
    certificate: Option<Current>,
    is_http2: bool,
}

impl Listener {
    /// Takes a place, without answering yet. `name` is for people.
    ///
    /// # Errors
    /// If it is taken, or there is none to take.
    pub async fn bind(name: &'static str, bind: &Bind) -> Result<Self, BindError> {
        let listener = bind.listen(name).await?;
        let address = listener.local_addr().map_err(|source| BindError::Taken {
            name,
            bind: bind.clone(),
            source,
        })?;
        Ok(Listener { name, listener, address, certificate: None, is_http2: false })
    }

    /// Speaks TLS, and shows whatever certificate is current when a client comes.
    pub fn secured(self, certificate: Current) -> Self {
        Listener { certificate: Some(certificate), ..self }
    }

    /// Also speaks HTTP/2, over TLS.
    pub fn http2(self, is_on: bool) -> Self {
        Listener { is_http2: is_on, ..self }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether somebody answers here.
    pub fn check(&self) -> Check {
        connection::check(self.name, self.address, self.certificate.is_some())
    }

    /// Answers until `shutdown`, and then those who have asked already, for up to a minute.
    pub async fn run<H, F>(self, answer: H, shutdown: CancellationToken)
    where
        H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        let Listener { name, listener, address, certificate, is_http2 } = self;
        info!(server = name, %address, "serving");
        let (tasks, abort) = (TaskTracker::new(), CancellationToken::new());
        let tls = certificate.map(|certificate| TlsAcceptor::from(certificate.config(is_http2)));
        let endpoint = Arc::new(Endpoint::new(tls, &tasks, answer));
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let endpoint = Arc::clone(&endpoint);
                    let (shutdown, abort) = (shutdown.clone(), abort.clone());
                    tasks.spawn(async move {
                        abort.run_until_cancelled(endpoint.serve(stream, peer, &shutdown)).await
                    });
                }
                // The other side went away before it was accepted.
                Err(error) if is_theirs(&error) => debug!(%error, "connection lost"),
                Err(error) => {
                    warn!(server = name, %error, "connection not accepted");
                    // Most likely there are no more file descriptors: wait until some are free.
                    let wait = tokio::time::sleep(Duration::from_millis(100));
                    shutdown.run_until_cancelled(wait).await;
                }
            }
        }
        drop(listener);
        tasks.close();
        if tokio::time::timeout(DRAIN_MAX, tasks.wait()).await.is_err() {
            warn!(server = name, connections = tasks.len(), "requests outlasted the shutdown");
            abort.cancel();
            tasks.wait().await;
        }
    }
}

fn is_theirs(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(body).expect("an answer has keys of text");
    answer(status, "application/json", body)
}

pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = answer(status, "text/plain; charset=utf-8", body);
    answer
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// As Go's servers say it.
pub(crate) fn not_found() -> Answer {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn answer(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}
