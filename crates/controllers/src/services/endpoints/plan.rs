//! What the Endpoints of a Service should be.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service,
};
use kube::api::ObjectMeta;

use crate::part::text;
use crate::services::member::{self, HEADLESS, TRIGGER_TIME};
use crate::services::subsets;

/// By whom Endpoints are written.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";
/// Says that there were more addresses than Endpoints can hold.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// The Endpoints of a Service, if they should be others than they are. `pods` are those it selects.
pub(super) fn plan(
    service: &Service,
    pods: &[&Pod],
    current: Option<&Endpoints>,
    trigger_time: Option<Timestamp>,
) -> Option<Endpoints> {
    let mut wanted = subsets(service, pods);
    let labels = labels(service);
    if let Some(current) = current {
        let held = current.subsets.as_deref().unwrap_or_default();
        // What is too much is cut off anew each time, so what is cut is compared before the cut.
        let is_cut = has(&current.metadata, OVER_CAPACITY)
            || subsets::count(&wanted) > subsets::ADDRESSES_MAX;
        if !is_cut
            && subsets::repack(held) == wanted
            && are_right(current.metadata.labels.as_ref(), &labels)
        {
            return None;
        }
    }
    let mut endpoints = current.cloned().unwrap_or_else(|| Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        subsets: None,
    });
    let annotations = endpoints.metadata.annotations.get_or_insert_default();
    note(annotations, TRIGGER_TIME, trigger_time.map(|time| time.to_string()));
    let is_cut = subsets::truncate(&mut wanted);
    note(annotations, OVER_CAPACITY, is_cut.then(|| "truncated".to_owned()));
    endpoints.metadata.labels = Some(labels);
    endpoints.subsets = Some(wanted);
    (current != Some(&endpoints)).then_some(endpoints)
}

/// Whether Endpoints are made of pods here.
pub(in crate::services) fn is_ours(endpoints: &Endpoints) -> bool {
    let labels = endpoints.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(MANAGED_BY)).is_some_and(|by| by == MANAGER)
}

fn subsets(service: &Service, pods: &[&Pod]) -> Vec<EndpointSubset> {
    let publishes_unready = member::publishes_unready(service);
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let is_portless = ports.is_empty() && is_none(service);
    let mut all = Vec::new();
    for pod in pods.iter().filter(|pod| member::is_present(pod, publishes_unready)) {
        let Some(address) = address(service, pod) else { continue };
        let is_ready = publishes_unready || member::is_ready(pod);
        let subset = |ports: Vec<EndpointPort>| EndpointSubset {
            addresses: is_ready.then(|| vec![address.clone()]),
            not_ready_addresses: (!is_ready).then(|| vec![address.clone()]),
            ports: Some(ports),
        };
        if is_portless {
            all.push(subset(Vec::new()));
        }
        all.extend(ports.iter().filter_map(|port| {
            let number = member::target_port(pod, port)?;
            Some(subset(vec![EndpointPort {
                port: number,
                protocol: port.protocol.clone(),
                name: port.name.clone(),
                app_protocol: port.app_protocol.clone(),
            }]))
        }));
    }
    subsets::repack(&all)
}

/// The address of a pod in the first family of a Service.
fn address(service: &Service, pod: &Pod) -> Option<EndpointAddress> {
    let spec = service.spec.as_ref()?;
    let status = pod.status.as_ref()?;
    let first = spec.ip_families.iter().flatten().next().map(String::as_str);
    let is_v6 = |address: &str| member::parse(address).is_some_and(|address| address.is_ipv6());
    let family = match first {
        Some("IPv6") => member::Family::V6,
        Some(_) => member::Family::V4,
        None if !member::is_headless(service) => family(is_v6(text(&spec.cluster_ip))),
        None => family(is_v6(text(&status.pod_ip))),
    };
    Some(EndpointAddress {
        ip: member::addresses(pod, family).next()?,
        hostname: member::hostname(pod, service),
        node_name: Some(pod.spec.as_ref().map_or("", |spec| text(&spec.node_name)).to_owned()),
        target_ref: Some(member::reference(pod)),
    })
}

fn family(is_v6: bool) -> member::Family {
    if is_v6 { member::Family::V6 } else { member::Family::V4 }
}

/// Whether a Service says that it has no address, and is not merely without one by now.
fn is_none(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None")
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    match member::is_headless(service) {
        true => labels.insert(HEADLESS.to_owned(), String::new()),
        false => labels.remove(HEADLESS),
    };
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

/// Whether labels are as wanted. That of headless Services alone is no reason to write.
fn are_right(held: Option<&BTreeMap<String, String>>, wanted: &BTreeMap<String, String>) -> bool {
    fn essence(labels: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
        labels.iter().filter(|(key, _)| *key != HEADLESS)
    }
    held.is_some_and(|held| essence(held).eq(essence(wanted)))
}

fn has(metadata: &ObjectMeta, annotation: &str) -> bool {
    metadata.annotations.as_ref().is_some_and(|it| it.contains_key(annotation))
}

fn note(annotations: &mut BTreeMap<String, String>, key: &str, value: Option<String>) {
    match value {
        Some(value) => annotations.insert(key.to_owned(), value),
        None => annotations.remove(key),
    };
}
