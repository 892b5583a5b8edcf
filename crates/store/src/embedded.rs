//! The durable store: the image in memory, the latest state on disk.
//!
//! The disk is fjall's, a log-structured merge tree whose journal is the write-ahead log, tuned
//! down because nothing is ever read back but at the start. What is ours is the layout of
//! records (`layout`), proof against a damaged journal (`journal`) and the order in which
//! things become durable.

mod journal;
mod layout;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use tempfile::TempDir;

use crate::commit::GroupWriter;
use crate::engine::{Batch, Engine, EngineError, Head, Laid, Record};
use crate::history::Floor;
use crate::image::{Image, Stored};
use crate::{Config, Revision, Store};

pub use layout::LAYOUT;
pub(crate) use layout::{Marker, decode, encode};

/// Small, because the same bytes are already in the image.
const MEMTABLE_BYTES: u64 = 8 << 20;
/// The least that fjall takes; what is in the journal must be read again after a crash.
const JOURNAL_BYTES: u64 = 64 << 20;
/// Only compactions read.
const CACHE_BYTES: u64 = 1 << 20;

/// Why a directory cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Stop the other process, or choose another directory.
    #[error("open {}, which another process has open", dir.display())]
    Locked { dir: PathBuf },
    /// Choose another directory.
    #[error("open {}, which holds something but not a store", dir.display())]
    NotAStore { dir: PathBuf },
    /// Use the version that wrote it.
    #[error("open {}, whose layout is {found} where this version reads {LAYOUT}", dir.display())]
    Layout { dir: PathBuf, found: u32 },
    /// Restore a backup. Nothing was changed.
    #[error("open {}, which is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("open {}", dir.display())]
    Io {
        dir: PathBuf,
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

/// What [`check`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub keys: usize,
    pub bytes: u64,
    /// The youngest change on disk.
    pub revision: Revision,
}

impl<I: Send + Sync + 'static> Store<I> {
    /// Opens the store in `dir`, or makes one if there is nothing. Blocks until all is loaded.
    pub fn embedded(dir: &Path, config: Config<I>) -> Result<Self, OpenError> {
        let (image, writer) = open(dir, config)?;
        Ok(Store::new(image, Arc::new(writer)))
    }
}

/// Opens the store in `dir`, or makes one if there is nothing, in its two parts.
pub(crate) fn open<I: Send + Sync + 'static>(
    dir: &Path,
    config: Config<I>,
) -> Result<(Arc<Image<I>>, GroupWriter<I>), OpenError> {
    let (disk, loaded) = Disk::open(dir, MEMTABLE_BYTES)?;
    start(disk, loaded, config).map_err(|error| io_error(dir, error))
}

/// Opens the store in `dir` as a server would and reads every record.
///
/// What a crash left half-written is removed, as it would be by opening the store.
pub fn check(dir: &Path) -> Result<Report, OpenError> {
    if !layout::exists(dir)? {
        return Err(OpenError::NotAStore { dir: dir.into() });
    }
    let (_, Loaded { stored, marker }) = Disk::open(dir, MEMTABLE_BYTES)?;
    let bytes = stored.iter().map(|stored| stored.value.len() as u64).sum();
    Ok(Report { keys: stored.len(), bytes, revision: marker.revision })
}

/// The last revision that the store in `dir`, which nobody has open, may have used; none if there is
/// no store.
pub fn last_used(dir: &Path) -> Result<Option<Revision>, OpenError> {
    if !layout::exists(dir)? {
        return Ok(None);
    }
    Disk::open(dir, MEMTABLE_BYTES).map(|(_, loaded)| Some(loaded.marker.ceiling))
}

/// Makes an empty store in `dir`, where there is none, whose revisions begin above `used`.
pub fn begin_after(dir: &Path, used: Revision) -> Result<(), OpenError> {
    build(dir, &[], Marker::new(used)).map(drop)
}

/// The engine by itself, for measuring what the store adds to it.
pub struct Bare(Disk);

impl Bare {
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Disk::open(dir, MEMTABLE_BYTES).map(|(disk, _)| Self(disk))
    }

    /// Writes and syncs one batch.
    pub fn write<'a>(
        &mut self,
        batch: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<(), Arc<dyn std::error::Error + Send + Sync>> {
        let mut fjall = self.0.database.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in batch {
            fjall.insert(&self.0.keyspace, layout::object_key(key), value);
        }
        fjall.commit().map_err(|error| Arc::new(error) as _)
    }
}

/// An open directory.
pub(crate) struct Disk {
    // In the order in which they must be dropped: the lock goes last.
    keyspace: Keyspace,
    database: Database,
    synced: Revision,
    last: Marker,
    _lock: File,
}

pub(crate) struct Loaded {
    pub(crate) stored: Vec<Stored>,
    pub(crate) marker: Marker,
}

impl Disk {
    pub(crate) fn open(dir: &Path, memtable_bytes: u64) -> Result<(Self, Loaded), OpenError> {
        let lock = layout::lock(dir)?;
        if !layout::exists(dir)? {
            create(dir, &[], Marker::new(Revision::FIRST), memtable_bytes)?;
        }
        let data = layout::data(dir);
        let synced = journal::repair(&data)?;
        let (database, keyspace) = open_fjall(&data, memtable_bytes)?;
        let loaded = load(&data, &keyspace)?;
        let last = loaded.marker;
        if synced.is_some_and(|synced| synced > last.revision) {
            let what = format!("it ends at revision {}, but later ones were synced", last.revision);
            return Err(OpenError::Damaged { path: data, what });
        }
        let disk = Self { keyspace, database, synced: last.synced, last, _lock: lock };
        Ok((disk, loaded))
    }

    fn write(
        &mut self,
        records: Vec<Record>,
        marker: Marker,
        mode: PersistMode,
    ) -> Result<(), EngineError> {
        let mut fjall = self.database.batch().durability(Some(mode));
        for record in records {
            match record {
                Record::Put { key, record } => {
                    fjall.insert(&self.keyspace, layout::object_key(key.as_str()), record);
                }
                Record::Delete { key } => {
                    fjall.remove(&self.keyspace, layout::object_key(key.as_str()));
                }
            }
        }
        fjall.insert(&self.keyspace, layout::MARKER_KEY, marker.encode());
        fjall.commit().map_err(|error| Arc::new(error) as EngineError)?;
        self.last = marker;
        Ok(())
    }
}

impl Engine for Disk {
    fn commit(&mut self, batch: Batch) -> Result<(), EngineError> {
        let Batch { records, revision, ceiling, sync } = batch;
        let marker = Marker { revision, ceiling, synced: self.synced };
        // Without a sync the bytes still leave this process: only loss of power loses them.
        let mode = if sync { PersistMode::SyncData } else { PersistMode::Buffer };
        self.write(records, marker, mode)?;
        if sync {
            self.synced = revision;
        }
        Ok(())
    }

    /// fjall has the record in memory until it is in a table, and the image has the value as long as
    /// it is current: together they hold it once.
    fn lay_out(head: Head, value: Bytes) -> Laid {
        let record = Bytes::from(encode(head, &value));
        Laid { value: record.slice(layout::RECORD_HEAD..), record }
    }

    fn close(&mut self, revision: Revision) -> Result<(), EngineError> {
        if self.last.revision != self.last.ceiling || self.last.synced != revision {
            self.database.persist(PersistMode::SyncAll).map_err(|e| Arc::new(e) as EngineError)?;
            let marker = Marker { revision, ceiling: revision, synced: revision };
            self.write(Vec::new(), marker, PersistMode::SyncAll)?;
        }
        Ok(())
    }
}

/// Begins to serve what an engine loaded.
fn start<I: Send + Sync + 'static>(
    engine: impl Engine,
    loaded: Loaded,
    config: Config<I>,
) -> std::io::Result<(Arc<Image<I>>, GroupWriter<I>)> {
    // Numbers up to the ceiling may have been seen before a crash, so all of them are past.
    let revision = loaded.marker.ceiling;
    let floor = Floor { oldest: revision, same: Some(loaded.marker.revision) };
    let image = Image::new(config, loaded.stored, revision, floor);
    let writer = GroupWriter::start(Arc::clone(&image), engine, revision)?;
    Ok((image, writer))
}

/// Makes a store of `stored` in `dir`; false if there is one.
pub(crate) fn build(dir: &Path, stored: &[Stored], marker: Marker) -> Result<bool, OpenError> {
    let _lock = layout::lock(dir)?;
    if layout::exists(dir)? {
        return Ok(false);
    }
    create(dir, stored, marker, MEMTABLE_BYTES).map(|()| true)
}

/// Makes a store of `stored` in `dir`, which is locked and holds none.
///
/// The header appears last, so that a crash on the way leaves something that is recognised as
/// unfinished.
fn create(
    dir: &Path,
    stored: &[Stored],
    marker: Marker,
    memtable_bytes: u64,
) -> Result<(), OpenError> {
    let data = layout::vacate(dir)?;
    match memory().filter(|_| stored.is_empty()) {
        Some(memory) => {
            let draft = memory.path().join("store");
            fill(&draft, stored, marker, memtable_bytes)?;
            layout::copy(&draft, &data).map_err(|error| io_error(dir, error))?;
        }
        None => fill(&data, stored, marker, memtable_bytes)?,
    }
    layout::finish(dir)
}

/// A directory that no disk is behind. fjall makes an empty database in some forty syncs, one
/// after another, which is most of what a first start would take.
fn memory() -> Option<TempDir> {
    tempfile::Builder::new().prefix("kubewright-store").tempdir_in("/dev/shm").ok()
}

/// Makes a database in `data`, which need not be there. fjall remembers how large its memtables are
/// from here on, whatever it is told when it is opened.
fn fill(
    data: &Path,
    stored: &[Stored],
    marker: Marker,
    memtable_bytes: u64,
) -> Result<(), OpenError> {
    /// Keeps one batch from holding everything in memory twice.
    const BATCH: usize = 1024;

    let (database, keyspace) = open_fjall(data, memtable_bytes)?;
    let failed = |error: fjall::Error| io_error(data, error);
    for stored in stored.chunks(BATCH) {
        let mut batch = database.batch().durability(None);
        for Stored { key, revision, created, deadline, value } in stored {
            let head = Head { revision: *revision, created: *created, deadline: *deadline };
            batch.insert(&keyspace, layout::object_key(key.as_str()), encode(head, value));
        }
        batch.commit().map_err(failed)?;
    }
    let mut batch = database.batch().durability(Some(PersistMode::SyncAll));
    batch.insert(&keyspace, layout::MARKER_KEY, marker.encode());
    batch.commit().map_err(failed)
}

fn open_fjall(data: &Path, memtable_bytes: u64) -> Result<(Database, Keyspace), OpenError> {
    let failed = |error| fjall_error(data, error);
    let database = Database::builder(data)
        .cache_size(CACHE_BYTES)
        .max_journaling_size(JOURNAL_BYTES)
        .worker_threads(1)
        .open()
        .map_err(failed)?;
    let options = || KeyspaceCreateOptions::default().max_memtable_size(memtable_bytes);
    let keyspace = database.keyspace("store", options).map_err(failed)?;
    Ok((database, keyspace))
}

fn load(data: &Path, keyspace: &Keyspace) -> Result<Loaded, OpenError> {
    let damaged = |what: &str| OpenError::Damaged { path: data.into(), what: what.into() };
    let mut stored = Vec::new();
    let mut marker = None;
    for guard in keyspace.iter() {
        let (key, value) = guard.into_inner().map_err(|error| fjall_error(data, error))?;
        if *key == *layout::MARKER_KEY {
            marker = Marker::decode(&value);
        } else {
            let record = layout::object_name(&key).and_then(|key| decode(key, &value));
            stored.push(record.ok_or_else(|| damaged("a record cannot be read"))?);
        }
    }
    let marker = marker.ok_or_else(|| damaged("no record says which revision it is at"))?;
    if let Some(stored) = stored.iter().find(|stored| stored.revision > marker.revision) {
        let what = format!("{} is younger than the store", stored.key);
        return Err(damaged(&what));
    }
    Ok(Loaded { stored, marker })
}

fn fjall_error(data: &Path, error: fjall::Error) -> OpenError {
    match error {
        fjall::Error::Locked => OpenError::Locked { dir: data.into() },
        fjall::Error::Io(error) => io_error(data, error),
        // Everything else is about what the files contain.
        error => OpenError::Damaged { path: data.into(), what: error.to_string() },
    }
}

fn io_error(dir: &Path, source: impl std::error::Error + Send + Sync + 'static) -> OpenError {
    OpenError::Io { dir: dir.into(), source: Arc::new(source) }
}

#[cfg(all(test, target_os = "linux"))]
mod crash;
#[cfg(test)]
mod tests;
