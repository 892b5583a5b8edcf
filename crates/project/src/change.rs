//! What is to become of files, as a value: it is shown as a diff, or applied.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use similar::TextDiff;

/// What is to become of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// From the project's root.
    pub path: PathBuf,
    /// What is in it; none if it is not there.
    pub before: Option<String>,
    /// What is to be in it; none if it is to go.
    pub after: Option<String>,
}

/// Changes that belong together: all of them are made, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub changes: Vec<Change>,
}

impl Change {
    /// What happens to the file, in a word.
    pub fn verb(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "create",
            (Some(_), Some(_)) => "edit",
            (Some(_), None) => "delete",
        }
    }
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// All changes as one unified diff, as `git apply` and `patch -p1` take it.
    pub fn diff(&self) -> String {
        let mut text = String::new();
        for Change { path, before, after } in &self.changes {
            let name = |prefix: char, side: &Option<String>| match side {
                Some(_) => format!("{prefix}/{}", path.display()),
                None => "/dev/null".to_owned(),
            };
            let (old, new) = (name('a', before), name('b', after));
            // There are no lines to tell of a file without any, so git is told in words. Where the
            // project is not the whole of its repository, it does not hear of it.
            let mode = match (before.as_deref(), after.as_deref()) {
                (None, Some("")) => Some("new"),
                (Some(""), None) => Some("deleted"),
                _ => None,
            };
            if let Some(mode) = mode {
                let path = path.display();
                writeln!(text, "diff --git a/{path} b/{path}\n{mode} file mode 100644")
                    .expect("a text takes everything");
            }
            let sides = (before.as_deref().unwrap_or(""), after.as_deref().unwrap_or(""));
            let diff = TextDiff::from_lines(sides.0, sides.1);
            let diff = diff.unified_diff().header(&old, &new).to_string();
            write!(text, "{diff}").expect("a text takes everything");
        }
        text
    }
}

/// Files of a project as they would be. Nothing is written.
pub(crate) struct Draft<'a> {
    root: &'a Path,
    files: BTreeMap<PathBuf, Sides>,
}

struct Sides {
    before: Option<String>,
    after: Option<String>,
}

/// Why a file cannot be changed.
#[derive(Debug, thiserror::Error)]
#[error("read {}", path.display())]
pub struct ReadError {
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

impl<'a> Draft<'a> {
    pub(crate) fn of(root: &'a Path) -> Self {
        Draft { root, files: BTreeMap::new() }
    }

    pub(crate) fn root(&self) -> &'a Path {
        self.root
    }

    /// What is in a file, or would be by now.
    pub(crate) fn read(&mut self, path: &Path) -> Result<Option<String>, ReadError> {
        Ok(self.sides(path)?.after.clone())
    }

    /// What is in a file that was read, whatever would be by now.
    pub(crate) fn before(&self, path: &Path) -> Option<&str> {
        self.files.get(path)?.before.as_deref()
    }

    pub(crate) fn write(&mut self, path: &Path, text: String) -> Result<(), ReadError> {
        self.sides(path)?.after = Some(text);
        Ok(())
    }

    pub(crate) fn remove(&mut self, path: &Path) -> Result<(), ReadError> {
        self.sides(path)?.after = None;
        Ok(())
    }

    fn sides(&mut self, path: &Path) -> Result<&mut Sides, ReadError> {
        if !self.files.contains_key(path) {
            let text = match std::fs::read_to_string(self.root.join(path)) {
                Ok(text) => Some(text),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(source) => return Err(ReadError { path: path.to_owned(), source }),
            };
            self.files.insert(path.to_owned(), Sides { before: text.clone(), after: text });
        }
        Ok(self.files.get_mut(path).expect("it was inserted"))
    }

    /// What is different, with sources laid out by `layout`: new ones always, and those that are
    /// there if that is how they are laid out already, so that an author's own form stays.
    pub(crate) fn into_plan(self, layout: impl Fn(&str) -> Option<String>) -> Plan {
        let lay_out = |path: &Path, before: &Option<String>, after: String| {
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            let is_laid_out =
                |text: &String| layout(text).is_some_and(|laid_out| laid_out == *text);
            match is_source && before.as_ref().is_none_or(is_laid_out) {
                true => layout(&after).unwrap_or(after),
                false => after,
            }
        };
        let changed = self.files.into_iter().filter(|(_, sides)| sides.before != sides.after);
        let changes = changed.map(|(path, Sides { before, after })| {
            let after = after.map(|after| lay_out(&path, &before, after));
            Change { path, before, after }
        });
        Plan { changes: changes.filter(|it| it.before != it.after).collect() }
    }
}
