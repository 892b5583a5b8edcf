//! Why a key is worked on.

use std::sync::Arc;
use std::{fmt, iter, option, slice};

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
    /// In its place, since most keys have no other, and there may be many keys.
    first: Option<Cause>,
    others: Vec<Cause>,
    more: usize,
}

/// The causes that are kept, the first one first.
type Iter<'a> = iter::Chain<option::Iter<'a, Cause>, slice::Iter<'a, Cause>>;

impl Causes {
    pub fn iter(&self) -> Iter<'_> {
        self.first.iter().chain(&self.others)
    }

    /// How many causes there were besides those that were kept.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Takes another one in. Of one object only the last version counts.
    fn add(&mut self, cause: Cause) {
        let is_known = |known: &Cause| known.source == cause.source && known.object == cause.object;
        let mut kept = self.first.iter_mut().chain(&mut self.others);
        if let Some(known) = kept.find(|known| is_known(known)) {
            *known = cause;
        } else if self.first.is_none() {
            self.first = Some(cause);
        } else if self.others.len() + 1 < KEPT_MAX {
            self.others.push(cause);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn extend(&mut self, causes: impl IntoIterator<Item = Cause>) {
        for cause in causes {
            self.add(cause);
        }
    }

    pub(super) fn merge(&mut self, others: Causes) {
        self.more += others.more;
        self.extend(others.first.into_iter().chain(others.others));
    }
}

impl<'a> IntoIterator for &'a Causes {
    type Item = &'a Cause;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
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
        for (at, cause) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{cause}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}
