//! Requests that another server answers: they are passed on, and so are its answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use http::{Request, Response, StatusCode};

use super::Registration;
use super::front;
use crate::authn::FrontProxy;
use crate::body::Body;
use crate::document;
use crate::edge::{self, Peer};
use crate::outbound::{Answer, Line};
use crate::relay::{self, Switch, Switchable, asks_to_switch};
use crate::server::Authorized;
use crate::target::Target;

/// How long a server may take to say what it serves: all clients wait for that.
const DISCOVERY_MAX: Duration = Duration::from_secs(5);
/// How an error says that there was no time left.
const TOO_LATE: &str = "context deadline exceeded";

/// Passes a request on to the server of a registration, and its answer back. `believed` are the
/// proxies that this server believes.
pub(crate) async fn pass_on<B>(
    registration: &Registration,
    line: &Line,
    believed: Option<&FrontProxy>,
    authorized: Authorized,
    body: B,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let is_available = registration.remote.as_ref().is_some_and(|remote| remote.is_available);
    let unavailable = || text(StatusCode::SERVICE_UNAVAILABLE, "service unavailable");
    if !is_available {
        return unavailable();
    }
    let Ok(line) = line.to_endpoint() else { return unavailable() };
    let host = line.authority();
    let Authorized { user, target, mut parts, .. } = authorized;
    let is_upgrade = asks_to_switch(&parts.headers);
    let is_switchable = parts.extensions.get::<Switchable>().is_some();
    let audit_id = parts.headers.get(&edge::AUDIT_ID).cloned();

    let mut headers = std::mem::take(&mut parts.headers);
    front::remove_credentials(&mut headers);
    if let Some(believed) = believed {
        believed.clear(&mut headers);
    }
    let path = front::escape_path(parts.uri.path());
    if !is_upgrade {
        front::remove_hop_by_hop(&mut headers);
        front::forwarded(&mut headers, host, &path);
    }
    // Only now: a client names in `Connection` which headers are taken away, and these may not be.
    if front::introduce(&mut headers, &user).is_err() {
        let why = "error trying to reach service: net/http: invalid header field value";
        return text(StatusCode::SERVICE_UNAVAILABLE, why);
    }
    if let Some(peer) = parts.extensions.get::<Arc<Peer>>() {
        front::forward_for(&mut headers, peer.address.ip());
    }
    if let Ok(host) = HeaderValue::from_str(host) {
        headers.insert(HOST, host);
    }
    let mut request = Request::new(body);
    *request.method_mut() = parts.method;
    *request.headers_mut() = headers;
    match front::target(parts.uri.path(), parts.uri.query()).parse() {
        Ok(uri) => *request.uri_mut() = uri,
        Err(_) => return document::bad_request().map(Body::from),
    }
    if is_upgrade {
        return switch(&line, request, is_switchable).await;
    }
    let sent = line.send(request);
    let answered = match is_discovery(&target) {
        true => match tokio::time::timeout(DISCOVERY_MAX, sent).await {
            Ok(answered) => answered.map_err(|error| error.to_string()),
            Err(_) => Err(TOO_LATE.to_owned()),
        },
        false => sent.await.map_err(|error| error.to_string()),
    };
    match answered {
        Ok(answer) => answered_by(answer, host, audit_id),
        Err(error) => {
            let why = format!("error trying to reach service: {error}");
            text(StatusCode::SERVICE_UNAVAILABLE, &why)
        }
    }
}

/// Whether a server is asked what a version has.
fn is_discovery(target: &Target) -> bool {
    match target {
        Target::Path { path, .. } => path.trim_matches('/').split('/').count() == 3,
        Target::Resource(_) => false,
    }
}

/// The answer of a server, as its client gets it.
fn answered_by(
    answer: Response<Answer>,
    host: &str,
    audit_id: Option<HeaderValue>,
) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    if parts.status.is_redirection() && parts.headers.contains_key(LOCATION) {
        let why = "the backend attempted to redirect this request, which is not permitted";
        let mut refused = Response::new(Body::from(Bytes::from_static(why.as_bytes())));
        *refused.status_mut() = StatusCode::BAD_GATEWAY;
        refused.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
        return refused;
    }
    front::remove_hop_by_hop(&mut parts.headers);
    front::remove_cors(&mut parts.headers);
    locate(&mut parts.headers, host);
    // Ours come first; what the other server says of the same is added.
    let mut headers = HeaderMap::new();
    if let Some(audit_id) = audit_id {
        headers.insert(&edge::AUDIT_ID, audit_id);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    for (name, value) in &parts.headers {
        headers.append(name, value.clone());
    }
    let mut response = Response::new(relay::passed(body));
    *response.status_mut() = parts.status;
    *response.headers_mut() = headers;
    response
}

/// Has a place without a host lie where it was told of.
fn locate(headers: &mut HeaderMap, host: &str) {
    let place = headers.get(LOCATION).and_then(|place| place.to_str().ok());
    if let Some(place) = place.filter(|place| place.starts_with('/') && !place.starts_with("//"))
        && let Ok(place) = HeaderValue::try_from(format!("https://{host}{place}"))
    {
        headers.insert(LOCATION, place);
    }
}

/// Has a server and the client leave HTTP, or tells why they do not.
async fn switch<B>(line: &Line, request: Request<B>, is_switchable: bool) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match relay::switch(line, request, is_switchable).await {
        Ok(Switch::Done(response)) => response,
        Ok(Switch::Refused(answer)) => answered_by(answer, line.authority(), None),
        Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

/// A few words, as Go's servers put them.
fn text(status: StatusCode, words: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(Bytes::from(format!("{words}\n"))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
