//! What is true of containers, whether they have views of their own or not, unless a test says so.

use std::fs::File;
use std::io::Read as _;

use tokio::io::AsyncWriteExt as _;
use tokio::task::{JoinHandle, spawn_blocking};

use super::*;
use crate::runtime::Size;
use crate::runtime::output::Output;

/// A pod with a volume `e` at `/e` and scripts at `/scripts`. `more` is of its container, `pods` of
/// its specification.
fn pod_with(script: &str, more: &str, pods: &str) -> Arc<Pod> {
    let script = serde_json::Value::from(script);
    let command = match more.contains("command:") || more.contains("image:") {
        true => String::new(),
        false => format!("image: busybox, command: [sh, -c, {script}], "),
    };
    let mounts = match more.contains("volumeMounts:") {
        true => "",
        false => {
            "volumeMounts: [{name: e, mountPath: /e}, {name: s, mountPath: /scripts},
                {name: v, mountPath: /etc/settings}], "
        }
    };
    pod_of(&format!(
        "{{metadata: {{name: p, namespace: default, uid: u-1}}, spec: {{{pods} volumes: [
            {{name: e, emptyDir: {{}}}},
            {{name: v, configMap: {{name: settings}}}},
            {{name: s, configMap: {{name: scripts, defaultMode: 493}}}}],
          containers: [{{name: main, {command} {mounts} {more}}}]}}}}"
    ))
}

/// Where the pod's volume is on this machine.
fn volume(directory: &TempDir) -> PathBuf {
    directory.path().join("pods/u-1/volumes/e")
}

/// Runs a pod's container to its end, and gives what it wrote and how it ended.
async fn outcome(runtime: &Process, pod: &Arc<Pod>) -> (String, Ended) {
    let started = start(runtime, pod).await;
    let ended = runtime.wait(&started.id).await;
    let log = log(runtime, false).await;
    let lines = log.lines().map(|line| line.splitn(3, ' ').nth(2).unwrap_or_default());
    (lines.collect::<Vec<_>>().join("\n"), ended)
}

/// Whether this test can be made here. Otherwise it says that it was not.
fn has_view(runtime: &Process) -> bool {
    let has_view = runtime.jail.is_some() && rustix::process::geteuid().is_root();
    if !has_view {
        eprintln!("skipped: containers have no views of their own here");
    }
    has_view
}

/// A script with a mode, and one that is found from where the container begins, were not found:
/// they were looked for among the machine's files.
#[tokio::test]
async fn a_program_may_be_in_a_volume() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let pod = pod_with("", "image: x, command: [./run.sh], workingDir: /scripts", "");
    assert_eq!(outcome(&runtime, &pod).await.0, "./run.sh runs in scripts");
    let pod = pod_with("", "image: x, command: [/scripts/run.sh]", "");
    let (said, ended) = outcome(&runtime, &pod).await;
    assert_eq!(ended.code, 0, "{said}");
    let refused = |pod: Arc<Pod>| {
        let runtime = &runtime;
        async move { run(runtime, &pod, 1).await.expect_err("there is no such program") }
    };
    let pod = pod_with("", "image: x, command: [/etc/settings/colour]", "");
    let StartError::Run { why, .. } = refused(pod).await else {
        panic!("it is an error of running")
    };
    assert!(why.ends_with("etc/settings/colour\": permission denied"), "{why}");
    let pod = pod_with("", "image: x, command: [/nowhere/program]", "");
    let why = "exec: \"/nowhere/program\": stat /nowhere/program: no such file or directory";
    assert_eq!(refused(pod).await.to_string(), why);
}

/// What was not there was looked for again and again, and what was computed was the whole volume.
#[tokio::test]
async fn a_part_of_a_volume_is_made_if_it_is_not_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let at = |path: &str| {
        let more = format!(
            "env: [{{name: SIZE, value: large}}], volumeMounts: [{{name: e, mountPath: /e, {path}}}]"
        );
        pod_with("echo here > $KUBEWRIGHT_POD_ROOT/e/file", &more, "")
    };
    for (path, expected) in [("subPath: one/two", "one/two"), ("subPathExpr: $(SIZE)", "large")] {
        let (said, ended) = outcome(&runtime, &at(path)).await;
        assert_eq!((ended.code, said.as_str()), (0, ""), "{path}");
        let file = volume(&directory).join(expected).join("file");
        assert_eq!(std::fs::read_to_string(file).expect("it is there"), "here\n", "{path}");
        runtime.forget(&at(path)).await;
    }
    let refused = run(&runtime, &at("subPathExpr: $(NONE)/x"), 0).await;
    let refused = refused.expect_err("there is no such variable");
    assert_eq!(refused, StartError::Config("missing value for NONE".to_owned()));
    let refused = run(&runtime, &at("subPath: ../.."), 0).await.expect_err("it leads outside");
    assert_eq!(refused.reason(), "CreateContainerConfigError");
}

/// Any pod could read the keys of the cluster, and the volumes of all others.
#[tokio::test]
async fn what_is_the_clusters_own_is_hidden() {
    let directory = tempfile::tempdir().expect("a directory");
    let keys = tempfile::tempdir().expect("a directory");
    std::fs::write(keys.path().join("key"), "secret").expect("it is written");
    let mut runtime = runtime(&directory).await;
    runtime.config.hidden = vec![keys.path().to_owned()];
    if !has_view(&runtime) {
        return;
    }
    let (own, keys) = (directory.path().display(), keys.path().display());
    let has_init = runtime.jail.as_ref().is_some_and(|jail| jail.has_init(&View::default()));
    // The first process of the machine sees everything.
    let first = if has_init { format!("/proc/1/root{keys}") } else { String::new() };
    let script = format!("ls -A {own} {keys} {first} | grep -v :; echo x > /e/file");
    let (said, ended) = outcome(&runtime, &pod_with(&script, "", "")).await;
    assert_eq!((said.trim(), ended.code), ("", 0));
    assert!(volume(&directory).join("file").exists());
}

#[tokio::test]
async fn containers_and_other_commands_in_them_run_as_whom_the_pod_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    if !has_view(&runtime) {
        return;
    }
    let script = "id -u; id -G; touch /new 2> /dev/null || echo nothing; sleep 1000";
    let more = "securityContext: {runAsGroup: 7, readOnlyRootFilesystem: true}";
    let pods = "securityContext: {runAsUser: 1234, fsGroup: 9, supplementalGroups: [11]}, ";
    let pod = pod_with(script, more, pods);
    let started = start(&runtime, &pod).await;
    let command = ["sh", "-c", "id -u; id -G; touch /e/new && echo writes; touch /new || :"];
    let (code, said) =
        runtime.ask(&started.id, &command.map(str::to_owned), None).await.expect("it runs");
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.starts_with("1234\n7 9 11\nwrites\n"), "{said}");
    assert!(said.contains("Read-only file system") && code == 0, "{said}");
    runtime.stop(&started.id, Duration::ZERO).await.expect("it is stopped");
    let log = log(&runtime, false).await;
    assert_eq!(log, "stdout F 1234\nstdout F 7 9 11\nstdout F nothing");
    let pod = pod_with("true", "securityContext: {runAsNonRoot: true}", "");
    let refused = run(&runtime, &pod, 1).await.expect_err("it would run as root");
    assert_eq!(refused.reason(), "CreateContainerConfigError");
}

#[tokio::test]
async fn what_the_node_fills_is_not_written_by_containers() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    if !has_view(&runtime) {
        return;
    }
    let script = "touch /e/x && echo own; ln -sfn /tmp /etc/settings/..data || echo refused";
    let (said, _) = outcome(&runtime, &pod_with(script, "", "")).await;
    assert!(said.contains("own") && said.contains("refused"), "{said}");
}

#[tokio::test]
async fn the_last_two_runs_of_a_container_are_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let pod = pod_with("true", "", "");
    for number in 0..4 {
        let started = run(&runtime, &pod, number).await.expect("it runs");
        runtime.wait(&started.id).await;
    }
    let runs = std::fs::read_dir(directory.path().join("pods/u-1/containers/main"));
    let runs = runs.expect("it is there").map(|run| run.expect("it is read").file_name());
    let mut runs: Vec<OsString> = runs.collect();
    runs.sort();
    assert_eq!(runs, ["2", "3"]);
}

/// Whoever could forward ports of any pod reached all programs of this machine.
#[tokio::test]
async fn only_ports_of_the_pod_are_forwarded() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let pod = pod_with("", "image: nginx", "");
    start(&runtime, &pod).await;
    let attempt = Attempt { pod: "u-1".to_owned(), container: "main".to_owned(), number: 0 };
    let mut lines = runtime.logs(&attempt, true).await.expect("a log");
    let mut said = String::new();
    while !said.contains("listening at") {
        let more = lines.next().await.expect("it listens").expect("it is read");
        said.push_str(&String::from_utf8_lossy(&more));
    }
    assert!(runtime.connect(&pod, 80).await.is_ok());
    for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
        let others = std::net::TcpListener::bind((address, 0)).expect("a port");
        let port = others.local_addr().expect("a place").port();
        assert!(runtime.connect(&pod, port).await.is_err(), "{address} is not the pod's");
    }
    runtime.forget(&pod).await;
}

#[tokio::test]
async fn the_last_words_of_a_container_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let script = "echo gone > ${KUBEWRIGHT_TERMINATION_LOG:-/dev/termination-log}; exit 3";
    let more = "terminationMessagePath: /dev/termination-log";
    let (said, ended) = outcome(&runtime, &pod_with(script, more, "")).await;
    assert_eq!((said.as_str(), ended.message.as_deref()), ("", Some("gone\n")));
    runtime.forget(&pod_with(script, more, "")).await;
    let more = "terminationMessagePath: /dev/termination-log, \
                terminationMessagePolicy: FallbackToLogsOnError";
    let (_, ended) = outcome(&runtime, &pod_with("echo oops; exit 1", more, "")).await;
    assert_eq!(ended.message.as_deref(), Some("oops\n"));
    let found = runtime.adopt(&pod_with("", more, "")).await;
    assert_eq!(found.containers[0].ended.as_ref(), Some(&ended), "who comes later hears it too");
    runtime.forget(&pod_with("", more, "")).await;
    let (_, ended) = outcome(&runtime, &pod_with("echo well", more, "")).await;
    assert_eq!(ended.message, None);
}

/// Makes a pipe in the pod's volume, says so, and holds it open.
const HOLDS: &str = "mkfifo $KUBEWRIGHT_POD_ROOT/e/pipe; echo ready; \
                     exec 5> $KUBEWRIGHT_POD_ROOT/e/pipe; ";

/// Is done when nobody holds the pipe open any more that [`HOLDS`] made.
async fn until_let_go(runtime: &Process, directory: &TempDir) -> JoinHandle<()> {
    let attempt = Attempt { pod: "u-1".to_owned(), container: "main".to_owned(), number: 0 };
    let mut lines = runtime.logs(&attempt, true).await.expect("a log");
    lines.next().await.expect("it is ready").expect("it is read");
    let pipe = volume(directory).join("pipe");
    spawn_blocking(move || {
        let mut pipe = File::open(pipe).expect("a pipe");
        pipe.read_to_end(&mut Vec::new()).expect("it is read");
    })
}

/// Each of them is over only if all processes that hold the pipe are.
#[tokio::test]
async fn what_a_container_leaves_behind_ends_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    // It is out of reach of signals for the container before that ends.
    let script = format!(
        "{HOLDS} setsid sh -c ': > $KUBEWRIGHT_POD_ROOT/e/left; exec sleep 1000' & \
         until [ -e $KUBEWRIGHT_POD_ROOT/e/left ]; do :; done; exit 3"
    );
    let pod = pod_with(&script, "", "");
    let started = start(&runtime, &pod).await;
    let let_go = until_let_go(&runtime, &directory).await;
    assert_eq!(runtime.wait(&started.id).await.code, 3);
    let_go.await.expect("nobody is left");
}

#[tokio::test]
async fn a_container_ends_with_its_shim() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    if runtime.jail.is_none() && !runtime.has_leash {
        return eprintln!("skipped: this machine cannot");
    }
    let pod = pod_with(&format!("{HOLDS} exec sleep 1000"), "", "");
    let started = start(&runtime, &pod).await;
    let let_go = until_let_go(&runtime, &directory).await;
    let place = runtime.place(&started.id).expect("a place");
    let own = place.pid().expect("a process");
    let shim = tree::all().into_iter().find(|(pid, _)| *pid == own).expect("its parent").1;
    let shim = Pid::from_raw(shim).expect("a process");
    rustix::process::kill_process(shim, Signal::KILL).expect("it is killed");
    let ended = runtime.wait(&started.id).await;
    assert_eq!((ended.code, ended.reason.as_str()), (137, "ContainerStatusUnknown"));
    let_go.await.expect("nobody is left");
}

#[tokio::test]
async fn other_commands_end_with_their_container() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let pod = pod_with("echo ready; sleep 1000", "", "");
    let started = start(&runtime, &pod).await;
    let script = format!("{HOLDS} sleep 1000");
    let command = ["sh", "-c", &script].map(str::to_owned);
    let (mut heard, said) = tokio::io::duplex(1024);
    let streams = Streams { stdout: Some(Box::new(said)), ..Streams::default() };
    let (code, ()) = futures::future::join(runtime.exec(&started.id, &command, streams), async {
        let mut ready = [0; 6];
        heard.read_exact(&mut ready).await.expect("it is ready");
        let let_go = until_let_go(&runtime, &directory).await;
        runtime.stop(&started.id, Duration::ZERO).await.expect("it is stopped");
        let_go.await.expect("nobody is left");
    })
    .await;
    assert_eq!(code.expect("it ran"), 137);
}

/// A pod whose container can be talked with.
fn talking(script: &str, how: &str) -> Arc<Pod> {
    pod_of(&format!(
        "metadata: {{name: p, namespace: default, uid: u-1}}
spec: {{containers: [{{name: main, image: busybox, command: [sh, -c, {}], {how}}}]}}",
        serde_json::Value::from(script)
    ))
}

#[tokio::test]
async fn what_is_said_to_a_container_is_its_input_until_there_is_no_more() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let script = "read word; echo heard $word; echo aside >&2; cat; echo over";
    let started = start(&runtime, &talking(script, "stdin: true, stdinOnce: true")).await;
    let (output, errors) = (Output::default(), Output::default());
    let streams = Streams {
        stdin: Some(Box::new(&b"hello\nand more\n"[..])),
        stdout: Some(Box::new(output.clone())),
        stderr: Some(Box::new(errors.clone())),
        terminal: None,
    };
    runtime.attach(&started.id, streams).await.expect("it is there");
    assert_eq!(String::from_utf8_lossy(&output.take()), "heard hello\nand more\nover\n");
    assert_eq!(String::from_utf8_lossy(&errors.take()), "aside\n");
    assert_eq!(runtime.wait(&started.id).await.code, 0);
    // What it says on two streams is kept in any order.
    let log = log(&runtime, false).await;
    assert!(log.lines().any(|line| line == "stdout F over"), "{log}");
}

#[tokio::test]
async fn input_that_others_may_bring_does_not_end_with_the_first() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let script = "read first; echo $first; read second; echo $second";
    let started = start(&runtime, &talking(script, "stdin: true")).await;
    for word in ["one\n", "two\n"] {
        let streams = Streams { stdin: Some(Box::new(word.as_bytes())), ..Streams::default() };
        let said = runtime.attach(&started.id, streams);
        let heard = async {
            // Nobody is told that what was said has been read, but the log has it.
            while !log(&runtime, false).await.contains(word.trim()) {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            said = said => said.expect("it is there"),
            () = heard => {}
        }
    }
    assert_eq!(runtime.wait(&started.id).await.code, 0);
}

#[tokio::test]
async fn a_container_may_have_a_terminal() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let script = r#"until [ "$(stty size)" = "10 40" ]; do sleep 0.01; done
        test -t 0 && test -t 1 && test -t 2 && printf 'ready> '; read word; echo "[$word]""#;
    let started = start(&runtime, &talking(script, "stdin: true, tty: true")).await;
    let (input, mut typing) = tokio::io::duplex(64);
    let (mut screen, output) = tokio::io::duplex(64);
    let (sizes, terminal) = tokio::sync::mpsc::channel(1);
    let streams = Streams {
        stdin: Some(Box::new(input)),
        stdout: Some(Box::new(output)),
        stderr: None,
        terminal: Some(terminal),
    };
    let session = async {
        sizes.send(Size { width: 40, height: 10 }).await.expect("it listens");
        let mut seen = String::new();
        let mut read_until = async |end: &str| {
            while !seen.contains(end) {
                let byte = screen.read_u8().await.expect("more to come");
                seen.push(byte.into());
            }
            seen.clone()
        };
        read_until("ready> ").await;
        typing.write_all(b"word\n").await.expect("it listens");
        assert_eq!(read_until("[word]").await, "ready> word\r\n[word]");
    };
    let (attached, ()) = tokio::join!(runtime.attach(&started.id, streams), session);
    attached.expect("it is there");
    assert_eq!(runtime.wait(&started.id).await.code, 0);
}

#[tokio::test]
async fn a_container_with_a_terminal_is_asked_to_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runtime(&directory).await;
    let script = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let started = start(&runtime, &talking(script, "tty: true")).await;
    while !log(&runtime, false).await.contains("ready") {
        tokio::task::yield_now().await;
    }
    runtime.stop(&started.id, Duration::from_secs(60)).await.expect("it ends");
    assert_eq!(runtime.wait(&started.id).await.code, 3);
}
