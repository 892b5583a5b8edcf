//! A file that lines are appended to, put aside when it has grown too large.

#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use kubewright_store::Clock;

/// When a file is put aside, and which of those are kept. The defaults are kube-apiserver's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// A file that would grow larger is put aside; zero leaves it as it is.
    pub bytes_max: u64,
    /// How many that were put aside are kept; zero keeps all.
    pub kept_max: usize,
    /// How old those may be; zero keeps all.
    pub age_max: Duration,
}

impl Default for Rotation {
    fn default() -> Self {
        Rotation { bytes_max: 100 << 20, kept_max: 100, age_max: Duration::from_hours(366 * 24) }
    }
}

/// An open file.
pub(super) struct File {
    path: PathBuf,
    rotation: Rotation,
    clock: Clock,
    file: fs::File,
    bytes: u64,
}

impl File {
    /// Opens a file, making it and its folder if need be. Only its owner may read it: it may hold
    /// whatever requests hold.
    pub(super) fn open(path: PathBuf, rotation: Rotation, clock: Clock) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let (file, bytes) = open(&path)?;
        Ok(File { path, rotation, clock, file, bytes })
    }

    /// Appends lines. If one does not fit any more, what of it did is cut off again, so that each
    /// is either whole or missing.
    pub(super) fn append(&mut self, lines: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
        let mut buffer = Vec::new();
        for line in lines {
            let size = self.bytes + (buffer.len() + line.len()) as u64;
            let is_empty = self.bytes == 0 && buffer.is_empty();
            if self.rotation.bytes_max > 0 && size > self.rotation.bytes_max && !is_empty {
                self.write(&buffer)?;
                buffer.clear();
                self.put_aside()?;
            }
            buffer.extend_from_slice(&line);
        }
        self.write(&buffer)
    }

    fn write(&mut self, buffer: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(buffer) {
            // The error that led here is the one to tell.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += buffer.len() as u64;
        Ok(())
    }

    fn put_aside(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let aside = Aside::of(&self.path);
        fs::rename(&self.path, aside.path(now))?;
        (self.file, self.bytes) = open(&self.path)?;
        aside.remove_old(&self.rotation, now)
    }
}

/// A file to append to, and its size.
fn open(path: &Path) -> io::Result<(fs::File, u64)> {
    let file = fs::File::options().create(true).append(true).mode(0o600).open(path)?;
    let bytes = file.metadata()?.len();
    Ok((file, bytes))
}

/// How files that were put aside are called: `audit-2026-11-16T01-29-33.640.log`, as upstream's.
struct Aside<'a> {
    folder: &'a Path,
    prefix: String,
    suffix: String,
}

const TIME: &str = "%Y-%m-%dT%H-%M-%S%.3f";

impl<'a> Aside<'a> {
    fn of(path: &'a Path) -> Self {
        let text = |part: Option<&std::ffi::OsStr>| {
            part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let suffix = match text(path.extension()) {
            none if none.is_empty() => none,
            extension => format!(".{extension}"),
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Aside {
            folder: folder.unwrap_or(Path::new(".")),
            prefix: format!("{}-", text(path.file_stem())),
            suffix,
        }
    }

    /// A name that is free. Two files may be put aside within a millisecond; the later one is dated
    /// a little ahead.
    fn path(&self, now: Duration) -> PathBuf {
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        (millis..)
            .map(|millis| {
                let time = timestamp(Duration::from_millis(millis)).strftime(TIME);
                self.folder.join(format!("{}{time}{}", self.prefix, self.suffix))
            })
            .find(|path| !path.exists())
            .expect("there is always a later moment")
    }

    fn remove_old(&self, rotation: &Rotation, now: Duration) -> io::Result<()> {
        let mut found: Vec<(Timestamp, PathBuf)> = fs::read_dir(self.folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter_map(|path| Some((self.time(&path)?, path)))
            .collect();
        found.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        let Rotation { kept_max, age_max, .. } = *rotation;
        let oldest = timestamp(now.saturating_sub(age_max));
        for (at, (time, path)) in found.iter().enumerate() {
            let is_surplus = kept_max > 0 && at >= kept_max;
            let is_old = !age_max.is_zero() && *time < oldest;
            if is_surplus || is_old {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// When a file was put aside, if it is one that was.
    fn time(&self, path: &Path) -> Option<Timestamp> {
        let name = path.file_name()?.to_str()?;
        let time = name.strip_prefix(&self.prefix)?.strip_suffix(&self.suffix)?;
        let time = jiff::civil::DateTime::strptime("%Y-%m-%dT%H-%M-%S%.f", time).ok()?;
        Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    }
}

fn timestamp(since_epoch: Duration) -> Timestamp {
    let millis = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}
