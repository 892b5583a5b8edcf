//! What the files of a store come to: a base, and what its logs say has changed since.
//!
//! A log ends where no whole batch follows. What is there after all may be torn or damaged. Loss
//! of power leaves a batch that was not synced in any state: absent, cut, or with pages missing in
//! its middle. The batch alone cannot tell, but markers can: each says up to which revision
//! everything was synced before it was written. If what can be read ends before a revision that a
//! later marker calls synced, an acknowledged write is missing and the log is damaged; otherwise
//! nobody was promised what is missing, and the log is cut there.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::base::clear_before;
use super::frame::{self, Change, Frame};
use super::layout::{MARKER_BYTES, MARKER_MAGIC, Marker, Place, places};
use super::{Loaded, OpenError, io_error};
use crate::image::Stored;
use crate::{Key, Revision, dump};

const BUFFER_BYTES: usize = 1 << 18;
/// The log of a new store, which needs no base.
pub(super) const FIRST: u64 = 1;

/// Where the next batch goes, and what there is before it.
pub(super) struct End {
    /// The log that was written to last.
    pub(super) log: u64,
    pub(super) position: u64,
    /// What stands there before this, something later vouches for.
    pub(super) proven: u64,
    /// The first log that is needed.
    pub(super) first: u64,
    pub(super) base_bytes: u64,
    /// Of all logs before that one.
    pub(super) log_bytes: u64,
}

/// Reads all there is, cuts what an unsynced write left half done, and removes what is no part of
/// the store. Refuses logs that lack what was synced, and changes nothing then.
pub(super) fn recover(data: &Path) -> Result<(Loaded, End), OpenError> {
    let found = places(data).map_err(|error| io_error(data, error))?;
    let base = found.iter().rev().find_map(|place| match place {
        Place::Base(number) => Some(*number),
        _ => None,
    });
    let first = base.unwrap_or(FIRST);
    let (mut state, base_bytes) = match base {
        Some(number) => read_base(Place::Base(number).path(data))?,
        None => (State::default(), 0),
    };
    let mut logs = Vec::new();
    let numbers = found.iter().filter_map(|place| match place {
        Place::Log(number) if *number >= first => Some(*number),
        _ => None,
    });
    for (expected, number) in (first..).zip(numbers) {
        if expected != number {
            return Err(damaged(Place::Log(expected).path(data), "it is missing"));
        }
        logs.push(Log::read(&mut state, number, Place::Log(number).path(data))?);
    }
    // What was made in advance and not used yet is blank.
    let used = logs.iter().rposition(|log| !log.is_blank()).map_or(0, |last| last + 1);
    let blank = logs.split_off(used);
    let Some(last) = logs.pop() else {
        return Err(damaged(Place::Log(first).path(data), "nothing was written there"));
    };
    let loaded = state.loaded(&logs, &last)?;
    let log_bytes = logs.iter().map(|log| log.bytes).sum();
    let (log, position, proven) = (last.number, last.bytes, last.proven);
    let end = End { log, position, proven, first, base_bytes, log_bytes };

    let tidy = || {
        if !last.rest.is_blank {
            tracing::warn!(path = %last.path.display(), at = last.bytes, "cut an unfinished write");
            let file = OpenOptions::new().write(true).open(&last.path)?;
            file.set_len(last.bytes).and_then(|()| file.sync_all())?;
        }
        let drafts = found.iter().filter(|place| matches!(place, Place::Draft(_)));
        let blank = blank.iter().map(|log| log.path.clone());
        blank.chain(drafts.map(|draft| draft.path(data))).try_for_each(fs::remove_file)?;
        clear_before(data, first)
    };
    tidy().map_err(|error| io_error(data, error))?;
    Ok((loaded, end))
}

fn read_base(path: PathBuf) -> Result<(State, u64), OpenError> {
    let failed = |error| io_error(&path, error);
    let bytes = fs::metadata(&path).map_err(failed)?.len();
    let read = dump::read(&path).map_err(failed)?;
    let Some((stored, revision)) = read else { return Err(damaged(path, "it is not whole")) };
    let latest = stored.into_iter().map(|stored| (stored.key.clone(), stored)).collect();
    Ok((State { latest, marker: None, base: Some(revision) }, bytes))
}

fn damaged(path: PathBuf, what: impl Into<String>) -> OpenError {
    OpenError::Damaged { path, what: what.into() }
}

/// What is known so far.
#[derive(Default)]
struct State {
    latest: HashMap<Key, Stored>,
    /// Of the last batch.
    marker: Option<Marker>,
    /// Where the base was made.
    base: Option<Revision>,
}

impl State {
    fn apply(&mut self, body: &[u8]) -> Option<()> {
        for change in frame::changes(body)? {
            match change {
                Change::Put(stored) => self.latest.insert(stored.key.clone(), stored),
                Change::Delete(key) => self.latest.remove(&key),
            };
        }
        Some(())
    }

    /// What it has come to, if nothing is missing: `last` is the log that was written to, after
    /// `sealed` ones.
    fn loaded(self, sealed: &[Log], last: &Log) -> Result<Loaded, OpenError> {
        // A log is synced before the next one is begun, and something of the first one before there
        // is a store or a base at all.
        let unread = sealed.iter().find(|log| !log.rest.is_blank || log.bytes == 0);
        let unread = unread.or((last.lost || self.marker.is_none()).then_some(last));
        let (None, Some(marker)) = (unread, self.marker) else {
            let log = unread.unwrap_or(last);
            let what = format!("what follows byte {} was synced but cannot be read", log.bytes);
            return Err(damaged(log.path.clone(), what));
        };
        let stored: Vec<Stored> = self.latest.into_values().collect();
        let youngest = stored.iter().map(|stored| stored.revision).max().max(self.base);
        if youngest > Some(marker.revision) {
            // A base says nothing that the logs after it do not.
            return Err(damaged(last.path.clone(), "it ends before its base does"));
        }
        Ok(Loaded { stored, marker })
    }
}

/// A log as it was found.
struct Log {
    number: u64,
    path: PathBuf,
    /// Its leading part, which consists of whole batches.
    bytes: u64,
    /// Of these, so much was synced by the word of a later batch.
    proven: u64,
    rest: Rest,
    /// Something that was synced is missing after that part.
    lost: bool,
}

/// What is behind the whole batches of a log.
struct Rest {
    /// Nothing was written there.
    is_blank: bool,
    /// The highest revision that a marker there calls synced.
    synced: Option<Revision>,
}

impl Log {
    /// Adds what a log says to what is known.
    fn read(state: &mut State, number: u64, path: PathBuf) -> Result<Self, OpenError> {
        let failed = |error| io_error(&path, error);
        let file = File::open(&path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut bytes = 0;
        // Where batches begin that no later one vouches for yet, and what they are.
        let mut unproven = VecDeque::new();
        let mut body = Vec::new();
        while let Some(frame) = frame::read(&mut reader, len - bytes, &mut body).map_err(failed)? {
            let Frame { bytes: own, marker } = frame;
            let is_in_order = state.marker.is_none_or(|last| match body.is_empty() {
                true => marker.revision >= last.revision,
                false => marker.revision > last.revision,
            });
            // No torn write has a right checksum.
            if !is_in_order || state.apply(&body).is_none() {
                return Err(damaged(path, format!("the batch at byte {bytes} is out of order")));
            }
            if state.marker.is_some_and(|last| marker.synced > last.revision) {
                let what = format!("what was synced before the batch at byte {bytes} is missing");
                return Err(damaged(path, what));
            }
            while unproven.pop_front_if(|(_, revision)| *revision <= marker.synced).is_some() {}
            unproven.push_back((bytes, marker.revision));
            state.marker = Some(marker);
            bytes += own;
        }
        let rest = Rest::read(reader.into_inner(), bytes).map_err(failed)?;
        let lost = rest.synced > state.marker.map(|marker| marker.revision);
        let proven = unproven.front().map_or(bytes, |(begin, _)| *begin);
        Ok(Self { number, path, bytes, proven, rest, lost })
    }

    fn is_blank(&self) -> bool {
        self.bytes == 0 && self.rest.is_blank
    }
}

impl Rest {
    fn read(mut file: File, from: u64) -> io::Result<Self> {
        let mut rest = Self { is_blank: true, synced: None };
        file.seek(SeekFrom::Start(from))?;
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
        self.is_blank = self.is_blank && is_zero(piece);
        if self.is_blank {
            return;
        }
        for window in piece.windows(MARKER_BYTES) {
            if window[0] == MARKER_MAGIC[0]
                && let Some(marker) = Marker::decode(window)
            {
                self.synced = self.synced.max(Some(marker.synced));
            }
        }
    }
}

/// Compares with what is known to be zero, which is done many bytes at a time.
fn is_zero(piece: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    piece.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()])
}
