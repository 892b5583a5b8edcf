//! A client that does as little as a client can: one connection, prepared requests, answers counted
//! and dropped. It shares the machine with the server it measures, so whatever it uses is missing
//! there.

mod answer;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use http::Method;
use kubewright_cluster::Pki;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use self::answer::Answer;
use self::wire::Wire;

/// Where a server is, and how its administrator connects to it.
#[derive(Clone)]
pub(crate) struct Endpoint {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
}

/// A connection of HTTP/1.1 that is kept.
pub(crate) struct Client {
    wire: Wire,
    answer: Answer,
    /// What of the body has come and was not taken.
    early: BytesMut,
    refusal: Vec<u8>,
}

/// A request as it travels.
pub(crate) struct Request(Vec<u8>);

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
        let wire = Wire::connect(self.address, Arc::clone(&self.tls)).await?;
        let answer = Answer::default();
        Ok(Client { wire, answer, early: BytesMut::new(), refusal: Vec::new() })
    }
}

impl Client {
    /// Sends a request and waits until it succeeds, which is when the answer begins;
    /// [`Client::more`] gives its body.
    pub(crate) async fn open(&mut self, request: Request) -> Result<()> {
        self.begin(&request).await?;
        let mut early = BytesMut::new();
        while !self.answer.has_status() || (!self.answer.is_success() && !self.answer.is_over()) {
            self.receive(&mut |body| early.extend_from_slice(body)).await?;
        }
        self.early = early;
        self.judge(&request)
    }

    /// Waits for more of the body and hands over all that has come; false if it is over.
    pub(crate) async fn more(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool> {
        if !self.early.is_empty() {
            take(&std::mem::take(&mut self.early));
            return Ok(true);
        }
        if self.answer.is_over() {
            return Ok(false);
        }
        self.receive(&mut take).await?;
        Ok(true)
    }

    /// The next line of the body.
    pub(crate) async fn line(&mut self) -> Result<Bytes> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.early) {
                return Ok(self.early.split_to(end + 1).freeze());
            }
            ensure!(!self.answer.is_over(), "the answer ended");
            let mut more = Vec::new();
            self.receive(&mut |body| more.extend_from_slice(body)).await?;
            self.early.extend_from_slice(&more);
        }
    }

    /// Sends a request, reads the whole answer, and tells how long it was.
    pub(crate) async fn send(&mut self, request: Request) -> Result<usize> {
        let mut length = 0;
        self.exchange(&request, |body| length += body.len()).await?;
        Ok(length)
    }

    /// The whole answer to a request.
    pub(crate) async fn read(&mut self, request: Request) -> Result<Vec<u8>> {
        let mut whole = Vec::new();
        self.read_into(request, &mut whole).await?;
        Ok(whole)
    }

    /// The same, into memory that is there already.
    pub(crate) async fn read_into(&mut self, request: Request, whole: &mut Vec<u8>) -> Result<()> {
        whole.clear();
        self.exchange(&request, |body| whole.extend_from_slice(body)).await
    }

    async fn exchange(&mut self, request: &Request, mut take: impl FnMut(&[u8])) -> Result<()> {
        self.begin(request).await?;
        while !self.answer.is_over() {
            self.receive(&mut take).await?;
        }
        self.judge(request)
    }

    async fn begin(&mut self, request: &Request) -> Result<()> {
        self.answer = Answer::default();
        self.refusal.clear();
        self.wire.send(&request.0).await.with_context(|| request.line())
    }

    async fn receive(&mut self, take: &mut impl FnMut(&[u8])) -> Result<()> {
        let Client { wire, answer, refusal, .. } = self;
        let mut sort = |is_success: bool, body: &[u8]| match is_success {
            true => take(body),
            false => refusal.extend_from_slice(body),
        };
        wire.receive(|bytes| answer.feed(bytes, &mut sort)).await
    }

    fn judge(&self, request: &Request) -> Result<()> {
        if !self.answer.is_success() {
            let (status, text) = (self.answer.status(), String::from_utf8_lossy(&self.refusal));
            bail!("{}: {status}: {text}", request.line());
        }
        Ok(())
    }
}

impl Request {
    /// Method and path, for people.
    fn line(&self) -> String {
        let line = self.0.split(|byte| *byte == b'\r').next().unwrap_or_default();
        String::from_utf8_lossy(line).trim_end_matches(" HTTP/1.1").to_owned()
    }
}

pub(crate) fn get(path: &str) -> Request {
    request(Method::GET, path, "application/json", "")
}

pub(crate) fn request(
    method: Method,
    path: &str,
    media_type: &str,
    body: impl AsRef<[u8]>,
) -> Request {
    let body = body.as_ref();
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\
         Content-Type: {media_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    Request(bytes)
}
