//! Questions over HTTP to containers: what probes ask, and what hooks call.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPGetAction;
use tokio::net::TcpStream;

use super::{dial, no_port, port};
use crate::runtime::{Runtime, Target};

/// How much of an answer is read.
const BODY_BYTES_MAX: usize = 10 * 1024;
/// So often is asked in all, when each answer only names another place.
const QUESTIONS_MAX: usize = 10;

/// What somebody said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The beginning of it.
    pub(super) body: String,
    /// Where it can be asked instead.
    location: Option<String>,
}

/// Why nobody said anything.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The question is none.
    Impossible(String),
    Failed(String),
}

/// Asks a container, and goes where it sends whoever asks, as long as that is the same host.
pub(super) async fn ask(
    runtime: &dyn Runtime,
    target: &Target,
    get: &HTTPGetAction,
    agent: &'static str,
) -> Result<Answer, Unanswered> {
    let mut question = Question::new(target, get, agent).map_err(Unanswered::Impossible)?;
    let host = question.host.clone();
    let mut n_asked = 0;
    loop {
        let answer = question.ask(runtime).await.map_err(Unanswered::Failed)?;
        n_asked += 1;
        let is_sent_on = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
        let location = answer.location.clone().filter(|_| is_sent_on);
        let Some(location) = location.filter(|location| !location.is_empty()) else {
            return Ok(answer);
        };
        let next = question.sent_on(&location).map_err(Unanswered::Failed)?;
        if next.host != host {
            return Ok(answer);
        }
        if n_asked == QUESTIONS_MAX {
            let why = format!("Get {location:?}: stopped after {QUESTIONS_MAX} redirects");
            return Err(Unanswered::Failed(why));
        }
        question = next;
    }
}

#[derive(Debug, Clone)]
struct Question {
    is_tls: bool,
    /// Without the brackets that URLs have around some.
    host: String,
    port: u16,
    path: PathAndQuery,
    headers: HeaderMap,
    /// What the server is called, if that is not where it is.
    addressed: Option<HeaderValue>,
    /// Where the pod is; none if the host is to be looked up.
    address: Option<IpAddr>,
}

impl Question {
    fn new(target: &Target, get: &HTTPGetAction, agent: &'static str) -> Result<Self, String> {
        let named = get.host.clone().filter(|host| !host.is_empty());
        let address = if named.is_some() { None } else { target.address };
        let host = named.or_else(|| address.map(|address| address.to_string()));
        let host = host.ok_or_else(|| "the pod has no address".to_owned())?;
        let port = port(&get.port, &target.container).ok_or_else(|| no_port(&get.port))?;
        let path = get.path.as_deref().unwrap_or("/");
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let path = path.parse::<PathAndQuery>().map_err(|error| error.to_string())?;
        let (headers, addressed) = headers(get, agent)?;
        let is_tls = get.scheme.as_deref() == Some("HTTPS");
        Ok(Question { is_tls, host, port, path, headers, addressed, address })
    }

    async fn ask(&self, runtime: &dyn Runtime) -> Result<Answer, String> {
        let place = self.place();
        let addressed = match &self.addressed {
            Some(addressed) => addressed.clone(),
            None => HeaderValue::from_str(&place).map_err(|error| error.to_string())?,
        };
        let request = Request::get(self.path.as_str()).body(Empty::<Bytes>::new());
        let mut request = request.map_err(|error| error.to_string())?;
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(header::HOST, addressed);
        let connected = match self.address {
            Some(address) => {
                TcpStream::connect(runtime.reach(SocketAddr::new(address, self.port))).await
            }
            None => TcpStream::connect((self.host.as_str(), self.port)).await,
        };
        let stream = connected
            .map_err(|error| format!("Get \"{}\": {}", self.url(), dial(&place, &error)))?;
        match self.is_tls {
            false => answer(stream, request).await,
            true => {
                let stream = crate::tls::anyone(&self.host, stream).await;
                answer(stream.map_err(|error| error.to_string())?, request).await
            }
        }
    }

    /// The question that an answer says should be asked instead.
    fn sent_on(&self, location: &str) -> Result<Self, String> {
        let unreadable =
            || format!("Get \"{}\": failed to parse Location header {location:?}", self.url());
        let absolute = match location {
            _ if location.starts_with("//") => Some(format!("{}:{location}", self.scheme())),
            _ if has_scheme(location) => Some(location.to_owned()),
            _ => None,
        };
        let Some(absolute) = absolute else {
            let path = resolved(self.path.path(), location);
            let path = path.parse::<PathAndQuery>().map_err(|_| unreadable())?;
            return Ok(Question { path, ..self.clone() });
        };
        let uri = absolute.parse::<Uri>().map_err(|_| unreadable())?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            other => {
                let other = other.unwrap_or_default();
                return Err(format!("Get {location:?}: unsupported protocol scheme {other:?}"));
            }
        };
        let host = uri.host().ok_or_else(unreadable)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let path = uri.path_and_query().cloned();
        let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Question { is_tls, host, port, path, addressed: None, ..self.clone() })
    }

    fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    fn place(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    fn url(&self) -> String {
        format!("{}://{}{}", self.scheme(), self.place(), self.path)
    }
}

/// What is said beside the question, and the name that the server is called by if that is given.
fn headers(
    get: &HTTPGetAction,
    agent: &'static str,
) -> Result<(HeaderMap, Option<HeaderValue>), String> {
    let mut headers = HeaderMap::new();
    let mut addressed = None;
    for own in get.http_headers.iter().flatten() {
        let value = HeaderValue::from_str(&own.value).map_err(|error| error.to_string())?;
        if own.name.eq_ignore_ascii_case("host") {
            addressed = addressed.or(Some(value));
            continue;
        }
        let name = HeaderName::from_bytes(own.name.as_bytes());
        headers.append(name.map_err(|error| error.to_string())?, value);
    }
    if !headers.contains_key(header::USER_AGENT) {
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    }
    match headers.get(header::ACCEPT).map(HeaderValue::is_empty) {
        None => drop(headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"))),
        // One without a value says that there is to be none.
        Some(true) => drop(headers.remove(header::ACCEPT)),
        Some(false) => {}
    }
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok((headers, addressed.filter(|addressed| !addressed.is_empty())))
}

/// Whether a reference begins with the name of a scheme.
fn has_scheme(location: &str) -> bool {
    let Some((scheme, _)) = location.split_once(':') else { return false };
    scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme.chars().all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it))
}

/// The path that a reference leads to from another.
fn resolved(from: &str, location: &str) -> String {
    let location = location.split('#').next().unwrap_or_default();
    let (path, query) = match location.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (location, String::new()),
    };
    let directory = from.rfind('/').map_or("/", |end| &from[..=end]);
    let joined = match path {
        "" => from.to_owned(),
        _ if path.starts_with('/') => path.to_owned(),
        _ => format!("{directory}{path}"),
    };
    let mut segments = Vec::new();
    for segment in joined.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    // What ends with dots is a directory.
    if joined.ends_with("/.") || joined.ends_with("/..") {
        segments.push("");
    }
    format!("/{}{query}", segments.join("/"))
}

async fn answer(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    request: Request<Empty<Bytes>>,
) -> Result<Answer, String> {
    let text = |error: hyper::Error| error.to_string();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
    let asking = async {
        let response = sender.send_request(request).await.map_err(text)?;
        let status = response.status().as_u16();
        let location = response.headers().get(header::LOCATION);
        let location = location.and_then(|it| it.to_str().ok()).map(str::to_owned);
        // What is longer is cut off, which is no fault.
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Answer { status, body, location })
    };
    let driving = async {
        let _ = connection.await;
        std::future::pending::<()>().await
    };
    tokio::select! {
        answered = asking => answered,
        () = driving => unreachable!("it waits for ever"),
    }
}
