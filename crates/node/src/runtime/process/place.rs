//! Where things are on disk: a directory for each pod, and in it one for each run of a container.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::jail::Mount;
use super::shim::{self, Exit};
use crate::runtime::{Ended, Id, Started, last_words};

/// So much of the end of a log is read for last words: more lines than are shown of it.
const LOG_END_BYTES: u64 = 256 * 1024;
/// The record of a start is rarely longer.
const STARTED_BYTES: usize = 512;

/// The directory of a pod.
#[derive(Debug, Clone)]
pub(super) struct PodPlace(PathBuf);

/// The directory of one run of a container.
#[derive(Debug, Clone)]
pub(super) struct Place(PathBuf);

#[derive(Serialize, Deserialize)]
struct StartedRecord {
    id: String,
    image_id: String,
    at: Timestamp,
}

impl PodPlace {
    pub(super) fn new(directory: &Path, uid: &str) -> Self {
        PodPlace(directory.join("pods").join(uid))
    }

    pub(super) fn make(&self, address: Ipv4Addr) -> io::Result<()> {
        fs::create_dir_all(self.root())?;
        fs::create_dir_all(self.0.join("volumes"))?;
        // What is in a pod's volumes is nobody else's business.
        fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700))?;
        replace(&self.0.join("address"), address.to_string().as_bytes())
    }

    pub(super) fn address(&self) -> Option<Ipv4Addr> {
        fs::read_to_string(self.0.join("address")).ok()?.parse().ok()
    }

    pub(super) fn volume(&self, name: &str) -> PathBuf {
        self.0.join("volumes").join(name)
    }

    /// What a pod takes for `/` where it has no view of its own.
    pub(super) fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    pub(super) fn container(&self, name: &str, number: u32) -> Place {
        Place(self.0.join("containers").join(name).join(number.to_string()))
    }

    /// The newest run of each container.
    pub(super) fn newest(&self) -> BTreeMap<String, u32> {
        let names = |path: &Path| -> Vec<String> {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let containers = self.0.join("containers");
        let newest = names(&containers).into_iter().filter_map(|name| {
            let runs = names(&containers.join(&name));
            let newest = runs.iter().filter_map(|run| run.parse().ok()).max()?;
            Some((name, newest))
        });
        newest.collect()
    }

    /// Forgets runs of a container but this one and the one before, whose log may be asked for.
    /// `is_over` says whether one can be forgotten.
    pub(super) fn remove_older(
        &self,
        name: &str,
        number: u32,
        is_over: impl Fn(&Place) -> bool,
    ) -> io::Result<()> {
        let runs = fs::read_dir(self.0.join("containers").join(name)).into_iter().flatten();
        for run in runs.flatten() {
            let Ok(run) = run.file_name().to_string_lossy().parse::<u32>() else { continue };
            let place = self.container(name, run);
            if run + 1 < number && is_over(&place) {
                fs::remove_dir_all(place.directory())?;
            }
        }
        Ok(())
    }

    /// A file of host names for the pod.
    pub(super) fn hosts(&self, text: &str) -> io::Result<PathBuf> {
        let path = self.0.join("hosts");
        fs::write(&path, text)?;
        Ok(path)
    }

    /// Lets a volume be found below the pod's root.
    pub(super) fn expose(&self, target: &str, source: &Path) -> io::Result<()> {
        let link = self.root().join(target.trim_start_matches('/'));
        if let Some(parent) = link.parent() {
            fs::create_dir_all(parent)?;
        }
        match symlink(source, &link) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    /// A command whose program is in a volume, by where that is.
    pub(super) fn found(&self, mut command: Vec<String>, mounts: &[Mount]) -> Vec<String> {
        if let Some(program) = command.first_mut() {
            let is_below = |mount: &Mount| Path::new(&*program).starts_with(&mount.target);
            if mounts.iter().any(is_below) {
                let path = self.root().join(program.trim_start_matches('/'));
                *program = path.to_string_lossy().into_owned();
            }
        }
        command
    }

    pub(super) fn working_directory(&self, wanted: &str) -> io::Result<PathBuf> {
        let directory = self.root().join(wanted.trim_start_matches('/'));
        fs::create_dir_all(&directory)?;
        Ok(directory)
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        // An agent that ran containers may have been here before, and have mounted something.
        crate::volume::remove(&self.0)
    }
}

impl Place {
    /// The one that a shim was told.
    pub(super) fn at(directory: PathBuf) -> Self {
        Place(directory)
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.0.clone()
    }

    pub(super) fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// A pipe that the shim holds open.
    pub(super) fn alive(&self) -> PathBuf {
        self.0.join("alive")
    }

    /// Where whoever attaches to the container finds it.
    pub(super) fn door(&self) -> PathBuf {
        self.0.join("door")
    }

    /// A pipe that the container's input comes from.
    pub(super) fn input(&self) -> PathBuf {
        self.0.join("input")
    }

    pub(super) fn exit_file(&self) -> PathBuf {
        self.0.join("exit")
    }

    /// Where the container leaves its last words.
    pub(super) fn last_words(&self) -> PathBuf {
        self.0.join("last-words")
    }

    /// An empty file for them that anybody may write.
    pub(super) fn make_last_words(&self) -> io::Result<PathBuf> {
        let path = self.last_words();
        fs::write(&path, "")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
        Ok(path)
    }

    pub(super) fn write_order(&self, order: &shim::Order) -> io::Result<()> {
        replace(&self.0.join("order"), &serde_json::to_vec(order)?)
    }

    pub(super) fn order(&self) -> io::Result<shim::Order> {
        Ok(serde_json::from_slice(&fs::read(self.0.join("order"))?)?)
    }

    pub(super) fn write_pid(&self, pid: u32) -> io::Result<()> {
        replace(&self.0.join("pid"), pid.to_string().as_bytes())
    }

    /// The process group of the container, and the process of it that all others come from.
    pub(super) fn pid(&self) -> Option<i32> {
        fs::read_to_string(self.0.join("pid")).ok()?.parse().ok()
    }

    /// Takes the room for the record of a start before there is one: a container may fill the disk as
    /// soon as it runs, and would run unknown to anybody.
    pub(super) fn reserve_started(&self) -> io::Result<()> {
        fs::write(self.0.join("started.new"), [b' '; STARTED_BYTES])
    }

    pub(super) fn write_started(&self, started: &Started) -> io::Result<()> {
        let Started { id, image_id, at } = started.clone();
        let record = StartedRecord { id: id.to_string(), image_id, at };
        let (new, path) = (self.0.join("started.new"), self.0.join("started"));
        // In the room that was taken, whose rest stays blank.
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&new)?;
        file.write_all(&serde_json::to_vec(&record)?)?;
        fs::rename(new, path)
    }

    pub(super) fn started(&self) -> Option<Started> {
        let bytes = fs::read(self.0.join("started")).ok()?;
        let StartedRecord { id, image_id, at } = serde_json::from_slice(&bytes).ok()?;
        Some(Started { id: Id::new(id), image_id, at })
    }

    pub(super) fn write_exit(&self, exit: &Exit) -> io::Result<()> {
        replace(&self.exit_file(), &serde_json::to_vec(exit)?)
    }

    /// How the container ended. One whose shim was killed has no record of it.
    pub(super) fn ended(&self) -> Ended {
        let exit = fs::read(self.exit_file()).ok();
        match exit.and_then(|bytes| serde_json::from_slice::<Exit>(&bytes).ok()) {
            Some(Exit { at, failure: Some(why), .. }) => Ended::before_it_began(why, at),
            Some(exit) => {
                let message = self.said(exit.code);
                Ended { message, ..Ended::with_code(exit.code, exit.at) }
            }
            None => Ended {
                code: 137,
                reason: "ContainerStatusUnknown".to_owned(),
                message: Some("its supervisor is gone".to_owned()),
                at: self.started().map_or(Timestamp::UNIX_EPOCH, |started| started.at),
            },
        }
    }

    /// The last words of a container that ended with this code.
    fn said(&self, code: i32) -> Option<String> {
        let said = last_words::beginning(&fs::read(self.last_words()).unwrap_or_default());
        let falls_back = || self.order().is_ok_and(|order| order.says_last_what_it_logs);
        said.or_else(|| {
            (code != 0 && falls_back()).then_some(())?;
            last_words::last_lines(&end(&self.log(), LOG_END_BYTES).ok()?)
        })
    }
}

/// What is at the end of a file.
fn end(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file that readers see whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, bytes)?;
    fs::rename(new, path)
}
