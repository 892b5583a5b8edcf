//! Addresses of this machine, where they are not ours to give.

use std::net::Ipv4Addr;
use std::path::Path;

/// There are none.
#[derive(Debug)]
pub struct LocalAddresses(std::convert::Infallible);

/// Why an address is not ours.
#[derive(Debug, thiserror::Error)]
#[error("add an address to this machine")]
pub struct AddError;

impl LocalAddresses {
    pub fn of(_: &Path) -> Option<Self> {
        None
    }

    pub fn add(&self, _: Ipv4Addr) -> Result<(), AddError> {
        match self.0 {}
    }

    pub fn add_one_of(&self, _: impl Iterator<Item = Ipv4Addr> + Clone) -> Option<Ipv4Addr> {
        match self.0 {}
    }

    pub fn remove(&self, _: Ipv4Addr) {
        match self.0 {}
    }

    pub fn remove_if(&self, _: impl Fn(Ipv4Addr) -> bool) {
        match self.0 {}
    }
}
