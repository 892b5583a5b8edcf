//! Webhooks that mean no good: whatever they do, no request keeps its place among those under way.

use std::net::Ipv4Addr;
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{CONFIG_MAPS, check_others, start};
use crate::client::{Access, Client};
use crate::site::{self, Site, Stream};

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
        site::answer(&json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        }))
    }
}

/// A webhook on loopback, for as long as it is kept.
struct Webhook {
    url: String,
    bundle: ByteString,
    timeout_seconds: u32,
    _place: Place,
}

enum Place {
    /// Who connects is never looked at.
    Deaf {
        _listener: TcpListener,
    },
    Site {
        _site: Site,
    },
}

impl Webhook {
    async fn start(mischief: Mischief) -> Self {
        let stranger = || ByteString(site::authority().pem().into_bytes());
        let url = |port: u16| format!("https://127.0.0.1:{port}/");
        if matches!(mischief, Mischief::Silence) {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let port = listener.local_addr().expect("an address").port();
            let place = Place::Deaf { _listener: listener };
            let (url, bundle) = (url(port), stranger());
            return Webhook { url, bundle, timeout_seconds: 1, _place: place };
        }
        let talk = move |stream: Stream| talk(stream, mischief);
        let site = Site::start(Ipv4Addr::LOCALHOST.into(), "127.0.0.1", talk).await;
        let bundle = match mischief {
            Mischief::WrongCertificate => stranger(),
            _ => site.bundle.clone(),
        };
        let (url, place) = (url(site.port), Place::Site { _site: site });
        // On a busy machine an enormous answer takes its time.
        Webhook { url, bundle, timeout_seconds: 30, _place: place }
    }

    /// Has it asked about each new Secret.
    async fn register(&self, client: &mut Client) {
        let webhook = json!({
            "name": "mischief.kubewright.dev", "timeoutSeconds": self.timeout_seconds,
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

/// Answers one request, if the client gets that far.
async fn talk(mut stream: Stream, mischief: Mischief) {
    let Some((_, body)) = site::read(&mut stream).await else { return };
    let review = serde_json::from_slice(&body).unwrap_or_default();
    // The client may have hung up.
    let _ = stream.write_all(&mischief.answer(&review)).await;
    let _ = stream.shutdown().await;
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
