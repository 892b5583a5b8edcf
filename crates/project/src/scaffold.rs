//! Makes projects, and adds kinds and webhooks to them or takes them away.
//!
//! Each function decides and writes nothing; what it gives is a [`Plan`]. Deleting takes back what
//! creating did, byte for byte, and asks before it takes what an author has written since.

mod adopt;
mod api;
mod attend;
mod begin;
mod piece;
#[cfg(test)]
mod tests;
mod webhook;

use std::path::PathBuf;

pub use self::adopt::adopt;
pub use self::api::{NewApi, OldApi, create_api, delete_api};
pub use self::begin::{Init, Library, License, init};
pub use self::webhook::{Hooks, create_webhook, delete_webhook};
use crate::change::{Draft, Plan, ReadError};
use crate::layout;
use crate::name::NameError;
use crate::project::ProjectError;

/// Why nothing is created or deleted.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// Choose another name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Move the file, or choose another name.
    #[error(
        "{}: is there already and would be overwritten: move it away, or choose another name",
        path.display()
    )]
    Occupied { path: PathBuf },
    /// Bring the file back.
    #[error("{}: is not there: bring it back, for instance from git", path.display())]
    Absent { path: PathBuf },
    /// Say it otherwise.
    #[error("{0}")]
    Contradiction(String),
    /// Say that it may go.
    #[error(
        "{} would be lost, {} changed since: add --force if that is meant",
        list(.0),
        if .0.len() == 1 { "which was" } else { "which were" }
    )]
    Edited(Vec<PathBuf>),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Project(#[from] ProjectError),
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

/// What a draft comes to, laid out by the project's own rules.
fn finished(draft: Draft<'_>) -> Plan {
    let root = draft.root();
    draft.into_plan(|text| layout::rustfmt(root, text))
}
