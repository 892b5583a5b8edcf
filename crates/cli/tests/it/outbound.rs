//! Servers that the API server calls, by way of Services.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::server::Ours;
use crate::site::{self, Site, Stream};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// Nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// An address of this machine that others may call, if it has one: endpoints may not be loopback.
fn own_address() -> Option<Ipv4Addr> {
    // Nothing is sent: this only chooses the way there, and so the address it begins at.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(address) if !address.is_loopback() && !address.is_link_local() => Some(address),
        _ => None,
    }
}

/// Says no to every review.
async fn refuse(mut stream: Stream) {
    let Some((_, body)) = site::read(&mut stream).await else { return };
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let document = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {
            "uid": review["request"]["uid"], "allowed": false,
            "status": {"message": "said behind the slice"},
        },
    });
    // The client may have hung up.
    let _ = stream.write_all(&site::answer(&document)).await;
    let _ = stream.shutdown().await;
}

/// A Service without a selector has the endpoints that somebody writes. Nobody routes its address:
/// the server calls one of them itself.
#[tokio::test]
async fn a_webhook_is_found_behind_the_slices_of_its_service() {
    let Some(address) = own_address() else {
        eprintln!("skipped: this machine has no address but loopback, which no endpoint may have");
        return;
    };
    let home = tempfile::tempdir().expect("a directory");
    let ours = Ours::up(home.path(), "kubewright", &["--port", "0"]);
    let mut client = ours.access.client().await;
    let hook = Site::start(address.into(), "hook.default.svc", refuse).await;

    let service = json!({
        "metadata": {"name": "hook"},
        "spec": {"ports": [{"name": "https", "port": 8443, "targetPort": hook.port}]},
    });
    client.create(SERVICES, &service).await;
    let webhook = json!({
        "name": "hook.kubewright.dev",
        "clientConfig": {
            "service": {"namespace": "default", "name": "hook", "port": 8443, "path": "/review"},
            "caBundle": hook.bundle,
        },
        "rules": [{
            "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["secrets"],
        }],
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    });
    let configuration = json!({"metadata": {"name": "hook"}, "webhooks": [webhook]});
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    client.create(path, &configuration).await;

    let secret = json!({"metadata": {"name": "s"}});
    let (status, told) = client.send("POST", SECRETS, &secret).await;
    assert_eq!(status, 500, "{told}");
    let words = told["message"].as_str().unwrap_or_default();
    assert!(words.contains("no endpoints available for service \"hook\""), "{told}");

    let slice = json!({
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4",
        "endpoints": [
            // Nobody is there, and nobody is to ask.
            {"addresses": ["192.0.2.1"], "conditions": {"ready": false}},
            {"addresses": [address.to_string()]},
        ],
        "ports": [{"name": "https", "port": hook.port, "protocol": "TCP"}],
    });
    client.create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await;
    let (status, told) = client.send("POST", SECRETS, &secret).await;
    let words =
        "admission webhook \"hook.kubewright.dev\" denied the request: said behind the slice";
    // The webhook names no code, and this is the least that a refusal has.
    assert_eq!((status, &told["message"]), (400, &json!(words)), "{told}");
}

/// Serves a version of a group, and for those who ask to leave HTTP says again what they say. What
/// it hears is kept.
async fn echo(mut stream: Stream, heard: Arc<Mutex<Vec<String>>>) {
    let Some((head, _)) = site::read(&mut stream).await else { return };
    let is_upgrade = head.contains("\r\nupgrade: echo");
    heard.lock().unwrap_or_else(PoisonError::into_inner).push(head);
    if !is_upgrade {
        let list = json!({
            "kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": "echo.kubewright.dev/v1",
            "resources": [{
                "name": "calls", "singularName": "call", "namespaced": false, "kind": "Call",
                "verbs": ["get"],
            }],
        });
        let _ = stream.write_all(&site::answer(&list)).await;
        let _ = stream.shutdown().await;
        return;
    }
    let switched =
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n";
    let _ = stream.write_all(switched.as_bytes()).await;
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut part).await {
        if stream.write_all(&part[..count]).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn who_leaves_http_is_led_to_the_server_behind_an_api_service() {
    const VERSION: &str = "/apis/echo.kubewright.dev/v1";
    let home = tempfile::tempdir().expect("a directory");
    let ours = Ours::up(home.path(), "kubewright", &["--port", "0"]);
    let mut client = ours.access.client().await;
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let talk = {
        let heard = Arc::clone(&heard);
        move |stream: Stream| echo(stream, Arc::clone(&heard))
    };
    let site = Site::start(Ipv4Addr::LOCALHOST.into(), "echo.default.svc", talk).await;
    let service = json!({
        "metadata": {"name": "echo"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    client.create(SERVICES, &service).await;
    let registration = json!({
        "metadata": {"name": "v1.echo.kubewright.dev"},
        "spec": {
            "group": "echo.kubewright.dev", "version": "v1",
            "groupPriorityMinimum": 1000, "versionPriority": 15,
            "caBundle": site.bundle,
            "service": {"namespace": "default", "name": "echo", "port": site.port},
        },
    });
    client.create("/apis/apiregistration.k8s.io/v1/apiservices", &registration).await;
    let served = async {
        while client.send("GET", VERSION, &Value::Null).await.0 != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, served).await.expect("it is available in time");

    let mut stream = ours.access.secure().await.expect("a handshake");
    let request = format!(
        "GET {VERSION}/calls/a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
    );
    let talking = async {
        stream.write_all(request.as_bytes()).await.expect("written");
        stream.flush().await.expect("written");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("an answer"));
        }
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        assert!(head.contains("\r\nupgrade: echo"), "{head}");
        // Both ways, more than once.
        for words in ["hello", "again"] {
            stream.write_all(words.as_bytes()).await.expect("written");
            stream.flush().await.expect("written");
            let mut said = [0; 5];
            stream.read_exact(&mut said).await.expect("an echo");
            assert_eq!(String::from_utf8_lossy(&said), words);
        }
    };
    tokio::time::timeout(PATIENCE, talking).await.expect("it answers in time");
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = heard.iter().find(|head| head.contains("/calls/a")).expect("it was asked");
    // The server there is told who asks.
    assert!(asked.contains("\r\nx-remote-user: "), "{asked}");
    assert!(asked.contains("\r\nx-remote-group: system:masters"), "{asked}");
    assert!(!asked.contains("\r\nauthorization:"), "{asked}");
}
