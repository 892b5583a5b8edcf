//! Looks after objects of the kind `Node`, which is defined elsewhere.

use kubewright::{Action, Context, Controller, Error, Reconciler};

use super::Node;

/// The controller. It is given all objects that there are: `.labelled("…")` leaves others alone.
/// Kinds that it makes or reads are declared here (`.owns::<Pod>()`), and what it may do follows from
/// that.
pub fn new() -> Controller<Node, NodeReconciler> {
    Controller::new("node", NodeReconciler)
}

/// What it needs to know goes here.
pub struct NodeReconciler;

impl Reconciler<Node> for NodeReconciler {
    /// May be called at any time, for an object as it is. What is changed in `object` is written
    /// when this ends; its status is told by whoever defines it.
    async fn reconcile(&self, _object: &mut Node, _ctx: &Context) -> Result<Action, Error> {
        Ok(Action::Done)
    }
}
