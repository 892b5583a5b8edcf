//! Webhooks: servers over TLS on this machine that a scenario starts, and that answer as it says.
//!
//! The server under test calls them as it would call any webhook, wherever it runs, as long as that
//! is this machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A server for reviews. It ends when it is dropped.
pub(crate) struct Hook {
    address: SocketAddr,
    /// The certificate of the authority behind the server's own, in PEM.
    authority: String,
    heard: Arc<Heard>,
    _serving: JoinSet<()>,
}

/// What a hook says to a review.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) media_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// Where it sends who asks.
    pub(crate) location: Option<String>,
}

/// One request that came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: http::Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) review: Value,
}

type Answer = Arc<dyn Fn(&Value) -> Reply + Send + Sync>;

#[derive(Default)]
struct Heard(Mutex<Vec<Asked>>);

impl Reply {
    /// An object, as webhooks send it.
    pub(crate) fn json(body: &Value) -> Self {
        Reply::new(200, "application/json", body.to_string())
    }

    pub(crate) fn new(status: u16, media_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Reply { status, media_type, body: body.into(), location: None }
    }

    /// Sends who asks elsewhere.
    pub(crate) fn redirect(status: u16, location: impl Into<String>) -> Self {
        Reply { location: Some(location.into()), ..Reply::new(status, "text/plain", "") }
    }
}

impl Hook {
    /// Starts a server at `127.0.0.1` that has a certificate for that and for these names.
    pub(crate) async fn start(
        names: &[&str],
        answer: impl Fn(&Value) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let names: Vec<&str> = ["127.0.0.1"].iter().chain(names).copied().collect();
        Self::start_at(Ipv4Addr::LOCALHOST, &names, answer).await
    }

    /// As [`Self::start`], at this address of the machine, with a certificate for the names alone:
    /// who looks for it by a name does not ask for its address.
    pub(crate) async fn start_at(
        address: Ipv4Addr,
        names: &[&str],
        answer: impl Fn(&Value) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let (authority, acceptor) = secured(names)?;
        let listener = TcpListener::bind((address, 0)).await.context("listen")?;
        let address = listener.local_addr()?;
        let heard = Arc::<Heard>::default();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, acceptor, Arc::new(answer), Arc::clone(&heard)));
        Ok(Hook { address, authority, heard, _serving: serving })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Where it is, as a `clientConfig` says it, with the authority to trust.
    pub(crate) fn client_config(&self, path: &str) -> Value {
        json!({ "url": self.url(path), "caBundle": self.ca_bundle() })
    }

    /// Where it is.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// The authority to trust, in PEM.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// The authority to trust, as a `clientConfig` says it.
    pub(crate) fn ca_bundle(&self) -> String {
        BASE64_STANDARD.encode(&self.authority)
    }

    /// What it was asked so far. A request without a body has no review.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.heard.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The certificate of a new authority, and a server's side of TLS with one that it issued.
fn secured(names: &[&str]) -> Result<(String, TlsAcceptor)> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "conformance");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

    let key = KeyPair::generate()?;
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let certificate = CertificateParams::new(names)?.signed_by(&key, &authority)?;
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok((authority.pem(), TlsAcceptor::from(Arc::new(config))))
}

/// Answers all who come, until it is dropped.
async fn serve(listener: TcpListener, acceptor: TlsAcceptor, answer: Answer, heard: Arc<Heard>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // Who could not be accepted will come again.
                let Ok((socket, _)) = accepted else { continue };
                let (answer, heard) = (Arc::clone(&answer), Arc::clone(&heard));
                connections.spawn(talk(socket, acceptor.clone(), answer, heard));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Answers the requests of one connection. Whatever goes wrong ends it: the client will tell.
async fn talk(socket: TcpStream, acceptor: TlsAcceptor, answer: Answer, heard: Arc<Heard>) {
    let Ok(secured) = acceptor.accept(socket).await else { return };
    let service = service_fn(|request| respond(request, &answer, &heard));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(secured), service).await;
}

async fn respond(
    request: Request<Incoming>,
    answer: &Answer,
    heard: &Heard,
) -> Result<Response<Full<Bytes>>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let review = match body.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&body)?,
    };
    let Reply { status, media_type, body, location } = answer(&review);
    let target = parts.uri.to_string();
    let asked = Asked { method: parts.method, target, headers: parts.headers, review };
    heard.0.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = StatusCode::from_u16(status)?;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, media_type.parse()?);
    if let Some(location) = location {
        headers.insert(header::LOCATION, location.parse()?);
    }
    Ok(response)
}
