//! Endpoints: the older of the two forms, one object for each Service.

mod plan;

use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kubewright::{Action, Context, Controller, Error, Event, ObjectKey, Reconciler};

use super::trigger_time::TriggerTimes;
use super::{is_namespace_ending, member, why};
use crate::part;
use crate::part::text;

pub(super) use plan::is_ours;

const AT_ONCE: usize = 5;

pub(crate) fn controller() -> Controller<Service, ServiceEndpoints> {
    part::controller("endpoint-controller", ServiceEndpoints::default())
        .depends_on::<Pod>(member::matters)
        .watches::<Endpoints>(|endpoints| vec![ObjectKey::of(&endpoints.metadata)])
        .at_once(AT_ONCE)
}

/// The controller of the Endpoints of Services.
#[derive(Default)]
pub(crate) struct ServiceEndpoints {
    trigger_times: Mutex<TriggerTimes>,
}

impl Reconciler<Service> for ServiceEndpoints {
    async fn reconcile(&self, service: &mut Service, ctx: &Context) -> Result<Action, Error> {
        if !member::has_members(service) {
            return Ok(Action::Done);
        }
        let pods = super::members(ctx, service)?;
        let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
        let trigger_time = {
            let mut times = self.trigger_times.lock().unwrap_or_else(PoisonError::into_inner);
            times.note(service, pods.iter().copied())
        };
        let (namespace, name) = (text(&service.metadata.namespace), text(&service.metadata.name));
        let current = ctx.get::<Endpoints>(Some(namespace), name).await?;
        let Some(wanted) = plan::plan(service, &pods, current.as_deref(), trigger_time) else {
            return Ok(Action::Done);
        };
        let (written, reason, deed) = match &current {
            Some(current) => {
                let written = ctx.replace(current.as_ref(), |it| *it = wanted).await;
                (written, "FailedToUpdateEndpoint", format!("update endpoint {namespace}/{name}"))
            }
            None => {
                let deed = format!("create endpoint for service {namespace}/{name}");
                (ctx.create_unowned(wanted).await, "FailedToCreateEndpoint", deed)
            }
        };
        match written {
            Ok(_) => Ok(Action::Done),
            Err(error) if is_namespace_ending(&error) => Ok(Action::Done),
            Err(error) => {
                let note = format!("Failed to {deed}: {}", why(&error));
                match &current {
                    Some(current) => {
                        ctx.event_about(current.as_ref(), Event::warning(reason, note))
                    }
                    None => ctx.event(Event::warning(reason, note)),
                }
                Err(error.into())
            }
        }
    }

    fn gone(&self, key: &ObjectKey) {
        self.trigger_times.lock().unwrap_or_else(PoisonError::into_inner).forget(key);
    }
}
