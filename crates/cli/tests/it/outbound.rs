//! Servers that the API server calls, by way of Services.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::server::Ours;
use crate::site::{self, Site, Stream};

const SERVICES: &str = "/api/v1/namespaces/default/services";
/// Nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

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
