//! Fields that an applied configuration would take from their owners.

use std::fmt;

use super::managed::{Entry, Operation, Owner};
use super::path::PathElement;
use super::set::Set;
use crate::json;
use crate::status::Cause;

/// The conflicts of one apply, by owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts(Vec<OwnedFields>);

/// Fields that one owner would lose.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnedFields {
    owner: Owner,
    /// The version through which an updater came to own the fields.
    api_version: String,
    fields: Set,
}

/// The paths of all conflicts may take this many bytes; the rest are counted, not listed. A long
/// key above many fields would otherwise be printed once for each.
const PATHS_BYTES_MAX: usize = 1 << 20;

impl Conflicts {
    /// From each owner and the fields it would lose; `None` when there are none.
    pub(super) fn new<'a>(taken: impl Iterator<Item = (&'a Entry, Set)>) -> Option<Self> {
        let taken =
            taken.filter(|(_, fields)| !fields.is_empty()).map(|(entry, fields)| OwnedFields {
                owner: entry.owner.clone(),
                api_version: entry.api_version.clone(),
                fields,
            });
        let conflicts: Vec<_> = taken.collect();
        (!conflicts.is_empty()).then_some(Conflicts(conflicts))
    }

    /// The conflicts over fields that are not in `allowed`; `None` when there are none left.
    pub(super) fn except(self, allowed: &Set) -> Option<Self> {
        let left = self.0.into_iter().map(|OwnedFields { owner, api_version, fields }| {
            OwnedFields { owner, api_version, fields: fields.difference(allowed) }
        });
        let left: Vec<_> = left.filter(|owned| !owned.fields.is_empty()).collect();
        (!left.is_empty()).then_some(Conflicts(left))
    }

    /// The causes of the status, one for each field.
    pub fn causes(&self) -> Vec<Cause> {
        let causes_of = |(owned, fields): (&OwnedFields, Vec<String>)| {
            let owner = owned.owner_text();
            fields.into_iter().map(move |field| Cause::field_manager_conflict(&owner, field))
        };
        self.listed().into_iter().flat_map(causes_of).collect()
    }

    fn listed(&self) -> Vec<(&OwnedFields, Vec<String>)> {
        let mut bytes = 0;
        let mut listed = Vec::with_capacity(self.0.len());
        for owned in &self.0 {
            let mut paths = Vec::new();
            owned.fields.for_each(|path| {
                if bytes < PATHS_BYTES_MAX {
                    let path: String = path.iter().map(PathElement::to_string).collect();
                    bytes += path.len();
                    paths.push(path);
                }
            });
            listed.push((owned, paths));
        }
        listed
    }
}

impl OwnedFields {
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
        let total: usize = self.0.iter().map(|owned| owned.fields.len()).sum();
        let listed = self.listed();
        if let ([(owned, fields)], 1) = (listed.as_slice(), total) {
            let field = fields.first().map_or("", String::as_str);
            return write!(
                f,
                "Apply failed with 1 conflict: conflict with {}: {field}",
                owned.owner_text()
            );
        }
        write!(f, "Apply failed with {total} conflicts:")?;
        for (i, (owned, fields)) in listed.iter().enumerate() {
            let separator = if i == 0 { ' ' } else { '\n' };
            write!(f, "{separator}conflicts with {}:", owned.owner_text())?;
            for field in fields {
                write!(f, "\n- {field}")?;
            }
        }
        Ok(())
    }
}
