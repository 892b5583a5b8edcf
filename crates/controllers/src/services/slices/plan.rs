//! What slices a Service should have.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;

use super::hints::Nearness;
use super::pack::{self, Changes, Wanted};
use crate::part::text;
use crate::services::member::{self, Family, HEADLESS, TRIGGER_TIME};

pub(in crate::services) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(in crate::services) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(super) const MANAGER: &str = "endpointslice-controller.k8s.io";

/// What the cluster is told to do; upstream's default.
pub(super) const ENDPOINTS_MAX: usize = 100;

/// What to do about the slices of a Service.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) changes: Changes,
    /// Pods that are left out for now: nobody knows where they are.
    pub(super) homeless: Vec<Homeless>,
}

/// A pod on a node that is not there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Homeless {
    pub(super) pod: String,
    pub(super) node: String,
}

/// The zones of the nodes there are.
pub(super) type Zones = BTreeMap<String, Option<String>>;

/// Decides about the slices of a Service. `pods` are those it selects, `existing` the slices of its
/// that this controller writes.
pub(super) fn plan(
    service: &Service,
    pods: &[&Pod],
    zones: &Zones,
    existing: &[&EndpointSlice],
    trigger_time: Option<Timestamp>,
) -> Plan {
    let families = member::families(service);
    let mut plan = Plan::default();
    for family in &families {
        let of_family = existing.iter().filter(|it| it.address_type == family.name()).copied();
        let of_family: Vec<&EndpointSlice> = of_family.collect();
        plan.changes.extend(by_family(
            service,
            pods,
            zones,
            &of_family,
            *family,
            &mut plan.homeless,
        ));
    }
    let is_left =
        |it: &&EndpointSlice| families.iter().all(|family| it.address_type != family.name());
    plan.changes.delete.extend(existing.iter().copied().filter(is_left).cloned());
    plan.homeless.dedup();
    let stamp = trigger_time.map(|time| time.to_string());
    for slice in plan.changes.create.iter_mut().chain(&mut plan.changes.update) {
        let annotations = slice.metadata.annotations.get_or_insert_default();
        match &stamp {
            Some(stamp) => annotations.insert(TRIGGER_TIME.to_owned(), stamp.clone()),
            None => annotations.remove(TRIGGER_TIME),
        };
    }
    if service.metadata.deletion_timestamp.is_some() {
        // They would be collected while they are made.
        plan.changes.create.clear();
    }
    plan
}

fn by_family(
    service: &Service,
    pods: &[&Pod],
    zones: &Zones,
    existing: &[&EndpointSlice],
    family: Family,
    homeless: &mut Vec<Homeless>,
) -> Changes {
    let (owned, strange): (Vec<&EndpointSlice>, Vec<&EndpointSlice>) =
        existing.iter().copied().partition(|slice| is_owned(slice, service));
    let mut changes = Changes::default();
    changes.delete.extend(strange.into_iter().cloned());
    let mut existing_by_ports: BTreeMap<Vec<String>, Vec<&EndpointSlice>> = BTreeMap::new();
    for slice in &owned {
        let key = pack::ports_key(slice.ports.as_deref().unwrap_or_default());
        existing_by_ports.entry(key).or_default().push(slice);
    }
    for (key, (ports, wanted)) in wanted(service, pods, zones, family, homeless) {
        let held = existing_by_ports.remove(&key).unwrap_or_default();
        let adapt = |slice: &mut EndpointSlice| relabel(slice, service);
        let new = || new(service, &ports, family);
        changes.extend(pack::pack(&held, wanted, ENDPOINTS_MAX, adapt, new));
    }
    changes.delete.extend(existing_by_ports.into_values().flatten().cloned());
    if changes.delete.len() == existing.len() && changes.create.is_empty() {
        // A Service without endpoints has a slice that says so.
        let empty = new(service, &[], family);
        match changes.delete.as_slice() {
            [held] if is_placeholder(held, &empty) => changes.delete.clear(),
            _ => changes.create.push(empty),
        }
    }
    hint(service, &owned, &mut changes);
    changes.recycle(|slice| is_owned(slice, service));
    changes
}

/// The endpoints of a family, by the ports they have.
fn wanted(
    service: &Service,
    pods: &[&Pod],
    zones: &Zones,
    family: Family,
    homeless: &mut Vec<Homeless>,
) -> BTreeMap<Vec<String>, (Vec<EndpointPort>, Wanted)> {
    let mut by_ports: BTreeMap<Vec<String>, (Vec<EndpointPort>, Wanted)> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| member::is_present(pod, true)) {
        let ports = ports(service, pod);
        let group = by_ports.entry(pack::ports_key(&ports));
        let (_, wanted) = group.or_insert_with(|| (ports, Wanted::default()));
        let node = pod.spec.as_ref().map_or("", |spec| text(&spec.node_name));
        let zone = zones.get(node);
        if zone.is_none() && !member::publishes_unready(service) {
            let pod = text(&pod.metadata.name).to_owned();
            homeless.push(Homeless { pod, node: node.to_owned() });
            continue;
        }
        let endpoint = endpoint(service, pod, zone.cloned().flatten(), family);
        if !endpoint.addresses.is_empty() {
            wanted.insert(endpoint);
        }
    }
    by_ports
}

fn endpoint(service: &Service, pod: &Pod, zone: Option<String>, family: Family) -> Endpoint {
    let serving = member::is_ready(pod);
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let ready = member::publishes_unready(service) || (serving && !terminating);
    let node_name = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    Endpoint {
        addresses: member::addresses(pod, family).collect(),
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: member::hostname(pod, service),
        node_name: node_name.filter(|name| !name.is_empty()),
        target_ref: Some(member::reference(pod)),
        zone,
        ..Endpoint::default()
    }
}

fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let port = |port: &k8s_openapi::api::core::v1::ServicePort| {
        Some(EndpointPort {
            name: Some(text(&port.name).to_owned()),
            port: Some(member::target_port(pod, port)?),
            protocol: Some(member::protocol(port.protocol.as_deref()).to_owned()),
            app_protocol: port.app_protocol.clone(),
        })
    };
    ports.filter_map(port).collect()
}

/// Sees to the hints of all slices that will be there.
fn hint(service: &Service, owned: &[&EndpointSlice], changes: &mut Changes) {
    let nearness = Nearness::of(service);
    for slice in changes.create.iter_mut().chain(&mut changes.update) {
        nearness.hint(slice);
    }
    let touched: Vec<Option<String>> = changes
        .update
        .iter()
        .chain(&changes.delete)
        .map(|slice| slice.metadata.name.clone())
        .collect();
    for slice in owned.iter().filter(|slice| !touched.contains(&slice.metadata.name)) {
        let mut slice = EndpointSlice::clone(slice);
        if nearness.hint(&mut slice) {
            changes.update.push(slice);
        }
    }
}

fn new(service: &Service, ports: &[EndpointPort], family: Family) -> EndpointSlice {
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
        name: text(&service.metadata.name).to_owned(),
        uid: text(&service.metadata.uid).to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", text(&service.metadata.name))),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels(service)),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        address_type: family.name().to_owned(),
        endpoints: Some(Vec::new()),
        ports: Some(ports.to_vec()),
    }
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let own = service.metadata.labels.iter().flatten();
    let own = own.filter(|(key, _)| !is_reserved(key)).map(|(key, it)| (key.clone(), it.clone()));
    let mut labels: BTreeMap<String, String> = own.collect();
    if member::is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), text(&service.metadata.name).to_owned());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

/// Gives a slice the labels of its Service; tells whether those that people give are others.
fn relabel(slice: &mut EndpointSlice, service: &Service) -> bool {
    fn own(labels: &BTreeMap<String, String>) -> Vec<(&String, &String)> {
        labels.iter().filter(|(key, _)| !is_reserved(key)).collect()
    }
    let (labels, held) = (labels(service), slice.metadata.labels.take().unwrap_or_default());
    let is_changed = own(&labels) != own(&held);
    slice.metadata.labels = Some(labels);
    is_changed
}

fn is_reserved(label: &str) -> bool {
    matches!(label, SERVICE_NAME | MANAGED_BY | HEADLESS)
}

/// Whether a slice belongs to this very Service, and not to one of the same name before it.
fn is_owned(slice: &EndpointSlice, service: &Service) -> bool {
    slice.metadata.owner_references.iter().flatten().any(|owner| {
        Some(&owner.uid) == service.metadata.uid.as_ref()
            && owner.kind == "Service"
            && owner.api_version == "v1"
    })
}

fn is_placeholder(slice: &EndpointSlice, empty: &EndpointSlice) -> bool {
    pack::endpoints(slice).is_empty()
        && slice.ports.iter().flatten().next().is_none()
        && slice.metadata.labels == empty.metadata.labels
        && slice.metadata.owner_references == empty.metadata.owner_references
}
