//! Which ports of the nodes a Service wants, keeps and gives up.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};

use super::{Plan, PortPlace, PortWish, Refusal, has_node_ports, kind, needs_health_check};

/// The wishes of a new Service. Ports of one number, which differ in their protocol, get the same
/// port of the nodes.
pub(super) fn wanted(spec: &ServiceSpec) -> Vec<PortWish> {
    let ports = ports(spec);
    let mut wishes: Vec<PortWish> = Vec::new();
    let mut wish_of: HashMap<i32, usize> = HashMap::new();
    for (index, port) in ports.iter().enumerate() {
        let given = node_port(port);
        if given.is_none() && !gets_any(spec) {
            continue;
        }
        match wish_of.get(&port.port) {
            None => {
                let same_number = ports.iter().filter(|other| other.port == port.port);
                let requested = same_number.clone().find_map(node_port);
                wish_of.insert(port.port, wishes.len());
                let place = PortPlace::Ports(vec![index]);
                wishes.push(PortWish { place, port: requested });
            }
            Some(wish) => {
                let wish = &mut wishes[*wish];
                match (given, &mut wish.place) {
                    (None, PortPlace::Ports(indices)) => indices.push(index),
                    (Some(given), _) if wish.port != Some(given) => {
                        let place = PortPlace::Ports(vec![index]);
                        wishes.push(PortWish { place, port: Some(given) });
                    }
                    _ => {}
                }
            }
        }
    }
    wishes
}

pub(super) fn health_check(spec: &ServiceSpec) -> PortWish {
    let port = spec.health_check_node_port.filter(|port| *port != 0);
    PortWish { place: PortPlace::HealthCheck, port }
}

/// Adds what a change of the Service wants and what it gives up.
pub(super) fn plan_change(
    plan: &mut Plan,
    new: &ServiceSpec,
    old: &ServiceSpec,
) -> Result<(), Refusal> {
    if has_node_ports(new) {
        plan_node_ports(plan, new, old)?;
    } else if has_node_ports(old) {
        plan.released.ports.extend(numbers(old));
    }
    match (needs_health_check(old), needs_health_check(new)) {
        (false, true) => plan.ports.push(health_check(new)),
        (true, false) => plan.released.ports.extend(old.health_check_node_port),
        _ => {}
    }
    Ok(())
}

fn plan_node_ports(plan: &mut Plan, new: &ServiceSpec, old: &ServiceSpec) -> Result<(), Refusal> {
    let held = numbers(old);
    let mut wished: Vec<i32> = Vec::new();
    let mut seen: Vec<(&str, i32)> = Vec::new();
    for (index, port) in ports(new).iter().enumerate() {
        let place = PortPlace::Ports(vec![index]);
        let Some(number) = node_port(port) else {
            if gets_any(new) {
                plan.ports.push(PortWish { place, port: None });
            }
            continue;
        };
        if !held.contains(&number) && !wished.contains(&number) {
            plan.ports.push(PortWish { place, port: Some(number) });
            wished.push(number);
        }
        let protocol = port.protocol.as_deref().unwrap_or_default();
        if seen.contains(&(protocol, number)) {
            let text = format!("duplicate nodePort: {{{protocol} {number}}}");
            return Err(Refusal::Internal(text));
        }
        seen.push((protocol, number));
    }
    let kept = numbers(new);
    plan.released.ports.extend(held.into_iter().filter(|number| !kept.contains(number)));
    Ok(())
}

/// Takes over the ports that a client left out, by the names of the Service's own ports.
pub(super) fn keep(new: &mut ServiceSpec, old: &ServiceSpec) {
    let gets_ports = |spec: &ServiceSpec| match kind(spec) {
        "NodePort" => true,
        "LoadBalancer" => spec.allocate_load_balancer_node_ports.unwrap_or(true),
        _ => false,
    };
    if gets_ports(old) && gets_ports(new) {
        let given = numbers(new);
        for port in new.ports.iter_mut().flatten().filter(|port| node_port(port).is_none()) {
            let is_named_so = |old: &&ServicePort| {
                old.name.as_deref().unwrap_or_default() == port.name.as_deref().unwrap_or_default()
            };
            let kept = ports(old).iter().rev().find(is_named_so).and_then(node_port);
            port.node_port = kept.filter(|kept| !given.contains(kept));
        }
    }
    if needs_health_check(old)
        && needs_health_check(new)
        && new.health_check_node_port.unwrap_or(0) == 0
    {
        new.health_check_node_port = old.health_check_node_port;
    }
}

/// The ports of the nodes that a Service names.
pub(super) fn numbers(spec: &ServiceSpec) -> Vec<i32> {
    ports(spec).iter().filter_map(node_port).collect()
}

/// Whether a port that names none gets one.
fn gets_any(spec: &ServiceSpec) -> bool {
    match kind(spec) {
        "NodePort" => true,
        "LoadBalancer" => spec.allocate_load_balancer_node_ports == Some(true),
        _ => false,
    }
}

fn node_port(port: &ServicePort) -> Option<i32> {
    port.node_port.filter(|number| *number != 0)
}

fn ports(spec: &ServiceSpec) -> &[ServicePort] {
    spec.ports.as_deref().unwrap_or_default()
}
