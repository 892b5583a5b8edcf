//! What a request may cost, told from its first line.

use std::borrow::Cow;
use std::time::Duration;

use http::Method;
use http::Uri;
use kubewright_apimachinery::time::{GoDuration, ParseDurationError};

use crate::target::{self, ResourcePath, Verb};

/// What a request may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Lasts as long as both sides like: it has no deadline and counts against no limit.
    LongRunning,
    ReadOnly,
    Mutating,
}

impl Class {
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        let path = unescaped(uri);
        let (lasts, only_reads) = match ResourcePath::read(method, &path, says_watch(uri)) {
            Some(said) => (
                target::lasts(said.verb, said.subresource),
                matches!(said.verb, Verb::Get | Verb::List),
            ),
            None => (target::path_lasts(&path), method == Method::GET),
        };
        match (lasts, only_reads) {
            (true, _) => Class::LongRunning,
            (false, true) => Class::ReadOnly,
            (false, false) => Class::Mutating,
        }
    }
}

/// Whether a request asks for the changes of a collection.
pub(super) fn is_watch(method: &Method, uri: &Uri) -> bool {
    ResourcePath::read(method, &unescaped(uri), says_watch(uri))
        .is_some_and(|said| said.verb == Verb::Watch)
}

/// Whether a request asks for the log of a pod.
pub(super) fn is_log(method: &Method, uri: &Uri) -> bool {
    ResourcePath::read(method, &unescaped(uri), says_watch(uri))
        .is_some_and(|said| said.verb == Verb::Get && said.subresource == "log")
}

fn unescaped(uri: &Uri) -> Cow<'_, str> {
    // What cannot be read is answered at once, whatever it costs.
    target::unescape(uri.path()).unwrap_or(Cow::Borrowed(uri.path()))
}

/// How long a request asks to take at most; `None` leaves it to the server.
pub(crate) fn asked_timeout(uri: &Uri) -> Result<Option<Duration>, ParseDurationError> {
    let Some(text) = parameter(uri, "timeout").filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let nanos = GoDuration::parse(&text)?.nanos;
    Ok(u64::try_from(nanos).ok().filter(|nanos| *nanos > 0).map(Duration::from_nanos))
}

fn says_watch(uri: &Uri) -> bool {
    // Any word but these two asks for a watch, none at all too.
    parameter(uri, "watch")
        .is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
}

fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let query = uri.query()?;
    // Most queries have neither word; those need no decoding.
    if !query.contains(name) && !query.contains('%') {
        return None;
    }
    form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, uri: &str, expected: Class) {
        let method: Method = method.parse().expect("a method");
        assert_eq!(Class::of(&method, &uri.parse().expect("a URI")), expected, "{method} {uri}");
    }

    #[test]
    fn watches_and_streams_last() {
        check("GET", "/api/v1/pods?watch=true", Class::LongRunning);
        check("GET", "/api/v1/pods?limit=5&watch=1", Class::LongRunning);
        check("GET", "/api/v1/pods?watch", Class::LongRunning);
        check("GET", "/api/v1/pods?w%61tch=1", Class::LongRunning);
        check("GET", "/api/v1/watch/pods", Class::LongRunning);
        check("GET", "/api/v1/namespaces/a/pods/b/log", Class::LongRunning);
        check("POST", "/api/v1/namespaces/a/pods/b/exec?command=ls", Class::LongRunning);
        check("GET", "/api/v1/pods?watch=false", Class::ReadOnly);
        check("GET", "/api/v1/pods?watch=0", Class::ReadOnly);
        check("GET", "/api/v1/namespaces/a/pods/b?watch=1", Class::ReadOnly);
        check("GET", "/api/v1/namespaces/a/pods%2Fb?watch=1", Class::ReadOnly);
    }

    #[test]
    fn what_is_not_known_to_only_read_may_change_something() {
        check("GET", "/api/v1/namespaces/a/pods/b", Class::ReadOnly);
        check("HEAD", "/api/v1/pods", Class::ReadOnly);
        check("GET", "/healthz", Class::ReadOnly);
        check("POST", "/api/v1/namespaces/a/pods", Class::Mutating);
        check("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", Class::Mutating);
        check("DELETE", "/api/v1/namespaces/a/pods", Class::Mutating);
        check("POST", "/healthz", Class::Mutating);
    }

    #[test]
    fn a_timeout_of_nothing_or_less_is_none() {
        let check = |query: &str, expected: Result<Option<Duration>, &str>| {
            let uri: Uri = format!("/api/v1/pods{query}").parse().expect("a URI");
            let found = asked_timeout(&uri).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{query}");
        };
        check("", Ok(None));
        check("?timeout=", Ok(None));
        check("?timeout=0s", Ok(None));
        check("?timeout=-3s", Ok(None));
        check("?timeout=1m30s", Ok(Some(Duration::from_secs(90))));
        check("?timeoutSeconds=5", Ok(None));
        let most = Duration::from_nanos(i64::MAX.unsigned_abs());
        check("?timeout=9223372036854775807ns", Ok(Some(most)));
        check("?timeout=abc", Err(r#"time: invalid duration "abc""#));
        check("?timeout=5", Err(r#"time: missing unit in duration "5""#));
    }
}
