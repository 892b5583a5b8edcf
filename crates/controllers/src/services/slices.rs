//! EndpointSlices: the newer of the two forms, as many objects as a Service needs.

mod hints;
pub(super) mod pack;
mod plan;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Event, ObjectKey, Reconciler};

use super::trigger_time::TriggerTimes;
use super::{carry_out, member, slices_of, why};
use crate::part;
use crate::part::text;
use plan::{Homeless, MANAGER, Zones};

pub(super) use plan::{MANAGED_BY, SERVICE_NAME};

const AT_ONCE: usize = 5;
const ZONE: &str = "topology.kubernetes.io/zone";

pub(crate) fn controller() -> Controller<Service, ServiceSlices> {
    let slices = ServiceSlices::default();
    let waiting = Arc::clone(&slices.waiting);
    let appears = move |change: &Change<Node>, service: &Service| {
        let Change::Applied { object: node, old: None, .. } = change else { return false };
        let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let nodes = waiting.get(&ObjectKey::of(&service.metadata));
        nodes.is_some_and(|nodes| nodes.contains(text(&node.metadata.name)))
    };
    part::controller("endpointslice-controller", slices)
        .depends_on::<Pod>(member::matters)
        .depends_on::<Node>(appears)
        .watches::<EndpointSlice>(|slice| slices_of(slice, MANAGER))
        .reporter("endpoint-slice-controller")
        .at_once(AT_ONCE)
        .until_gone()
}

/// The controller of the slices of Services.
#[derive(Default)]
pub(crate) struct ServiceSlices {
    trigger_times: Mutex<TriggerTimes>,
    /// The nodes that pods of a Service are said to be on, and that are not there.
    waiting: Arc<Mutex<HashMap<ObjectKey, HashSet<String>>>>,
}

impl Reconciler<Service> for ServiceSlices {
    async fn reconcile(&self, service: &mut Service, ctx: &Context) -> Result<Action, Error> {
        if !member::has_members(service) {
            return Ok(Action::Done);
        }
        let pods = super::members(ctx, service)?;
        let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
        let existing = super::existing(ctx, &service.metadata, MANAGER).await?;
        let existing: Vec<&EndpointSlice> = existing.iter().map(AsRef::as_ref).collect();
        let trigger_time = {
            let mut times = self.trigger_times.lock().unwrap_or_else(PoisonError::into_inner);
            times.note(service, pods.iter().copied())
        };
        let zones = zones(ctx, &pods)?;
        let plan = plan::plan(service, &pods, &zones, &existing, trigger_time);
        let key = ObjectKey::of(&service.metadata);
        self.wait_for(&key, &plan.homeless);
        let failed = |why: &str| {
            let what = key.as_str();
            let note = format!("Error updating Endpoint Slices for Service {what}: {why}");
            ctx.event(Event::warning("FailedToUpdateEndpointSlices", note));
        };
        for Homeless { pod, node } in &plan.homeless {
            failed(&format!(
                "skipping Pod {pod} for Service {}: Node {node} Not Found",
                key.as_str()
            ));
        }
        if let Err(error) = carry_out(ctx, plan.changes, &existing).await {
            failed(&why(&error));
            return Err(error.into());
        }
        Ok(Action::Done)
    }

    fn gone(&self, key: &ObjectKey) {
        self.trigger_times.lock().unwrap_or_else(PoisonError::into_inner).forget(key);
        self.waiting().remove(key);
    }
}

impl ServiceSlices {
    fn wait_for(&self, service: &ObjectKey, homeless: &[Homeless]) {
        let nodes: HashSet<String> = homeless.iter().map(|it| it.node.clone()).collect();
        match nodes.is_empty() {
            true => self.waiting().remove(service),
            false => self.waiting().insert(service.clone(), nodes),
        };
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<ObjectKey, HashSet<String>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The zones of the nodes that pods are on.
fn zones(ctx: &Context, pods: &[&Pod]) -> Result<Zones, Error> {
    let nodes = ctx.informer::<Node>()?;
    let names = pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone());
    let mut zones = Zones::new();
    for name in names.collect::<HashSet<_>>() {
        if let Some(node) = nodes.get(&ObjectKey::new(None, &name))? {
            let zone = node.metadata.labels.as_ref().and_then(|labels| labels.get(ZONE).cloned());
            zones.insert(name, zone.filter(|zone| !zone.is_empty()));
        }
    }
    Ok(zones)
}
