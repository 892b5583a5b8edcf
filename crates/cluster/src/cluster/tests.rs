//! Whole clusters, with and without a socket.

mod conformance;
mod connections;
mod controllers;
mod jobs;
mod kube_rs;
mod nodes;
mod volumes;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use kubewright_apiserver::user::{MASTERS, User};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;

async fn create_namespace(cluster: &Cluster, name: &str) -> StatusCode {
    let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
    let request = Request::post("/api/v1/namespaces")
        .header("content-type", "application/json")
        .extension(Arc::new(User::new("admin", [MASTERS.to_owned()])))
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    cluster.server().call(request).await.status()
}

fn config(storage: Storage) -> Config {
    let controllers = kubewright_controllers::Names::all();
    Config {
        storage,
        listen: None,
        clock: Clock::started_now(),
        controllers,
        nodes: None,
        audit: None,
        terms: Terms::default(),
    }
}

#[tokio::test]
async fn a_cluster_needs_no_socket_and_has_what_every_cluster_has() {
    let cluster = Cluster::start(config(Storage::Memory)).await.expect("started");
    assert_eq!(create_namespace(&cluster, "default").await, StatusCode::CONFLICT);
    assert_eq!(create_namespace(&cluster, "mine").await, StatusCode::CREATED);
    cluster.shutdown().await;
}

#[tokio::test]
async fn objects_outlive_a_cluster_and_move_with_a_snapshot() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    let embedded = |name: &str| config(Storage::Embedded(path(name)));
    let first = Cluster::start(embedded("a")).await.expect("started");
    assert_eq!(create_namespace(&first, "mine").await, StatusCode::CREATED);
    first.snapshot(&path("snapshot")).await.expect("written");
    first.shutdown().await;

    let second = Cluster::start(embedded("a")).await.expect("started");
    assert_eq!(create_namespace(&second, "mine").await, StatusCode::CONFLICT);
    let taken = Cluster::start(embedded("a")).await.err().expect("it is in use");
    assert!(matches!(taken, StartError::Embedded(embedded::OpenError::Locked { .. })), "{taken}");
    second.shutdown().await;

    let first = Revision::FIRST;
    kubewright_store::restore(&path("snapshot"), &path("b"), first).expect("restored");
    let third = Cluster::start(embedded("b")).await.expect("started");
    assert_eq!(create_namespace(&third, "mine").await, StatusCode::CONFLICT);
    third.shutdown().await;
}

#[tokio::test]
async fn its_own_admin_is_let_in_over_tls() {
    let (cluster, address, pki) = listening().await;
    let as_admin = exchange(address, &pki, true).await;
    assert!(as_admin.starts_with("HTTP/1.1 201 Created\r\n"), "{as_admin}");
    let as_nobody = exchange(address, &pki, false).await;
    assert!(as_nobody.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{as_nobody}");
    cluster.shutdown().await;
}

/// A cluster that can be reached, where, and with which keys.
async fn listening() -> (Cluster, SocketAddr, Pki) {
    let clock = Clock::System;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let pki = Pki::in_memory(address.ip(), clock.now()).expect("keys");
    let listen = Listen { listener, credentials: pki.clone().into(), limits: Limits::default() };
    let config = Config { listen: Some(listen), clock, ..config(Storage::Memory) };
    (Cluster::start(config).await.expect("started"), address, pki)
}

/// The answer to an attempt to create a namespace.
async fn exchange(address: SocketAddr, pki: &Pki, certified: bool) -> String {
    let mut stream = connect(address, pki, certified).await;
    let request = "POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
                   Content-Type: application/json\r\nContent-Length: 25\r\n\r\n\
                   {\"metadata\":{\"name\":\"a\"}} ";
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    String::from_utf8(answer).expect("text")
}

/// A connection as an administrator, or as nobody.
async fn connect(address: SocketAddr, pki: &Pki, certified: bool) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(pki.ca.certificate.as_bytes()).expect("an authority");
    roots.add(ca).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match certified {
        false => builder.with_no_client_auth(),
        true => {
            let own = CertificateDer::from_pem_slice(pki.admin.certificate.as_bytes());
            let key = PrivateKeyDer::from_pem_slice(pki.admin.key.as_bytes()).expect("a key");
            builder.with_client_auth_cert(vec![own.expect("a certificate")], key).expect("a pair")
        }
    };
    let stream = TcpStream::connect(address).await.expect("connect");
    let name = ServerName::from(address.ip());
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake")
}
