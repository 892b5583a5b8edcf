//! One resource for a whole web application: what runs, its database, its settings and its address.
//!
//! [`Children`] are all that an application consists of and [`Report`] says how it fares, both from
//! values alone; [`Builder`] does it.

mod builder;
mod kind;
mod plan;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kubewright::{Controller, Operator};

pub use builder::Builder;
pub use kind::{Tier, WebApp, WebAppSpec, WebAppStatus};
pub use plan::{Children, Report};

/// What to try it with, as YAML.
pub const SAMPLE: &str = include_str!("../samples/webapp-sample.yaml");

/// The whole program.
pub fn operator() -> Operator {
    let controller = Controller::new("webapp", Builder)
        .owns::<Deployment>()
        .owns::<StatefulSet>()
        .owns::<ConfigMap>()
        .owns::<Secret>()
        .owns::<Service>()
        .owns::<Ingress>()
        .at_once(4);
    Operator::new("webapp").kind::<WebApp>().controller(controller).samples(SAMPLE)
}
