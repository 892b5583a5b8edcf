//! Over real sockets on loopback, with a handler that knows a few paths.

mod site;

use std::io::Read as _;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Extensions, Request, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use self::site::{Credentials, Protocol, Site};
use super::Limits;
use super::front::{Crowded, limit};
use crate::user::User;

/// Long past anything a test waits for.
const LONG: Duration = Duration::from_secs(3600);

fn get(path: &str) -> Request<String> {
    Request::get(path).body(String::new()).expect("a request")
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("the answer is JSON")
}

#[tokio::test]
async fn both_protocols_are_spoken_and_certificates_are_optional() {
    let site = Site::start(Limits::default());
    let strangers = Credentials::of_a_stranger();
    for protocol in [Protocol::One, Protocol::Two] {
        for (credentials, expected) in
            [(None, "nothing"), (Some(site.client()), "trusted"), (Some(&strangers), "untrusted")]
        {
            let mut client = site.connect(protocol, credentials).await;
            let (parts, body) = client.send(get("/who")).await;
            assert_eq!(parts.status, StatusCode::OK);
            assert_eq!(json(&body)["shown"], expected, "{protocol:?}");
            assert_eq!(json(&body)["version"], protocol.name());
        }
    }
    site.stop().await;
}

#[tokio::test]
async fn every_answer_has_an_id_and_is_not_to_be_cached() {
    let site = Site::start(Limits::default());
    let mut client = site.connect(Protocol::One, None).await;
    let mut request = get("/who");
    request.headers_mut().insert("audit-id", "mine".parse().expect("a value"));
    let (parts, body) = client.send(request).await;
    assert_eq!(parts.headers["audit-id"], "mine");
    assert_eq!(parts.headers["cache-control"], "no-cache, private");
    assert_eq!(json(&body)["audit-id"], "mine");

    let (parts, body) = client.send(get("/who")).await;
    let id = parts.headers["audit-id"].to_str().expect("text");
    assert!(uuid::Uuid::parse_str(id).is_ok(), "{id}");
    assert_eq!(json(&body)["audit-id"], id);
    site.stop().await;
}

#[tokio::test]
async fn garbage_and_silence_disturb_nobody() {
    let limits = Limits {
        handshake_max: Duration::from_millis(200),
        first_request_max: Duration::from_millis(200),
        ..Limits::default()
    };
    let site = Site::start(limits);
    let mut client = site.connect(Protocol::Two, None).await;
    client.send(get("/who")).await;

    let mut rest = Vec::new();
    let mut garbage = TcpStream::connect(site.address()).await.expect("connect");
    garbage.write_all(&[0x16, 0x03, 0x01, 0xff, 0xff, 0, 1, 2, 3]).await.expect("write");
    garbage.write_all(&[7; 70_000]).await.expect("write");
    // Closed, or reset: what was sent is not read to its end.
    let _ = garbage.read_to_end(&mut rest).await;

    let mut silent = TcpStream::connect(site.address()).await.expect("connect");
    assert_eq!(silent.read(&mut [0; 16]).await.expect("closed"), 0, "no handshake is waited for");
    for protocol in [Protocol::One, Protocol::Two] {
        let mut secured = site.secure(protocol, None).await;
        let mut rest = Vec::new();
        // HTTP/2 servers speak first. Then both hang up.
        let _ = secured.read_to_end(&mut rest).await;
    }

    let (parts, _) = client.send(get("/who")).await;
    assert_eq!(parts.status, StatusCode::OK, "the first connection never noticed");
    site.stop().await;
}

#[tokio::test]
async fn plain_http_is_told_that_tls_is_needed() {
    let site = Site::start(Limits::default());
    let mut plain = TcpStream::connect(site.address()).await.expect("connect");
    plain.write_all(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("write");
    let mut answer = [0; 76];
    plain.read_exact(&mut answer).await.expect("an answer");
    let expected =
        b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    assert_eq!(answer, *expected);
    site.stop().await;
}

#[tokio::test]
async fn a_watch_may_go_over_a_websocket() {
    let site = Site::start(Limits::default());
    let mut client = site.secure(Protocol::One, None).await;
    let request = "GET /api/v1/drip?watch=1 HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\n\
                   Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    client.write_all(request.as_bytes()).await.expect("write");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.expect("a head"));
    }
    let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 switching protocols\r\n"), "{head}");
    assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n"), "{head}");

    client.write_all(b"\x89\x80\0\0\0\0").await.expect("a ping");
    let mut drips = 0;
    loop {
        let mut start = [0; 2];
        client.read_exact(&mut start).await.expect("a message");
        match start {
            [0x81, 5] => {
                let mut text = [0; 5];
                client.read_exact(&mut text).await.expect("a whole message");
                assert_eq!(&text, b"drip\n");
                drips += 1;
            }
            [0x8a, 0] if drips > 0 => break,
            [0x8a, 0] => client.write_all(b"\x89\x80\0\0\0\0").await.expect("a ping"),
            other => panic!("neither a drip nor a pong: {other:x?}"),
        }
    }
    let mut rest = Vec::new();
    // However the connection ends, what came before counts.
    let (_, ()) = tokio::join!(client.read_to_end(&mut rest), site.stop());
    assert!(rest.ends_with(b"\x88\x02\x03\xe8"), "it is closed when the server stops");
}

#[tokio::test]
async fn an_answer_that_came_early_is_not_lost_on_who_still_sends() {
    let site = Site::start(Limits::default());
    for protocol in [Protocol::One, Protocol::Two] {
        let mut client = site.connect(protocol, None).await;
        for _ in 0..20 {
            let long = "x".repeat(2 << 20);
            let request = Request::post("/bytes/3").header("host", "localhost").body(long);
            let (parts, body) = client.send(request.expect("a request")).await;
            assert_eq!((parts.status, &body[..]), (StatusCode::OK, &site::text(3)[..]));
        }
    }
    site.stop().await;
}

#[tokio::test]
async fn headers_are_bounded() {
    let limits = Limits { header_bytes_max: 16 << 10, header_count_max: 40, ..Limits::default() };
    let site = Site::start(limits);
    let large = |bytes: usize| {
        let mut request = get("/who");
        let value = "x".repeat(bytes).parse().expect("a value");
        request.headers_mut().insert("x-large", value);
        request
    };
    for protocol in [Protocol::One, Protocol::Two] {
        let mut client = site.connect(protocol, None).await;
        assert_eq!(client.send(large(8 << 10)).await.0.status, StatusCode::OK);
        let (parts, _) = client.send(large(20 << 10)).await;
        assert_eq!(parts.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "{protocol:?}");
    }
    let mut many = get("/who");
    for n in 0..50_u8 {
        let name: http::HeaderName = format!("x-{n}").parse().expect("a name");
        many.headers_mut().insert(name, "x".parse().expect("a value"));
    }
    let mut client = site.connect(Protocol::One, None).await;
    let (parts, _) = client.send(many).await;
    assert_eq!(parts.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    site.stop().await;
}

#[tokio::test]
async fn a_request_has_a_deadline_and_a_watch_has_none() {
    let site = Site::start(Limits { request_max: LONG, ..Limits::default() });
    let mut client = site.connect(Protocol::Two, None).await;
    let (parts, body) = client.send(get("/api/v1/stuck?timeout=10ms")).await;
    assert_eq!(parts.status, StatusCode::GATEWAY_TIMEOUT);
    let status = json(&body);
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["reason"], "Timeout");
    let message = "Timeout: request did not complete within the allotted timeout";
    assert_eq!(status["message"], message);

    let (parts, body) = client.send(get("/api/v1/stuck?timeout=soon")).await;
    assert_eq!(parts.status, StatusCode::BAD_REQUEST);
    let message = r#"invalid timeout specified in the request URL - time: invalid duration "soon""#;
    assert_eq!(json(&body)["message"], message);

    // What has been begun cannot become an error any more; it must not look whole.
    let answer = client.begin(get("/api/v1/drip?timeout=50ms")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.into_body().collect().await.is_err(), "the answer is cut off");

    let watch = client.begin(get("/api/v1/drip?watch=1&timeout=10ms")).await;
    let mut body = watch.into_body().into_data_stream();
    client.send(get("/api/v1/stuck?timeout=50ms")).await;
    for _ in 0..3 {
        assert_eq!(body.next().await.expect("more").expect("whole"), "drip\n");
    }
    drop(body);
    site.stop().await;
}

#[tokio::test]
async fn a_panic_is_an_answer_and_the_connection_goes_on() {
    let site = Site::start(Limits::default());
    for protocol in [Protocol::One, Protocol::Two] {
        let mut client = site.connect(protocol, None).await;
        let (parts, body) = client.send(get("/panic")).await;
        assert_eq!(parts.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(json(&body)["reason"], "InternalError");
        assert_eq!(client.send(get("/who")).await.0.status, StatusCode::OK);
    }
    site.stop().await;
}

#[tokio::test]
async fn long_answers_are_compressed_for_those_who_accept_it() {
    let site = Site::start(Limits::default());
    let mut client = site.connect(Protocol::Two, None).await;
    let mut check = async |path: &str, accept: &str, compressed: bool| {
        let mut request = get(path);
        request.headers_mut().insert("accept-encoding", accept.parse().expect("a value"));
        let (parts, body) = client.send(request).await;
        let encoding = parts.headers.get("content-encoding").map(|value| value.as_bytes());
        assert_eq!(encoding == Some(b"gzip"), compressed, "{path} {accept}");
        if !compressed {
            return body.to_vec();
        }
        assert_eq!(parts.headers["vary"], "Accept-Encoding");
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut text).expect("it is gzip");
        text
    };
    let long = check("/bytes/131073", "deflate, gzip", true).await;
    assert_eq!(long, site::text(131_073));
    assert_eq!(check("/bytes/131073", "gzip;q=1.0", false).await, long);
    assert_eq!(check("/bytes/131073", "br", false).await, long);
    check("/bytes/131072", "gzip", false).await;

    assert_eq!(check("/pieces/300000", "gzip", true).await, site::text(300_000));
    assert_eq!(check("/pieces/1000", "gzip", false).await, site::text(1000));
    site.stop().await;
}

#[tokio::test]
async fn beyond_the_limit_requests_are_marked_and_watches_are_not_counted() {
    let site = Site::start(Limits { read_only_max: 1, mutating_max: 1, ..Limits::default() });
    let mut client = site.connect(Protocol::Two, None).await;
    let crowded = |body: Bytes| json(&body)["crowded"] == true;

    let watch = client.begin(get("/api/v1/drip?watch=1")).await;
    assert!(!crowded(client.send(get("/who")).await.1), "a watch does not count");

    let slow = client.begin(get("/api/v1/drip")).await;
    assert!(crowded(client.send(get("/who")).await.1));
    let post = || Request::post("/who").body(String::new()).expect("a request");
    assert!(!crowded(client.send(post()).await.1), "writes have room of their own");
    drop(slow);
    // The server learns of it when it next writes.
    while crowded(client.send(get("/who")).await.1) {}
    drop(watch);
    site.stop().await;
}

#[test]
fn only_the_exempt_are_heard_when_there_is_no_room() {
    let mut extensions = Extensions::new();
    assert!(limit(&extensions, false).is_ok());
    extensions.insert(Crowded);
    assert!(limit(&extensions, true).is_ok());
    let refusal = limit(&extensions, false).expect_err("refused");
    let seconds = refusal.details.expect("details").retry_after_seconds;
    assert_eq!((refusal.code, seconds), (429, 1));
}

#[tokio::test]
async fn stopping_ends_watches_and_lets_requests_finish() {
    for protocol in [Protocol::One, Protocol::Two] {
        let site = Site::start(Limits { drain_max: LONG, ..Limits::default() });
        let mut watcher = site.connect(protocol, None).await;
        let watch = watcher.begin(get("/api/v1/drip?watch=1")).await;
        let mut reader = site.connect(protocol, None).await;
        let read = reader.begin(get("/gate")).await;
        let idle = site.connect(protocol, None).await;

        let address = site.address();
        let stopping = site.begin_stop();
        watch.into_body().collect().await.expect("a whole answer");
        stopping.open_gate();
        assert_eq!(read.into_body().collect().await.expect("whole").to_bytes(), "opened");
        stopping.wait().await;
        drop(idle);
        assert!(TcpStream::connect(address).await.is_err(), "nobody listens");
    }
}

#[tokio::test]
async fn what_outlasts_the_drain_is_cut_off() {
    let site = Site::start(Limits { drain_max: Duration::from_millis(50), ..Limits::default() });
    let mut client = site.connect(Protocol::Two, None).await;
    let read = client.begin(get("/gate")).await;
    site.stop().await;
    assert!(read.into_body().collect().await.is_err());
}

#[tokio::test]
async fn new_certificates_are_shown_to_new_connections() {
    let site = Site::start(Limits::default());
    let shown = async |name: &str| {
        let stream = site.secure_as(name, Protocol::One, None).await;
        let (_, session) = stream.get_ref();
        session.peer_certificates().expect("a server has one")[0].clone().into_owned()
    };
    let first = shown("localhost").await;
    assert_eq!(shown("localhost").await, first);
    let (certificate, key) = site.issue(&["localhost"]);
    site.certificates().replace(certificate.as_bytes(), key.as_bytes()).expect("a pair");
    let second = shown("localhost").await;
    assert_ne!(second, first);
    let (certificate, key) = site.issue(&["other.example"]);
    site.certificates()
        .replace_for("other.example", certificate.as_bytes(), key.as_bytes())
        .expect("a pair");
    assert_ne!(shown("other.example").await, second);
    assert_eq!(shown("localhost").await, second);
    site.stop().await;
}

#[tokio::test]
async fn kube_needs_no_socket_and_is_somebody() {
    let server = crate::server::tests::server();
    let as_user = |name: &str, group: &str| {
        let user = User::new(name, [group.to_owned()]);
        kube::Client::new(server.as_user(user), "default")
    };
    let namespace = |name: &str| Namespace {
        metadata: kube::api::ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
        ..Default::default()
    };
    let options = kube::api::PostParams::default();
    let admin: kube::Api<Namespace> = kube::Api::all(as_user("admin", "system:masters"));
    let created = admin.create(&options, &namespace("a")).await.expect("created");
    assert!(created.metadata.uid.is_some());

    let alice: kube::Api<Namespace> = kube::Api::all(as_user("alice", "dev"));
    let error = alice.create(&options, &namespace("b")).await.expect_err("refused");
    let kube::Error::Api(status) = error else { panic!("{error}") };
    assert_eq!(
        status.message,
        "namespaces is forbidden: User \"alice\" cannot create resource \"namespaces\" in API \
         group \"\" at the cluster scope"
    );
}
