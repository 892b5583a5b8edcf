//! Extension API servers: servers over TLS on this machine that a scenario starts, and that the
//! server under test passes requests on to.
//!
//! It finds them as it would find any, by a Service, which leads to a host by name or to endpoints.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, Method, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A server for requests of any kind. It ends when it is dropped.
pub(crate) struct Extension {
    address: SocketAddr,
    /// The certificate of the authority behind the server's own, in PEM.
    authority: String,
    acceptor: TlsAcceptor,
    answer: Answer,
    heard: Arc<Mutex<Vec<Asked>>>,
    serving: JoinSet<()>,
}

/// One request that came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether the client has shown a certificate that the authorities vouch for.
    pub(crate) is_certified: bool,
}

pub(crate) type Reply = Response<BoxBody<Bytes, Infallible>>;

type Answer = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

/// An object, or anything else that is JSON.
pub(crate) fn json(status: StatusCode, body: &Value) -> Reply {
    whole(status, "application/json", body.to_string())
}

/// An answer that is there at once.
pub(crate) fn whole(status: StatusCode, media_type: &'static str, body: String) -> Reply {
    let mut reply = Response::new(Full::from(body).boxed());
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type));
    reply
}

impl Asked {
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// All values of a header.
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        let values = self.headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok()).collect()
    }
}

/// The authorities of several servers, as an APIService says them.
pub(crate) fn ca_bundle(extensions: &[&Extension]) -> String {
    let authorities = extensions.iter().map(|extension| extension.authority.as_str());
    BASE64_STANDARD.encode(authorities.collect::<String>())
}

impl Extension {
    /// Starts a server at `127.0.0.1` with a certificate for this name. Who shows a certificate must
    /// have it from `authorities`, in PEM, if there are any.
    pub(crate) async fn start(
        name: &str,
        authorities: &str,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST, name, authorities, answer).await
    }

    /// As [`Self::start`], at this address of the machine.
    pub(crate) async fn start_at(
        address: Ipv4Addr,
        name: &str,
        authorities: &str,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let (authority, acceptor) = secured(name, authorities)?;
        let listener = TcpListener::bind((address, 0)).await.context("listen")?;
        let mut extension = Extension {
            address: listener.local_addr()?,
            authority,
            acceptor,
            answer: Arc::new(answer),
            heard: Arc::default(),
            serving: JoinSet::new(),
        };
        extension.serve(listener);
        Ok(extension)
    }

    /// Hangs up on everybody.
    pub(crate) async fn stop(&mut self) {
        self.serving.shutdown().await;
    }

    /// Serves again where it did before.
    pub(crate) async fn resume(&mut self) -> Result<()> {
        let listener = TcpListener::bind(self.address).await.context("listen again")?;
        self.serve(listener);
        Ok(())
    }

    fn serve(&mut self, listener: TcpListener) {
        let (answer, heard) = (Arc::clone(&self.answer), Arc::clone(&self.heard));
        self.serving.spawn(serve(listener, self.acceptor.clone(), answer, heard));
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The authority to trust, as an APIService says it.
    pub(crate) fn ca_bundle(&self) -> String {
        ca_bundle(&[self])
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The certificate of a new authority, and a server's side of TLS with one that it issued.
fn secured(name: &str, authorities: &str) -> Result<(String, TlsAcceptor)> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "conformance extension");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

    let key = KeyPair::generate()?;
    let params = CertificateParams::new(vec![name.to_owned()])?;
    let certificate = params.signed_by(&key, &authority)?;
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(certificate?)?;
    }
    let config = match roots.is_empty() {
        true => config.with_no_client_auth(),
        false => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            config.with_client_cert_verifier(verifier.allow_unauthenticated().build()?)
        }
    };
    let config = config.with_single_cert(chain, key)?;
    Ok((authority.pem(), TlsAcceptor::from(Arc::new(config))))
}

/// Answers all who come, until it is dropped.
async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    answer: Answer,
    heard: Arc<Mutex<Vec<Asked>>>,
) {
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
async fn talk(
    socket: TcpStream,
    acceptor: TlsAcceptor,
    answer: Answer,
    heard: Arc<Mutex<Vec<Asked>>>,
) {
    let Ok(secured) = acceptor.accept(socket).await else { return };
    let is_certified = secured.get_ref().1.peer_certificates().is_some();
    let service = service_fn(|request: http::Request<Incoming>| {
        let (answer, heard) = (Arc::clone(&answer), Arc::clone(&heard));
        async move {
            let (parts, body) = request.into_parts();
            let asked = Asked {
                method: parts.method,
                target: parts.uri.to_string(),
                headers: parts.headers,
                body: body.collect().await?.to_bytes().to_vec(),
                is_certified,
            };
            let reply = answer(&asked);
            heard.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
            anyhow::Ok(reply)
        }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(secured), service).await;
}
