//! IP addresses and ranges of them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::strings::text;
use super::{Body, Table};
use crate::cel::value::{Failure, Outcome, Val};
use crate::json;

/// An address and how many of its bits are the network's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    pub address: IpAddr,
    pub bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", address_text(self.address), self.bits)
    }
}

pub(super) fn declare(table: &mut Table) {
    use Body::Typed;
    table.global("ip", "string_to_ip", "string -> net.IP", Typed(to_ip));
    table.member("ip", "cidr_ip", "net.CIDR -> net.IP", Typed(cidr_ip));
    table.global("isIP", "is_ip", "string -> bool", Typed(is_ip));
    table.global("ip.isCanonical", "ip_is_canonical", "string -> bool", Typed(is_canonical));
    table.member("family", "ip_family", "net.IP -> int", Typed(family));
    let mut test = |name: &'static str, id: &'static str, body| {
        table.member(name, id, "net.IP -> bool", Typed(body));
    };
    test("isUnspecified", "ip_is_unspecified", |args| holds(args, |ip| ip.is_unspecified()));
    test("isLoopback", "ip_is_loopback", |args| holds(args, |ip| ip.is_loopback()));
    test("isLinkLocalMulticast", "ip_is_link_local_multicast", |args| {
        holds(args, is_link_local_multicast)
    });
    test("isLinkLocalUnicast", "ip_is_link_local_unicast", |args| {
        holds(args, is_link_local_unicast)
    });
    test("isGlobalUnicast", "ip_is_global_unicast", |args| holds(args, is_global_unicast));

    table.global("cidr", "string_to_cidr", "string -> net.CIDR", Typed(to_cidr));
    table.global("isCIDR", "is_cidr", "string -> bool", Typed(is_cidr));
    table.member(
        "containsIP",
        "cidr_contains_ip_string",
        "net.CIDR, string -> bool",
        Typed(contains_ip),
    );
    table.member(
        "containsIP",
        "cidr_contains_ip_ip",
        "net.CIDR, net.IP -> bool",
        Typed(contains_ip),
    );
    table.member(
        "containsCIDR",
        "cidr_contains_cidr_string",
        "net.CIDR, string -> bool",
        Typed(contains_cidr),
    );
    table.member(
        "containsCIDR",
        "cidr_contains_cidr",
        "net.CIDR, net.CIDR -> bool",
        Typed(contains_cidr),
    );
    table.member("prefixLength", "cidr_prefix_length", "net.CIDR -> int", Typed(prefix_length));
    table.member("masked", "cidr_masked", "net.CIDR -> net.CIDR", Typed(masked));
}

/// As Go prints an address.
pub(super) fn address_text(address: IpAddr) -> String {
    address.to_string()
}

fn parse_ip(text: &str) -> Result<IpAddr, Failure> {
    let quoted = json::go_quote(text);
    let (address, has_zone) = parse_address(text).map_err(|why| {
        Failure::new(format!(
            "IP Address {quoted} parse error during conversion from string: ParseAddr({quoted}): \
             {why}"
        ))
    })?;
    if has_zone {
        let message = format!("IP address {quoted} with zone value is not allowed");
        return Err(Failure::new(message));
    }
    if is_mapped(address) {
        let message = format!("IPv4-mapped IPv6 address {quoted} is not allowed");
        return Err(Failure::new(message));
    }
    Ok(address)
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// What Go's `netip.ParseAddr` takes, and whether it has a zone; else its words about what is
/// wrong.
fn parse_address(text: &str) -> Result<(IpAddr, bool), String> {
    match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => parse_v4(text).map(|v4| (IpAddr::V4(v4), false)),
        Some(b':') => parse_v6(text),
        Some(_) => Err("missing IPv6 address".to_owned()),
        None => Err("unable to parse IP".to_owned()),
    }
}

/// A mistake, and the rest of the text from it on.
fn at(mistake: &str, rest: &str) -> String {
    format!("{mistake} (at {})", json::go_quote(rest))
}

fn parse_v6(text: &str) -> Result<(IpAddr, bool), String> {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => return Err("zone must be a non-empty string".to_owned()),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let mut fields: Vec<u16> = Vec::with_capacity(8);
    // How many fields stand before the double colon.
    let mut gap = None;
    let mut rest = address;
    if let Some(after) = rest.strip_prefix("::") {
        gap = Some(0);
        rest = after;
    }
    while fields.len() < 8 && !(rest.is_empty() && gap.is_some()) {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return Err(at("each group must have 4 or fewer digits", rest));
        }
        if digits == 0 {
            return Err(at("each colon-separated field must have at least one digit", rest));
        }
        if rest[digits..].starts_with('.') {
            if gap.is_none() && fields.len() != 6 {
                let mistake =
                    "embedded IPv4 address must replace the final 2 fields of the address";
                return Err(at(mistake, rest));
            }
            if fields.len() > 6 {
                let mistake =
                    "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Err(at(mistake, rest));
            }
            let [a, b, c, d] = parse_v4(rest)?.octets();
            fields.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
            rest = "";
            break;
        }
        fields.push(u16::from_str_radix(&rest[..digits], 16).unwrap_or_default());
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(at("unexpected character, want colon", rest));
        };
        if after.is_empty() {
            return Err(at("colon must be followed by more characters", rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if gap.is_some() {
                return Err(at("multiple :: in address", rest));
            }
            gap = Some(fields.len());
            rest = after;
        }
    }
    if !rest.is_empty() {
        return Err(at("trailing garbage after address", rest));
    }
    match gap {
        None if fields.len() < 8 => return Err("address string too short".to_owned()),
        Some(_) if fields.len() == 8 => {
            return Err("the :: must expand to at least one field of zeros".to_owned());
        }
        Some(gap) => {
            let missing = 8 - fields.len();
            fields.splice(gap..gap, std::iter::repeat_n(0, missing));
        }
        None => {}
    }
    let fields: [u16; 8] = fields.try_into().expect("there are eight");
    Ok((Ipv6Addr::from(fields).into(), zone))
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, String> {
    let mut octets = [0_u8; 4];
    let (mut position, mut value, mut digits) = (0, 0_u32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err("IPv4 field has octet with leading zero".to_owned());
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err("IPv4 field has value >255".to_owned());
                }
            }
            b'.' => {
                if at == 0 || at == text.len() - 1 || text.as_bytes()[at - 1] == b'.' {
                    return Err(self::at("IPv4 field must have at least one digit", &text[at..]));
                }
                if position == 3 {
                    return Err("IPv4 address too long".to_owned());
                }
                octets[position] = value as u8;
                position += 1;
                (value, digits) = (0, 0);
            }
            _ => {
                return Err(self::at("unexpected character", &text[at..]));
            }
        }
    }
    if position < 3 {
        return Err("IPv4 address too short".to_owned());
    }
    octets[3] = value as u8;
    Ok(octets.into())
}

/// An address and a number of bits without a sign or leading zeros.
fn parse_cidr(text: &str) -> Result<Cidr, Failure> {
    let quoted = json::go_quote(text);
    let wrong = |why: String| {
        Failure::new(format!(
            "network address parse error during conversion from string: network address parse \
             error during conversion from string: netip.ParsePrefix({quoted}): {why}"
        ))
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'".to_owned()))?;
    let (address, has_zone) = parse_address(address)
        .map_err(|why| wrong(format!("ParseAddr({}): {why}", json::go_quote(address))))?;
    if has_zone {
        return Err(wrong("IPv6 zones cannot be present in a prefix".to_owned()));
    }
    let is_number = !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && (bits.len() == 1 || !bits.starts_with('0'));
    let number: u32 = bits
        .parse()
        .ok()
        .filter(|_| is_number)
        .ok_or_else(|| wrong(format!("bad bits after slash: {}", json::go_quote(bits))))?;
    let max = if address.is_ipv4() { 32 } else { 128 };
    if number > max {
        return Err(wrong("prefix length out of range".to_owned()));
    }
    if is_mapped(address) {
        return Err(Failure::new(format!(
            "network address parse error during conversion from string: IPv4-mapped IPv6 address \
             {quoted} is not allowed"
        )));
    }
    Ok(Cidr { address, bits: number as u8 })
}

fn to_ip<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    parse_ip(text(args, 0)?).map(Val::Ip)
}

fn is_ip<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Bool(parse_ip(text(args, 0)?).is_ok()))
}

fn is_canonical<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let text = text(args, 0)?;
    Ok(Val::Bool(address_text(parse_ip(text)?) == text))
}

fn address(args: &[Val<'_>]) -> Result<IpAddr, Failure> {
    match &args[0] {
        Val::Ip(address) => Ok(*address),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}

fn family<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Int(if address(args)?.is_ipv4() { 4 } else { 6 }))
}

fn holds<'v>(args: &[Val<'v>], test: fn(IpAddr) -> bool) -> Outcome<'v> {
    Ok(Val::Bool(test(address(args)?)))
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !is_broadcast
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
}

fn to_cidr<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    parse_cidr(text(args, 0)?).map(Val::Cidr)
}

fn is_cidr<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Bool(parse_cidr(text(args, 0)?).is_ok()))
}

fn cidr(args: &[Val<'_>]) -> Result<Cidr, Failure> {
    match &args[0] {
        Val::Cidr(cidr) => Ok(*cidr),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}

fn cidr_ip<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Ip(cidr(args)?.address))
}

fn prefix_length<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Int(i64::from(cidr(args)?.bits)))
}

fn masked<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let Cidr { address, bits } = cidr(args)?;
    Ok(Val::Cidr(Cidr { address: mask(address, bits), bits }))
}

/// The address with only its first bits.
fn mask(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let keep = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Ipv4Addr::from(u32::from(v4) & keep).into()
        }
        IpAddr::V6(v6) => {
            let keep = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from(u128::from(v6) & keep).into()
        }
    }
}

impl Cidr {
    fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && mask(address, self.bits) == mask(self.address, self.bits)
    }
}

fn contains_ip<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let address = match &args[1] {
        Val::Ip(address) => *address,
        // Upstream forgets why.
        _ => parse_ip(text(args, 1)?).map_err(|_| Failure::NO_SUCH_OVERLOAD)?,
    };
    Ok(Val::Bool(cidr(args)?.contains(address)))
}

fn contains_cidr<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let other = match &args[1] {
        Val::Cidr(other) => *other,
        _ => parse_cidr(text(args, 1)?)?,
    };
    let cidr = cidr(args)?;
    Ok(Val::Bool(cidr.bits <= other.bits && cidr.contains(other.address)))
}
