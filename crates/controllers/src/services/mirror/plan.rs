//! What slices Endpoints should have.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, Endpoints, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;

use crate::part::text;
use crate::services::member::{self, Family, TRIGGER_TIME};
use crate::services::slices::pack::{self, Changes, Wanted};
use crate::services::slices::{MANAGED_BY, SERVICE_NAME};
use crate::services::subsets;

pub(super) const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// Whoever sets it to `true` makes slices without us.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Endpoints with it are a lock, as was once the custom.
const LOCK: &str = "control-plane.alpha.kubernetes.io/leader";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// How many addresses of a subset are mirrored.
pub(super) const ADDRESSES_MAX: usize = 1000;

/// What to do about slices, and what could not be mirrored.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) changes: Changes,
    /// How many addresses are none.
    pub(super) invalid: usize,
    /// How many there are beyond what is mirrored, those that are none among them.
    pub(super) skipped: usize,
}

type Key = (Family, Vec<String>);

/// Whether Endpoints are mirrored: they are for a Service that has no others.
pub(super) fn is_mirrored(endpoints: &Endpoints, service: Option<&Service>) -> bool {
    let labels = endpoints.metadata.labels.as_ref();
    let annotations = endpoints.metadata.annotations.as_ref();
    let selects = |service: &Service| service.spec.as_ref().is_some_and(|it| it.selector.is_some());
    labels.and_then(|labels| labels.get(SKIP)).is_none_or(|skip| skip != "true")
        && !annotations.is_some_and(|annotations| annotations.contains_key(LOCK))
        && service.is_some_and(|service| !selects(service))
}

/// Decides about the slices of Endpoints that are mirrored.
pub(super) fn plan(endpoints: &Endpoints, existing: &[&EndpointSlice]) -> Plan {
    let mut plan = Plan::default();
    let mut held: BTreeMap<Key, Vec<&EndpointSlice>> = BTreeMap::new();
    for slice in existing {
        let family = if slice.address_type == Family::V6.name() { Family::V6 } else { Family::V4 };
        let ports = pack::ports_key(slice.ports.as_deref().unwrap_or_default());
        held.entry((family, ports)).or_default().push(slice);
    }
    for ((family, key), (ports, wanted)) in wanted(endpoints, &mut plan) {
        let held = held.remove(&(family, key)).unwrap_or_default();
        plan.changes.extend(by_ports(endpoints, &held, wanted, &ports, family));
    }
    plan.changes.delete.extend(held.into_values().flatten().cloned());
    plan.changes.recycle(|_| true);
    if endpoints.metadata.deletion_timestamp.is_some() {
        plan.changes.create.clear();
    }
    plan
}

fn wanted(endpoints: &Endpoints, plan: &mut Plan) -> BTreeMap<Key, (Vec<EndpointPort>, Wanted)> {
    let mut by_ports: BTreeMap<Key, (Vec<EndpointPort>, Wanted)> = BTreeMap::new();
    for subset in subsets::repack(endpoints.subsets.as_deref().unwrap_or_default()) {
        let ports: Vec<EndpointPort> = subset.ports.iter().flatten().map(port).collect();
        let key = pack::ports_key(&ports);
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let unready = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        let mut added = 0;
        for (address, is_ready) in ready.chain(unready) {
            if added == ADDRESSES_MAX {
                plan.skipped += 1;
                continue;
            }
            let Some((family, endpoint)) = endpoint(address, is_ready) else {
                plan.invalid += 1;
                plan.skipped += 1;
                continue;
            };
            let group = by_ports.entry((family, key.clone()));
            group.or_insert_with(|| (ports.clone(), Wanted::default())).1.insert(endpoint);
            added += 1;
        }
    }
    by_ports
}

/// One slice for all of them: a subset has no more than a slice can hold.
fn by_ports(
    endpoints: &Endpoints,
    held: &[&EndpointSlice],
    mut wanted: Wanted,
    ports: &[EndpointPort],
    family: Family,
) -> Changes {
    let mut changes = Changes::default();
    let mut slice = new(endpoints, ports, family);
    let Some((first, others)) = held.split_first() else {
        wanted.fill(&mut slice, ADDRESSES_MAX);
        changes.create.push(slice);
        return changes;
    };
    changes.delete.extend(others.iter().copied().cloned());
    let is_settled = pack::holds(first, &wanted)
        && entries(&first.metadata.labels) == entries(&slice.metadata.labels)
        && entries(&first.metadata.annotations) == entries(&slice.metadata.annotations)
        && first.metadata.owner_references == slice.metadata.owner_references;
    if !is_settled {
        slice.metadata.name = first.metadata.name.clone();
        slice.metadata.resource_version = first.metadata.resource_version.clone();
        wanted.fill(&mut slice, ADDRESSES_MAX);
        changes.update.push(slice);
    }
    changes
}

/// No entries are as good as none.
fn entries(map: &Option<BTreeMap<String, String>>) -> Vec<(&String, &String)> {
    map.iter().flatten().collect()
}

fn endpoint(address: &EndpointAddress, is_ready: bool) -> Option<(Family, Endpoint)> {
    let ip = member::parse(&address.ip)?;
    let endpoint = Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(is_ready),
            ..EndpointConditions::default()
        }),
        hostname: address.hostname.clone().filter(|hostname| !hostname.is_empty()),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    };
    Some((Family::of(ip), endpoint))
}

fn port(port: &k8s_openapi::api::core::v1::EndpointPort) -> EndpointPort {
    EndpointPort {
        name: Some(text(&port.name).to_owned()),
        port: Some(port.port),
        protocol: Some(member::protocol(port.protocol.as_deref()).to_owned()),
        app_protocol: port.app_protocol.clone(),
    }
}

fn new(endpoints: &Endpoints, ports: &[EndpointPort], family: Family) -> EndpointSlice {
    let name = text(&endpoints.metadata.name);
    let mut labels = endpoints.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), name.to_owned());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    let mut annotations = endpoints.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| key != TRIGGER_TIME && key != LAST_APPLIED);
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Endpoints".to_owned(),
        name: name.to_owned(),
        uid: text(&endpoints.metadata.uid).to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: endpoints.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        address_type: family.name().to_owned(),
        endpoints: Some(Vec::new()),
        ports: Some(ports.to_vec()),
    }
}
