//! Fills a directory so that readers see all of the old or all of the new, never a mixture.
//!
//! The files are in a directory of their own, to which the link `..data` points; what readers open
//! are links through it. Replacing that one link replaces everything at once.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Component, Path, PathBuf};

use super::Files;

/// No variables are longer than that together.
const TEXT_BYTES_MAX: u64 = 1 << 20;
const DATA: &str = "..data";
/// What a group may do with files that are given to it.
pub(crate) const READ: u32 = 0o440;
const WRITE: u32 = 0o660;
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
    let found = fs::symlink_metadata(path)?;
    lchown(path, None, Some(group))?;
    if found.is_symlink() {
        return Ok(());
    }
    let more = if found.is_dir() { rights | DIRECTORY } else { rights };
    fs::set_permissions(path, fs::Permissions::from_mode(found.permissions().mode() | more))?;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), Some(group), rights)?;
        }
    }
    Ok(())
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
    if new.exists() {
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
    }
    let old = fs::read_link(directory.join(DATA)).ok();
    let link = directory.join("..data_tmp");
    let _ = fs::remove_file(&link);
    symlink(format!("..{stamp}"), &link)?;
    fs::rename(&link, directory.join(DATA))?;
    links(directory, files)?;
    match old {
        Some(old) if old.as_os_str() != format!("..{stamp}").as_str() => {
            fs::remove_dir_all(directory.join(old))
        }
        _ => Ok(()),
    }
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

/// A place in a volume, which is made if it is not there. It never leads out of the volume.
///
/// # Errors
/// If it would, or if the disk refuses.
pub(crate) fn within(volume: &Path, path: &str) -> io::Result<PathBuf> {
    let volume = volume.canonicalize()?;
    let leads_out = || io::Error::new(io::ErrorKind::InvalidInput, "subPath leads outside");
    let parts = Path::new(path).components();
    if !parts.clone().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(leads_out());
    }
    let mut place = volume.clone();
    for part in parts {
        place.push(part);
        // Links are followed one at a time, so that nothing is made outside.
        match fs::symlink_metadata(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(&place)?;
                let like_volume = fs::metadata(&volume)?.permissions();
                fs::set_permissions(&place, like_volume)?;
            }
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        place = place.canonicalize()?;
        if !place.starts_with(&volume) {
            return Err(leads_out());
        }
    }
    Ok(place)
}

/// What is in a file of a volume, which others may have written. It is not looked for outside.
///
/// # Errors
/// If it is not there, is no text, or is too long for one.
pub(crate) fn read(volume: &Path, path: &str) -> io::Result<String> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
    let volume = volume.canonicalize()?;
    let place = volume.join(path).canonicalize()?;
    if !place.starts_with(&volume) {
        return Err(wrong("the path leads outside"));
    }
    let metadata = fs::metadata(&place)?;
    if !metadata.is_file() || metadata.len() > TEXT_BYTES_MAX {
        return Err(wrong("it is no file, or too long a one"));
    }
    fs::read_to_string(place)
}

/// Whether a directory is as it is to be already.
fn holds(directory: &Path, files: &Files) -> bool {
    let Ok(entries) = fs::read_dir(directory.join(DATA)) else { return false };
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let wanted: BTreeSet<String> = files.keys().map(|path| first(path)).collect();
    let there: BTreeSet<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    wanted == there
        && files.iter().all(|(path, file)| {
            fs::read(directory.join(DATA).join(path)).is_ok_and(|bytes| bytes == file.bytes)
        })
}

/// What readers see: a link for the first part of each path.
fn links(directory: &Path, files: &Files) -> io::Result<()> {
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with("..") && !files.keys().any(|path| first(path) == name) {
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
