//! Identities: who is believed to be whom.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Request;
use jiff::Timestamp;
use kubewright_store::{Config, Expect, Key, Put};
use serde_json::{Value, json};

use super::key::{KeyError, SigningKey, VerifyingKey};
use super::token::{CREDENTIAL_ID, Issuer, Lifetimes};
use super::*;
use crate::authz::tests::write;
use crate::warnings::Warnings;
use crate::{index, sample};

const ISSUER: &str = "https://kubernetes.default.svc";
const UID: &str = "2ba316af-fbc0-483f-83ed-d504f415af91";
/// When all this happens.
const NOW: i64 = sample::NOW.as_secs() as i64;

fn authenticator(store: &Store, keys: Vec<VerifyingKey>) -> Authenticator {
    let tokens = "secret,ann,ann-uid,\"staff,cooks\"\nplain,bob,bob-uid\n";
    Authenticator::new(
        store.clone(),
        Arc::new(Authorizer::new(store.clone())),
        StaticTokens::parse(tokens).expect("good tokens"),
        Verifier::new(vec![ISSUER.to_owned()], vec![ISSUER.to_owned()], keys),
    )
}

fn parts(path: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request").into_parts().0
}

fn shown(result: Result<Arc<User>, Box<Status>>) -> String {
    match result {
        Ok(user) => format!("{} {} {}", user.name, user.uid, user.groups.join(",")),
        Err(status) => format!("{} {}", status.code, status.message),
    }
}

#[test]
fn a_request_is_identified_by_what_it_shows() {
    let authenticator = authenticator(&sample::store(), Vec::new());
    let check = |headers: &[(&str, &str)], expected: &str| {
        let shown = shown(authenticator.identify(&parts("/api", headers)));
        assert_eq!(shown, expected, "{headers:?}");
    };
    let ann = "ann ann-uid staff,cooks,system:authenticated";
    let anonymous = "system:anonymous  system:unauthenticated";
    check(&[], anonymous);
    check(&[("authorization", "Bearer secret")], ann);
    check(&[("authorization", " bEARER secret more")], ann);
    check(&[("authorization", "Bearer plain")], "bob bob-uid system:authenticated");
    check(&[("authorization", "Bearer wrong")], "401 Unauthorized");
    check(&[("authorization", "Bearer  secret")], anonymous);
    check(&[("authorization", "Basic secret")], anonymous);
    check(&[("authorization", "secret")], anonymous);
    let socket = |protocols| {
        [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-protocol", protocols),
        ]
    };
    check(&socket("base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io"), ann);
    check(&socket("base64url.bearer.authorization.k8s.io.c2VjcmV0"), "401 Unauthorized");
    check(&socket("base64url.bearer.authorization.k8s.io.???, v4"), "401 Unauthorized");
    check(
        &socket(
            "base64url.bearer.authorization.k8s.io.c2VjcmV0, \
             base64url.bearer.authorization.k8s.io.c2VjcmV0, v4",
        ),
        "401 Unauthorized",
    );
    check(&socket("v4.channel.k8s.io"), anonymous);
    let plain = ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.c2VjcmV0, v4");
    check(&[plain], anonymous);
}

#[test]
fn nobody_is_served_unnamed_where_that_is_off() {
    let mut authenticator = authenticator(&sample::store(), Vec::new());
    authenticator.anonymous = false;
    assert_eq!(shown(authenticator.identify(&parts("/api", &[]))), "401 Unauthorized");
}

#[test]
fn an_identity_in_memory_comes_before_all_others() {
    let authenticator = authenticator(&sample::store(), Vec::new());
    let mut parts = parts("/api", &[("authorization", "Bearer wrong")]);
    parts.extensions.insert(Arc::new(User::new("system:apiserver", ["system:masters".to_owned()])));
    assert_eq!(
        shown(authenticator.identify(&parts)),
        "system:apiserver  system:masters,system:authenticated"
    );
}

fn certified(subject: &[(rcgen::DnType, &str)]) -> Arc<Peer> {
    let (shown, proxy) = (Shown::Trusted(certificate(subject)), None);
    let address = ([127, 0, 0, 1], 1).into();
    Arc::new(Peer { address, shown, proxy, certified: OnceLock::new() })
}

fn certificate(subject: &[(rcgen::DnType, &str)]) -> rustls::pki_types::CertificateDer<'static> {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    for (kind, value) in subject {
        params.distinguished_name.push(kind.clone(), *value);
    }
    params.self_signed(&key).expect("signed").der().clone()
}

#[test]
fn a_proxy_says_on_whose_behalf_it_asks() {
    let mut authenticator = authenticator(&sample::store(), Vec::new());
    authenticator.front_proxy = Some(FrontProxy {
        allowed_names: vec!["front".to_owned()],
        username_headers: vec!["X-Remote-User".to_owned()],
        uid_headers: vec!["X-Remote-Uid".to_owned()],
        group_headers: vec!["X-Remote-Group".to_owned()],
        extra_prefixes: vec!["X-Remote-Extra-".to_owned()],
    });
    let identify = |name: &str, headers: &[(&str, &str)]| {
        let mut parts = parts("/api", headers);
        let proxy = Some(certificate(&[(rcgen::DnType::CommonName, name)]));
        let address = ([127, 0, 0, 1], 1).into();
        let (shown, certified) = (Shown::Untrusted, OnceLock::new());
        parts.extensions.insert(Arc::new(Peer { address, shown, proxy, certified }));
        authenticator.identify(&parts)
    };
    let headers = [
        ("x-remote-user", "jane"),
        ("x-remote-group", "a"),
        ("x-remote-group", "b"),
        ("x-remote-uid", "u"),
        ("x-remote-extra-scope%2fa", "x"),
    ];
    let user = identify("front", &headers).expect("jane");
    assert_eq!(user.extra, BTreeMap::from([("scope/a".to_owned(), vec!["x".to_owned()])]));
    assert_eq!(shown(Ok(user)), "jane u a,b,system:authenticated");
    // Who says nothing is nobody: its certificate is a proxy's and no user's.
    assert_eq!(shown(identify("front", &[])), "401 Unauthorized");
    assert_eq!(shown(identify("other", &headers)), "401 Unauthorized");
    let token = ("authorization", "Bearer secret");
    assert!(shown(identify("front", &[token])).starts_with("ann "));
    assert!(shown(identify("other", &[headers[0], token])).starts_with("ann "));
}

/// Connections last, and are judged when they begin. Upstream verifies for each request.
#[test]
fn a_certificate_that_expires_identifies_nobody_any_more() {
    let now = Arc::new(AtomicU64::new(NOW.unsigned_abs()));
    let clock = {
        let now = Arc::clone(&now);
        move || Duration::from_secs(now.load(Ordering::Relaxed))
    };
    let store = Store::memory(Config::new(index::extract, index::resource_of, clock));
    let mut authenticator = authenticator(&store, Vec::new());
    let username_headers = vec!["X-Remote-User".to_owned()];
    authenticator.front_proxy = Some(FrontProxy { username_headers, ..FrontProxy::default() });
    let name = [(rcgen::DnType::CommonName, "cid")];

    let mut client = parts("/api", &[]);
    client.extensions.insert(certified(&name));
    let mut by_proxy = parts("/api", &[("x-remote-user", "jane")]);
    let (shown_to_us, proxy) = (Shown::Untrusted, Some(certificate(&name)));
    by_proxy.extensions.insert(Arc::new(Peer {
        address: ([127, 0, 0, 1], 1).into(),
        shown: shown_to_us,
        proxy,
        certified: OnceLock::new(),
    }));
    assert_eq!(shown(authenticator.identify(&client)), "cid  system:authenticated");
    assert_eq!(shown(authenticator.identify(&by_proxy)), "jane  system:authenticated");
    // These certificates last until the year 4096.
    now.store(70_000_000_000, Ordering::Relaxed);
    for parts in [&client, &by_proxy] {
        assert_eq!(shown(authenticator.identify(parts)), "401 Unauthorized");
    }
}

#[test]
fn what_proxies_say_is_not_passed_on() {
    let names = |name: &str| vec![name.to_owned()];
    let proxy = FrontProxy {
        username_headers: names("X-Our-User"),
        group_headers: names("X-Our-Group"),
        extra_prefixes: names("X-Our-Extra-"),
        ..FrontProxy::default()
    };
    let headers =
        [("x-our-user", "jane"), ("x-our-group", "a"), ("x-our-extra-b", "c"), ("x-other", "kept")];
    let mut headers = parts("/api", &headers).headers;
    proxy.clear(&mut headers);
    assert_eq!(headers.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["x-other"]);
}

#[test]
fn headers_of_others_say_nothing() {
    let mut authenticator = authenticator(&sample::store(), Vec::new());
    let names = vec!["X-Remote-User".to_owned()];
    authenticator.front_proxy =
        Some(FrontProxy { username_headers: names, ..FrontProxy::default() });
    let mut parts = parts("/api", &[("x-remote-user", "jane")]);
    assert_eq!(shown(authenticator.identify(&parts)), "system:anonymous  system:unauthenticated");
    parts.extensions.insert(certified(&[(rcgen::DnType::CommonName, "cid")]));
    assert!(shown(authenticator.identify(&parts)).starts_with("cid "));
}

#[test]
fn a_certificate_names_its_user() {
    use rcgen::DnType::{CommonName, CustomDnType, OrganizationName};
    let authenticator = authenticator(&sample::store(), Vec::new());
    let identify = |subject: &[(rcgen::DnType, &str)], headers: &[(&str, &str)]| {
        let mut parts = parts("/api", headers);
        parts.extensions.insert(certified(subject));
        authenticator.identify(&parts)
    };
    let user = identify(&[(OrganizationName, "staff"), (CommonName, "cid")], &[]).expect("cid");
    assert_eq!(shown(Ok(user.clone())), "cid  staff,system:authenticated");
    let id = &user.extra[CREDENTIAL_ID][0];
    assert!(id.starts_with("X509SHA256=") && id.len() == 75, "{id}");

    let uid = || CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    let user = identify(&[(CommonName, "cid"), (uid(), "cid-uid")], &[]);
    assert_eq!(shown(user), "cid cid-uid system:authenticated");
    let token = ("authorization", "Bearer secret");
    let nameless = [(OrganizationName, "staff")];
    assert_eq!(shown(identify(&nameless, &[])), "system:anonymous  system:unauthenticated");
    assert!(shown(identify(&nameless, &[token])).starts_with("ann "));
    let named = [(CommonName, "cid")];
    assert!(shown(identify(&named, &[token])).starts_with("cid "), "certificates come first");
    let empty = [(CommonName, "cid"), (uid(), "")];
    assert_eq!(shown(identify(&empty, &[])), "401 Unauthorized");
}

#[test]
fn tokens_are_read_from_lines() {
    let check = |csv: &str, expected: Result<Option<(&str, &[&str])>, StaticTokensError>| {
        let tokens = StaticTokens::parse(csv);
        let found = tokens.as_ref().map(|tokens| tokens.get("t"));
        match (found, &expected) {
            (Ok(user), Ok(expected)) => {
                let user = user.map(|user| (user.name.clone(), user.groups.clone()));
                let expected = expected.map(|(name, groups)| {
                    (name.to_owned(), groups.iter().map(|group| (*group).to_owned()).collect())
                });
                assert_eq!(user, expected, "{csv:?}");
            }
            (Err(error), Err(expected)) => assert_eq!(error, expected, "{csv:?}"),
            (found, _) => panic!("{csv:?}: {found:?}"),
        }
    };
    check("t,ann,1", Ok(Some(("ann", &[]))));
    check("t,ann,1,one", Ok(Some(("ann", &["one"]))));
    check("t,ann,1,\"one,two\"\r\n\r\n", Ok(Some(("ann", &["one", "two"]))));
    check("t,\"a \"\"b\"\"\",1", Ok(Some(("a \"b\"", &[]))));
    check("t,ann,1\nt,bob,2", Ok(Some(("bob", &[]))));
    check(",ann,1", Ok(None));
    check("x,ann,1\nt,ann", Err(StaticTokensError::Columns { line: 2, found: 2 }));
    check("t,\"ann,1", Err(StaticTokensError::Quote { line: 1 }));
    check("t,a\"nn,1", Err(StaticTokensError::Quote { line: 1 }));
    check("t,\"ann\"x,1", Err(StaticTokensError::Quote { line: 1 }));
}

async fn put(store: &Store, path: &str, mut object: Value) {
    if object["metadata"]["uid"].is_null() {
        object["metadata"]["uid"] = UID.into();
    }
    let put = Put::new(format!("/registry/{path}"), index::to_bytes(&object));
    store.put(put).await.expect("memory takes all");
}

async fn put_account(store: &Store) {
    put(store, "serviceaccounts/web/robot", json!({ "kind": "ServiceAccount" })).await;
}

/// Keys in every form, with what a standard tool says their public half is.
fn pems() -> Vec<(String, Vec<u8>)> {
    use rcgen::PublicKeyData as _;
    let ec = rcgen::KeyPair::generate().expect("a key");
    let rsa = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048)
        .expect("a key");
    let both = |key: &rcgen::KeyPair| (key.serialize_pem(), key.subject_public_key_info());
    vec![both(&ec), both(&rsa)]
}

/// As `openssl ecparam -genkey` writes it, and the digest of its public half by `openssl`.
const SEC1: (&str, &str) = (
    "-----BEGIN EC PRIVATE KEY-----\n\
     MHcCAQEEIFNxMLrqcKvQxWeZ7ylnCGMjnxhBoW49M1L4lzFR4FEjoAoGCCqGSM49\n\
     AwEHoUQDQgAEoL1xtJ31JIIbLBfvjs35QJEoSTU8eZjljCZjVYsnin8XNOEtSnim\n\
     BsHhQmJ2DNPtX7er8pzwXohpmzltTrDbPA==\n\
     -----END EC PRIVATE KEY-----\n",
    "n4WHP8oDxaXnw2alOEYWP_FQ3BOi_sBohdAe-slaB1g",
);

#[test]
fn a_key_is_named_by_its_digest() {
    use sha2::{Digest as _, Sha256};
    for (pem, info) in pems() {
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(&info));
        let key = SigningKey::from_pem(pem.as_bytes()).expect("it is a key");
        assert_eq!(key.public.id, id);
        let [public] = &VerifyingKey::from_pem(pem.as_bytes()).expect("it has a public half")[..]
        else {
            panic!("one key");
        };
        assert_eq!(public.id, id);
        assert_eq!(public.jwk, key.public.jwk);
    }
    let (pem, id) = SEC1;
    assert_eq!(SigningKey::from_pem(pem.as_bytes()).expect("it is a key").public.id, id);
    assert_eq!(SigningKey::from_pem(b"nothing").unwrap_err(), KeyError::NoKey);
    let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).expect("a key");
    let refused = SigningKey::from_pem(p384.serialize_pem().as_bytes()).unwrap_err();
    assert_eq!(refused, KeyError::Unsupported);
}

/// The key of an upstream server, and what it published and signed.
const UPSTREAM_KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEGArK3WrK8EunnZjitEHkNsA61RoW\n\
    7q5+l7gfd4CzPUsm4vUo+5Z9IYdrdKQx6UmRpW5wg85w8l5gWKzh6pfZmQ==\n\
    -----END PUBLIC KEY-----\n";
const UPSTREAM_TOKEN: &str = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImdTbHRRTEVrVnFoYVBzQWRBOFcwTzVwSmRuSk\
    twbnJ1OWItOE92SXZrOU0ifQ.eyJhdWQiOlsiaHR0cHM6Ly9rdWJlcm5ldGVzLmRlZmF1bHQuc3ZjIl0sImV4cCI6MTc5N\
    Dc5MjI0OSwiaWF0IjoxNzk0Nzg4NjQ5LCJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMiLCJqdGkiOiI\
    wZWNjYTc3Yy0xN2Q5LTQ3MDAtYjI5NS1hYTMwNmI1N2NlNjkiLCJrdWJlcm5ldGVzLmlvIjp7Im5hbWVzcGFjZSI6ImF1d\
    GgtcHJvYmUiLCJzZXJ2aWNlYWNjb3VudCI6eyJuYW1lIjoicm9ib3QiLCJ1aWQiOiIyYmEzMTZhZi1mYmMwLTQ4M2YtODN\
    lZC1kNTA0ZjQxNWFmOTEifX0sIm5iZiI6MTc5NDc4ODY0OSwic3ViIjoic3lzdGVtOnNlcnZpY2VhY2NvdW50OmF1dGgtc\
    HJvYmU6cm9ib3QifQ.wOPXbh4YYAuTK7keRESpQwmLkY6s9g45R_8tsLtEb5JBjBTKzHU-Aq6cVJFApppGpu77-w0-ocJR\
    58cyfMCYbA";

fn store_at(seconds: u64) -> Store {
    let config =
        Config::new(index::extract, index::resource_of, move || Duration::from_secs(seconds));
    Store::memory(config)
}

#[tokio::test]
async fn a_token_of_an_upstream_server_is_good_until_it_expires() {
    let keys = VerifyingKey::from_pem(UPSTREAM_KEY.as_bytes()).expect("a key");
    let check = async |now: u64, expected: Result<(), &str>| {
        let store = store_at(now);
        put(&store, "serviceaccounts/auth-probe/robot", json!({ "kind": "ServiceAccount" })).await;
        let authenticator = authenticator(&store, keys.clone());
        let found = authenticator.token(UPSTREAM_TOKEN, &[ISSUER.to_owned()]);
        let found = found.map(|found| {
            let name = "system:serviceaccount:auth-probe:robot".to_owned();
            let groups = [
                "system:serviceaccounts",
                "system:serviceaccounts:auth-probe",
                "system:authenticated",
            ];
            let groups = groups.map(str::to_owned).to_vec();
            let id = "JTI=0ecca77c-17d9-4700-b295-aa306b57ce69".to_owned();
            let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![id])]);
            let user = User { name, uid: UID.to_owned(), groups, extra };
            assert_eq!(found, TokenUser { user, audiences: vec![ISSUER.to_owned()] });
        });
        assert_eq!(found, expected.map_err(str::to_owned), "at {now}");
    };
    let (issued, expires) = (1_794_788_649, 1_794_792_249);
    check(issued, Ok(())).await;
    check(expires + 60, Ok(())).await;
    check(expires + 61, Err("[invalid bearer token, service account token has expired]")).await;
    check(issued - 60, Ok(())).await;
    check(issued - 61, Err("[invalid bearer token, service account token is not valid yet]")).await;
}

#[test]
fn keys_are_published_as_upstream_publishes_them() {
    let keys = VerifyingKey::from_pem(UPSTREAM_KEY.as_bytes()).expect("a key");
    assert_eq!(
        token::keys(&keys).to_string(),
        "{\"keys\":[{\"use\":\"sig\",\"kty\":\"EC\",\
         \"kid\":\"gSltQLEkVqhaPsAdA8W0O5pJdnJKpnru9b-8OvIvk9M\",\"crv\":\"P-256\",\
         \"alg\":\"ES256\",\"x\":\"GArK3WrK8EunnZjitEHkNsA61RoW7q5-l7gfd4CzPUs\",\
         \"y\":\"JuL1KPuWfSGHa3SkMelJkaVucIPOcPJeYFis4eqX2Zk\"}]}"
    );
    let url = "https://192.0.2.2:16443/openid/v1/jwks";
    assert_eq!(
        token::configuration(ISSUER, url, &keys).to_string(),
        "{\"issuer\":\"https://kubernetes.default.svc\",\
         \"jwks_uri\":\"https://192.0.2.2:16443/openid/v1/jwks\",\
         \"response_types_supported\":[\"id_token\"],\"subject_types_supported\":[\"public\"],\
         \"id_token_signing_alg_values_supported\":[\"ES256\"]}"
    );
}

fn issuer(pem: &str) -> Issuer {
    let key = SigningKey::from_pem(pem.as_bytes()).expect("a key");
    let lifetimes = Lifetimes::default();
    let audiences = vec![ISSUER.to_owned()];
    Issuer { url: ISSUER.to_owned(), keys_url: None, audiences, key, lifetimes }
}

fn issue(issuer: &Issuer, store: &Store, spec: Value) -> Value {
    let request = json!({ "kind": "TokenRequest", "metadata": {}, "spec": spec });
    let now = Timestamp::from_second(NOW).expect("in range");
    let warnings = Warnings::default();
    issuer.issue(store, "web", "robot", &request, now, &warnings).expect("a token")
}

fn token_of(answer: &Value) -> &str {
    answer["status"]["token"].as_str().expect("a token")
}

/// The claims of a token, unread.
fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).expect("three parts");
    let json = URL_SAFE_NO_PAD.decode(payload).expect("base64");
    serde_json::from_slice(&json).expect("JSON")
}

#[tokio::test]
async fn a_token_says_whose_it_is() {
    let store = sample::store();
    put_account(&store).await;
    for (pem, _) in pems() {
        let issuer = issuer(&pem);
        let answer = issue(&issuer, &store, json!({}));
        let mut found = claims(token_of(&answer));
        let id = found["jti"].take();
        assert_eq!(
            found,
            json!({
                "aud": [ISSUER],
                "exp": NOW + 3600,
                "iat": NOW,
                "iss": ISSUER,
                "jti": null,
                "kubernetes.io": {
                    "namespace": "web",
                    "serviceaccount": { "name": "robot", "uid": UID },
                },
                "nbf": NOW,
                "sub": "system:serviceaccount:web:robot",
            })
        );
        let mut rest = answer.clone();
        rest["status"].as_object_mut().expect("a status").remove("token");
        assert_eq!(
            rest,
            json!({
                "kind": "TokenRequest",
                "apiVersion": "authentication.k8s.io/v1",
                "metadata": {
                    "name": "robot",
                    "namespace": "web",
                    "uid": UID,
                    "creationTimestamp": "2026-11-16T00:00:00Z",
                },
                "spec": { "audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": null },
                "status": { "expirationTimestamp": "2026-11-16T01:00:00Z" },
            })
        );
        let authenticator = authenticator(&store, vec![issuer.key.public.clone()]);
        let token = format!("Bearer {}", token_of(&answer));
        let user = authenticator.identify(&parts("/api", &[("authorization", &token)]));
        let user = user.expect("a good token");
        assert_eq!(user.name, "system:serviceaccount:web:robot");
        let expected = vec![format!("JTI={}", id.as_str().expect("an id"))];
        assert_eq!(user.extra[CREDENTIAL_ID], expected);
    }
}

/// A token of a pod that nobody asked for, and one for a day: how long each lasts, and since when
/// the first is warned of.
#[tokio::test]
async fn how_long_tokens_last_is_as_the_issuer_is_told() {
    let store = sample::store();
    put_account(&store).await;
    let spec = json!({ "serviceAccountName": "robot" });
    put(&store, "pods/web/one", json!({ "kind": "Pod", "spec": spec })).await;
    let (pem, _) = pems().remove(0);
    let check = |lifetimes: Lifetimes, unasked: (i64, Value), day: i64| {
        let issuer = Issuer { lifetimes, ..issuer(&pem) };
        let pod = json!({ "kind": "Pod", "apiVersion": "v1", "name": "one" });
        let spec = json!({ "expirationSeconds": 3607, "boundObjectRef": pod });
        let found = claims(token_of(&issue(&issuer, &store, spec)));
        assert_eq!(found["exp"], NOW + unasked.0, "{lifetimes:?}");
        assert_eq!(found["kubernetes.io"]["warnafter"], unasked.1, "{lifetimes:?}");
        let answer = issue(&issuer, &store, json!({ "expirationSeconds": 86_400 }));
        assert_eq!(answer["spec"]["expirationSeconds"], day, "{lifetimes:?}");
        assert_eq!(claims(token_of(&answer))["exp"], NOW + day, "{lifetimes:?}");
    };
    let year = 365 * 24 * 60 * 60;
    check(Lifetimes::default(), (year, json!(NOW + 3607)), 86_400);
    let told = Lifetimes { are_extended: false, seconds_max: None };
    check(told, (3607, Value::Null), 86_400);
    let told = Lifetimes { are_extended: true, seconds_max: Some(7200) };
    check(told, (year, json!(NOW + 3607)), 7200);
    // What is shortened is no longer what nobody asked for.
    let told = Lifetimes { are_extended: true, seconds_max: Some(3600) };
    check(told, (3600, Value::Null), 3600);
}

#[tokio::test]
async fn who_asks_for_too_long_a_token_is_warned() {
    let store = sample::store();
    put_account(&store).await;
    let (pem, _) = pems().remove(0);
    let lifetimes = Lifetimes { seconds_max: Some(3600), ..Lifetimes::default() };
    let issuer = Issuer { lifetimes, ..issuer(&pem) };
    let warnings = Warnings::default();
    let request = json!({ "metadata": {}, "spec": { "expirationSeconds": 86_400 } });
    let now = Timestamp::from_second(NOW).expect("in range");
    issuer.issue(&store, "web", "robot", &request, now, &warnings).expect("a token");
    let expected = "requested expiration of 86400 seconds shortened to 3600 seconds";
    assert_eq!(warnings.texts(), [expected]);
}

#[tokio::test]
async fn a_token_is_for_its_audiences_only() {
    let store = sample::store();
    put_account(&store).await;
    let (pem, _) = pems().remove(0);
    let issuer = issuer(&pem);
    let authenticator = authenticator(&store, vec![issuer.key.public.clone()]);
    let answer = issue(&issuer, &store, json!({ "audiences": ["vault", "db"] }));
    let token = token_of(&answer);
    let review = |audiences: &[&str]| {
        let audiences: Vec<String> = audiences.iter().map(|one| (*one).to_owned()).collect();
        authenticator.token(token, &audiences).map(|found| found.audiences)
    };
    assert_eq!(review(&["db", "other"]), Ok(vec!["db".to_owned()]));
    assert_eq!(
        review(&[ISSUER]),
        Err("[invalid bearer token, token audiences [\"vault\" \"db\"] is invalid for the target \
             audiences [\"https://kubernetes.default.svc\"]]"
            .to_owned())
    );
}

#[tokio::test]
async fn only_a_known_key_signs() {
    let store = sample::store();
    put_account(&store).await;
    let keys: Vec<Issuer> = pems().iter().map(|(pem, _)| issuer(pem)).collect();
    let authenticator = authenticator(&store, vec![keys[0].key.public.clone()]);
    let check = |token: &str, expected: &str| {
        let error = authenticator.token(token, &[ISSUER.to_owned()]).unwrap_err();
        assert_eq!(error, expected);
    };
    let (known, unknown) = (issue(&keys[0], &store, json!({})), issue(&keys[1], &store, json!({})));
    check(token_of(&unknown), "[invalid bearer token, invalid signature, no keys found]");
    let forged = format!("{}AAAA", &token_of(&known)[..token_of(&known).len() - 4]);
    let broken = "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]";
    check(&forged, broken);
    let (head, rest) = token_of(&known).split_once('.').expect("three parts");
    let none = URL_SAFE_NO_PAD.encode("{\"alg\":\"none\"}");
    check(&format!("{none}.{rest}"), "invalid bearer token");
    let other = URL_SAFE_NO_PAD.encode("{\"iss\":\"https://other\"}");
    check(&format!("{head}.{other}.x"), "invalid bearer token");
}

#[tokio::test]
async fn only_a_genuine_token_is_worth_another_look() {
    let store = sample::store();
    put_account(&store).await;
    let keys: Vec<Issuer> = pems().iter().map(|(pem, _)| issuer(pem)).collect();
    let answers = keys.iter().take(2).map(|issuer| issue(issuer, &store, json!({})));
    let [known, unknown] = answers.collect::<Vec<_>>().try_into().expect("two");
    let key = || vec![keys[0].key.public.clone()];
    // A server that is yet to be told of the account.
    let elsewhere = authenticator(&sample::store(), key());
    assert!(elsewhere.catch_up(token_of(&known)).await);
    assert!(!elsewhere.catch_up(token_of(&unknown)).await);
    assert!(!elsewhere.catch_up("secret").await);
    let header = format!("Bearer {}", token_of(&known));
    assert!(elsewhere.catch_up_with(&parts("/api", &[("authorization", &header)])).await);
    assert!(!elsewhere.catch_up_with(&parts("/api", &[])).await);
    let here = authenticator(&store, key());
    assert!(!here.catch_up(token_of(&known)).await, "it is good already");
}

/// What becomes of a token bound to `bound` when `change` happened to the store.
async fn fate(bound: Value, change: (&str, Option<Value>)) -> String {
    let store = sample::store();
    put_account(&store).await;
    put(&store, "secrets/web/one", json!({ "kind": "Secret" })).await;
    put(&store, "minions/n1", json!({ "kind": "Node" })).await;
    let spec = json!({ "serviceAccountName": "robot", "nodeName": "n1" });
    put(&store, "pods/web/one", json!({ "kind": "Pod", "spec": spec })).await;
    let (pem, _) = pems().remove(0);
    let issuer = issuer(&pem);
    let authenticator = authenticator(&store, vec![issuer.key.public.clone()]);
    let answer = issue(&issuer, &store, json!({ "boundObjectRef": bound }));
    let verify = || authenticator.token(token_of(&answer), &[ISSUER.to_owned()]);
    verify().expect("it is good at first");
    let (path, object) = change;
    match object {
        Some(object) => put(&store, path, object).await,
        None => {
            let key = Key::from(format!("/registry/{path}"));
            store.delete(&key, Expect::Anything).await.expect("it is there");
        }
    }
    match verify() {
        Ok(found) => {
            let extra = found.user.extra.into_iter().filter(|(key, _)| key != CREDENTIAL_ID);
            let extra: Vec<String> = extra
                .map(|(key, values)| {
                    let key = key.strip_prefix("authentication.kubernetes.io/").expect("ours");
                    format!("{key}={}", values.join(","))
                })
                .collect();
            format!("good {}", extra.join(" "))
        }
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_token_dies_with_what_it_is_bound_to() {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "name": "one" });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "name": "one", "uid": UID });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "name": "n1" });
    let other = || Some(json!({ "metadata": { "uid": "other" } }));
    let leaving = |at: &str| Some(json!({ "metadata": { "deletionTimestamp": at } }));
    let dead = "[invalid bearer token, service account token has been invalidated]";
    let mismatch = |kind: &str| {
        format!(
            "[invalid bearer token, {kind} UID (other) does not match service account {kind} ref \
             claim ({UID})]"
        )
    };
    let extra = format!("good node-name=n1 node-uid={UID} pod-name=one pod-uid={UID}");

    assert_eq!(fate(pod.clone(), ("minions/n1", None)).await, extra);
    assert_eq!(fate(pod.clone(), ("pods/web/one", None)).await, dead);
    assert_eq!(fate(pod.clone(), ("pods/web/one", other())).await, mismatch("pod"));
    assert_eq!(fate(pod.clone(), ("pods/web/one", leaving("2026-11-15T23:58:59Z"))).await, dead);
    assert_eq!(fate(pod, ("pods/web/one", leaving("2026-11-15T23:59:00Z"))).await, extra);
    assert_eq!(fate(secret.clone(), ("pods/web/one", None)).await, "good ");
    assert_eq!(fate(secret.clone(), ("secrets/web/one", None)).await, dead);
    assert_eq!(fate(secret.clone(), ("secrets/web/one", other())).await, mismatch("secret"));
    assert_eq!(fate(node.clone(), ("minions/n1", None)).await, dead);
    assert_eq!(fate(node.clone(), ("minions/n1", other())).await, mismatch("node"));
    let good = format!("good node-name=n1 node-uid={UID}");
    assert_eq!(fate(node, ("pods/web/one", None)).await, good);
    assert_eq!(
        fate(Value::Null, ("serviceaccounts/web/robot", None)).await,
        "[invalid bearer token, serviceaccounts \"robot\" not found]"
    );
    assert_eq!(
        fate(Value::Null, ("serviceaccounts/web/robot", other())).await,
        format!("[invalid bearer token, service account UID (other) does not match claim ({UID})]")
    );
    let gone = leaving("2026-11-15T00:00:00Z");
    assert_eq!(
        fate(Value::Null, ("serviceaccounts/web/robot", gone)).await,
        "[invalid bearer token, service account web/robot has been deleted]"
    );
}

#[tokio::test]
async fn a_kubelet_s_token_outlives_what_was_asked() {
    let store = sample::store();
    put_account(&store).await;
    let spec = json!({ "serviceAccountName": "robot" });
    put(&store, "pods/web/one", json!({ "kind": "Pod", "spec": spec })).await;
    let (pem, _) = pems().remove(0);
    let issuer = issuer(&pem);
    let bound = json!({ "apiVersion": "v1", "kind": "Pod", "name": "one" });
    let lifetime = |spec: Value| {
        let answer = issue(&issuer, &store, spec);
        let claims = claims(token_of(&answer));
        let warn = claims["kubernetes.io"]["warnafter"].as_i64();
        (claims["exp"].as_i64().expect("a time") - NOW, warn.map(|warn| warn - NOW))
    };
    let year = 365 * 24 * 60 * 60;
    let unasked = json!({ "expirationSeconds": 3607, "boundObjectRef": bound });
    assert_eq!(lifetime(unasked), (year, Some(3607)));
    let asked = json!({ "expirationSeconds": 3600, "boundObjectRef": bound });
    assert_eq!(lifetime(asked), (3600, None));
    assert_eq!(lifetime(json!({ "expirationSeconds": 3607 })), (3607, None));
    let vault =
        json!({ "expirationSeconds": 3607, "boundObjectRef": bound, "audiences": ["vault"] });
    assert_eq!(lifetime(vault), (3607, None));
}

/// A token as the controller of old wrote it into secrets.
fn legacy_token(key: &SigningKey, claims: &Value) -> String {
    let mut header = jsonwebtoken::Header::new(key.algorithm);
    header.kid = Some(key.public.id.clone());
    jsonwebtoken::encode(&header, claims, &key.encoding).expect("signed")
}

#[tokio::test]
async fn a_token_in_a_secret_is_good_while_the_secret_holds_it() {
    use base64::engine::general_purpose::STANDARD;
    let store = sample::store();
    put_account(&store).await;
    let (pem, _) = pems().remove(1);
    let issuer = issuer(&pem);
    let claims = json!({
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:web:robot",
        "kubernetes.io/serviceaccount/namespace": "web",
        "kubernetes.io/serviceaccount/secret.name": "old",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": UID,
    });
    let token = legacy_token(&issuer.key, &claims);
    let authenticator = authenticator(&store, vec![issuer.key.public.clone()]);
    let verify = |token: &str| {
        let found = authenticator.token(token, &[ISSUER.to_owned()]);
        found.map(|found| found.user.name).unwrap_or_else(|error| error)
    };
    let secret = |token: &str, labels: Value| {
        let data = json!({ "token": STANDARD.encode(token) });
        json!({ "kind": "Secret", "metadata": { "labels": labels }, "data": data })
    };
    assert_eq!(verify(&token), "[invalid bearer token, Token has been invalidated]");
    put(&store, "secrets/web/old", secret(&token, json!({}))).await;
    assert_eq!(verify(&token), "system:serviceaccount:web:robot");
    put(&store, "secrets/web/old", secret("other", json!({}))).await;
    assert_eq!(verify(&token), "[invalid bearer token, Token does not match server's copy]");
    let labels = json!({ "kubernetes.io/legacy-token-invalid-since": "2026-01-01" });
    put(&store, "secrets/web/old", secret(&token, labels)).await;
    assert!(verify(&token).contains("the token in secret web/old for service account web/robot"));

    let mut wrong = claims.clone();
    wrong["sub"] = "system:serviceaccount:web:other".into();
    let wrong = legacy_token(&issuer.key, &wrong);
    assert_eq!(verify(&wrong), "[invalid bearer token, sub claim is invalid]");
    let mut short = claims;
    short["kubernetes.io/serviceaccount/secret.name"] = "".into();
    let short = legacy_token(&issuer.key, &short);
    assert_eq!(verify(&short), "[invalid bearer token, secretName claim is missing]");
}

/// What `ann` is told who asks for configmaps as somebody else.
struct Impersonation(Authenticator);

impl Impersonation {
    async fn new(policy: &str) -> Self {
        let store = sample::store();
        write(&store, policy).await;
        Impersonation(authenticator(&store, Vec::new()))
    }

    fn check(&self, headers: &[(&str, &str)], expected: &str) {
        let mut headers = headers.to_vec();
        headers.push(("authorization", "Bearer secret"));
        let parts = parts("/api/v1/namespaces/web/configmaps", &headers);
        assert_eq!(shown(self.0.identify(&parts)), expected, "{headers:?}");
    }
}

#[tokio::test]
async fn the_first_refusal_to_impersonate_is_told() {
    let nothing = Impersonation::new("").await;
    let user = |name| [("impersonate-user", name)];
    let on = |mode| {
        format!(
            "403 configmaps is forbidden: User \"ann\" cannot impersonate-on:{mode}:list resource \
             \"configmaps\" in API group \"\" in the namespace \"web\""
        )
    };
    nothing.check(&user("bob"), &on("user-info"));
    nothing.check(&user("system:node:n1"), &on("arbitrary-node"));
    nothing.check(&user("system:serviceaccount:a:b"), &on("serviceaccount"));
    nothing.check(
        &[("impersonate-user", "system:serviceaccount:a:b"), ("impersonate-group", "x")],
        "403 serviceaccounts \"b\" is forbidden: User \"ann\" cannot impersonate resource \
         \"serviceaccounts\" in API group \"\" in the namespace \"a\"",
    );
}

#[tokio::test]
async fn leave_to_impersonate_can_be_narrow() {
    let some = Impersonation::new(
        "clusterrole i\n\
         \x20 impersonate-on:user-info:list,impersonate-on:arbitrary-node:list \"\" configmaps\n\
         \x20 impersonate:user-info authentication.k8s.io users,groups\n\
         \x20 impersonate:arbitrary-node authentication.k8s.io nodes n1\n\
         clusterrolebinding i -\n\
         \x20 user ann",
    )
    .await;
    let bob = ("impersonate-user", "bob");
    some.check(&[bob], "bob  system:authenticated");
    some.check(&[bob, ("impersonate-group", "x")], "bob  x,system:authenticated");
    some.check(
        &[("impersonate-user", "system:node:n1")],
        "system:node:n1  system:nodes,system:authenticated",
    );
    let user = "User \"ann\" cannot impersonate:user-info resource";
    let place = "in API group \"authentication.k8s.io\" at the cluster scope";
    some.check(
        &[bob, ("impersonate-group", "system:masters")],
        &format!(
            "403 groups.authentication.k8s.io \"system:masters\" is forbidden: {user} \"groups\" \
             {place}: impersonating the system:masters group is not allowed"
        ),
    );
    some.check(
        &[bob, ("impersonate-uid", "u")],
        &format!("403 uids.authentication.k8s.io \"u\" is forbidden: {user} \"uids\" {place}"),
    );
    some.check(
        &[bob, ("impersonate-extra-a", "b")],
        &format!(
            "403 userextras.authentication.k8s.io is forbidden: {user} \"userextras\" {place}: \
             impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \
             \"a\": must be a domain-prefixed path (such as \"acme.io/foo\")"
        ),
    );
    some.check(
        &[bob, ("impersonate-extra-a.b%2fc", "b")],
        &format!(
            "403 userextras.authentication.k8s.io \"b\" is forbidden: {user} \"userextras/a.b/c\" \
             {place}"
        ),
    );
}

#[tokio::test]
async fn a_node_is_its_pods_accounts_own_to_impersonate() {
    let store = sample::store();
    write(
        &store,
        "clusterrole i\n\
         \x20 impersonate-on:associated-node:list \"\" configmaps\n\
         \x20 impersonate:associated-node authentication.k8s.io nodes\n\
         clusterrolebinding i -\n\
         \x20 group system:serviceaccounts",
    )
    .await;
    let authenticator = authenticator(&store, Vec::new());
    let identify = |node: &str| {
        let name = format!("system:node:{node}");
        let mut parts = parts("/api/v1/namespaces/web/configmaps", &[("impersonate-user", &name)]);
        let extra = ("authentication.kubernetes.io/node-name".to_owned(), vec!["n1".to_owned()]);
        parts.extensions.insert(Arc::new(User {
            name: "system:serviceaccount:web:robot".to_owned(),
            uid: UID.to_owned(),
            groups: vec!["system:serviceaccounts".to_owned()],
            extra: BTreeMap::from([extra]),
        }));
        shown(authenticator.identify(&parts))
    };
    assert_eq!(identify("n1"), "system:node:n1  system:nodes,system:authenticated");
    assert!(identify("n2").contains("cannot impersonate-on:arbitrary-node:list"));
}

#[tokio::test]
async fn the_leave_of_old_is_for_each_part() {
    let old = Impersonation::new(
        "clusterrole i\n\
         \x20 impersonate \"\" users bob,system:anonymous\n\
         \x20 impersonate \"\" groups x\n\
         \x20 impersonate \"\" serviceaccounts\n\
         \x20 impersonate authentication.k8s.io userextras/scopes view\n\
         clusterrolebinding i -\n\
         \x20 user ann",
    )
    .await;
    let bob = ("impersonate-user", "bob");
    old.check(
        &[bob, ("impersonate-group", "x"), ("impersonate-extra-Scopes", "view")],
        "bob  x,system:authenticated",
    );
    // The mode that served last is tried first, so its refusals are the ones told.
    old.check(
        &[("impersonate-user", "cid")],
        "403 users \"cid\" is forbidden: User \"ann\" cannot impersonate resource \"users\" in API \
         group \"\" at the cluster scope",
    );
    old.check(
        &[bob, ("impersonate-group", "x"), ("impersonate-group", "y")],
        "403 groups \"y\" is forbidden: User \"ann\" cannot impersonate resource \"groups\" in API \
         group \"\" at the cluster scope",
    );
    old.check(
        &[("impersonate-user", "system:serviceaccount:web:robot")],
        "system:serviceaccount:web:robot  \
         system:serviceaccounts,system:serviceaccounts:web,system:authenticated",
    );
    old.check(
        &[("impersonate-user", "system:anonymous")],
        "system:anonymous  system:unauthenticated",
    );
}
