//! Where a server sends who asks it, gone to as Go's client goes.
//!
//! A webhook is trusted to say who answers in its place: the same certificates are believed there.
//! Connections that lead elsewhere are not kept.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, HeaderValue, LOCATION,
    REFERER,
};
use http::{Method, Request, Response, StatusCode, Uri};
use kubewright_apimachinery::json::go_quote;
use tokio::time::Instant;

use super::error::Cause;
use super::{CallError, Line, Place, join};

/// How many requests are made for one.
const REQUESTS_MAX: usize = 10;

impl Line {
    /// As [`Line::call`], and goes where the answer leads.
    pub(crate) async fn call_through(
        &self,
        mut request: Request<Bytes>,
        timeout: Duration,
        limit: usize,
    ) -> Result<Response<Bytes>, CallError> {
        let until = Instant::now() + timeout;
        // Errors name the request that was meant, at the place where it failed.
        let method = request.method().clone();
        let mut elsewhere: Option<Line> = None;
        for count in 1.. {
            let line = elsewhere.as_ref().unwrap_or(self);
            let left = until.saturating_duration_since(Instant::now());
            let url = line.url(request.uri());
            let answer = line
                .exchange(request.clone(), left, limit)
                .await
                .map_err(|error| error.about(&method, &url))?;
            let Some((next, said)) = next(&request, &url, &answer) else { return Ok(answer) };
            let lost = |why: String| CallError::from(Cause::Broken(why));
            if count == REQUESTS_MAX {
                let why = format!("stopped after {REQUESTS_MAX} redirects");
                // Go shows this one as it was said.
                return Err(lost(why).about(&method, &said));
            }
            let location = resolve(&url, &said);
            let lost = |why: String| lost(why).about(&method, &location);
            let place = location.parse().map_err(|_| lost("net/url: invalid URL".to_owned()))?;
            elsewhere = self.elsewhere(&place).map_err(lost)?;
            request = next;
            *request.uri_mut() = target(&place);
        }
        unreachable!("it is counted up to a limit")
    }

    /// The way to where a URL leads; none if that is where this one leads.
    fn elsewhere(&self, url: &Uri) -> Result<Option<Line>, String> {
        let scheme = url.scheme_str().unwrap_or_default();
        let port = match scheme {
            "https" => 443,
            "http" => 80,
            _ => return Err(format!("unsupported protocol scheme {}", go_quote(scheme))),
        };
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_u16().unwrap_or(port);
        let is_secured = scheme == "https";
        let own = match &self.place {
            Place::Host { host, port } => join(host, *port),
            Place::Service { .. } => self.authority.clone(),
        };
        if is_secured == self.security.is_some() && join(&host, port) == own {
            return Ok(None);
        }
        Ok(Some(Line {
            store: self.store.clone(),
            place: Place::Host { host, port },
            authority: url.authority().map(ToString::to_string).unwrap_or_default(),
            path: url.path().to_owned(),
            security: self.security.clone().filter(|_| is_secured),
            // Who must be a Service must be that wherever it is.
            name: self.name.clone(),
            idle: Arc::default(),
        }))
    }
}

/// The request that an answer wants to be made instead, and the words for where, if it wants that.
fn next(
    request: &Request<Bytes>,
    url: &str,
    answer: &Response<Bytes>,
) -> Option<(Request<Bytes>, String)> {
    let keeps_body = match answer.status() {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => false,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        _ => return None,
    };
    // Without a place to go to, the answer is an answer.
    let location = answer.headers().get(LOCATION).filter(|location| !location.is_empty())?;
    let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
    let mut next = request.clone();
    if !keeps_body {
        *next.body_mut() = Bytes::new();
        for header in [CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE] {
            next.headers_mut().remove(header);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            *next.method_mut() = Method::GET;
        }
    }
    let is_less_safe = url.starts_with("https:") && resolve(url, &location).starts_with("http:");
    match HeaderValue::from_str(url) {
        Ok(url) if !is_less_safe => next.headers_mut().insert(REFERER, url),
        _ => None,
    };
    Some((next, location))
}

/// What a URL means on the page of another one.
fn resolve(base: &str, location: &str) -> String {
    let location = location.split('#').next().unwrap_or_default();
    let (scheme, rest) = base.split_once("://").unwrap_or(("https", base));
    let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (path, _) = target.split_once('?').unwrap_or((target, ""));
    let is_absolute = location.split_once(':').is_some_and(|(scheme, _)| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(is_letter)
    });
    if is_absolute {
        return location.to_owned();
    }
    if location.starts_with("//") {
        return format!("{scheme}:{location}");
    }
    let (to, query) = location.split_at(location.find('?').unwrap_or(location.len()));
    let path = match to {
        "" => path.to_owned(),
        to if to.starts_with('/') => without_dots(to),
        to => {
            let folder = path.rfind('/').map_or("/", |end| &path[..=end]);
            without_dots(&format!("{folder}{to}"))
        }
    };
    format!("{scheme}://{authority}{path}{query}")
}

/// A path without steps that lead nowhere or back.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let steps: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    for (at, step) in steps.iter().enumerate() {
        let is_last = at + 1 == steps.len();
        match *step {
            "." | ".." => {
                if *step == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            step => kept.push(step),
        }
    }
    format!("/{}", kept.join("/"))
}

fn target(url: &Uri) -> Uri {
    let target = url.path_and_query().cloned();
    target.map_or_else(|| Uri::from_static("/"), Uri::from)
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn a_location_is_read_on_the_page_that_names_it() {
        let check = |location: &str, expected: &str| {
            assert_eq!(resolve("https://a.b:1/c/d?e=f", location), expected, "{location}");
        };
        check("https://x/y", "https://x/y");
        check("http://x", "http://x");
        check("ftp:z", "ftp:z");
        check("//x/y", "https://x/y");
        check("/y?z=1#w", "https://a.b:1/y?z=1");
        check("y", "https://a.b:1/c/y");
        check("../y/./z/..", "https://a.b:1/y/");
        check("?q=1", "https://a.b:1/c/d?q=1");
    }
}
