//! What kinds and webhooks consist of in a project: modules, and calls that make them part of the
//! program. What creates a piece has a twin that takes it back, so that creating and deleting are
//! one list of pieces, read forwards or backwards.

use std::path::{Path, PathBuf};

use super::ScaffoldError;
use crate::change::Draft;
use crate::layout;
use crate::project::{declared, in_file};
use crate::source::{
    self, add_call, calls, declaration, declare, module_name, remove_call, undeclare,
};

pub(super) enum Piece {
    /// A file, and its declaration in another.
    Module { parent: PathBuf, declaration: String, path: PathBuf, text: String },
    /// A call in the chain that a function ends with, or wherever an author has put it.
    Call { path: PathBuf, function: &'static str, call: String, about: String },
}

impl Piece {
    pub(super) fn module(
        parent: impl Into<PathBuf>,
        declaration: impl Into<String>,
        path: impl Into<PathBuf>,
        text: String,
    ) -> Self {
        let (parent, declaration, path) = (parent.into(), declaration.into(), path.into());
        Piece::Module { parent, declaration, path, text }
    }

    /// A call of the whole program. `about` is what it calls on or with: a call of the same method
    /// about the same is this one, however an author has refined it.
    pub(super) fn call(path: &str, function: &'static str, method: &str, about: &str) -> Self {
        let call = match about.ends_with(')') {
            true => format!(".{method}({about})"),
            false => format!(".{method}::<{about}>()"),
        };
        let opening = if about.ends_with(')') { "(" } else { "::<" };
        let about = about.trim_end_matches("()");
        let about = format!(".{method}{opening}{about}");
        Piece::Call { path: path.into(), function, call, about }
    }

    /// Adds what is missing. What is there already stays as its author has it.
    pub(super) fn create(&self, draft: &mut Draft<'_>) -> Result<(), ScaffoldError> {
        match self {
            Piece::Module { parent, declaration, path, text } => {
                let is_declared =
                    declared(draft, parent)?.iter().any(|it| it == module_name(declaration));
                match draft.read(path)? {
                    Some(_) if is_declared => return Ok(()),
                    Some(there) if !is_same(draft.root(), &there, text) => {
                        return Err(ScaffoldError::Occupied { path: path.clone() });
                    }
                    _ => draft.write(path, text.clone())?,
                }
                edit(draft, parent, |text| declare(text, declaration))
            }
            Piece::Call { path, function, call, about } => edit(draft, path, |text| {
                match calls(text)?.iter().any(|it| it.words.starts_with(about.as_str())) {
                    true => Ok(text.to_owned()),
                    false => add_call(text, function, call),
                }
            }),
        }
    }

    /// Takes away what is there; what its author has edited is noted.
    pub(super) fn delete(
        &self,
        draft: &mut Draft<'_>,
        edited: &mut Vec<PathBuf>,
    ) -> Result<(), ScaffoldError> {
        match self {
            Piece::Module { parent, declaration: made, path, text } => {
                if let Some(there) = draft.read(path)? {
                    if !is_same(draft.root(), &there, text) {
                        edited.push(path.clone());
                    }
                    draft.remove(path)?;
                }
                let Some(text) = draft.read(parent)? else { return Ok(()) };
                let name = module_name(made);
                let there = declaration(&text, name).map_err(|error| in_file(parent, error))?;
                if there.is_some_and(|there| {
                    source::without_space(&there) != source::without_space(made)
                }) {
                    edited.push(parent.clone());
                }
                edit(draft, parent, |text| undeclare(text, name))
            }
            Piece::Call { path, call, about, .. } => {
                let Some(mut text) = draft.read(path)? else { return Ok(()) };
                // An author may have it in several places, one for each case.
                loop {
                    let calls = calls(&text).map_err(|error| in_file(path, error))?;
                    let found = calls.iter().find(|it| it.words.starts_with(about.as_str()));
                    let Some(found) = found else { return Ok(draft.write(path, text)?) };
                    if !found.is_plain || found.words != source::without_space(call) {
                        edited.push(path.clone());
                    }
                    text = remove_call(&text, found);
                }
            }
        }
    }
}

/// Whether a text is what was made, whoever laid it out.
fn is_same(root: &Path, there: &str, made: &str) -> bool {
    there == made || layout::rustfmt(root, made).is_some_and(|made| made == there)
}

fn edit(
    draft: &mut Draft<'_>,
    path: &Path,
    edit: impl Fn(&str) -> Result<String, source::EditError>,
) -> Result<(), ScaffoldError> {
    let missing = || ScaffoldError::Absent { path: path.to_owned() };
    let text = draft.read(path)?.ok_or_else(missing)?;
    let edited = edit(&text).map_err(|error| {
        // Lines are counted in the file as its author sees it.
        let before = draft.before(path).and_then(|before| edit(before).err());
        in_file(path, before.unwrap_or(error))
    })?;
    Ok(draft.write(path, edited)?)
}
