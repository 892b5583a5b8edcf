//! Services, what is behind them, and what lets traffic in.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::printer_of;
use crate::table::Doc::Text;
use crate::table::fields::{Fields, with_more};
use crate::table::{AGE, BuiltinPrinter, Column, NAME, of, text};

pub(super) const PRINTERS: &[BuiltinPrinter] = &[
    printer_of("", "Service", SERVICE, service),
    printer_of("", "Endpoints", ENDPOINTS, endpoints),
    printer_of("discovery.k8s.io", "EndpointSlice", ENDPOINT_SLICE, endpoint_slice),
    printer_of("networking.k8s.io", "Ingress", INGRESS, ingress),
    printer_of("networking.k8s.io", "IngressClass", INGRESS_CLASS, ingress_class),
    printer_of("networking.k8s.io", "NetworkPolicy", NETWORK_POLICY, network_policy),
    printer_of("networking.k8s.io", "ServiceCIDR", SERVICE_CIDR, service_cidr),
    printer_of("networking.k8s.io", "IPAddress", IP_ADDRESS, ip_address),
];

const SERVICE: &[Column] = &[
    NAME,
    text("Type", of("core/v1.ServiceSpec", "type")),
    text("Cluster-IP", of("core/v1.ServiceSpec", "clusterIP")),
    text("External-IP", of("core/v1.ServiceSpec", "externalIPs")),
    text("Port(s)", of("core/v1.ServiceSpec", "ports")),
    AGE,
    text("Selector", of("core/v1.ServiceSpec", "selector")).wide(),
];

fn service(object: Fields<'_>) -> Value {
    let cluster_ips = object.texts("spec.clusterIPs");
    let ports: Vec<String> = object.items("spec.ports").map(service_port).collect();
    json!([
        object.name(),
        object.text("spec.type"),
        cluster_ips.first().unwrap_or(&"<none>"),
        external_ip(object),
        if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") },
        object.age(),
        object.labels("spec.selector"),
    ])
}

fn service_port(port: Fields<'_>) -> String {
    let (number, protocol) = (port.number("port"), port.text("protocol"));
    match port.number("nodePort") {
        1.. => format!("{number}:{}/{protocol}", port.number("nodePort")),
        _ => format!("{number}/{protocol}"),
    }
}

fn external_ip(service: Fields<'_>) -> String {
    let external = service.texts("spec.externalIPs");
    match service.text("spec.type") {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        "LoadBalancer" => {
            let addresses = load_balancer(service);
            let all: Vec<&str> = addresses.iter().copied().chain(external).collect();
            match all.is_empty() {
                true => "<pending>".to_owned(),
                false => all.join(","),
            }
        }
        "ExternalName" => service.text("spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses or names of a load balancer, each once and in order.
fn load_balancer(object: Fields<'_>) -> BTreeSet<&str> {
    object
        .items("status.loadBalancer.ingress")
        .map(|ingress| ingress.text_or("ip", ingress.text("hostname")))
        .filter(|address| !address.is_empty())
        .collect()
}

const ENDPOINTS: &[Column] = &[NAME, text("Endpoints", of("core/v1.Endpoints", "subsets")), AGE];

fn endpoints(object: Fields<'_>) -> Value {
    let mut all = Vec::new();
    for subset in object.items("subsets") {
        let addresses = || subset.items("addresses").map(|address| address.text("ip"));
        let ports: Vec<_> = subset.items("ports").map(|port| port.number("port")).collect();
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            all.extend(addresses().map(|ip| match ip.contains(':') {
                true => format!("[{ip}]:{port}"),
                false => format!("{ip}:{port}"),
            }));
        }
    }
    let text = match object.count("subsets") {
        0 => "<none>".to_owned(),
        _ => with_more(&all, 3, ","),
    };
    json!([object.name(), text, object.age()])
}

const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    text("AddressType", of("discovery/v1.EndpointSlice", "addressType")),
    text("Ports", of("discovery/v1.EndpointSlice", "ports")),
    text("Endpoints", of("discovery/v1.EndpointSlice", "endpoints")),
    AGE,
];

fn endpoint_slice(object: Fields<'_>) -> Value {
    let ports: Vec<String> = object
        .items("ports")
        .map(|port| match port.has("port") {
            true => port.number("port").to_string(),
            false if port.has("name") => port.text("name").to_owned(),
            false => "*".to_owned(),
        })
        .collect();
    let addresses: Vec<String> = object
        .items("endpoints")
        .flat_map(|endpoint| endpoint.texts("addresses"))
        .map(str::to_owned)
        .collect();
    let or_unset = |text: String| if text.is_empty() { "<unset>".to_owned() } else { text };
    json!([
        object.name(),
        object.text("addressType"),
        or_unset(with_more(&ports, 3, ",")),
        or_unset(with_more(&addresses, 3, ",")),
        object.age(),
    ])
}

const INGRESS: &[Column] = &[
    NAME,
    text(
        "Class",
        Text(
            "The name of the IngressClass resource that should be used for additional configuration",
        ),
    ),
    text("Hosts", Text("Hosts that incoming requests are matched against before the ingress rule")),
    text("Address", Text("Address is a list containing ingress points for the load-balancer")),
    text("Ports", Text("Ports of TLS configurations that open")),
    AGE,
];

fn ingress(object: Fields<'_>) -> Value {
    json!([
        object.name(),
        object.text_or("spec.ingressClassName", "<none>"),
        hosts(object),
        load_balancer(object).into_iter().collect::<Vec<_>>().join(","),
        if object.count("spec.tls") > 0 { "80, 443" } else { "80" },
        object.age(),
    ])
}

/// The first three hosts; rules without a host count among those that are not shown.
fn hosts(ingress: Fields<'_>) -> String {
    let mut shown: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in ingress.items("spec.rules") {
        more |= shown.len() == 3;
        if !more && !rule.text("host").is_empty() {
            shown.push(rule.text("host"));
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, false) => shown.join(","),
        (false, true) => {
            format!("{} + {} more...", shown.join(","), ingress.count("spec.rules") - 3)
        }
    }
}

const INGRESS_CLASS: &[Column] = &[
    NAME,
    text("Controller", Text("Controller that is responsible for handling this class")),
    text("Parameters", Text("A reference to a resource with additional parameters")),
    AGE,
];

fn ingress_class(object: Fields<'_>) -> Value {
    let annotations = object.map("metadata.annotations");
    let default = annotations.get("ingressclass.kubernetes.io/is-default-class") == Some(&"true");
    let parameters = object.at("spec.parameters");
    let parameters = match object.has("spec.parameters") {
        false => "<none>".to_owned(),
        true => {
            let group = match parameters.has("apiGroup") {
                true => format!(".{}", parameters.text("apiGroup")),
                false => String::new(),
            };
            format!("{}{group}/{}", parameters.text("kind"), parameters.text("name"))
        }
    };
    json!([
        format!("{}{}", object.name(), if default { " (default)" } else { "" }),
        object.text("spec.controller"),
        parameters,
        object.age(),
    ])
}

const NETWORK_POLICY: &[Column] =
    &[NAME, text("Pod-Selector", of("networking/v1.NetworkPolicySpec", "podSelector")), AGE];

fn network_policy(object: Fields<'_>) -> Value {
    json!([object.name(), object.label_selector("spec.podSelector").to_string(), object.age(),])
}

const SERVICE_CIDR: &[Column] =
    &[NAME, text("CIDRs", of("networking/v1.ServiceCIDRSpec", "cidrs")), AGE];

fn service_cidr(object: Fields<'_>) -> Value {
    json!([object.name(), object.texts("spec.cidrs").join(","), object.age()])
}

const IP_ADDRESS: &[Column] =
    &[NAME, text("ParentRef", of("networking/v1.IPAddressSpec", "parentRef"))];

fn ip_address(object: Fields<'_>) -> Value {
    let parent = object.at("spec.parentRef");
    let reference = match object.has("spec.parentRef") {
        false => "<none>".to_owned(),
        true => {
            let resource = match parent.text("group") {
                "" => parent.text("resource").to_owned(),
                group => format!("{}.{group}", parent.text("resource")),
            };
            let names = [parent.text("namespace"), parent.text("name")];
            let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
            format!("{}/{}", resource.to_lowercase(), names.join("/"))
        }
    };
    // There is no column for the age, but a cell.
    json!([object.name(), reference, object.age()])
}
