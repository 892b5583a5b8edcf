//! Endpoints: what a Service leads to, before slices.

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
use kubewright_apimachinery::field::{Error, Path};
use serde_json::Value;

use super::{Rules, check, edit, ip, typed};

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";

pub(super) const RULES: Rules = Rules {
    default,
    validate: |object| check(&typed(object)),
    validate_update: |object, old| {
        // What an older server let in may stay as it is.
        match object.get("subsets") == old.get("subsets") {
            true => Vec::new(),
            false => check(&typed(object)),
        }
    },
    warnings: |object, _| warnings(&typed(object)),
    create_on_update: true,
    ..Rules::PLAIN
};

fn default(object: &mut Value) {
    for subset in edit::items(object, "/subsets") {
        for port in edit::items(subset, "/ports") {
            edit::fill_text(port, "protocol", "TCP");
        }
    }
}

fn check(endpoints: &Endpoints) -> Vec<Error> {
    let at = Path::new("subsets");
    let mut errors = Vec::new();
    for (index, subset) in endpoints.subsets.iter().flatten().enumerate() {
        let at = at.index(index);
        let lists = addresses(subset);
        if lists.iter().all(|(_, list)| list.is_empty()) {
            errors.push(Error::required(&at, "must specify `addresses` or `notReadyAddresses`"));
        }
        for (field, list) in lists {
            let at = at.child(field);
            for (index, address) in list.iter().enumerate() {
                errors.extend(check_address(address, &at.index(index)));
            }
        }
        let ports_at = at.child("ports");
        let ports = subset.ports.as_deref().unwrap_or_default();
        for (index, port) in ports.iter().enumerate() {
            errors.extend(check_port(port, ports.len() > 1, &ports_at.index(index)));
        }
    }
    errors
}

fn addresses(subset: &EndpointSubset) -> [(&'static str, &[EndpointAddress]); 2] {
    [
        ("addresses", subset.addresses.as_deref().unwrap_or_default()),
        ("notReadyAddresses", subset.not_ready_addresses.as_deref().unwrap_or_default()),
    ]
}

fn check_address(address: &EndpointAddress, at: &Path<'_>) -> Vec<Error> {
    let ip_at = at.child("ip");
    let mut errors = ip::check_legacy(&ip_at, &address.ip, &[]);
    if let Some(host) = address.hostname.as_deref().filter(|host| !host.is_empty()) {
        errors.extend(check::dns_label(&at.child("hostname"), host));
    }
    if let Some(node) = &address.node_name {
        errors.extend(check::dns_subdomain(&at.child("nodeName"), node));
    }
    errors.extend(ip::check_endpoint(&ip_at, &address.ip));
    errors
}

fn check_port(port: &EndpointPort, is_one_of_many: bool, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    match port.name.as_deref().unwrap_or_default() {
        "" if is_one_of_many => errors.push(Error::required(&at.child("name"), "")),
        "" => {}
        name => errors.extend(check::dns_label(&at.child("name"), name)),
    }
    errors.extend(check::port(&at.child("port"), port.port));
    let protocol = port.protocol.as_deref().unwrap_or_default();
    let protocol_at = at.child("protocol");
    errors.extend(check::required_one_of(&protocol_at, protocol, &check::PROTOCOLS));
    if let Some(protocol) = &port.app_protocol {
        errors.extend(check::qualified_name(&at.child("appProtocol"), protocol));
    }
    errors
}

fn warnings(endpoints: &Endpoints) -> Vec<String> {
    let labels = endpoints.metadata.labels.as_ref();
    if labels.and_then(|labels| labels.get(MANAGED_BY)).is_some_and(|by| by == CONTROLLER) {
        return Vec::new();
    }
    let at = Path::new("subsets");
    let mut warnings = Vec::new();
    for (index, subset) in endpoints.subsets.iter().flatten().enumerate() {
        let at = at.index(index);
        for (field, list) in addresses(subset) {
            let at = at.child(field);
            for (index, address) in list.iter().enumerate() {
                warnings.extend(ip::warnings(&at.index(index).child("ip"), &address.ip));
            }
        }
    }
    warnings
}
