//! Where processes of this machine listen, as the kernel tells it.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The state of a socket that waits for connections.
const LISTENS: &str = "0A";

/// Where these processes wait for connections.
pub(super) fn of(pids: &[i32]) -> Vec<SocketAddr> {
    let own: HashSet<u64> = pids.iter().flat_map(|pid| held(*pid)).collect();
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|path| fs::read_to_string(path).unwrap_or_default());
    let all = tables.iter().flat_map(|table| listeners(table));
    all.filter(|(_, inode)| own.contains(inode)).map(|(place, _)| place).collect()
}

/// The sockets that a process has open, by their numbers.
fn held(pid: i32) -> Vec<u64> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    let number = |link: std::path::PathBuf| {
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    links.filter_map(number).collect()
}

/// The listening sockets of a table of the kernel, with their numbers.
pub(super) fn listeners(table: &str) -> Vec<(SocketAddr, u64)> {
    let read = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        (*state == LISTENS).then_some(())?;
        let (address, port) = local.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        Some((SocketAddr::new(address_of(address)?, port), inode.parse().ok()?))
    };
    table.lines().filter_map(read).collect()
}

/// An address as words of the machine, each in the machine's order.
fn address_of(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = text.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    if text.len() == 8 {
        return Some(Ipv4Addr::from(word(0)?).into());
    }
    let words = [word(0)?, word(1)?, word(2)?, word(3)?];
    let bytes: [u8; 16] = words.concat().try_into().ok()?;
    Some(Ipv6Addr::from(bytes).to_canonical())
}
