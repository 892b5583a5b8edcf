//! The log that is written to, and the blank one that is made for the time when it is full.
//!
//! Space that nothing was written to yet, and a file that grows, cost a sync several times as
//! much: the file system must then note where the bytes are as well as write them. So a log is made
//! of zeros, synced, before anything is written over them. That is done beside the committer, which
//! never waits for it: while there is no next log, the current one grows.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::Sizes;
use super::background::{Background, Leave};
use super::layout::{Place, sync_names};
use super::recovery::End;
use crate::dump::create_private;

/// So much is synced at a time of what nobody waits for, so that those who are waited for need not
/// wait for all of it.
pub(super) const PIECE_BYTES: usize = 1 << 20;

pub(super) struct Log {
    data: PathBuf,
    sizes: Sizes,
    number: u64,
    file: File,
    /// Behind the last batch.
    position: u64,
    /// So long it was made in advance.
    blank_to: u64,
    is_synced: bool,
    next: Option<Background<Blank>>,
    /// No next log is made before it is as long as this.
    next_from: u64,
}

/// A log with nothing in it.
struct Blank {
    file: File,
    bytes: u64,
}

impl Log {
    /// Goes on in a log that is there, at its end.
    pub(super) fn open(data: &Path, end: &End, sizes: Sizes) -> io::Result<Self> {
        let End { log: number, position, proven, .. } = *end;
        let file = File::options().read(true).write(true).open(Place::Log(number).path(data))?;
        // What was found may be in memory only, even if a sync of it failed once: no other sync would
        // write it then. What nothing vouches for is written once more, before anybody sees it.
        let mut unproven = vec![0; usize::try_from(position - proven).map_err(io::Error::other)?];
        file.read_exact_at(&mut unproven, proven)?;
        file.write_all_at(&unproven, proven)?;
        file.sync_data()?;
        Ok(Self {
            data: data.to_owned(),
            sizes,
            number,
            blank_to: file.metadata()?.len(),
            file,
            position,
            is_synced: true,
            next: None,
            next_from: 0,
        })
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn bytes(&self) -> u64 {
        self.position
    }

    /// Goes on in the next log if that is ready, and in this one there is no room for a batch of so
    /// many bytes. Everything in this one is durable then. Says whether it did.
    pub(super) fn turn(&mut self, bytes: usize) -> io::Result<bool> {
        if self.position + bytes as u64 <= self.blank_to {
            return Ok(false);
        }
        let Some(next) = self.next.as_mut().and_then(Background::done) else { return Ok(false) };
        self.next = None;
        match next {
            Ok(Blank { file, bytes }) => {
                self.sync()?;
                self.file = file;
                self.number += 1;
                (self.position, self.blank_to, self.next_from) = (0, bytes, 0);
                Ok(true)
            }
            Err(error) => {
                self.do_without(&error);
                Ok(false)
            }
        }
    }

    pub(super) fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        self.is_synced = false;
        self.file.write_all_at(batch, self.position)?;
        self.position += batch.len() as u64;
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        if !self.is_synced {
            self.file.sync_data()?;
            self.is_synced = true;
        }
        Ok(())
    }

    /// Sees to it that there will be a next log, if this one will not last long.
    pub(super) fn look_ahead(&mut self) {
        let will_last = self.position < self.blank_to / 2 || self.position < self.next_from;
        if will_last || self.next.is_some() {
            return;
        }
        let (path, bytes) = (Place::Log(self.number + 1).path(&self.data), self.next_bytes());
        let started = Background::start(move |leave| blank(&path, bytes, leave));
        match started {
            Ok(started) => self.next = Some(started),
            Err(error) => self.do_without(&error),
        }
    }

    /// Takes away what was only made in advance.
    pub(super) fn close(&mut self) -> io::Result<()> {
        if let Some(next) = self.next.take() {
            drop(next);
            remove(&Place::Log(self.number + 1).path(&self.data))?;
        }
        self.file.set_len(self.position)?;
        self.file.sync_all()
    }

    fn do_without(&mut self, error: &io::Error) {
        tracing::warn!(%error, "no log was made in advance, so writes take longer");
        self.next_from = self.position + self.next_bytes();
    }

    /// A busy store gets longer ones.
    fn next_bytes(&self) -> u64 {
        (4 * self.blank_to).clamp(self.sizes.first, self.sizes.log)
    }
}

/// Makes a log at `path` of so many zeros, which are there to stay.
fn blank(path: &Path, bytes: u64, leave: &Leave) -> io::Result<Blank> {
    let make = || {
        let file = create_private(path)?;
        let zeros = vec![0; PIECE_BYTES];
        for at in (0..bytes).step_by(PIECE_BYTES) {
            leave.check()?;
            let left = usize::try_from(bytes - at).unwrap_or(usize::MAX);
            file.write_all_at(&zeros[..left.min(PIECE_BYTES)], at)?;
            file.sync_data()?;
        }
        file.sync_all()?;
        sync_names(path.parent().expect("it is in the directory of data"))?;
        Ok(Blank { file, bytes })
    };
    make().inspect_err(|_| {
        // It takes up room, and whoever opens the store takes it away otherwise.
        let _ = fs::remove_file(path);
    })
}

pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
