//! Brings about what objects of the kind `Guestbook` say.

use kubewright::condition::Conditions as _;
use kubewright::{Action, Context, Controller, Error, Reconciler};

use super::v1::Guestbook;

/// The controller. Kinds that it makes or reads are declared here (`.owns::<Pod>()`), and what it
/// may do follows from that.
pub fn new() -> Controller<Guestbook, GuestbookReconciler> {
    Controller::new("guestbook", GuestbookReconciler)
}

/// What it needs to know goes here.
pub struct GuestbookReconciler;

impl Reconciler<Guestbook> for GuestbookReconciler {
    /// May be called at any time, for an object as it is. What is changed in `object` is written
    /// when this ends.
    async fn reconcile(&self, object: &mut Guestbook, ctx: &Context) -> Result<Action, Error> {
        let ready = ctx.condition("Ready", true, "Reconciled", "all is as the spec has it");
        object.status.get_or_insert_default().conditions.set(ready);
        Ok(Action::Done)
    }
}
