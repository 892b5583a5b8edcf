//! The durable store: the image in memory, the latest state on disk.
//!
//! Nothing is read back but at the start, so the disk is as simple as can be: a log of batches, and
//! at times a base, which is everything written anew, in place of the logs before it. `layout` has
//! names and records, `frame` a batch; `log` is where batches go, `base` makes logs superfluous, and
//! `recovery` tells what they came to. `docs/store-layout.md` says it in full.

mod background;
mod base;
mod frame;
mod layout;
mod log;
mod recovery;

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::commit::GroupWriter;
use crate::engine::{Batch, Engine, EngineError, Latest, Record};
use crate::history::Floor;
use crate::image::{Image, Stored};
use crate::{Config, Revision, Store, dump};

use self::background::Background;
use self::layout::Place;
use self::log::Log;
use self::recovery::{End, FIRST};

pub use layout::LAYOUT;
pub(crate) use layout::{Marker, RECORD_HEAD, encode_head, read_record};

/// How long files are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The first log, made in advance.
    first: u64,
    /// The longest log that is made in advance.
    log: u64,
    /// So much in logs before a new base is made, if the base is not longer: what was read at each
    /// start, and written anew, is then never much more than there is.
    logs: u64,
}

/// Each was begun by a store that was opened, or by one that wrote much: all are read at a start.
const LOGS_MAX: u64 = 32;
/// So much memory is kept from batch to batch.
const BUFFER_BYTES: usize = 1 << 20;

const SIZES: Sizes = Sizes { first: 256 << 10, log: 16 << 20, logs: 16 << 20 };

/// Why a directory cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Stop the other process, or choose another directory.
    #[error("open {}, which another process has open", dir.display())]
    Locked { dir: PathBuf },
    /// Choose another directory.
    #[error("open {}, which holds something but not a store", dir.display())]
    NotAStore { dir: PathBuf },
    /// Use the version that wrote it, or restore a backup that it made.
    #[error(
        "open {}, whose layout is {found} where this version reads {LAYOUT}; a backup made by the \
         version that wrote it can be restored",
        dir.display()
    )]
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
    let (disk, loaded) = Disk::open(dir, SIZES)?;
    start(disk, loaded, config).map_err(|error| io_error(dir, error))
}

/// Opens the store in `dir` as a server would and reads every record.
///
/// What a crash left half-written is removed, as it would be by opening the store.
pub fn check(dir: &Path) -> Result<Report, OpenError> {
    if !layout::exists(dir)? {
        return Err(OpenError::NotAStore { dir: dir.into() });
    }
    let (_, Loaded { stored, marker }) = Disk::open(dir, SIZES)?;
    let bytes = stored.iter().map(|stored| stored.value.len() as u64).sum();
    Ok(Report { keys: stored.len(), bytes, revision: marker.revision })
}

/// The last revision that the store in `dir`, which nobody has open, may have used; none if there is
/// no store.
pub fn last_used(dir: &Path) -> Result<Option<Revision>, OpenError> {
    if !layout::exists(dir)? {
        return Ok(None);
    }
    Disk::open(dir, SIZES).map(|(_, loaded)| Some(loaded.marker.ceiling))
}

/// Makes an empty store in `dir`, where there is none, whose revisions begin above `used`.
pub fn begin_after(dir: &Path, used: Revision) -> Result<(), OpenError> {
    build(dir, &[], Marker::new(used)).map(drop)
}

/// An open directory.
pub(crate) struct Disk {
    // In the order in which they must be dropped: the lock goes last.
    renewal: Option<Renewal>,
    log: Log,
    data: PathBuf,
    sizes: Sizes,
    latest: Option<Arc<dyn Latest>>,
    base_bytes: u64,
    /// The first log that is needed.
    first: u64,
    /// The log at which a base was begun last: one that fails is not tried again at once.
    drafted: u64,
    /// In logs that a new base would stand for, but for the one that is written to.
    log_bytes: u64,
    /// A batch as it is written.
    buffer: Vec<u8>,
    synced: Revision,
    last: Marker,
    _lock: File,
}

/// How far a new base is.
enum Renewal {
    /// It is written, under another name. Then comes the next step, if it can be.
    Draft { number: u64, work: Background<u64> },
    /// It takes its place, and what it stands for goes.
    Place { number: u64, bytes: u64, work: Background<()> },
}

pub(crate) struct Loaded {
    pub(crate) stored: Vec<Stored>,
    pub(crate) marker: Marker,
}

impl Disk {
    pub(crate) fn open(dir: &Path, sizes: Sizes) -> Result<(Self, Loaded), OpenError> {
        let lock = layout::lock(dir)?;
        if !layout::exists(dir)? {
            create(dir, &[], Marker::new(Revision::FIRST), sizes)?;
        }
        // Names may be as fresh as what they name, and what is removed below relies on them.
        layout::settle(dir)?;
        let data = layout::data(dir);
        let (loaded, end) = recovery::recover(&data)?;
        let log = Log::open(&data, &end, sizes).map_err(|error| io_error(&data, error))?;
        let End { first, base_bytes, log_bytes, .. } = end;
        let last = loaded.marker;
        let disk = Self {
            renewal: None,
            log,
            data,
            sizes,
            latest: None,
            base_bytes,
            first,
            drafted: 0,
            log_bytes,
            buffer: Vec::new(),
            synced: last.revision,
            last,
            _lock: lock,
        };
        Ok((disk, loaded))
    }

    fn write(&mut self, records: &[Record<'_>], marker: Marker, sync: bool) -> io::Result<()> {
        frame::encode(&mut self.buffer, marker, records)?;
        let before = self.log.bytes();
        let turned = self.log.turn(self.buffer.len())?;
        self.log.write(&self.buffer)?;
        // A base may only take the place of the logs before if there is something after it.
        if sync || turned {
            self.log.sync()?;
            self.synced = marker.revision;
        }
        self.last = marker;
        if turned {
            self.log_bytes += before;
        }
        if self.buffer.capacity() > BUFFER_BYTES {
            self.buffer = Vec::new();
        }
        self.log.look_ahead();
        self.renew()
    }

    /// Takes a new base a step further, and begins one if logs have become long or many.
    fn renew(&mut self) -> io::Result<()> {
        self.renewal = match self.renewal.take() {
            None => self.begin_draft(),
            Some(Renewal::Draft { number, mut work }) => match work.done() {
                None => Some(Renewal::Draft { number, work }),
                Some(Ok(bytes)) => {
                    // What readers saw of the log may not be durable yet. All before it is.
                    self.log.sync()?;
                    let data = self.data.clone();
                    let started = Background::start(move |_| base::place(&data, number));
                    under_way(started).map(|work| Renewal::Place { number, bytes, work })
                }
                Some(Err(error)) => under_way(Err(error)),
            },
            Some(Renewal::Place { number, bytes, mut work }) => match work.done() {
                None => Some(Renewal::Place { number, bytes, work }),
                Some(Ok(())) => {
                    (self.first, self.base_bytes) = (number, bytes);
                    None
                }
                Some(Err(error)) => under_way(Err(error)),
            },
        };
        Ok(())
    }

    fn begin_draft(&mut self) -> Option<Renewal> {
        let (latest, number) = (self.latest.clone()?, self.log.number());
        let is_long = self.log_bytes >= self.base_bytes.max(self.sizes.logs);
        let is_due = is_long || number - self.first >= LOGS_MAX;
        if !is_due || number == self.drafted {
            return None;
        }
        (self.log_bytes, self.drafted) = (0, number);
        let data = self.data.clone();
        let started = Background::start(move |leave| base::draft(&data, number, &*latest, leave));
        under_way(started).map(|work| Renewal::Draft { number, work })
    }
}

/// Nobody waits for a new base, and without it there is still the old one.
fn under_way<T>(started: io::Result<T>) -> Option<T> {
    started.inspect_err(|error| tracing::warn!(%error, "logs could not be made shorter")).ok()
}

impl Engine for Disk {
    fn commit(&mut self, batch: Batch<'_>) -> Result<(), EngineError> {
        let Batch { records, revision, ceiling, sync } = batch;
        let marker = Marker { revision, ceiling, synced: self.synced };
        // Without a sync the bytes still leave this process: only loss of power loses them.
        self.write(&records, marker, sync).map_err(|error| Arc::new(error) as EngineError)
    }

    fn close(&mut self, revision: Revision) -> Result<(), EngineError> {
        if self.last.revision == self.last.ceiling && self.last.synced == revision {
            return Ok(());
        }
        let mut close = || {
            self.log.sync()?;
            // It vouches for what is there, and not for numbers that were never written.
            let synced = self.last.revision;
            self.write(&[], Marker { revision, ceiling: revision, synced }, true)?;
            self.renewal = None;
            self.log.close()
        };
        close().map_err(|error| Arc::new(error) as EngineError)
    }

    fn attach(&mut self, latest: Arc<dyn Latest>) {
        self.latest = Some(latest);
    }
}

/// Begins to serve what an engine loaded.
fn start<I: Send + Sync + 'static>(
    mut engine: impl Engine,
    loaded: Loaded,
    config: Config<I>,
) -> std::io::Result<(Arc<Image<I>>, GroupWriter<I>)> {
    // Numbers up to the ceiling may have been seen before a crash, so all of them are past.
    let revision = loaded.marker.ceiling;
    let floor = Floor { oldest: revision, same: Some(loaded.marker.revision) };
    let image = Image::new(config, loaded.stored, revision, floor);
    engine.attach(Arc::clone(&image) as _);
    let writer = GroupWriter::start(Arc::clone(&image), engine, revision)?;
    Ok((image, writer))
}

/// Makes a store of `stored` in `dir`; false if there is one.
pub(crate) fn build(dir: &Path, stored: &[Stored], marker: Marker) -> Result<bool, OpenError> {
    let _lock = layout::lock(dir)?;
    if layout::exists(dir)? {
        return Ok(false);
    }
    create(dir, stored, marker, SIZES).map(|()| true)
}

/// Makes a store of `stored` in `dir`, which is locked and holds none.
///
/// The header appears last, so that a crash on the way leaves something that is recognised as
/// unfinished.
fn create(dir: &Path, stored: &[Stored], marker: Marker, sizes: Sizes) -> Result<(), OpenError> {
    let data = layout::vacate(dir)?;
    let fill = || {
        if !stored.is_empty() {
            let file = dump::create_private(&Place::Base(FIRST).path(&data))?;
            let records = stored.iter().map(Stored::record);
            dump::write_records(BufWriter::new(file), marker.revision, stored.len(), records)?;
        }
        let mut log = Vec::new();
        frame::encode(&mut log, marker, &[])?;
        log.resize(log.len().max(usize::try_from(sizes.first).unwrap_or(0)), 0);
        dump::create_private(&Place::Log(FIRST).path(&data))?.write_all(&log)
    };
    fill().map_err(|error| io_error(dir, error))?;
    layout::finish(dir)
}

fn io_error(dir: &Path, source: impl std::error::Error + Send + Sync + 'static) -> OpenError {
    OpenError::Io { dir: dir.into(), source: Arc::new(source) }
}

#[cfg(all(test, target_os = "linux"))]
mod crash;
#[cfg(test)]
mod tests;
