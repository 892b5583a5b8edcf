//! How a batch stands in a log.
//!
//! A checksum of all that follows (8 bytes), the marker (40), how long the body is (8), and the
//! body: for each record the lengths of its key (4) and of what it holds (4), the key, and the head
//! and the value. Numbers are big-endian. A batch without records only has a marker to tell.

use std::io::{self, Read};

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::layout::{MARKER_BYTES, Marker, RECORD_HEAD, encode_head, read_record};
use crate::Key;
use crate::engine::Record;
use crate::image::Stored;

const CHECKSUM_BYTES: usize = 8;
const BODY_AT: usize = CHECKSUM_BYTES + MARKER_BYTES + 8;
/// Instead of the length of what a key holds.
const DELETED: u32 = u32::MAX;

/// A batch that was read.
pub(super) struct Frame {
    /// All of it.
    pub(super) bytes: u64,
    pub(super) marker: Marker,
}

/// What a batch says of a key.
pub(super) enum Change {
    Put(Stored),
    Delete(Key),
}

/// Writes a batch over whatever `buffer` has.
///
/// # Errors
/// If it cannot be said how long something is.
pub(super) fn encode(
    buffer: &mut Vec<u8>,
    marker: Marker,
    records: &[Record<'_>],
) -> io::Result<()> {
    let length = |bytes: usize| {
        let length = u32::try_from(bytes).ok().filter(|length| *length != DELETED);
        length.map(u32::to_be_bytes).ok_or(io::ErrorKind::InvalidInput)
    };
    buffer.clear();
    buffer.extend_from_slice(&[0; CHECKSUM_BYTES]);
    buffer.extend_from_slice(&marker.encode());
    buffer.extend_from_slice(&[0; BODY_AT - CHECKSUM_BYTES - MARKER_BYTES]);
    for Record { key, held } in records {
        let key = key.as_str().as_bytes();
        buffer.extend_from_slice(&length(key.len())?);
        match held {
            Some((head, value)) => {
                buffer.extend_from_slice(&length(RECORD_HEAD + value.len())?);
                buffer.extend_from_slice(key);
                buffer.extend_from_slice(&encode_head(*head));
                buffer.extend_from_slice(value);
            }
            None => {
                buffer.extend_from_slice(&DELETED.to_be_bytes());
                buffer.extend_from_slice(key);
            }
        }
    }
    let body_bytes = (buffer.len() - BODY_AT) as u64;
    buffer[CHECKSUM_BYTES + MARKER_BYTES..BODY_AT].copy_from_slice(&body_bytes.to_be_bytes());
    let checksum = xxh3_64(&buffer[CHECKSUM_BYTES..]);
    buffer[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Reads a whole batch of at most `room` bytes, and its body into `body`; none if there is no valid
/// one.
pub(super) fn read(
    reader: &mut impl Read,
    room: u64,
    body: &mut Vec<u8>,
) -> io::Result<Option<Frame>> {
    let mut head = [0; BODY_AT];
    let is_there = room >= head.len() as u64 && !is_end(reader.read_exact(&mut head))?;
    let number = |at: usize| head[at..at + 8].try_into().map_or(0, u64::from_be_bytes);
    let marker = Marker::decode(&head[CHECKSUM_BYTES..CHECKSUM_BYTES + MARKER_BYTES]);
    let Some(marker) = marker.filter(|_| is_there) else { return Ok(None) };
    let body_bytes = number(CHECKSUM_BYTES + MARKER_BYTES);
    // A length that was never written; reading on would only allocate.
    let fits = body_bytes <= room - head.len() as u64;
    let Some(length) = usize::try_from(body_bytes).ok().filter(|_| fits) else { return Ok(None) };
    body.resize(length, 0);
    if is_end(reader.read_exact(body))? {
        return Ok(None);
    }
    let mut checksum = Xxh3::new();
    checksum.update(&head[CHECKSUM_BYTES..]);
    checksum.update(body);
    let is_whole = checksum.digest() == number(0);
    Ok(is_whole.then_some(Frame { bytes: head.len() as u64 + body_bytes, marker }))
}

/// What a body says; none if it cannot be read, which with its checksum right it always can.
pub(super) fn changes(mut body: &[u8]) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    while !body.is_empty() {
        let (key_bytes, rest) = length(body)?;
        let (held_bytes, rest) = length(rest)?;
        let (key, rest) = rest.split_at_checked(usize::try_from(key_bytes).ok()?)?;
        let key = Key::from(str::from_utf8(key).ok()?);
        if held_bytes == DELETED {
            changes.push(Change::Delete(key));
            body = rest;
        } else {
            let (held, rest) = rest.split_at_checked(usize::try_from(held_bytes).ok()?)?;
            changes.push(Change::Put(read_record(key, Bytes::copy_from_slice(held))?));
            body = rest;
        }
    }
    Some(changes)
}

fn length(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*length), rest))
}

/// Whether a file ended before all was read.
fn is_end(read: io::Result<()>) -> io::Result<bool> {
    match read {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(true),
        Err(error) => Err(error),
    }
}
