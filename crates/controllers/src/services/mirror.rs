//! Slices of Endpoints that people write themselves, for Services that select nothing.

mod plan;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kubewright::{Action, Context, Controller, Error, Event, ObjectKey, Reconciler};

use super::slices::pack::Changes;
use super::{carry_out, slices_of};
use crate::part;
use crate::part::text;
use plan::{ADDRESSES_MAX, MANAGER};

const AT_ONCE: usize = 5;

pub(crate) fn controller() -> Controller<Endpoints, Mirror> {
    part::controller("endpointslice-mirroring-controller", Mirror)
        .watches::<Service>(|service| vec![ObjectKey::of(&service.metadata)])
        .watches::<EndpointSlice>(|slice| slices_of(slice, MANAGER))
        .reporter("endpoint-slice-mirroring-controller")
        .at_once(AT_ONCE)
        .until_gone()
}

/// The controller of slices of Endpoints.
pub(crate) struct Mirror;

impl Reconciler<Endpoints> for Mirror {
    async fn reconcile(&self, endpoints: &mut Endpoints, ctx: &Context) -> Result<Action, Error> {
        let service = ctx.get::<Service>(None, text(&endpoints.metadata.name)).await?;
        let existing = super::existing(ctx, &endpoints.metadata, MANAGER).await?;
        let existing: Vec<&EndpointSlice> = existing.iter().map(AsRef::as_ref).collect();
        if !plan::is_mirrored(endpoints, service.as_deref()) {
            let delete = existing.iter().copied().cloned().collect();
            carry_out(ctx, Changes { delete, ..Changes::default() }, &existing).await?;
            return Ok(Action::Done);
        }
        let plan = plan::plan(endpoints, &existing);
        if plan.invalid > 0 {
            let note = format!(
                "Skipped {} invalid IP addresses when mirroring to EndpointSlices",
                plan.invalid
            );
            ctx.event(Event::warning("InvalidIPAddress", note));
        }
        if plan.skipped > plan.invalid {
            let note = format!(
                "A max of {ADDRESSES_MAX} addresses can be mirrored to EndpointSlices per Endpoints \
                 subset. {} addresses were skipped",
                plan.skipped
            );
            ctx.event(Event::warning("TooManyAddressesToMirror", note));
        }
        carry_out(ctx, plan.changes, &existing).await?;
        Ok(Action::Done)
    }
}
