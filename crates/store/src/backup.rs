//! Backups: one file with everything that readers see at one revision.
//!
//! A backup is made from the image, so it is consistent, disturbs no writer and is the same for
//! every kind of store.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use crate::embedded::{self, Marker, OpenError};
use crate::{Revision, Snapshot, Store, dump};

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
    let damaged = || RestoreError::Damaged { path: path.into() };
    let failed = |source| RestoreError::Read { path: path.into(), source };
    let (stored, revision) = dump::read(path).map_err(failed)?.ok_or_else(damaged)?;
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
    let mut out = BufWriter::new(dump::create_private(path)?);
    dump::write(&mut out, snapshot)?;
    out.get_ref().sync_all()?;
    // Without this the bytes are safe and the name is not.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
