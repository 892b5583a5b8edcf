//! The addresses of pods whose network is the machine's.
//!
//! The API takes no loopback addresses for endpoints of Services, so pods are shown in a network
//! that nobody routes. Where addresses can be given to this machine, they are its own, and pods are
//! where they are shown. Elsewhere pods listen at the loopback address with the same end, and
//! whoever wants to reach them from this machine has to know that.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::local::{AddError, LocalAddresses};

/// 198.18.0.0/16, which is set aside for measuring devices that are connected to nothing else.
const SHOWN: [u8; 2] = [198, 18];
const LOOPBACK: [u8; 2] = [127, 18];

/// Who has which address.
pub(super) struct Addresses {
    locals: Option<Arc<LocalAddresses>>,
    by_pod: Mutex<HashMap<String, Ipv4Addr>>,
    /// Where to begin, so that the pods of two clusters are not in each other's way.
    first: u16,
}

impl Addresses {
    /// `known` are those of pods from before.
    pub(super) fn new(
        directory: &Path,
        locals: Option<Arc<LocalAddresses>>,
        known: HashMap<String, Ipv4Addr>,
    ) -> Self {
        for address in known.values().filter(|address| is_shown(**address)) {
            if let Some(locals) = &locals {
                // One that cannot be had again is missed by its pod, which will say so.
                let _ = locals.add(*address);
            }
        }
        let path = directory.as_os_str().as_encoded_bytes();
        let first = path.iter().fold(0_u16, |sum, byte| sum.rotate_left(3) ^ u16::from(*byte));
        Addresses { locals, by_pod: Mutex::new(known), first }
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

    /// Where a pod is that is shown at this address.
    pub(super) fn reach(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(shown) if self.locals.is_none() && is_shown(shown) => {
                let [_, _, high, low] = shown.octets();
                Ipv4Addr::new(LOOPBACK[0], LOOPBACK[1], high, low).into()
            }
            other => other,
        }
    }

    fn by_pod(&self) -> MutexGuard<'_, HashMap<String, Ipv4Addr>> {
        // Nothing that holds it panics half-way.
        self.by_pod.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_shown(address: Ipv4Addr) -> bool {
    address.octets()[..2] == SHOWN
}
