//! Looks after objects of the kind `Boat`, which is defined elsewhere.

use kubewright::{Action, Context, Controller, Error, Reconciler};

use super::Boat;

/// The controller. It is given all objects that there are: `.labelled("…")` leaves others alone.
/// Kinds that it makes or reads are declared here (`.owns::<Pod>()`), and what it may do follows from
/// that.
pub fn new() -> Controller<Boat, BoatReconciler> {
    Controller::new("boat", BoatReconciler)
}

/// What it needs to know goes here.
pub struct BoatReconciler;

impl Reconciler<Boat> for BoatReconciler {
    /// May be called at any time, for an object as it is. What is changed in `object` is written
    /// when this ends; its status is told by whoever defines it.
    async fn reconcile(&self, _object: &mut Boat, _ctx: &Context) -> Result<Action, Error> {
        Ok(Action::Done)
    }
}
