//! What a fresh server creates itself, besides the roles of its bootstrap policy.
//!
//! The objects are complete, status included: they are stored as they are, and get only what every
//! object gets (a uid, a version, the time). Nothing here asks whether they exist already.

pub(crate) mod flow;

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use jiff::Timestamp;
use kubewright_apimachinery::builtin;
use kubewright_apimachinery::json;
use kubewright_apimachinery::time::Time;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::aggregate::UPKEEP_LABEL;
use crate::kinds::local_condition;

/// What is known of a server when it starts.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    pub now: Timestamp,
    /// Where others reach this server.
    pub address: IpAddr,
    pub port: u16,
    /// The networks that services get their addresses from, the first of which is the main one:
    /// the service `kubernetes` has its first address.
    pub service_cidrs: &'a [&'a str],
    /// Whose client certificates are trusted, in PEM.
    pub client_ca: Option<&'a str>,
    pub proxy: Option<Proxy<'a>>,
    pub hostname: &'a str,
    /// Tells this process from others of the host, before and after: a UUID.
    pub process: &'a str,
}

/// Who may say in headers on whose behalf it speaks, as aggregated servers need to know.
#[derive(Debug, Clone, Copy)]
pub struct Proxy<'a> {
    /// In PEM.
    pub ca: &'a str,
    pub allowed_names: &'a [&'a str],
    pub username_headers: &'a [&'a str],
    pub uid_headers: &'a [&'a str],
    pub group_headers: &'a [&'a str],
    pub extra_prefixes: &'a [&'a str],
}

/// An object of the server's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Own {
    pub object: Value,
    pub keep: Keep,
}

/// What becomes of an object of the server's own that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It stays as it is; only when it goes missing is it created again.
    CreateOnly,
    /// Whatever differs from here is put right, at every start.
    Reconcile,
    /// As `Reconcile`, for as long as this annotation is `"true"`. Users take the object over by
    /// saying otherwise.
    ReconcileWhile(&'static str),
    /// As `Reconcile`, for as long as it has this label.
    ReconcileLabelled(&'static str),
}

/// All of them, in an order in which none needs a later one.
pub fn objects(settings: &Settings<'_>) -> Vec<Own> {
    let mut objects = Vec::new();
    objects.extend(NAMESPACES.iter().map(|name| namespace(name)));
    objects.extend(PRIORITY_CLASSES.iter().map(priority_class));
    objects.extend(flow_control(settings.now));
    objects.extend(builtin::versions().iter().filter_map(|version| api_service(version, settings)));
    objects.push(service_cidr(settings));
    objects.extend(kubernetes_service(settings));
    objects.extend(authentication(settings));
    objects.push(token_tracking(settings));
    objects.push(identity(settings));
    objects
}

/// The objects of flow control alone, which are looked after while the server runs.
pub(crate) fn flow_control(now: Timestamp) -> impl Iterator<Item = Own> {
    let levels = flow::levels().map(|(name, spec)| level(name, spec));
    levels.chain(flow::schemas().map(move |(name, spec)| schema(name, spec, now)))
}

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

fn namespace(name: &str) -> Own {
    let object = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name, "labels": { "kubernetes.io/metadata.name": name } },
        "spec": { "finalizers": ["kubernetes"] },
        "status": { "phase": "Active" },
    });
    Own { object, keep: Keep::CreateOnly }
}

/// Names, values and descriptions.
const PRIORITY_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another \
         node if necessary.",
    ),
];

fn priority_class((name, value, description): &(&str, i64, &str)) -> Own {
    let object = json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": { "name": name, "generation": 1 },
        "value": value,
        "description": description,
        "preemptionPolicy": "PreemptLowerPriority",
    });
    Own { object, keep: Keep::CreateOnly }
}

const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io/v1";
/// Says that the server, and not a user, decides on an object of flow control.
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

fn level(name: &str, spec: &Value) -> Own {
    let object = json!({
        "apiVersion": FLOW_CONTROL,
        "kind": "PriorityLevelConfiguration",
        "metadata": { "name": name, "generation": 1, "annotations": { AUTO_UPDATE: "true" } },
        "spec": spec,
        "status": {},
    });
    Own { object, keep: keep_flow(name) }
}

fn schema(name: &str, spec: &Value, now: Timestamp) -> Own {
    let level = &spec["priorityLevelConfiguration"]["name"];
    let found = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {level} and it \
         exists"
    );
    let object = json!({
        "apiVersion": FLOW_CONTROL,
        "kind": "FlowSchema",
        "metadata": { "name": name, "generation": 1, "annotations": { AUTO_UPDATE: "true" } },
        "spec": spec,
        "status": { "conditions": [{
            "type": "Dangling",
            "status": "False",
            "lastTransitionTime": time(now),
            "reason": "Found",
            "message": found,
        }] },
    });
    Own { object, keep: keep_flow(name) }
}

fn keep_flow(name: &str) -> Keep {
    match flow::is_mandatory(name) {
        true => Keep::Reconcile,
        false => Keep::ReconcileWhile(AUTO_UPDATE),
    }
}

/// The entry of a version that this server answers for itself.
fn api_service(version: &builtin::Version, settings: &Settings<'_>) -> Option<Own> {
    let priority = version.priority?;
    let mut spec = Map::new();
    if !version.group.is_empty() {
        spec.insert("group".to_owned(), version.group.into());
    }
    spec.insert("version".to_owned(), version.version.into());
    spec.insert("groupPriorityMinimum".to_owned(), priority.group.into());
    spec.insert("versionPriority".to_owned(), priority.version.into());
    let object = json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {
            "name": format!("{}.{}", version.version, version.group),
            "labels": { UPKEEP_LABEL: "onstart" },
        },
        "spec": spec,
        "status": { "conditions": [local_condition(settings.now.as_second())] },
    });
    Some(Own { object, keep: Keep::ReconcileLabelled(UPKEEP_LABEL) })
}

fn service_cidr(settings: &Settings<'_>) -> Own {
    let object = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": { "name": "kubernetes" },
        "spec": { "cidrs": settings.service_cidrs },
        "status": { "conditions": [{
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": time(settings.now),
            "reason": "",
            "message": "Kubernetes default Service CIDR is ready",
        }] },
    });
    Own { object, keep: Keep::CreateOnly }
}

/// How pods find this server: the service, its address, and where it leads.
fn kubernetes_service(settings: &Settings<'_>) -> Vec<Own> {
    let Some(cluster_ip) = settings.service_cidrs.first().and_then(|cidr| first_address(cidr))
    else {
        return Vec::new();
    };
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "ports": [{
                "name": "https",
                "protocol": "TCP",
                "port": 443,
                "targetPort": settings.port,
            }],
            "clusterIP": cluster_ip,
            "clusterIPs": [cluster_ip],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": [family(cluster_ip)],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": { "loadBalancer": {} },
    });
    let allocated = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {
            "name": cluster_ip,
            "labels": {
                "ipaddress.kubernetes.io/ip-family": family(cluster_ip),
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": { "parentRef": {
            "resource": "services",
            "namespace": "default",
            "name": "kubernetes",
        } },
    });
    let port = json!({ "name": "https", "port": settings.port, "protocol": "TCP" });
    let endpoints = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" },
        },
        "subsets": [{ "addresses": [{ "ip": settings.address }], "ports": [port] }],
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "generation": 1,
            "labels": { "kubernetes.io/service-name": "kubernetes" },
        },
        "addressType": family(settings.address),
        "endpoints": [{ "addresses": [settings.address], "conditions": { "ready": true } }],
        "ports": [port],
    });
    vec![
        Own { object: service, keep: Keep::Reconcile },
        Own { object: allocated, keep: Keep::CreateOnly },
        Own { object: endpoints, keep: Keep::Reconcile },
        Own { object: slice, keep: Keep::Reconcile },
    ]
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// The address after the network's own; `None` when the text is no network.
fn first_address(cidr: &str) -> Option<IpAddr> {
    let (address, bits) = cidr.split_once('/')?;
    let bits: u32 = bits.parse().ok()?;
    let host_bits = |width: u32| width.checked_sub(bits);
    Some(match address.parse().ok()? {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(host_bits(32)?).unwrap_or_default();
            IpAddr::V4(((address.to_bits() & mask) + 1).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(host_bits(128)?).unwrap_or_default();
            IpAddr::V6(((address.to_bits() & mask) + 1).into())
        }
    })
}

/// What aggregated servers need in order to trust whom this one trusts, if there is anyone.
fn authentication(settings: &Settings<'_>) -> Option<Own> {
    let list = |items: &[&str]| Value::String(json::to_string(&json!(items)));
    let mut data = Map::new();
    if let Some(ca) = settings.client_ca {
        data.insert("client-ca-file".to_owned(), ca.into());
    }
    if let Some(proxy) = &settings.proxy {
        let entries = [
            ("requestheader-allowed-names", list(proxy.allowed_names)),
            ("requestheader-client-ca-file", proxy.ca.into()),
            ("requestheader-extra-headers-prefix", list(proxy.extra_prefixes)),
            ("requestheader-group-headers", list(proxy.group_headers)),
            ("requestheader-uid-headers", list(proxy.uid_headers)),
            ("requestheader-username-headers", list(proxy.username_headers)),
        ];
        data.extend(entries.map(|(key, value)| (key.to_owned(), value)));
    }
    if data.is_empty() {
        return None;
    }
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "extension-apiserver-authentication", "namespace": "kube-system" },
        "data": data,
    });
    Some(Own { object, keep: Keep::Reconcile })
}

/// Since when it is known which tokens of the old sort are in use.
fn token_tracking(settings: &Settings<'_>) -> Own {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "kube-apiserver-legacy-service-account-token-tracking",
            "namespace": "kube-system",
        },
        "data": { "since": settings.now.strftime("%Y-%m-%d").to_string() },
    });
    Own { object, keep: Keep::CreateOnly }
}

const LEASE_SECONDS: u32 = 3600;

/// That this server lives.
pub(crate) fn identity(settings: &Settings<'_>) -> Own {
    let name = identity_name(settings.hostname);
    let peer = std::net::SocketAddr::new(settings.address, settings.port);
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "labels": {
                "apiserver.kubernetes.io/identity": "kube-apiserver",
                "kubernetes.io/hostname": settings.hostname,
            },
            "annotations": { "kubernetes.io/peer-advertise-address": peer.to_string() },
        },
        "spec": {
            "holderIdentity": format!("{name}_{}", settings.process),
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": renew_time(settings.now),
        },
    });
    Own { object, keep: Keep::Reconcile }
}

/// The lease of [`identity`], renewed.
pub(crate) fn renewed(lease: &Value, now: Timestamp) -> Own {
    let mut object = lease.clone();
    object["spec"]["renewTime"] = renew_time(now).into();
    Own { object, keep: Keep::Reconcile }
}

fn renew_time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// A name for the server of a host that does not tell the host's.
fn identity_name(hostname: &str) -> String {
    let mut hash = Sha256::new();
    for part in [hostname, "kube-apiserver"] {
        let length = u16::try_from(part.len()).expect("a host's name has at most 255 bytes");
        hash.update(length.to_be_bytes());
        hash.update(part);
    }
    format!("apiserver-{}", base32(&hash.finalize()[..16]))
}

/// Five bits a letter, without padding.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let bits: Vec<u8> = bits.collect();
    bits.chunks(5)
        .map(|chunk| {
            let value = chunk.iter().fold(0, |value, bit| value << 1 | usize::from(*bit));
            char::from(ALPHABET[value << (5 - chunk.len())])
        })
        .collect()
}

fn time(now: Timestamp) -> Value {
    Time::from_unix(now.as_second()).to_value()
}
