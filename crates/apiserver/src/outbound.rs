//! Calls to other servers: webhooks, and servers that this one stands in front of.
//!
//! A [`Line`] leads to one of them and keeps its connections for the next call. Nothing runs
//! beside a call: whoever waits for an answer moves the connection, and who stops waiting hangs up.
//! What goes wrong is told in the words of Go's client, which is what upstream shows.

mod error;
mod redirect;
mod resolve;
pub(crate) mod review;
#[cfg(test)]
pub(crate) mod tests;
mod tls;
mod wire;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full, Limited};
use serde_json::Value;

use crate::index::Store;

pub(crate) use error::CallError;
pub use tls::Identity;
pub(crate) use tls::{Config as Security, Trust};
pub(crate) use wire::Answer;

use error::Cause;
use wire::Wire;

/// How long a connection that nobody uses is good for.
const IDLE_MAX: Duration = Duration::from_secs(90);
/// How many connections that nobody uses are kept.
const IDLE_COUNT_MAX: usize = 25;

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Host { host: String, port: u16 },
    Service { namespace: String, name: String, port: u16 },
}

/// The way to a server.
pub(crate) struct Line {
    store: Store,
    place: Place,
    /// As URLs have it: the port only if it was given.
    authority: String,
    path: String,
    /// None if nobody need be who they should be, nor be spoken to in secret.
    security: Option<tls::Config>,
    /// Who the server must be, if that is not who the URL says.
    name: Option<String>,
    idle: Arc<Idle>,
}

/// Connections that wait for the next call.
#[derive(Default)]
pub(crate) struct Idle(Mutex<Vec<(Wire, Instant)>>);

/// Why a `clientConfig` leads nowhere. Such a one is not stored, unless by another server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("webhook configuration must have either service or URL")]
    Nowhere,
    #[error("Unparsable URL: {0}")]
    Url(String),
    #[error("unable to load root certificates: unable to parse bytes as PEM block")]
    Bundle,
}

impl Line {
    /// Leads to `place`, which shows a certificate that is trusted as `trust` says.
    pub(crate) fn new(store: Store, place: Place, trust: &Trust, own: Option<&Identity>) -> Self {
        let (authority, name) = match &place {
            Place::Host { host, port } => (join(host, *port), None),
            Place::Service { namespace, name, port } => {
                let name = format!("{name}.{namespace}.svc");
                (format!("{name}:{port}"), Some(name))
            }
        };
        let security = Some(tls::Config::new(trust, own));
        let (path, idle) = ("/".to_owned(), Arc::default());
        Line { store, place, authority, path, security, name, idle }
    }

    /// Leads to a host, in the clear without security.
    pub(crate) fn to_host(
        store: Store,
        host: String,
        port: u16,
        security: Option<Security>,
    ) -> Self {
        let authority = join(&host, port);
        let place = Place::Host { host, port };
        Line {
            store,
            place,
            authority,
            path: "/".to_owned(),
            security,
            name: None,
            idle: Arc::default(),
        }
    }

    /// Leads to where the `clientConfig` of a webhook says.
    pub(crate) fn of_client_config(store: Store, config: &Value) -> Result<Self, ConfigError> {
        let bundle = config["caBundle"].as_str().unwrap_or_default();
        let trust = match BASE64_STANDARD.decode(bundle) {
            Ok(bundle) if bundle.is_empty() => Trust::System,
            Ok(bundle) => Trust::Bundle(bundle),
            Err(_) => return Err(ConfigError::Bundle),
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let service = &config["service"];
        if service.is_object() {
            let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok());
            let place = Place::Service {
                namespace: text(&service["namespace"]),
                name: text(&service["name"]),
                port: port.unwrap_or(443),
            };
            let mut line = Line::new(store, place, &trust, None);
            line.path = format!("/{}", text(&service["path"]).trim_start_matches('/'));
            return Ok(line);
        }
        let Some(url) = config["url"].as_str() else { return Err(ConfigError::Nowhere) };
        let url: Uri = url.parse().map_err(|_| ConfigError::Url(url.to_owned()))?;
        let Some(host) = url.host() else { return Err(ConfigError::Url(url.to_string())) };
        let place = Place::Host {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port_u16().unwrap_or(443),
        };
        let mut line = Line::new(store, place, &trust, None);
        line.authority = url.authority().map(|authority| authority.to_string()).unwrap_or_default();
        line.path = url.path().to_owned();
        Ok(line)
    }

    /// The path that a `clientConfig` names.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The host and port that URLs name.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Makes a request and reads all of the answer, of which there may be so much. The target is a
    /// path, perhaps with a query.
    ///
    /// # Errors
    /// Say what was requested, as Go's client does.
    pub(crate) async fn call(
        &self,
        request: Request<Bytes>,
        timeout: Duration,
        limit: usize,
    ) -> Result<Response<Bytes>, CallError> {
        let (method, url) = (request.method().clone(), self.url(request.uri()));
        let answered = self.exchange(request, timeout, limit).await;
        answered.map_err(|error| error.about(&method, &url))
    }

    /// The URL of a target.
    pub(crate) fn url(&self, target: &Uri) -> String {
        let scheme = if self.security.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{target}", self.authority)
    }

    async fn exchange(
        &self,
        request: Request<Bytes>,
        timeout: Duration,
        limit: usize,
    ) -> Result<Response<Bytes>, CallError> {
        let exchange = async {
            let answer = self.send(request.map(Full::new)).await?;
            let (parts, body) = answer.into_parts();
            match Limited::new(body, limit).collect().await {
                Ok(body) => Ok(Response::from_parts(parts, body.to_bytes())),
                Err(error) => Err(CallError::from(Cause::of_body(error))),
            }
        };
        let answered = tokio::time::timeout(timeout, exchange).await;
        answered.unwrap_or_else(|_| Err(Cause::TimedOut.into()))
    }

    /// Makes a request and gives the answer as soon as it begins. The target is a path, perhaps
    /// with a query.
    pub(crate) async fn send<B>(&self, request: Request<B>) -> Result<Response<Answer>, CallError>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut request = request.map(wire::Sent::of);
        if !request.headers().contains_key(header::HOST)
            && let Ok(host) = HeaderValue::from_str(&self.authority)
        {
            request.headers_mut().insert(header::HOST, host);
        }
        // A server may hang up on a connection that nobody used; that is no answer to the request,
        // which is made once more if that is possible.
        let again = request.body().is_end_stream().then(|| {
            let mut again = Request::new(());
            *again.method_mut() = request.method().clone();
            *again.uri_mut() = request.uri().clone();
            *again.headers_mut() = request.headers().clone();
            again
        });
        while let Some(mut wire) = self.idle.take(self.only()) {
            if !wire.is_ready().await {
                continue;
            }
            match wire.exchange(request).await {
                Ok(answer) => return Ok(answer.map(|body| Answer::new(body, wire, &self.idle))),
                Err((cause, unsent)) => {
                    match unsent.or_else(|| again.clone().map(wire::Sent::bare)) {
                        Some(unsent) => request = unsent,
                        None => return Err(cause.into()),
                    }
                }
            }
        }
        let mut wire = self.connect().await?;
        match wire.exchange(request).await {
            Ok(answer) => Ok(answer.map(|body| Answer::new(body, wire, &self.idle))),
            Err((cause, _)) => Err(cause.into()),
        }
    }

    /// The same way, to the one place where a new connection would lead now: of the endpoints of a
    /// Service, each request that is passed on goes to one that is there at that moment, and says
    /// which.
    ///
    /// # Errors
    /// Say why there is none, in upstream's words.
    pub(crate) fn to_endpoint(&self) -> Result<Line, String> {
        let (host, port) = self.resolve()?;
        Ok(Line {
            store: self.store.clone(),
            authority: join(&host, port),
            place: Place::Host { host, port },
            path: self.path.clone(),
            security: self.security.clone(),
            name: self.name.clone(),
            idle: Arc::clone(&self.idle),
        })
    }

    /// The one place where its connections lead; a Service's may lead to any of its endpoints, also
    /// to one that was there when they were made, as upstream's to webhooks do.
    fn only(&self) -> Option<(&str, u16)> {
        match &self.place {
            Place::Host { host, port } => Some((host, *port)),
            Place::Service { .. } => None,
        }
    }

    fn resolve(&self) -> Result<(String, u16), String> {
        match &self.place {
            Place::Host { host, port } => Ok((host.clone(), *port)),
            Place::Service { namespace, name, port } => {
                resolve::service(&self.store, namespace, name, *port)
            }
        }
    }

    /// Makes a new connection.
    async fn connect(&self) -> Result<Wire, CallError> {
        let (host, port) = self.resolve().map_err(Cause::Unresolved)?;
        let socket = wire::dial(&host, port).await?;
        let ends = wire::ends(&socket).unwrap_or_default();
        let place = (host.clone(), port);
        let Some(security) = &self.security else {
            return Ok(Wire::begin(socket, place, ends).await?);
        };
        let name = self.name.clone().unwrap_or(host);
        let secured = security.secure(socket, name).await?;
        Ok(Wire::begin(secured, place, ends).await?)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Idle {
    /// The connection used last, to this place or any, if it is good for another call.
    fn take(&self, place: Option<(&str, u16)>) -> Option<Wire> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at =
            idle.iter().rposition(|(wire, _)| place.is_none_or(|place| wire.leads_to(place)))?;
        let (wire, since) = idle.remove(at);
        (since.elapsed() < IDLE_MAX).then_some(wire)
    }

    fn keep(&self, wire: Wire) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(_, since)| since.elapsed() < IDLE_MAX);
        if idle.len() == IDLE_COUNT_MAX {
            // The one that was used longest ago: it may lead to where nobody is any more.
            idle.remove(0);
        }
        idle.push((wire, Instant::now()));
    }
}

/// A host and a port as URLs and errors have them.
fn join(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}
