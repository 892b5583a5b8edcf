//! Fields that an applied configuration would take from their owners.

use std::fmt;

use super::managed::{Entry, Operation, Owner};
use super::path::PathElement;
use super::set::Set;
use crate::json;

/// The conflicts of one apply, in the order of their owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts(Vec<Conflict>);

/// A field that another owner has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub owner: Owner,
    /// The version through which an updater came to own the field.
    pub api_version: String,
    pub path: Vec<PathElement>,
}

impl Conflicts {
    pub(super) fn new(mut conflicts: Vec<Conflict>) -> Self {
        conflicts.sort_by_cached_key(|conflict| conflict.owner.identity(&conflict.api_version));
        Conflicts(conflicts)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Conflict> {
        self.0.iter()
    }

    /// The conflicts over fields that are not in `allowed`; `None` when there are none left.
    pub(super) fn except(self, allowed: &Set) -> Option<Self> {
        let left: Vec<_> =
            self.0.into_iter().filter(|conflict| !allowed.contains(&conflict.path)).collect();
        (!left.is_empty()).then_some(Conflicts(left))
    }
}

impl Conflict {
    /// One conflict for each field of `taken`.
    pub(super) fn each(entry: &Entry, taken: &Set) -> Vec<Self> {
        let mut conflicts = Vec::new();
        taken.for_each(|path| {
            conflicts.push(Conflict {
                owner: entry.owner.clone(),
                api_version: entry.api_version.clone(),
                path: path.to_vec(),
            });
        });
        conflicts
    }

    /// The message of the cause in the status.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.owner_text())
    }

    /// The field of the cause in the status.
    pub fn field(&self) -> String {
        self.path.iter().map(PathElement::to_string).collect()
    }

    fn owner_text(&self) -> String {
        let mut text = json::go_quote(&self.owner.manager);
        if !self.owner.subresource.is_empty() {
            text += &format!(" with subresource {}", json::go_quote(&self.owner.subresource));
        }
        if self.owner.operation == Operation::Update {
            text += &format!(" using {}", self.api_version);
        }
        text
    }
}

/// The message of the status.
impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", only.message(), only.field());
        }
        write!(f, "Apply failed with {} conflicts:", self.0.len())?;
        let same_owner =
            |a: &Conflict, b: &Conflict| (&a.owner, &a.api_version) == (&b.owner, &b.api_version);
        for (i, group) in self.0.chunk_by(same_owner).enumerate() {
            let separator = if i == 0 { ' ' } else { '\n' };
            write!(f, "{separator}conflicts with {}:", group[0].owner_text())?;
            for conflict in group {
                write!(f, "\n- {}", conflict.field())?;
            }
        }
        Ok(())
    }
}
