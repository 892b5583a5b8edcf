//! All there is at one moment, in one file: what backups are, and what the durable store keeps of
//! the time before its logs. The format is in `docs/store-layout.md`.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::path::Path;

use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

use crate::embedded::{RECORD_HEAD, encode_head, read_record};
use crate::engine::Record;
use crate::image::Stored;
use crate::{Key, Revision, Snapshot};

const TITLE: &[u8; 20] = b"kubewright backup 1\n";

/// Writes all of a snapshot, many small pieces of it: `out` should collect them.
pub(crate) fn write<I>(out: impl Write, snapshot: &Snapshot<I>) -> io::Result<()> {
    let everything = snapshot.range("", None, None);
    let records = everything.iter().map(|rev| Record { key: &rev.key, held: Some(rev.stored()) });
    write_records(out, snapshot.revision(), everything.len(), records)
}

/// The same of `count` records.
pub(crate) fn write_records<'a>(
    out: impl Write,
    revision: Revision,
    count: usize,
    records: impl Iterator<Item = Record<'a>>,
) -> io::Result<()> {
    let mut out = Checked { inner: out, hash: Xxh3::new() };
    out.put(TITLE)?;
    out.put(&revision.get().to_be_bytes())?;
    out.put(&(count as u64).to_be_bytes())?;
    for Record { key, held } in records {
        let Some((head, value)) = held else { continue };
        out.put_length(key.as_str().len())?;
        out.put(key.as_str().as_bytes())?;
        out.put_length(RECORD_HEAD + value.len())?;
        out.put(&encode_head(head))?;
        out.put(value)?;
    }
    let checksum = out.hash.digest();
    out.put(&checksum.to_be_bytes())?;
    out.inner.flush()
}

/// Reads what was written; none if it is not that, or not whole.
pub(crate) fn read(path: &Path) -> io::Result<Option<(Vec<Stored>, Revision)>> {
    match read_whole(path) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        read => read,
    }
}

fn read_whole(path: &Path) -> io::Result<Option<(Vec<Stored>, Revision)>> {
    let file = File::open(path)?;
    let bytes_max = file.metadata()?.len();
    let mut input = Checked { inner: BufReader::with_capacity(1 << 18, file), hash: Xxh3::new() };
    if input.take()? != *TITLE {
        return Ok(None);
    }
    let revision = Revision::new(i64::from_be_bytes(input.take()?));
    let mut stored = Vec::new();
    for _ in 0..u64::from_be_bytes(input.take()?) {
        let Ok(key) = String::from_utf8(input.part(bytes_max)?) else { return Ok(None) };
        let record = Bytes::from(input.part(bytes_max)?);
        let Some(record) = read_record(Key::from(key), record) else { return Ok(None) };
        stored.push(record);
    }
    let checksum = input.hash.digest();
    let is_whole = u64::from_be_bytes(input.take()?) == checksum;
    Ok(is_whole.then_some((stored, revision)))
}

/// A new file that only its owner reads: whatever holds objects holds secrets.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Sums what passes through.
struct Checked<T> {
    inner: T,
    hash: Xxh3,
}

impl<W: Write> Checked<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.inner.write_all(bytes)
    }

    fn put_length(&mut self, length: usize) -> io::Result<()> {
        self.put(&u32::try_from(length).map_err(io::Error::other)?.to_be_bytes())
    }
}

impl<R: Read> Checked<R> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes)?;
        self.hash.update(&bytes);
        Ok(bytes)
    }

    /// A length, then that many bytes.
    fn part(&mut self, bytes_max: u64) -> io::Result<Vec<u8>> {
        let len = u32::from_be_bytes(self.take()?);
        if u64::from(len) > bytes_max {
            // A length that was not written by us; do not allocate it.
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; len as usize];
        self.inner.read_exact(&mut bytes)?;
        self.hash.update(&bytes);
        Ok(bytes)
    }
}
