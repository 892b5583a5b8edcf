//! The kernel's own protocol for addresses of interfaces, as much of it as is needed: adding,
//! removing and listing those of the loopback interface.

use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_ADDRESS: u16 = 20;
const REMOVE_ADDRESS: u16 = 21;
const GET_ADDRESS: u16 = 22;

const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
/// Fail if it is there, make it if not.
const EXCLUSIVE: u16 = 0x200 | 0x400;
/// All there are.
const DUMP: u16 = 0x300;

const INET: u8 = 2;
const SCOPE_HOST: u8 = 254;
const ATTRIBUTE_LOCAL: u16 = 2;
const ATTRIBUTE_LABEL: u16 = 3;

const HEADER_BYTES: usize = 16;
const ADDRESS_BYTES: usize = 8;
/// More than the kernel sends at once.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The kernel's number of the loopback interface, which is the first of every network namespace.
const LOOPBACK: u32 = 1;

/// An open line to the kernel.
#[derive(Debug)]
pub(super) struct Netlink(Mutex<OwnedFd>);

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) address: Ipv4Addr,
    pub(super) label: String,
}

impl Netlink {
    pub(super) fn open() -> Result<Self, Errno> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok(Netlink(Mutex::new(socket)))
    }

    pub(super) fn add(&self, address: Ipv4Addr, label: &str) -> Result<(), Errno> {
        self.ask(&request(NEW_ADDRESS, ACKNOWLEDGE | EXCLUSIVE, address, label)).map(drop)
    }

    pub(super) fn remove(&self, address: Ipv4Addr, label: &str) -> Result<(), Errno> {
        self.ask(&request(REMOVE_ADDRESS, ACKNOWLEDGE, address, label)).map(drop)
    }

    /// All addresses of this machine.
    pub(super) fn addresses(&self) -> Result<Vec<Address>, Errno> {
        self.ask(&message(GET_ADDRESS, DUMP, &address_header(0)))
    }

    fn ask(&self, request: &[u8]) -> Result<Vec<Address>, Errno> {
        // Answers come in the order of questions, so one is asked at a time.
        let socket = self.0.lock().map_err(|_| Errno::INVAL)?;
        rustix::net::send(&*socket, request, SendFlags::empty())?;
        let mut found = Vec::new();
        let mut buffer = vec![MaybeUninit::<u8>::uninit(); ANSWER_BYTES_MAX];
        loop {
            let ((bytes, _), _) = rustix::net::recv(&*socket, &mut buffer[..], RecvFlags::empty())?;
            if read(bytes, &mut found)? {
                return Ok(found);
            }
        }
    }
}

/// Reads one part of an answer; true if it was the last.
pub(super) fn read(mut bytes: &[u8], found: &mut Vec<Address>) -> Result<bool, Errno> {
    while let Some((header, _)) = bytes.split_at_checked(HEADER_BYTES) {
        let number = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let length = number(0) as usize;
        let body = bytes.get(HEADER_BYTES..length).ok_or(Errno::BADMSG)?;
        match kind {
            ERROR => {
                let code = body.first_chunk().map(|code| i32::from_ne_bytes(*code));
                return match code.ok_or(Errno::BADMSG)? {
                    0 => Ok(true),
                    code => Err(Errno::from_raw_os_error(-code)),
                };
            }
            DONE => return Ok(true),
            NEW_ADDRESS => found.extend(address(body)),
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

fn address(body: &[u8]) -> Option<Address> {
    let (header, mut attributes) = body.split_at_checked(ADDRESS_BYTES)?;
    if header[0] != INET {
        return None;
    }
    let (mut local, mut label) = (None, String::new());
    while let Some((head, _)) = attributes.split_first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = attributes.get(4..length)?;
        match u16::from_ne_bytes([head[2], head[3]]) {
            ATTRIBUTE_LOCAL => local = value.first_chunk::<4>().map(|it| Ipv4Addr::from(*it)),
            ATTRIBUTE_LABEL => {
                label = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
            }
            _ => {}
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(Address { address: local?, label })
}

fn request(kind: u16, flags: u16, address: Ipv4Addr, label: &str) -> Vec<u8> {
    let mut body = address_header(32);
    attribute(&mut body, ATTRIBUTE_LOCAL, &address.octets());
    attribute(&mut body, ATTRIBUTE_LABEL, format!("{label}\0").as_bytes());
    message(kind, flags, &body)
}

fn address_header(prefix: u8) -> Vec<u8> {
    let mut header = vec![INET, prefix, 0, SCOPE_HOST];
    header.extend(LOOPBACK.to_ne_bytes());
    header
}

fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(value.len() + 4).expect("an address or a label is short");
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER_BYTES + body.len()).expect("a request is short");
    let mut message = Vec::from(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((REQUEST | flags).to_ne_bytes());
    // A number for the question and the name of who asks, neither of which is needed.
    message.extend([0; 8]);
    message.extend(body);
    message
}
