//! Places in a volume that others write in at the same time.
//!
//! Between a look at a path and its use, a container can put a link in the way that leads out of the
//! volume. So links are followed here first, one at a time, and what they lead to is then opened by
//! a path on which the kernel follows none.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::MountPropagationFlags;

/// No variables are longer than that together.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// A place in a volume.
pub(crate) struct Part {
    place: OwnedFd,
    /// Where it was when it was looked for.
    pub(crate) path: PathBuf,
}

/// A place in a volume, which is made if it is not there. It is never outside.
///
/// # Errors
/// If it would be, if a link is put in its way meanwhile, or if the disk refuses.
pub(crate) fn part(volume: &Path, path: &str) -> io::Result<Part> {
    let parts = Path::new(path).components();
    if !parts.clone().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(leads_out());
    }
    let volume = Volume::open(volume)?;
    let mut found = PathBuf::new();
    for part in parts {
        if let Component::Normal(name) = part {
            found.push(name);
            match fs::symlink_metadata(volume.path.join(&found)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => volume.make(&found)?,
                Err(error) => return Err(error),
                Ok(_) => found = volume.follow(&found)?,
            }
        }
    }
    let place = volume.beneath(&found, OFlags::PATH)?;
    Ok(Part { place, path: volume.path.join(found) })
}

/// What is in a file of a volume. It is not looked for outside.
///
/// # Errors
/// If it is not there, is no text, or is too long for one.
pub(crate) fn read(volume: &Path, path: &str) -> io::Result<String> {
    let volume = Volume::open(volume)?;
    let found = volume.follow(Path::new(path))?;
    // Whoever opens a pipe would wait for somebody to write.
    let file = File::from(volume.beneath(&found, OFlags::RDONLY | OFlags::NONBLOCK)?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > TEXT_BYTES_MAX {
        let why = "it is no file, or too long a one";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut text = String::new();
    file.take(TEXT_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

impl Part {
    /// Has this place be seen at a path, which nobody else may write in: what becomes of the names
    /// that led to it does not matter any more.
    ///
    /// # Errors
    /// If the agent may not mount, or the disk refuses.
    pub(crate) fn bind(&self, target: &Path) -> io::Result<()> {
        super::unmount(target)?;
        let found = rustix::fs::fstat(&self.place)?;
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        // What is left there was of another kind, perhaps.
        match fs::symlink_metadata(target) {
            Err(_) => {}
            Ok(left) if left.is_dir() => fs::remove_dir(target)?,
            Ok(_) => fs::remove_file(target)?,
        }
        match is_directory {
            true => fs::create_dir(target)?,
            false => File::create_new(target).map(drop)?,
        }
        let place = format!("/proc/self/fd/{}", self.place.as_raw_fd());
        rustix::mount::mount_bind(place, target)?;
        // What is mounted in the volume later is seen here too. Undone here, it would be undone there
        // as well, whosesoever it is, if this went both ways.
        rustix::mount::mount_change(target, MountPropagationFlags::DOWNSTREAM).or_else(|error| {
            super::unmount(target)?;
            Err(error.into())
        })
    }
}

/// The directory, or file, that is a volume.
struct Volume {
    root: OwnedFd,
    path: PathBuf,
}

impl Volume {
    fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Volume { root, path })
    }

    /// The path without links of what a path in the volume leads to.
    fn follow(&self, path: &Path) -> io::Result<PathBuf> {
        let real = self.path.join(path).canonicalize()?;
        real.strip_prefix(&self.path).map(Path::to_owned).map_err(|_| leads_out())
    }

    /// What is at a path in the volume on which there are no links.
    fn beneath(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        beneath(&self.root, path, flags)
    }

    /// Makes a directory as the volume is one.
    fn make(&self, path: &Path) -> io::Result<()> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let parent = self.beneath(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&self.root)?.st_mode & 0o7777);
        match rustix::fs::mkdirat(&parent, name, mode) {
            // Somebody else was faster, and it is as they made it.
            Err(rustix::io::Errno::EXIST) => return Ok(()),
            made => made?,
        }
        let made = beneath(&parent, Path::new(name), OFlags::RDONLY | OFlags::DIRECTORY)?;
        // What is made is less than what is asked for, by the mask of the agent.
        Ok(rustix::fs::fchmod(made, mode)?)
    }
}

fn beneath(directory: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        // The volume itself, which may be a file.
        return directory.as_fd().try_clone_to_owned();
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat2(directory, path, flags, Mode::empty(), resolve)?)
}

fn leads_out() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "subPath leads outside")
}
