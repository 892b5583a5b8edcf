//! Where a request comes from.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;

use crate::edge::Peer;

/// All that a request tells of its way here, the nearest last. Only the last one is not the
/// client's word; a client in this process has none.
pub(super) fn addresses(parts: &Parts) -> Vec<IpAddr> {
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let address = |text: &str| text.trim().parse::<IpAddr>().ok().map(|one| one.to_canonical());
    let forwarded = header("x-forwarded-for").unwrap_or_default();
    let mut addresses: Vec<IpAddr> = forwarded.split(',').filter_map(address).collect();
    if let Some(real) = header("x-real-ip").and_then(address)
        && !addresses.contains(&real)
    {
        addresses.push(real);
    }
    let peer = parts.extensions.get::<Arc<Peer>>().map(|peer| peer.address.ip().to_canonical());
    if let Some(peer) = peer
        && addresses.last() != Some(&peer)
    {
        addresses.push(peer);
    }
    addresses
}
