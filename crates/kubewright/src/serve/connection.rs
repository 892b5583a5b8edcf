//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::Answer;
use super::probes::Check;
use crate::certificate;

/// As Go's servers have it.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// How long a connection without a request is kept.
const IDLE_MAX: Duration = Duration::from_secs(90);
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How long a server may take to answer whether it is there.
const CHECK_MAX: Duration = Duration::from_secs(10);

/// What all connections of a listener have in common.
pub(super) struct Endpoint<H> {
    tls: Option<TlsAcceptor>,
    one: auto::Builder<Streams>,
    two: auto::Builder<Streams>,
    answer: H,
}

/// Runs the streams of HTTP/2 connections where their owner can wait for them.
#[derive(Clone)]
struct Streams(TaskTracker);

impl<H, F> Endpoint<H>
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Answer> + Send + 'static,
{
    pub(super) fn new(tls: Option<TlsAcceptor>, tasks: &TaskTracker, answer: H) -> Self {
        let streams = Streams(tasks.clone());
        let mut one = auto::Builder::new(streams.clone());
        one.http1()
            .timer(TokioTimer::new())
            // Runs while a connection is idle, too, so it cannot be shorter.
            .header_read_timeout(IDLE_MAX)
            .max_buf_size(HEADER_BYTES_MAX);
        let mut two = auto::Builder::new(streams);
        two.http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(IDLE_MAX)
            .max_header_list_size(HEADER_BYTES_MAX as u32);
        Endpoint { tls, one: one.http1_only(), two: two.http2_only(), answer }
    }

    /// Returns when the connection has ended, for whatever reason.
    pub(super) async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        shutdown: &CancellationToken,
    ) {
        // Answers are small and awaited.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.speak(TokioIo::new(stream), &self.one, peer, shutdown).await;
        };
        let secured = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream));
        let stream = tokio::select! {
            () = shutdown.cancelled() => return,
            secured = secured => match secured {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return debug!(%peer, %error, "connection not secured"),
                Err(_) => return debug!(%peer, "connection not secured in time"),
            },
        };
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(certificate::HTTP2);
        let http = if is_h2 { &self.two } else { &self.one };
        self.speak(TokioIo::new(stream), http, peer, shutdown).await;
    }

    async fn speak<S>(
        &self,
        stream: S,
        http: &auto::Builder<Streams>,
        peer: SocketAddr,
        shutdown: &CancellationToken,
    ) where
        S: Read + Write + Unpin + 'static,
    {
        let service = service_fn(|request| {
            let answering = (self.answer)(request);
            async { Ok::<_, Infallible>(answering.await) }
        });
        let mut connection = pin!(http.serve_connection(stream, service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            debug!(%peer, error, "connection broken");
        }
    }
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.0.spawn(stream);
    }
}

/// Whether connections to a server can be made, and secured, whoever it is.
pub(super) fn check(name: &'static str, address: SocketAddr, is_secured: bool) -> Check {
    let address = SocketAddr::new(
        match address.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
            other => other,
        },
        address.port(),
    );
    Check::new(move || async move {
        let connect = async {
            let stream = TcpStream::connect(address).await?;
            if is_secured {
                let connector = TlsConnector::from(certificate::anyone());
                connector.connect(ServerName::from(address.ip()), stream).await?;
            }
            io::Result::Ok(())
        };
        match tokio::time::timeout(CHECK_MAX, connect).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("the server of {name} is not reachable: {error}")),
            Err(_) => Err(format!("the server of {name} does not answer in time")),
        }
    })
}
