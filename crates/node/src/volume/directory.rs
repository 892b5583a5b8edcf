//! Fills a directory so that readers see all of the old or all of the new, never a mixture.
//!
//! The files are in a directory of their own, to which the link `..data` points; what readers open
//! are links through it. Replacing that one link replaces everything at once.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, chownat, fstat};
use rustix::io::Errno;

use super::Files;

const DATA: &str = "..data";
/// Whatever is at a path, links too, neither read nor followed.
const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// What a group may do with files that are given to it.
pub(crate) const READ: u32 = 0o440;
pub(crate) const WRITE: u32 = 0o660;
/// Directories in directories, each of which is held open while what is below is given away: containers
/// can make any number of them.
const DEPTH_MAX: usize = 256;
/// New files in a directory belong to its group too.
const DIRECTORY: u32 = 0o2110;

/// Makes an empty directory in which everybody may write, and which belongs to this group.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn make(directory: &Path, group: Option<u32>) -> io::Result<()> {
    if directory.exists() {
        return Ok(());
    }
    fs::create_dir_all(directory)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777))?;
    give(directory, group, WRITE)
}

/// Gives a file, or a directory with all that is in it, to a group.
///
/// # Errors
/// If that is not allowed.
pub(crate) fn give(path: &Path, group: Option<u32>, rights: u32) -> io::Result<()> {
    let Some(group) = group else { return Ok(()) };
    let place = rustix::fs::open(path, PLACE, Mode::empty())?;
    give_place(&place, Gid::from_raw(group), rights, DEPTH_MAX)
}

/// By what is there and not by its path: others may put links in the way meanwhile.
fn give_place(place: &OwnedFd, group: Gid, rights: u32, depth: usize) -> io::Result<()> {
    let found = fstat(place)?;
    let type_ = FileType::from_raw_mode(found.st_mode);
    let mut more = rights;
    if type_ == FileType::Directory {
        let below = depth.checked_sub(1);
        let depth = below.ok_or_else(|| io::Error::other("directories are nested too deep"))?;
        more |= DIRECTORY;
        let entries =
            rustix::fs::openat(place, ".", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        for entry in Dir::read_from(&entries)? {
            let entry = entry?;
            if [c".", c".."].contains(&entry.file_name()) {
                continue;
            }
            match rustix::fs::openat(&entries, entry.file_name(), PLACE, Mode::empty()) {
                // Who was asked to leave has left.
                Err(Errno::NOENT) => {}
                below => give_place(&below?, group, rights, depth)?,
            }
        }
    }
    // Last, so that who looks at a directory sees whether all in it is given.
    chownat(place, "", None, Some(group), AtFlags::EMPTY_PATH)?;
    if type_ == FileType::Symlink {
        return Ok(());
    }
    let mode = fs::Permissions::from_mode(found.st_mode & 0o7777 | more);
    fs::set_permissions(format!("/proc/self/fd/{}", place.as_raw_fd()), mode)
}

/// Makes a directory hold these files and no others. `stamp` tells this filling from others.
///
/// # Errors
/// If the disk refuses; the directory is then as it was.
pub(crate) fn write(directory: &Path, files: &Files, stamp: &str) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    if holds(directory, files) {
        return Ok(());
    }
    let new = directory.join(format!("..{stamp}"));
    if fs::symlink_metadata(&new).is_ok() {
        fs::remove_dir_all(&new)?;
    }
    fs::create_dir(&new)?;
    for (path, file) in files {
        if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a path leads outside"));
        }
        let place = new.join(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&place, &file.bytes)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(file.mode))?;
        // Who is not root runs everything as himself.
        if file.owner.is_some() && rustix::process::geteuid().is_root() {
            chown(&place, file.owner, None)?;
        }
    }
    let old = current(directory);
    let link = directory.join("..data_tmp");
    let _ = fs::remove_file(&link);
    symlink(format!("..{stamp}"), &link)?;
    fs::rename(&link, directory.join(DATA))?;
    links(directory, files)?;
    match old {
        Some(old) if old != format!("..{stamp}") => fs::remove_dir_all(directory.join(old)),
        _ => Ok(()),
    }
}

/// The directory that `..data` leads to, if it is one that was written here. Where containers can
/// write, they can put a link there that leads anywhere: nothing else is read, or removed.
fn current(directory: &Path) -> Option<String> {
    let name = fs::read_link(directory.join(DATA)).ok()?.into_os_string().into_string().ok()?;
    let stamp = name.strip_prefix("..")?;
    let is_stamp = !stamp.is_empty() && stamp.bytes().all(|byte| byte.is_ascii_digit());
    let is_directory = || fs::symlink_metadata(directory.join(&name)).is_ok_and(|it| it.is_dir());
    (is_stamp && is_directory()).then_some(name)
}

/// Sees that what is at a path of the machine is of a type of `hostPath`, and makes it if the type
/// says so. Without a type it is a directory that is made if nothing is there: so do the runtimes
/// that kubelet leaves it to.
///
/// # Errors
/// If it is something else, in kubelet's words, or if the disk refuses.
pub(crate) fn meet(path: &str, type_: &str) -> io::Result<()> {
    let found = fs::metadata(path).ok().map(|found| found.file_type());
    match (type_, found) {
        ("" | "DirectoryOrCreate", None) => return fs::create_dir_all(path),
        ("FileOrCreate", None) => {
            return fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .map(drop);
        }
        _ => {}
    }
    let is = |is: fn(&fs::FileType) -> bool| found.as_ref().is_some_and(is);
    let (is_so, what) = match type_ {
        "" => return Ok(()),
        "Directory" | "DirectoryOrCreate" => (is(fs::FileType::is_dir), "directory"),
        "File" | "FileOrCreate" => (is(fs::FileType::is_file), "file"),
        "Socket" => (is(fs::FileType::is_socket), "socket file"),
        "CharDevice" => (is(fs::FileType::is_char_device), "character device"),
        "BlockDevice" => (is(fs::FileType::is_block_device), "block device"),
        other => return Err(io::Error::other(format!("{other} is an invalid volume type"))),
    };
    match is_so {
        true => Ok(()),
        false => {
            Err(io::Error::other(format!("hostPath type check failed: {path} is not a {what}")))
        }
    }
}

/// Makes the directories in a volume at which other volumes are mounted: in one that can only be read,
/// the runtime cannot.
///
/// # Errors
/// If something else is there, or the disk refuses.
pub(crate) fn make_places(volume: &Path, places: &[PathBuf]) -> io::Result<()> {
    for place in places {
        let mut path = volume.to_owned();
        for part in place.components() {
            path.push(part);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => {
                    let why = format!("{} is no directory to mount in", place.display());
                    return Err(io::Error::other(why));
                }
                Err(_) => {
                    fs::create_dir(&path)?;
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
                }
            }
        }
    }
    Ok(())
}

/// Whether a directory need not be given to a group, since it looks as if it had been.
pub(crate) fn is_given(path: &Path, group: Option<u32>) -> bool {
    let wanted = WRITE | DIRECTORY;
    let found = fs::metadata(path);
    found.is_ok_and(|found| {
        found.is_dir() && Some(found.gid()) == group && found.mode() & wanted == wanted
    })
}

/// Makes a directory of the machine in which everybody may write, unless something is there.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn make_for_all(path: &str) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o777))
}

/// Lets what is at a path of the machine be found as a volume.
///
/// # Errors
/// If it is not there.
pub(crate) fn link(path: &str, volume: &Path) -> io::Result<()> {
    fs::metadata(path)?;
    match symlink(path, volume) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Whether a directory is as it is to be already.
fn holds(directory: &Path, files: &Files) -> bool {
    let Some(current) = current(directory) else { return false };
    let current = directory.join(current);
    let Ok(entries) = fs::read_dir(&current) else { return false };
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let wanted: BTreeSet<String> = files.keys().map(|path| first(path)).collect();
    let there: BTreeSet<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    wanted == there
        && files
            .iter()
            .all(|(path, file)| fs::read(current.join(path)).is_ok_and(|bytes| bytes == file.bytes))
}

/// What readers see: a link for the first part of each path.
fn links(directory: &Path, files: &Files) -> io::Result<()> {
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Directories are where other volumes are mounted.
        let is_link = !entry.file_type()?.is_dir();
        if is_link && !name.starts_with("..") && !files.keys().any(|path| first(path) == name) {
            fs::remove_file(directory.join(name))?;
        }
    }
    for name in files.keys().map(|path| first(path)) {
        let link = directory.join(&name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(DATA).join(&name), link)?;
        }
    }
    Ok(())
}
