//! An API endpoint spoken to in raw HTTP: what is sent and what comes back, byte for byte.
//!
//! Authentication and TLS, or their absence, are the business of a `kube` client; nothing else of
//! `kube` touches a request or an answer.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::{HeaderMap, Method, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use crate::socket::Socket;

/// Who we say we are; upstream names the field manager of a plain write after it.
const USER_AGENT: &str = "kubewright-conformance/1";

/// How often a state that must come is looked for.
const POLL: Duration = Duration::from_millis(20);

/// How long an event that must come may take.
const EVENT_MAX: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub struct Endpoint {
    client: kube::Client,
    /// The same server, with no credentials.
    anybody: kube::Client,
}

/// The events of one watch, as they arrive.
pub struct Watch {
    body: Body,
    line: String,
    rest: Vec<u8>,
    pub content_type: String,
}

/// One request. The target is path and query, as they go on the wire.
#[derive(Clone, Debug)]
pub struct Request {
    method: Method,
    target: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// One whole answer, whatever its status.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Endpoint {
    /// A server as its administrator sees it, and as anybody does who shows no credentials.
    pub fn new(admin: kube::Client, anybody: kube::Client) -> Self {
        Self { client: admin, anybody }
    }

    /// The current context of `KUBECONFIG` (or of the user's own kubeconfig).
    pub async fn from_kubeconfig() -> Result<Self> {
        Self::from_config(kube::Config::infer().await.context("read kubeconfig")?)
    }

    /// The current context of this file.
    pub async fn from_file(path: &Path) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(path).context("read kubeconfig")?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        Self::from_config(config.context("read kubeconfig")?)
    }

    fn from_config(mut config: kube::Config) -> Result<Self> {
        // A 503 or 504 is an answer like any other, not a reason to ask again.
        config.default_retry = false;
        let admin = kube::Client::try_from(config.clone()).context("set up the client")?;
        config.auth_info = AuthInfo::default();
        let anybody = kube::Client::try_from(config).context("set up the client")?;
        Ok(Self::new(admin, anybody))
    }

    /// The same server for a client that shows no credentials of its own.
    pub fn without_credentials(&self) -> Self {
        Self::new(self.anybody.clone(), self.anybody.clone())
    }

    /// Sends one request and reads the whole answer; only a broken connection is an error.
    pub async fn send(&self, request: &Request) -> Result<Answer> {
        let response =
            self.client.send(request.to_http()?).await.with_context(|| request.line())?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect_bytes().await.with_context(|| request.line())?.to_vec();
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, bytes })
    }

    /// Has a connection become a WebSocket of this protocol; anything else is an error.
    pub async fn upgrade(&self, request: &Request, protocol: &str) -> Result<Socket> {
        // The key is arbitrary, and so is what the server makes of it.
        let request = request.clone();
        let request = request
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
            .header(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        let response =
            self.client.send(request.to_http()?).await.with_context(|| request.line())?;
        let status = response.status().as_u16();
        if status != 101 {
            let (parts, body) = response.into_parts();
            let bytes = body.collect_bytes().await.with_context(|| request.line())?.to_vec();
            bail!("{}: {}", request.line(), Answer { status, headers: parts.headers, bytes });
        }
        let chosen = response.headers().get(header::SEC_WEBSOCKET_PROTOCOL);
        let chosen = chosen.and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
        let connection = hyper::upgrade::on(response).await.with_context(|| request.line())?;
        Ok(Socket::new(connection, chosen))
    }

    /// Opens a watch; anything but a stream is an error.
    pub async fn watch(&self, request: &Request) -> Result<Watch> {
        let response =
            self.client.send(request.to_http()?).await.with_context(|| request.line())?;
        let (parts, body) = response.into_parts();
        let answer =
            Answer { status: parts.status.as_u16(), headers: parts.headers, bytes: vec![] };
        if answer.status != 200 {
            let bytes = body.collect_bytes().await.with_context(|| request.line())?.to_vec();
            bail!("{}: {}", request.line(), Answer { bytes, ..answer });
        }
        Ok(Watch {
            body,
            line: request.line(),
            rest: Vec::new(),
            content_type: answer.content_type().to_owned(),
        })
    }

    /// Asks again and again until `done` is content with the answer.
    pub async fn poll(
        &self,
        request: &Request,
        patience: Duration,
        done: impl Fn(&Answer) -> bool,
    ) -> Result<Answer> {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let answer = self.send(request).await?;
            if done(&answer) {
                return Ok(answer);
            }
            if tokio::time::Instant::now() > deadline {
                bail!("{}: not as awaited after {patience:?}: {answer}", request.line());
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Watch {
    /// The next event, or `None` when the server ends the watch.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        tokio::time::timeout(EVENT_MAX, self.read_line())
            .await
            .with_context(|| format!("{}: no event in {EVENT_MAX:?}", self.line))?
    }

    /// The next event, which must come.
    pub async fn event(&mut self) -> Result<Value> {
        self.next().await?.with_context(|| format!("{}: the watch ended", self.line))
    }

    async fn read_line(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                let event = serde_json::from_slice(&line)
                    .with_context(|| format!("not an event: {}", String::from_utf8_lossy(&line)))?;
                return Ok(Some(event));
            }
            match self.body.frame().await {
                Some(frame) => {
                    let frame = frame.with_context(|| self.line.clone())?;
                    self.rest.extend_from_slice(&frame.into_data().unwrap_or_default());
                }
                None if self.rest.is_empty() => return Ok(None),
                None => bail!("{}: the watch ended in the middle of an event", self.line),
            }
        }
    }
}

impl Request {
    pub fn new(method: Method, target: impl Into<String>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, header::HeaderValue::from_static(USER_AGENT));
        headers.insert(header::ACCEPT, header::HeaderValue::from_static("application/json"));
        Self { method, target: target.into(), headers, body: Vec::new() }
    }

    pub fn get(target: impl Into<String>) -> Self {
        Self::new(Method::GET, target)
    }

    pub fn post(target: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::POST, target).json(body)
    }

    pub fn put(target: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::PUT, target).json(body)
    }

    pub fn delete(target: impl Into<String>) -> Self {
        Self::new(Method::DELETE, target)
    }

    pub fn merge_patch(target: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::PATCH, target).json(body).content_type("application/merge-patch+json")
    }

    pub fn json_patch(target: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::PATCH, target).json(body).content_type("application/json-patch+json")
    }

    pub fn strategic_patch(target: impl Into<String>, body: &Value) -> Self {
        let media_type = "application/strategic-merge-patch+json";
        Self::new(Method::PATCH, target).json(body).content_type(media_type)
    }

    /// A server-side apply; the field manager is in the target.
    pub fn apply(target: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::PATCH, target).json(body).content_type("application/apply-patch+yaml")
    }

    pub fn json(self, body: &Value) -> Self {
        self.body(body.to_string()).content_type("application/json")
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub fn content_type(self, media_type: &str) -> Self {
        self.header(header::CONTENT_TYPE, media_type)
    }

    pub fn accept(self, media_types: &str) -> Self {
        self.header(header::ACCEPT, media_types)
    }

    /// # Panics
    /// When `value` cannot be a header's value.
    pub fn header(mut self, name: header::HeaderName, value: &str) -> Self {
        let value = value.parse().expect("a header value is visible ASCII");
        self.headers.insert(name, value);
        self
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header(header::AUTHORIZATION, &format!("Bearer {token}"))
    }

    /// Acts as another user, which the server must allow.
    pub fn impersonate(self, user: &str) -> Self {
        self.header(header::HeaderName::from_static("impersonate-user"), user)
    }

    /// Method and target, to name the request in messages.
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }

    fn to_http(&self) -> Result<http::Request<Body>> {
        let mut request = http::Request::builder()
            .method(self.method.clone())
            .uri(&self.target)
            .body(Body::from(self.body.clone()))
            .with_context(|| self.line())?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.bytes).with_context(|| format!("answer is not JSON: {self}"))
    }

    /// The whole media type, with its parameters.
    pub fn content_type(&self) -> &str {
        self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// A header's value; empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// The texts of all `Warning: 299` headers, in order.
    pub fn warnings(&self) -> Vec<String> {
        self.headers
            .get_all(header::WARNING)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .map(|value| warning_text(&value).unwrap_or(value))
            .collect()
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, String::from_utf8_lossy(&self.bytes).trim_end())
    }
}

/// The quoted text of `299 - "text"`, unescaped.
fn warning_text(header: &str) -> Option<String> {
    let quoted = header.strip_prefix("299 - \"")?.strip_suffix('"')?;
    let mut text = String::new();
    let mut chars = quoted.chars();
    while let Some(char) = chars.next() {
        text.push(if char == '\\' { chars.next()? } else { char });
    }
    Some(text)
}
