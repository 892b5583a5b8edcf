//! A WebSocket as clients of commands and forwarded ports have it, byte for byte: messages, and
//! SPDY inside them.

use anyhow::{Context as _, Result, bail, ensure};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A connection that has left HTTP.
pub struct Socket {
    connection: TokioIo<Upgraded>,
    /// The protocol that the other side chose.
    pub protocol: String,
}

impl Socket {
    pub(crate) fn new(connection: Upgraded, protocol: String) -> Self {
        Socket { connection: TokioIo::new(connection), protocol }
    }

    /// Sends a binary message.
    pub(crate) async fn say(&mut self, bytes: &[u8]) -> Result<()> {
        // What clients send is masked; with nothing but zeros it stays as it is.
        let mut frame = vec![0x80 | BINARY];
        match u16::try_from(bytes.len()).context("a short message")? {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length => {
                frame.push(0x80 | 126);
                frame.extend(length.to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(bytes);
        self.connection.write_all(&frame).await.context("say something")?;
        self.connection.flush().await.context("say something")
    }

    /// The next message; none when the other side closes.
    pub(crate) async fn hear(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            let mut head = [0; 2];
            self.connection.read_exact(&mut head).await.context("hear something")?;
            let length = match head[1] & 0x7f {
                126 => u64::from(self.connection.read_u16().await?),
                127 => self.connection.read_u64().await?,
                length => u64::from(length),
            };
            ensure!(head[0] & 0x80 != 0, "a message comes in parts");
            let mut bytes = vec![0; usize::try_from(length)?];
            self.connection.read_exact(&mut bytes).await.context("hear something")?;
            match head[0] & 0x0f {
                CLOSE => return Ok(None),
                PING | PONG => {}
                _ => return Ok(Some(bytes)),
            }
        }
    }
}

/// What a client of SPDY/3.1 says: it opens streams and speaks on them.
#[derive(Default)]
pub(crate) struct Spdy {
    has_begun: bool,
}

impl Spdy {
    /// The frame that opens a stream. Headers are compressed with a dictionary that both sides
    /// know; here they are stored as they are, which needs no dictionary but its number.
    pub(crate) fn open(&mut self, id: u32, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut block = (headers.len() as u32).to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            block.extend((text.len() as u32).to_be_bytes());
            block.extend(text.as_bytes());
        }
        let mut stored = Vec::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            stored.extend([0x78, 0xbb]);
            stored.extend(0xe3c6_a7c2_u32.to_be_bytes());
        }
        let length = block.len() as u16;
        stored.push(0);
        stored.extend(length.to_le_bytes());
        stored.extend((!length).to_le_bytes());
        stored.extend(block);
        // An empty block besides: who inflates it knows that nothing is missing.
        stored.extend([0, 0, 0, 0xff, 0xff]);
        let mut frame = vec![0x80, 3, 0, 1, 0];
        frame.extend(&(10 + stored.len() as u32).to_be_bytes()[1..]);
        frame.extend(id.to_be_bytes());
        frame.extend([0; 6]);
        frame.extend(stored);
        frame
    }

    pub(crate) fn data(id: u32, bytes: &[u8]) -> Vec<u8> {
        let mut frame = id.to_be_bytes().to_vec();
        frame.push(0);
        frame.extend(&(bytes.len() as u32).to_be_bytes()[1..]);
        frame.extend(bytes);
        frame
    }
}

/// What is said on streams, taken from frames as they come.
#[derive(Default)]
pub(crate) struct Heard {
    bytes: Vec<u8>,
}

impl Heard {
    /// The stream and the bytes of the next frame with data, once it is whole.
    pub(crate) fn next(&mut self, more: &[u8]) -> Result<Option<(u32, Vec<u8>)>> {
        self.bytes.extend(more);
        loop {
            let Some(head) = self.bytes.first_chunk::<8>() else { return Ok(None) };
            let is_control = head[0] & 0x80 != 0;
            let id = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
            let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
            if self.bytes.len() < 8 + length {
                return Ok(None);
            }
            let frame: Vec<u8> = self.bytes.drain(..8 + length).collect();
            match is_control {
                true if frame[3] == 3 => bail!("a stream is reset"),
                true => {}
                false => return Ok(Some((id, frame[8..].to_vec()))),
            }
        }
    }
}
