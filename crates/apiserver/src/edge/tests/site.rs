//! A server on loopback, its authority, and clients for it.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response, response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::body::Body;
use crate::edge::front::Crowded;
use crate::edge::{self, Authorities, Certificates, Limits, Peer, Shown, Tls, Upload};

pub(super) struct Site {
    authority: CertifiedIssuer<'static, KeyPair>,
    client: Credentials,
    certificates: Arc<Certificates>,
    address: SocketAddr,
    shutdown: CancellationToken,
    gate: CancellationToken,
    server: JoinSet<()>,
}

/// In PEM.
pub(super) struct Credentials {
    certificate: String,
    key: String,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Protocol {
    One,
    Two,
}

/// A site that has been told to stop.
pub(super) struct Stopping {
    gate: CancellationToken,
    server: JoinSet<()>,
}

pub(super) struct Client {
    sender: Sender,
    /// Drives the connection.
    _connection: JoinSet<()>,
}

enum Sender {
    One(http1::SendRequest<String>),
    Two(http2::SendRequest<String>),
}

/// What `/bytes` and `/pieces` answer.
pub(super) fn text(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| b'a' + (at % 17) as u8).collect()
}

impl Site {
    pub(super) fn start(limits: Limits) -> Self {
        let authority = authority();
        let (certificate, key) = issue(&authority, &["localhost"]);
        let certificates = Certificates::new(certificate.as_bytes(), key.as_bytes());
        let certificates = Arc::new(certificates.expect("a pair"));
        let tls = Tls::new(
            Arc::clone(&certificates),
            Authorities { clients: authority.pem().as_bytes(), proxies: &[] },
        )
        .expect("TLS");
        let client = Credentials::of(&authority);

        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let listener = TcpListener::from_std(listener).expect("a socket");
        let address = listener.local_addr().expect("an address");
        let shutdown = CancellationToken::new();
        let gate = CancellationToken::new();
        let mut server = JoinSet::new();
        let (stop, opened) = (shutdown.clone(), gate.clone());
        server.spawn(async move {
            let handler = move |request| answer(request, opened.clone());
            edge::serve(listener, tls, limits, handler, stop).await;
        });
        Site { authority, client, certificates, address, shutdown, gate, server }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    pub(super) fn client(&self) -> &Credentials {
        &self.client
    }

    pub(super) fn issue(&self, names: &[&str]) -> (String, String) {
        issue(&self.authority, names)
    }

    pub(super) async fn connect(
        &self,
        protocol: Protocol,
        credentials: Option<&Credentials>,
    ) -> Client {
        let io = TokioIo::new(self.secure(protocol, credentials).await);
        let mut tasks = JoinSet::new();
        let sender = match protocol {
            Protocol::One => {
                let (sender, connection) = http1::handshake(io).await.expect("HTTP/1.1");
                tasks.spawn(async move { drop(connection.await) });
                Sender::One(sender)
            }
            Protocol::Two => {
                let executor = hyper_util::rt::TokioExecutor::new();
                let (sender, connection) = http2::handshake(executor, io).await.expect("HTTP/2");
                tasks.spawn(async move { drop(connection.await) });
                Sender::Two(sender)
            }
        };
        Client { sender, _connection: tasks }
    }

    pub(super) async fn secure(
        &self,
        protocol: Protocol,
        credentials: Option<&Credentials>,
    ) -> TlsStream<TcpStream> {
        self.secure_as("localhost", protocol, credentials).await
    }

    pub(super) async fn secure_as(
        &self,
        name: &str,
        protocol: Protocol,
        credentials: Option<&Credentials>,
    ) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).expect("an authority");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match credentials {
            None => builder.with_no_client_auth(),
            Some(Credentials { certificate, key }) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
                let resolver = rustls::sign::CertifiedKey::from_der(
                    vec![certificate.expect("a certificate")],
                    key,
                    builder.crypto_provider(),
                )
                .expect("a pair");
                // A client of rustls' own presents nothing that the server would not trust.
                builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(
                    resolver,
                )))
            }
        };
        config.alpn_protocols = vec![match protocol {
            Protocol::One => b"http/1.1".to_vec(),
            Protocol::Two => b"h2".to_vec(),
        }];
        let stream = TcpStream::connect(self.address).await.expect("connect");
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake")
    }

    pub(super) fn begin_stop(self) -> Stopping {
        self.shutdown.cancel();
        Stopping { gate: self.gate, server: self.server }
    }

    /// Returns when everything that the server started has ended.
    pub(super) async fn stop(self) {
        self.begin_stop().wait().await;
    }
}

impl Stopping {
    pub(super) fn open_gate(&self) {
        self.gate.cancel();
    }

    pub(super) async fn wait(mut self) {
        self.server.join_next().await.expect("it ran").expect("it ended well");
    }
}

impl Credentials {
    fn of(authority: &CertifiedIssuer<'static, KeyPair>) -> Self {
        let (certificate, key) = issue(authority, &["client"]);
        Credentials { certificate, key }
    }

    /// From an authority that the server has never heard of.
    pub(super) fn of_a_stranger() -> Self {
        Credentials::of(&authority())
    }
}

impl Protocol {
    pub(super) fn name(self) -> &'static str {
        match self {
            Protocol::One => "HTTP/1.1",
            Protocol::Two => "HTTP/2.0",
        }
    }
}

impl Client {
    /// The head of the answer; its body may be still to come.
    pub(super) async fn begin(&mut self, request: Request<String>) -> Response<Incoming> {
        let sent = match &mut self.sender {
            Sender::One(sender) => {
                sender.ready().await.expect("a connection");
                sender.send_request(request).await
            }
            Sender::Two(sender) => {
                sender.ready().await.expect("a connection");
                let (mut parts, body) = request.into_parts();
                parts.uri = format!("https://localhost{}", parts.uri).parse().expect("a URI");
                sender.send_request(Request::from_parts(parts, body)).await
            }
        };
        sent.expect("an answer")
    }

    pub(super) async fn send(&mut self, request: Request<String>) -> (response::Parts, Bytes) {
        let (parts, body) = self.begin(request).await.into_parts();
        (parts, body.collect().await.expect("a whole answer").to_bytes())
    }
}

async fn answer(request: Request<Upload>, gate: CancellationToken) -> Response<Body> {
    let segments: Vec<&str> = request.uri().path().split('/').skip(1).collect();
    let number = |text: &str| text.parse().expect("a number");
    let body = match segments.as_slice() {
        ["who"] => {
            let peer = request.extensions().get::<Arc<Peer>>().expect("a peer");
            let id = request.headers()["audit-id"].to_str().expect("text");
            let facts = json!({
                "shown": match &peer.shown {
                    Shown::Nothing => "nothing",
                    Shown::Trusted(_) => "trusted",
                    Shown::Untrusted => "untrusted",
                },
                "version": format!("{:?}", request.version()),
                "audit-id": id,
                "crowded": request.extensions().get::<Crowded>().is_some(),
            });
            facts.to_string().into_bytes().into()
        }
        ["panic"] => panic!("as asked"),
        ["bytes", n] => text(number(n)).into(),
        ["pieces", n] => {
            let pieces =
                text(number(n)).chunks(1000).map(Bytes::copy_from_slice).collect::<Vec<_>>();
            Body::stream(futures::stream::iter(pieces))
        }
        ["gate"] => Body::stream(futures::stream::once(async move {
            gate.cancelled().await;
            Bytes::from_static(b"opened")
        })),
        ["api", "v1", "drip"] => Body::stream(
            futures::stream::unfold((), |()| async {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                Some((Bytes::from_static(b"drip\n"), ()))
            })
            .boxed(),
        ),
        ["api", "v1", "stuck"] => std::future::pending().await,
        other => panic!("no such path: {other:?}"),
    };
    Response::new(body)
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("make a key");
    CertifiedIssuer::self_signed(params, key).expect("sign the authority")
}

fn issue(authority: &CertifiedIssuer<'static, KeyPair>, names: &[&str]) -> (String, String) {
    let key = KeyPair::generate().expect("make a key");
    let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let mut params = CertificateParams::new(names).expect("names");
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.signed_by(&key, authority).expect("sign a certificate");
    (certificate.pem(), key.serialize_pem())
}
