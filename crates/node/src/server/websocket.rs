//! WebSockets as commands in containers and forwarded ports use them: messages that begin with a
//! channel.
//!
//! Also a connection of bytes inside binary messages, in which kubectl hides SPDY.

#[cfg(test)]
mod tests;

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
const WAITING_BYTES_MAX: usize = 256 * 1024;
const MESSAGES_MAX: usize = 64;
const CHUNK: usize = 16 * 1024;
/// The channel on which the other side says that a channel has ended.
const CLOSE: u8 = 255;

const CONTINUED: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSED: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The answer to a client's key, by which it knows that it was understood.
pub(super) fn accept(key: &str) -> String {
    STANDARD.encode(Sha1::digest(format!("{key}{GUID}")))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    Data(Vec<u8>),
    Ping(Vec<u8>),
    Close,
}

/// The next message; none at the end of the connection.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Message>> {
    let mut whole = Vec::new();
    loop {
        let mut head = [0; 2];
        match from.read_exact(&mut head).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        };
        let (is_last, kind, is_masked) = (head[0] & 0x80 != 0, head[0] & 0x0f, head[1] & 0x80 != 0);
        let length = match head[1] & 0x7f {
            126 => u64::from(from.read_u16().await?),
            127 => from.read_u64().await?,
            length => u64::from(length),
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length.saturating_add(whole.len()) > MESSAGE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
        }
        let mut mask = [0; 4];
        if is_masked {
            from.read_exact(&mut mask).await?;
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes).await?;
        bytes.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        match kind {
            CLOSED => return Ok(Some(Message::Close)),
            PING => return Ok(Some(Message::Ping(bytes))),
            PONG => continue,
            CONTINUED..=BINARY => whole.extend(bytes),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "what is that?")),
        }
        if is_last {
            return Ok(Some(Message::Data(whole)));
        }
    }
}

/// A message as a server sends it.
pub(super) fn encode(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut encoded = vec![0x80 | kind];
    match bytes.len() {
        length @ 0..126 => encoded.push(length as u8),
        length @ 126..65536 => {
            encoded.push(126);
            encoded.extend((length as u16).to_be_bytes());
        }
        length => {
            encoded.push(127);
            encoded.extend((length as u64).to_be_bytes());
        }
    }
    encoded.extend(bytes);
    encoded
}

/// How messages name their channel and say what is said on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The channel is a byte, and the rest is what is said.
    Binary,
    /// The same; and the other side can say that it has said all on a channel.
    Closable,
    /// The channel is a digit, and the rest is base64, so that all of it is text.
    Base64,
}

/// What the other side says in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    On(u8, Vec<u8>),
    /// It has said all on this channel.
    All(u8),
}

impl Form {
    /// That of a protocol of channels, by its name. Clients that name none speak in binary.
    pub(super) fn of(protocol: &str) -> Self {
        match protocol {
            "v5.channel.k8s.io" => Form::Closable,
            _ if protocol.contains("base64.") => Form::Base64,
            _ => Form::Binary,
        }
    }

    fn encode(self, channel: u8, bytes: &[u8]) -> Vec<u8> {
        match self {
            Form::Binary | Form::Closable => encode(BINARY, &[&[channel], bytes].concat()),
            Form::Base64 => {
                let digit = [b'0'.wrapping_add(channel)];
                encode(TEXT, &[&digit, STANDARD.encode(bytes).as_bytes()].concat())
            }
        }
    }

    /// None if it says nothing that can be understood, which is passed over.
    fn decode(self, message: &[u8]) -> Option<Said> {
        let (&channel, rest) = message.split_first()?;
        match self {
            Form::Closable if channel == CLOSE => rest.first().copied().map(Said::All),
            Form::Binary | Form::Closable => Some(Said::On(channel, rest.to_vec())),
            Form::Base64 => {
                let bytes = STANDARD.decode(rest).ok()?;
                Some(Said::On(channel.wrapping_sub(b'0'), bytes))
            }
        }
    }
}

/// A channel of ours.
pub(super) struct Channel {
    pub(super) number: u8,
    pub(super) io: DuplexStream,
    /// What is said on it before all else, in a message of its own.
    pub(super) greeting: Option<Vec<u8>>,
}

/// Carries channels over a connection, until all of ours have ended or the other side has gone.
pub(super) async fn carry(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    channels: Vec<Channel>,
    form: Form,
) -> io::Result<()> {
    let (mut from, mut to) = tokio::io::split(connection);
    let (messages, mut waiting) = mpsc::channel::<Vec<u8>>(MESSAGES_MAX);
    let mut inputs = std::collections::HashMap::new();
    let mut pumps = JoinSet::new();
    for Channel { number, io, greeting } in channels {
        let (mut said, told) = tokio::io::split(io);
        inputs.insert(number, told);
        let messages = messages.clone();
        pumps.spawn(async move {
            if let Some(greeting) = greeting
                && messages.send(form.encode(number, &greeting)).await.is_err()
            {
                return;
            }
            let mut bytes = vec![0; CHUNK];
            while let Ok(n_bytes @ 1..) = said.read(&mut bytes).await {
                if messages.send(form.encode(number, &bytes[..n_bytes])).await.is_err() {
                    return;
                }
            }
        });
    }
    let reading = async move {
        loop {
            match read(&mut from).await? {
                None | Some(Message::Close) => return io::Result::Ok(()),
                Some(Message::Ping(bytes)) => {
                    let _ = messages.send(encode(PONG, &bytes)).await;
                }
                Some(Message::Data(bytes)) => match form.decode(&bytes) {
                    // Half of it: what it says may still follow.
                    Some(Said::All(channel)) => {
                        if let Some(mut input) = inputs.remove(&channel) {
                            let _ = input.shutdown().await;
                        }
                    }
                    Some(Said::On(channel, bytes)) => {
                        if let Some(input) = inputs.get_mut(&channel) {
                            let _ = input.write_all(&bytes).await;
                        }
                    }
                    None => {}
                },
            }
        }
    };
    // Ends when nobody is left who could say something.
    let writing = async {
        while let Some(message) = waiting.recv().await {
            to.write_all(&message).await?;
            to.flush().await?;
        }
        to.write_all(&encode(CLOSED, &1000_u16.to_be_bytes())).await?;
        to.shutdown().await
    };
    let all_said = async { while pumps.join_next().await.is_some() {} };
    let mut writing = std::pin::pin!(writing);
    tokio::select! {
        // Nobody hears any more, so nobody need say anything.
        read = reading => return read,
        written = &mut writing => return written,
        () = all_said => {}
    }
    writing.await
}

/// A connection of bytes that are the contents of messages; and what must run for it.
pub(super) fn tunnel(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> (DuplexStream, impl Future<Output = io::Result<()>> + Send) {
    let (ours, theirs) = tokio::io::duplex(WAITING_BYTES_MAX);
    let run = async move {
        let (mut from, mut to) = tokio::io::split(connection);
        let (mut said, mut told) = tokio::io::split(ours);
        let (pongs, mut pongs_waiting) = mpsc::channel::<Vec<u8>>(1);
        let reading = async {
            loop {
                match read(&mut from).await? {
                    None | Some(Message::Close) => return told.shutdown().await,
                    Some(Message::Ping(bytes)) => drop(pongs.send(bytes).await),
                    Some(Message::Data(bytes)) => told.write_all(&bytes).await?,
                }
            }
        };
        let writing = async {
            let mut bytes = vec![0; CHUNK];
            loop {
                tokio::select! {
                    read = said.read(&mut bytes) => match read? {
                        0 => break,
                        n_bytes => to.write_all(&encode(BINARY, &bytes[..n_bytes])).await?,
                    },
                    Some(ping) = pongs_waiting.recv() => to.write_all(&encode(PONG, &ping)).await?,
                }
                to.flush().await?;
            }
            to.write_all(&encode(CLOSED, &1000_u16.to_be_bytes())).await?;
            to.shutdown().await
        };
        tokio::select! {
            read = reading => read,
            written = writing => written,
        }
    };
    (theirs, run)
}
