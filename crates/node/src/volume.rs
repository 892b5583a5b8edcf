//! The volumes of a pod: what is in them (pure), and directories that hold it.

mod claim;
mod content;
mod directory;
mod mount;
mod part;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub(crate) use self::claim::{Backing, backing, bound, unprocessed};
pub(crate) use self::content::{
    Contents, content, is_read_only, memory_bytes, nested, references, refuse_recursive, tokens,
};
pub(crate) use self::directory::{
    READ, WRITE, give, is_given, link, make, make_for_all, make_places, meet, write,
};
pub(crate) use self::mount::{keep_in_memory, make_in_memory, remove, unmount};
pub(crate) use self::part::{part, read};

/// The files of a volume.
pub(crate) type Files = BTreeMap<String, File>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
    /// Whose it is, if not the agent's.
    pub(crate) owner: Option<u32>,
}
