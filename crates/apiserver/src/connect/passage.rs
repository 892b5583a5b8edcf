//! What passes between a client and whom it is connected to.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, LOCATION};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use kubewright_apimachinery::status::{Details, Status};

use super::destination::{Destination, Guard, Way, is_global};
use super::kubelet::unknown;
use super::page;
use crate::aggregate::front;
use crate::body::Body;
use crate::edge::Peer;
use crate::outbound::{Answer, Line};
use crate::refusal::Refusal;
use crate::relay::{self, Switch, Switchable};
use crate::target;

/// As much is read of what a node says is wrong.
const COMPLAINT_BYTES_MAX: usize = 50_000;

/// The longest page whose links are rewritten, which takes it to be whole.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// What a client has asked.
pub(crate) struct Asked<'a, B> {
    pub(crate) parts: &'a Parts,
    pub(crate) body: B,
    /// Of the object whose part is asked for.
    pub(crate) name: &'a str,
}

/// A log in which nothing was said yet.
pub(super) fn nothing() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

pub(super) async fn pass<B>(
    destination: Destination,
    asked: Asked<'_, B>,
) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Destination { line, way } = destination;
    match way {
        Way::Log(target) => log(&line, &target, asked.name).await,
        Way::Stream(_) if !relay::asks_to_switch(&asked.parts.headers) => {
            Err(Box::new(Status::bad_request("Upgrade request required")))
        }
        Way::Stream(target) => stream(&line, &target, asked).await,
        Way::Proxy { path, guard } => {
            if guard == Guard::Global {
                check_global(&line).await?;
            }
            match relay::asks_to_switch(&asked.parts.headers) {
                true => stream(&line, &front::escape_plain(path.as_bytes()), asked).await,
                false => proxy(&line, path, asked).await,
            }
        }
    }
}

async fn log(line: &Line, target: &str, pod: &str) -> Result<Response<Body>, Refusal> {
    let target = uri(target)?;
    let url = line.url(&target);
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = target;
    let answer = line.send(request).await;
    let answer = answer.map_err(|error| unknown(format!("Get \"{url}\": {error}")))?;
    let status = answer.status();
    if let Some(place) = answer.headers().get(LOCATION).filter(|_| status.is_redirection()) {
        let place = place.to_str().unwrap_or_default();
        return Err(unknown(format!("Get \"{place}\": redirects forbidden")));
    }
    if !(200..=206).contains(&status.as_u16()) {
        return Err(complaint(answer, pod).await);
    }
    let mut response = Response::new(relay::passed(answer.into_body()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}

/// What a node says is wrong with a request for a log.
async fn complaint(answer: Response<Answer>, pod: &str) -> Refusal {
    let code = answer.status().as_u16();
    let said = match Limited::new(answer.into_body(), COMPLAINT_BYTES_MAX).collect().await {
        Ok(said) => String::from_utf8_lossy(&said.to_bytes()).into_owned(),
        Err(error) => return Box::new(Status::internal_error(error)),
    };
    Box::new(match code {
        500 => Status::internal_error(said),
        400 => Status::bad_request(said),
        code => {
            const RESOURCE: &str = "pods/log";
            let status = Status::generic(code, "", &said);
            let details = Details {
                kind: RESOURCE.to_owned(),
                name: pod.to_owned(),
                ..status.details.unwrap_or_default()
            };
            // A verb would come first, if upstream told it.
            let message = format!("{} ( {RESOURCE} {pod})", status.message);
            Status { message, details: Some(details), ..status }
        }
    })
}

/// Has both sides leave HTTP.
async fn stream<B>(
    line: &Line,
    target: &str,
    asked: Asked<'_, B>,
) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Asked { parts, body, .. } = asked;
    let is_switchable = parts.extensions.get::<Switchable>().is_some();
    let request =
        request(parts, headers(parts), if target.is_empty() { "/" } else { target }, body)?;
    match relay::switch(line, request, is_switchable).await {
        Ok(Switch::Done(response)) => Ok(response),
        Ok(Switch::Refused(answer)) => Ok(passed(answer)),
        Err(error) => Err(unknown(error.to_string())),
    }
}

/// Passes a request on below a path.
async fn proxy<B>(
    line: &Line,
    mut path: String,
    asked: Asked<'_, B>,
) -> Result<Response<Body>, Refusal>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Asked { parts, body, .. } = asked;
    let own = parts.uri.path();
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if !path.ends_with('/') && own.ends_with('/') {
        path.push('/');
    }
    if path.is_empty() && matches!(parts.method, Method::GET | Method::HEAD) {
        return Ok(moved(&format!("{own}/{query}")));
    }
    // What clients put before the path of whom they are connected to.
    let plain = target::unescape(own).unwrap_or_default();
    let prefix = plain.strip_suffix(path.as_str()).unwrap_or(&plain);
    let prefix = front::escape_plain(prefix.as_bytes());
    let mut headers = headers(parts);
    front::remove_hop_by_hop(&mut headers);
    front::forwarded_uri(&mut headers, own);
    let host = headers.get(HOST).cloned();
    let mut below = front::escape_plain(path.as_bytes());
    if !below.starts_with('/') {
        below.insert(0, '/');
    }
    let request = request(parts, headers, &format!("{below}{query}"), body)?;
    let mut answer = line.send(request).await.map_err(|error| {
        Box::new(Status::service_unavailable(format!("error trying to reach service: {error}")))
    })?;
    let hosts = Hosts {
        behind: line.authority(),
        own: host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default(),
    };
    if let Some(place) = answer.headers().get(LOCATION).and_then(|place| place.to_str().ok()) {
        if let Ok(place) = HeaderValue::try_from(hosts.seen_by_client(place, &prefix)) {
            answer.headers_mut().insert(LOCATION, place);
        }
        return Ok(passed(answer));
    }
    match encoding_of_page(answer.headers()) {
        Some(encoding) => {
            linked(answer, encoding, |link| hosts.seen_by_client(link, &prefix)).await
        }
        None => Ok(passed(answer)),
    }
}

/// How a page comes whose links can be rewritten.
#[derive(Clone, Copy)]
enum Encoding {
    Plain,
    Gzip,
}

fn encoding_of_page(headers: &HeaderMap) -> Option<Encoding> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if text(CONTENT_TYPE).split(';').next().map(str::trim) != Some("text/html") {
        return None;
    }
    match text(CONTENT_ENCODING) {
        "" => Some(Encoding::Plain),
        "gzip" => Some(Encoding::Gzip),
        _ => None,
    }
}

/// A page whose links lead where the client finds them.
async fn linked(
    answer: Response<Answer>,
    encoding: Encoding,
    link: impl Fn(&str) -> String,
) -> Result<Response<Body>, Refusal> {
    let (mut parts, body) = answer.into_parts();
    let unread = |why: String| unknown(format!("error trying to reach service: {why}"));
    let page = Limited::new(body, PAGE_BYTES_MAX).collect().await;
    let page = page.map_err(|error| unread(error.to_string()))?.to_bytes();
    let mut plain = Vec::new();
    let page = match encoding {
        Encoding::Plain => page.as_ref(),
        Encoding::Gzip => {
            let mut reader = GzDecoder::new(page.as_ref()).take(PAGE_BYTES_MAX as u64);
            reader.read_to_end(&mut plain).map_err(|error| unread(error.to_string()))?;
            plain.as_slice()
        }
    };
    let page = page::rewrite(page, link);
    front::remove_hop_by_hop(&mut parts.headers);
    for name in [CONTENT_LENGTH, CONTENT_ENCODING] {
        parts.headers.remove(name);
    }
    let mut response = Response::new(Body::from(page));
    *response.status_mut() = parts.status;
    *response.headers_mut() = parts.headers;
    Ok(response)
}

/// By which names a client and whom it is connected to speak of the same.
pub(super) struct Hosts<'a> {
    pub(super) behind: &'a str,
    /// As the client has it.
    pub(super) own: &'a str,
}

impl Hosts<'_> {
    /// Where a place is for a client that sees everything behind a prefix. Places elsewhere, and
    /// those told from where the client is, stay as they are.
    pub(super) fn seen_by_client(&self, place: &str, prefix: &str) -> String {
        let Ok(url) = place.parse::<Uri>() else { return place.to_owned() };
        let host = url.authority().map(|authority| authority.as_str());
        let is_elsewhere = host.is_some_and(|host| host != self.behind && host != self.own);
        if is_elsewhere || !place.contains('/') {
            return place.to_owned();
        }
        let origin = match (url.scheme_str(), host) {
            (Some(scheme), Some(host)) if host == self.own => format!("{scheme}://{host}"),
            _ => String::new(),
        };
        let rest = url.path_and_query().map(|rest| rest.as_str()).unwrap_or_default();
        let prefix = match url.path().starts_with(prefix) {
            true => "",
            false => prefix.trim_end_matches('/'),
        };
        format!("{origin}{prefix}{rest}")
    }
}

/// The headers of a client, without what is for this server only.
fn headers(parts: &Parts) -> HeaderMap {
    let mut headers = parts.headers.clone();
    front::remove_credentials(&mut headers);
    if let Some(peer) = parts.extensions.get::<Arc<Peer>>() {
        front::forward_for(&mut headers, peer.address.ip());
    }
    headers
}

fn request<B>(
    parts: &Parts,
    headers: HeaderMap,
    target: &str,
    body: B,
) -> Result<Request<B>, Refusal> {
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = uri(target)?;
    *request.headers_mut() = headers;
    Ok(request)
}

fn uri(target: &str) -> Result<Uri, Refusal> {
    target.parse().map_err(|_| Box::new(Status::bad_request("invalid URL")))
}

/// An answer as it came, but for what is about the connection it came over.
fn passed(answer: Response<Answer>) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    front::remove_hop_by_hop(&mut parts.headers);
    let mut response = Response::new(relay::passed(body));
    *response.status_mut() = parts.status;
    *response.headers_mut() = parts.headers;
    response
}

fn moved(place: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

/// Refuses to lead clients to this machine, where they may reach what they otherwise could not.
async fn check_global(line: &Line) -> Result<(), Refusal> {
    let refused = |why: String| -> Refusal { Box::new(Status::bad_request(why)) };
    let authority = line.authority();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let found = tokio::net::lookup_host(authority).await;
    let mut found = found.map_err(|_| refused(format!("lookup {host}: no such host")))?.peekable();
    if found.peek().is_none() {
        return Err(refused("no addresses for hostname".to_owned()));
    }
    match found.all(|address| is_global(address.ip())) {
        true => Ok(()),
        false => Err(refused("address not allowed".to_owned())),
    }
}
