//! Where a Service leads.
//!
//! Straight to one of its endpoints: nobody need route the addresses of Services for this server.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use kubewright_apimachinery::json::go_quote;
use serde_json::Value;

use crate::index::{self, Store};

/// The host and port of one of the endpoints behind a port of a Service.
///
/// # Errors
/// Say why there is none, in upstream's words.
pub(super) fn service(
    store: &Store,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<(String, u16), String> {
    let found = store.get(&format!("/registry/services/specs/{namespace}/{name}"));
    let Some(service) = found.and_then(|found| index::object(&found)) else {
        return Err(format!("service {} not found", go_quote(name)));
    };
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" {
        return Ok((spec["externalName"].as_str().unwrap_or_default().to_owned(), port));
    }
    let Some(wanted) = items(&spec["ports"]).iter().find(|known| known["port"] == port) else {
        return Err(format!("no service port {port} found for service {}", go_quote(name)));
    };
    let port_name = wanted["name"].as_str().unwrap_or_default();
    let mut ready = in_slices(store, namespace, name, port_name);
    if ready.is_empty() {
        ready = in_endpoints(store, namespace, name, port_name);
    }
    // Those of the main family come first.
    let is_main = |(host, _): &(String, u16)| {
        let is_v6 = host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6());
        is_v6 == (spec["ipFamilies"][0] == "IPv6")
    };
    if ready.iter().any(is_main) {
        ready.retain(is_main);
    }
    static TURN: AtomicUsize = AtomicUsize::new(0);
    match ready.len() {
        0 => Err(format!("no endpoints available for service {}", go_quote(name))),
        count => Ok(ready.swap_remove(TURN.fetch_add(1, Ordering::Relaxed) % count)),
    }
}

/// What is ready behind a port, by the EndpointSlices of a Service.
fn in_slices(store: &Store, namespace: &str, name: &str, port_name: &str) -> Vec<(String, u16)> {
    let all = store.snapshot().range(&format!("/registry/endpointslices/{namespace}/"), None, None);
    let of_service = all
        .iter()
        .filter(|slice| slice.extracted.labels.get("kubernetes.io/service-name") == Some(name));
    let mut ready = Vec::new();
    for slice in of_service.filter_map(|slice| index::object(slice)) {
        let Some(port) = port_of(&slice["ports"], port_name) else { continue };
        let endpoints = items(&slice["endpoints"]).iter();
        let endpoints = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false);
        let addresses = endpoints.filter_map(|endpoint| endpoint["addresses"][0].as_str());
        ready.extend(addresses.map(|address| (address.to_owned(), port)));
    }
    ready
}

/// The same by Endpoints, which people write by hand where nothing makes slices of them.
fn in_endpoints(store: &Store, namespace: &str, name: &str, port_name: &str) -> Vec<(String, u16)> {
    let found = store.get(&format!("/registry/services/endpoints/{namespace}/{name}"));
    let Some(endpoints) = found.and_then(|found| index::object(&found)) else { return Vec::new() };
    let mut ready = Vec::new();
    for subset in items(&endpoints["subsets"]) {
        let Some(port) = port_of(&subset["ports"], port_name) else { continue };
        let addresses = items(&subset["addresses"]).iter();
        let addresses = addresses.filter_map(|address| address["ip"].as_str());
        ready.extend(addresses.map(|address| (address.to_owned(), port)));
    }
    ready
}

fn port_of(ports: &Value, name: &str) -> Option<u16> {
    let mut ports = items(ports).iter();
    let port = ports.find(|port| port["name"].as_str().unwrap_or_default() == name)?;
    u16::try_from(port["port"].as_u64()?).ok()
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}
