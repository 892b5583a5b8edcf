//! What a server in front of another one does to requests: it says in headers who asks, and from
//! where the request came, and takes away what was meant for itself.

use std::net::IpAddr;

use http::header::{
    AUTHORIZATION, CONNECTION, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};

use crate::authn::TOKEN_PROTOCOL;
use crate::user::User;

pub(crate) const USER: HeaderName = HeaderName::from_static("x-remote-user");
pub(crate) const UID: HeaderName = HeaderName::from_static("x-remote-uid");
pub(crate) const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
pub(crate) const EXTRA_PREFIX: &str = "x-remote-extra-";
const IMPERSONATE_PREFIX: &str = "impersonate-";

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// Says who asks, and lets nobody else say so.
pub(super) fn introduce(headers: &mut HeaderMap, user: &User) -> Result<(), InvalidHeaderValue> {
    remove_identity(headers);
    headers.insert(USER, HeaderValue::from_bytes(user.name.as_bytes())?);
    if !user.uid.is_empty() {
        headers.insert(UID, HeaderValue::from_bytes(user.uid.as_bytes())?);
    }
    for group in &user.groups {
        headers.append(GROUP, HeaderValue::from_bytes(group.as_bytes())?);
    }
    for (key, values) in &user.extra {
        let name = format!("{EXTRA_PREFIX}{}", escape_key(key)).to_ascii_lowercase();
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { continue };
        for value in values {
            headers.append(&name, HeaderValue::from_bytes(value.as_bytes())?);
        }
    }
    Ok(())
}

/// Takes away all by which a client has shown, or claimed, who it is.
pub(crate) fn remove_credentials(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    remove_identity(headers);
    remove_prefixed(headers, IMPERSONATE_PREFIX);
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let protocols = values.filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
    let protocols: Vec<String> = protocols.map(|protocol| protocol.trim().to_owned()).collect();
    if protocols.iter().any(|protocol| protocol.starts_with(TOKEN_PROTOCOL)) {
        let others = protocols.iter().filter(|protocol| !protocol.starts_with(TOKEN_PROTOCOL));
        let others: Vec<&str> = others.map(String::as_str).collect();
        let others = HeaderValue::try_from(others.join(",")).expect("it came in a header");
        headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
    }
}

fn remove_identity(headers: &mut HeaderMap) {
    for name in [USER, UID, GROUP] {
        headers.remove(name);
    }
    remove_prefixed(headers, EXTRA_PREFIX);
}

fn remove_prefixed(headers: &mut HeaderMap, prefix: &str) {
    let found = headers.keys().filter(|name| name.as_str().starts_with(prefix)).cloned();
    for name in found.collect::<Vec<_>>() {
        headers.remove(name);
    }
}

/// Takes away what is about one connection and not about the request or the answer.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
    const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> = values
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let takes_trailers = headers.get_all(TE).iter().any(|value| value == "trailers");
    let always = [
        CONNECTION,
        PROXY_CONNECTION,
        KEEP_ALIVE,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    for name in named.into_iter().chain(always) {
        headers.remove(name);
    }
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Takes away what another server says about pages that may read its answers: that is for this
/// server to say.
pub(super) fn remove_cors(headers: &mut HeaderMap) {
    use http::header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS,
        ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    };
    for name in [
        ACCESS_CONTROL_ALLOW_CREDENTIALS,
        ACCESS_CONTROL_ALLOW_HEADERS,
        ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN,
    ] {
        headers.remove(name);
    }
}

/// Adds the address of whoever asks to those of proxies before us.
pub(crate) fn forward_for(headers: &mut HeaderMap, address: IpAddr) {
    let known = headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
    let mut all: Vec<String> = known.map(str::to_owned).collect();
    all.push(address.to_string());
    if let Ok(all) = HeaderValue::try_from(all.join(", ")) {
        headers.insert(FORWARDED_FOR, all);
    }
}

/// Says where a request was passed on to, which is what upstream says here.
pub(super) fn forwarded(headers: &mut HeaderMap, host: &str, path: &str) {
    forwarded_uri(headers, path);
    if let Ok(host) = HeaderValue::from_str(host) {
        headers.insert(FORWARDED_HOST, host);
    }
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
}

/// Says which path was asked for.
pub(crate) fn forwarded_uri(headers: &mut HeaderMap, path: &str) {
    if let Ok(path) = HeaderValue::try_from(cleaned(path)) {
        headers.insert(FORWARDED_URI, path);
    }
}

/// A path without empty segments and dots.
fn cleaned(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    let end = if path.ends_with('/') && !segments.is_empty() { "/" } else { "" };
    format!("/{}{end}", segments.join("/"))
}

/// The target of a request as upstream passes it on: the same path in one spelling, and the query
/// in the order of its names.
pub(super) fn target(path: &str, query: Option<&str>) -> String {
    let mut target = escape_path(path);
    let query = query.map(sorted).unwrap_or_default();
    if !query.is_empty() {
        target.push('?');
        target.push_str(&query);
    }
    target
}

/// A path with exactly those bytes escaped that Go escapes.
pub(super) fn escape_path(path: &str) -> String {
    let bytes = unescape(path.as_bytes(), false).unwrap_or_else(|| path.as_bytes().to_vec());
    escape_plain(&bytes)
}

/// The same of a path without escapes.
pub(crate) fn escape_plain(path: &[u8]) -> String {
    escape(path, |byte| is_unreserved(byte) || b"$&+,/:;=@".contains(&byte))
}

/// A query in the order of its names. What cannot be read is left out.
fn sorted(query: &str) -> String {
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let read = |text: &str| unescape(text.as_bytes(), true);
        if let (Some(name), Some(value)) = (read(name), read(value)) {
            pairs.push((name, value));
        }
    }
    pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
    let escape = |bytes: &[u8]| escape(bytes, is_unreserved).replace("%20", "+");
    let pairs = pairs.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
}

/// The key of an extra as a part of a header's name.
fn escape_key(key: &str) -> String {
    escape(key.as_bytes(), |byte| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte))
}

fn escape(bytes: &[u8], is_plain: impl Fn(u8) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match is_plain(*byte) {
            true => text.push(char::from(*byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The bytes that escapes stand for; `None` if one stands for nothing.
fn unescape(mut text: &[u8], plus_is_space: bool) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    while let [first, rest @ ..] = text {
        text = rest;
        bytes.push(match first {
            b'%' => {
                let [high, low, rest @ ..] = text else { return None };
                text = rest;
                let digit = |byte: u8| char::from(byte).to_digit(16);
                u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?
            }
            b'+' if plus_is_space => b' ',
            plain => *plain,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_target(uri: &str, expected: &str) {
        let uri: http::Uri = uri.parse().expect("a URI");
        assert_eq!(target(uri.path(), uri.query()), expected);
    }

    #[test]
    fn targets_are_spelled_as_upstream_spells_them() {
        check_target("/apis/g/v1/things", "/apis/g/v1/things");
        check_target("/things?z=1&a=x%20y~*&b&watch=0&c=%2B;q", "/things?a=x+y~%2A&b=&watch=0&z=1");
        check_target(
            "/things/a%2Fb%20c%3f+d;e@:&=$,!'()*~",
            "/things/a/b%20c%3F+d;e@:&=$,%21%27%28%29%2A~",
        );
        check_target("/things?a=2&b=1&a=1", "/things?a=2&a=1&b=1");
        check_target("/things?a=%zz&b=1", "/things?b=1");
    }

    #[test]
    fn a_user_is_introduced_by_nobody_else() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer a"),
            ("x-remote-user", "evil"),
            ("x-remote-extra-foo", "evil"),
            ("impersonate-user", "jane"),
            ("sec-websocket-protocol", "v4, base64url.bearer.authorization.k8s.io.YQ"),
            ("accept", "*/*"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        remove_credentials(&mut headers);
        let mut user = User::new("jane", ["a".to_owned()]);
        user.extra.insert("scope/a".to_owned(), vec!["v/1".to_owned(), "2".to_owned()]);
        introduce(&mut headers, &user).expect("they are fit for headers");
        let mut shown: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
            .collect();
        shown.sort();
        assert_eq!(
            shown,
            [
                "accept: */*",
                "sec-websocket-protocol: v4",
                "x-remote-extra-scope%2fa: 2",
                "x-remote-extra-scope%2fa: v/1",
                "x-remote-group: a",
                "x-remote-group: system:authenticated",
                "x-remote-user: jane",
            ]
        );
    }

    #[test]
    fn what_is_about_a_connection_stays_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "x-hop, close"),
            ("x-hop", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("accept", "*/*"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        remove_hop_by_hop(&mut headers);
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "te"]);
    }

    #[test]
    fn forwarded_paths_are_cleaned() {
        assert_eq!(cleaned("/apis/g/v1"), "/apis/g/v1");
        assert_eq!(cleaned("/apis//g/./v1/"), "/apis/g/v1/");
        assert_eq!(cleaned("/"), "/");
    }
}
