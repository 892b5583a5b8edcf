//! How clients find a cluster: its entries in a kubeconfig, beside everybody else's.
//!
//! As kind does: a cluster, a user and a context, all of one name, and the context made current.
//! Everything else in the file stays.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_apimachinery::yaml;
use serde_json::{Map, Value, json};

use crate::authority::Pair;

/// Marks the entries that are ours, so that nobody else's are ever overwritten.
const MARK: &str = "kubewright";
/// How long somebody else may keep a file locked. kubectl does so for milliseconds.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// How one user reaches one cluster.
pub struct Access<'a> {
    /// Of the cluster, the user and the context.
    pub name: &'a str,
    /// Such as `https://127.0.0.1:6443`.
    pub server: &'a str,
    pub ca_pem: &'a str,
    pub user: &'a Pair,
}

/// Why a kubeconfig was not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A person must choose.
    #[error(
        "add context {name:?} to {}, which has one of that name that is not kubewright's: choose \
         another --name, or another file with --kubeconfig", path.display()
    )]
    Occupied { path: PathBuf, name: String },
    #[error("read {}, which is no kubeconfig: {problem}", path.display())]
    Malformed { path: PathBuf, problem: String },
    #[error("change {}, which is locked: if nobody else is changing it, remove {}",
        path.display(), lock.display())]
    Locked { path: PathBuf, lock: PathBuf },
    #[error("change {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Where kubeconfigs are, as kubectl sees it: the value of `KUBECONFIG`, or the file in the home
/// directory.
pub fn paths(kubeconfig: Option<OsString>, home: Option<PathBuf>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in kubeconfig.iter().flat_map(std::env::split_paths) {
        if !path.as_os_str().is_empty() && !paths.contains(&path) {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        paths.extend(home.map(|home| home.join(".kube").join("config")));
    }
    paths
}

/// Which of several files a new cluster is added to: the first that exists, else the last.
pub fn choose(paths: &[PathBuf]) -> Option<&Path> {
    let existing = paths.iter().find(|path| path.exists());
    existing.or_else(|| paths.last()).map(PathBuf::as_path)
}

impl Access<'_> {
    /// A kubeconfig with nothing else in it.
    pub fn alone(&self) -> String {
        let mut config = Value::Null;
        self.merge_into(&mut config).expect("nothing is in the way");
        yaml::to_string(&config)
    }

    /// Adds the entries to the file at `path`, which need not exist, and makes the context
    /// current.
    pub fn add_to(&self, path: &Path) -> Result<(), Error> {
        change(path, |config| {
            self.merge_into(config).map(|()| true).map_err(|Occupied| Error::Occupied {
                path: path.into(),
                name: self.name.to_owned(),
            })
        })
    }

    fn merge_into(&self, config: &mut Value) -> Result<(), Occupied> {
        let config = match config {
            Value::Object(config) => config,
            other => {
                *other = json!({"apiVersion": "v1", "kind": "Config"});
                other.as_object_mut().expect("it was just made one")
            }
        };
        for list in ["clusters", "users", "contexts"] {
            if entries(config, list)
                .iter()
                .any(|entry| is_named(entry, self.name) && !is_ours(entry))
            {
                return Err(Occupied);
            }
        }
        let base64 = |text: &str| STANDARD.encode(text);
        let mark = json!([{"name": MARK, "extension": {}}]);
        put(
            config,
            "clusters",
            self.name,
            "cluster",
            json!({
                "certificate-authority-data": base64(self.ca_pem),
                "extensions": mark,
                "server": self.server,
            }),
        );
        put(
            config,
            "contexts",
            self.name,
            "context",
            json!({
                "cluster": self.name,
                "extensions": mark,
                "user": self.name,
            }),
        );
        put(
            config,
            "users",
            self.name,
            "user",
            json!({
                "client-certificate-data": base64(&self.user.certificate),
                "client-key-data": base64(&self.user.key),
                "extensions": mark,
            }),
        );
        config.insert("current-context".to_owned(), self.name.into());
        Ok(())
    }
}

/// Removes the entries of a cluster of ours from the file at `path`, and says whether there were
/// any.
pub fn remove(path: &Path, name: &str) -> Result<bool, Error> {
    if !path.exists() {
        return Ok(false);
    }
    let mut removed = false;
    change(path, |config| {
        removed = config.as_object_mut().is_some_and(|config| remove_from(config, name));
        Ok(removed)
    })?;
    Ok(removed)
}

fn remove_from(config: &mut Map<String, Value>, name: &str) -> bool {
    let mut removed = false;
    for list in ["clusters", "users", "contexts"] {
        if let Some(Value::Array(entries)) = config.get_mut(list) {
            let before = entries.len();
            entries.retain(|entry| !(is_named(entry, name) && is_ours(entry)));
            removed |= entries.len() < before;
        }
    }
    if removed && config.get("current-context").is_some_and(|current| *current == name) {
        config.insert("current-context".to_owned(), "".into());
    }
    removed
}

/// An entry of the same name belongs to somebody else.
#[derive(Debug)]
struct Occupied;

fn entries<'a>(config: &'a Map<String, Value>, list: &str) -> &'a [Value] {
    config.get(list).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_named(entry: &Value, name: &str) -> bool {
    entry["name"] == name
}

fn is_ours(entry: &Value) -> bool {
    ["cluster", "context", "user"]
        .iter()
        .filter_map(|kind| entry[kind]["extensions"].as_array())
        .flatten()
        .any(|extension| is_named(extension, MARK))
}

/// Replaces the entry of this name, or adds one.
fn put(config: &mut Map<String, Value>, list: &str, name: &str, kind: &str, value: Value) {
    let entry = json!({ kind: value, "name": name });
    let entries = config.entry(list).or_insert(Value::Null);
    if !entries.is_array() {
        *entries = json!([]);
    }
    let entries = entries.as_array_mut().expect("it was just made one");
    match entries.iter_mut().find(|entry| is_named(entry, name)) {
        Some(found) => *found = entry,
        None => entries.push(entry),
    }
}

/// Reads, changes and replaces a file under the lock that kubectl takes, too. What `edit` says
/// false to is not written.
fn change(path: &Path, edit: impl FnOnce(&mut Value) -> Result<bool, Error>) -> Result<(), Error> {
    let io_error = |source| Error::Io { path: path.into(), source };
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(io_error)?;
    }
    // A link stays one; what it points at is replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.into());
    let _lock = Lock::take(&target)?;
    let text = match std::fs::read_to_string(&target) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(io_error(error)),
    };
    let malformed = |problem: String| Error::Malformed { path: path.into(), problem };
    let mut config = yaml::decode(&text).map_err(|error| malformed(error.to_string()))?.value;
    if !config.is_object() && !config.is_null() {
        return Err(malformed("it is no mapping".to_owned()));
    }
    if edit(&mut config)? {
        replace(&target, &yaml::to_string(&config)).map_err(io_error)?;
    }
    Ok(())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let draft = beside(path, ".kubewright");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&draft)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&draft, path)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The existence of a file beside the kubeconfig.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> Result<Self, Error> {
        let lock = beside(path, ".lock");
        for _ in 0..LOCK_TRIES {
            match OpenOptions::new().write(true).create_new(true).open(&lock) {
                Ok(_) => return Ok(Lock(lock)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(source) => return Err(Error::Io { path: path.into(), source }),
            }
        }
        Err(Error::Locked { path: path.into(), lock })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Whoever comes next is told what to do if this fails.
        let _ = std::fs::remove_file(&self.0);
    }
}
