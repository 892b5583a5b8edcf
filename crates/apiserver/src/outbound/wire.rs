//! One connection, and the answers that come over it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, poll_fn};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};

use super::error::{CallError, Cause};
use super::{Idle, join};

/// How long an address may keep us waiting. Some swallow whatever they are sent.
const DIAL_MAX: Duration = Duration::from_secs(30);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A connection. It moves only when somebody waits for something.
pub(super) struct Wire {
    sender: SendRequest<Sent>,
    connection: Option<BoxFuture<'static, hyper::Result<()>>>,
    /// The host and port that were dialled.
    place: (String, u16),
    /// The addresses at both ends.
    ends: String,
}

/// The body of a request.
pub(super) struct Sent(Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>);

/// The body of an answer, which comes as it is read.
pub(crate) struct Answer {
    body: Incoming,
    /// Taken when the answer is over.
    wire: Option<Wire>,
    idle: Arc<Idle>,
}

/// Connects to the first address of a host that answers.
pub(super) async fn dial(host: &str, port: u16) -> Result<TcpStream, Cause> {
    let unknown = || Cause::Unreachable(format!("dial tcp: lookup {host}: no such host"));
    let addresses = lookup_host((host, port)).await.map_err(|_| unknown())?;
    let mut refused = None;
    for address in addresses {
        let place = join(&address.ip().to_string(), port);
        match tokio::time::timeout(DIAL_MAX, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => {
                // Small requests are not to wait for one another.
                let _ = socket.set_nodelay(true);
                return Ok(socket);
            }
            Ok(Err(error)) => {
                refused.get_or_insert_with(|| Cause::of_dial(&place, &error));
            }
            Err(_) => {
                let why = || Cause::Unreachable(format!("dial tcp {place}: i/o timeout"));
                refused.get_or_insert_with(why);
            }
        }
    }
    Err(refused.unwrap_or_else(unknown))
}

impl Wire {
    pub(super) async fn begin(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        place: (String, u16),
        ends: String,
    ) -> Result<Self, Cause> {
        // As Go writes headers.
        let mut builder = http1::Builder::new();
        builder.title_case_headers(true);
        match builder.handshake(TokioIo::new(stream)).await {
            Ok((sender, connection)) => {
                let connection = Some(Box::pin(connection.with_upgrades()) as BoxFuture<'_, _>);
                Ok(Wire { sender, connection, place, ends })
            }
            Err(error) => Err(Cause::of_hyper(&error, &ends)),
        }
    }

    pub(super) fn leads_to(&self, (host, port): (&str, u16)) -> bool {
        self.place.0 == host && self.place.1 == port
    }

    /// Whether another request can be made, which takes a moment at most.
    pub(super) async fn is_ready(&mut self) -> bool {
        poll_fn(|context| {
            self.advance(context);
            match self.connection {
                Some(_) => self.sender.poll_ready(context).map(|ready| ready.is_ok()),
                None => Poll::Ready(false),
            }
        })
        .await
    }

    /// Makes a request, and gives the answer as soon as it begins. A request that was not sent
    /// comes back.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Sent>,
    ) -> Result<Response<Incoming>, (Cause, Option<Request<Sent>>)> {
        let mut answering = Box::pin(self.sender.try_send_request(request));
        let answer = poll_fn(|context| {
            self.advance(context);
            answering.as_mut().poll(context)
        });
        answer.await.map_err(|mut error| {
            let unsent = error.take_message();
            (Cause::of_hyper(error.error(), &self.ends), unsent)
        })
    }

    /// Lets the connection do what it can.
    fn advance(&mut self, context: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && connection.as_mut().poll(context).is_ready()
        {
            // What went wrong is told to whoever waits for an answer.
            self.connection = None;
        }
    }
}

impl Answer {
    pub(super) fn new(body: Incoming, wire: Wire, idle: &Arc<Idle>) -> Self {
        Answer { body, wire: Some(wire), idle: Arc::clone(idle) }
    }

    /// The connection, of a server that has agreed to speak something else than HTTP over it.
    pub(crate) async fn switch(mut answer: Response<Self>) -> Result<Upgraded, CallError> {
        let switching = hyper::upgrade::on(&mut answer);
        let mut wire = answer.into_body().wire.expect("it was not read to its end");
        let failed = |error: &hyper::Error, ends: &str| Cause::of_hyper(error, ends);
        if let Some(connection) = wire.connection.take() {
            connection.await.map_err(|error| failed(&error, &wire.ends))?;
        }
        Ok(switching.await.map_err(|error| failed(&error, &wire.ends))?)
    }

    /// Keeps the connection for the next request.
    fn finish(&mut self) {
        if let Some(wire) = self.wire.take()
            && wire.connection.is_some()
        {
            self.idle.keep(wire);
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let answer = self.get_mut();
        if let Some(wire) = &mut answer.wire {
            wire.advance(context);
        }
        let frame = Pin::new(&mut answer.body).poll_frame(context);
        match &frame {
            Poll::Ready(None) => answer.finish(),
            Poll::Ready(Some(Err(_))) => answer.wire = None,
            _ => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        // Only when it was read to its end is the connection free again.
        self.wire.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Sent {
    /// A request that brings nothing.
    pub(super) fn bare(request: Request<()>) -> Request<Self> {
        request.map(|()| Sent::of(Full::<Bytes>::default()))
    }

    pub(super) fn of<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        use http_body_util::BodyExt as _;
        Sent(Box::pin(body.map_err(Into::into)))
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// The addresses at both ends of a connection.
pub(super) fn ends(socket: &TcpStream) -> io::Result<String> {
    Ok(format!("{}->{}", socket.local_addr()?, socket.peer_addr()?))
}
