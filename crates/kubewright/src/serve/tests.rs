//! Servers by value, and on loopback.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use super::debug::{Page, Report};
use super::metrics::Pages;
use super::probes::{Check, Probes};
use super::*;
use crate::certificate::{self, Current, Kept, Wanted};

async fn said(answer: Answer) -> (u16, String) {
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("a text"))
}

fn get(path: &str) -> Request<()> {
    Request::get(path).body(()).expect("a request")
}

#[test]
fn a_place_is_read_as_flags_say_it() {
    fn check(text: &str, expected: Option<Bind>) {
        let bind = text.parse::<Bind>().ok();
        assert_eq!(bind, expected);
        if let Some(bind) = bind {
            assert_eq!(bind.to_string(), text);
        }
    }
    check("0", Some(Bind::Nowhere));
    check(":8443", Some(Bind::Port(8443)));
    check("127.0.0.1:80", Some(Bind::At((Ipv4Addr::LOCALHOST, 80).into())));
    check("[::1]:80", Some(Bind::At("[::1]:80".parse().unwrap())));
    check("", None);
    check(":", None);
    check("8443", None);
    check(":65536", None);
}

#[tokio::test]
async fn probes_answer_as_those_of_controller_runtime() {
    async fn check(probes: &Probes, path: &str, status: u16, body: &str) {
        assert_eq!(
            said(probes.answer(&get(path)).await).await,
            (status, body.to_owned()),
            "{path}"
        );
    }
    let mut probes = Probes::default();
    check(&probes, "/healthz", 200, "ok").await;
    check(&probes, "/healthz/ping", 200, "ok").await;
    check(&probes, "/readyz?verbose", 200, "[+]ping ok\nhealthz check passed\n").await;
    check(&probes, "/livez", 404, "404 page not found\n").await;
    probes.readiness.add("good", Check::new(async || Ok(())));
    probes.readiness.add("bad", Check::new(async || Err("it rains".to_owned())));
    check(
        &probes,
        "/readyz/",
        500,
        "[-]bad failed: reason withheld\n[+]good ok\nhealthz check failed\n",
    )
    .await;
    check(&probes, "/readyz/bad", 500, "internal server error: it rains\n").await;
    check(&probes, "/readyz/good", 200, "ok").await;
    check(&probes, "/readyz/ping", 404, "404 page not found\n").await;
    check(&probes, "/readyzzz", 404, "404 page not found\n").await;
    check(&probes, "/readyz?exclude=bad", 200, "ok").await;
    check(
        &probes,
        "/readyz?exclude=bad&exclude=ugly&verbose",
        200,
        "[+]bad excluded: ok\n[+]good ok\nwarn: some health checks cannot be excluded: no matches \
         for \"ugly\"\nhealthz check passed\n",
    )
    .await;
    check(&probes, "/healthz", 200, "ok").await;
}

struct Weather;

impl Report for Weather {
    fn report(&self) -> Value {
        json!({"sky": "blue", "winds": [{"from": "west", "force": 3}], "none": []})
    }
}

#[tokio::test]
async fn pages_are_for_machines_and_for_people() {
    let mut registry = Registry::default();
    Process::register(&mut registry);
    let page = Page::new("weather", Arc::new(Weather));
    let pages = Pages::for_everybody(Arc::new(registry)).with(page);
    let (status, outline) = said(pages.answer(&get("/debug/weather")).await).await;
    assert_eq!(status, 200);
    assert_eq!(outline, "sky blue\nwinds\n  -\n    from west\n    force 3\nnone []\n");
    let mut request = get("/debug/weather");
    request.headers_mut().insert(header::ACCEPT, "application/json".parse().unwrap());
    let (_, report) = said(pages.answer(&request).await).await;
    assert_eq!(serde_json::from_str::<Value>(&report).expect("JSON"), Weather.report());
    let answer = pages.answer(&get("/metrics")).await;
    let media_type = answer.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
    assert_eq!(media_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let (_, counted) = said(answer).await;
    assert!(counted.ends_with("# EOF\n"));
    if cfg!(target_os = "linux") {
        for name in [
            "process_cpu_seconds_total ",
            "process_start_time_seconds ",
            "process_virtual_memory_bytes ",
            "process_resident_memory_bytes ",
            "process_open_fds ",
            "process_max_fds ",
        ] {
            assert!(counted.lines().any(|line| line.starts_with(name)), "{name}: {counted}");
        }
    }
    assert_eq!(said(pages.answer(&get("/debug/other")).await).await.0, 404);
}

#[test]
fn what_the_machine_knows_of_a_process_is_read() {
    let own = "42 (a) b) S 1 42 42 0 -1 4194560 900 0 0 0 250 50 0 0 20 0 3 0 12345 8192000 300 \
               18446744073709551615";
    let expected = process::Facts {
        cpu_seconds: 3.0,
        start_seconds: 1_000_123.45,
        virtual_bytes: 8_192_000,
        resident_bytes: 300 * 4096,
    };
    assert_eq!(process::facts(own, "cpu 1 2\nbtime 1000000\n", 100, 4096), Some(expected));
    assert_eq!(process::facts("nonsense", "", 100, 4096), None);
    let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files   1024   4096   files\n";
    assert_eq!(process::open_files_max(limits), Some(1024.0));
    let unlimited = "Max open files   unlimited   unlimited   files\n";
    assert_eq!(process::open_files_max(unlimited), Some(f64::INFINITY));
}

fn certificate() -> Current {
    let kept =
        certificate::plan(&Kept::default(), &Wanted::for_localhost(), true, Timestamp::now());
    let current = Current::new();
    current.show(kept.expect("certificates").serving).expect("a certificate");
    current
}

/// Asks a server over TLS; the protocol that was agreed on, and the answer.
async fn fetch(address: std::net::SocketAddr, offered: &[&[u8]]) -> (Option<Vec<u8>>, String) {
    let stream = TcpStream::connect(address).await.expect("connected");
    let mut config = (*certificate::anyone()).clone();
    config.alpn_protocols = offered.iter().map(|it| it.to_vec()).collect();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(ServerName::from(address.ip()), stream).await.expect("secured");
    let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    let mut tasks = JoinSet::new();
    let request = Request::get("https://localhost/").body(Full::<Bytes>::default()).unwrap();
    let answer = if agreed.as_deref() == Some(b"h2") {
        let executor = hyper_util::rt::TokioExecutor::new();
        let (mut send, connection) =
            hyper::client::conn::http2::handshake(executor, TokioIo::new(stream)).await.unwrap();
        tasks.spawn(async { drop(connection.await) });
        send.send_request(request).await
    } else {
        let (mut send, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tasks.spawn(async { drop(connection.await) });
        send.send_request(request).await
    };
    let body = answer.expect("an answer").into_body().collect().await.expect("a body");
    (agreed, String::from_utf8(body.to_bytes().to_vec()).expect("a text"))
}

#[tokio::test]
async fn http2_is_spoken_only_if_asked_for() {
    let nowhere = Bind::At((Ipv4Addr::LOCALHOST, 0).into());
    for (is_on, expected) in [(false, b"http/1.1".as_slice()), (true, b"h2")] {
        let listener = Listener::bind("test", &nowhere).await.expect("a place");
        let listener = listener.secured(certificate()).http2(is_on);
        let (address, check) = (listener.address(), listener.check());
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let answer = |_| async { text(StatusCode::OK, "hello") };
        tasks.spawn(listener.run(answer, shutdown.clone()));
        check.ask().await.expect("it answers");
        let (agreed, body) = fetch(address, &[b"h2", b"http/1.1"]).await;
        assert_eq!((agreed.as_deref(), body.as_str()), (Some(expected), "hello"));
        shutdown.cancel();
        tasks.join_all().await;
        let why = check.ask().await.expect_err("nobody answers");
        assert!(why.starts_with("the server of test is not reachable"), "{why}");
    }
}

#[tokio::test]
async fn a_server_without_a_certificate_is_not_ready() {
    let nowhere = Bind::At((Ipv4Addr::LOCALHOST, 0).into());
    let current = Current::new();
    let listener = Listener::bind("test", &nowhere).await.expect("a place");
    let listener = listener.secured(current.clone());
    let (check, shutdown) = (listener.check(), CancellationToken::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(listener.run(|_| async { text(StatusCode::OK, "") }, shutdown.clone()));
    check.ask().await.expect_err("there is nothing to show");
    assert_eq!(current.problem().as_deref(), Some("there is no certificate yet"));
    let kept =
        certificate::plan(&Kept::default(), &Wanted::for_localhost(), true, Timestamp::now());
    current.show(kept.expect("certificates").serving).expect("a certificate");
    check.ask().await.expect("now there is");
    shutdown.cancel();
    tasks.join_all().await;
}

#[tokio::test]
async fn who_has_asked_is_answered_though_the_server_ends() {
    let nowhere = Bind::At((Ipv4Addr::LOCALHOST, 0).into());
    let listener = Listener::bind("test", &nowhere).await.expect("a place").secured(certificate());
    let (address, shutdown) = (listener.address(), CancellationToken::new());
    let (asked, has_asked) = oneshot::channel();
    let asked = std::sync::Mutex::new(Some(asked));
    let stop = shutdown.clone();
    let answer = move |_| {
        asked.lock().unwrap().take().expect("it is asked once").send(()).expect("somebody waits");
        let stop = stop.clone();
        async move {
            stop.cancelled().await;
            text(StatusCode::OK, "goodbye")
        }
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(listener.run(answer, shutdown.clone()));
    let asking = fetch(address, &[]);
    let ending = async {
        has_asked.await.expect("it was asked");
        shutdown.cancel();
    };
    let ((_, body), ()) = tokio::join!(asking, ending);
    assert_eq!(body, "goodbye");
    tasks.join_all().await;
}

#[tokio::test]
async fn a_place_that_is_taken_is_told_with_the_flag_that_changes_it() {
    let first = Listener::bind("metrics", &Bind::At(([127, 0, 0, 1], 0).into())).await;
    let first = first.expect("a place");
    let bind = Bind::At(first.address());
    let taken = Listener::bind("metrics", &bind).await.err().expect("it is taken").to_string();
    assert_eq!(taken, format!("serve metrics at {bind} (--metrics-bind-address says where)"));
}
