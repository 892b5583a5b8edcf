//! Makes all changes of a plan, or none.
//!
//! What is to be done is first written down in a journal, beside the files. From the moment that it
//! has its name, the changes are made, if not by this process then by the next that looks
//! ([`recover`]): whoever is killed in between leaves the old state or the new one. What an author
//! has changed since is not overwritten. Until somebody looks, a program can be built all the same:
//! files that nobody refers to yet come first, and those that refer to them last.

#[cfg(test)]
mod tests;

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::change::{Change, Plan, ReadError};
use crate::project::{LIBRARY, MANIFEST, TESTS};

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
    /// Put it back, or give up what was begun.
    #[error(
        "{}: was changed since a command that changes it was interrupted: put it back as it was, \
         or delete {} to keep it, and see what git says of the rest",
        path.display(),
        JOURNAL
    )]
    Edited { path: PathBuf },
    #[error(transparent)]
    Read(#[from] ReadError),
    /// See what is wrong with the disk. What was begun is finished by the next command.
    #[error("write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// Somebody wrote into the journal.
    #[error("{}: is not understood: delete it, and see what git says of the rest", path.display())]
    Journal { path: PathBuf },
}

/// The turn of whoever changes a project: others wait until it is dropped, or its process ends. There
/// is nothing of it on disk.
#[derive(Debug)]
pub struct Turn {
    /// The project's folder, locked; none where folders cannot be.
    _folder: Option<File>,
}

/// Waits for its turn to change the project in the folder `root`. If somebody else has it, `waiting`
/// is called first.
///
/// # Errors
/// If the folder cannot be read.
pub fn take_turn(root: &Path, waiting: impl FnOnce()) -> Result<Turn, ApplyError> {
    let failed = |source| ReadError { path: root.to_owned(), source };
    let folder = File::open(root).map_err(failed)?;
    let locked = match folder.try_lock() {
        Err(TryLockError::WouldBlock) => {
            waiting();
            folder.lock()
        }
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Ok(()),
    };
    match locked {
        Ok(()) => Ok(Turn { _folder: Some(folder) }),
        // Some file systems over a network: as it was before there were turns.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(Turn { _folder: None }),
        Err(error) => Err(failed(error).into()),
    }
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
/// If a file is neither as it was nor as it was to be, or cannot be written.
pub fn recover(root: &Path) -> Result<bool, ApplyError> {
    let Some(plan) = begun(root)? else {
        let path = root.join(JOURNAL);
        remove(&unfinished(&path)).map_err(|source| ApplyError::Write { path, source })?;
        return Ok(false);
    };
    for Change { path, before, after } in &plan.changes {
        if !is_as(root, path, &[before, after])? {
            return Err(ApplyError::Edited { path: path.clone() });
        }
    }
    finish(root, &plan, &mut || Ok(()))?;
    Ok(true)
}

/// What a command that was killed has begun, if there is something; nothing is written.
///
/// # Errors
/// If it cannot be read.
pub fn begun(root: &Path) -> Result<Option<Plan>, ApplyError> {
    let path = root.join(JOURNAL);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(ReadError { path, source }.into()),
    };
    let plan: Result<Plan, _> = serde_json::from_str(&text);
    plan.map(Some).map_err(|_| ApplyError::Journal { path: JOURNAL.into() })
}

/// Gives a file, with the folder it is in, other bytes: whoever reads it sees the old ones or the
/// new ones, also if this is killed. What is no file of a disk, such as a pipe, is written to.
///
/// # Errors
/// If it cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&path) {
        Ok(there) if !there.is_file() => fs::write(path, bytes),
        _ => write(&path, bytes, &mut || Ok(())),
    }
}

/// `step` is called before each change of the disk; tests die in it.
fn apply_with(
    root: &Path,
    plan: &Plan,
    step: &mut dyn FnMut() -> io::Result<()>,
) -> Result<(), ApplyError> {
    recover(root)?;
    for Change { path, before, .. } in &plan.changes {
        if !is_as(root, path, &[before])? {
            return Err(ApplyError::Changed { path: path.clone() });
        }
    }
    let journal = serde_json::to_string(plan).expect("a plan is JSON");
    write(&root.join(JOURNAL), journal.as_bytes(), step)
        .map_err(|source| ApplyError::Write { path: JOURNAL.into(), source })?;
    finish(root, plan, step)
}

/// Whether a file is as one of these have it. What is no text is as nobody has it.
fn is_as(root: &Path, path: &Path, sides: &[&Option<String>]) -> Result<bool, ApplyError> {
    let text = match fs::read_to_string(root.join(path)) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(false),
        Err(source) => return Err(ReadError { path: path.to_owned(), source }.into()),
    };
    Ok(sides.contains(&&text))
}

fn finish(
    root: &Path,
    plan: &Plan,
    step: &mut dyn FnMut() -> io::Result<()>,
) -> Result<(), ApplyError> {
    for change in ordered(plan) {
        let path = root.join(&change.path);
        let done = match &change.after {
            Some(text) => write(&path, text.as_bytes(), step),
            None => step().and_then(|()| remove(&path)).map(|()| prune(root, &path)),
        };
        done.map_err(|source| ApplyError::Write { path: change.path.clone(), source })?;
    }
    let path = root.join(JOURNAL);
    step().and_then(|()| remove(&path)).map_err(|source| ApplyError::Write { path, source })
}

/// The changes in the order in which they are made: new files, then edits that add, then edits that
/// take away, then files that nobody refers to any more. Those that refer to others come last as long
/// as something is added, and first as soon as something is taken away.
pub(crate) fn ordered(plan: &Plan) -> Vec<&Change> {
    let order = |change: &&Change| {
        let callers = [LIBRARY, TESTS, MANIFEST];
        let place = callers.iter().position(|caller| change.path == Path::new(caller));
        let rank = place.map_or(0, |place| 1 + place);
        match (&change.before, &change.after) {
            (None, _) => (0, rank),
            (Some(before), Some(after)) if after.len() >= before.len() => (1, rank),
            (Some(_), Some(_)) => (2, callers.len() - rank),
            (Some(_), None) => (3, callers.len() - rank),
        }
    };
    let mut changes: Vec<&Change> = plan.changes.iter().collect();
    changes.sort_by_key(order);
    changes
}

/// Gives a file other bytes, at once and for good.
fn write(path: &Path, bytes: &[u8], step: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        step()?;
        fs::create_dir_all(parent)?;
    }
    let unfinished = unfinished(path);
    step()?;
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
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
