//! Looks after objects of the kind `Deployment`, which is defined elsewhere.

use kubewright::{Action, Context, Controller, Error, Reconciler};

use super::Deployment;

/// The controller. It is given all objects that there are: `.labelled("…")` leaves others alone.
/// Kinds that it makes or reads are declared here (`.owns::<Pod>()`), and what it may do follows from
/// that.
pub fn new() -> Controller<Deployment, DeploymentReconciler> {
    Controller::new("deployment", DeploymentReconciler)
}

/// What it needs to know goes here.
pub struct DeploymentReconciler;

impl Reconciler<Deployment> for DeploymentReconciler {
    /// May be called at any time, for an object as it is. What is changed in `object` is written
    /// when this ends; its status is told by whoever defines it.
    async fn reconcile(&self, _object: &mut Deployment, _ctx: &Context) -> Result<Action, Error> {
        Ok(Action::Done)
    }
}
