//! Endpoints whose Service is gone.
//!
//! They have no owner that would take them along, so that people can write their own before there
//! is a Service. Only what was made here is deleted.

use k8s_openapi::api::core::v1::{Endpoints, Service};
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Reconciler};

use super::endpoints;
use crate::part;
use crate::part::text;

pub(crate) fn controller() -> Controller<Endpoints, Leftovers> {
    let is_left = |change: &Change<Service>, endpoints: &Endpoints| match change {
        Change::Deleted(service) => service.metadata.name == endpoints.metadata.name,
        Change::Applied { .. } => false,
    };
    part::controller("endpoint-controller", Leftovers).depends_on::<Service>(is_left)
}

/// The controller of Endpoints without a Service.
pub(crate) struct Leftovers;

impl Reconciler<Endpoints> for Leftovers {
    async fn reconcile(&self, endpoints: &mut Endpoints, ctx: &Context) -> Result<Action, Error> {
        let name = text(&endpoints.metadata.name);
        if endpoints::is_ours(endpoints) && ctx.get::<Service>(None, name).await?.is_none() {
            ctx.delete(endpoints).await?;
        }
        Ok(Action::Done)
    }
}
