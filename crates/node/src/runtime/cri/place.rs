//! Where on this machine things of pods are that the runtime does not keep: volumes, names of hosts,
//! last words, logs.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;

use super::container::log_path;
use crate::runtime::supply::{namespace, uid};
use crate::volume;

/// The directory of an agent.
#[derive(Debug, Clone)]
pub(super) struct Place(PathBuf);

impl Place {
    pub(super) fn new(directory: PathBuf) -> Self {
        Place(directory)
    }

    /// By what containers of this directory are known among others.
    pub(super) fn owner(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }

    /// The socket of the runtime that was used last from here; none if none was.
    pub(super) fn socket(&self) -> Option<PathBuf> {
        fs::read_to_string(self.0.join("cri-socket")).ok().map(PathBuf::from)
    }

    /// Keeps it for those who come after the agent.
    pub(super) fn keep_socket(&self, socket: &Path) -> io::Result<()> {
        fs::create_dir_all(&self.0)?;
        fs::write(self.0.join("cri-socket"), socket.to_string_lossy().as_bytes())
    }

    /// Where whoever runs the node puts profiles of seccomp that pods name.
    pub(super) fn profiles(&self) -> PathBuf {
        self.0.join("seccomp")
    }

    fn pod(&self, uid: &str) -> PathBuf {
        self.0.join("pods").join(uid)
    }

    /// Makes the directories of a pod.
    pub(super) fn make(&self, pod: &Pod) -> io::Result<()> {
        let directory = self.pod(uid(pod));
        fs::create_dir_all(directory.join("volumes"))?;
        // What is in a pod's volumes is nobody else's business.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700))?;
        fs::create_dir_all(self.logs(pod))
    }

    pub(super) fn volume(&self, uid: &str, name: &str) -> PathBuf {
        self.pod(uid).join("volumes").join(name)
    }

    /// Where what a container mounts is: a volume, or a place in it, which is made if it is not
    /// there. `number` tells the mounts of the container apart.
    pub(super) fn in_volume(
        &self,
        uid: &str,
        (name, path): (&str, &str),
        (container, number): (&str, usize),
    ) -> io::Result<PathBuf> {
        let volume = self.volume(uid, name);
        if path.is_empty() {
            return volume.canonicalize();
        }
        // The runtime takes a path, and would follow the links that are there by then.
        let target = self.pod(uid).join("parts").join(container).join(number.to_string());
        volume::part(&volume, path)?.bind(&target)?;
        Ok(target)
    }

    /// A file of host names.
    pub(super) fn hosts(&self, uid: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.pod(uid).join("hosts");
        fs::write(&path, text)?;
        Ok(path)
    }

    /// Where a container leaves its last words.
    pub(super) fn last_words(&self, uid: &str, container: &str, number: u32) -> PathBuf {
        self.pod(uid).join("containers").join(container).join(number.to_string())
    }

    /// An empty file for them that anybody may write.
    pub(super) fn make_last_words(
        &self,
        uid: &str,
        container: &str,
        number: u32,
    ) -> io::Result<PathBuf> {
        let path = self.last_words(uid, container, number);
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(&path, "")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
        Ok(path)
    }

    /// The directory of a pod's logs, as kubelet names it.
    pub(super) fn logs(&self, pod: &Pod) -> PathBuf {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        self.0.join("logs").join(format!("{}_{name}_{}", namespace(pod), uid(pod)))
    }

    /// The same, of a pod of which only the uid is known.
    pub(super) fn logs_of(&self, uid: &str) -> Option<PathBuf> {
        let entries = fs::read_dir(self.0.join("logs")).ok()?.flatten();
        let suffix = format!("_{uid}");
        let mut paths = entries.map(|entry| entry.path());
        paths.find(|path| path.to_string_lossy().ends_with(&suffix))
    }

    pub(super) fn log(&self, uid: &str, container: &str, number: u32) -> Option<PathBuf> {
        Some(self.logs_of(uid)?.join(log_path(container, number)))
    }

    /// Notes that nothing will be added to a log: whoever follows it need not wait.
    pub(super) fn end_log(&self, uid: &str, container: &str, number: u32) {
        if let Some(log) = self.log(uid, container, number) {
            // Who does not learn of it waits until the pod is gone.
            let _ = fs::write(ended(&log), "");
        }
    }

    /// Forgets what a container wrote.
    pub(super) fn remove_log(&self, uid: &str, container: &str, number: u32) {
        if let Some(log) = self.log(uid, container, number) {
            for path in [log.clone(), older(&log), ended(&log)] {
                // Not all of them need be there.
                let _ = fs::remove_file(path);
            }
        }
        let _ = fs::remove_file(self.last_words(uid, container, number));
    }

    /// The uids of the pods that are here.
    pub(super) fn pods(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.join("pods")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Undoes what was mounted for a pod.
    pub(super) fn unmount(&self, uid: &str) -> io::Result<()> {
        volume::unmount(&self.pod(uid))
    }

    /// The same, for all pods.
    pub(super) fn unmount_all(&self) -> io::Result<()> {
        volume::unmount(&self.0.join("pods"))
    }

    pub(super) fn remove(&self, uid: &str) -> io::Result<()> {
        volume::remove(&self.pod(uid))?;
        match self.logs_of(uid) {
            Some(logs) => volume::remove(&logs),
            None => Ok(()),
        }
    }
}

/// The part of a log that was put aside.
pub(super) fn older(log: &Path) -> PathBuf {
    log.with_extension("1")
}

/// What is there when nothing will be added.
pub(super) fn ended(log: &Path) -> PathBuf {
    log.with_extension("ended")
}
