//! What a plugin is: something with a say in where pods go.
//!
//! Everything that decides is one, the built-in rules too. A plugin says at which [`Point`]s it has
//! a say, and a profile has it speak there. What it learns about a pod before it looks at nodes is
//! in the [`Filter`] or [`Score`] that it gives, so there is no state to be passed around.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::change::Change;
use crate::cycle::Attempt;
use crate::node::Node;
use crate::pod::Pod;
use crate::snapshot::Snapshot;

/// The best that a node can be.
pub const SCORE_MAX: i64 = 100;

/// Where plugins have a say, as configuration calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    PreEnqueue,
    QueueSort,
    PreFilter,
    Filter,
    PostFilter,
    PreScore,
    Score,
    Reserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
}

impl Point {
    pub(crate) const ALL: [Point; 12] = [
        Point::PreEnqueue,
        Point::QueueSort,
        Point::PreFilter,
        Point::Filter,
        Point::PostFilter,
        Point::PreScore,
        Point::Score,
        Point::Reserve,
        Point::Permit,
        Point::PreBind,
        Point::Bind,
        Point::PostBind,
    ];
}

/// A part of the scheduler.
pub trait Plugin: Send + Sync {
    fn name(&self) -> &str;

    /// Where it has a say.
    fn points(&self) -> &[Point];

    /// Whether a pod may be scheduled at all yet.
    ///
    /// # Errors
    /// Why not.
    fn admit(&self, _pod: &Pod) -> Result<(), String> {
        Ok(())
    }

    /// What it has to say about nodes for a pod.
    ///
    /// # Errors
    /// No node will do.
    fn filter<'a>(
        &'a self,
        _pod: &'a Pod,
        _snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        Ok(Prepared::Anywhere)
    }

    /// What can be done about a pod that no node will do for. None leaves it to the next plugin.
    fn post_filter(&self, _attempt: &Attempt<'_>) -> Option<Remedy> {
        None
    }

    /// How good each of the nodes is. None if all are the same.
    fn score<'a>(
        &'a self,
        _pod: &'a Pod,
        _snapshot: &'a Snapshot,
        _nodes: &[&Node],
    ) -> Option<Box<dyn Score + 'a>> {
        None
    }

    /// A node was found: takes what the pod will need there.
    ///
    /// # Errors
    /// It cannot be had.
    fn reserve(&self, _pod: &Pod, _node: &str, _snapshot: &mut Snapshot) -> Result<(), Rejection> {
        Ok(())
    }

    /// Gives it back. It may never have been taken.
    fn unreserve(&self, _pod: &Pod, _node: &str, _snapshot: &mut Snapshot) {}

    /// Whether the pod may go to its node now.
    fn permit(&self, _pod: &Pod, _node: &str) -> Permit {
        Permit::Allow
    }

    /// What must be done before the pod is bound.
    fn pre_bind(&self, _assignment: &Arc<Assignment>) -> Option<Work> {
        None
    }

    /// Binds the pod. None leaves it to the next plugin.
    fn bind(&self, _assignment: &Arc<Assignment>) -> Option<Work> {
        None
    }

    fn post_bind(&self, _assignment: &Assignment) {}

    /// Whether a change may help a pod that this rejected.
    fn helps(&self, _pod: &Pod, _change: &Change) -> bool {
        true
    }
}

/// What a plugin has to say about nodes.
pub enum Prepared<'a> {
    /// Nothing.
    Anywhere,
    Check(Box<dyn Filter + 'a>),
    /// Others than these need not be looked at.
    Among(BTreeSet<&'a str>, Box<dyn Filter + 'a>),
}

/// Says whether a pod fits a node.
pub trait Filter: Send + Sync {
    /// # Errors
    /// It does not.
    fn check(&self, node: &Node) -> Result<(), Rejection>;

    /// Takes into account that another pod would be on a node.
    fn add(&mut self, _other: &Pod, _node: &Node) {}

    /// Takes into account that another pod would not be there.
    fn remove(&mut self, _other: &Pod, _node: &Node) {}

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a;
}

/// Says how good a node is.
pub trait Score: Send + Sync {
    fn score(&self, node: &Node) -> i64;

    /// Brings the scores of all nodes between zero and [`SCORE_MAX`].
    fn normalize(&self, _scores: &mut [i64]) {}
}

/// Why a node will not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub code: Code,
    /// Each is counted over all nodes: `2 Insufficient cpu`.
    pub reasons: Vec<Cow<'static, str>>,
}

/// What could help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Other pods could go.
    Unschedulable,
    /// Nothing that happens to other pods.
    Unresolvable,
    /// It could not be found out.
    Error,
}

/// What can be done about a pod that fits nowhere.
#[derive(Debug)]
pub enum Remedy {
    /// Nothing; it says why.
    Nothing(String),
    /// As [`Remedy::Nothing`], and room that was being made is of no use.
    NoUse(String),
    /// Each of these would leave room on a node. The least harmful is chosen.
    Preempt(Vec<Preemption>),
}

/// Pods that go for another.
#[derive(Debug, Clone)]
pub struct Preemption {
    pub node: Arc<str>,
    pub victims: Vec<Arc<Pod>>,
    /// How many of them must not go, by a PodDisruptionBudget.
    pub violations: usize,
}

/// Whether a pod may go to its node.
pub enum Permit {
    Allow,
    Deny(Rejection),
    /// When somebody says so, but no later than this.
    Wait(BoxFuture<'static, Result<(), Rejection>>, Duration),
}

/// Something to be done, and why it failed.
pub type Work = BoxFuture<'static, Result<(), String>>;

/// A pod and the node that it is to be bound to.
#[derive(Debug)]
pub struct Assignment {
    pub pod: Arc<Pod>,
    pub node: Arc<str>,
}

impl Rejection {
    pub fn unschedulable(reason: impl Into<Cow<'static, str>>) -> Self {
        Rejection { code: Code::Unschedulable, reasons: vec![reason.into()] }
    }

    pub fn unresolvable(reason: impl Into<Cow<'static, str>>) -> Self {
        Rejection { code: Code::Unresolvable, reasons: vec![reason.into()] }
    }

    pub fn error(reason: impl Into<Cow<'static, str>>) -> Self {
        Rejection { code: Code::Error, reasons: vec![reason.into()] }
    }

    pub fn message(&self) -> String {
        self.reasons.join(", ")
    }
}

/// Scores in proportion to the highest, or to how far they are below it.
pub(crate) fn normalize(scores: &mut [i64], is_reverse: bool) {
    let highest = scores.iter().copied().max().unwrap_or_default().max(0);
    for score in scores {
        let share = if highest == 0 { 0 } else { SCORE_MAX * *score / highest };
        *score = if is_reverse { SCORE_MAX - share } else { share };
    }
}
