//! Gives teams namespaces with all that they need: an administrator, a quota, defaults for pods and
//! a policy for the network.
//!
//! [`Children`] are what a namespace needs, from values alone; [`operator`] brings it about, asks an
//! identity provider whether administrators exist, and tells a billing service when it is over.

mod judge;
mod kind;
mod plan;
mod service;
mod services;
mod steward;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kubewright::access::Access;
use kubewright::manifest::Package;
use kubewright::webhook::Webhook;
use kubewright::{Controller, Operator};

use judge::Judge;
use steward::Steward;

pub use kind::{AcmeNamespace, AcmeNamespaceSpec, AcmeNamespaceStatus, Phase, Tier};
pub use plan::{Children, Standing, standing};
pub use services::{OnFailure, Services};
pub use steward::{BILLED, FINALIZER};

/// Retries wait so long at first, and never longer than the other, for ever.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5 * 60));
/// Most of the time is spent waiting for the server.
const AT_ONCE: usize = 4;

/// What to try it with, as YAML.
pub const SAMPLE: &str = include_str!("../samples/team-x.yaml");

/// The whole program, beside the services that are configured.
pub fn operator(services: &Services) -> Operator {
    let billing = services.billing().map(Arc::new);
    let (min, max) = BACK_OFF;
    let mut controller = Controller::new("tenancy", Steward::new(billing.clone()))
        .owns::<Namespace>()
        .owns::<Role>()
        .owns::<RoleBinding>()
        .owns::<ResourceQuota>()
        .owns::<LimitRange>()
        .owns::<NetworkPolicy>()
        // It gives administrators what it may not do itself.
        .may(Access::of::<Role>().and(&["bind", "escalate"]))
        .back_off(min, max)
        .at_once(AT_ONCE);
    // Without anybody to tell, deletion must not wait for this program.
    if billing.is_some() {
        controller = controller.finalizer(FINALIZER);
    }
    Operator::new("tenancy")
        .kind::<AcmeNamespace>()
        .controller(controller)
        .webhook(Webhook::defaulting(judge::complete))
        .webhook(Webhook::validating(Judge::new(services)))
        .samples(SAMPLE)
}

/// What brings the operator into a cluster, with the services that are configured.
pub fn package(services: &Services) -> Package {
    Package { arguments: services.arguments(), ..operator(services).package() }
}
