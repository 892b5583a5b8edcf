//! Connections that leave HTTP.
//!
//! Where another server answers, its connection is joined with the client's, whatever they speak.
//! Otherwise it is a watch over a WebSocket, which is how pages in a browser follow a collection.
//! The request and its answer are those of any watch; only the way out differs: each event is a
//! message. What the client says is of no interest, but that it is still there.

#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, BytesMut};
use http::header::{
    CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Request, Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use sha1::{Digest as _, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::class;
use super::reply::Reply;
use crate::authn;
use crate::relay::{Switchable, Switched};

/// A request that asks to leave HTTP.
pub(super) struct Asked {
    headers: HeaderMap,
    upgrade: OnUpgrade,
    /// Whether it asks for a watch over a WebSocket.
    is_watch: bool,
}

/// A connection that is about to leave HTTP, and what it is for.
pub(super) struct Socket {
    upgrade: OnUpgrade,
    purpose: Purpose,
}

enum Purpose {
    Watch(Events),
    /// To be joined with that of another server.
    Tunnel(Upgraded),
}

/// Why there is no WebSocket: a status, and what to say of it.
type Refusal = (StatusCode, &'static str);

impl Asked {
    pub(super) fn of<B>(request: &mut Request<B>) -> Option<Self> {
        let is_asked =
            request.version() == Version::HTTP_11 && request.headers().contains_key(UPGRADE);
        is_asked.then(|| {
            request.extensions_mut().insert(Switchable);
            Asked {
                headers: request.headers().clone(),
                upgrade: hyper::upgrade::on(&mut *request),
                is_watch: authn::is_websocket(request.headers())
                    && class::is_watch(request.method(), request.uri()),
            }
        })
    }

    /// Has the client switch to the protocol, if another server has, or if there is a watch to
    /// tell of. Anything else is answered as it would be without.
    pub(super) fn answer(self, answer: Response<Reply>) -> (Response<Reply>, Option<Socket>) {
        if let Some(switched) = answer.extensions().get::<Switched>() {
            let headers = switched.headers.clone();
            let stream = switched.take().expect("an answer is given once");
            let socket = Socket { upgrade: self.upgrade, purpose: Purpose::Tunnel(stream) };
            return (switching(headers), Some(socket));
        }
        if !self.is_watch || answer.status() != StatusCode::OK {
            return (answer, None);
        }
        let watch = answer;
        match handshake(&self.headers) {
            Ok(headers) => {
                let framing = Framing::of(watch.headers());
                let events = Events { reply: watch.into_body(), framing, rest: BytesMut::new() };
                let socket = Socket { upgrade: self.upgrade, purpose: Purpose::Watch(events) };
                (switching(headers), Some(socket))
            }
            Err((status, why)) => {
                let mut response = Response::new(Reply::text(why));
                *response.status_mut() = status;
                if why == BAD_VERSION {
                    let version = HeaderValue::from_static(VERSION);
                    response.headers_mut().insert(SEC_WEBSOCKET_VERSION, version);
                }
                (response, None)
            }
        }
    }
}

fn switching(headers: HeaderMap) -> Response<Reply> {
    let mut response = Response::new(Reply::text(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    response
}

const VERSION: &str = "13";
const BAD_VERSION: &str = "missing or bad WebSocket Version";

/// What is said to a client that asks as it should.
fn handshake(asked: &HeaderMap) -> Result<HeaderMap, Refusal> {
    let text = |name| asked.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let key = text(SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return Err((StatusCode::BAD_REQUEST, "mismatch challenge/response"));
    }
    if text(SEC_WEBSOCKET_VERSION) != VERSION {
        return Err((StatusCode::BAD_REQUEST, BAD_VERSION));
    }
    // Pages have an origin, and upstream wants one of everybody.
    if text(ORIGIN).is_empty() {
        return Err((StatusCode::FORBIDDEN, ""));
    }
    let protocols = asked.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let protocols = protocols.filter_map(|value| value.to_str().ok());
    let mut protocols = protocols
        .flat_map(|protocols| protocols.split(',').map(str::trim))
        .filter(|protocol| !protocol.is_empty() && !protocol.starts_with(authn::TOKEN_PROTOCOL));
    let protocol = protocols.next();
    if protocols.next().is_some() {
        return Err((StatusCode::BAD_REQUEST, ""));
    }
    let mut headers = HeaderMap::new();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    let accept = HeaderValue::try_from(accept(key)).expect("base64 is visible");
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol {
        let protocol = HeaderValue::try_from(protocol).expect("it came in a header");
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(headers)
}

/// Proves that the server knows the protocol.
fn accept(key: &str) -> String {
    const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    STANDARD.encode(Sha1::digest(format!("{key}{GUID}")))
}

impl Socket {
    /// Returns when either side has enough, or at `shutdown`.
    pub(super) async fn run(self, shutdown: &CancellationToken) {
        let upgraded = match self.upgrade.await {
            Ok(upgraded) => upgraded,
            Err(error) => return debug!(%error, "connection did not leave HTTP"),
        };
        match self.purpose {
            // Its events end at a shutdown.
            Purpose::Watch(events) => events.tell(upgraded).await,
            Purpose::Tunnel(stream) => {
                shutdown.run_until_cancelled(join(upgraded, stream)).await;
            }
        }
    }
}

/// Joins two connections until either ends.
async fn join(one: Upgraded, other: Upgraded) {
    let (mut one, mut other) = (TokioIo::new(one), TokioIo::new(other));
    {
        let (mut from_one, mut to_one) = tokio::io::split(&mut one);
        let (mut from_other, mut to_other) = tokio::io::split(&mut other);
        // Upstream hangs up on both as soon as one has nothing more to say.
        tokio::select! {
            _ = tokio::io::copy(&mut from_one, &mut to_other) => {}
            _ = tokio::io::copy(&mut from_other, &mut to_one) => {}
        }
    }
    // Whoever is gone already need not be told.
    let _ = one.shutdown().await;
    let _ = other.shutdown().await;
}

impl Events {
    /// Tells the events until either side has enough.
    async fn tell(mut self, upgraded: Upgraded) {
        let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgraded));
        let mut heard = Heard::default();
        loop {
            // Either arm may be dropped: what came is kept in `events` and in `heard`.
            let (bytes, is_over) = tokio::select! {
                events = self.next() => match events {
                    Some(events) => (events, false),
                    None => (message(Opcode::Close, &CLOSE_NORMAL), true),
                },
                said = heard.next(&mut reader) => match said {
                    Said::Ping(payload) => (message(Opcode::Pong, &payload), false),
                    Said::Enough => (message(Opcode::Close, &CLOSE_NORMAL), true),
                },
            };
            let sent = async {
                writer.write_all(&bytes).await?;
                writer.flush().await
            };
            if sent.await.is_err() || is_over {
                break;
            }
        }
        // Whoever is gone already need not be told.
        let _ = writer.shutdown().await;
    }
}

const CLOSE_NORMAL: [u8; 2] = 1000_u16.to_be_bytes();

#[derive(Clone, Copy)]
enum Opcode {
    Text = 0x1,
    Binary = 0x2,
    Close = 0x8,
    Pong = 0xa,
}

/// One whole message.
fn message(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + 10);
    bytes.push(0x80 | opcode as u8);
    match payload.len() {
        length @ 0..=125 => bytes.push(length as u8),
        length @ 126..=0xffff => {
            bytes.push(126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// How events stand in the answer.
#[derive(Clone, Copy)]
enum Framing {
    /// A line of JSON each.
    Lines,
    /// Protobuf after its length in four bytes.
    Lengths,
}

impl Framing {
    fn of(headers: &HeaderMap) -> Self {
        let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match media_type.is_some_and(|media_type| media_type.contains("protobuf")) {
            true => Framing::Lengths,
            false => Framing::Lines,
        }
    }

    /// Takes one event.
    fn take(self, bytes: &mut BytesMut) -> Option<Vec<u8>> {
        match self {
            Framing::Lines => {
                let end = bytes.iter().position(|byte| *byte == b'\n')?;
                Some(message(Opcode::Text, &bytes.split_to(end + 1)))
            }
            Framing::Lengths => {
                let length = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
                if bytes.len() < length + 4 {
                    return None;
                }
                bytes.advance(4);
                Some(message(Opcode::Binary, &bytes.split_to(length)))
            }
        }
    }
}

/// The events of a watch, as messages.
struct Events {
    reply: Reply,
    framing: Framing,
    /// The beginning of an event whose end is still to come.
    rest: BytesMut,
}

impl Events {
    /// All events that come together, each a message.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let frame = self.reply.frame().await?.ok()?;
            self.rest.extend_from_slice(&frame.into_data().unwrap_or_default());
            let mut messages = Vec::new();
            while let Some(message) = self.framing.take(&mut self.rest) {
                messages.extend_from_slice(&message);
            }
            if !messages.is_empty() {
                return Some(messages);
            }
        }
    }
}

/// What the client says that has to be answered.
#[derive(Debug, PartialEq)]
enum Said {
    Ping(Vec<u8>),
    /// It closes, hangs up, or speaks another protocol.
    Enough,
}

/// What was heard of the client and not understood yet.
#[derive(Default)]
struct Heard {
    bytes: BytesMut,
    /// How much of a message that nobody wants is still to come.
    skip: u64,
}

impl Heard {
    async fn next(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> Said {
        loop {
            if let Some(said) = self.understand() {
                return said;
            }
            match reader.read_buf(&mut self.bytes).await {
                Ok(0) | Err(_) => return Said::Enough,
                Ok(_) => {}
            }
        }
    }

    /// The next thing said, as far as it is heard.
    fn understand(&mut self) -> Option<Said> {
        loop {
            let skipped = self.skip.min(self.bytes.len() as u64);
            self.bytes.advance(usize::try_from(skipped).expect("no more than there is"));
            self.skip -= skipped;
            let [first, second] = *self.bytes.first_chunk()?;
            // Clients mask what they say; who does not is none.
            if second & 0x80 == 0 {
                return Some(Said::Enough);
            }
            let (length, header) = match second & 0x7f {
                126 => (u16::from_be_bytes(*self.bytes.get(2..)?.first_chunk()?).into(), 4),
                127 => (u64::from_be_bytes(*self.bytes.get(2..)?.first_chunk()?), 10),
                length => (length.into(), 2),
            };
            let mask: [u8; 4] = *self.bytes.get(header..)?.first_chunk()?;
            let payload = header + mask.len();
            match first & 0xf {
                0x8 => return Some(Said::Enough),
                0x9 if length <= 125 => {
                    let end = payload + usize::try_from(length).expect("a short one");
                    let masked = self.bytes.get(payload..end)?;
                    let said = masked.iter().zip(mask.iter().cycle());
                    let said = said.map(|(byte, mask)| byte ^ mask).collect();
                    self.bytes.advance(end);
                    return Some(Said::Ping(said));
                }
                _ => {
                    self.bytes.advance(payload);
                    self.skip = length;
                }
            }
        }
    }
}
