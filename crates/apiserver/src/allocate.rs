//! What a Service is given by the server: addresses of its own and ports on every node.
//!
//! A [`Plan`] is made from the Service alone: what it wants, by value or any, and what it no longer
//! needs. [`Allocator`] then reserves all of it or nothing, in the store, so that servers that share
//! a store never give out the same thing twice. The order of things is upstream's: a plan is made
//! and reserved before the object is validated; when the write has succeeded the reservation is
//! committed, which releases what the Service gave up, and when it has failed it is reverted.

mod family;
mod ports;
mod stored;

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use k8s_openapi::api::core::v1::ServiceSpec;
use kubewright_apimachinery::field::Error;
use serde::Deserialize;
use serde_json::{Map, Value};

pub use family::{Families, Family};
pub use stored::{Allocator, Form, ReserveError, Reserved};

use crate::kinds::ip;

/// What to reserve for a Service, and what to let go of when it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub addresses: Vec<AddressWish>,
    pub ports: Vec<PortWish>,
    pub released: Holdings,
}

/// An address that a Service wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressWish {
    /// The position in `clusterIPs`.
    pub index: usize,
    pub family: Family,
    /// `None` for any.
    pub address: Option<IpAddr>,
}

/// A port on every node that a Service wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortWish {
    pub place: PortPlace,
    /// `None` for any.
    pub port: Option<i32>,
}

/// Where a reserved port goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortPlace {
    /// The `nodePort` of the ports at these positions: ports of one number share it.
    Ports(Vec<usize>),
    HealthCheck,
}

/// What a Service occupies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holdings {
    pub addresses: Vec<IpAddr>,
    pub ports: Vec<i32>,
}

/// Why a Service cannot have what it asks for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The client can ask for something else.
    #[error("allocate what the service asks for")]
    Invalid(Vec<Error>),
    /// It is not the client's fault; in the API, an internal error with this text.
    #[error("{0}")]
    Internal(String),
}

/// Completes a new Service as far as it can be without reserving anything, and plans the rest.
pub fn plan_create(service: &mut Value, families: Families) -> Result<Plan, Refusal> {
    let mut spec = spec_of(service);
    if !text(spec.cluster_ip.as_ref()).is_empty() && ips(&spec).is_empty() {
        spec.cluster_ips = spec.cluster_ip.clone().map(|ip| vec![ip]);
    }
    let mut plan = Plan::default();
    family::settle(&mut spec, None, families)?;
    plan.addresses = wanted_addresses(&spec)?;
    if has_node_ports(&spec) {
        plan.ports = ports::wanted(&spec);
    }
    if needs_health_check(&spec) {
        plan.ports.push(ports::health_check(&spec));
    }
    write_back(service, &spec);
    Ok(plan)
}

/// Completes a changed Service from what it was, and plans the rest.
pub fn plan_update(service: &mut Value, old: &Value, families: Families) -> Result<Plan, Refusal> {
    let mut spec = spec_of(service);
    let mut old = spec_of(old);
    complete_spec(&mut old, families);
    ports::keep(&mut spec, &old);
    keep_addresses(&mut spec, &old);
    let is_settled = family::is_settled(&spec, &old);
    let mut plan = Plan::default();
    if !is_settled {
        family::settle(&mut spec, Some(&old), families)?;
        plan_address_change(&mut plan, &mut spec, &old)?;
    }
    ports::plan_change(&mut plan, &spec, &old)?;
    write_back(service, &spec);
    Ok(plan)
}

/// What is free again when a Service is gone.
pub fn holdings(service: &Value) -> Holdings {
    let spec = spec_of(service);
    let mut held = Holdings { addresses: addresses(&spec), ports: ports::numbers(&spec) };
    if let Some(port) = spec.health_check_node_port.filter(|port| *port > 0)
        && needs_health_check(&spec)
    {
        held.ports.push(port);
    }
    held
}

/// Fills in what Services stored by older servers lack, when one is read.
pub fn complete(service: &mut Value, families: Families) {
    let mut spec = spec_of(service);
    complete_spec(&mut spec, families);
    write_back(service, &spec);
    if kind(&spec) == "ExternalName"
        && let Some(fields) = service.get_mut("spec").and_then(Value::as_object_mut)
    {
        // It was once filled in for this type too, which has no use for it.
        fields.shift_remove("internalTrafficPolicy");
    }
}

impl Plan {
    /// Writes what was reserved into the Service. Both lists are in the order of the wishes.
    pub fn grant(&self, service: &mut Value, addresses: &[IpAddr], ports: &[i32]) {
        let mut spec = spec_of(service);
        for (wish, address) in self.addresses.iter().zip(addresses) {
            let list = spec.cluster_ips.get_or_insert_default();
            // An address keeps the spelling that the client gave it.
            if wish.address.is_none() {
                list.truncate(wish.index);
                list.push(address.to_string());
            }
            if wish.index == 0 {
                spec.cluster_ip = list.first().cloned();
            }
        }
        for (wish, port) in self.ports.iter().zip(ports) {
            match &wish.place {
                PortPlace::HealthCheck => spec.health_check_node_port = Some(*port),
                PortPlace::Ports(indices) => {
                    let list = spec.ports.get_or_insert_default();
                    for index in indices {
                        list[*index].node_port = Some(*port);
                    }
                }
            }
        }
        write_back(service, &spec);
    }
}

impl Holdings {
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.ports.is_empty()
    }
}

/// What every address that is still missing needs; those given need to be reserved too.
fn wanted_addresses(spec: &ServiceSpec) -> Result<Vec<AddressWish>, Refusal> {
    if kind(spec) == "ExternalName" || ips(spec).first().is_some_and(|ip| ip == "None") {
        return Ok(Vec::new());
    }
    let families = spec.ip_families.as_deref().unwrap_or_default();
    let mut wishes = Vec::new();
    for (index, family) in families.iter().enumerate() {
        wishes.push(wanted_address(spec, index, family)?);
    }
    Ok(wishes)
}

fn wanted_address(spec: &ServiceSpec, index: usize, family: &str) -> Result<AddressWish, Refusal> {
    let family = Family::named(family).expect("settled families are known ones");
    let address = match ips(spec).get(index).map(String::as_str).unwrap_or_default() {
        "" => None,
        text => Some(
            ip::parse(text)
                .ok_or_else(|| Refusal::Internal(format!("failed to parse service IP {text:?}")))?,
        ),
    };
    Ok(AddressWish { index, family, address })
}

fn plan_address_change(
    plan: &mut Plan,
    spec: &mut ServiceSpec,
    old: &ServiceSpec,
) -> Result<(), Refusal> {
    if kind(old) == "ExternalName" && kind(spec) != "ExternalName" {
        plan.addresses = wanted_addresses(spec)?;
        return Ok(());
    }
    if ips(old).first().is_some_and(|ip| ip == "None") {
        return Ok(());
    }
    if kind(old) != "ExternalName" && kind(spec) == "ExternalName" {
        plan.released.addresses = addresses(old);
        return Ok(());
    }
    let families = |spec: &ServiceSpec| spec.ip_families.clone().unwrap_or_default();
    match (families(old).as_slice(), families(spec).as_slice()) {
        ([_], [_, second]) => plan.addresses.push(wanted_address(spec, 1, second)?),
        ([_, _], [_]) => plan.released.addresses.extend(addresses(old).into_iter().nth(1)),
        _ => {}
    }
    Ok(())
}

/// Takes over the addresses that a client left out, and keeps one field in step with the other.
fn keep_addresses(spec: &mut ServiceSpec, old: &ServiceSpec) {
    if kind(old) != "ExternalName" && kind(spec) != "ExternalName" {
        if text(spec.cluster_ip.as_ref()).is_empty() {
            spec.cluster_ip.clone_from(&old.cluster_ip);
        }
        if ips(spec).is_empty() && !ips(old).is_empty() {
            spec.cluster_ips.clone_from(&old.cluster_ips);
        }
    }
    let (new_ip, old_ip) = (text(spec.cluster_ip.as_ref()), text(old.cluster_ip.as_ref()));
    if new_ip == old_ip {
        if ips(spec).is_empty() {
            spec.cluster_ips.clone_from(&old.cluster_ips);
        }
    } else if ips(spec) == ips(old) {
        spec.cluster_ips = match new_ip {
            "" => None,
            ip => Some(vec![ip.to_owned()]),
        };
    }
}

fn complete_spec(spec: &mut ServiceSpec, families: Families) {
    if !text(spec.cluster_ip.as_ref()).is_empty() && ips(spec).is_empty() {
        spec.cluster_ips = spec.cluster_ip.clone().map(|ip| vec![ip]);
    }
    family::complete(spec, families);
}

fn addresses(spec: &ServiceSpec) -> Vec<IpAddr> {
    match kind(spec) {
        "ExternalName" => Vec::new(),
        _ => ips(spec).iter().filter_map(|text| ip::parse(text)).collect(),
    }
}

fn has_node_ports(spec: &ServiceSpec) -> bool {
    matches!(kind(spec), "NodePort" | "LoadBalancer")
}

fn needs_health_check(spec: &ServiceSpec) -> bool {
    kind(spec) == "LoadBalancer" && spec.external_traffic_policy.as_deref() == Some("Local")
}

fn kind(spec: &ServiceSpec) -> &str {
    text(spec.type_.as_ref())
}

fn text(field: Option<&String>) -> &str {
    field.map(String::as_str).unwrap_or_default()
}

fn ips(spec: &ServiceSpec) -> &[String] {
    spec.cluster_ips.as_deref().unwrap_or_default()
}

fn spec_of(service: &Value) -> ServiceSpec {
    match service.get("spec") {
        Some(spec) => ServiceSpec::deserialize(spec)
            .expect("an object in normal form has the form of its type"),
        None => ServiceSpec::default(),
    }
}

/// Changes the linked fields of the tree only, so that the rest stays as it came.
fn write_back(service: &mut Value, spec: &ServiceSpec) {
    let Some(fields) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    set(fields, "clusterIP", spec.cluster_ip.clone().filter(|ip| !ip.is_empty()).map(Into::into));
    set(fields, "clusterIPs", list(spec.cluster_ips.as_ref()));
    set(fields, "ipFamilies", list(spec.ip_families.as_ref()));
    set(fields, "ipFamilyPolicy", spec.ip_family_policy.clone().map(Into::into));
    let port = |port: Option<i32>| port.filter(|port| *port != 0).map(Into::into);
    set(fields, "healthCheckNodePort", port(spec.health_check_node_port));
    let ports = fields.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
    for (fields, typed) in ports.zip(spec.ports.iter().flatten()) {
        if let Some(fields) = fields.as_object_mut() {
            set(fields, "nodePort", port(typed.node_port));
        }
    }
}

fn list(items: Option<&Vec<String>>) -> Option<Value> {
    items.filter(|items| !items.is_empty()).map(|items| items.clone().into())
}

fn set(fields: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            fields.insert(name.to_owned(), value);
        }
        None => {
            fields.shift_remove(name);
        }
    }
}
