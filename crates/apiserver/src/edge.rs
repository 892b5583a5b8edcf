//! Where connections end: HTTP/1.1 and HTTP/2 over TLS, on one listener.
//!
//! The edge knows nothing of Kubernetes but what a request costs: whether it may last (a watch),
//! whether it changes something, and how long it may take. It bounds what a connection and a
//! request may use, and no connection can disturb another. What requests mean is decided by the
//! handler it was given; who makes them, by the handler too, from what the edge knows of the other
//! side ([`Peer`]).

mod class;
mod connection;
mod front;
mod gzip;
mod local;
mod reply;
mod socket;
#[cfg(test)]
mod tests;
mod tls;
mod upload;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Request, Response};
use rustls::pki_types::CertificateDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use self::connection::Endpoint;
use self::front::Front;
use crate::authn::Certified;
use crate::body::Body;

pub(crate) use self::class::asked_timeout;
pub use self::front::REQUEST_LOG;
pub(crate) use self::front::{AUDIT_ID, identified, limit};
pub use self::local::Local;
pub use self::reply::{Reply, Unfinished};
pub use self::tls::{Authorities, Certificates, Oldest, PairError, Shown, Tls, TlsError};
pub use self::upload::Upload;

/// What one connection and one request may use. The defaults are kube-apiserver's.
#[derive(Debug, Clone)]
pub struct Limits {
    /// All headers of a request together.
    pub header_bytes_max: u32,
    pub header_count_max: usize,
    /// From accepting a connection to a secured one.
    pub handshake_max: Duration,
    /// From a secured connection to its first request.
    pub first_request_max: Duration,
    /// How long a connection without a request is kept at least; twice that at most.
    pub idle_max: Duration,
    /// How often the other end of a quiet HTTP/2 connection is asked whether it is still there.
    pub ping_interval: Duration,
    pub streams_max: u32,
    /// How long a request that is no watch may take, unless it asks for less.
    pub request_max: Duration,
    /// How many requests that only read may be under way.
    pub read_only_max: usize,
    /// How many requests that may change something may be under way.
    pub mutating_max: usize,
    /// How long requests under way may go on when the server stops.
    pub drain_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            header_bytes_max: 1 << 20,
            header_count_max: 256,
            handshake_max: Duration::from_secs(10),
            first_request_max: Duration::from_secs(32),
            idle_max: Duration::from_secs(90),
            ping_interval: Duration::from_secs(30),
            streams_max: 100,
            request_max: Duration::from_secs(60),
            read_only_max: 400,
            mutating_max: 200,
            drain_max: Duration::from_secs(10),
        }
    }
}

/// The other end of a request's connection; in the extensions of every request from a socket.
#[derive(Debug, Clone)]
pub struct Peer {
    pub address: SocketAddr,
    pub shown: Shown,
    /// The certificate, if the authorities of proxies vouch for it.
    pub proxy: Option<CertificateDer<'static>>,
    /// Whom the certificate stands for, if anybody; read for the first request.
    pub(crate) certified: OnceLock<Option<Certified>>,
}

/// Serves until `shutdown`, then ends watches, lets other requests finish within
/// [`Limits::drain_max`], and returns when nothing it started is left.
pub async fn serve<H, F>(
    listener: TcpListener,
    tls: Tls,
    limits: Limits,
    handler: H,
    shutdown: CancellationToken,
) where
    H: Fn(Request<Upload>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let tasks = TaskTracker::new();
    let abort = CancellationToken::new();
    let drain_max = limits.drain_max;
    let endpoint = Arc::new(Endpoint {
        acceptor: TlsAcceptor::from(tls.config()),
        tls,
        http: connection::Http::new(&limits, &tasks),
        front: Front::new(&limits, true, shutdown.clone()),
        handler,
        limits,
    });
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let endpoint = Arc::clone(&endpoint);
                let (shutdown, abort) = (shutdown.clone(), abort.clone());
                tasks.spawn(async move {
                    abort.run_until_cancelled(endpoint.serve(stream, address, &shutdown)).await
                });
            }
            // The other side went away before it was accepted.
            Err(error) if is_theirs(&error) => debug!(%error, "connection lost"),
            Err(error) => {
                warn!(%error, "connection not accepted");
                // Most likely there are no more file descriptors: wait until some are free.
                let wait = tokio::time::sleep(Duration::from_millis(100));
                shutdown.run_until_cancelled(wait).await;
            }
        }
    }
    drop(listener);
    tasks.close();
    if tokio::time::timeout(drain_max, tasks.wait()).await.is_err() {
        warn!(tasks = tasks.len(), "requests are cut off: they outlasted the shutdown");
        abort.cancel();
        tasks.wait().await;
    }
}

fn is_theirs(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
