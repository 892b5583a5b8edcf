//! How much a Service counts.

use serde_json::Value;

use super::count;
use crate::resources::{Amounts, items, text};

/// Whether a quota for this is about Services.
pub(super) fn counts(name: &str) -> bool {
    matches!(name, "count/services" | "services" | "services.nodeports" | "services.loadbalancers")
}

pub(super) fn usage(service: &Value) -> Amounts {
    let spec = &service["spec"];
    let ports = items(&spec["ports"]);
    let with_node_port = || ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0);
    let (node_ports, balancers) = match text(&spec["type"]) {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == false => {
            (with_node_port().count(), 1)
        }
        "LoadBalancer" => (ports.len(), 1),
        _ => (0, 0),
    };
    let node_ports = i64::try_from(node_ports).unwrap_or(i64::MAX);
    let usage = [
        ("count/services", 1),
        ("services", 1),
        ("services.loadbalancers", balancers),
        ("services.nodeports", node_ports),
    ];
    usage.into_iter().map(|(name, number)| (name.to_owned(), count(number))).collect()
}
