//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::header::EXPECT;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::front::Front;
use super::socket::{Asked, Socket};
use super::upload::Upload;
use super::{Limits, Peer, Tls};
use crate::body::Body;

/// Most request bodies fit in one frame of this size.
const FRAME_BYTES: u32 = 256 << 10;
/// How much of an answer is kept for a client that does not read.
const SEND_BYTES: usize = 256 << 10;
const PING_ANSWER_MAX: Duration = Duration::from_secs(20);
/// How often the other end of a quiet TCP connection is asked whether it is still there.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(180);
/// What Go's servers say, without TLS, to a client that uses none.
const NOT_TLS: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// What all connections of a listener have in common.
pub(super) struct Endpoint<H> {
    pub(super) acceptor: TlsAcceptor,
    pub(super) tls: Tls,
    pub(super) http: Http,
    pub(super) front: Front,
    pub(super) handler: H,
    pub(super) limits: Limits,
}

/// The two protocols. Which one is spoken is settled while the connection is secured.
pub(super) struct Http {
    one: auto::Builder<Streams>,
    two: auto::Builder<Streams>,
}

/// Runs the streams of HTTP/2 connections where their owner can wait for them.
#[derive(Clone)]
pub(super) struct Streams(TaskTracker);

/// The requests of a connection.
#[derive(Default)]
pub(super) struct Traffic {
    begun: AtomicUsize,
    under_way: AtomicUsize,
}

/// A request that is under way.
pub(super) struct UnderWay(Arc<Traffic>);

impl<H, F> Endpoint<H>
where
    H: Fn(Request<Upload>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    /// Returns when the connection has ended, for whatever reason.
    pub(super) async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        address: SocketAddr,
        shutdown: &CancellationToken,
    ) {
        let secured = tokio::time::timeout(self.limits.handshake_max, self.secure(stream));
        let stream = tokio::select! {
            () = shutdown.cancelled() => return,
            secured = secured => match secured {
                Ok(Ok(Some(stream))) => stream,
                Ok(Ok(None)) => return,
                Ok(Err(error)) => return debug!(%address, %error, "connection not secured"),
                Err(_) => return debug!(%address, "connection not secured in time"),
            },
        };
        self.speak(stream, address, shutdown).await;
    }

    /// None if the client turns out to speak no TLS, which it has been told then.
    async fn secure(&self, mut stream: TcpStream) -> io::Result<Option<TlsStream<TcpStream>>> {
        // Answers are written whole, so waiting for more to send with them gains nothing.
        stream.set_nodelay(true)?;
        rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
        rustix::net::sockopt::set_tcp_keepidle(&stream, TCP_KEEP_ALIVE)?;
        let mut first = [0; 5];
        let read = stream.peek(&mut first).await?;
        if matches!(&first[..read], b"GET /" | b"HEAD " | b"POST " | b"PUT /" | b"OPTIO") {
            stream.write_all(NOT_TLS).await?;
            stream.shutdown().await?;
            return Ok(None);
        }
        self.acceptor.accept(stream).await.map(Some)
    }

    async fn speak(
        self: Arc<Self>,
        stream: TlsStream<TcpStream>,
        address: SocketAddr,
        shutdown: &CancellationToken,
    ) {
        let (_, session) = stream.get_ref();
        // Once for all requests; whether it has expired since is looked at for each.
        let presented = session.peer_certificates().unwrap_or_default();
        let (shown, proxy) = (self.tls.judge(presented), self.tls.proxy(presented));
        let peer = Arc::new(Peer { address, shown, proxy, certified: OnceLock::new() });
        let is_h2 = session.alpn_protocol() == Some(b"h2");

        let traffic = Arc::new(Traffic::default());
        let socket: Arc<Mutex<Option<Socket>>> = Arc::default();
        let service = service_fn(|mut request: Request<Incoming>| {
            let under_way = Traffic::begin(&traffic);
            request.extensions_mut().insert(Arc::clone(&peer));
            let endpoint = Arc::clone(&self);
            let asked = Asked::of(&mut request);
            let socket = Arc::clone(&socket);
            async move {
                let waits = request.headers().contains_key(EXPECT);
                let (parts, body) = request.into_parts();
                let (body, rest) = Upload::of(body);
                let request = Request::from_parts(parts, body);
                let answer = endpoint.front.answer(request, under_way, &endpoint.handler).await;
                // Who waits to be asked for its body has not sent any.
                if !waits {
                    rest.drain().await;
                }
                let Some(asked) = asked else { return Ok::<_, Infallible>(answer) };
                let (answer, opened) = asked.answer(answer);
                *socket.lock().unwrap_or_else(PoisonError::into_inner) = opened;
                Ok(answer)
            }
        });
        let http = if is_h2 { &self.http.two } else { &self.http.one };
        let mut connection =
            pin!(http.serve_connection_with_upgrades(TokioIo::new(stream), service));

        let mut draining = false;
        let mut seen = 0;
        let mut quiet = pin!(tokio::time::sleep(self.limits.first_request_max));
        loop {
            tokio::select! {
                result = connection.as_mut() => {
                    if let Err(error) = result {
                        debug!(%address, error, "connection broken");
                    }
                    break;
                }
                () = shutdown.cancelled(), if !draining => {
                    draining = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = &mut quiet, if !draining => {
                    let begun = traffic.begun.load(Ordering::Relaxed);
                    if begun == 0 {
                        return debug!(%address, "connection without a request");
                    }
                    if begun == seen && traffic.under_way.load(Ordering::Relaxed) == 0 {
                        draining = true;
                        connection.as_mut().graceful_shutdown();
                    }
                    seen = begun;
                    quiet.as_mut().reset(tokio::time::Instant::now() + self.limits.idle_max);
                }
            }
        }
        let opened = socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(socket) = opened {
            socket.run(shutdown).await;
        }
    }
}

impl Http {
    pub(super) fn new(limits: &Limits, tasks: &TaskTracker) -> Self {
        let streams = Streams(tasks.clone());
        let mut one = auto::Builder::new(streams.clone());
        one.http1()
            // Connections that bring no request are ended by whoever serves them; a timer for each
            // request would be set and taken back for nothing.
            .header_read_timeout(None)
            .max_headers(limits.header_count_max)
            .max_buf_size(limits.header_bytes_max as usize)
            // As Go writes them; some people's scripts look for `Audit-Id`.
            .title_case_headers(true);
        let mut two = auto::Builder::new(streams);
        two.http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(limits.ping_interval)
            .keep_alive_timeout(PING_ANSWER_MAX)
            .max_header_list_size(limits.header_bytes_max)
            .max_concurrent_streams(limits.streams_max)
            .max_frame_size(FRAME_BYTES)
            .initial_stream_window_size(FRAME_BYTES)
            .initial_connection_window_size(FRAME_BYTES.saturating_mul(limits.streams_max))
            .max_send_buf_size(SEND_BYTES);
        Http { one: one.http1_only(), two: two.http2_only() }
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

impl Traffic {
    pub(super) fn begin(traffic: &Arc<Self>) -> UnderWay {
        traffic.begun.fetch_add(1, Ordering::Relaxed);
        traffic.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(traffic))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
