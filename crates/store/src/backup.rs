//! Backups: one file with everything that readers see at one revision.
//!
//! A backup is made from the image, so it is consistent, disturbs no writer and is the same for
//! every kind of store. The format is in `docs/store-layout.md`.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::embedded::{self, Marker, OpenError};
use crate::image::Stored;
use crate::{Revision, Snapshot, Store};

const TITLE: &[u8; 20] = b"kubewright backup 1\n";
/// How far a restored store's numbers are ahead of all that are known to have been used: more than
/// may have been used since, so that no number means two things. Everything older is compacted.
const AHEAD: i64 = 1_000_000_000;

/// Why a backup was not made.
#[derive(Debug, thiserror::Error)]
#[error("write {}", path.display())]
pub struct BackupError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Why a backup was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Use another backup.
    #[error("read {}, which is no whole backup", path.display())]
    Damaged { path: PathBuf },
    /// Choose another directory.
    #[error("restore into {}, which holds a store", dir.display())]
    Occupied { dir: PathBuf },
    #[error("read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("make a store")]
    Write(#[source] OpenError),
}

impl<I: Send + Sync + 'static> Store<I> {
    /// Writes what readers see to a new file at `path`, and returns its revision. Blocks on the
    /// file, but nobody else.
    pub fn backup(&self, path: &Path) -> Result<Revision, BackupError> {
        let snapshot = self.snapshot();
        write(path, &snapshot)
            .map(|()| snapshot.revision())
            .map_err(|source| BackupError { path: path.into(), source })
    }
}

/// Makes an embedded store in `dir` of the backup at `path`. The revisions of its keys are the
/// backup's; the store's own is far above, so that no number is used twice: above the backup's, and
/// above `used`, the last one of the store whose place it is to take.
pub fn restore(path: &Path, dir: &Path, used: Revision) -> Result<(), RestoreError> {
    let (stored, revision) = read(path)?;
    let damaged = || RestoreError::Damaged { path: path.into() };
    let last = revision.get().max(used.get());
    let ahead = last.checked_add(AHEAD).map(Revision::new).ok_or_else(damaged)?;
    let marker = Marker { revision, ceiling: ahead, synced: revision };
    if embedded::build(dir, &stored, marker).map_err(RestoreError::Write)? {
        Ok(())
    } else {
        Err(RestoreError::Occupied { dir: dir.into() })
    }
}

fn write<I>(path: &Path, snapshot: &Snapshot<I>) -> io::Result<()> {
    let everything = snapshot.range("", None, None);
    let mut out = Checked { inner: BufWriter::new(create_private(path)?), hash: Xxh3::new() };
    out.put(TITLE)?;
    out.put(&snapshot.revision().get().to_be_bytes())?;
    out.put(&(everything.len() as u64).to_be_bytes())?;
    for rev in everything.iter() {
        out.put_part(rev.key.as_str().as_bytes())?;
        out.put_part(&embedded::encode(rev.head(), &rev.value))?;
    }
    let checksum = out.hash.digest();
    out.put(&checksum.to_be_bytes())?;
    out.inner.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    // Without this the bytes are safe and the name is not.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// A new file that only its owner reads: a backup holds every secret there is.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn read(path: &Path) -> Result<(Vec<Stored>, Revision), RestoreError> {
    let damaged = || RestoreError::Damaged { path: path.into() };
    match read_whole(path) {
        Ok(read) => read.ok_or_else(damaged),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(damaged()),
        Err(source) => Err(RestoreError::Read { path: path.into(), source }),
    }
}

/// None if the file is not what [`write`] wrote.
fn read_whole(path: &Path) -> io::Result<Option<(Vec<Stored>, Revision)>> {
    let file = File::open(path)?;
    let bytes_max = file.metadata()?.len();
    let mut input = Checked { inner: BufReader::new(file), hash: Xxh3::new() };
    if input.take()? != *TITLE {
        return Ok(None);
    }
    let revision = Revision::new(i64::from_be_bytes(input.take()?));
    let mut stored = Vec::new();
    for _ in 0..u64::from_be_bytes(input.take()?) {
        let key = input.part(bytes_max)?;
        let record = input.part(bytes_max)?;
        let Some(record) = embedded::decode(&key, &record) else { return Ok(None) };
        stored.push(record);
    }
    let checksum = input.hash.digest();
    let is_whole = u64::from_be_bytes(input.take()?) == checksum;
    Ok(is_whole.then_some((stored, revision)))
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

    /// A length, then that many bytes.
    fn put_part(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put(&u32::try_from(bytes.len()).map_err(io::Error::other)?.to_be_bytes())?;
        self.put(bytes)
    }
}

impl<R: Read> Checked<R> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes)?;
        self.hash.update(&bytes);
        Ok(bytes)
    }

    fn part(&mut self, bytes_max: u64) -> io::Result<Vec<u8>> {
        let len = u32::from_be_bytes(self.take()?);
        if u64::from(len) > bytes_max {
            // A length that was not written by us; do not allocate it.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; len as usize];
        self.inner.read_exact(&mut bytes)?;
        self.hash.update(&bytes);
        Ok(bytes)
    }
}
