//! What every object travels in: a prefix that tells protobuf from JSON, and `runtime.Unknown`,
//! which names the version and kind of the message inside.

use super::DecodeError;
use super::wire::{Reader, Wire, Writer};

const PREFIX: &[u8] = b"k8s\0";

/// An opened envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    pub api_version: String,
    pub kind: String,
    /// The message.
    pub raw: &'a [u8],
}

/// Puts a message in its envelope.
pub fn seal(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut writer = Writer::default();
    // Encoding and type of the content: only set by those who keep what they cannot read.
    writer.bytes(4, b"");
    writer.bytes(3, b"");
    writer.bytes(2, message);
    let Ok(()) = writer.message::<std::convert::Infallible>(1, |writer| {
        writer.bytes(2, kind.as_bytes());
        writer.bytes(1, api_version.as_bytes());
        Ok(())
    });
    let mut sealed = PREFIX.to_vec();
    sealed.extend(writer.finish());
    sealed
}

/// Takes a message out of its envelope.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::Empty);
    }
    let body = bytes.strip_prefix(PREFIX).ok_or(DecodeError::Prefix)?;
    if body.is_empty() {
        return Err(DecodeError::EmptyBody);
    }
    let mut envelope = Envelope { api_version: String::new(), kind: String::new(), raw: &[] };
    let mut reader = Reader::new(body);
    while let Some((number, value)) = reader.field()? {
        match number {
            1 => read_type_meta(value.bytes("typeMeta")?, &mut envelope)?,
            2 => envelope.raw = value.bytes("raw")?,
            3 => _ = value.bytes("contentEncoding")?,
            4 => _ = value.bytes("contentType")?,
            _ => {}
        }
    }
    Ok(envelope)
}

fn read_type_meta(bytes: &[u8], envelope: &mut Envelope<'_>) -> Result<(), DecodeError> {
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.field()? {
        let text = |value: Wire<'_>, field| {
            Ok::<_, DecodeError>(String::from_utf8_lossy(value.bytes(field)?).into_owned())
        };
        match number {
            1 => envelope.api_version = text(value, "apiVersion")?,
            2 => envelope.kind = text(value, "kind")?,
            _ => {}
        }
    }
    Ok(())
}
