//! Packages on disk.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::Files;

/// The first line of every file of a package that can have a comment, by which folders are known
/// again.
pub(super) const MARK: &str = "# Rendered by `kubewright package`; changes are lost.\n";

/// Why a folder is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Choose another folder, or empty it.
    #[error(
        "write a package into {folder:?}: there are files of somebody else; name another folder \
         with --output, or remove them"
    )]
    Foreign { folder: PathBuf },
    #[error("write {path:?}")]
    Write { path: PathBuf, source: io::Error },
}

/// Replaces a folder by these files: it has the old ones or the new ones, whatever happens meanwhile.
/// Where a file system cannot have two folders change places there is none for a moment, and if this
/// is killed in it, the next one begins by putting the old one back.
///
/// # Errors
/// It has files that no package has, or it cannot be written. Nothing has changed then.
pub fn write(files: &Files, folder: &Path) -> Result<(), FolderError> {
    write_by(files, folder, exchange)
}

/// `exchange` has two folders change places.
fn write_by(
    files: &Files,
    folder: &Path,
    exchange: impl Fn(&Path, &Path) -> io::Result<()>,
) -> Result<(), FolderError> {
    let parent = folder.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let (new, old) = (parent.join(format!(".{name}.new")), parent.join(format!(".{name}.old")));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| FolderError::Write { path, source }
    };
    // What somebody who was killed has left.
    if !folder.exists() && old.exists() {
        fs::rename(&old, folder).map_err(failed(folder))?;
    }
    if !is_ours(folder) {
        return Err(FolderError::Foreign { folder: folder.to_owned() });
    }
    for rest in [&new, &old] {
        remove(rest).map_err(failed(rest))?;
    }
    for (path, text) in files {
        let path = new.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&new)).map_err(failed(&path))?;
        fs::write(&path, text).map_err(failed(&path))?;
    }
    if !folder.exists() {
        return fs::rename(&new, folder).map_err(failed(folder));
    }
    if exchange(&new, folder).is_ok() {
        return remove(&new).map_err(failed(&new));
    }
    fs::rename(folder, &old).map_err(failed(folder))?;
    fs::rename(&new, folder).map_err(failed(folder))?;
    remove(&old).map_err(failed(&old))
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether the folder is empty, missing, or has a file that says who wrote it.
fn is_ours(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return !folder.exists() };
    let paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    let is_marked = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|it| it.starts_with(MARK));
    paths.is_empty() || paths.iter().any(is_marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(text: &str) -> Files {
        Files::from([("package.yaml".into(), format!("{MARK}text: {text}\n"))])
    }

    fn read(folder: &Path) -> Option<String> {
        let text = fs::read_to_string(folder.join("package.yaml")).ok()?;
        Some(text.trim_start_matches(MARK).to_owned())
    }

    fn unsupported(_: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There used to be a moment without it, and whoever was killed in it left none.
    #[test]
    fn a_folder_is_there_at_any_moment() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("chart");
        write(&package("one"), &folder).expect("written");
        let dies = |one: &Path, other: &Path| {
            exchange(one, other)?;
            assert_eq!(read(other).as_deref(), Some("text: two\n"), "the new one is there at once");
            assert_eq!(read(one).as_deref(), Some("text: one\n"), "the old one is beside it");
            Ok(())
        };
        write_by(&package("two"), &folder, dies).expect("written");
        assert_eq!(read(&folder).as_deref(), Some("text: two\n"));
        let names = fs::read_dir(place.path()).expect("a list").count();
        assert_eq!(names, 1, "nothing is left beside it");
    }

    #[test]
    fn an_old_folder_that_was_put_aside_comes_back() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("chart");
        write_by(&package("one"), &folder, unsupported).expect("written");
        write_by(&package("two"), &folder, unsupported).expect("written");
        assert_eq!(read(&folder).as_deref(), Some("text: two\n"));

        // As one leaves it that is killed between two names.
        let old = place.path().join(".chart.old");
        fs::rename(&folder, &old).expect("renamed");
        fs::write(old.join("mine"), "").expect("written");
        let foreign = old.join("package.yaml");
        fs::write(&foreign, "text: mine\n").expect("written");
        let refused = write(&package("three"), &folder).expect_err("it is somebody else's");
        assert!(matches!(refused, FolderError::Foreign { .. }), "{refused}");
        assert_eq!(read(&folder).as_deref(), Some("text: mine\n"), "it is back");
    }
}
