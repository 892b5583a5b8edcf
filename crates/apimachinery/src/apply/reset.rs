//! Fields that a write has no say over.
//!
//! A write to a resource cannot change its status, a write to `/status` nothing else: the server
//! puts these fields back. Nobody may come to own a field by naming it where it is put back.

use std::collections::BTreeMap;

use super::path::PathElement;
use super::set::{Node, Set};

/// Per version, the fields that are put back on writes through one endpoint.
#[derive(Debug, Clone, Default)]
pub struct ResetFields {
    by_version: BTreeMap<String, ResetFilter>,
}

/// Which fields of a set count.
#[derive(Debug, Clone)]
pub enum ResetFilter {
    /// All but these and what lies below them.
    Except(Set),
    /// Only what the pattern matches.
    Only(Pattern),
}

/// Paths given by their beginnings, in which a step may stand for any element.
#[derive(Debug, Clone, Default)]
pub struct Pattern {
    /// Everything from here on matches.
    all: bool,
    /// `None` stands for any element, and then it is the only branch that counts.
    branches: Vec<(Option<PathElement>, Pattern)>,
}

impl ResetFields {
    /// Nothing is put back.
    pub fn none() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with(mut self, api_version: &str, filter: ResetFilter) -> Self {
        self.by_version.insert(api_version.to_owned(), filter);
        self
    }

    pub(super) fn of(&self, api_version: &str) -> Option<&ResetFilter> {
        self.by_version.get(api_version)
    }
}

impl ResetFilter {
    pub(super) fn apply(&self, set: Set) -> Set {
        match self {
            ResetFilter::Except(fields) => set.recursive_difference(fields),
            ResetFilter::Only(pattern) => pattern.filter(set),
        }
    }
}

impl Pattern {
    /// Everything below each prefix, and the prefixes' own steps; `None` in a prefix is any
    /// element.
    pub fn prefixes(prefixes: impl IntoIterator<Item = Vec<Option<PathElement>>>) -> Self {
        let mut pattern = Pattern::default();
        for prefix in prefixes {
            let mut end = &mut pattern;
            for step in prefix {
                let at = end.branches.iter().position(|(branch, _)| *branch == step);
                let at = at.unwrap_or_else(|| {
                    end.branches.push((step, Pattern::default()));
                    end.branches.len() - 1
                });
                end = &mut end.branches[at].1;
            }
            end.all = true;
        }
        pattern
    }

    fn filter(&self, set: Set) -> Set {
        if self.all {
            return set;
        }
        let nodes = set.into_nodes().filter_map(|node| {
            let below = self.branch(&node.element)?;
            let children = below.filter(node.children);
            (node.member || !children.is_empty()).then_some(Node { children, ..node })
        });
        Set::from_nodes(nodes.collect())
    }

    fn branch(&self, element: &PathElement) -> Option<&Pattern> {
        let any = self.branches.iter().find(|(branch, _)| branch.is_none());
        let exact = || self.branches.iter().find(|(branch, _)| branch.as_ref() == Some(element));
        any.or_else(exact).map(|(_, pattern)| pattern)
    }
}
