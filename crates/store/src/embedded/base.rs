//! Everything written anew, so that the logs before can go.
//!
//! The dump of a moment stands for all that the logs before it say. It is made beside the
//! committer, from what readers see, while the next log is written to: first under another name, and
//! when the logs are known to say all that is in it, it takes its place.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::background::Leave;
use super::layout::{Place, places, sync_names};
use super::log::PIECE_BYTES;
use crate::dump::create_private;
use crate::engine::Latest;

/// Writes what the log `number` begins from. All that came before must be visible, and something of
/// that log durable. Says how long it is.
pub(super) fn draft(
    data: &Path,
    number: u64,
    latest: &dyn Latest,
    leave: &Leave,
) -> io::Result<u64> {
    let draft = Place::Draft(number).path(data);
    let write = || -> io::Result<u64> {
        let paced = Paced { file: create_private(&draft)?, bytes: 0, unsynced: 0, leave };
        let mut out = BufWriter::with_capacity(PIECE_BYTES / 4, paced);
        latest.dump(&mut out)?;
        let Paced { file, bytes, .. } = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(bytes)
    };
    write().inspect_err(|_| {
        // As for blank logs.
        let _ = fs::remove_file(&draft);
    })
}

/// Has a draft take the place of what came before. The logs must say all that is in it, and last.
pub(super) fn place(data: &Path, number: u64) -> io::Result<()> {
    fs::rename(Place::Draft(number).path(data), Place::Base(number).path(data))?;
    sync_names(data)?;
    clear_before(data, number)
}

/// Removes what a base stands for, and what it replaces.
pub(super) fn clear_before(data: &Path, number: u64) -> io::Result<()> {
    for place in places(data)? {
        match place {
            Place::Base(other) | Place::Log(other) if other < number => {
                fs::remove_file(place.path(data))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A file that is synced piece by piece, until somebody says to leave off.
struct Paced<'a> {
    file: File,
    bytes: u64,
    unsynced: usize,
    leave: &'a Leave,
}

impl Write for Paced<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.leave.check()?;
        if self.unsynced >= PIECE_BYTES {
            self.file.sync_data()?;
            self.unsynced = 0;
        }
        let written = self.file.write(bytes)?;
        self.unsynced += written;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
