//! Which networks hold which addresses, and whether one can go.

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::net::IpAddr;

use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};

use crate::part::text;

/// Who takes addresses for Services; those of others are none of ours.
const MANAGED_BY: (&str, &str) = ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");

/// Whether no address would be without a network if this one went: others have all of it, or all
/// that is taken from it.
pub(super) fn is_free(
    network: &ServiceCIDR,
    all: &[impl Borrow<ServiceCIDR>],
    addresses: &[impl Borrow<IPAddress>],
) -> bool {
    let others = || {
        let others = all.iter().map(Borrow::borrow);
        others.filter(|other| other.metadata.name != network.metadata.name)
    };
    let has_all = |part: Range| others().any(|other| ranges(other).any(|range| range.covers(part)));
    if ranges(network).all(has_all) {
        return true;
    }
    addresses
        .iter()
        .map(Borrow::borrow)
        .all(|address| !gives(network, address) || others().any(|other| gives(other, address)))
}

/// Whether a Service may have this address from this network.
pub(super) fn gives(network: &ServiceCIDR, address: &IPAddress) -> bool {
    let (key, value) = MANAGED_BY;
    let labels = address.metadata.labels.as_ref();
    if labels.and_then(|labels| labels.get(key)).is_none_or(|manager| manager != value) {
        return false;
    }
    let Ok(address) = text(&address.metadata.name).parse() else { return false };
    ranges(network).any(|range| range.gives(address))
}

/// Whether two networks have an address in common.
pub(super) fn meet(one: &ServiceCIDR, other: &ServiceCIDR) -> bool {
    ranges(one).any(|range| ranges(other).any(|other| range.covers(other) || other.covers(range)))
}

/// From the first address of a network to its last.
#[derive(Clone, Copy)]
struct Range {
    is_v4: bool,
    first: u128,
    last: u128,
}

fn ranges(network: &ServiceCIDR) -> impl Iterator<Item = Range> {
    let texts = network.spec.iter().flat_map(|spec| spec.cidrs.iter().flatten());
    texts.filter_map(|text| Range::parse(text))
}

impl Range {
    /// `None` for what the server does not take.
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let (is_v4, bits, width) = bits(address.parse().ok()?);
        let free = width.checked_sub(length.parse().ok()?)?;
        let hosts = 1u128.checked_shl(free).map_or(u128::MAX, |size| size - 1);
        Some(Self { is_v4, first: bits & !hosts, last: bits | hosts })
    }

    fn covers(self, other: Self) -> bool {
        self.is_v4 == other.is_v4 && self.first <= other.first && other.last <= self.last
    }

    /// The address of the network itself is given to nobody, nor in IPv4 that of all in it.
    fn gives(self, address: IpAddr) -> bool {
        let (is_v4, bits, _) = bits(address);
        let last = if is_v4 { self.last.saturating_sub(1) } else { self.last };
        is_v4 == self.is_v4 && self.first < bits && bits <= last
    }
}

/// Whether it is IPv4, its number, and how many bits that has.
fn bits(address: IpAddr) -> (bool, u128, u32) {
    match address {
        IpAddr::V4(ip) => (true, ip.to_bits().into(), u32::BITS),
        IpAddr::V6(ip) => (false, ip.to_bits(), u128::BITS),
    }
}
