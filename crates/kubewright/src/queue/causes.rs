//! Why a key is worked on.

use std::fmt;
use std::sync::Arc;

/// How many causes a key keeps. The first ones tell most: what came later came on top of them.
const KEPT_MAX: usize = 8;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What told of it: `watch Pod`, `timer`.
    pub source: Arc<str>,
    /// The object it happened to, as `namespace/name`; empty if to none.
    pub object: Arc<str>,
    /// The version of that object; empty if unknown.
    pub revision: Box<str>,
}

/// A few causes, and how many more there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes {
    kept: Vec<Cause>,
    more: usize,
}

impl Causes {
    pub fn iter(&self) -> std::slice::Iter<'_, Cause> {
        self.kept.iter()
    }

    /// How many causes there were besides those that were kept.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Takes another one in. Of one object only the last version counts.
    fn add(&mut self, cause: Cause) {
        let is_known = |known: &Cause| known.source == cause.source && known.object == cause.object;
        match self.kept.iter().position(is_known) {
            Some(at) => self.kept[at] = cause,
            None if self.kept.len() < KEPT_MAX => {
                // Most keys have one, and there may be many keys.
                self.kept.reserve_exact(1);
                self.kept.push(cause);
            }
            None => self.more += 1,
        }
    }

    pub(super) fn extend(&mut self, causes: impl IntoIterator<Item = Cause>) {
        for cause in causes {
            self.add(cause);
        }
    }

    pub(super) fn merge(&mut self, others: Causes) {
        self.more += others.more;
        self.extend(others.kept);
    }
}

impl<'a> IntoIterator for &'a Causes {
    type Item = &'a Cause;
    type IntoIter = std::slice::Iter<'a, Cause>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if !self.object.is_empty() {
            write!(f, " {}", self.object)?;
        }
        if !self.revision.is_empty() {
            write!(f, "@{}", self.revision)?;
        }
        Ok(())
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, cause) in self.kept.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{cause}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}
