//! Webhooks that mean no good: whatever they do, no request keeps its place among those under way.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::ByteString;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{CONFIG_MAPS, check_others, start};
use crate::client::{Access, Client};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// Nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a webhook does.
#[derive(Debug, Clone, Copy)]
enum Mischief {
    /// It is connected to, and never says a word.
    Silence,
    /// It says what is no HTTP.
    Garbage,
    /// It answers another question than the one it was asked.
    AnotherUid,
    /// It wants an object that is far too large.
    EnormousPatch,
    /// It is somebody else.
    WrongCertificate,
}

impl Mischief {
    /// What clients are told of it.
    fn words(self) -> &'static str {
        match self {
            Mischief::Silence => "context deadline exceeded",
            Mischief::Garbage => "failed calling webhook",
            Mischief::AnotherUid => "expected response.uid=",
            Mischief::EnormousPatch => "may not be more than 1048576 bytes",
            Mischief::WrongCertificate => "failed to verify certificate",
        }
    }

    /// How it answers a review.
    fn answer(self, review: &Value) -> Vec<u8> {
        let response = match self {
            Mischief::Garbage => return b"\0\0garbage\r\n\r\n".to_vec(),
            Mischief::AnotherUid => json!({"uid": "another", "allowed": true}),
            Mischief::EnormousPatch => {
                let data = json!({"a": ByteString(vec![0; 2_000_000])});
                let patch = json!([{"op": "add", "path": "/data", "value": data}]).to_string();
                json!({
                    "uid": review["request"]["uid"], "allowed": true,
                    "patchType": "JSONPatch", "patch": ByteString(patch.into_bytes()),
                })
            }
            Mischief::Silence | Mischief::WrongCertificate => return Vec::new(),
        };
        let body = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        });
        let body = body.to_string();
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
        format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes()
    }
}

/// A webhook on loopback, and the tasks that are it.
struct Webhook {
    url: String,
    bundle: ByteString,
    _serving: JoinSet<()>,
}

impl Webhook {
    async fn start(mischief: Mischief) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}/", listener.local_addr().expect("an address"));
        let (own, other) = (authority(), authority());
        let believed = match mischief {
            Mischief::WrongCertificate => &other,
            _ => &own,
        };
        let bundle = ByteString(believed.pem().into_bytes());
        let acceptor = acceptor(&own);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            if matches!(mischief, Mischief::Silence) {
                // Those who come are connected to a socket that nobody takes.
                std::future::pending::<()>().await;
            }
            let mut talking = JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.expect("somebody comes");
                talking.spawn(talk(socket, acceptor.clone(), mischief));
            }
        });
        Webhook { url, bundle, _serving: serving }
    }

    /// Has it asked about each new Secret.
    async fn register(&self, client: &mut Client) {
        let webhook = json!({
            "name": "mischief.kubewright.dev", "timeoutSeconds": 1,
            "clientConfig": {"url": self.url, "caBundle": self.bundle},
            "rules": [{
                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["secrets"],
            }],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        });
        let configuration = json!({"metadata": {"name": "mischief"}, "webhooks": [webhook]});
        client.create(CONFIGURATIONS, &configuration).await;
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "mischief");
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

fn acceptor(by: &CertifiedIssuer<'static, KeyPair>) -> TlsAcceptor {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("names");
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

/// Answers one request, if the client gets that far.
async fn talk(socket: TcpStream, acceptor: TlsAcceptor, mischief: Mischief) {
    let Ok(mut secured) = acceptor.accept(socket).await else { return };
    let Some(review) = read(&mut secured).await else { return };
    // The client may have hung up.
    let _ = secured.write_all(&mischief.answer(&review)).await;
    let _ = secured.shutdown().await;
}

/// The document of a request; none if it breaks off.
async fn read(stream: &mut TlsStream<TcpStream>) -> Option<Value> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            // Reviews come with their length.
            let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"))?;
            let body = read.get(end + 4..).unwrap_or_default();
            if body.len() >= length.trim().parse().ok()? {
                return serde_json::from_slice(body).ok();
            }
        }
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&part[..count]),
        }
    }
}

/// The token of an account that may do anything, and that limits hold for, as they do not for
/// administrators.
async fn robot(client: &mut Client) -> String {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    client.create(accounts, &json!({"metadata": {"name": "robot"}})).await;
    let binding = json!({
        "metadata": {"name": "robot"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "robot"}],
    });
    client.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let token = client.create(&format!("{accounts}/robot/token"), &json!({"spec": {}})).await;
    token["status"]["token"].as_str().expect("a token").to_owned()
}

/// Waits until no request that may change something is under way.
async fn check_all_places_are_free(access: &Access) {
    const LINE: &str = r#"apiserver_current_inflight_requests{request_kind="mutating"} 0"#;
    let mut client = access.client().await;
    let free = async {
        loop {
            let request = Request::get("/metrics").body(Full::default()).expect("a request");
            let answer = client.begin(request).await.expect("an answer");
            let page = answer.into_body().collect().await.expect("a page").to_bytes();
            if String::from_utf8_lossy(&page).lines().any(|line| line == LINE) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, free).await.expect("all places are free again");
}

/// So many requests at once, of which every third client does not wait for the answer. Who does is
/// told what the webhook does.
async fn ask(access: &Access, token: &str, mischief: Mischief, count: usize) {
    let mut asking = JoinSet::new();
    for turn in 0..count {
        let mut client = access.client().await;
        let token = token.to_owned();
        asking.spawn(async move {
            let object = json!({"metadata": {"generateName": "a-"}});
            let asked = client.send_as(&token, "POST", SECRETS, &object);
            let patience = match turn % 3 {
                0 => Duration::from_millis(300),
                _ => PATIENCE,
            };
            tokio::time::timeout(patience, asked).await.ok()
        });
    }
    while let Some(asked) = asking.join_next().await {
        if let Some((status, told)) = asked.expect("no panic") {
            let words = told["message"].as_str().unwrap_or_default();
            assert!(words.contains(mischief.words()), "{mischief:?}: {status} {told}");
        }
    }
}

#[tokio::test]
async fn webhooks_that_mean_no_good_keep_no_place_among_requests() {
    let home = tempfile::tempdir().expect("a directory");
    let ours = start(&home);
    let access = &ours.access;
    let mut admin = access.client().await;
    let token = robot(&mut admin).await;
    let anybody = access.without_identity();
    // Those that are told at once are as good a proof in smaller numbers; all together are more
    // than may be under way at once.
    for (mischief, rounds, each) in [
        (Mischief::Silence, 3, 100),
        (Mischief::Garbage, 2, 60),
        (Mischief::AnotherUid, 2, 60),
        (Mischief::EnormousPatch, 1, 20),
        (Mischief::WrongCertificate, 2, 60),
    ] {
        let webhook = Webhook::start(mischief).await;
        webhook.register(&mut admin).await;
        for _ in 0..rounds {
            ask(&anybody, &token, mischief, each).await;
        }
        let path = format!("{CONFIGURATIONS}/mischief");
        let (status, gone) = admin.send("DELETE", &path, &Value::Null).await;
        assert_eq!(status, 200, "{gone}");
        check_all_places_are_free(access).await;
        // Somebody whom a limit would stop.
        let object = json!({"metadata": {"generateName": "after-"}});
        let mut client = anybody.client().await;
        let (status, told) = client.send_as(&token, "POST", CONFIG_MAPS, &object).await;
        assert_eq!(status, 201, "{mischief:?}: {told}");
    }
    check_others(access).await;
}
