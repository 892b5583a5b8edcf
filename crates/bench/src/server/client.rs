//! A client that does as little as a client can: one connection, prepared bodies, answers counted
//! and dropped.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kubewright_cluster::Pki;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// Where a server is, and how its administrator connects to it.
#[derive(Clone)]
pub(crate) struct Endpoint {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
}

/// A connection of HTTP/1.1 that is kept.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    /// Reads and writes for as long as the client is there.
    _connection: JoinSet<()>,
}

impl Endpoint {
    pub(crate) fn new(address: SocketAddr, pki: &Pki) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pki.ca.certificate.as_bytes())?)?;
        let own = CertificateDer::from_pem_slice(pki.admin.certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(pki.admin.key.as_bytes())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![own], key)?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Endpoint { address, tls: Arc::new(tls) })
    }

    pub(crate) async fn connect(&self) -> Result<Client> {
        let stream = TcpStream::connect(self.address).await.context("connect")?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let stream = connector.connect(name, stream).await.context("secure a connection")?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // Whoever waits for an answer learns of it.
            let _ = connection.await;
        });
        Ok(Client { sender, _connection: tasks })
    }
}

impl Client {
    /// Sends a request and gives the answer's body if it was a success.
    pub(crate) async fn open(&mut self, request: Request<Full<Bytes>>) -> Result<Incoming> {
        self.sender.ready().await.context("use a connection")?;
        let what = format!("{} {}", request.method(), request.uri());
        let response = self.sender.send_request(request).await.context(what.clone())?;
        let status = response.status();
        if !status.is_success() {
            let text = response.into_body().collect().await?.to_bytes();
            bail!("{what}: {status}: {}", String::from_utf8_lossy(&text));
        }
        Ok(response.into_body())
    }

    /// Sends a request, reads the whole answer, and tells how long it was.
    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<usize> {
        let mut body = self.open(request).await?;
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok(length)
    }

    /// The whole answer to a request.
    pub(crate) async fn read(&mut self, request: Request<Full<Bytes>>) -> Result<Bytes> {
        Ok(self.open(request).await?.collect().await?.to_bytes())
    }
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    request(Method::GET, path, "application/json", Bytes::new())
}

pub(crate) fn request(
    method: Method,
    path: &str,
    media_type: &'static str,
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("accept", "application/json")
        .header("content-type", media_type)
        .body(Full::new(body.into()))
        .expect("a request")
}
