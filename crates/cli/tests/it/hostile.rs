//! What hurts nobody but the one who does it: broken requests, silent connections, slow readers.

mod webhooks;

use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::client::{Access, Client};
use crate::server::Ours;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn start(home: &tempfile::TempDir) -> Ours {
    Ours::up(home.path(), "kubewright", &["--port", "0"])
}

/// Somebody else, who wants no more than an answer.
async fn check_others(access: &Access) {
    let mut client = access.client().await;
    client.get("/api/v1/namespaces/default").await;
    let object = json!({"metadata": {"generateName": "other-"}});
    client.create(CONFIG_MAPS, &object).await;
}

/// The status and the message of an answer to a broken request.
async fn say(client: &mut Client, method: &str, path: &str, media: &str, body: &[u8]) -> String {
    let mut request = Request::builder().method(method).uri(path);
    if !media.is_empty() {
        let header = if method == "GET" { "accept" } else { "content-type" };
        request = request.header(header, media);
    }
    let body = Full::new(body.to_vec().into());
    let answer = client.exchange(request.body(body).expect("a request")).await;
    let (status, answer) = answer.expect("an answer");
    format!("{status} {}", answer["message"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn broken_requests_are_refused_in_upstreams_words() {
    const UNREAD: &str = "400 the object provided is unrecognized (must be of type ConfigMap): ";
    const UNTOLD: &str = "couldn't get version/kind; json parse error: ";
    let home = tempfile::tempdir().expect("a directory");
    let ours = start(&home);
    let access = &ours.access;
    let mut client = access.client().await;

    let bodies: [(&str, &[u8], String); 14] = [
        (JSON, b"{", format!("{UNREAD}{UNTOLD}unexpected end of JSON input ({{)")),
        (JSON, b"", format!("{UNREAD}{UNTOLD}unexpected end of JSON input (<empty>)")),
        (
            JSON,
            b"{\"metadata\":{\"name\":\"a\"}} x",
            format!(
                "{UNREAD}{UNTOLD}invalid character 'x' after top-level value \
                 ({{\"metadata\":{{\"name\":\"a\"}}}} x)"
            ),
        ),
        (
            JSON,
            &b"[".repeat(200_000),
            format!(
                "{UNREAD}{UNTOLD}invalid character '[' exceeded max depth \
                 (5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b ...)"
            ),
        ),
        (YAML, b"a: *x", format!("{UNREAD}yaml: unknown anchor 'x' referenced (613a202a78)")),
        (
            PROTOBUF,
            b"garbage",
            format!(
                "{UNREAD}provided data does not appear to be a protobuf message, expected prefix \
                 [107 56 115 0] (67617262616765)"
            ),
        ),
        (
            PROTOBUF,
            b"k8s\0\x0a\xff\xff\xff\xff\x0f",
            format!("{UNREAD}unexpected EOF (6b3873000affffffff0f)"),
        ),
        (
            JSON,
            &b" ".repeat((3 << 20) + 1),
            "413 Request entity too large: limit is 3145728".to_owned(),
        ),
        (
            "text/plain",
            b"{}",
            "415 the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf"
                .to_owned(),
        ),
        (
            ";;",
            b"{}",
            "415 the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf"
                .to_owned(),
        ),
        (
            JSON,
            b"{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}",
            "400 Pod in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Pod) to \
             (core.ConfigMap): unknown conversion"
                .to_owned(),
        ),
        (
            JSON,
            b"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v2\"}",
            "400 ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \
             \"ConfigMap\" is registered for version \"v2\" in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\""
                .to_owned(),
        ),
        (
            JSON,
            b"{\"data\":3}",
            "400 ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot \
             unmarshal number into Go struct field ConfigMap.data of type map[string]string"
                .to_owned(),
        ),
        (
            JSON,
            b"null",
            "422 ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName \
             is required"
                .to_owned(),
        ),
    ];
    for (media, body, expected) in &bodies {
        // A refused body may cost the connection.
        let mut client = access.client().await;
        assert_eq!(say(&mut client, "POST", CONFIG_MAPS, media, body).await, *expected);
    }

    client.create(CONFIG_MAPS, &json!({"metadata": {"name": "here"}})).await;
    let asked = [
        ("GET", "/configmaps/%2e%2e", "400 Name parameter invalid: \"..\": may not be '..'"),
        ("GET", "/configmaps/..", "400 Name parameter invalid: \"..\": may not be '..'"),
        ("GET", "/configmaps/a%25b", "400 Name parameter invalid: \"a%b\": may not contain '%'"),
        ("GET", "/configmaps/%zz", "400 "),
        ("GET", "/configmaps/a%2fb", "404 the server could not find the requested resource"),
        ("GET", "/configmaps/a%20b", "404 configmaps \"a b\" not found"),
        ("GET", "/configmaps/a%00b", "404 configmaps \"a\\x00b\" not found"),
        ("GET", "/configmaps/h%65re", "200 "),
        ("GET", "/configmaps/here/nope", "404 the server could not find the requested resource"),
        ("GET", "//configmaps", "404 the server could not find the requested resource"),
        ("FOO", "/configmaps", METHOD),
        ("POST", "/configmaps/here", METHOD),
        ("PUT", "/configmaps", METHOD),
        ("PATCH", "/configmaps/here", "415 415: Unsupported Media Type"),
    ];
    for (method, path, expected) in asked {
        let path = format!("/api/v1/namespaces/default{path}");
        let media = if method == "GET" { "" } else { JSON };
        assert_eq!(say(&mut client, method, &path, media, b"{}").await, expected, "{path}");
    }
    assert_eq!(say(&mut client, "GET", "//api/v1/namespaces", "", b"").await, "404 ");
    assert!(say(&mut client, "GET", CONFIG_MAPS, "text/plain", b"").await.starts_with("406 "));
    check_others(access).await;
}

const METHOD: &str = "405 the server does not allow this method on the requested resource";

#[tokio::test]
async fn broken_and_silent_connections_leave_others_alone() {
    const EACH: usize = 200;
    let home = tempfile::tempdir().expect("a directory");
    let ours = start(&home);
    let access = &ours.access;
    check_others(access).await;
    let before = ours.resident_kib();

    let (mut plain, mut secured) = (Vec::new(), Vec::new());
    for turn in 0..EACH {
        // Says nothing, or not what a client says.
        let mut stream = TcpStream::connect(access.address).await.expect("connect");
        let noise: &[u8] = match turn % 4 {
            0 => b"",
            1 => b"GET / HTTP/1.1\r\n\r\n",
            2 => b"\x16\x03\x01\xff\xff\x01",
            _ => b"\0\0\0\0\0\0\0\0",
        };
        stream.write_all(noise).await.expect("written");
        plain.push(stream);
        // Speaks TLS, and stops in the middle of a request.
        let mut stream = access.secure().await.expect("a handshake");
        let part: &[u8] = match turn % 3 {
            0 => b"",
            1 => b"GET /api HTTP/1.1\r\nHost: ",
            _ => {
                b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: a\r\n\
                   Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"meta"
            }
        };
        stream.write_all(part).await.expect("written");
        stream.flush().await.expect("written");
        secured.push(stream);
    }
    check_others(access).await;
    // Who speaks HTTP to a server of HTTPS is told.
    let mut told = String::new();
    plain[1].read_to_string(&mut told).await.expect("an answer");
    assert!(told.ends_with("Client sent an HTTP request to an HTTPS server.\n"), "{told}");
    let after = ours.resident_kib();
    eprintln!("{} stuck connections: {before} KiB, then {after} KiB", 2 * EACH);
    assert!(after < before + 100_000, "{before} KiB became {after} KiB");
}

#[tokio::test]
async fn idle_watches_cost_little() {
    let home = tempfile::tempdir().expect("a directory");
    let ours = start(&home);
    let access = &ours.access;
    check_others(access).await;
    let before = ours.resident_kib();
    // Both ends of a watch are files, each in a process of its own, and other tests need some too.
    let count = raise_file_limit().saturating_sub(1_000).clamp(500, 10_000);

    let secrets = "/api/v1/namespaces/default/secrets";
    let start = access.client().await.get(secrets).await;
    let start = start["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let mut watches = Vec::new();
    while watches.len() < count {
        let mut opening = JoinSet::new();
        for _ in 0..50.min(count - watches.len()) {
            let (access, start) = (access.clone(), start.clone());
            opening.spawn(async move { access.watch(secrets, &start).await });
        }
        watches.extend(opening.join_all().await);
    }
    check_others(access).await;
    let after = ours.resident_kib();
    eprintln!("{count} idle watches: {before} KiB, then {after} KiB");
    let each = (after.saturating_sub(before)) / count as u64;
    assert!(each < 200, "a watch takes {each} KiB");

    let secret = access.client().await.create(secrets, &json!({"metadata": {"name": "s"}})).await;
    for watch in &mut watches {
        assert_eq!(watch.next().await["object"]["metadata"]["uid"], secret["metadata"]["uid"]);
    }
}

fn raise_file_limit() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the limit may be raised");
    limit.current.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

#[tokio::test]
async fn slow_readers_take_no_memory_and_no_time_from_others() {
    const READERS: usize = 20;
    const OBJECTS: usize = 200;
    const BYTES: usize = 100_000;
    let home = tempfile::tempdir().expect("a directory");
    let ours = start(&home);
    let access = &ours.access;
    let mut client = access.client().await;
    let large = |text: &str| json!({"large": text.repeat(BYTES)});
    for number in 0..OBJECTS {
        let object = json!({"metadata": {"name": format!("m-{number}")}, "data": large("x")});
        client.create(CONFIG_MAPS, &object).await;
    }
    let list = client.get(CONFIG_MAPS).await;
    let start = list["metadata"]["resourceVersion"].as_str().expect("a version");
    let before = ours.resident_kib();

    // A list and a watch for each, of which next to nothing is read.
    let (mut lists, mut watches) = (Vec::new(), Vec::new());
    for _ in 0..READERS {
        let mut stream = access.secure().await.expect("a handshake");
        let request = format!("GET {CONFIG_MAPS} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("written");
        assert_eq!(stream.read_u8().await.expect("a byte"), b'H');
        lists.push(stream);
        let mut stream = access.secure().await.expect("a handshake");
        let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={start}");
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("written");
        assert_eq!(stream.read_u8().await.expect("a byte"), b'H');
        watches.push(stream);
    }
    let lists_open = ours.resident_kib();
    let mut eager = access.watch(CONFIG_MAPS, start).await;
    for turn in 0..2 * OBJECTS {
        let path = format!("{CONFIG_MAPS}/m-{}", turn % OBJECTS);
        let text = if turn < OBJECTS { "y" } else { "z" };
        let object =
            json!({"metadata": {"name": format!("m-{}", turn % OBJECTS)}, "data": large(text)});
        let (status, changed) = client.send("PUT", &path, &object).await;
        assert_eq!(status, 200, "{changed}");
        // Another watch sees each change.
        let event = eager.next().await;
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        assert_eq!(version(&event["object"]), version(&changed));
        for stream in lists.iter_mut().chain(&mut watches).skip(turn % 10).step_by(10) {
            stream.read_u8().await.expect("a byte");
        }
    }
    check_others(access).await;
    let after = ours.resident_kib();
    eprintln!(
        "{READERS} slow lists of {} MB and as many watches: {before} KiB, {lists_open} KiB with \
         the lists, {after} KiB after {} MB of changes",
        OBJECTS * BYTES / 1_000_000,
        2 * OBJECTS * BYTES / 1_000_000,
    );
    // All that was ever written, twice over, and room for what is under way.
    assert!(after < before + 400_000, "{before} KiB became {after} KiB");
    drop((lists, watches));
}
