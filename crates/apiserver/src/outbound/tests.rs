use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::Request;
use kubewright_store::Put;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{Answer, Line, Place, Trust, resolve};
use crate::index;
use crate::sample::store;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
/// Nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server on loopback that answers each request on a connection with the next text.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    server: JoinSet<()>,
}

/// In PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Site {
    /// Answers connections in turn; each hangs up when its answers are all given.
    pub(crate) async fn start(
        pair: &Pair,
        connections: &'static [&'static [&'static str]],
    ) -> Self {
        let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a pair");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut server = JoinSet::new();
        server.spawn(async move {
            for answers in connections {
                let (socket, _) = listener.accept().await.expect("a client");
                let Ok(mut socket) = acceptor.accept(socket).await else { continue };
                for answer in *answers {
                    let mut request = [0; 4096];
                    let _ = socket.read(&mut request).await;
                    let _ = socket.write_all(answer.as_bytes()).await;
                }
                let _ = socket.shutdown().await;
            }
        });
        Site { address, server }
    }
}

pub(crate) fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

pub(crate) fn issued(
    by: &CertifiedIssuer<'static, KeyPair>,
    names: &[&str],
    change: fn(&mut CertificateParams),
) -> Pair {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    change(&mut params);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, by).expect("a certificate");
    Pair { certificate: certificate.pem(), key: key.serialize_pem() }
}

fn line(address: SocketAddr, bundle: &str) -> Line {
    let config = json!({
        "url": format!("https://{address}/hook"),
        "caBundle": BASE64_STANDARD.encode(bundle),
    });
    Line::of_client_config(store(), &config).expect("a line")
}

async fn call(line: &Line, timeout: Duration) -> String {
    let request = Request::post(line.path()).body(Bytes::from_static(b"?")).expect("a request");
    match line.call(request, timeout, 8).await {
        Ok(answer) => format!("{} {}", answer.status(), String::from_utf8_lossy(answer.body())),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_connection_is_used_again_until_the_server_hangs_up() {
    let authority = authority("ours");
    let pair = issued(&authority, &["127.0.0.1"], |_| {});
    let mut site = Site::start(&pair, &[&[OK, OK], &[OK]]).await;
    let line = line(site.address, &authority.pem());
    for _ in 0..3 {
        assert_eq!(call(&line, PATIENCE).await, "200 OK ok");
    }
    site.server.join_next().await.expect("it served").expect("without a panic");
}

#[tokio::test]
async fn a_server_must_be_who_it_should_be() {
    let (ours, other, namesake) = (authority("ours"), authority("other"), authority("ours"));
    let check = async |pair: &Pair, bundle: &str, expected: &str| {
        let site = Site::start(pair, &[&[OK]]).await;
        let found = call(&line(site.address, bundle), PATIENCE).await;
        let address = site.address;
        let expected = match expected {
            "200 OK ok" => expected.to_owned(),
            why => format!(
                "Post \"https://{address}/hook\": tls: failed to verify certificate: x509: {why}"
            ),
        };
        assert_eq!(found, expected);
    };
    let good = issued(&ours, &["127.0.0.1"], |_| {});
    check(&good, &ours.pem(), "200 OK ok").await;
    check(&good, &other.pem(), "certificate signed by unknown authority").await;
    check(&good, &(other.pem() + &ours.pem()), "200 OK ok").await;
    check(
        &good,
        &namesake.pem(),
        "certificate signed by unknown authority (possibly because of \"x509: ECDSA verification \
         failure\" while trying to verify candidate authority certificate \"ours\")",
    )
    .await;
    check(
        &issued(&other, &["localhost"], |_| {}),
        &ours.pem(),
        "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
    )
    .await;
    check(
        &issued(&ours, &["127.0.0.2", "127.0.0.3"], |_| {}),
        &ours.pem(),
        "certificate is valid for 127.0.0.2, 127.0.0.3, not 127.0.0.1",
    )
    .await;
    let mut alone = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    alone.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let certificate = alone.self_signed(&key).expect("a certificate").pem();
    let alone = Pair { certificate: certificate.clone(), key: key.serialize_pem() };
    check(&alone, &certificate, "200 OK ok").await;
    let expired = issued(&ours, &["127.0.0.1"], |params| {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    let site = Site::start(&expired, &[&[OK]]).await;
    let found = call(&line(site.address, &ours.pem()), PATIENCE).await;
    assert!(found.contains("x509: certificate has expired or is not yet valid: current time "));
    assert!(found.ends_with(" is after 2020-01-01T00:00:00Z"), "{found}");
}

#[tokio::test]
async fn what_goes_wrong_is_told_as_go_tells_it() {
    let authority = authority("ours");
    let pair = issued(&authority, &["127.0.0.1"], |_| {});
    let check = async |answers, expected: &str| {
        let site = Site::start(&pair, answers).await;
        let found = call(&line(site.address, &authority.pem()), PATIENCE).await;
        assert_eq!(found, format!("Post \"https://{}/hook\": {expected}", site.address));
    };
    check(&[&[]], "EOF").await;
    check(&[&["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok"]], "unexpected EOF").await;
    const LONG: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123456789";
    check(&[&[LONG]], "http: response body too large").await;

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let silent = call(&line(address, &authority.pem()), Duration::from_millis(1)).await;
    assert_eq!(silent, format!("Post \"https://{address}/hook\": context deadline exceeded"));
    let plain = async {
        loop {
            let (mut socket, _) = listener.accept().await.expect("a client");
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    };
    let expected =
        format!("Post \"https://{address}/hook\": http: server gave HTTP response to HTTPS client");
    let line_to_plain = line(address, &authority.pem());
    tokio::select! {
        found = call(&line_to_plain, PATIENCE) => assert_eq!(found, expected),
        () = plain => {}
    }
    drop(listener);
    let refused = call(&line(address, &authority.pem()), PATIENCE).await;
    let why = format!("dial tcp {address}: connect: connection refused");
    assert_eq!(refused, format!("Post \"https://{address}/hook\": {why}"));
}

#[tokio::test]
async fn a_service_leads_to_what_is_ready_behind_it() {
    let store = store();
    let put = async |key: &str, object: Value| {
        let mut object = object;
        object["metadata"]["uid"] = "u".into();
        let value = index::to_bytes(&object);
        let put = Put::new(key, value);
        store.put(put).await.expect("stored");
    };
    let find = |name: &str, port| match resolve::service(&store, "ns", name, port) {
        Ok((host, port)) => format!("{host}:{port}"),
        Err(why) => why,
    };
    assert_eq!(find("s", 443), "service \"s\" not found");
    put(
        "/registry/services/specs/ns/away",
        json!({
            "kind": "Service", "apiVersion": "v1", "metadata": {"name": "away"},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }),
    )
    .await;
    assert_eq!(find("away", 8443), "localhost:8443");
    put(
        "/registry/services/specs/ns/s",
        json!({
            "kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"},
            "spec": {"type": "ClusterIP", "ports": [{"name": "web", "port": 443}]},
        }),
    )
    .await;
    assert_eq!(find("s", 80), "no service port 80 found for service \"s\"");
    assert_eq!(find("s", 443), "no endpoints available for service \"s\"");
    put(
        "/registry/services/endpoints/ns/s",
        json!({
            "kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "s"},
            "subsets": [{"addresses": [{"ip": "10.0.0.9"}], "ports": [{"name": "web", "port": 1}]}],
        }),
    )
    .await;
    assert_eq!(find("s", 443), "10.0.0.9:1");
    put(
        "/registry/endpointslices/ns/s-1",
        json!({
            "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
            "metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": false}},
                {"addresses": ["10.0.0.2"]},
            ],
            "ports": [{"name": "web", "port": 8443}],
        }),
    )
    .await;
    assert_eq!(find("s", 443), "10.0.0.2:8443");
}

#[tokio::test]
async fn a_service_shows_a_certificate_for_its_own_name() {
    let authority = authority("ours");
    let check = async |names: &[&str], expected: &str| {
        let site = Site::start(&issued(&authority, names, |_| {}), &[&[OK]]).await;
        let store = store();
        let service = json!({
            "kind": "Service", "apiVersion": "v1", "metadata": {"name": "s", "uid": "u"},
            "spec": {"type": "ExternalName", "externalName": "127.0.0.1"},
        });
        let put = Put::new("/registry/services/specs/ns/s", index::to_bytes(&service));
        store.put(put).await.expect("stored");
        let port = site.address.port();
        let place = Place::Service { namespace: "ns".into(), name: "s".into(), port };
        let trust = Trust::Bundle(authority.pem().into_bytes());
        let line = Line::new(store, place, &trust, None);
        assert_eq!(call(&line, PATIENCE).await, expected.replace("PORT", &port.to_string()));
    };
    check(&["s.ns.svc"], "200 OK ok").await;
    check(
        &["127.0.0.1"],
        "Post \"https://s.ns.svc:PORT/\": tls: failed to verify certificate: x509: certificate is \
         not valid for any names, but wanted to match s.ns.svc",
    )
    .await;
}

#[tokio::test]
async fn a_server_may_leave_http() {
    const SWITCHED: &str =
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n";
    let authority = authority("ours");
    let pair = issued(&authority, &["127.0.0.1"], |_| {});
    let mut site = Site::start(&pair, &[&[SWITCHED, "pong"]]).await;
    let line = line(site.address, &authority.pem());
    let request = Request::get("/exec").header("connection", "Upgrade").header("upgrade", "echo");
    let request = request.body(http_body_util::Empty::new()).expect("a request");
    let answer = line.send(request).await.expect("an answer");
    assert_eq!(answer.status(), 101);
    let stream = Answer::switch(answer).await.expect("a connection");
    let mut stream = hyper_util::rt::TokioIo::new(stream);
    stream.write_all(b"ping").await.expect("it is heard");
    let mut told = String::new();
    stream.read_to_string(&mut told).await.expect("text");
    assert_eq!(told, "pong");
    site.server.join_next().await.expect("it served").expect("without a panic");
}
