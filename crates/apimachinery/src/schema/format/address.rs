//! Addresses of networks and interfaces.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Anything with a dot that is an address, even `::ffff:1.2.3.4`; leading zeros are fine.
pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.') && (sloppy_ipv4(text).is_some() || sloppy_ipv6(text))
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let bits = match () {
        () if sloppy_ipv4(address).is_some() => 32,
        () if sloppy_ipv6(address) => 128,
        () => return false,
    };
    !length.is_empty()
        && length.bytes().all(|b| b.is_ascii_digit())
        && length.parse::<u32>().is_ok_and(|length| length <= bits)
}

/// 6, 8 or 20 bytes: `01:23:45:67:89:ab`, `01-23-…`, `0123.4567.89ab`.
pub(super) fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (separator, digits) = match (bytes.get(2), bytes.get(4)) {
        (Some(&separator @ (b':' | b'-')), _) => (separator, 2),
        (_, Some(b'.')) => (b'.', 4),
        _ => return false,
    };
    let groups: Vec<&[u8]> = bytes.split(|byte| *byte == separator).collect();
    matches!(groups.len() * digits / 2, 6 | 8 | 20)
        && groups
            .iter()
            .all(|group| group.len() == digits && group.iter().all(u8::is_ascii_hexdigit))
}

fn sloppy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let significant = part.trim_start_matches('0');
        *octet = if significant.is_empty() { 0 } else { significant.parse().ok()? };
    }
    parts.next().is_none().then(|| octets.into())
}

fn sloppy_ipv6(text: &str) -> bool {
    match text.rsplit_once(':') {
        Some((head, tail)) if tail.contains('.') => sloppy_ipv4(tail)
            .is_some_and(|tail| format!("{head}:{tail}").parse::<Ipv6Addr>().is_ok()),
        _ => text.parse::<Ipv6Addr>().is_ok(),
    }
}
