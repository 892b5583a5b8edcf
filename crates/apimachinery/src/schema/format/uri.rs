//! URLs as Go reads them, as far as the API looks into them.

use std::net::Ipv6Addr;

use crate::json;

/// The parts of a URL that somebody asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Uri {
    pub(crate) scheme: String,
    pub(crate) user: Option<String>,
    pub(crate) host: String,
    /// As it is written.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) fragment: String,
}

impl Uri {
    /// Any URL. The error reads `parse "…": why`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let name = |why: String| format!("parse {}: {why}", json::go_quote(rest));
        let mut uri = parse(rest, false).map_err(name)?;
        check_escapes(fragment).map_err(|why| format!("parse {}: {why}", json::go_quote(text)))?;
        uri.fragment = fragment.to_owned();
        Ok(uri)
    }

    /// A URL with a scheme, or an absolute path; a fragment is part of the path.
    pub(crate) fn parse_request(text: &str) -> Result<Self, String> {
        parse(text, true).map_err(|why| format!("parse {}: {why}", json::go_quote(text)))
    }
}

fn parse(text: &str, via_request: bool) -> Result<Uri, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7F) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && via_request {
        return Err("empty url".to_owned());
    }
    if text == "*" {
        return Ok(Uri { path: text.to_owned(), ..Uri::default() });
    }
    let (scheme, rest) = scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut uri =
        Uri { scheme: scheme.to_ascii_lowercase(), query: query.to_owned(), ..Uri::default() };
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            return Ok(uri);
        }
        if via_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let mut path = rest;
    let has_authority = !scheme.is_empty() || !via_request && !rest.starts_with("///");
    if let Some(authority) = rest.strip_prefix("//").filter(|_| has_authority) {
        let end = authority.find('/').unwrap_or(authority.len());
        path = &authority[end..];
        (uri.user, uri.host) = parse_authority(&uri.scheme, &authority[..end])?;
    }
    check_escapes(path)?;
    uri.path = path.to_owned();
    Ok(uri)
}

/// What stands before the first colon, when that can be a scheme, and the rest.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(scheme: &str, authority: &str) -> Result<(Option<String>, String), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let host = parse_host(scheme, host)?;
    let Some(user) = user else { return Ok((None, host)) };
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(is_valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    check_escapes(user)?;
    Ok((Some(user.to_owned()), host))
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => {
            let Some(end) = host.rfind(']') else {
                return Err("missing ']' in host".to_owned());
            };
            check_port(&host[end + 1..])?;
            let address = &host[1..end];
            let bare = address.split_once("%25").map_or(address, |(address, _)| address);
            if bare.parse::<Ipv6Addr>().is_err() {
                let quoted = json::go_quote(address);
                return Err(format!("invalid host: ParseAddr({quoted}): unable to parse IP"));
            }
        }
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {
            if let Some(first) = host.find(':') {
                // Lists of hosts are known from database URLs, but not on the web.
                let strict = matches!(scheme, "http" | "https");
                let port = if strict { first } else { host.rfind(':').unwrap_or(first) };
                check_port(&host[port..])?;
            }
            check_host_characters(host)?;
        }
    }
    Ok(host.to_owned())
}

fn check_port(port: &str) -> Result<(), String> {
    let digits = port.strip_prefix(':').unwrap_or("x");
    match port.is_empty() || digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(()),
        false => Err(format!("invalid port {} after host", json::go_quote(port))),
    }
}

fn check_host_characters(host: &str) -> Result<(), String> {
    check_escapes(host)?;
    let mut rest = host;
    while let Some(c) = rest.chars().next() {
        if c == '%' {
            // In a host only bytes beyond ASCII may be escaped, and the percent sign itself.
            let escape = &rest[..3];
            if escape != "%25" && matches!(escape.as_bytes()[1], b'0'..=b'7') {
                return Err(format!("invalid URL escape {}", json::go_quote(escape)));
            }
            rest = &rest[3..];
            continue;
        }
        if c.is_ascii() && !c.is_ascii_alphanumeric() && !"-_.~!$&'()*+,;=:[]<>\"".contains(c) {
            let quoted = json::go_quote(&rest[..1]);
            return Err(format!("invalid character {quoted} in host name"));
        }
        rest = &rest[c.len_utf8()..];
    }
    Ok(())
}

/// Every `%` is followed by two hexadecimal digits.
fn check_escapes(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    for (index, _) in text.match_indices('%') {
        let digits = bytes.get(index + 1..index + 3);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            let escape = &bytes[index..bytes.len().min(index + 3)];
            let quoted = json::go_quote(&String::from_utf8_lossy(escape));
            return Err(format!("invalid URL escape {quoted}"));
        }
    }
    Ok(())
}
