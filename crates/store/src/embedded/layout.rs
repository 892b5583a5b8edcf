//! What the files of a store mean. `docs/store-layout.md` says it in full.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::{OpenError, io_error};
use crate::engine::Head;
use crate::image::Stored;
use crate::{Key, Revision};

/// The version of the layout that this crate reads and writes.
pub const LAYOUT: u32 = 2;

/// Found again in a damaged log.
pub(crate) const MARKER_MAGIC: [u8; 8] = *b"\xffkwmark1";
pub(crate) const MARKER_BYTES: usize = 40;

const HEADER: &str = "header";
const HEADER_TEXT: &str = "kubewright store, layout ";
const LOCK: &str = "lock";
const DATA: &str = "data";
const NEW_HEADER: &str = "header.new";
pub(crate) const RECORD_HEAD: usize = 24;

/// Written with every batch, so that a log itself says what must not be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    /// The youngest change of the batch.
    pub(crate) revision: Revision,
    /// No number above this was used.
    pub(crate) ceiling: Revision,
    /// Everything up to this was known to be durable before the batch was written.
    pub(crate) synced: Revision,
}

impl Marker {
    /// Everything up to `revision`, and nothing beyond.
    pub(crate) fn new(revision: Revision) -> Self {
        Self { revision, ceiling: revision, synced: revision }
    }

    pub(crate) fn encode(self) -> [u8; MARKER_BYTES] {
        let mut bytes = [0; MARKER_BYTES];
        bytes[..8].copy_from_slice(&MARKER_MAGIC);
        bytes[8..16].copy_from_slice(&self.revision.get().to_be_bytes());
        bytes[16..24].copy_from_slice(&self.ceiling.get().to_be_bytes());
        bytes[24..32].copy_from_slice(&self.synced.get().to_be_bytes());
        let checksum = xxh3_64(&bytes[..32]);
        bytes[32..].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; MARKER_BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| bytes[at..at + 8].try_into().map(i64::from_be_bytes).ok();
        let intact =
            bytes[..8] == MARKER_MAGIC && bytes[32..] == xxh3_64(&bytes[..32]).to_be_bytes();
        intact.then_some(Self {
            revision: Revision::new(number(8)?),
            ceiling: Revision::new(number(16)?),
            synced: Revision::new(number(24)?),
        })
    }
}

pub(crate) fn encode_head(head: Head) -> [u8; RECORD_HEAD] {
    let Head { revision, created, deadline } = head;
    let deadline = deadline.map_or(0, |deadline| {
        // Zero says "none", and nobody sets a deadline in 1970.
        u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX).max(1)
    });
    let mut bytes = [0; RECORD_HEAD];
    bytes[..8].copy_from_slice(&revision.get().to_be_bytes());
    bytes[8..16].copy_from_slice(&created.get().to_be_bytes());
    bytes[16..].copy_from_slice(&deadline.to_be_bytes());
    bytes
}

/// A head and the value behind it; none if `record` is too short for one.
pub(crate) fn read_record(key: Key, record: Bytes) -> Option<Stored> {
    let (head, _) = record.split_first_chunk::<RECORD_HEAD>()?;
    let number = |at: usize| head[at..at + 8].try_into().map(u64::from_be_bytes).ok();
    let revision = |at: usize| Some(Revision::new(number(at)?.cast_signed()));
    Some(Stored {
        key,
        revision: revision(0)?,
        created: revision(8)?,
        deadline: Some(number(16)?).filter(|&ms| ms > 0).map(Duration::from_millis),
        value: record.slice(RECORD_HEAD..),
    })
}

/// What a file in the directory of data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Everything that was there before the log of this number, and maybe later things.
    Base(u64),
    Log(u64),
    /// A base that is not whole.
    Draft(u64),
}

impl Place {
    pub(crate) fn path(self, data: &Path) -> PathBuf {
        data.join(match self {
            Place::Base(number) => format!("{number}.base"),
            Place::Log(number) => format!("{number}.log"),
            Place::Draft(number) => format!("{number}.base.new"),
        })
    }

    fn of(name: &str) -> Option<Self> {
        let (number, kind) = name.split_once('.')?;
        let number = number.parse().ok()?;
        match kind {
            "base" => Some(Place::Base(number)),
            "log" => Some(Place::Log(number)),
            "base.new" => Some(Place::Draft(number)),
            _ => None,
        }
    }
}

/// What is in the directory of data, in order.
pub(crate) fn places(data: &Path) -> io::Result<Vec<Place>> {
    let mut places = Vec::new();
    for entry in fs::read_dir(data)? {
        places.extend(entry?.file_name().to_str().and_then(Place::of));
    }
    places.sort_unstable();
    Ok(places)
}

/// Makes names in a directory last.
pub(crate) fn sync_names(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Takes the directory, making it if need be, for as long as the file is held.
pub(crate) fn lock(dir: &Path) -> Result<File, OpenError> {
    fs::create_dir_all(dir).map_err(|error| io_error(dir, error))?;
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(dir.join(LOCK))
        .map_err(|error| io_error(dir, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { dir: dir.into() }),
        Err(TryLockError::Error(error)) => Err(io_error(dir, error)),
    }
}

/// Whether `dir` holds a store of this layout; false if it holds nothing or an unfinished one.
pub(crate) fn exists(dir: &Path) -> Result<bool, OpenError> {
    let header = match fs::read(dir.join(HEADER)) {
        Ok(header) => header,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return if is_vacant(dir)? {
                Ok(false)
            } else {
                Err(OpenError::NotAStore { dir: dir.into() })
            };
        }
        Err(error) => return Err(io_error(dir, error)),
    };
    let layout = str::from_utf8(&header)
        .ok()
        .and_then(|text| text.strip_prefix(HEADER_TEXT)?.strip_suffix('\n')?.parse().ok());
    match layout {
        Some(LAYOUT) => Ok(true),
        Some(found) => Err(OpenError::Layout { dir: dir.into(), found }),
        None => Err(OpenError::Damaged {
            path: dir.join(HEADER),
            what: "it does not name a layout".into(),
        }),
    }
}

pub(crate) fn data(dir: &Path) -> PathBuf {
    dir.join(DATA)
}

/// The place to build a store in, made anew.
pub(crate) fn vacate(dir: &Path) -> Result<PathBuf, OpenError> {
    let data = data(dir);
    match fs::remove_dir_all(&data) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(io_error(dir, error)),
        _ => {}
    }
    fs::create_dir(&data).map_err(|error| io_error(dir, error))?;
    Ok(data)
}

/// Declares what was built in [`vacate`] to be the store: the header appears when everything else
/// is there to stay.
pub(crate) fn finish(dir: &Path) -> Result<(), OpenError> {
    let finish = || {
        let (header, new) = (dir.join(HEADER), dir.join(NEW_HEADER));
        fs::write(&new, format!("{HEADER_TEXT}{LAYOUT}\n"))?;
        let data = data(dir);
        let mut built: Vec<PathBuf> =
            places(&data)?.into_iter().map(|place| place.path(&data)).collect();
        built.extend([data, new.clone()]);
        sync(&built)?;
        fs::rename(new, header)?;
        // The directory's own name must last as well.
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync(&[Some(dir), parent].into_iter().flatten().collect::<Vec<_>>())
    };
    finish().map_err(|error| io_error(dir, error))
}

/// Syncs files and directories all at once, because a file system makes many syncs one that it
/// is asked for together.
fn sync(paths: &[impl AsRef<Path> + Sync]) -> io::Result<()> {
    thread::scope(|scope| {
        let one = |path: &'_ Path| File::open(path)?.sync_all();
        let syncs: Vec<_> =
            paths.iter().map(|path| scope.spawn(move || one(path.as_ref()))).collect();
        syncs.into_iter().try_for_each(|sync| sync.join().expect("a sync does not panic"))
    })
}

/// Makes sure that the names of a store that is there last: whoever made them may have been killed
/// before.
pub(crate) fn settle(dir: &Path) -> Result<(), OpenError> {
    let data = data(dir);
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let names: Vec<&Path> =
        [Some(data.as_path()), Some(dir), parent].into_iter().flatten().collect();
    sync(&names).map_err(|error| io_error(dir, error))
}

/// Whether there is nothing in `dir` but what an interrupted creation leaves.
fn is_vacant(dir: &Path) -> Result<bool, OpenError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(io_error(dir, error)),
    };
    for entry in entries {
        let name = entry.map_err(|error| io_error(dir, error))?.file_name();
        let ours = [LOCK, DATA, NEW_HEADER].iter().any(|ours| name == *ours);
        if !ours {
            return Ok(false);
        }
    }
    Ok(true)
}
