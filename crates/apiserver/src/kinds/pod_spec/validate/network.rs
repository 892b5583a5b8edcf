//! Names and addresses of a pod, and those that it knows.

use k8s_openapi::api::core::v1::{HostAlias, PodDNSConfig, PodSpec};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::json;

use super::Allowed;
use crate::kinds::check::{self, list, text};
use crate::kinds::ip;

const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCHES_BYTES_MAX: usize = 2048;
const HOSTNAME_BYTES_MAX: usize = 64;

/// With host networking, a container's port is the host's.
pub(super) fn host_ports(spec: &PodSpec, allowed: &Allowed, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    if spec.host_network != Some(true) {
        return errors;
    }
    let path = path.child("containers");
    for (container_index, container) in spec.containers.iter().enumerate() {
        for (index, port) in list(&container.ports).iter().enumerate() {
            let of_host = port.host_port.unwrap_or_default();
            if (allowed.is_pod || of_host != 0) && of_host != port.container_port {
                let path = path.index(container_index);
                let path = path.child("ports");
                let path = path.index(index);
                let problem = "must match `containerPort` when `hostNetwork` is true";
                errors.push(Error::invalid(&path.child("hostPort"), of_host, problem));
            }
        }
    }
    errors
}

pub(super) fn dns_config(
    config: Option<&PodDNSConfig>,
    policy: &str,
    path: &Path<'_>,
) -> Vec<Error> {
    let nameservers_path = path.child("nameservers");
    let Some(config) = config else {
        let missing = policy == "None";
        let error = missing
            .then(|| Error::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
        return error.into_iter().collect();
    };
    let (nameservers, searches) = (list(&config.nameservers), list(&config.searches));
    if policy == "None" && nameservers.is_empty() {
        let problem = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        return vec![Error::required(&nameservers_path, problem)];
    }
    let mut errors = Vec::new();
    if nameservers.len() > NAMESERVERS_MAX {
        let problem = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.push(Error::invalid(&nameservers_path, json!(nameservers), problem));
    }
    for (index, address) in nameservers.iter().enumerate() {
        errors.extend(ip::check_legacy(&nameservers_path.index(index), address, &[]));
    }
    let searches_path = path.child("searches");
    if searches.len() > SEARCHES_MAX {
        let problem = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.push(Error::invalid(&searches_path, json!(searches), problem));
    }
    if searches.join(" ").len() > SEARCHES_BYTES_MAX {
        let problem = format!(
            "must not have more than {SEARCHES_BYTES_MAX} characters (including spaces) in the \
             search list"
        );
        errors.push(Error::invalid(&searches_path, json!(searches), problem));
    }
    for (index, search) in searches.iter().enumerate().filter(|(_, search)| *search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        errors.extend(check::invalid(
            &searches_path.index(index),
            search,
            name::dns1123_subdomain_with_underscore(search),
        ));
    }
    let options_path = path.child("options");
    for (index, option) in list(&config.options).iter().enumerate() {
        if text(&option.name).is_empty() {
            errors.push(Error::required(&options_path.index(index), "must not be empty"));
        }
    }
    errors
}

pub(super) fn host_aliases(aliases: &[HostAlias], path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (index, alias) in aliases.iter().enumerate() {
        let path = path.index(index);
        errors.extend(ip::check_legacy(&path.child("ip"), &alias.ip, &[]));
        let names_path = path.child("hostnames");
        for (index, name) in list(&alias.hostnames).iter().enumerate() {
            errors.extend(check::dns_subdomain(&names_path.index(index), name));
        }
    }
    errors
}

pub(super) fn hostname_override(spec: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let Some(hostname) = &spec.hostname_override else { return Vec::new() };
    let path = path.child("hostnameOverride");
    let mut errors = Vec::new();
    if spec.set_hostname_as_fqdn == Some(true) {
        let problem = "may not be specified when setHostnameAsFQDN is true";
        errors.push(Error::forbidden(&path, problem));
    }
    if spec.host_network == Some(true) {
        let problem = "may not be specified when hostNetwork is true";
        errors.push(Error::forbidden(&path, problem));
    }
    if hostname.len() > HOSTNAME_BYTES_MAX {
        errors.push(Error::too_long(&path, HOSTNAME_BYTES_MAX));
    }
    errors.extend(check::dns_subdomain(&path, hostname));
    errors
}
