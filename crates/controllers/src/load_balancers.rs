//! Services of type LoadBalancer on one machine: its own address serves them all.

mod plan;

use k8s_openapi::api::core::v1::Service;
use kubewright::{Action, Context, Controller, Error, Event, Reconciler};

use crate::part;
pub use plan::Address;

pub(crate) fn controller(address: &Address) -> Controller<Service, LoadBalancers> {
    part::controller("service-controller", LoadBalancers { address: address.clone() })
}

/// The controller of Services with a load balancer.
pub(crate) struct LoadBalancers {
    address: Address,
}

impl Reconciler<Service> for LoadBalancers {
    async fn reconcile(&self, service: &mut Service, ctx: &Context) -> Result<Action, Error> {
        let Some(wanted) = plan::plan(service, &self.address) else { return Ok(Action::Done) };
        let told = match wanted.ingress.is_some() {
            true => [
                ("EnsuringLoadBalancer", "Ensuring load balancer"),
                ("EnsuredLoadBalancer", "Ensured load balancer"),
            ],
            false => [
                ("DeletingLoadBalancer", "Deleting load balancer"),
                ("DeletedLoadBalancer", "Deleted load balancer"),
            ],
        };
        told.into_iter().for_each(|(reason, note)| ctx.event(Event::normal(reason, note)));
        service.status.get_or_insert_default().load_balancer = Some(wanted);
        Ok(Action::Done)
    }
}
