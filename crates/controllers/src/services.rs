//! What stands behind a Service: its endpoints, as Endpoints and as EndpointSlices.
//!
//! `member` is a pod as a Service sees it. `endpoints` and `slices` decide what should be written
//! about the members of a Service, `mirror` what slices there should be of Endpoints that somebody
//! else writes, and `trigger_time` since when a change waits to be written. `subsets` and
//! `slices::pack` are the forms of the two, and `leftovers` what no Service stands for any more.

mod endpoints;
mod leftovers;
mod member;
mod mirror;
mod slices;
mod subsets;
mod trigger_time;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ObjectMeta;
use kubewright::context::{ReadError, WriteError};
use kubewright::{Context, ObjectKey};

use crate::part::text;
use slices::pack::Changes;
use slices::{MANAGED_BY, SERVICE_NAME};

pub(crate) use endpoints::controller as endpoints;
pub(crate) use leftovers::controller as leftovers;
pub(crate) use mirror::controller as mirror;
pub(crate) use slices::controller as slices;

/// The pods that a Service selects.
fn members(ctx: &Context, service: &Service) -> Result<Vec<Arc<Pod>>, ReadError> {
    let mut pods = ctx.informer::<Pod>()?.list_in(text(&service.metadata.namespace))?;
    pods.retain(|pod| member::selects(service, pod));
    Ok(pods)
}

/// The slices that a controller has made for a Service, or for Endpoints of its name.
async fn existing(
    ctx: &Context,
    owner: &ObjectMeta,
    manager: &str,
) -> Result<Vec<Arc<EndpointSlice>>, ReadError> {
    let informer = ctx.informer::<EndpointSlice>()?;
    informer.fresh().await;
    let mut slices = informer.list_in(text(&owner.namespace))?;
    slices.retain(|slice| {
        slice.metadata.deletion_timestamp.is_none()
            && slices_of(slice, manager) == [ObjectKey::of(owner)]
    });
    Ok(slices)
}

/// Whom a slice is for, if this controller has made it.
fn slices_of(slice: &EndpointSlice, manager: &str) -> Vec<ObjectKey> {
    let label = |key| slice.metadata.labels.as_ref().and_then(|labels| labels.get(key));
    match (label(MANAGED_BY), label(SERVICE_NAME)) {
        (Some(by), Some(name)) if by == manager => {
            vec![ObjectKey::new(slice.metadata.namespace.as_deref(), name)]
        }
        _ => Vec::new(),
    }
}

/// Does what is to be done about slices.
async fn carry_out(
    ctx: &Context,
    changes: Changes,
    existing: &[&EndpointSlice],
) -> Result<(), WriteError> {
    for slice in changes.create {
        match ctx.create_unowned(slice).await {
            Err(error) if is_namespace_ending(&error) => return Ok(()),
            created => drop(created?),
        }
    }
    for slice in changes.update {
        let seen = existing.iter().find(|seen| seen.metadata.name == slice.metadata.name);
        if let Some(seen) = seen {
            ctx.replace(*seen, |it| *it = slice).await?;
        }
    }
    for slice in &changes.delete {
        ctx.delete(slice).await?;
    }
    Ok(())
}

/// Whether nothing can be made any more where the object is.
fn is_namespace_ending(error: &WriteError) -> bool {
    let details = error.answer().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| {
        details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
    })
}

/// What the server said, or else what went wrong.
fn why(error: &WriteError) -> String {
    error.answer().map_or_else(|| error.to_string(), |status| status.message.clone())
}
