//! Addresses that we give to this machine, so that pods and Services have some of their own.
//!
//! They are on the loopback interface, one by one, under a label that tells ours from all others:
//! nothing else is ever changed or taken away, and what a process that was killed has left is found
//! again by the next. It takes the right to administer the network (`CAP_NET_ADMIN`).

mod netlink;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use tracing::{debug, warn};

use self::netlink::Netlink;

/// The addresses of one owner. They go when it is dropped.
#[derive(Debug)]
pub struct LocalAddresses {
    netlink: Netlink,
    label: String,
    held: Mutex<BTreeSet<Ipv4Addr>>,
}

/// Why an address is not ours.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// Another will do.
    #[error("{0} is an address of this machine already")]
    Taken(Ipv4Addr),
    /// Traffic to a real network would end here.
    #[error("{address} is in the network {network}, which this machine reaches")]
    Elsewhere { address: Ipv4Addr, network: String },
    #[error("add an address to this machine")]
    Refused(#[source] std::io::Error),
}

impl LocalAddresses {
    /// The addresses of whoever owns this directory, those included that were left when it was
    /// killed. None where addresses cannot be added.
    pub fn of(directory: &Path) -> Option<Self> {
        let label = label(directory);
        let netlink = Netlink::open().ok()?;
        // What is not there cannot be removed, but only those who might are told so.
        match netlink.remove(Ipv4Addr::UNSPECIFIED, &label) {
            Err(Errno::ADDRNOTAVAIL) => {}
            told => {
                debug!(?told, "addresses cannot be added to this machine");
                return None;
            }
        }
        let found = netlink.addresses().ok()?.into_iter().filter(|it| it.label == label);
        let held = found.map(|it| it.address).collect();
        Some(LocalAddresses { netlink, label, held: Mutex::new(held) })
    }

    /// Has this machine answer at an address.
    ///
    /// # Errors
    /// It is somebody else's.
    pub fn add(&self, address: Ipv4Addr) -> Result<(), AddError> {
        let mut held = self.held();
        if held.contains(&address) {
            return Ok(());
        }
        let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
        if let Some(network) = network_of(address, &routes) {
            return Err(AddError::Elsewhere { address, network });
        }
        match self.netlink.add(address, &self.label) {
            Ok(()) => {
                held.insert(address);
                Ok(())
            }
            Err(Errno::EXIST) => Err(AddError::Taken(address)),
            Err(error) => Err(AddError::Refused(error.into())),
        }
    }

    /// Has this machine answer at one of these addresses: one that is ours already, or else the
    /// first that is nobody's. None if there is no such.
    pub fn add_one_of(
        &self,
        mut addresses: impl Iterator<Item = Ipv4Addr> + Clone,
    ) -> Option<Ipv4Addr> {
        let ours = addresses.clone().find(|address| self.held().contains(address));
        ours.or_else(|| addresses.find(|address| self.add(*address).is_ok()))
    }

    /// Takes an address away that is one of ours.
    pub fn remove(&self, address: Ipv4Addr) {
        if !self.held().remove(&address) {
            return;
        }
        match self.netlink.remove(address, &self.label) {
            // Somebody was faster.
            Ok(()) | Err(Errno::ADDRNOTAVAIL) => {}
            Err(error) => warn!(%address, %error, "an address of this machine stays"),
        }
    }

    /// Takes all addresses away for which this holds.
    pub fn remove_if(&self, goes: impl Fn(Ipv4Addr) -> bool) {
        let going: Vec<Ipv4Addr> = self.held().iter().copied().filter(|it| goes(*it)).collect();
        going.into_iter().for_each(|address| self.remove(address));
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<Ipv4Addr>> {
        // Nothing that holds it panics half-way.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LocalAddresses {
    fn drop(&mut self) {
        self.remove_if(|_| true);
    }
}

/// What tells the addresses of an owner from all others. It begins with the interface's name, as
/// labels must, and is short, as they must be.
fn label(directory: &Path) -> String {
    let hash =
        directory.as_os_str().as_encoded_bytes().iter().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
    format!("lo:kw{hash:08x}")
}

/// The network beyond this machine that an address is in, by the kernel's table of routes; the way
/// to everywhere is no network.
fn network_of(address: Ipv4Addr, routes: &str) -> Option<String> {
    let number = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::swap_bytes);
    routes.lines().skip(1).find_map(|line| {
        let mut columns = line.split_ascii_whitespace();
        let (interface, destination) = (columns.next()?, number(columns.next()?)?);
        let mask = number(columns.nth(5)?)?;
        let is_in = mask != 0 && u32::from(address) & mask == destination;
        (is_in && interface != "lo").then(|| {
            let network = Ipv4Addr::from(destination);
            format!("{network}/{} of {interface}", mask.count_ones())
        })
    })
}
