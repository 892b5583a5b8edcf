//! The addresses of pods whose network is the machine's.
//!
//! The API takes no loopback addresses for endpoints of Services, so pods are shown in a network
//! that nobody routes. Where addresses can be given to this machine, they are its own, and pods are
//! where they are shown. Elsewhere pods listen at the loopback address with the same end, and
//! whoever wants to reach them from this machine has to know that. So it is with ports that only
//! administrators may have: who stands in for an image listens higher up, for others.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::local::{AddError, LocalAddresses};

/// 198.18.0.0/16, which is set aside for measuring devices that are connected to nothing else.
const SHOWN: [u8; 2] = [198, 18];
const LOOPBACK: [u8; 2] = [127, 18];
/// By so much another port is higher than the one that is not to be had.
const HIGHER: u16 = 10_000;
/// Unless the machine says otherwise, ports below this are for administrators.
const FREE_PORTS: u16 = 1024;

/// Who has which address.
pub(super) struct Addresses {
    locals: Option<Arc<LocalAddresses>>,
    by_pod: Mutex<HashMap<String, Ipv4Addr>>,
    /// Where to begin, so that the pods of two clusters are not in each other's way.
    first: u16,
    /// Ports below this are not to be had by this process, nor by those that it starts.
    free_ports: u16,
}

impl Addresses {
    /// `known` are those of pods from before, and `free_ports` is the first port that can be had.
    pub(super) fn new(
        directory: &Path,
        locals: Option<Arc<LocalAddresses>>,
        known: HashMap<String, Ipv4Addr>,
        free_ports: u16,
    ) -> Self {
        for address in known.values().filter(|address| is_shown(**address)) {
            if let Some(locals) = &locals {
                // One that cannot be had again is missed by its pod, which will say so.
                let _ = locals.add(*address);
            }
        }
        let path = directory.as_os_str().as_encoded_bytes();
        let first = path.iter().fold(0_u16, |sum, byte| sum.rotate_left(3) ^ u16::from(*byte));
        Addresses { locals, by_pod: Mutex::new(known), first, free_ports }
    }

    /// The address of a pod that has one.
    pub(super) fn of(&self, uid: &str) -> Option<Ipv4Addr> {
        self.by_pod().get(uid).copied()
    }

    /// The address of a pod, which no other has.
    pub(super) fn give(&self, uid: &str) -> Result<Ipv4Addr, AddError> {
        let mut by_pod = self.by_pod();
        if let Some(known) = by_pod.get(uid) {
            return Ok(*known);
        }
        let mut number = self.first;
        loop {
            number = number.wrapping_add(1);
            let [high, low] = number.to_be_bytes();
            let address = Ipv4Addr::new(SHOWN[0], SHOWN[1], high, low);
            let is_taken = by_pod.values().any(|taken| *taken == address);
            if matches!(low, 0 | 255) || is_taken {
                continue;
            }
            match self.locals.as_ref().map(|locals| locals.add(address)) {
                Some(Err(AddError::Taken(_))) => {}
                Some(Err(error)) => return Err(error),
                Some(Ok(())) | None => {
                    by_pod.insert(uid.to_owned(), address);
                    return Ok(address);
                }
            }
        }
    }

    pub(super) fn take_back(&self, uid: &str) {
        let address = self.by_pod().remove(uid);
        if let (Some(address), Some(locals)) = (address, &self.locals) {
            locals.remove(address);
        }
    }

    /// Takes back what nobody has any more: an agent that was killed has left it.
    pub(super) fn sweep(&self) {
        if let Some(locals) = &self.locals {
            let by_pod = self.by_pod();
            locals.remove_if(|address| {
                is_shown(address) && !by_pod.values().any(|known| *known == address)
            });
        }
    }

    /// Where the programs of a pod listen that is shown at this address.
    pub(super) fn own(&self, shown: Ipv4Addr) -> IpAddr {
        if self.locals.is_some() || !is_shown(shown) {
            return shown.into();
        }
        let [_, _, high, low] = shown.octets();
        Ipv4Addr::new(LOOPBACK[0], LOOPBACK[1], high, low).into()
    }

    /// The port at which a stand-in listens for this one.
    pub(super) fn port(&self, port: u16) -> u16 {
        if port < self.free_ports { port + HIGHER } else { port }
    }

    /// Where to connect to, to reach a pod that is shown there.
    pub(super) fn reach(&self, shown: SocketAddr) -> SocketAddr {
        match shown.ip() {
            IpAddr::V4(address) if is_shown(address) => {
                SocketAddr::new(self.own(address), self.port(shown.port()))
            }
            _ => shown,
        }
    }

    fn by_pod(&self) -> MutexGuard<'_, HashMap<String, Ipv4Addr>> {
        // Nothing that holds it panics half-way.
        self.by_pod.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first of the ports that this process may have.
pub(super) fn free_ports() -> u16 {
    // Who is refused the lowest is refused all of them.
    match TcpListener::bind((Ipv4Addr::LOCALHOST, 1)) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let said = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
            let first = said.ok().and_then(|said| said.trim().parse().ok());
            first.unwrap_or(FREE_PORTS).min(FREE_PORTS)
        }
        _ => 0,
    }
}

fn is_shown(address: Ipv4Addr) -> bool {
    address.octets()[..2] == SHOWN
}
