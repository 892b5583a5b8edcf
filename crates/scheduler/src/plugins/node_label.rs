//! Labels that a node must have, or must not, whatever their values: a rule of the legacy policy.

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Filter, Plugin, Point, Prepared, Rejection, SCORE_MAX, Score};
use crate::pod::Pod;
use crate::selector::{Labels, NO_LABELS};
use crate::snapshot::Snapshot;

const REASON: &str = "node(s) didn't have the requested labels";

/// What labels mean for all pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeLabel {
    pub(crate) present: Vec<String>,
    pub(crate) absent: Vec<String>,
    pub(crate) present_preferred: Vec<String>,
    pub(crate) absent_preferred: Vec<String>,
}

#[derive(Clone)]
struct Required<'a>(&'a NodeLabel);

struct Preferred<'a>(&'a NodeLabel);

impl NodeLabel {
    pub(crate) const NAME: &str = "NodeLabel";

    fn fits(&self, labels: &Labels) -> bool {
        self.present.iter().all(|label| labels.contains_key(label))
            && !self.absent.iter().any(|label| labels.contains_key(label))
    }
}

impl Plugin for NodeLabel {
    fn name(&self) -> &str {
        NodeLabel::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::Filter, Point::Score]
    }

    fn filter<'a>(
        &'a self,
        _pod: &'a Pod,
        _snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        Ok(Prepared::Check(Box::new(Required(self))))
    }

    fn score<'a>(
        &'a self,
        _pod: &'a Pod,
        _snapshot: &'a Snapshot,
        _nodes: &[&Node],
    ) -> Option<Box<dyn Score + 'a>> {
        let count = self.present_preferred.len() + self.absent_preferred.len();
        (count > 0).then(|| Box::new(Preferred(self)) as Box<dyn Score>)
    }

    fn helps(&self, _pod: &Pod, change: &Change) -> bool {
        match change {
            Change::NodeAdded(node) | Change::NodeUpdated { new: node, .. } => {
                self.fits(node.metadata.labels.as_ref().unwrap_or(&NO_LABELS))
            }
            _ => false,
        }
    }
}

impl Filter for Required<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        match self.0.fits(node.labels()) {
            true => Ok(()),
            false => Err(Rejection::unresolvable(REASON)),
        }
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

impl Score for Preferred<'_> {
    fn score(&self, node: &Node) -> i64 {
        let (present, absent) = (&self.0.present_preferred, &self.0.absent_preferred);
        let has = |label: &&String| node.labels().contains_key(*label);
        let met = present.iter().filter(has).count() + absent.iter().filter(|it| !has(it)).count();
        SCORE_MAX * met as i64 / (present.len() + absent.len()) as i64
    }
}
