//! What a pod calls itself, and whom it knows by name.

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{HostAlias, Pod};

use super::supply::namespace;

/// Longer names are not for the kernel.
const HOSTNAME_MAX: usize = 63;

/// What a pod calls itself whatever else it is called, which is no part of any domain.
fn overriding(pod: &Pod) -> Option<&String> {
    pod.spec.as_ref()?.hostname_override.as_ref()
}

pub(super) fn hostname(pod: &Pod) -> String {
    if let Some(name) = overriding(pod) {
        return name.clone();
    }
    let own = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    own.or_else(|| pod.metadata.name.clone()).unwrap_or_default()
}

pub(super) fn is_on_host_network(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true)
}

/// What a pod calls itself; with its domain, if it wants to be called so.
pub(super) fn kernel_hostname(pod: &Pod, domain: &str) -> String {
    let short = short_hostname(pod);
    let wants_all = pod.spec.as_ref().and_then(|spec| spec.set_hostname_as_fqdn) == Some(true);
    match pod_domain(pod, domain) {
        Some(domain) if wants_all => format!("{short}.{domain}"),
        _ => short,
    }
}

fn short_hostname(pod: &Pod) -> String {
    let mut name = hostname(pod);
    if name.len() > HOSTNAME_MAX {
        name.truncate(HOSTNAME_MAX);
        name.truncate(name.trim_end_matches(['-', '.']).len());
    }
    name
}

/// The domain of a pod that is part of a headless Service.
fn pod_domain(pod: &Pod, domain: &str) -> Option<String> {
    if overriding(pod).is_some() {
        return None;
    }
    let subdomain = pod.spec.as_ref()?.subdomain.as_deref().filter(|it| !it.is_empty())?;
    Some(format!("{subdomain}.{}.svc.{domain}", namespace(pod)))
}

/// The file of names of a pod with these addresses. `node` is that of the node.
pub(super) fn hosts(pod: &Pod, addresses: &[IpAddr], domain: &str, node: &str) -> String {
    let aliases = pod.spec.as_ref().and_then(|spec| spec.host_aliases.as_deref());
    let aliases = host_aliases(aliases.unwrap_or_default());
    if is_on_host_network(pod) {
        return format!("# Kubernetes-managed hosts file (host network).\n{node}{aliases}");
    }
    let short = short_hostname(pod);
    let names = match pod_domain(pod, domain) {
        Some(domain) => format!("{short}.{domain}\t{short}"),
        None => short,
    };
    let own: String = addresses.iter().map(|address| format!("{address}\t{names}\n")).collect();
    format!(
        "# Kubernetes-managed hosts file.\n\
         127.0.0.1\tlocalhost\n\
         ::1\tlocalhost ip6-localhost ip6-loopback\n\
         fe00::0\tip6-localnet\n\
         fe00::0\tip6-mcastprefix\n\
         fe00::1\tip6-allnodes\n\
         fe00::2\tip6-allrouters\n\
         {own}{aliases}"
    )
}

fn host_aliases(aliases: &[HostAlias]) -> String {
    if aliases.is_empty() {
        return String::new();
    }
    let lines = aliases.iter().map(|alias| {
        let names = alias.hostnames.clone().unwrap_or_default().join("\t");
        format!("{}\t{names}\n", alias.ip)
    });
    format!("\n# Entries added by HostAliases.\n{}", lines.collect::<String>())
}
