//! Real processes of this machine. The test program is its own shim.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::StreamExt as _;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerPort;
use kube::client::Body;
use kubewright_apimachinery::yaml;
use tempfile::TempDir;

use super::stand_in::Program;
use super::*;

mod containers;

/// Not a test of its own: what the others start, told apart by a variable.
#[test]
fn acts_as_a_shim() {
    if std::env::var_os("KUBEWRIGHT_TEST_SHIM").is_some() {
        let words: Vec<OsString> = std::env::args_os().collect();
        let at = words.iter().position(|word| word == "--").expect("words for the shim");
        shim(&words[at + 1..]);
    }
}

/// An API server that has nothing but one ConfigMap.
#[derive(Clone)]
struct Api;

impl tower_service::Service<Request<Body>> for Api {
    type Response = Response<Full<bytes::Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (status, body) = match request.uri().path() {
            "/api/v1/namespaces/default/services" => {
                (200, r#"{"apiVersion":"v1","kind":"ServiceList","metadata":{},"items":[]}"#)
            }
            "/api/v1/namespaces/default/configmaps/settings" => {
                (200, r#"{"metadata":{"name":"settings"},"data":{"colour":"blue"}}"#)
            }
            "/api/v1/namespaces/default/configmaps/scripts" => (
                200,
                r##"{"metadata":{"name":"scripts"},
                    "data":{"run.sh":"#!/bin/sh\necho $0 runs in ${PWD##*/}\n"}}"##,
            ),
            _ => (
                404,
                r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,
                    "reason":"NotFound","message":"no"}"#,
            ),
        };
        let mut response = Response::new(Full::new(bytes::Bytes::from(body)));
        *response.status_mut() = StatusCode::from_u16(status).expect("a status");
        std::future::ready(Ok(response))
    }
}

async fn runtime(directory: &TempDir) -> Process {
    let program = std::env::current_exe().expect("this program");
    let shim = [
        "env".into(),
        "KUBEWRIGHT_TEST_SHIM=1".into(),
        program.into_os_string(),
        "--exact".into(),
        "runtime::process::tests::acts_as_a_shim".into(),
        "--nocapture".into(),
        "--".into(),
    ];
    let config = ProcessConfig {
        directory: directory.path().to_owned(),
        hidden: Vec::new(),
        shim: shim.into(),
        server: None,
        log_bytes_max: 1000,
        locals: None,
    };
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    // Nobody is told of changes here.
    let (cache, _) = Cache::new(kube::Client::new(Api, "default"));
    Process::new(config, cache, clock).await.expect("a directory")
}

/// A pod whose container runs a line of the shell.
fn pod(script: &str) -> Arc<Pod> {
    let pod = format!(
        "metadata: {{name: p, namespace: default, uid: u-1}}
spec:
  volumes: [{{name: v, configMap: {{name: settings}}}}]
  containers:
  - name: main
    image: busybox
    env: [{{name: COLOUR, valueFrom: {{configMapKeyRef: {{name: settings, key: colour}}}}}}]
    volumeMounts: [{{name: v, mountPath: /etc/settings}}]
    command: [sh, -c, {}]",
        serde_json::Value::from(script)
    );
    pod_of(&pod)
}

fn pod_of(pod: &str) -> Arc<Pod> {
    let value = yaml::decode(pod).unwrap_or_else(|error| panic!("{error}")).value;
    Arc::new(serde_json::from_value(value).expect("a pod"))
}

async fn start(runtime: &Process, pod: &Arc<Pod>) -> Started {
    run(runtime, pod, 0).await.unwrap_or_else(|error| panic!("{error}"))
}

/// One run of a pod's only container.
async fn run(runtime: &Process, pod: &Arc<Pod>, number: u32) -> Result<Started, StartError> {
    let addresses = runtime.prepare(pod).await.unwrap_or_else(|error| panic!("{error}"));
    let container = pod.spec.as_ref().expect("a spec").containers[0].clone();
    let host = Ipv4Addr::LOCALHOST.into();
    let order = Order {
        pod: Arc::clone(pod),
        container: Arc::new(container),
        is_init: false,
        number,
        addresses,
        host,
    };
    runtime.start(order).await
}

async fn log(runtime: &Process, follow: bool) -> String {
    let attempt = Attempt { pod: "u-1".to_owned(), container: "main".to_owned(), number: 0 };
    let mut log = runtime.logs(&attempt, follow).await.expect("a log");
    let mut text = String::new();
    while let Some(bytes) = log.next().await {
        text.push_str(&String::from_utf8_lossy(&bytes.expect("it is read")));
    }
    let lines = text.lines().filter_map(|line| line.split_once(' ').map(|(_, line)| line));
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_command_runs_with_its_environment_and_volumes_and_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let script = "echo $COLOUR at $POD_IP; cat $KUBEWRIGHT_POD_ROOT/etc/settings/colour; \
                  echo oops >&2; exit 3";
    let pod = pod(script);
    let started = start(&runtime, &pod).await;
    assert_eq!(started.id.as_str(), "process://u-1/main/0");
    let ended = runtime.wait(&started.id).await;
    assert_eq!((ended.code, ended.reason.as_str()), (3, "Error"));
    let log = log(&runtime, true).await;
    assert!(log.contains("stdout F blue at 127.18."), "{log}");
    assert!(log.contains("P blue") || log.contains("F blue\n"), "{log}");
    assert!(log.contains("stderr F oops"), "{log}");
    runtime.forget(&pod).await;
    let left = std::fs::read_dir(directory.path().join("pods")).expect("it is there").count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn what_ignores_a_request_to_end_is_killed_with_its_children() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let pod = pod("trap '' TERM; echo ready; while :; do sleep 1000; done");
    let started = start(&runtime, &pod).await;
    let attempt = Attempt { pod: "u-1".to_owned(), container: "main".to_owned(), number: 0 };
    let mut lines = runtime.logs(&attempt, true).await.expect("a log");
    lines.next().await.expect("it is ready").expect("it is read");
    runtime.stop(&started.id, Duration::from_millis(50)).await.expect("it is stopped");
    assert_eq!(runtime.wait(&started.id).await.code, 137);
    assert!(lines.next().await.is_none(), "a log ends with its container");
}

/// The agent is killed while a container runs: the next one finds it, and its end.
#[tokio::test]
async fn what_runs_is_adopted() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = runtime(&directory).await;
    let pod = pod("read line < $KUBEWRIGHT_POD_ROOT/etc/settings/colour; sleep 1000");
    let started = start(&first, &pod).await;
    let first_addresses = first.adopt(&pod).await.addresses;
    drop(first);
    let second = runtime(&directory).await;
    let found = second.adopt(&pod).await;
    assert_eq!(found.addresses, first_addresses);
    assert_eq!(found.containers.len(), 1);
    assert_eq!((&found.containers[0].started.id, &found.containers[0].ended), (&started.id, &None));
    second.stop(&started.id, Duration::from_secs(10)).await.expect("it is stopped");
    assert_eq!(second.wait(&started.id).await.code, 143);
    let third = runtime(&directory).await;
    let ended = third.adopt(&pod).await.containers[0].ended.clone().expect("it has ended");
    assert_eq!(ended.code, 143);
    third.sweep(&HashSet::new()).await;
    assert_eq!(third.adopt(&pod).await, Found::default());
}

#[tokio::test]
async fn other_commands_run_in_a_container() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let pod = pod("sleep 1000");
    let started = start(&runtime, &pod).await;
    let (mut heard, said) = tokio::io::duplex(1024);
    let (mut typed, stdin) = tokio::io::duplex(1024);
    let streams = Streams {
        stdin: Some(Box::new(stdin)),
        stdout: Some(Box::new(said)),
        ..Streams::default()
    };
    tokio::io::AsyncWriteExt::write_all(&mut typed, b"hello\n").await.expect("it is typed");
    drop(typed);
    let command = ["sh", "-c", "cat; echo $COLOUR; exit 4"].map(str::to_owned);
    let code = runtime.exec(&started.id, &command, streams).await.expect("it runs");
    let mut text = String::new();
    heard.read_to_string(&mut text).await.expect("it is heard");
    assert_eq!((code, text.as_str()), (4, "hello\nblue\n"));
    let (mut heard, said) = tokio::io::duplex(1024);
    let (_sizes, terminal) = tokio::sync::mpsc::channel(1);
    let streams =
        Streams { stdout: Some(Box::new(said)), terminal: Some(terminal), ..Streams::default() };
    let command = ["sh", "-c", "test -t 1 && echo terminal"].map(str::to_owned);
    let code = runtime.exec(&started.id, &command, streams).await.expect("it runs");
    let mut text = String::new();
    heard.read_to_string(&mut text).await.expect("it is heard");
    assert_eq!((code, text.as_str()), (0, "terminal\r\n"));
    assert!(runtime.usage(&started.id).await.is_some_and(|usage| usage.memory > 0));
    runtime.forget(&pod).await;
}

/// Who left the group of its parent was not counted, as all are that a shell starts as jobs.
#[tokio::test]
async fn a_container_uses_what_all_its_processes_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let pod = pod("setsid sleep 1000 & echo ready; wait");
    let started = start(&runtime, &pod).await;
    let attempt = Attempt { pod: "u-1".to_owned(), container: "main".to_owned(), number: 0 };
    let mut lines = runtime.logs(&attempt, true).await.expect("a log");
    lines.next().await.expect("it is ready").expect("it is read");
    let place = runtime.place(&started.id).expect("a place");
    let names = || -> Vec<String> {
        let all = processes_of(&place, &tree::all()).into_iter();
        all.filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()).collect()
    };
    // It is the shell for a moment, and `setsid`.
    while !names().iter().any(|name| name == "sleep\n") {
        tokio::task::yield_now().await;
    }
    let all = runtime.usage(&started.id).await.expect("it is counted");
    let first = usage::of(place.pid()).expect("it is counted");
    assert!(all.memory > first.memory, "{all:?}, of which the first {first:?}");
    runtime.forget(&pod).await;
}

#[tokio::test]
async fn a_log_does_not_grow_for_ever() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let pod = pod("i=0; while [ $i -lt 100 ]; do echo line $i; i=$((i+1)); done");
    let started = start(&runtime, &pod).await;
    runtime.wait(&started.id).await;
    let log = log(&runtime, false).await;
    assert!(log.ends_with("line 99"), "{log}");
    let lines = log.lines().count();
    assert!((20..50).contains(&lines), "{lines} lines are kept");
}

/// What the child of the next test does, with a small disk of its own.
const SMALL_DISK: &str = "KUBEWRIGHT_TEST_SMALL_DISK";

#[tokio::test]
async fn a_full_disk_costs_lines_of_the_log_and_no_container() {
    let directory = tempfile::tempdir().expect("a directory");
    if std::env::var_os(SMALL_DISK).is_some() {
        return on_a_small_disk(&directory).await;
    }
    let name = "a_full_disk_costs_lines_of_the_log_and_no_container";
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(std::env::current_exe().expect("this program"))
        .args([&format!("runtime::process::tests::{name}"), "--exact", "--nocapture"])
        .env(SMALL_DISK, "1")
        .output();
    let told = match &output {
        Ok(output) if output.status.success() => {
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(told.contains("1 passed"), "{told}");
            return;
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("unshare: {error}"),
    };
    assert!(told.starts_with("unshare: "), "{told}");
    eprintln!("skipped: there is no mount namespace to be had: {told}");
}

async fn on_a_small_disk(directory: &TempDir) {
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"])
        .arg(directory.path())
        .status();
    assert!(mounted.expect("mount is there").success());
    a_start_has_room(directory);
    let mut runtime = runtime(directory).await;
    runtime.config.log_bytes_max = 1 << 20;
    // Eight times as much as there is room for, and then an end of its own.
    let pod = pod(
        "i=0; while [ $i -lt 16384 ]; do echo $i-line-of-a-log-that-is-long; i=$((i+1)); done; exit 3",
    );
    let started = start(&runtime, &pod).await;
    assert_eq!(runtime.wait(&started.id).await.code, 3);
    let log = log(&runtime, false).await;
    assert!(log.lines().count() > 100, "{log}");
    let is_whole = |line: &str| line.ends_with("-line-of-a-log-that-is-long");
    assert!(log.lines().all(is_whole), "{:?}", log.lines().find(|line| !is_whole(line)));
}

/// A container filled the disk before the agent had noted that it ran.
fn a_start_has_room(directory: &TempDir) {
    let place = Place::at(directory.path().join("place"));
    std::fs::create_dir(place.directory()).expect("a directory");
    place.reserve_started().expect("there is room yet");
    let filling = directory.path().join("filling");
    std::fs::write(&filling, vec![0; 256 << 10]).expect_err("there is no more room");
    let (id, at) = (Id::new("it".to_owned()), Timestamp::UNIX_EPOCH);
    let started = Started { id: id.clone(), image_id: "busybox".to_owned(), at };
    place.write_started(&started).expect("it has its room");
    assert_eq!(place.started().map(|started| started.id), Some(id));
    std::fs::remove_file(&filling).expect("removed");
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let mut pod = Pod::clone(&pod("true"));
    let spec = pod.spec.as_mut().expect("a spec");
    spec.containers[0].command = Some(vec!["no-such-program".to_owned()]);
    // It is started all the same, below.
    spec.containers[0].volume_mounts = None;
    let container = spec.containers[0].clone();
    spec.volumes.as_mut().expect("volumes")[0].config_map.as_mut().expect("a map").name =
        "none".to_owned();
    let refused = runtime.prepare(&pod).await.expect_err("a ConfigMap is missing");
    assert_eq!(
        refused.to_string(),
        "MountVolume.SetUp failed for volume \"v\" : configmap \"none\" not found"
    );
    let order_pod = Arc::new(pod);
    let order = Order {
        pod: Arc::clone(&order_pod),
        container: Arc::new(container),
        is_init: false,
        number: 0,
        addresses: Vec::new(),
        host: Ipv4Addr::LOCALHOST.into(),
    };
    let refused = runtime.start(order).await.expect_err("there is no such program");
    let why = "exec: \"no-such-program\": executable file not found in $PATH";
    assert_eq!((refused.reason(), refused.to_string().as_str()), ("RunContainerError", why));
    let StartError::Run { run: Some(run), .. } = refused else { panic!("it is a run that failed") };
    assert_eq!((run.ended.code, run.ended.reason.as_str()), (128, "StartError"));
    assert_eq!(run.ended.message.as_deref(), Some(why));
    // An agent that is started later knows it too.
    let found = runtime.adopt(&order_pod).await.containers;
    assert_eq!((&found[0].started, &found[0].ended), (&run.started, &Some(run.ended)));
}

#[test]
fn images_are_stood_in_for_whatever_their_registry_and_tag() {
    let check = |image: &str, expected: Option<Program>| {
        assert_eq!(stand_in::of(image).map(|it| it.program), expected, "{image}");
    };
    check("busybox", Some(Program::Shell));
    check("docker.io/library/busybox:1.36@sha256:00", Some(Program::Shell));
    check("localhost:5000/nginxdemos/hello", Some(Program::Hello(80)));
    check("mybusybox", None);
    check("registry.acme.com/app/app:v1.4", Some(Program::Hello(8080)));
    check("registry.acme.com/app/other:v1.4", None);
}

/// Who may not listen at port 80 of an address that cannot be had is found all the same.
#[test]
fn pods_are_reached_where_they_may_listen() {
    let addresses =
        |free_ports| Addresses::new(Path::new("/nowhere"), None, HashMap::new(), free_ports);
    let check = |free_ports: u16, shown: &str, expected: &str| {
        let shown = shown.parse().expect("a place");
        assert_eq!(addresses(free_ports).reach(shown).to_string(), expected);
    };
    check(0, "198.18.3.4:80", "127.18.3.4:80");
    check(1024, "198.18.3.4:80", "127.18.3.4:10080");
    check(1024, "198.18.3.4:8080", "127.18.3.4:8080");
    check(80, "198.18.3.4:80", "127.18.3.4:80");
    // Not a pod of this machine.
    check(1024, "10.0.0.7:80", "10.0.0.7:80");
    let hello = Container {
        ports: Some(vec![ContainerPort { container_port: 443, ..ContainerPort::default() }]),
        ..Container::default()
    };
    let place = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, addresses(1024).port(port)));
    let words = Program::Hello(80).words(place, &hello).expect("it is one of ours");
    assert_eq!(words, ["hello", "127.0.0.1:10443"]);
}

#[test]
fn what_a_process_uses_is_read_from_its_line() {
    let stat = "17 (a b) c) S 1 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 9 1000 25 0";
    let page = rustix::param::page_size() as u64;
    let used = Usage { cpu: Duration::from_secs(2), memory: 25 * page };
    assert_eq!(usage::read(stat), Some(used));
    assert_eq!(usage::read("17 (a) S 1"), None);
}

#[test]
fn a_view_is_made_of_all_file_systems_that_are_near() {
    let mountinfo = "\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
23 22 0:21 / /proc rw shared:13 - proc proc rw
24 22 0:5 / /dev rw shared:2 - devtmpfs udev rw
25 24 0:22 / /dev/shm rw shared:4 - tmpfs tmpfs rw
26 22 254:2 / /srv rw,relatime shared:5 - ext4 /dev/vda2 rw
27 22 0:40 / /mnt/far rw shared:6 - nfs4 far:/ rw
28 26 0:41 / /srv/with\\040space rw - tmpfs tmpfs rw
29 22 0:42 / /tmp rw - tmpfs tmpfs rw
";
    assert_eq!(jail::others(mountinfo), ["/srv", "/tmp"]);
}

#[test]
fn children_are_known_by_their_parents_and_theirs() {
    assert_eq!(tree::parent("17 (a b) c) S 4 42 42 0 -1"), Some(4));
    let all = [(1, 0), (4, 1), (17, 4), (18, 17), (5, 1), (19, 5)];
    assert_eq!(tree::descendants(4, &all), [17, 18]);
    assert_eq!(tree::descendants(19, &all), [0_i32; 0]);
}
