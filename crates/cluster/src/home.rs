//! Where the named clusters of a user are: a directory each, with a record and a lock.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use kubewright_apimachinery::name::dns1123_label;
use serde::{Deserialize, Serialize};

/// The cluster that is meant when none is named.
pub const DEFAULT_NAME: &str = "kubewright";

/// Whoever only looks whether a directory is held is in the way for less than this.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: u32 = 4;

/// A directory with a directory for each named cluster.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

/// What others may know of a named cluster. It outlives the cluster's process, so that the next
/// one comes up at the same place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub name: String,
    /// Such as `https://127.0.0.1:6443`.
    pub server: String,
    pub port: u16,
    /// The process that serves, or served it last.
    pub pid: u32,
    /// Where its keys and its store are; none if it leaves nothing behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<PathBuf>,
    /// Where its objects are: `embedded`, `memory`, or `etcd=URL`.
    pub store: String,
    /// The file that has its context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<PathBuf>,
    /// Where Ingresses are served, such as `http://127.0.0.1:8080`; none if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<String>,
    /// The socket of the container runtime that runs its pods; none if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cri: Option<PathBuf>,
    /// The socket that takes [`crate::control::Command`]s.
    pub control: PathBuf,
}

/// A cluster that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    #[serde(flatten)]
    pub record: Record,
    pub running: bool,
}

/// Holds a directory against other processes for as long as it lives.
#[derive(Debug)]
pub struct Hold {
    _lock: File,
}

/// Why a directory cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Somebody else holds it.
    #[error("use {}, which another process uses", dir.display())]
    Taken { dir: PathBuf },
    #[error("use {}", dir.display())]
    Io {
        dir: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Says why a cluster cannot be called so: the name is that of a directory and of a context.
pub fn check_name(name: &str) -> Result<(), String> {
    dns1123_label(name).into_iter().next().map_or(Ok(()), |problem| Err(problem.to_string()))
}

impl Home {
    pub fn new(dir: PathBuf) -> Self {
        Home(dir)
    }

    /// `$XDG_DATA_HOME/kubewright`, or `.local/share/kubewright` in the home directory.
    pub fn of_user(xdg_data_home: Option<OsString>, home: Option<PathBuf>) -> Option<Self> {
        let data = xdg_data_home.map(PathBuf::from).filter(|path| path.is_absolute());
        let data = data.or_else(|| home.map(|home| home.join(".local").join("share")))?;
        Some(Home(data.join("kubewright")))
    }

    /// The directory of all clusters, which need not exist.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The directory of a cluster, which need not exist.
    pub fn dir(&self, name: &str) -> Result<PathBuf> {
        check_name(name)
            .map_err(|problem| anyhow!("{name:?} is no name for a cluster: {problem}"))?;
        Ok(self.0.join(name))
    }

    /// The directory of a node in a cluster elsewhere.
    pub fn node_dir(&self, name: &str) -> PathBuf {
        // No name of a cluster has an underscore.
        self.0.join("_nodes").join(name)
    }

    /// The cluster of this name, running or not.
    pub fn find(&self, name: &str) -> Result<Option<Found>> {
        let dir = self.dir(name)?;
        let Some(record) = Record::read(&dir)? else { return Ok(None) };
        let running = Hold::is_taken(&dir).with_context(|| format!("look at {}", dir.display()))?;
        Ok(Some(Found { record, running }))
    }

    /// All clusters, by name.
    pub fn clusters(&self) -> Result<Vec<Found>> {
        let mut names = Vec::new();
        match std::fs::read_dir(&self.0) {
            Ok(entries) => {
                for entry in entries {
                    let entry = entry.with_context(|| format!("read {}", self.0.display()))?;
                    names.extend(entry.file_name().into_string());
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("read {}", self.0.display()));
            }
        }
        names.sort();
        // Whatever else is in the directory has no name of a cluster.
        let found = names.iter().filter(|name| self.dir(name).is_ok()).map(|name| self.find(name));
        found.filter_map(Result::transpose).collect()
    }
}

impl Record {
    fn path(dir: &Path) -> PathBuf {
        dir.join("cluster.json")
    }

    pub(crate) fn read(dir: &Path) -> Result<Option<Self>> {
        let path = Record::path(dir);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .with_context(|| format!("read {}", path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
        }
    }

    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let mut bytes = serde_json::to_vec_pretty(self).context("encode the record")?;
        bytes.push(b'\n');
        write_private(&Record::path(dir), &bytes)
    }
}

impl Hold {
    /// Holds `dir`, which is made if it is not there.
    pub fn take(dir: &Path) -> Result<Self, HoldError> {
        let io_error = |source| HoldError::Io { dir: dir.into(), source };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let open = || make_dir(dir).and_then(|()| options.open(dir.join("lock")));
        // Whoever held it may have removed it in between.
        let lock = open().or_else(|error| match error.kind() {
            ErrorKind::NotFound => open(),
            _ => Err(error),
        });
        let lock = lock.map_err(io_error)?;
        for _ in 0..LOOKS {
            match lock.try_lock() {
                Ok(()) => return Ok(Hold { _lock: lock }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
                Err(TryLockError::Error(source)) => return Err(io_error(source)),
            }
        }
        Err(HoldError::Taken { dir: dir.into() })
    }

    /// Whether anybody holds `dir`.
    fn is_taken(dir: &Path) -> io::Result<bool> {
        let lock = match File::open(dir.join("lock")) {
            Ok(lock) => lock,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match lock.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns when nobody holds `dir`.
    pub fn wait(dir: &Path) -> Result<(), HoldError> {
        let io_error = |source| HoldError::Io { dir: dir.into(), source };
        match File::open(dir.join("lock")) {
            Ok(lock) => lock.lock_shared().map_err(io_error),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io_error(error)),
        }
    }
}

/// Takes away the directory of a cluster that came to nothing: nobody holds it, and nothing is in
/// it.
pub(crate) fn leave(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let is_empty = entries.flatten().all(|entry| entry.file_name() == "lock");
    if is_empty && Hold::is_taken(dir).is_ok_and(|is_taken| !is_taken) {
        // What cannot be taken away does no harm.
        let _ = std::fs::remove_file(dir.join("lock"));
        let _ = std::fs::remove_dir(dir);
        leave_all(dir);
    }
}

/// Takes away the directory of all clusters, after that of the last.
pub(crate) fn leave_all(dir: &Path) {
    // One that has others in it stays.
    let _ = dir.parent().map(std::fs::remove_dir);
}

/// Makes a directory for its owner alone, unless it is there.
pub(crate) fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Replaces a file in one step, readable by its owner alone.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let draft = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options
        .open(&draft)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(&draft, path))
        .with_context(|| format!("write {}", path.display()))
}
