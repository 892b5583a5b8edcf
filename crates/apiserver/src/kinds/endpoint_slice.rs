//! EndpointSlices: a part of what a Service leads to.

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointPort, EndpointSlice};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::Value;

use super::{Context, Rules, check, edit, ip, typed};

const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20000;
const HINTS_MAX: usize = 8;
const TOPOLOGY_MAX: usize = 16;
const HOST_LABEL: &str = "kubernetes.io/hostname";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLERS: [&str; 2] =
    ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |object, _| {
        edit::first_generation(object);
        drop_topology(object, None);
    },
    prepare_update,
    validate: |object| check(&typed(object), None),
    validate_update: |object, old| {
        let (new, old): (EndpointSlice, EndpointSlice) = (typed(object), typed(old));
        let mut errors = check(&new, Some(&old));
        let at = Path::new("addressType");
        errors.extend(check::immutable(&at, &new.address_type, &old.address_type));
        errors
    },
    warnings: |object, old| warnings(&typed(object), old.is_none()),
    ..Rules::PLAIN
};

fn default(object: &mut Value) {
    for port in edit::items(object, "/ports") {
        edit::fill(port, "name", "");
        edit::fill(port, "protocol", "TCP");
    }
}

fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    let fields = ["endpoints", "ports", "addressType"];
    let changed = fields.iter().any(|field| !edit::same(object, old, &[field]))
        || object["metadata"].get("labels") != old["metadata"].get("labels");
    edit::count_generation(object, old, changed);
    drop_topology(object, Some(old));
}

/// This version only shows the topology that an older one has written. The name of a node that
/// was there moves to its own field.
fn drop_topology(object: &mut Value, old: Option<&Value>) {
    if old.is_some_and(|old| old.get("endpoints") == object.get("endpoints")) {
        return;
    }
    let node_of = |endpoint: &Value| {
        let node = endpoint.get("deprecatedTopology")?.get(HOST_LABEL)?.as_str()?;
        Some(node.to_owned())
    };
    let old_endpoints = old.and_then(|old| old.get("endpoints")?.as_array());
    let known: Vec<String> = old_endpoints.into_iter().flatten().filter_map(node_of).collect();
    for endpoint in edit::items(object, "/endpoints") {
        if let Some(node) = node_of(endpoint)
            && known.contains(&node)
            && name::dns1123_subdomain(&node).is_empty()
        {
            edit::fill(endpoint, "nodeName", node);
        }
        edit::remove(endpoint, "deprecatedTopology");
    }
}

fn check(slice: &EndpointSlice, old: Option<&EndpointSlice>) -> Vec<Error> {
    let types = ["FQDN", "IPv4", "IPv6"];
    let at = Path::new("addressType");
    let mut errors: Vec<Error> =
        check::required_one_of(&at, &slice.address_type, &types).into_iter().collect();
    errors.extend(check_ports(slice.ports.as_deref().unwrap_or_default(), &Path::new("ports")));
    // What an older server let in may stay as it is.
    if old.is_none_or(|old| old.endpoints != slice.endpoints) {
        errors.extend(check_endpoints(slice, &Path::new("endpoints")));
    }
    errors
}

fn check_ports(ports: &[EndpointPort], at: &Path<'_>) -> Vec<Error> {
    if ports.len() > PORTS_MAX {
        return vec![Error::too_many(at, ports.len(), PORTS_MAX)];
    }
    let mut errors = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let at = at.index(index);
        let name = port.name.as_deref().unwrap_or_default();
        if !name.is_empty() {
            errors.extend(check::dns_label(&at.child("name"), name));
        }
        if ports[..index].iter().any(|other| other.name == port.name) {
            errors.push(Error::duplicate(&at.child("name"), name));
        }
        let protocol_at = at.child("protocol");
        match &port.protocol {
            None => errors.push(Error::required(&protocol_at, "")),
            Some(protocol) => {
                errors.extend(check::one_of(&protocol_at, protocol, &check::PROTOCOLS));
            }
        }
        if let Some(protocol) = &port.app_protocol {
            errors.extend(check::qualified_name(&at.child("appProtocol"), protocol));
        }
    }
    errors
}

fn check_endpoints(slice: &EndpointSlice, at: &Path<'_>) -> Vec<Error> {
    let endpoints = slice.endpoints.as_deref().unwrap_or_default();
    if endpoints.len() > ENDPOINTS_MAX {
        return vec![Error::too_many(at, endpoints.len(), ENDPOINTS_MAX)];
    }
    let mut errors = Vec::new();
    for (index, endpoint) in endpoints.iter().enumerate() {
        let at = at.index(index);
        errors.extend(check_addresses(endpoint, &slice.address_type, &at.child("addresses")));
        if let Some(node) = &endpoint.node_name {
            errors.extend(check::dns_subdomain(&at.child("nodeName"), node));
        }
        let topology = endpoint.deprecated_topology.iter().flatten();
        let topology_at = at.child("deprecatedTopology");
        if topology.clone().count() > TOPOLOGY_MAX {
            errors.push(Error::too_many(&topology_at, topology.clone().count(), TOPOLOGY_MAX));
        }
        for (key, value) in topology {
            errors.extend(check::qualified_name(&topology_at, key));
            errors.extend(check::invalid(&topology_at, value, name::label_value(value)));
        }
        if let Some(host) = &endpoint.hostname {
            errors.extend(check::dns_label(&at.child("hostname"), host));
        }
        if let Some(hints) = &endpoint.hints {
            errors.extend(check_hints(hints, &at.child("hints")));
        }
    }
    errors
}

fn check_addresses(endpoint: &Endpoint, kind: &str, at: &Path<'_>) -> Vec<Error> {
    let addresses = &endpoint.addresses;
    let mut errors = Vec::new();
    if addresses.is_empty() {
        errors.push(Error::required(at, "must contain at least 1 address"));
    } else if addresses.len() > ADDRESSES_MAX {
        errors.push(Error::too_many(at, addresses.len(), ADDRESSES_MAX));
    }
    for (index, text) in addresses.iter().enumerate() {
        let item_at = at.index(index);
        let found = match kind {
            "IPv4" => ip::check_legacy(&item_at, text, &[]),
            "IPv6" => ip::check(&item_at, text),
            "FQDN" => {
                errors.extend(check_domain(text, &item_at));
                continue;
            }
            _ => continue,
        };
        if !found.is_empty() {
            errors.extend(found);
            continue;
        }
        let is_v4 = ip::parse(text).is_some_and(|ip| ip.is_ipv4());
        if is_v4 != (kind == "IPv4") {
            // Upstream names the list here, not the item.
            errors.push(Error::invalid(at, text.as_str(), format!("must be an {kind} address")));
        }
        errors.extend(ip::check_endpoint(&item_at, text));
    }
    errors
}

/// A domain of at least two labels, with or without the dot at its end.
fn check_domain(domain: &str, at: &Path<'_>) -> Option<Error> {
    if domain.is_empty() {
        return Some(Error::required(at, ""));
    }
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let complaints = name::dns1123_subdomain(domain);
    if !complaints.is_empty() {
        return Some(Error::invalid(at, domain, complaints.join(",")));
    }
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        return Some(Error::invalid(at, domain, detail));
    }
    let labels = domain.split('.').map(|label| (label, name::dns1123_label(label)));
    let (label, complaints) = labels.into_iter().find(|(_, found)| !found.is_empty())?;
    Some(Error::invalid(at, label, complaints.join(",")))
}

fn check_hints(hints: &EndpointHints, at: &Path<'_>) -> Vec<Error> {
    let zones: Vec<&str> =
        hints.for_zones.iter().flatten().map(|zone| zone.name.as_str()).collect();
    let nodes: Vec<&str> =
        hints.for_nodes.iter().flatten().map(|node| node.name.as_str()).collect();
    let mut errors = check_names(&zones, name::label_value, &at.child("forZones"));
    if zones.len() <= HINTS_MAX {
        errors.extend(check_names(&nodes, name::dns1123_subdomain, &at.child("forNodes")));
    }
    errors
}

/// A few names, each once.
fn check_names(names: &[&str], complaints: fn(&str) -> Vec<String>, at: &Path<'_>) -> Vec<Error> {
    if names.len() > HINTS_MAX {
        return vec![Error::too_many(at, names.len(), HINTS_MAX)];
    }
    let mut errors = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let item_at = at.index(index);
        let at = item_at.child("name");
        if names[..index].contains(name) {
            errors.push(Error::duplicate(&at, *name));
        }
        errors.extend(check::invalid(&at, name, complaints(name)));
    }
    errors
}

fn warnings(slice: &EndpointSlice, is_new: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_new && slice.address_type == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let manager = slice.metadata.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY));
    if manager.is_some_and(|manager| CONTROLLERS.contains(&manager.as_str())) {
        return warnings;
    }
    let at = Path::new("endpoints");
    for (index, endpoint) in slice.endpoints.iter().flatten().enumerate() {
        let at = at.index(index);
        let at = at.child("addresses");
        for (index, text) in endpoint.addresses.iter().enumerate() {
            warnings.extend(ip::warnings(&at.index(index), text));
        }
    }
    warnings
}
