//! A pod as a Service sees it.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright::informer::Change;

use crate::part::text;

/// Marks the endpoints of Services that have no address of their own.
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";
/// Says since when a change of endpoints waited to be written.
pub(super) const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The families of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    /// As Services and slices call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }
}

/// Whether endpoints of a Service are made of pods at all: it selects some, and has no other name
/// that it stands for.
pub(super) fn has_members(service: &Service) -> bool {
    let Some(spec) = &service.spec else { return false };
    spec.selector.is_some() && spec.type_.as_deref() != Some("ExternalName")
}

/// Whether a Service selects a pod. One without a selector selects none.
pub(super) fn selects(service: &Service, pod: &Pod) -> bool {
    let Some(selector) = service.spec.as_ref().and_then(|spec| spec.selector.as_ref()) else {
        return false;
    };
    let labels = pod.metadata.labels.as_ref();
    service.metadata.namespace == pod.metadata.namespace
        && selector.iter().all(|(key, value)| {
            labels.and_then(|labels| labels.get(key)).is_some_and(|label| label == value)
        })
}

/// Whether a change of a pod may change the endpoints of a Service.
pub(super) fn matters(change: &Change<Pod>, service: &Service) -> bool {
    match change {
        Change::Applied { object, old: Some(old), .. } => {
            traits(object) != traits(old) && (selects(service, object) || selects(service, old))
        }
        Change::Applied { object, .. } | Change::Deleted(object) => selects(service, object),
    }
}

/// What endpoints tell of a pod that can change.
fn traits(pod: &Pod) -> impl PartialEq + use<'_> {
    let (metadata, status) = (&pod.metadata, pod.status.as_ref());
    let spec = pod.spec.as_ref().map(|spec| (&spec.node_name, &spec.hostname, &spec.subdomain));
    let addresses = status.map(|status| (&status.phase, &status.pod_ip, &status.pod_ips));
    (&metadata.labels, &metadata.deletion_timestamp, spec, addresses, is_ready(pod))
}

pub(super) fn is_headless(service: &Service) -> bool {
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref());
    matches!(address, None | Some("" | "None"))
}

/// Whether addresses are published before their pods are ready.
pub(super) fn publishes_unready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

/// The families that a Service has addresses of.
pub(super) fn families(service: &Service) -> Vec<Family> {
    let Some(spec) = &service.spec else { return Vec::new() };
    let named = |name: &str| spec.ip_families.iter().flatten().any(|family| family == name);
    let mut families: Vec<Family> =
        [Family::V4, Family::V6].into_iter().filter(|family| named(family.name())).collect();
    if families.is_empty() {
        families = match parse(text(&spec.cluster_ip)) {
            Some(address) => vec![Family::of(address)],
            None => vec![Family::V4, Family::V6],
        };
    }
    families
}

/// Whether a pod has an address and may still use it.
pub(super) fn is_present(pod: &Pod, with_terminating: bool) -> bool {
    let Some(status) = &pod.status else { return false };
    let is_over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    let has_address =
        !text(&status.pod_ip).is_empty() || status.pod_ips.iter().flatten().next().is_some();
    !is_over && has_address && (with_terminating || pod.metadata.deletion_timestamp.is_none())
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The addresses of a pod in a family, as they are usually written.
pub(super) fn addresses(pod: &Pod, family: Family) -> impl Iterator<Item = String> {
    let addresses = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten());
    let addresses = addresses.filter_map(|address| parse(&address.ip));
    addresses.filter(move |address| Family::of(*address) == family).map(|it| it.to_string())
}

/// The name of a pod among those of the Service that it says it belongs to.
pub(super) fn hostname(pod: &Pod, service: &Service) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let hostname = spec.hostname.clone().filter(|hostname| !hostname.is_empty())?;
    (spec.subdomain == service.metadata.name).then_some(hostname)
}

pub(super) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The port of a pod that a port of a Service leads to.
pub(super) fn target_port(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        None => return Some(port.port),
        Some(IntOrString::Int(number)) => return Some(*number),
        Some(IntOrString::String(name)) => name,
    };
    let spec = pod.spec.as_ref()?;
    // Init containers serve only if they go on beside the others.
    let is_sidecar = |it: &&Container| it.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
    let ports = spec.containers.iter().chain(sidecars).flat_map(|it| it.ports.iter().flatten());
    let protocol = protocol(port.protocol.as_deref());
    let mut named = ports.filter(|it| it.name.as_ref() == Some(name));
    named.find(|it| self::protocol(it.protocol.as_deref()) == protocol).map(|it| it.container_port)
}

pub(super) fn protocol(protocol: Option<&str>) -> &str {
    protocol.unwrap_or("TCP")
}

/// Reads an address. Zeros before a number are overlooked, as they long were everywhere.
pub(super) fn parse(text: &str) -> Option<IpAddr> {
    let strict = text.parse::<IpAddr>().ok();
    strict.or_else(|| parse_sloppy(text).map(IpAddr::V4)).map(|address| address.to_canonical())
}

fn parse_sloppy(text: &str) -> Option<Ipv4Addr> {
    let octets: Option<Vec<u8>> = text
        .split('.')
        .map(|octet| octet.bytes().all(|byte| byte.is_ascii_digit()).then(|| octet.parse().ok())?)
        .collect();
    <[u8; 4]>::try_from(octets?).ok().map(Ipv4Addr::from)
}
