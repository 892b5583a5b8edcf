//! The volumes of a pod: what is in them (pure), and directories that hold it.

mod content;
mod directory;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub(crate) use self::content::{Contents, content, references, tokens};
pub(crate) use self::directory::{READ, give, link, make, meet, read, within, write};

/// The files of a volume.
pub(crate) type Files = BTreeMap<String, File>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}
