//! Runs a command at a time: an `At` says which and when, and a pod runs it.
//!
//! [`plan`] decides what is next, from values alone; [`Clockwork`] does it.

mod clockwork;
mod judge;
mod kind;
mod plan;

use k8s_openapi::api::core::v1::Pod;
use kubewright::webhook::Webhook;
use kubewright::{Controller, Operator};

pub use clockwork::Clockwork;
pub use kind::{At, AtSpec, AtStatus, Phase};
pub use plan::{Step, plan, pod, pod_name};

/// What to try it with, as YAML.
pub const SAMPLE: &str = include_str!("../samples/at.yaml");

/// The whole program.
pub fn operator() -> Operator {
    Operator::new("at")
        .kind::<At>()
        .controller(Controller::new("at", Clockwork).owns::<Pod>().at_once(4))
        .webhook(Webhook::validating(judge::judge))
        .samples(SAMPLE)
}
