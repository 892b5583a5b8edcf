//! Reservations in the store.
//!
//! An address is taken by creating its `IPAddress`, which only one can. Ports are bits of one
//! `RangeAllocation`, changed by compare-and-swap. Both are where upstream has them.

mod bitmap;

use std::fmt::Write;
use std::future::ready;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::{try_join, try_join_all};
use jiff::Timestamp;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::time::Time;
use kubewright_apimachinery::{json, proto};
use kubewright_store::{
    Change, DeleteError, Expect, Key, Put, PutError, Query, Rev, Store, Unavailable, UpdateError,
};
use serde_json::{Value, json};

use self::bitmap::Bitmap;
use super::{AddressWish, Family, Holdings, Plan, PortPlace, PortWish, Refusal};
use crate::kinds::ip::Cidr;

const ADDRESSES: &str = "/registry/ipaddresses/";
const CIDRS: &str = "/registry/servicecidrs/";
const PORTS: &str = "/registry/ranges/servicenodeports";

/// Gives out addresses and ports, and takes them back.
pub struct Allocator<I> {
    store: Arc<Store<I>>,
    /// Where addresses come from while there is no ServiceCIDR.
    cidrs: Vec<Cidr>,
    ports: RangeInclusive<u16>,
    form: Form,
}

/// How objects are stored.
#[derive(Clone, Copy)]
pub struct Form {
    pub encode: fn(&Value) -> Bytes,
    /// `None` for what is no object.
    pub decode: fn(&[u8]) -> Option<Value>,
}

/// What was taken for a Service that is not written yet, and what it gives up when it is.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use = "a reservation is committed when the Service is written, and reverted when it is not"]
pub struct Reserved {
    taken: Holdings,
    released: Holdings,
}

/// Why nothing was reserved.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    #[error("reserve what the service asks for")]
    Refused(#[source] Refusal),
    #[error("reserve addresses and ports")]
    Unavailable(#[source] Unavailable),
}

impl Form {
    /// JSON that does not say its kind, which the key does. Reads protobuf too.
    pub const JSON: Form = Form {
        encode: |object| {
            let mut object = object.clone();
            if let Some(fields) = object.as_object_mut() {
                fields.shift_remove("apiVersion");
                fields.shift_remove("kind");
            }
            json::to_vec(&object).into()
        },
        decode: |bytes| match bytes.starts_with(b"k8s\0") {
            true => proto::decode(bytes).ok(),
            false => json::decode(bytes).ok().map(|decoded| decoded.value),
        },
    };
}

impl<I: Send + Sync + 'static> Allocator<I> {
    /// `cidrs` are what the server was started with, as text that has been checked.
    ///
    /// # Panics
    ///
    /// Panics if one of them is no network.
    pub fn new(
        store: Arc<Store<I>>,
        cidrs: &[impl AsRef<str>],
        ports: RangeInclusive<u16>,
        form: Form,
    ) -> Self {
        let parse = |text: &str| Cidr::parse(text).expect("the ranges of the server are sound");
        let cidrs = cidrs.iter().map(|text| parse(text.as_ref())).collect();
        Allocator { store, cidrs, ports, form }
    }

    /// Takes all that a plan wants and writes it into the Service, or takes nothing. A dry run
    /// makes up values that nobody has reserved.
    pub async fn reserve(
        &self,
        plan: &Plan,
        service: &mut Value,
        now: Timestamp,
        dry_run: bool,
    ) -> Result<Reserved, ReserveError> {
        if dry_run {
            let addresses = self.imagine_addresses(&plan.addresses, service)?;
            let ports = self.imagine_ports(&plan.ports)?;
            plan.grant(service, &addresses, &ports);
            return Ok(Reserved::default());
        }
        let mut reserved = Reserved::default();
        for wish in &plan.addresses {
            match self.take_address(wish, service, now).await {
                Ok(address) => reserved.taken.addresses.push(address),
                Err(error) => {
                    self.revert(reserved).await?;
                    return Err(error);
                }
            }
        }
        match self.take_ports(&plan.ports).await {
            Ok(ports) => reserved.taken.ports = ports,
            Err(error) => {
                self.revert(reserved).await?;
                return Err(error);
            }
        }
        plan.grant(service, &reserved.taken.addresses, &reserved.taken.ports);
        reserved.released = plan.released.clone();
        Ok(reserved)
    }

    /// The Service is written: what it gave up is free.
    pub async fn commit(&self, reserved: Reserved) -> Result<(), ReserveError> {
        self.release(&reserved.released).await
    }

    /// The Service was not written: what was taken for it is free.
    pub async fn revert(&self, reserved: Reserved) -> Result<(), ReserveError> {
        self.release(&reserved.taken).await
    }

    /// Gives back what a Service held. What is already free stays so.
    pub async fn release(&self, held: &Holdings) -> Result<(), ReserveError> {
        for address in &held.addresses {
            match self.store.delete(&address_key(*address), Expect::Anything).await {
                Ok(_) | Err(DeleteError::NotFound | DeleteError::Conflict { .. }) => {}
                Err(DeleteError::Unavailable(why)) => return Err(ReserveError::Unavailable(why)),
            }
        }
        if held.ports.is_empty() {
            return Ok(());
        }
        self.change_ports(|bitmap| {
            held.ports.iter().for_each(|port| bitmap.release(*port));
            Ok(())
        })
        .await
    }

    /// Takes what existing Services hold, should it be free: after the range of ports has changed,
    /// or when a store was written by something that keeps no such books.
    pub async fn repair(&self, services: &[Value], now: Timestamp) -> Result<(), ReserveError> {
        let (mut addresses, mut ports) = (Vec::new(), Vec::new());
        for service in services {
            let held = super::holdings(service);
            let create = |address| self.create_address(address, service, now);
            addresses.extend(held.addresses.into_iter().map(create));
            ports.extend(held.ports);
        }
        let ports = self.change_ports(|bitmap| {
            // A port outside of the range, or of two Services, is theirs to sort out.
            ports.iter().for_each(|port| drop(bitmap.take(*port)));
            Ok(())
        });
        try_join(try_join_all(addresses), ports).await.map(drop)
    }

    async fn take_address(
        &self,
        wish: &AddressWish,
        service: &Value,
        now: Timestamp,
    ) -> Result<IpAddr, ReserveError> {
        let ranges = self.ranges(wish.family);
        if let Some(address) = wish.address {
            let problem = if !ranges.iter().any(|range| range.holds(address)) {
                "the provided network does not match the current range"
            } else if !self.create_address(address, service, now).await? {
                "provided IP is already allocated"
            } else {
                return Ok(address);
            };
            let text = address_text(service, wish.index);
            let detail = format!("failed to allocate IP {text}: {problem}");
            return Err(refuse_addresses(service, detail));
        }
        for address in ranges.iter().flat_map(|range| range.candidates(random())) {
            let key = address_key(address);
            if self.store.get(key.as_str()).is_none()
                && self.create_address(address, service, now).await?
            {
                return Ok(address);
            }
        }
        let name = service["metadata"]["name"].as_str().unwrap_or_default();
        let name = json::go_quote(name);
        Err(ReserveError::Refused(Refusal::Internal(format!(
            "failed to allocate a serviceIP for Service {name}: range is full"
        ))))
    }

    /// Whether the address was free.
    async fn create_address(
        &self,
        address: IpAddr,
        service: &Value,
        now: Timestamp,
    ) -> Result<bool, ReserveError> {
        let metadata = &service["metadata"];
        let object = json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IPAddress",
            "metadata": {
                "name": address.to_string(),
                "uid": uuid::Uuid::new_v4().to_string(),
                "creationTimestamp": Time::from_unix(now.as_second()).to_value(),
                "labels": {
                    "ipaddress.kubernetes.io/ip-family": Family::of(address).as_str(),
                    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
                },
            },
            "spec": {
                "parentRef": {
                    "resource": "services",
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                },
            },
        });
        let put = Put::new(address_key(address), (self.form.encode)(&object));
        match self.store.put(put.expect(Expect::Absent)).await {
            Ok(_) => Ok(true),
            Err(PutError::Conflict { .. }) => Ok(false),
            Err(PutError::Unavailable(why)) => Err(ReserveError::Unavailable(why)),
            Err(PutError::TooLarge { .. }) => unreachable!("an IPAddress is small"),
        }
    }

    async fn take_ports(&self, wishes: &[PortWish]) -> Result<Vec<i32>, ReserveError> {
        if wishes.is_empty() {
            return Ok(Vec::new());
        }
        self.change_ports(|bitmap| {
            let take = |wish: &PortWish| match wish.port {
                Some(port) => {
                    bitmap.take(port).map_err(|why| refuse_port(wish, port, &why.to_string()))?;
                    Ok(port)
                }
                None => bitmap.take_any(random()).ok_or_else(|| port_range_is_full(wish)),
            };
            wishes.iter().map(take).collect()
        })
        .await
    }

    /// Changes which ports are taken, again whenever another server was faster.
    async fn change_ports<T>(
        &self,
        mut change: impl FnMut(&mut Bitmap) -> Result<T, Refusal>,
    ) -> Result<T, ReserveError> {
        let mut outcome = None;
        let decide = |current: Option<Arc<Rev<I>>>| {
            let before = current.as_ref().map(|rev| self.read_ports(&rev.value));
            let mut after = before.clone().unwrap_or_else(|| Bitmap::new(self.ports.clone()));
            let decision = change(&mut after).map(|value| {
                outcome = Some(value);
                match before.as_ref() == Some(&after) {
                    true => Change::Keep,
                    false => Change::put((self.form.encode)(&self.range_allocation(&after))),
                }
            });
            ready(decision)
        };
        match self.store.update(&Key::new(PORTS), decide).await {
            Ok(_) => Ok(outcome.expect("an update decides at least once")),
            Err(UpdateError::Refused(refusal)) => Err(ReserveError::Refused(refusal)),
            Err(UpdateError::Unavailable(why)) => Err(ReserveError::Unavailable(why)),
            Err(UpdateError::TooLarge { .. }) => unreachable!("a bit for each port fits"),
        }
    }

    /// The bits as stored, or none of them if they are of another range: then they say nothing,
    /// and [`Allocator::repair`] finds those in use.
    fn read_ports(&self, bytes: &[u8]) -> Bitmap {
        let mut bitmap = Bitmap::new(self.ports.clone());
        let object = (self.form.decode)(bytes).unwrap_or_default();
        if object["range"] == bitmap.range() {
            let data = object["data"].as_str().and_then(|text| STANDARD.decode(text).ok());
            bitmap.restore(&data.unwrap_or_default());
        }
        bitmap
    }

    fn range_allocation(&self, bitmap: &Bitmap) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "RangeAllocation",
            "metadata": {},
            "range": bitmap.range(),
            "data": STANDARD.encode(bitmap.bytes()),
        })
    }

    fn imagine_addresses(
        &self,
        wishes: &[AddressWish],
        service: &Value,
    ) -> Result<Vec<IpAddr>, ReserveError> {
        let mut addresses = Vec::new();
        for wish in wishes {
            let Some(range) = self.ranges(wish.family).into_iter().next() else { continue };
            let address = wish.address.unwrap_or(range.cidr.network());
            if wish.address.is_some() && !range.holds(address) {
                let text = address_text(service, wish.index);
                let detail = format!(
                    "failed to allocate IP {text}: the provided IP ({address}) is not in the valid \
                     range. The range of valid IPs is {}",
                    range.cidr
                );
                return Err(refuse_addresses(service, detail));
            }
            addresses.push(address);
        }
        Ok(addresses)
    }

    /// As upstream, a dry run does not ask whether a port is in the range, and makes up ports
    /// that are not.
    fn imagine_ports(&self, wishes: &[PortWish]) -> Result<Vec<i32>, ReserveError> {
        const FIRST_IMAGINED: i32 = 32769;
        let stored = self.store.get(PORTS);
        let taken = stored.map(|rev| self.read_ports(&rev.value));
        let mut ports: Vec<i32> = Vec::new();
        for wish in wishes {
            let port = match wish.port {
                Some(port) => {
                    let is_taken = taken.as_ref().is_some_and(|bitmap| bitmap.has(port));
                    if is_taken || ports.contains(&port) {
                        let why = bitmap::TakeError::Taken.to_string();
                        return Err(ReserveError::Refused(refuse_port(wish, port, &why)));
                    }
                    port
                }
                None => ports.iter().max().map_or(FIRST_IMAGINED, |last| last + 1),
            };
            ports.push(port);
        }
        Ok(ports)
    }

    /// The networks of a family that addresses may be taken from.
    fn ranges(&self, family: Family) -> Vec<AddressRange> {
        let stored = self.store.range(&Query::prefix(CIDRS)).expect("the latest can be listed");
        let mut cidrs: Vec<Cidr> = stored
            .iter()
            .filter_map(|rev| (self.form.decode)(&rev.value))
            .filter(is_ready)
            .flat_map(|object| {
                let texts = object["spec"]["cidrs"].as_array().cloned().unwrap_or_default();
                texts.into_iter().filter_map(|text| Cidr::parse(text.as_str()?))
            })
            .collect();
        if cidrs.is_empty() {
            cidrs.clone_from(&self.cidrs);
        }
        let of_family = cidrs.into_iter().filter(|cidr| Family::of(cidr.address) == family);
        of_family.map(|cidr| AddressRange { cidr }).collect()
    }
}

/// A network as a source of addresses.
struct AddressRange {
    cidr: Cidr,
}

impl AddressRange {
    /// The lowest and the highest address to give out: never that of the network itself, and in
    /// IPv4 not that of all in it.
    fn bounds(&self) -> (u128, u128) {
        let network = bits(self.cidr.network());
        let host_bits = u32::from(self.cidr.width() - self.cidr.bits);
        let last = network | 1u128.checked_shl(host_bits).unwrap_or(0).wrapping_sub(1);
        (network + 1, if self.cidr.address.is_ipv4() { last - 1 } else { last })
    }

    fn holds(&self, address: IpAddr) -> bool {
        let (first, last) = self.bounds();
        self.cidr.contains(address) && (first..=last).contains(&bits(address))
    }

    /// All addresses, from a random one on: those of the upper part before those of the lower,
    /// which people choose from.
    fn candidates(&self, start: u64) -> impl Iterator<Item = IpAddr> + use<> {
        let (first, last) = self.bounds();
        let size = (last + 1).saturating_sub(first);
        let lower = match size + if self.cidr.address.is_ipv4() { 2 } else { 1 } {
            ..=16 => 0,
            size => (size / 16).clamp(16, 256),
        };
        let is_ipv4 = self.cidr.address.is_ipv4();
        let rotated = move |from: u128, size: u128| {
            let start = u128::from(start).checked_rem(size).unwrap_or(0);
            (0..size).map(move |step| from + (start + step) % size)
        };
        rotated(first + lower, size - lower.min(size)).chain(rotated(first, lower.min(size))).map(
            move |bits| match u32::try_from(bits) {
                Ok(bits) if is_ipv4 => IpAddr::V4(bits.into()),
                _ => IpAddr::V6(bits.into()),
            },
        )
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

fn address_key(address: IpAddr) -> Key {
    let mut key = ADDRESSES.to_owned();
    write!(key, "{address}").expect("text can be written to");
    Key::new(key)
}

/// A ServiceCIDR that nobody has spoken for is ready: maybe no controller runs.
fn is_ready(cidr: &Value) -> bool {
    let conditions = cidr["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    cidr["metadata"]["deletionTimestamp"].is_null()
        && ready.is_none_or(|condition| condition["status"] == "True")
}

/// The address as the client spelt it.
fn address_text(service: &Value, index: usize) -> String {
    service["spec"]["clusterIPs"][index].as_str().unwrap_or_default().to_owned()
}

fn refuse_addresses(service: &Value, detail: String) -> ReserveError {
    let spec = &service["spec"];
    let n_families = spec["ipFamilies"].as_array().map_or(0, Vec::len);
    let mut shown = spec["clusterIPs"].as_array().cloned().unwrap_or_default();
    shown.resize(n_families.max(shown.len()), "".into());
    let at = Path::new("spec");
    let error = Error::invalid(&at.child("clusterIPs"), shown, detail);
    ReserveError::Refused(Refusal::Invalid(vec![error]))
}

fn refuse_port(wish: &PortWish, port: i32, why: &str) -> Refusal {
    match &wish.place {
        PortPlace::HealthCheck => Refusal::Internal(format!(
            "failed to allocate requested HealthCheck NodePort {port}: {why}"
        )),
        PortPlace::Ports(indices) => {
            let spec = Path::new("spec");
            let ports = spec.child("ports");
            let at = ports.index(indices[0]);
            Refusal::Invalid(vec![Error::invalid(&at.child("nodePort"), port, why)])
        }
    }
}

fn port_range_is_full(wish: &PortWish) -> Refusal {
    Refusal::Internal(match wish.place {
        PortPlace::Ports(_) => "failed to allocate a nodePort: range is full".to_owned(),
        PortPlace::HealthCheck => {
            "failed to allocate a HealthCheck NodePort 0: range is full".to_owned()
        }
    })
}

/// Where to start looking. Servers that start at different places rarely meet.
fn random() -> u64 {
    getrandom::u64().expect("the system has random numbers")
}
