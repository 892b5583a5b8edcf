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

/// Replaces a folder by these files: by the old ones or by the new ones, whatever happens meanwhile,
/// but for a moment in which there is none.
///
/// # Errors
/// It has files that no package has, or it cannot be written. Nothing has changed then.
pub fn write(files: &Files, folder: &Path) -> Result<(), FolderError> {
    if !is_ours(folder) {
        return Err(FolderError::Foreign { folder: folder.to_owned() });
    }
    let parent = folder.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let (new, old) = (parent.join(format!(".{name}.new")), parent.join(format!(".{name}.old")));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| FolderError::Write { path, source }
    };
    // What somebody who was killed has left.
    for rest in [&new, &old] {
        remove(rest).map_err(failed(rest))?;
    }
    for (path, text) in files {
        let path = new.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&new)).map_err(failed(&path))?;
        fs::write(&path, text).map_err(failed(&path))?;
    }
    if folder.exists() {
        fs::rename(folder, &old).map_err(failed(folder))?;
    }
    fs::rename(&new, folder).map_err(failed(folder))?;
    remove(&old).map_err(failed(&old))
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
