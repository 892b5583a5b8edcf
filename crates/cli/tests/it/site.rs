//! Servers over TLS on this machine, for the API server to call.

use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::ByteString;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub(crate) type Stream = TlsStream<TcpStream>;

/// A server that ends when it is dropped.
pub(crate) struct Site {
    pub(crate) port: u16,
    /// Who vouches for it, as objects of the API say it.
    pub(crate) bundle: ByteString,
    _serving: JoinSet<()>,
}

impl Site {
    /// Starts a server at an address, with a certificate for a name. Each connection is given to
    /// `talk`.
    pub(crate) async fn start<F, T>(address: IpAddr, name: &str, talk: F) -> Self
    where
        F: Fn(Stream) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((address, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let authority = authority();
        let bundle = ByteString(authority.pem().into_bytes());
        let acceptor = acceptor(&authority, name);
        let talk = Arc::new(talk);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut talking = JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.expect("somebody comes");
                let (acceptor, talk) = (acceptor.clone(), Arc::clone(&talk));
                talking.spawn(async move {
                    // Who does not believe that it is us hangs up.
                    if let Ok(stream) = acceptor.accept(socket).await {
                        talk(stream).await;
                    }
                });
                while talking.try_join_next().is_some() {}
            }
        });
        Site { port, bundle, _serving: serving }
    }
}

pub(crate) fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "site");
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

fn acceptor(by: &CertifiedIssuer<'static, KeyPair>, name: &str) -> TlsAcceptor {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, by).expect("a certificate");
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a pair");
    TlsAcceptor::from(Arc::new(config))
}

/// The head of a request in lower case, and its body; none if it breaks off.
pub(crate) async fn read(stream: &mut Stream) -> Option<(String, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
            // Who sends something says how much.
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(Some(0), |length| length.trim().parse().ok())?;
            if read.len() >= end + 4 + length {
                let body = read.split_off(end + 4);
                return Some((head, body));
            }
        }
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&part[..count]),
        }
    }
}

/// An answer that is a document.
pub(crate) fn answer(document: &Value) -> Vec<u8> {
    let body = document.to_string();
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes()
}
