//! Connections that leave HTTP.
//!
//! Where another server answers, its connection is joined with the client's, whatever they speak.
//! Otherwise it is a watch or a log over a WebSocket, which is how pages in a browser follow them.
//! The request and its answer are those of any watch or log; only the way out differs: each event is
//! a message, and so is whatever comes together of a log. What the client says is of no interest, but
//! that it is still there.

#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, BytesMut};
use http::header::{
    CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, ORIGIN, SEC_WEBSOCKET_ACCEPT,
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
    /// What it asks for over a WebSocket.
    told: Option<Told>,
}

/// What can be told over a WebSocket.
#[derive(Clone, Copy)]
enum Told {
    Watch,
    Log,
}

/// A connection that is about to leave HTTP, and what it is for.
pub(super) struct Socket {
    upgrade: OnUpgrade,
    purpose: Purpose,
}

enum Purpose {
    Tell(Events),
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
                told: Told::of(request),
            }
        })
    }

    /// Has the client switch to the protocol, if another server has, or if there is a watch or a log
    /// to tell of. Anything else is answered as it would be without.
    pub(super) fn answer(self, answer: Response<Reply>) -> (Response<Reply>, Option<Socket>) {
        if let Some(switched) = answer.extensions().get::<Switched>() {
            let headers = switched.headers.clone();
            let stream = switched.take().expect("an answer is given once");
            let socket = Socket { upgrade: self.upgrade, purpose: Purpose::Tunnel(stream) };
            return (switching(headers), Some(socket));
        }
        let Some(told) = self.told.filter(|_| answer.status() == StatusCode::OK) else {
            return (answer, None);
        };
        match told.handshake(&self.headers) {
            Ok(headers) => {
                let events = Events::of(told, &headers, answer);
                let socket = Socket { upgrade: self.upgrade, purpose: Purpose::Tell(events) };
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

impl Told {
    fn of<B>(request: &Request<B>) -> Option<Self> {
        let (method, uri) = (request.method(), request.uri());
        if !authn::is_websocket(request.headers()) {
            return None;
        }
        match class::is_watch(method, uri) {
            true => Some(Told::Watch),
            false => class::is_log(method, uri).then_some(Told::Log),
        }
    }

    /// What is said to a client that asks as it should.
    fn handshake(self, asked: &HeaderMap) -> Result<HeaderMap, Refusal> {
        let accept = accepted(asked)?;
        let mut protocols = protocols(asked);
        let protocol = match self {
            Told::Watch => {
                // Pages have an origin, and upstream wants one of everybody.
                if text(asked, &ORIGIN).is_empty() {
                    return Err((StatusCode::FORBIDDEN, ""));
                }
                let protocol = protocols.next();
                if protocols.next().is_some() {
                    return Err((StatusCode::BAD_REQUEST, ""));
                }
                protocol
            }
            Told::Log => {
                let mut protocols = protocols.peekable();
                let asks = protocols.peek().is_some();
                let protocol = protocols.find(|protocol| matches!(*protocol, BINARY | BASE64));
                if asks && protocol.is_none() {
                    return Err((StatusCode::FORBIDDEN, ""));
                }
                protocol
            }
        };
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        if let Some(protocol) = protocol {
            let protocol = HeaderValue::try_from(protocol).expect("it came in a header");
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        Ok(headers)
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

/// How a log is sent: as it is, or as text.
const BINARY: &str = "binary.k8s.io";
const BASE64: &str = "base64.binary.k8s.io";

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// What is answered to the key of a client that speaks our version.
fn accepted(asked: &HeaderMap) -> Result<HeaderValue, Refusal> {
    let key = text(asked, &SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return Err((StatusCode::BAD_REQUEST, "mismatch challenge/response"));
    }
    if text(asked, &SEC_WEBSOCKET_VERSION) != VERSION {
        return Err((StatusCode::BAD_REQUEST, BAD_VERSION));
    }
    Ok(HeaderValue::try_from(accept(key)).expect("base64 is visible"))
}

/// The protocols that a client offers, without the one that is a token.
fn protocols(asked: &HeaderMap) -> impl Iterator<Item = &str> {
    let protocols = asked.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let protocols = protocols.filter_map(|value| value.to_str().ok());
    protocols
        .flat_map(|protocols| protocols.split(',').map(str::trim))
        .filter(|protocol| !protocol.is_empty() && !protocol.starts_with(authn::TOKEN_PROTOCOL))
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
            Purpose::Tell(events) => events.tell(upgraded).await,
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
    /// Bytes that are no events: whatever comes together is a message.
    Bytes,
    /// The same, in base64.
    Base64,
}

impl Framing {
    /// How an answer with these headers is told, after a handshake that ended so.
    fn of(told: Told, agreed: &HeaderMap, answer: &HeaderMap) -> Self {
        match told {
            Told::Watch if text(answer, &CONTENT_TYPE).contains("protobuf") => Framing::Lengths,
            Told::Watch => Framing::Lines,
            Told::Log if text(agreed, &SEC_WEBSOCKET_PROTOCOL) == BASE64 => Framing::Base64,
            Told::Log => Framing::Bytes,
        }
    }

    /// What is said before there is anything to tell: upstream's logs begin with an empty message.
    fn greeting(self) -> Vec<u8> {
        match self {
            Framing::Lines | Framing::Lengths => Vec::new(),
            Framing::Bytes => message(Opcode::Binary, b""),
            Framing::Base64 => message(Opcode::Text, b""),
        }
    }

    /// Takes one event, or all of a log that is there.
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
            Framing::Bytes | Framing::Base64 if bytes.is_empty() => None,
            Framing::Bytes => Some(message(Opcode::Binary, &bytes.split())),
            Framing::Base64 => {
                Some(message(Opcode::Text, STANDARD.encode(bytes.split()).as_bytes()))
            }
        }
    }
}

/// The events of a watch, or a log, as messages.
struct Events {
    reply: Reply,
    framing: Framing,
    /// Said before anything is told.
    greeting: Vec<u8>,
    /// The beginning of an event whose end is still to come.
    rest: BytesMut,
}

impl Events {
    /// Those of an answer, after a handshake that ended so.
    fn of(told: Told, agreed: &HeaderMap, answer: Response<Reply>) -> Self {
        let framing = Framing::of(told, agreed, answer.headers());
        let greeting = framing.greeting();
        Events { reply: answer.into_body(), framing, greeting, rest: BytesMut::new() }
    }

    /// All events that come together, each a message.
    async fn next(&mut self) -> Option<Vec<u8>> {
        if !self.greeting.is_empty() {
            return Some(std::mem::take(&mut self.greeting));
        }
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
