//! Addresses and networks as text: what upstream accepts, what it only tolerates, and what it says.
//!
//! Fields that are older than Go's strict parser take any spelling of an address that is not
//! ambiguous, and whatever they held before; newer fields want the one canonical spelling.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::json::go_quote;

/// An address in a field that takes any spelling, and the spellings in `kept` whatever they are.
pub(super) fn check_legacy(at: &Path<'_>, text: &str, kept: &[String]) -> Vec<Error> {
    match kept.iter().any(|old| old == text) {
        true => Vec::new(),
        false => check_parsed(at, text),
    }
}

/// An address in a field that takes the canonical spelling only.
pub(super) fn check(at: &Path<'_>, text: &str) -> Vec<Error> {
    let errors = check_parsed(at, text);
    match parse(text) {
        Some(ip) if errors.is_empty() && ip.to_string() != text => {
            let canonical = go_quote(&ip.to_string());
            vec![Error::invalid(at, text, format!("must be in canonical form ({canonical})"))]
        }
        _ => errors,
    }
}

fn check_parsed(at: &Path<'_>, text: &str) -> Vec<Error> {
    if parse(text).is_none() {
        let wanted = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        return vec![Error::invalid(at, text, wanted)];
    }
    match text.parse() {
        // Only leading zeros make the difference between the two parsers.
        Err(_) => vec![Error::invalid(at, text, "must not have leading 0s")],
        Ok(IpAddr::V6(ip)) if ip.to_ipv4_mapped().is_some() => {
            vec![Error::invalid(at, text, "must not be an IPv4-mapped IPv6 address")]
        }
        Ok(_) => Vec::new(),
    }
}

/// A network in a field that takes any spelling, and the spellings in `kept` whatever they are.
pub(super) fn check_cidr_legacy(at: &Path<'_>, text: &str, kept: &[String]) -> Vec<Error> {
    match kept.iter().any(|old| old == text) {
        true => Vec::new(),
        false => check_cidr_parsed(at, text),
    }
}

/// A network in a field that takes the canonical spelling only.
pub(super) fn check_cidr(at: &Path<'_>, text: &str) -> Vec<Error> {
    let errors = check_cidr_parsed(at, text);
    match Cidr::parse(text) {
        Some(cidr) if errors.is_empty() && cidr.to_string() != text => {
            let canonical = go_quote(&cidr.to_string());
            vec![Error::invalid(at, text, format!("must be in canonical form ({canonical})"))]
        }
        _ => errors,
    }
}

fn check_cidr_parsed(at: &Path<'_>, text: &str) -> Vec<Error> {
    let Some(cidr) = Cidr::parse(text) else {
        let wanted = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        return vec![Error::invalid(at, text, wanted)];
    };
    let problem = if !cidr.spelt_strictly {
        "must not have leading 0s in IP or prefix length"
    } else if cidr.is_mapped() {
        "must not have an IPv4-mapped IPv6 address"
    } else if cidr.network() != cidr.address {
        "must not have bits set beyond the prefix length"
    } else {
        return Vec::new();
    };
    vec![Error::invalid(at, text, problem)]
}

/// An address that something can listen on, as seen from elsewhere.
pub(super) fn check_endpoint(at: &Path<'_>, text: &str) -> Vec<Error> {
    let Some(ip) = parse(text) else {
        return vec![Error::invalid(at, text, "must be a valid IP address")];
    };
    let mut errors = Vec::new();
    let mut refuse = |detail: String| errors.push(Error::invalid(at, text, detail));
    if ip.is_unspecified() {
        refuse(format!("may not be unspecified ({text})"));
    }
    if ip.is_loopback() {
        refuse("may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned());
    }
    let (local, local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if local {
        refuse("may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned());
    }
    if local_multicast {
        let range = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        refuse(range.to_owned());
    }
    errors
}

/// What to tell a client about an odd spelling in a field that tolerates it.
pub(super) fn warnings(at: &Path<'_>, text: &str) -> Vec<String> {
    let Some(ip) = parse(text) else { return Vec::new() };
    let quoted = go_quote(text);
    let better = go_quote(&ip.to_string());
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(strict)) if strict.to_ipv4_mapped().is_none() => {
            match strict.to_string() == text {
                true => Vec::new(),
                false => vec![format!(
                    "{at}: IPv6 address {quoted} should be in RFC 5952 canonical format ({better})"
                )],
            }
        }
        Ok(IpAddr::V4(_)) => Vec::new(),
        _ => {
            vec![format!("{at}: non-standard IP address {quoted} is invalid: use {better}")]
        }
    }
}

/// As [`warnings`], for networks.
pub(super) fn cidr_warnings(at: &Path<'_>, text: &str) -> Vec<String> {
    let Some(cidr) = Cidr::parse(text) else { return Vec::new() };
    let (quoted, better) = (go_quote(text), go_quote(&cidr.to_string()));
    let mut warnings = Vec::new();
    if cidr.network() != cidr.address {
        let single = Cidr { bits: cidr.width(), ..cidr };
        let single = go_quote(&single.to_string());
        warnings.push(format!(
            "{at}: CIDR value {quoted} is ambiguous in this context (should be {better} or \
             {single}?)"
        ));
    }
    if !cidr.spelt_strictly || cidr.is_mapped() {
        warnings.push(format!("{at}: non-standard CIDR value {quoted} is invalid: use {better}"));
    }
    if warnings.is_empty() && cidr.address.is_ipv6() && cidr.to_string() != text {
        warnings.push(format!(
            "{at}: IPv6 CIDR value {quoted} should be in RFC 5952 canonical format ({better})"
        ));
    }
    warnings
}

/// The address that a text means, if any: octets may have leading zeros (they are decimal all the
/// same), and an IPv4 address in IPv6 clothes is an IPv4 address.
pub(crate) fn parse(text: &str) -> Option<IpAddr> {
    Some(match parse_v4(text) {
        Some(ip) => IpAddr::V4(ip),
        None => IpAddr::V6(parse_v6(text)?).to_canonical(),
    })
}

fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = u8::try_from(decimal(parts.next()?)?).ok()?;
    }
    parts.next().is_none().then(|| octets.into())
}

fn parse_v6(text: &str) -> Option<Ipv6Addr> {
    let mut strict = String::with_capacity(text.len());
    for (index, group) in text.split(':').enumerate() {
        if index > 0 {
            strict.push(':');
        }
        if group.contains('.') {
            strict.push_str(&parse_v4(group)?.to_string());
        } else {
            let zeros = group.bytes().take_while(|c| *c == b'0').count();
            strict.push_str(&group[zeros.min(group.len().saturating_sub(4))..]);
        }
    }
    strict.parse().ok()
}

/// Digits only, however many zeros lead.
fn decimal(text: &str) -> Option<u32> {
    match text.bytes().all(|c| c.is_ascii_digit()) {
        true => text.parse().ok(),
        false => None,
    }
}

/// A network, or an address within one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cidr {
    /// As it was written: an IPv4 address in IPv6 clothes is an IPv6 address here.
    pub address: IpAddr,
    pub bits: u8,
    spelt_strictly: bool,
}

impl Cidr {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address_text, bits_text) = text.split_once('/')?;
        let address = match parse_v4(address_text) {
            Some(ip) => IpAddr::V4(ip),
            None => IpAddr::V6(parse_v6(address_text)?),
        };
        let bits = u8::try_from(decimal(bits_text)?).ok()?;
        let spelt_strictly = address_text.parse::<IpAddr>().is_ok()
            && (bits_text == "0" || !bits_text.starts_with('0'));
        let cidr = Cidr { address, bits, spelt_strictly };
        (!bits_text.is_empty() && bits <= cidr.width()).then_some(cidr)
    }

    /// How many bits an address of this family has.
    pub(crate) fn width(&self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// The lowest address.
    pub(crate) fn network(&self) -> IpAddr {
        let host_bits = u32::from(self.width() - self.bits);
        match self.address {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V4((ip.to_bits() & mask).into())
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V6((ip.to_bits() & mask).into())
            }
        }
    }

    /// Whether an address is one of the network.
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        self.address.is_ipv4() == ip.is_ipv4()
            && Cidr { address: ip, ..*self }.network() == self.network()
    }

    fn is_mapped(&self) -> bool {
        matches!(self.address, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
    }
}

/// The network in canonical form.
impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.network() {
            IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() && self.bits >= 96 => {
                write!(f, "{}/{}", IpAddr::V6(ip).to_canonical(), self.bits - 96)
            }
            network => write!(f, "{network}/{}", self.bits),
        }
    }
}
