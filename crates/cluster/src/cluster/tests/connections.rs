//! From a client over TLS to a node over TLS, with the keys that a cluster makes.

use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use tokio::io::AsyncRead;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// Stands for a kubelet: says again whatever it is told, once a client has left HTTP. Knows only
/// those that the cluster's authority vouches for.
async fn echo(pki: &Pki) -> (SocketAddr, JoinSet<String>) {
    let ca = CertificateDer::from_pem_slice(pki.ca.certificate.as_bytes()).expect("an authority");
    let mut roots = RootCertStore::empty();
    roots.add(ca).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let own = CertificateDer::from_pem_slice(pki.server.certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(pki.server.key.as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(clients.build().expect("a verifier"))
        .with_single_cert(vec![own.expect("a certificate")], key)
        .expect("a pair");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let (socket, _) = listener.accept().await.expect("a client");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let mut socket = acceptor.accept(socket).await.expect("a client that is known");
        let asked = read_head(&mut socket).await;
        let switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                        Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";
        socket.write_all(switched.as_bytes()).await.expect("heard");
        let (mut reader, mut writer) = tokio::io::split(socket);
        // It ends with the client.
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
        asked
    });
    (address, serving)
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a head"));
    }
    String::from_utf8(head).expect("text").to_ascii_lowercase()
}

async fn send(cluster: &Cluster, method: &str, path: &str, body: Value) {
    let media_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .extension(Arc::new(User::new("admin", [MASTERS.to_owned()])))
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let status = cluster.server().call(request).await.status();
    assert!(status.is_success(), "{method} {path}: {status}");
}

#[tokio::test]
async fn a_command_is_led_from_a_client_to_its_node() {
    let (cluster, address, pki) = listening().await;
    let (kubelet, mut serving) = echo(&pki).await;
    send(&cluster, "POST", "/api/v1/nodes", json!({ "metadata": { "name": "n" } })).await;
    let status = json!({ "status": {
        "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": kubelet.port() } },
    } });
    send(&cluster, "PATCH", "/api/v1/nodes/n/status", status).await;
    let account = json!({ "metadata": { "name": "own" } });
    send(&cluster, "POST", "/api/v1/namespaces/default/serviceaccounts", account).await;
    let pod = json!({ "metadata": { "name": "web" }, "spec": {
        "nodeName": "n", "serviceAccountName": "own", "automountServiceAccountToken": false,
        "containers": [{ "name": "main", "image": "i" }],
    } });
    send(&cluster, "POST", "/api/v1/namespaces/default/pods", pod).await;

    let mut stream = connect(address, &pki, true).await;
    let request = "POST /api/v1/namespaces/default/pods/web/exec?command=cat&stdin=true HTTP/1.1\r\n\
                   Host: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\
                   X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("heard");
    let head = read_head(&mut stream).await;
    assert!(head.starts_with("http/1.1 101 switching protocols\r\n"), "{head}");
    assert!(head.contains("\r\nx-stream-protocol-version: v4.channel.k8s.io\r\n"), "{head}");
    stream.write_all(b"ping").await.expect("heard");
    let mut said = [0; 4];
    stream.read_exact(&mut said).await.expect("said again");
    assert_eq!(&said, b"ping");
    drop(stream);

    let asked = serving.join_next().await.expect("it served").expect("without a panic");
    let line = "post /exec/default/web/main?command=cat&input=1 http/1.1\r\n";
    assert!(asked.starts_with(line), "{asked}");
    assert!(asked.contains("\r\nx-stream-protocol-version: v4.channel.k8s.io\r\n"), "{asked}");
    cluster.shutdown().await;
}
