//! The operator guestbook.

pub mod guestbook;

use kubewright::Operator;

/// The whole program: its kinds, controllers and webhooks.
pub fn operator() -> Operator {
    Operator::new("guestbook")
        .kind::<guestbook::v1::Guestbook>()
        .controller(guestbook::controller::new())
        .webhook(guestbook::defaulting::webhook())
        .webhook(guestbook::validation::webhook())
}
