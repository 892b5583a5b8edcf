//! The frames of SPDY/3.1.

use std::collections::HashMap;
use std::io;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// What headers usually are; both sides know it, so that it need not be sent.
const DICTIONARY: &[u8] = include_bytes!("../../data/spdy-headers.bin");
const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// How far back compressed bytes may refer.
const WINDOW: usize = 32 * 1024;

const FIN: u8 = 1;
/// A block of nothing, by which a compressor says that all is said for now.
const NOTHING: [u8; 5] = [0, 0, 0, 0xff, 0xff];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Open {
        id: u32,
        headers: HashMap<String, String>,
        is_last: bool,
    },
    /// The answer to it.
    Opened {
        id: u32,
    },
    Data {
        id: u32,
        bytes: Vec<u8>,
        is_last: bool,
    },
    Reset {
        id: u32,
    },
    Ping {
        id: u32,
    },
    GoAway,
    /// What needs no answer.
    Other,
}

/// Reads frames. Headers are one compressed stream for the whole connection.
pub(super) struct Decoder {
    inflate: Box<DecompressorOxide>,
    /// What was last inflated, for later references to it.
    window: Vec<u8>,
    has_begun: bool,
}

/// Writes frames.
#[derive(Default)]
pub(super) struct Encoder {
    has_begun: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        let window = DICTIONARY.to_vec();
        Decoder { inflate: Box::default(), window, has_begun: false }
    }
}

impl Decoder {
    /// The next frame; none at the end of the connection.
    ///
    /// Not cancel-safe half-way through a frame: whoever gives up waiting gives up the connection.
    pub(super) async fn read(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Option<Frame>> {
        let mut head = [0; 8];
        match from.read_exact(&mut head).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        };
        let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let flags = head[4];
        let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(invalid("a frame is too long"));
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes).await?;
        let is_last = flags & FIN != 0;
        if first & 0x8000_0000 == 0 {
            return Ok(Some(Frame::Data { id: first, bytes, is_last }));
        }
        let id = || {
            let id = bytes.first_chunk::<4>().ok_or_else(|| invalid("a frame is too short"))?;
            Ok::<u32, io::Error>(u32::from_be_bytes(*id) & 0x7fff_ffff)
        };
        let frame = match first & 0xffff {
            1 => {
                let id = id()?;
                let block = bytes.get(10..).ok_or_else(|| invalid("a frame is too short"))?;
                let headers = self.headers(block)?;
                Frame::Open { id, headers, is_last }
            }
            2 => {
                let id = id()?;
                let block = bytes.get(4..).ok_or_else(|| invalid("a frame is too short"))?;
                // Its headers are of no interest, but later ones refer to them.
                self.headers(block)?;
                Frame::Opened { id }
            }
            3 => Frame::Reset { id: id()? },
            6 => Frame::Ping { id: id()? },
            7 => Frame::GoAway,
            8 => {
                let block = bytes.get(4..).ok_or_else(|| invalid("a frame is too short"))?;
                self.headers(block)?;
                Frame::Other
            }
            _ => Frame::Other,
        };
        Ok(Some(frame))
    }

    fn headers(&mut self, block: &[u8]) -> io::Result<HashMap<String, String>> {
        let inflated = self.inflate(block)?;
        let (count, mut rest) = inflated.split_first_chunk::<4>().ok_or_else(short)?;
        let count = u32::from_be_bytes(*count) as usize;
        let mut headers = HashMap::new();
        for _ in 0..count.min(1000) {
            let mut text = || {
                let (length, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
                let length = u32::from_be_bytes(*length) as usize;
                let text = after.get(..length).ok_or_else(short)?;
                rest = &after[length..];
                Ok::<String, io::Error>(String::from_utf8_lossy(text).into_owned())
            };
            let name = text()?;
            headers.insert(name, text()?);
        }
        Ok(headers)
    }

    fn inflate(&mut self, mut block: &[u8]) -> io::Result<Vec<u8>> {
        if !self.has_begun {
            // What zlib puts before: two bytes, and if the dictionary is used, its checksum.
            let flags = *block.get(1).ok_or_else(short)?;
            let skipped = if flags & 0x20 == 0 { 2 } else { 6 };
            block = block.get(skipped..).ok_or_else(short)?;
            self.has_begun = true;
        }
        let from = self.window.len();
        self.window.resize(from + HEADER_BYTES_MAX, 0);
        let flags = TINFL_FLAG_HAS_MORE_INPUT | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, _, n_bytes) =
            decompress(&mut self.inflate, block, &mut self.window, from, flags);
        if !matches!(status, TINFLStatus::NeedsMoreInput | TINFLStatus::Done) {
            return Err(invalid("headers are not compressed as they should be"));
        }
        let inflated = self.window[from..from + n_bytes].to_vec();
        self.window.truncate(from + n_bytes);
        let excess = self.window.len().saturating_sub(WINDOW);
        self.window.drain(..excess);
        Ok(inflated)
    }
}

impl Encoder {
    pub(super) fn encode(&mut self, frame: &Frame) -> Vec<u8> {
        match frame {
            Frame::Data { id, bytes, is_last } => {
                let mut encoded = id.to_be_bytes().to_vec();
                encoded.push(u8::from(*is_last));
                encoded.extend(&length(bytes.len()));
                encoded.extend(bytes);
                encoded
            }
            Frame::Opened { id } => {
                let mut body = id.to_be_bytes().to_vec();
                body.extend(self.no_headers());
                control(2, 0, &body)
            }
            Frame::Open { id, headers, is_last } => {
                let mut body = id.to_be_bytes().to_vec();
                body.extend([0; 6]);
                body.extend(self.headers(headers));
                control(1, u8::from(*is_last), &body)
            }
            Frame::Reset { id } => {
                let mut body = id.to_be_bytes().to_vec();
                body.extend(5_u32.to_be_bytes());
                control(3, 0, &body)
            }
            Frame::Ping { id } => control(6, 0, &id.to_be_bytes()),
            Frame::GoAway => control(7, 0, &[0; 8]),
            Frame::Other => Vec::new(),
        }
    }

    fn no_headers(&mut self) -> Vec<u8> {
        self.headers(&HashMap::new())
    }

    fn headers(&mut self, headers: &HashMap<String, String>) -> Vec<u8> {
        let mut plain = (headers.len() as u32).to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.extend((text.len() as u32).to_be_bytes());
            plain.extend(text.as_bytes());
        }
        // Few and short: they are stored, which is a way of compressing too.
        let mut block = if self.has_begun { Vec::new() } else { vec![0x78, 0x01] };
        self.has_begun = true;
        let length = plain.len() as u16;
        block.push(0);
        block.extend(length.to_le_bytes());
        block.extend((!length).to_le_bytes());
        block.extend(plain);
        // Go's library gives out what it has read when it meets a block of nothing, and looks for
        // one beyond the end of the frame if there is none.
        block.extend(NOTHING);
        block
    }
}

fn control(type_: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut encoded = vec![0x80, 3, 0, type_, flags];
    encoded.extend(length(body.len()));
    encoded.extend(body);
    encoded
}

/// 24 bits.
fn length(length: usize) -> [u8; 3] {
    let [.., high, mid, low] = (length as u32).to_be_bytes();
    [high, mid, low]
}

fn short() -> io::Error {
    invalid("headers are too short")
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}
