//! Watch streams: each event is a message with its length before it, in four bytes.

use super::DecodeError;
use super::wire::{Reader, Writer};

/// An event of a watch. Its object is sealed: it names its own version and kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchEvent {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub event: String,
    /// The object, as [`super::encode`] gives it.
    pub object: Vec<u8>,
}

impl WatchEvent {
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let Ok(()) = writer.message::<std::convert::Infallible>(2, |writer| {
            writer.bytes(1, &self.object);
            Ok(())
        });
        writer.bytes(1, self.event.as_bytes());
        writer.finish()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut event = WatchEvent { event: String::new(), object: Vec::new() };
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.field()? {
            match number {
                1 => {
                    event.event = String::from_utf8_lossy(value.bytes("type")?).into_owned();
                }
                2 => {
                    let mut raw = Reader::new(value.bytes("object")?);
                    while let Some((number, value)) = raw.field()? {
                        if number == 1 {
                            event.object = value.bytes("raw")?.to_vec();
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(event)
    }
}

/// A message with its length before it.
///
/// # Panics
/// When the message is longer than 4 GiB.
pub fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("no message is that long");
    [&length.to_be_bytes(), message].concat()
}

/// Cuts a stream into messages again, however its bytes arrive.
#[derive(Debug)]
pub struct Frames {
    buffer: Vec<u8>,
    bytes_max: usize,
}

/// A frame announces more bytes than are allowed; the stream is of no more use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read a frame of {bytes} bytes, more than {bytes_max}")]
pub struct FrameTooLarge {
    pub bytes: usize,
    pub bytes_max: usize,
}

impl Frames {
    /// Refuses frames that are longer than `bytes_max`.
    pub fn new(bytes_max: usize) -> Self {
        Self { buffer: Vec::new(), bytes_max }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message; `None` until more bytes have come.
    pub fn next_message(&mut self) -> Result<Option<Vec<u8>>, FrameTooLarge> {
        let Some((length, rest)) = self.buffer.split_first_chunk() else {
            return Ok(None);
        };
        let bytes = u32::from_be_bytes(*length) as usize;
        if bytes > self.bytes_max {
            return Err(FrameTooLarge { bytes, bytes_max: self.bytes_max });
        }
        if rest.len() < bytes {
            return Ok(None);
        }
        let message = rest[..bytes].to_vec();
        self.buffer.drain(..bytes + length.len());
        Ok(Some(message))
    }
}
