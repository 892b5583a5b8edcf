//! Networks that Services get their addresses from.
//!
//! A network is used once it is said to be ready, and one that is deleted stays until no address
//! would be without a network. For some seconds more nothing happens: a server may not know yet
//! that it must take no more addresses from it.

mod plan;

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::condition::{self, Conditions as _};
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Reconciler};

use crate::{names, part};

const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
const AT_ONCE: usize = 5;
/// How long a network stays after it was deleted.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

pub(crate) fn controller() -> Controller<ServiceCIDR, ServiceCidrs> {
    let holds = |change: &Change<IPAddress>, network: &ServiceCIDR| {
        network.metadata.deletion_timestamp.is_some() && plan::gives(network, object(change))
    };
    let meets = |change: &Change<ServiceCIDR>, network: &ServiceCIDR| {
        network.metadata.deletion_timestamp.is_some() && plan::meet(network, object(change))
    };
    part::controller(names::SERVICE_CIDR, ServiceCidrs)
        .depends_on::<IPAddress>(holds)
        .depends_on::<ServiceCIDR>(meets)
        .until_gone()
        .at_once(AT_ONCE)
}

/// The controller of networks for Services.
pub(crate) struct ServiceCidrs;

impl Reconciler<ServiceCIDR> for ServiceCidrs {
    async fn reconcile(&self, network: &mut ServiceCIDR, ctx: &Context) -> Result<Action, Error> {
        let now = part::time(ctx.now()).0;
        let Some(deleted) = network.metadata.deletion_timestamp.clone() else {
            let finalizers = network.metadata.finalizers.get_or_insert_default();
            if !finalizers.iter().any(|held| held == FINALIZER) {
                finalizers.push(FINALIZER.to_owned());
            }
            let message = "Kubernetes Service CIDR is ready";
            tell(network, condition::new("Ready", true, "", message, now));
            return Ok(Action::Done);
        };
        let all = ctx.list::<ServiceCIDR>().await?;
        let addresses = ctx.list::<IPAddress>().await?;
        if !plan::is_free(network, &all, &addresses) {
            let message = "There are still IPAddresses referencing the ServiceCIDR, please remove \
                           them or create a new ServiceCIDR";
            tell(network, condition::new("Ready", false, "Terminating", message, now));
            return Ok(Action::Done);
        }
        let left = GRACE - now.duration_since(deleted.0);
        if left.is_positive() {
            return Ok(Action::RequeueAfter(Duration::try_from(left).unwrap_or_default()));
        }
        if let Some(finalizers) = &mut network.metadata.finalizers {
            finalizers.retain(|held| held != FINALIZER);
        }
        Ok(Action::Done)
    }
}

fn tell(network: &mut ServiceCIDR, condition: Condition) {
    let status = network.status.get_or_insert_default();
    status.conditions.get_or_insert_default().set(condition);
}

fn object<K>(change: &Change<K>) -> &K {
    match change {
        Change::Applied { object, .. } | Change::Deleted(object) => object,
    }
}
