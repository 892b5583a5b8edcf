//! The form of Endpoints: sets of addresses that have the same ports.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset};

use crate::part::text;

/// What Endpoints can hold; more is cut off.
pub(super) const ADDRESSES_MAX: usize = 1000;

/// What tells addresses apart: pods of one node may share an address.
type AddressKey = (String, String);
/// What tells ports apart: number, protocol, name and application protocol.
type PortKey = (i32, String, String, Option<String>);
/// Which addresses are ready.
type Readiness = BTreeMap<AddressKey, bool>;

/// The same endpoints in as few subsets as there can be, everything in order and nothing twice. An
/// address that is somewhere ready and somewhere not is not ready.
pub(super) fn repack(subsets: &[EndpointSubset]) -> Vec<EndpointSubset> {
    let mut addresses: BTreeMap<AddressKey, EndpointAddress> = BTreeMap::new();
    let mut by_port: BTreeMap<Option<PortKey>, Readiness> = BTreeMap::new();
    for subset in subsets {
        let mut ports: Vec<_> =
            subset.ports.iter().flatten().map(|it| Some(port_key(it))).collect();
        if ports.is_empty() {
            ports.push(None);
        }
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let unready = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        for (address, is_ready) in ready.chain(unready) {
            let key = address_key(address);
            addresses.entry(key.clone()).or_insert_with(|| address.clone());
            for port in &ports {
                let readiness = by_port.entry(port.clone()).or_default();
                *readiness.entry(key.clone()).or_insert(true) &= is_ready;
            }
        }
    }
    let mut by_readiness: BTreeMap<Readiness, Vec<PortKey>> = BTreeMap::new();
    for (port, readiness) in by_port {
        by_readiness.entry(readiness).or_default().extend(port);
    }
    let mut packed: Vec<(Vec<PortKey>, Readiness)> =
        by_readiness.into_iter().map(|(readiness, ports)| (ports, readiness)).collect();
    packed.sort();
    let subset = |(ports, readiness): (Vec<PortKey>, Readiness)| {
        let of = |wanted: bool| {
            let keys = readiness.iter().filter(|(_, is_ready)| **is_ready == wanted);
            some(keys.map(|(key, _)| addresses[key].clone()).collect())
        };
        EndpointSubset {
            addresses: of(true),
            not_ready_addresses: of(false),
            ports: some(ports.into_iter().map(port).collect()),
        }
    };
    packed.into_iter().map(subset).collect()
}

/// Cuts off what is too much, those that are not ready first, from each subset in proportion; tells
/// whether there was any.
pub(super) fn truncate(subsets: &mut [EndpointSubset]) -> bool {
    let ready: usize = subsets.iter().map(|it| len(&it.addresses)).sum();
    let unready: usize = subsets.iter().map(|it| len(&it.not_ready_addresses)).sum();
    if ready + unready <= ADDRESSES_MAX {
        return false;
    }
    let cuts_ready = ready > ADDRESSES_MAX;
    let (room, total) = match cuts_ready {
        true => (ADDRESSES_MAX, ready),
        false => (ADDRESSES_MAX - ready, unready),
    };
    let mut left = room;
    for subset in subsets {
        if cuts_ready {
            subset.not_ready_addresses = None;
        }
        let cut = match cuts_ready {
            true => &mut subset.addresses,
            false => &mut subset.not_ready_addresses,
        };
        let kept = (len(cut) * room).div_ceil(total).min(left);
        left -= kept.min(len(cut));
        *cut = some(cut.take().unwrap_or_default().into_iter().take(kept).collect());
    }
    true
}

/// How many addresses there are.
pub(super) fn count(subsets: &[EndpointSubset]) -> usize {
    subsets.iter().map(|it| len(&it.addresses) + len(&it.not_ready_addresses)).sum()
}

fn len(addresses: &Option<Vec<EndpointAddress>>) -> usize {
    addresses.as_ref().map_or(0, Vec::len)
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn address_key(address: &EndpointAddress) -> AddressKey {
    let uid = address.target_ref.as_ref().map_or("", |target| text(&target.uid));
    (address.ip.clone(), uid.to_owned())
}

fn port_key(port: &EndpointPort) -> PortKey {
    let protocol = super::member::protocol(port.protocol.as_deref()).to_owned();
    (port.port, protocol, text(&port.name).to_owned(), port.app_protocol.clone())
}

fn port((port, protocol, name, app_protocol): PortKey) -> EndpointPort {
    let name = (!name.is_empty()).then_some(name);
    EndpointPort { port, protocol: Some(protocol), name, app_protocol }
}
