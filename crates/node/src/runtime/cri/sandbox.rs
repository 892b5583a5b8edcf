//! The sandbox of a pod, as the runtime is asked for it.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;

use k8s_openapi::api::core::v1::{Container, Pod};

use super::api::{
    DnsConfig, LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxMetadata, PortMapping, Protocol,
};
use super::security;
use crate::runtime::names::{is_on_host_network, kernel_hostname};
use crate::runtime::supply::{namespace, uid};
use crate::sysctl;

pub(super) const POD_NAME: &str = "io.kubernetes.pod.name";
pub(super) const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
pub(super) const POD_UID: &str = "io.kubernetes.pod.uid";
/// By which an agent knows its own among those of others who use the same runtime.
pub(super) const OWNER: &str = "kubewright.dev/owner";

/// How pods find names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Resolver {
    /// What answers for the names of Services, if anything does.
    pub(super) cluster: Option<std::net::IpAddr>,
    /// The domain of the cluster.
    pub(super) domain: String,
    /// How the machine itself finds names.
    pub(super) host: DnsConfig,
}

pub(super) fn config(
    pod: &Pod,
    attempt: u32,
    owner: &str,
    logs: &Path,
    resolver: &Resolver,
) -> PodSandboxConfig {
    let mut labels: HashMap<String, String> =
        pod.metadata.labels.clone().unwrap_or_default().into_iter().collect();
    labels.extend(pod_labels(pod, owner));
    let is_on_host = is_on_host_network(pod);
    let sysctls =
        pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()?.sysctls.as_ref());
    let sysctls =
        sysctls.into_iter().flatten().map(|it| (sysctl::normal(&it.name), it.value.clone()));
    PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: pod.metadata.name.clone().unwrap_or_default(),
            uid: uid(pod).to_owned(),
            namespace: namespace(pod).to_owned(),
            attempt,
        }),
        hostname: if is_on_host { String::new() } else { kernel_hostname(pod, &resolver.domain) },
        log_directory: logs.to_string_lossy().into_owned(),
        dns_config: Some(resolver.config(pod)),
        port_mappings: port_mappings(pod),
        labels,
        annotations: pod.metadata.annotations.clone().unwrap_or_default().into_iter().collect(),
        linux: Some(LinuxPodSandboxConfig {
            // Where the runtime sees fit: it knows what kind of groups the machine has.
            cgroup_parent: String::new(),
            security_context: Some(security::of_sandbox(pod)),
            sysctls: sysctls.collect(),
        }),
    }
}

/// What sandboxes and containers of a pod are found by.
pub(super) fn pod_labels(pod: &Pod, owner: &str) -> HashMap<String, String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let labels =
        [(POD_NAME, name), (POD_NAMESPACE, namespace(pod)), (POD_UID, uid(pod)), (OWNER, owner)];
    labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn port_mappings(pod: &Pod) -> Vec<PortMapping> {
    if is_on_host_network(pod) {
        return Vec::new();
    }
    let spec = pod.spec.as_ref();
    let sidecars = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars = sidecars.filter(|it| it.restart_policy.as_deref() == Some("Always"));
    let containers = spec.into_iter().flat_map(|spec| &spec.containers).chain(sidecars);
    let ports = containers.flat_map(|container: &Container| container.ports.iter().flatten());
    let mapped = ports.filter_map(|port| {
        let host_port = port.host_port.filter(|port| *port > 0)?;
        let protocol = match port.protocol.as_deref() {
            Some("UDP") => Protocol::Udp,
            Some("SCTP") => Protocol::Sctp,
            _ => Protocol::Tcp,
        };
        Some(PortMapping {
            protocol: protocol.into(),
            container_port: port.container_port,
            host_port,
            host_ip: port.host_ip.clone().unwrap_or_default(),
        })
    });
    mapped.collect()
}

impl Resolver {
    /// How a pod finds names, by its policy.
    fn config(&self, pod: &Pod) -> DnsConfig {
        let spec = pod.spec.as_ref();
        let policy = spec.and_then(|spec| spec.dns_policy.as_deref()).unwrap_or("ClusterFirst");
        let is_on_host = is_on_host_network(pod);
        let cluster = match policy {
            "ClusterFirst" if !is_on_host => self.cluster,
            "ClusterFirstWithHostNet" => self.cluster,
            _ => None,
        };
        let mut config = match (policy, cluster) {
            ("None", _) => DnsConfig::default(),
            (_, Some(server)) => {
                let own = [format!("{}.svc.", namespace(pod)), "svc.".to_owned(), String::new()];
                let own = own.into_iter().map(|part| format!("{part}{}", self.domain));
                let searches = own.chain(self.host.searches.iter().cloned());
                DnsConfig {
                    servers: vec![server.to_string()],
                    searches: without_repetition(searches),
                    options: vec!["ndots:5".to_owned()],
                }
            }
            _ => self.host.clone(),
        };
        if let Some(own) = spec.and_then(|spec| spec.dns_config.as_ref()) {
            let servers =
                config.servers.into_iter().chain(own.nameservers.iter().flatten().cloned());
            config.servers = without_repetition(servers);
            let searches =
                config.searches.into_iter().chain(own.searches.iter().flatten().cloned());
            config.searches = without_repetition(searches);
            for option in own.options.iter().flatten() {
                let Some(name) = &option.name else { continue };
                let of_name = |it: &String| it.split(':').next() == Some(name);
                config.options.retain(|it| !of_name(it));
                config.options.push(match &option.value {
                    Some(value) if !value.is_empty() => format!("{name}:{value}"),
                    _ => name.clone(),
                });
            }
        }
        config
    }
}

fn without_repetition(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}
