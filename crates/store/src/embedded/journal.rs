//! Tells a torn journal from a damaged one, before fjall reads it.
//!
//! fjall ends a journal at the first entry that it cannot read, and so would lose everything
//! behind a flipped bit; and it refuses a batch with a wrong checksum, which is just what loss
//! of power leaves when the disk wrote later pages of an unsynced batch before earlier ones. The
//! journal alone cannot tell the two apart, but our markers can: each says up to which revision
//! everything was synced before it was written. If what can be read ends before a revision that
//! a later marker calls synced, an acknowledged write is missing and the journal is damaged;
//! otherwise nobody was promised what is missing, and the journal is cut there.
//!
//! The framing read here is that of fjall's journal, version 3: a batch is a start (1, number
//! of items, sequence number), its items (2, type, compression, keyspace, lengths, key, value)
//! and an end (3, checksum of the items, magic). Numbers are little-endian.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::layout::{MARKER_BYTES, MARKER_KEY, MARKER_MAGIC, Marker};
use super::{OpenError, io_error};
use crate::Revision;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const END_MAGIC: [u8; 4] = *b"FJL\x03";
const BUFFER_BYTES: usize = 1 << 18;

/// Cuts what an unsynced write left half done; refuses a journal that lacks what was synced.
///
/// Returns a revision that must be found on disk, if what was cut names one.
pub(crate) fn repair(data: &Path) -> Result<Option<Revision>, OpenError> {
    let journals = journals(data).map_err(|error| io_error(data, error))?;
    let mut synced = None;
    let mut revision = None;
    let mut sequence = None;
    for (index, path) in journals.iter().enumerate() {
        let failed = |error| io_error(path, error);
        let damaged = |what: String| OpenError::Damaged { path: path.clone(), what };
        let intact = intact(path, &mut sequence).map_err(failed)?;
        if intact.is_disordered {
            // No torn write has a right checksum.
            return Err(damaged(format!("the batch at byte {} is out of order", intact.bytes)));
        }
        revision = intact.revision.or(revision);
        let rest = Rest::read(path, intact.bytes).map_err(failed)?;
        if rest.is_blank {
            continue;
        }
        // A journal is synced before the next one is begun.
        let sealed = index + 1 < journals.len();
        // What is in tables only is not known here, so without an intact batch the rest must
        // contradict itself. Opening the store finds out about what remains.
        let lost = match revision {
            Some(revision) => rest.synced > Some(revision),
            None => rest.oldest.is_some() && rest.synced >= rest.oldest,
        };
        if sealed || lost {
            let at = intact.bytes;
            return Err(damaged(format!("what follows byte {at} was synced but cannot be read")));
        }
        tracing::warn!(path = %path.display(), at = intact.bytes, "cut an unfinished write");
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        file.set_len(intact.bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        synced = rest.synced;
    }
    Ok(synced)
}

/// The leading part of a journal that consists of whole batches.
struct Intact {
    bytes: u64,
    /// What the last marker in it says; none if it holds no batch of ours.
    revision: Option<Revision>,
    /// It ends because the next batch, though whole, does not come next. fjall's checksum does
    /// not cover the sequence number.
    is_disordered: bool,
}

/// What is behind the intact part.
struct Rest {
    /// Nothing was written there.
    is_blank: bool,
    /// The highest revision that a marker there calls synced.
    synced: Option<Revision>,
    /// The lowest revision of a batch there that changed anything.
    oldest: Option<Revision>,
}

fn journals(data: &Path) -> io::Result<Vec<PathBuf>> {
    let mut numbered: Vec<(u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(data)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jnl")
            && let Some(number) = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok())
        {
            numbered.push((number, path));
        }
    }
    numbered.sort_unstable();
    Ok(numbered.into_iter().map(|(_, path)| path).collect())
}

fn intact(path: &Path, sequence: &mut Option<u64>) -> io::Result<Intact> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut intact = Intact { bytes: 0, revision: None, is_disordered: false };
    let mut value = Vec::new();
    loop {
        match batch(&mut reader, len - intact.bytes, &mut value) {
            Ok(Some(batch)) if Some(batch.sequence) <= *sequence => {
                intact.is_disordered = true;
                return Ok(intact);
            }
            Ok(Some(Batch { bytes, sequence: this, marker })) => {
                *sequence = Some(this);
                intact.bytes += bytes;
                if let Some(marker) = marker {
                    intact.revision = Some(marker.revision);
                }
            }
            Ok(None) => return Ok(intact),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(intact),
            Err(error) => return Err(error),
        }
    }
}

struct Batch {
    bytes: u64,
    sequence: u64,
    marker: Option<Marker>,
}

/// Reads one whole batch of at most `room` bytes; none if there is no valid one.
fn batch(reader: &mut impl Read, room: u64, value: &mut Vec<u8>) -> io::Result<Option<Batch>> {
    const START_BYTES: usize = 13;
    const ITEM_HEAD_BYTES: usize = 20;
    const END_BYTES: usize = 8 + END_MAGIC.len();

    let start: [u8; START_BYTES] = read(reader)?;
    if start[0] != START {
        return Ok(None);
    }
    let items = u32_at(&start, 1);
    let sequence = u64::from(u32_at(&start, 5)) | u64::from(u32_at(&start, 9)) << 32;
    let mut bytes = START_BYTES as u64;
    let mut checksum = Xxh3::new();
    let mut marker = None;
    for _ in 0..items {
        let [tag] = read(reader)?;
        if tag != ITEM {
            return Ok(None);
        }
        // Type, compression, keyspace, length of key, of value, of value on disk.
        let head: [u8; ITEM_HEAD_BYTES] = read(reader)?;
        let key_bytes = usize::from(u16::from_le_bytes([head[10], head[11]]));
        let value_bytes = u32_at(&head, 16) as usize;
        bytes += (1 + ITEM_HEAD_BYTES + key_bytes + value_bytes) as u64;
        if bytes > room {
            // A length that was never written; reading on would only allocate.
            return Ok(None);
        }
        value.resize(key_bytes + value_bytes, 0);
        reader.read_exact(value)?;
        checksum.update(&[tag]);
        checksum.update(&head);
        checksum.update(value);
        if value[..key_bytes] == *MARKER_KEY {
            marker = Marker::decode(&value[key_bytes..]);
        }
    }
    let [tag] = read(reader)?;
    let end: [u8; END_BYTES] = read(reader)?;
    bytes += 1 + END_BYTES as u64;
    let is_whole =
        tag == END && end[8..] == END_MAGIC && end[..8] == checksum.digest().to_le_bytes();
    Ok(is_whole.then_some(Batch { bytes, sequence, marker }))
}

impl Rest {
    fn read(path: &Path, from: u64) -> io::Result<Self> {
        let mut rest = Self { is_blank: true, synced: None, oldest: None };
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        // fjall makes journals long and sparse; what has no blocks need not be read.
        let block_end = from.next_multiple_of(4096);
        let end = if metadata.blocks() * 512 <= block_end { block_end } else { metadata.len() };
        file.seek(SeekFrom::Start(from))?;
        let mut file = file.take(end - from);
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut kept = 0;
        loop {
            let read = file.read(&mut buffer[kept..])?;
            if read == 0 {
                return Ok(rest);
            }
            let filled = kept + read;
            rest.look_at(&buffer[..filled]);
            // A marker may begin at the end of this piece.
            let keep = filled.min(MARKER_BYTES - 1);
            buffer.copy_within(filled - keep..filled, 0);
            kept = keep;
        }
    }

    fn look_at(&mut self, piece: &[u8]) {
        self.is_blank = self.is_blank && piece.iter().all(|byte| *byte == 0);
        if self.is_blank {
            return;
        }
        for window in piece.windows(MARKER_BYTES) {
            if window[0] == MARKER_MAGIC[0]
                && let Some(marker) = Marker::decode(window)
            {
                self.synced = self.synced.max(Some(marker.synced));
                if marker.revision > marker.synced {
                    let oldest = self.oldest.map_or(marker.revision, |o| o.min(marker.revision));
                    self.oldest = Some(oldest);
                }
            }
        }
    }
}

fn read<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
