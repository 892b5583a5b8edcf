//! A client that can do what no well-behaved one would.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Where a server is, and the keys of its administrator.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) address: SocketAddr,
    tls: Arc<ClientConfig>,
    /// The same, for somebody who shows no certificate.
    anonymous: Arc<ClientConfig>,
}

/// One connection.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    /// Drives the connection.
    _connection: JoinSet<()>,
}

/// The events of a watch.
pub(crate) struct Watch {
    body: Incoming,
    buffer: BytesMut,
    _client: Client,
}

impl Access {
    /// With the keys in a directory of ours.
    pub(crate) fn new(address: SocketAddr, keys: &Path) -> Self {
        Access::with_identity(address, keys, "admin")
    }

    /// The same server for another client.
    pub(crate) fn showing(&self, keys: &Path, name: &str) -> Self {
        Access::with_identity(self.address, keys, name)
    }

    fn with_identity(address: SocketAddr, keys: &Path, name: &str) -> Self {
        let certificate =
            |file: &str| CertificateDer::from_pem_file(keys.join(file)).expect("a certificate");
        let mut roots = RootCertStore::empty();
        roots.add(certificate("ca.crt")).expect("an authority");
        let key = PrivateKeyDer::from_pem_file(keys.join(format!("{name}.key"))).expect("a key");
        let own = certificate(&format!("{name}.crt"));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let trusting = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let anonymous = Arc::new(trusting.clone().with_no_client_auth());
        let tls = trusting.with_client_auth_cert(vec![own], key).expect("a pair");
        Access { address, tls: Arc::new(tls), anonymous }
    }

    /// The same, for whom any server will do.
    pub(crate) fn trusting_anybody(address: SocketAddr, keys: &Path) -> Self {
        let own = CertificateDer::from_pem_file(keys.join("admin.crt")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(keys.join("admin.key")).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let trusting = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)));
        let anonymous = Arc::new(trusting.clone().with_no_client_auth());
        let tls = trusting.with_client_auth_cert(vec![own], key).expect("a pair");
        Access { address, tls: Arc::new(tls), anonymous }
    }

    pub(crate) fn without_identity(&self) -> Self {
        Access { tls: Arc::clone(&self.anonymous), ..self.clone() }
    }

    /// A connection on which nothing has been said.
    pub(crate) async fn secure(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::from(self.address.ip());
        TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await
    }

    pub(crate) async fn connect(&self) -> std::io::Result<Client> {
        let io = TokioIo::new(self.secure().await?);
        let (sender, connection) = http1::handshake(io).await.map_err(std::io::Error::other)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(connection.await) });
        Ok(Client { sender, _connection: tasks })
    }

    pub(crate) async fn client(&self) -> Client {
        self.connect().await.expect("connect")
    }

    pub(crate) async fn is_ready(&self) -> bool {
        let Ok(mut client) = self.connect().await else { return false };
        let request = Request::get("/readyz").body(Full::default()).expect("a request");
        client.begin(request).await.is_ok_and(|response| response.status() == 200)
    }

    /// The events of a collection from a version on.
    pub(crate) async fn watch(&self, path: &str, from: &str) -> Watch {
        let mut client = self.client().await;
        let path = format!("{path}?watch=true&resourceVersion={from}");
        let request = Request::get(path).body(Full::default()).expect("a request");
        let response = client.begin(request).await.expect("an answer");
        assert_eq!(response.status(), 200);
        Watch { body: response.into_body(), buffer: BytesMut::new(), _client: client }
    }
}

impl Client {
    /// The head of an answer.
    pub(crate) async fn begin(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        self.sender.ready().await?;
        request.headers_mut().insert("host", "localhost".parse().expect("a name"));
        self.sender.send_request(request).await
    }

    /// The status and the document of an answer; null if it is none.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<(u16, Value)> {
        let response = self.begin(request).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    /// The same for a request with a JSON document, or none.
    pub(crate) async fn try_send(
        &mut self,
        method: &str,
        path: &str,
        document: &Value,
    ) -> hyper::Result<(u16, Value)> {
        self.exchange(request(method, path, document)).await
    }

    /// The same with a bearer token.
    pub(crate) async fn send_as(
        &mut self,
        token: &str,
        method: &str,
        path: &str,
        document: &Value,
    ) -> (u16, Value) {
        let bearer = format!("Bearer {token}");
        self.send_with(&[(AUTHORIZATION.as_str(), &bearer)], method, path, document).await
    }

    /// The same with headers.
    pub(crate) async fn send_with(
        &mut self,
        headers: &[(&str, &str)],
        method: &str,
        path: &str,
        document: &Value,
    ) -> (u16, Value) {
        let mut request = request(method, path, document);
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            request.headers_mut().append(name, value.parse().expect("a value"));
        }
        self.exchange(request).await.expect("an answer")
    }

    pub(crate) async fn send(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.try_send(method, path, body).await.expect("an answer")
    }

    /// An object or a list that must be there.
    pub(crate) async fn get(&mut self, path: &str) -> Value {
        let (status, object) = self.send("GET", path, &Value::Null).await;
        assert_eq!(status, 200, "{path}: {object}");
        object
    }

    /// An object that must not be refused.
    pub(crate) async fn create(&mut self, path: &str, object: &Value) -> Value {
        let (status, created) = self.send("POST", path, object).await;
        assert_eq!(status, 201, "{path}: {created}");
        created
    }
}

/// Takes any certificate for a server's.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A request with a JSON document, or none.
fn request(method: &str, path: &str, document: &Value) -> Request<Full<Bytes>> {
    let body = match document {
        Value::Null => Bytes::new(),
        document => document.to_string().into(),
    };
    let patch = "application/merge-patch+json";
    let media = if method == "PATCH" { patch } else { "application/json" };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, media)
        .body(Full::new(body));
    request.expect("a request")
}

impl Watch {
    /// The next event, however long it takes.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                return serde_json::from_slice(&line).expect("an event");
            }
            let frame = self.body.frame().await.expect("the watch goes on").expect("a frame");
            self.buffer.extend_from_slice(frame.data_ref().expect("data"));
        }
    }
}
