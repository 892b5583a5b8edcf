//! Makes all changes of a plan, or none.
//!
//! What is to be done is first written down in a journal, beside the files. From the moment that it
//! has its name, the changes are made, if not by this process then by the next that looks
//! ([`recover`]): whoever is killed in between leaves the old state or the new one. Until somebody
//! looks, a program is one of the two as well: files that nobody refers to yet come first, and those
//! that refer to them last.

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::change::{Change, Plan};

/// Where the journal is, from the project's root.
const JOURNAL: &str = ".kubewright-journal";
/// What a file is called before it has all its bytes.
const UNFINISHED: &str = "kubewright-unfinished";

/// Why a plan was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Plan again: somebody else was faster.
    #[error("{}: has changed in the meantime: try again", path.display())]
    Changed { path: PathBuf },
    /// See what is wrong with the disk. What was begun is finished by the next command.
    #[error("write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// Somebody wrote into the journal.
    #[error("{}: is not understood: delete it, and see what git says of the rest", path.display())]
    Journal { path: PathBuf },
}

/// Makes the changes in the folder `root`.
///
/// # Errors
/// If a file is not as the plan has it, or cannot be written.
pub fn apply(root: &Path, plan: &Plan) -> Result<(), ApplyError> {
    apply_with(root, plan, &mut || Ok(()))
}

/// Finishes what a command that was killed has begun. Says whether there was something.
///
/// # Errors
/// As [`apply`].
pub fn recover(root: &Path) -> Result<bool, ApplyError> {
    let path = root.join(JOURNAL);
    let failed = |source| ApplyError::Write { path: path.clone(), source };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            remove(&unfinished(&path)).map_err(failed)?;
            return Ok(false);
        }
        Err(error) => return Err(failed(error)),
    };
    let plan: Plan =
        serde_json::from_str(&text).map_err(|_| ApplyError::Journal { path: JOURNAL.into() })?;
    finish(root, &plan, &mut || Ok(()))?;
    Ok(true)
}

/// `step` is called before each change of the disk; tests die in it.
fn apply_with(
    root: &Path,
    plan: &Plan,
    step: &mut dyn FnMut() -> io::Result<()>,
) -> Result<(), ApplyError> {
    recover(root)?;
    for Change { path, before, .. } in &plan.changes {
        let is_as_planned = match fs::read_to_string(root.join(path)) {
            Ok(text) => Some(text) == *before,
            Err(_) => before.is_none(),
        };
        if !is_as_planned {
            return Err(ApplyError::Changed { path: path.clone() });
        }
    }
    let journal = serde_json::to_string(plan).expect("a plan is JSON");
    write(&root.join(JOURNAL), &journal, step)
        .map_err(|source| ApplyError::Write { path: JOURNAL.into(), source })?;
    finish(root, plan, step)
}

fn finish(
    root: &Path,
    plan: &Plan,
    step: &mut dyn FnMut() -> io::Result<()>,
) -> Result<(), ApplyError> {
    // New files, then edits, then files that nobody refers to any more.
    for verb in ["create", "edit", "delete"] {
        for change in plan.changes.iter().filter(|change| change.verb() == verb) {
            let path = root.join(&change.path);
            let done = match &change.after {
                Some(text) => write(&path, text, step),
                None => step().and_then(|()| remove(&path)).map(|()| prune(root, &path)),
            };
            done.map_err(|source| ApplyError::Write { path: change.path.clone(), source })?;
        }
    }
    let path = root.join(JOURNAL);
    step().and_then(|()| remove(&path)).map_err(|source| ApplyError::Write { path, source })
}

/// Gives a file another text, at once and for good.
fn write(path: &Path, text: &str, step: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        step()?;
        fs::create_dir_all(parent)?;
    }
    let unfinished = unfinished(path);
    step()?;
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    if let Ok(there) = fs::metadata(path) {
        file.set_permissions(there.permissions())?;
    }
    step()?;
    fs::rename(&unfinished, path)
}

fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.{UNFINISHED}"))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Takes away the folders that a file was the last in.
fn prune(root: &Path, path: &Path) {
    for folder in path.ancestors().skip(1).take_while(|folder| *folder != root) {
        // One that is not empty stays.
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}
