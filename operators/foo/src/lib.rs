//! Makes a Deployment of each `Foo`: Kubernetes' sample controller.
//!
//! [`plan`] decides what is next, from values alone; [`Keeper`] does it.

#![expect(clippy::disallowed_names, reason = "its authors call it so")]

mod keeper;
mod kind;
mod plan;

use k8s_openapi::api::apps::v1::Deployment;
use kubewright::{Controller, Operator};

pub use keeper::Keeper;
pub use kind::{Foo, FooSpec, FooStatus, definition};
pub use plan::{Step, deployment, plan};

/// What to try it with, as YAML.
pub const SAMPLE: &str = include_str!("../samples/example-foo.yaml");

/// The whole program.
pub fn operator() -> Operator {
    Operator::new("foo")
        .definition(definition())
        .controller(Controller::new("foo", Keeper).owns::<Deployment>().at_once(2))
        .samples(SAMPLE)
}
