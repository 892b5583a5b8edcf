//! URLs.

use std::collections::HashMap;
use std::sync::Arc;

use super::strings::text;
use super::{Body, Table};
use crate::cel::value::{BuiltMap, Failure, Map, Outcome, Val};
use crate::schema::Uri;

#[derive(Debug, PartialEq, Eq)]
pub struct Url(Uri);

pub(super) fn declare(table: &mut Table) {
    use Body::Typed;
    table.global("url", "string_to_url", "string -> kubernetes.URL", Typed(parse));
    table.global("isURL", "is_url_string", "string -> bool", Typed(is_url));
    let mut part = |name: &'static str, id: &'static str, body| {
        table.member(name, id, "kubernetes.URL -> string", Typed(body));
    };
    part("getScheme", "url_get_scheme", |args| show(args, |url| url.scheme.clone()));
    part("getHost", "url_get_host", |args| show(args, |url| url.host.clone()));
    part("getHostname", "url_get_hostname", |args| show(args, hostname));
    part("getPort", "url_get_port", |args| show(args, port));
    part("getEscapedPath", "url_get_escaped_path", |args| show(args, escaped_path));
    table.member(
        "getQuery",
        "url_get_query",
        "kubernetes.URL -> map(string, list(string))",
        Typed(query),
    );
}

fn parse<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let wrong =
        |why: String| Failure::new(format!("URL parse error during conversion from string: {why}"));
    let text = text(args, 0)?;
    Uri::parse_request(text).map_err(wrong)?;
    Ok(Val::Url(Arc::new(Url(Uri::parse(text).map_err(wrong)?))))
}

fn is_url<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Bool(Uri::parse_request(text(args, 0)?).is_ok()))
}

fn show<'v>(args: &[Val<'v>], part: fn(&Uri) -> String) -> Outcome<'v> {
    match &args[0] {
        Val::Url(url) => Ok(Val::text(part(&url.0))),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}

/// The host without its port, which only digits after the last colon are.
fn split_port(url: &Uri) -> (&str, &str) {
    match url.host.rsplit_once(':') {
        Some((host, port))
            if port.bytes().all(|b| b.is_ascii_digit())
                && (!host.contains('[') || host.ends_with(']')) =>
        {
            (host, port)
        }
        _ => (&url.host, ""),
    }
}

fn hostname(url: &Uri) -> String {
    let (host, _) = split_port(url);
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host).to_owned()
}

fn port(url: &Uri) -> String {
    split_port(url).1.to_owned()
}

/// The path as it is written, if that is a way to write it.
fn escaped_path(url: &Uri) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*[]%".contains(&b);
    if url.path.bytes().all(is_plain) {
        return url.path.clone();
    }
    let mut escaped = String::new();
    for byte in unescape(&url.path, false) {
        match byte {
            b if b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b) => {
                escaped.push(char::from(b));
            }
            b => escaped.push_str(&format!("%{b:02X}")),
        }
    }
    escaped
}

fn query<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let Val::Url(url) = &args[0] else { return Err(Failure::NO_SUCH_OVERLOAD) };
    let mut values: Vec<(String, Vec<Val<'v>>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for pair in url.0.query.split('&') {
        // Semicolons once separated pairs too; now such a pair is dropped.
        if pair.is_empty() || pair.contains(';') {
            continue;
        }
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(key), Some(value)) = (decode(key), decode(value)) else { continue };
        let place = *places.entry(key.clone()).or_insert(values.len());
        if place == values.len() {
            values.push((key, Vec::new()));
        }
        values[place].1.push(Val::text(value));
    }
    let mut map = BuiltMap::default();
    for (key, values) in values {
        map.set(Val::text(key), Val::list(values))?;
    }
    Ok(Val::Map(Map::Built(Arc::new(map))))
}

fn decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_escape = |at: usize| {
        bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if text.match_indices('%').any(|(at, _)| !is_escape(at)) {
        return None;
    }
    Some(String::from_utf8_lossy(&unescape(text, true)).into_owned())
}

/// Bytes of a text whose escapes were looked at before.
fn unescape(text: &str, plus_is_space: bool) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(if *byte == b'+' && plus_is_space { b' ' } else { *byte });
                at += 1;
            }
        }
    }
    out
}
