//! What the agent has mounted in its directories, and how that is undone.
//!
//! Below a mount are files of somebody else, which must not go with a pod: nothing is removed before
//! all mounts in it are gone.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

/// How often mounts are looked for anew: one that goes can uncover or take along others.
const ROUNDS: usize = 8;

/// Has a directory be in memory, if it is new: where there is something, containers know it.
///
/// # Errors
/// If the agent may not mount, or the disk refuses.
pub(crate) fn keep_in_memory(directory: &Path, bytes_max: i64, mode: &str) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let path = directory.canonicalize()?;
    let is_mounted = mounts(&fs::read_to_string("/proc/self/mountinfo")?).contains(&path);
    if is_mounted || fs::read_dir(&path)?.next().is_some() {
        return Ok(());
    }
    // What is in memory should not come to a disk after all, where the kernel can see to that.
    let options = format!("size={bytes_max},{mode}");
    let mount = |options: String| {
        let options = CString::new(options).map_err(io::Error::other)?;
        let flags = MountFlags::empty();
        Ok(rustix::mount::mount("tmpfs", &path, "tmpfs", flags, options.as_c_str())?)
    };
    mount(format!("{options},noswap")).or_else(|_| mount(options))
}

/// The same, for a directory in which everybody may write, and which belongs to this group.
///
/// # Errors
/// The same.
pub(crate) fn make_in_memory(
    directory: &Path,
    group: Option<u32>,
    bytes_max: i64,
) -> io::Result<()> {
    let mode = match group {
        // New files belong to the group too.
        Some(group) => format!("mode=2777,gid={group}"),
        None => "mode=777".to_owned(),
    };
    keep_in_memory(directory, bytes_max, &mode)
        .map_err(|error| io::Error::new(error.kind(), format!("tmpfs cannot be mounted: {error}")))
}

/// Undoes all mounts at a path and below.
///
/// # Errors
/// If one of them stays.
pub(crate) fn unmount(path: &Path) -> io::Result<()> {
    let path = match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        path => path?,
    };
    for _ in 0..ROUNDS {
        let mountinfo = fs::read_to_string("/proc/self/mountinfo")?;
        let there: Vec<_> =
            mounts(&mountinfo).into_iter().filter(|mount| mount.starts_with(&path)).collect();
        if there.is_empty() {
            return Ok(());
        }
        // The last one first: it may be on top of another.
        for mount in there.iter().rev() {
            // Whoever still uses it keeps it.
            match rustix::mount::unmount(mount, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
                // It went with another one.
                Err(Errno::INVAL | Errno::NOENT) => {}
                unmounted => unmounted?,
            }
        }
    }
    Err(io::Error::other(format!("mounts at {} stay", path.display())))
}

/// Removes a directory of the agent and all that is in it, but nothing of what is mounted there.
///
/// # Errors
/// If something stays.
pub(crate) fn remove(directory: &Path) -> io::Result<()> {
    unmount(directory)?;
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Where something is mounted, in the order in which it was.
pub(super) fn mounts(mountinfo: &str) -> Vec<PathBuf> {
    let paths = mountinfo.lines().filter_map(|line| line.split(' ').nth(4));
    paths.map(|path| PathBuf::from(OsString::from_vec(unescape(path)))).collect()
}

/// The kernel writes blanks and backslashes as three octal digits.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|it| std::str::from_utf8(it).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code.filter(|_| *first == b'\\') {
            Some(code) => {
                bytes.push(code);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}
