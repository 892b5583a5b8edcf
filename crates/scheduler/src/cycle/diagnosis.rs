//! Why a pod fits nowhere, in upstream's words.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::plugin::{Code, Rejection};
use crate::profile::PluginSet;

/// What is said when there are no nodes at all.
pub(crate) const NO_NODES: &str = "no nodes available to schedule pods";

/// What was found out about nodes that will not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    nodes: usize,
    /// Why no node was even looked at.
    rejected_at_once: Option<Rejection>,
    by_node: Vec<(Arc<str>, Rejection)>,
    /// What is true of nodes that were not looked at.
    pub(crate) absent: Rejection,
    /// Whom a change must help.
    pub(crate) rejected_by: PluginSet,
    /// What was tried to help it.
    pub(crate) remedy: String,
}

impl Diagnosis {
    pub(crate) fn new(nodes: usize) -> Self {
        Diagnosis {
            nodes,
            rejected_at_once: None,
            by_node: Vec::new(),
            absent: Rejection { code: Code::Unresolvable, reasons: Vec::new() },
            rejected_by: PluginSet::default(),
            remedy: String::new(),
        }
    }

    pub(crate) fn reject_all(&mut self, plugin: usize, rejection: Rejection) {
        self.rejected_by.insert(plugin);
        self.absent = rejection.clone();
        self.rejected_at_once = Some(rejection);
    }

    pub(crate) fn reject(&mut self, node: &Arc<str>, plugin: usize, rejection: Rejection) {
        self.rejected_by.insert(plugin);
        self.by_node.push((Arc::clone(node), rejection));
    }

    /// As [`reject`](Diagnosis::reject), by whoever is no plugin of the profile.
    pub(crate) fn reject_by_extender(&mut self, node: &Arc<str>, rejection: Rejection) {
        self.rejected_by.insert(PluginSet::EXTENDERS);
        self.by_node.push((Arc::clone(node), rejection));
    }

    pub(crate) fn rejection(&self, node: &str) -> &Rejection {
        let found = self.by_node.iter().find(|(name, _)| **name == *node);
        found.map_or(&self.absent, |(_, rejection)| rejection)
    }

    /// The nodes on which room could be made.
    pub(crate) fn resolvable(&self) -> Vec<&Arc<str>> {
        let is_resolvable =
            |(_, rejection): &&(_, Rejection)| rejection.code == Code::Unschedulable;
        self.by_node.iter().filter(is_resolvable).map(|(name, _)| name).collect()
    }

    /// Notes why nothing helps on a node.
    pub(crate) fn note(&mut self, node: &Arc<str>, rejection: Rejection) {
        self.by_node.push((Arc::clone(node), rejection));
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0/{} nodes are available:", self.nodes)?;
        if let Some(rejection) = &self.rejected_at_once {
            write!(f, " {}.", rejection.message())?;
        } else {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for reason in self.by_node.iter().flat_map(|(_, rejection)| &rejection.reasons) {
                *counts.entry(reason).or_default() += 1;
            }
            let absent = self.nodes.saturating_sub(self.by_node.len());
            for reason in self.absent.reasons.iter().filter(|_| absent > 0) {
                *counts.entry(reason).or_default() += absent;
            }
            let mut lines: Vec<String> =
                counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
            // As texts, so `10` comes before `2`.
            lines.sort();
            if !lines.is_empty() {
                write!(f, " {}.", lines.join(", "))?;
            }
        }
        match self.remedy.is_empty() {
            true => Ok(()),
            false => write!(f, " {}", self.remedy),
        }
    }
}
