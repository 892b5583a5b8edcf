//! Real containers: a containerd of this machine under a cluster of ours, and kubectl unchanged.
//!
//! `cargo xtask containerd -- cargo test -p kubewright-cli --test it cri` has one; where there is
//! none, these tests skip. Images are made here of a static busybox and loaded from files.
//! `cargo xtask long containers` has upstream's programs besides, which a node of ours then joins.

mod build;
mod image;
mod join;
mod network;
mod operators;
mod session;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::User;
use crate::transcript::kubectl;

/// The socket of a containerd that tests may use.
const VARIABLE: &str = "KUBEWRIGHT_CRI";
/// Nothing that is waited for takes that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Two clusters on one machine would be in each other's way: addresses of Services are the machine's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A cluster with containers, for one test.
struct Site {
    user: User,
    kubectl: std::path::PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Site {
    /// None where there is no containerd.
    fn new() -> Option<Self> {
        let site = Site::without_cluster()?;
        site.up(&socket());
        site.load_images(&[]);
        Some(site)
    }

    /// A user of a machine with containerd; none where there is none.
    fn without_cluster() -> Option<Self> {
        if std::env::var_os(VARIABLE).is_none() {
            eprintln!("skipped: {VARIABLE} names no socket; `cargo xtask containerd` has one");
            return None;
        }
        // Who has gone so far as to start a containerd wants to see all of this.
        let kubectl = kubectl().expect("a kubectl: `cargo xtask upstream build` makes one");
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Site { user: User::new(), kubectl, _turn: turn })
    }

    fn load_images(&self, to: &[&str]) {
        let archive = image::archive();
        let archive = archive.path().to_string_lossy();
        let load = ["image", "load", &archive, "--output", "json"];
        let loaded = self.user.json(&[&load[..], to].concat());
        assert_eq!(loaded["loaded"].as_array().map(Vec::len), Some(3), "{loaded}");
    }

    fn up(&self, socket: &str) {
        let node = format!("cri={socket}");
        let words = ["up", "--detach", "--port", "0", "--ingress-port", "0", "--node", &node];
        self.user.run(&words).expect("up");
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.args(words).env("HOME", self.user.home.path()).env_remove("KUBECONFIG");
        command
    }

    fn kubectl(&self, words: &[&str]) -> String {
        let output = self.command(words).output().expect("kubectl runs");
        assert!(output.status.success(), "kubectl {words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What a command with this input did.
    fn fed(&self, words: &[&str], input: &str) -> Output {
        let mut command = self.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("it is read");
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }

    fn apply(&self, objects: &str) {
        // What begins with a brace would be taken for JSON.
        let output = self.fed(&["apply", "-f", "-"], &format!("---\n{objects}"));
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    fn json(&self, words: &[&str]) -> Value {
        let mut words = words.to_vec();
        words.extend(["-o", "json"]);
        serde_json::from_str(&self.kubectl(&words)).expect("it prints JSON")
    }

    /// Waits until an object is so, and gives it.
    fn until(&self, what: &[&str], is_so: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        let mut words = vec!["get", "-o", "json"];
        words.extend(what);
        loop {
            // It may not be there yet.
            let output = self.command(&words).output().expect("kubectl runs");
            let seen = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if is_so(&seen) {
                return seen;
            }
            if Instant::now() > deadline {
                let events = self.kubectl(&["get", "events", "-A"]);
                panic!("{what:?} does not become so: {seen:#}\n{events}");
            }
        }
    }

    fn until_phase(&self, pod: &str, phase: &str) -> Value {
        self.until(&["pod", pod], |pod| pod["status"]["phase"] == phase)
    }

    fn until_ready(&self, pod: &str) -> Value {
        self.until(&["pod", pod], |pod| {
            let conditions = pod["status"]["conditions"].as_array();
            conditions.is_some_and(|conditions| {
                conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True")
            })
        })
    }

    /// Waits until a script in a pod says this.
    fn until_says(&self, pod: &str, script: &str, expected: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.command(&["exec", pod, "--", "sh", "-c", script]).output();
            let output = output.expect("kubectl runs");
            if text(&output.stdout).contains(expected) {
                return;
            }
            assert!(Instant::now() < deadline, "{script:?} in {pod} gives {output:?}");
        }
    }

    /// Reasons of events about a pod, in their order.
    fn events(&self, pod: &str) -> Vec<String> {
        let selector = format!("involvedObject.name={pod}");
        let list = self.json(&["get", "events", "--field-selector", &selector]);
        let events = list["items"].as_array().cloned().unwrap_or_default();
        events.iter().map(|it| it["reason"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Its containers end with it, also when the test has failed.
        let _ = self.user.run(&["down", "--delete"]);
    }
}

/// A command that goes on beside the test.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn socket() -> String {
    std::env::var(VARIABLE).expect("a socket")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_socket_that_is_not_there_is_named() {
    let user = User::new();
    let error = user.run(&["up", "--port", "0", "--node", "cri=/no/such.sock"]).expect_err("none");
    assert!(error.contains("there is no container runtime at /no/such.sock: start one"), "{error}");
    let error = user.run(&["up", "--node", "cri="]).expect_err("no socket");
    assert!(error.contains("use `fake`, `process`, `cri=SOCKET` or `none`"), "{error}");
}

#[test]
fn containers_run_in_their_order_and_tell_how_they_ended() {
    let Some(site) = Site::new() else { return };
    site.apply(
        r#"
apiVersion: v1
kind: Pod
metadata: {name: ordered}
spec:
  restartPolicy: Never
  volumes: [{name: shared, emptyDir: {}}]
  initContainers:
  - {name: first, image: "busybox:1", command: [sh, -c, "echo first >> /shared/order"],
     volumeMounts: [{name: shared, mountPath: /shared}]}
  - {name: beside, image: "busybox:1", restartPolicy: Always,
     command: [sh, -c, "echo beside >> /shared/order; exec sleep 1000"],
     startupProbe: {exec: {command: [grep, beside, /shared/order]}, periodSeconds: 1},
     volumeMounts: [{name: shared, mountPath: /shared}]}
  containers:
  - {name: main, image: "busybox:1",
     command: [sh, -c, "echo main >> /shared/order; cat /shared/order; echo why > /dev/termination-log; exit 3"],
     volumeMounts: [{name: shared, mountPath: /shared}]}
"#,
    );
    let pod = site.until_phase("ordered", "Failed");
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["exitCode"], &ended["reason"]), (&3.into(), &"Error".into()));
    assert_eq!(ended["message"], "why\n");
    let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap_or_default();
    assert!(id.starts_with("containerd://"), "{id}");
    assert_eq!(site.kubectl(&["logs", "ordered", "-c", "main"]), "first\nbeside\nmain\n");
    let node = site.json(&["get", "nodes"]);
    let version = &node["items"][0]["status"]["nodeInfo"]["containerRuntimeVersion"];
    assert!(version.as_str().unwrap_or_default().starts_with("containerd://"), "{version}");
}

#[test]
fn images_are_there_or_it_is_said_why_not() {
    let Some(site) = Site::new() else { return };
    // A registry that refuses connections is enough to see what becomes of a pull.
    for (name, image, policy) in [
        ("never", "kubewright.test/none:1", "Never"),
        ("nowhere", "127.0.0.1:9/none:1", "IfNotPresent"),
    ] {
        site.apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [
               {{name: c, image: '{image}', imagePullPolicy: {policy}}}]}}}}"
        ));
    }
    let waiting =
        |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].clone();
    site.until(&["pod", "never"], |pod| waiting(pod) == "ErrImageNeverPull");
    site.until(&["pod", "nowhere"], |pod| waiting(pod) == "ImagePullBackOff");
    assert!(site.events("never").contains(&"ErrImageNeverPull".to_owned()));
    let events = site.events("nowhere");
    for reason in ["Pulling", "Failed", "BackOff"] {
        assert!(events.contains(&reason.to_owned()), "{reason} is not among {events:?}");
    }
}

#[test]
fn what_ends_is_started_again_later_and_later() {
    let Some(site) = Site::new() else { return };
    site.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: crashes}, spec: {containers: [
           {name: c, image: 'busybox:1', command: [sh, -c, 'echo again; exit 1'],
            terminationMessagePolicy: FallbackToLogsOnError}]}}",
    );
    let pod = site.until(&["pod", "crashes"], |pod| {
        let status = &pod["status"]["containerStatuses"][0];
        status["restartCount"].as_i64() >= Some(1)
            && status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    });
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!((&last["exitCode"], &last["message"]), (&1.into(), &"again\n".into()));
    assert_eq!(site.kubectl(&["logs", "crashes", "--previous"]), "again\n");
}

#[test]
fn a_container_whose_program_is_not_there_has_ended() {
    let Some(site) = Site::new() else { return };
    for (name, policy) in [("once", "Never"), ("again", "Always")] {
        site.apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{restartPolicy: {policy},
               containers: [{{name: c, image: 'busybox:1', command: [no-such-program]}}]}}}}"
        ));
    }
    let pod = site.until_phase("once", "Failed");
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["exitCode"], &ended["reason"]), (&128.into(), &"StartError".into()));
    let why = ended["message"].as_str().unwrap_or_default();
    assert!(why.contains("no-such-program"), "{pod:#}");
    let pod = site.until(&["pod", "again"], |pod| {
        let status = &pod["status"]["containerStatuses"][0];
        status["restartCount"].as_i64() >= Some(1)
            && status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    });
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(last["reason"], "StartError", "{pod:#}");
}

#[test]
fn probes_hooks_and_grace_work_on_real_processes() {
    let Some(site) = Site::new() else { return };
    site.apply(
        r#"
apiVersion: v1
kind: Pod
metadata: {name: probed}
spec:
  terminationGracePeriodSeconds: 3
  volumes: [{name: shared, hostPath: {path: HOME, type: DirectoryOrCreate}}]
  containers:
  - name: web
    image: nginxdemos/hello:latest
    ports: [{name: http, containerPort: 80}]
    readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
    livenessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}
    startupProbe: {exec: {command: [wget, -q, -O, /dev/null, "http://127.0.0.1/"]}, periodSeconds: 1}
    lifecycle: {preStop: {exec: {command: [sh, -c, "echo stopping > /shared/hook"]}}}
    volumeMounts: [{name: shared, mountPath: /shared}]
  - name: deaf
    image: busybox:1
    command: [sh, -c, "trap '' TERM; while true; do sleep 1; done"]
    lifecycle: {postStart: {exec: {command: ["true"]}}}
"#
        .replace("HOME", &site.user.home.path().join("shared").to_string_lossy())
        .as_str(),
    );
    site.until_ready("probed");
    let begun = Instant::now();
    site.kubectl(&["delete", "pod", "probed"]);
    assert!(begun.elapsed() >= Duration::from_secs(3), "it does not get its grace");
    let hook = std::fs::read_to_string(site.user.home.path().join("shared/hook"));
    assert_eq!(hook.expect("the hook was run"), "stopping\n");
    site.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: ill}, spec: {terminationGracePeriodSeconds: 0,
           containers: [{name: c, image: 'busybox:1',
             command: [sh, -c, \"trap '' TERM; while true; do sleep 1; done\"],
             livenessProbe: {exec: {command: ['false']}, periodSeconds: 1, failureThreshold: 1,
                             terminationGracePeriodSeconds: 1}}]}}",
    );
    let pod = site.until(&["pod", "ill"], |pod| {
        pod["status"]["containerStatuses"][0]["restartCount"].as_i64() >= Some(1)
    });
    // It does not hear that it is to end, so it was ended.
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!((&last["exitCode"], &last["reason"]), (&137.into(), &"Error".into()), "{pod:#}");
    assert!(site.events("ill").contains(&"Unhealthy".to_owned()));
}

#[test]
fn volumes_and_tokens_are_at_their_usual_paths_and_change() {
    let Some(site) = Site::new() else { return };
    site.apply(
        r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: blue}}
- {apiVersion: v1, kind: Secret, metadata: {name: secret}, stringData: {word: xyzzy}}
- apiVersion: v1
  kind: Pod
  metadata: {name: given, labels: {app: given}}
  spec:
    securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000}
    volumes:
    - {name: settings, configMap: {name: settings}}
    - {name: secret, secret: {secretName: secret}}
    - {name: empty, emptyDir: {}}
    - {name: own, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
    containers:
    - name: c
      image: busybox:1
      command: [sleep, "1000"]
      env:
      - {name: WORD, valueFrom: {secretKeyRef: {name: secret, key: word}}}
      - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
      securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false,
                        capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}
      resources: {requests: {cpu: 100m, memory: 16Mi}, limits: {cpu: 500m, memory: 32Mi}}
      volumeMounts:
      - {name: settings, mountPath: /settings}
      - {name: secret, mountPath: /secret, readOnly: true}
      - {name: empty, mountPath: /empty}
      - {name: own, mountPath: /own}
      - {name: settings, mountPath: /colour, subPath: colour}
"#,
    );
    let pod = site.until_ready("given");
    let run = |script: &str| site.kubectl(&["exec", "given", "--", "sh", "-c", script]);
    assert_eq!(
        run("cat /settings/colour /colour /secret/word; echo $WORD"),
        "bluebluexyzzyxyzzy\n"
    );
    assert_eq!(run("cat /own/labels"), "app=\"given\"");
    assert_eq!(run("echo $POD_IP").trim(), pod["status"]["podIP"].as_str().unwrap_or_default());
    assert_eq!(
        run("id -u; id -g; touch /empty/x && echo yes; touch /x 2>/dev/null || echo no"),
        "1000\n1000\nyes\nno\n"
    );
    assert_eq!(run("grep CapEff /proc/self/status").trim(), "CapEff:\t0000000000000000");
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    assert_eq!(
        run(&format!("ls {account}; cat {account}/namespace")),
        "ca.crt\nnamespace\ntoken\ndefault"
    );
    assert_eq!(run("hostname"), "given\n");
    site.kubectl(&["patch", "configmap", "settings", "-p", r#"{"data":{"colour":"green"}}"#]);
    let deadline = Instant::now() + PATIENCE;
    while run("cat /settings/colour") != "green" {
        assert!(Instant::now() < deadline, "the volume does not change");
    }
}

/// It was root's, and nobody else could write there.
#[test]
fn a_claim_can_be_written_by_whomever_the_pod_runs_as() {
    let Some(site) = Site::new() else { return };
    site.apply(
        "{apiVersion: v1, kind: List, items: [
           {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data},
            spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}},
           {apiVersion: v1, kind: Pod, metadata: {name: writes}, spec: {restartPolicy: Never,
             securityContext: {runAsUser: 1000},
             volumes: [
               {name: data, persistentVolumeClaim: {claimName: data}},
               {name: same, persistentVolumeClaim: {claimName: data, readOnly: true}}],
             containers: [{name: c, image: 'busybox:1',
               command: [sh, -c, 'touch /data/x && ! touch /same/y && ls /same'],
               volumeMounts: [{name: data, mountPath: /data}, {name: same, mountPath: /same}]}]}}]}",
    );
    site.until_phase("writes", "Succeeded");
    let said = site.kubectl(&["logs", "writes"]);
    assert!(said.ends_with("x\n") && said.contains("Read-only file system"), "{said}");
}

#[test]
fn volumes_in_memory_are_there_and_go_with_their_pod() {
    let Some(site) = Site::new() else { return };
    site.apply(
        r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: secret}, stringData: {word: xyzzy}}
- apiVersion: v1
  kind: Pod
  metadata: {name: memory}
  spec:
    terminationGracePeriodSeconds: 0
    securityContext: {runAsUser: 1000, fsGroup: 2000}
    volumes:
    - {name: secret, secret: {secretName: secret}}
    - {name: fast, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
    - {name: disk, emptyDir: {}}
    containers:
    - name: c
      image: busybox:1
      command: [sleep, "1000"]
      volumeMounts:
      - {name: secret, mountPath: /secret}
      - {name: fast, mountPath: /fast}
      - {name: disk, mountPath: /part, subPath: one/two}
"#,
    );
    let pod = site.until_ready("memory");
    let run = |script: &str| site.kubectl(&["exec", "memory", "--", "sh", "-c", script]);
    let types = "awk '$2 == \"/fast\" || $2 == \"/secret\" { print $2, $3, substr($4, 1, 2) }' /proc/mounts";
    let mut types: Vec<String> = run(types).lines().map(str::to_owned).collect();
    types.sort();
    assert_eq!(types, ["/fast tmpfs rw", "/secret tmpfs ro"]);
    assert_eq!(run("df -k /fast | awk 'END { print $2 }'"), "1024\n");
    assert_eq!(run("touch /fast/x && stat -c %g /fast/x; cat /secret/word"), "2000\nxyzzy");
    assert_eq!(run("touch /part/x && echo yes"), "yes\n");
    // Nobody can write what the node has written.
    assert_eq!(run("ln -sfn /tmp /secret/..data 2> /dev/null || echo refused"), "refused\n");
    let token = "stat -L -c '%a %u' /var/run/secrets/kubernetes.io/serviceaccount/token";
    assert_eq!(run(token), "640 1000\n");
    site.kubectl(&["delete", "pod", "memory"]);
    let uid = pod["metadata"]["uid"].as_str().expect("a uid");
    let deadline = Instant::now() + PATIENCE;
    while std::fs::read_to_string("/proc/self/mountinfo").expect("it is read").contains(uid) {
        assert!(Instant::now() < deadline, "what was mounted for the pod stays");
    }
}

#[test]
fn memory_is_limited() {
    let Some(site) = Site::new() else { return };
    site.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: greedy}, spec: {restartPolicy: Never,
           containers: [{name: c, image: 'busybox:1', command: [sh, -c, 'tail /dev/zero'],
             resources: {limits: {memory: 16Mi}}}]}}",
    );
    let pod = site.until_phase("greedy", "Failed");
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["exitCode"], &ended["reason"]), (&137.into(), &"OOMKilled".into()));
}

#[test]
fn a_container_that_is_resized_has_other_limits() {
    let Some(site) = Site::new() else { return };
    site.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: grows}, spec: {terminationGracePeriodSeconds: 0,
           containers: [{name: c, image: 'busybox:1', command: [sleep, '100000'],
             resources: {limits: {memory: 64Mi}}}]}}",
    );
    site.until_ready("grows");
    // By either version of control groups.
    let limit = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes";
    site.until_says("grows", limit, "67108864");
    let more = "{\"spec\": {\"containers\": [{\"name\": \"c\", \"resources\": \
                {\"requests\": {\"memory\": \"128Mi\"}, \"limits\": {\"memory\": \"128Mi\"}}}]}}";
    site.kubectl(&["patch", "pod", "grows", "--subresource", "resize", "--patch", more]);
    site.until_says("grows", limit, "134217728");
    let given = |pod: &Value| pod["status"]["containerStatuses"][0]["resources"].clone();
    let pod = site.until(&["pod", "grows"], |pod| given(pod)["limits"]["memory"] == "128Mi");
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    // Less than it uses is refused, and nobody is ended.
    let less = more.replace("128Mi", "64Ki");
    site.kubectl(&["patch", "pod", "grows", "--subresource", "resize", "--patch", &less]);
    let progress = |pod: &Value| {
        let all = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|it| it["type"] == "PodResizeInProgress").unwrap_or_default()
    };
    let pod = site.until(&["pod", "grows"], |pod| progress(pod)["reason"] == "Error");
    let why = progress(&pod)["message"].as_str().unwrap_or_default().to_owned();
    assert!(why.starts_with("cannot decrease memory limits: "), "{why}");
    assert_eq!(given(&pod)["limits"]["memory"], "128Mi");
    let enough = more.replace("128Mi", "96Mi");
    site.kubectl(&["patch", "pod", "grows", "--subresource", "resize", "--patch", &enough]);
    site.until_says("grows", limit, "100663296");
    let pod = site.until(&["pod", "grows"], |pod| progress(pod).is_null());
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    let events = site.events("grows");
    assert!(events.iter().any(|it| it == "ResizeError"), "{events:?}");
}

#[test]
fn a_container_is_started_anew_to_be_resized() {
    let Some(site) = Site::new() else { return };
    site.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: renewed}, spec: {terminationGracePeriodSeconds: 0,
           containers: [{name: c, image: 'busybox:1', command: [sleep, '100000'],
             resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}],
             resources: {limits: {memory: 64Mi}}}]}}",
    );
    site.until_ready("renewed");
    let more = "{\"spec\": {\"containers\": [{\"name\": \"c\", \"resources\": \
                {\"requests\": {\"memory\": \"128Mi\"}, \"limits\": {\"memory\": \"128Mi\"}}}]}}";
    site.kubectl(&["patch", "pod", "renewed", "--subresource", "resize", "--patch", more]);
    site.until(&["pod", "renewed"], |pod| {
        let container = &pod["status"]["containerStatuses"][0];
        container["restartCount"] == 1
            && container["ready"] == true
            && container["resources"]["limits"]["memory"] == "128Mi"
    });
}

#[test]
fn the_node_shows_the_images_that_it_has() {
    let Some(site) = Site::new() else { return };
    let has_image = |nodes: &Value| {
        let images = nodes["items"][0]["status"]["images"].as_array().cloned().unwrap_or_default();
        let mut names =
            images.iter().flat_map(|image| image["names"].as_array().into_iter().flatten());
        names.any(|name| name == "docker.io/library/busybox:1")
    };
    site.until(&["nodes"], has_image);
}

/// It was stuck: its containers could not be started, and no other sandbox was made. Then it was
/// noticed only when a container had to be started.
#[test]
fn a_pod_whose_sandbox_is_gone_begins_anew_in_another() {
    let Some(site) = Site::new() else { return };
    site.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: lost}, spec: {terminationGracePeriodSeconds: 0,
           initContainers: [{name: i, image: 'busybox:1', command: ['true']}],
           containers: [{name: c, image: 'busybox:1', command: [sleep, '100000']}]}}",
    );
    let before = site.until_ready("lost");
    kill_sandbox(&before);
    let is_again = |pod: &Value| {
        let container = &pod["status"]["containerStatuses"][0];
        container["ready"] == true && container["restartCount"] == 1
    };
    let after = site.until(&["pod", "lost"], is_again);
    assert_eq!(after["status"]["initContainerStatuses"][0]["restartCount"], 1);
    assert!(after["status"]["podIP"].is_string(), "{after}");
    assert_ne!(after["status"]["podIP"], before["status"]["podIP"]);
    let events = site.events("lost");
    assert!(events.iter().any(|it| it == "SandboxChanged"), "{events:?}");
}

#[test]
fn a_pod_that_is_never_started_again_fails_without_its_sandbox() {
    let Some(site) = Site::new() else { return };
    site.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: once}, spec: {terminationGracePeriodSeconds: 0,
           restartPolicy: Never,
           containers: [{name: c, image: 'busybox:1', command: [sleep, '100000']}]}}",
    );
    kill_sandbox(&site.until_ready("once"));
    let pod = site.until(&["pod", "once"], |pod| pod["status"]["phase"] == "Failed");
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    let events = site.events("once");
    assert!(!events.iter().any(|it| it == "SandboxChanged"), "{events:?}");
}

/// Kills what keeps the sandbox of a pod, behind everybody's back.
fn kill_sandbox(pod: &Value) {
    let uid = pod["metadata"]["uid"].as_str().expect("a uid");
    let ctr = |words: &[&str]| {
        let mut ctr = Command::new("ctr");
        let output =
            ctr.args(["--address", &socket(), "--namespace", "k8s.io"]).args(words).output();
        output.expect("ctr is there, as containerd is")
    };
    let filter = format!("labels.\"io.kubernetes.pod.uid\"=={uid}");
    let is_sandbox = "labels.\"io.cri-containerd.kind\"==sandbox";
    let sandbox = ctr(&["containers", "list", "--quiet", &format!("{filter},{is_sandbox}")]);
    let sandbox = text(&sandbox.stdout).trim().to_owned();
    let killed = ctr(&["tasks", "kill", "--signal", "SIGKILL", &sandbox]);
    assert!(killed.status.success(), "{killed:?}");
}

#[test]
fn kubectl_looks_into_pods() {
    let Some(site) = Site::new() else { return };
    site.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: talks}, spec: {containers: [
           {name: c, image: 'nginxdemos/hello:latest', ports: [{containerPort: 80}]},
           {name: echo, image: 'busybox:1', stdin: true, command: [cat]}]}}",
    );
    site.until_ready("talks");
    let output =
        site.fed(&["exec", "-i", "talks", "-c", "c", "--", "sh", "-c", "cat; exit 7"], "hello");
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("hello", Some(7)));
    let output = site.command(&["exec", "talks", "-c", "c", "--", "no-such-program"]).output();
    assert!(!output.expect("kubectl runs").status.success());
    // kubectl asks for a terminal only if it has one.
    let script = format!(
        "{} exec -it talks -c c -- sh -c 'test -t 0 && test -t 1 && echo yes'",
        site.kubectl.display()
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &script, "/dev/null"]).env("HOME", site.user.home.path());
    // The terminal is there for as long as there may be input.
    terminal.env_remove("KUBECONFIG").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut terminal = Beside(terminal.spawn().expect("script runs"));
    let mut said = String::new();
    let mut stdout = terminal.0.stdout.take().expect("a pipe");
    stdout.read_to_string(&mut said).expect("it ends");
    assert!(said.contains("yes"), "{said}");
    drop(terminal);

    let mut attach = site.command(&["attach", "-i", "talks", "-c", "echo"]);
    let attach = attach.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut attach = Beside(attach.spawn().expect("kubectl runs"));
    attach.0.stdin.as_mut().expect("a pipe").write_all(b"ping\n").expect("it is read");
    let mut heard = [0; 5];
    attach.0.stdout.as_mut().expect("a pipe").read_exact(&mut heard).expect("it is echoed");
    assert_eq!(&heard, b"ping\n");

    let mut follow = site.command(&["logs", "-f", "talks", "-c", "c"]);
    let mut follow = Beside(follow.stdout(Stdio::piped()).spawn().expect("kubectl runs"));
    let (_forward, port) = forward(&site, "pod/talks", 80);
    until_answers(port, "/", "Server name: talks");
    let mut line = String::new();
    let stdout = follow.0.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("a line");
    assert!(line.contains("200"), "{line}");
}

/// Forwards a port of this machine, and says which.
fn forward(site: &Site, to: &str, port: u16) -> (Beside, u16) {
    let mut command = site.command(&["port-forward", to, &format!(":{port}")]);
    let mut child = Beside(command.stdout(Stdio::piped()).spawn().expect("kubectl runs"));
    // It says more, and would end if nobody could hear it.
    let stdout = child.0.stdout.as_mut().expect("a pipe");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("a line");
    let port = line.split("127.0.0.1:").nth(1).and_then(|it| it.split(' ').next());
    (child, port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("{line}")))
}

fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("it is asked");
    let mut answer = String::new();
    // What was read before an end without a farewell counts.
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// Waits until this is answered: a container runs before its program listens.
fn until_answers(port: u16, path: &str, expected: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = get(port, path);
        if answer.contains(expected) {
            return;
        }
        assert!(Instant::now() < deadline, "{expected:?} is not in {answer:?}");
    }
}

#[test]
fn an_agent_that_was_killed_finds_its_containers() {
    let Some(site) = Site::new() else { return };
    site.kubectl(&["create", "deployment", "web", "--image", "nginxdemos/hello:latest"]);
    site.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
    let starts = site.user.home.path().join("shared/starts");
    site.apply(&counted(&site));
    site.until_ready("counted");
    let containers = |site: &Site| {
        let list = site.json(&["get", "pods"]);
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        let ids = pods.iter().map(|it| it["status"]["containerStatuses"][0]["containerID"].clone());
        (ids.collect::<Vec<_>>(), list["items"][0]["status"]["podIP"].clone())
    };
    let before = containers(&site);
    let record = site.user.json(&["clusters", "--output", "json"]);
    let pid = record[0]["pid"].as_i64().expect("a process");
    let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(killed.expect("kill runs").success());
    while site.user.json(&["clusters", "--output", "json"])[0]["running"] == true {}
    site.up(&socket());
    let list = site.until(&["pods"], |list| {
        list["items"][0]["status"]["containerStatuses"][0]["ready"] == true
    });
    assert_eq!(list["items"][0]["status"]["containerStatuses"][0]["restartCount"], 0);
    // Who answers to this has taken the pod over.
    site.until_says("counted", "echo here", "here\n");
    assert_eq!(containers(&site), before);
    assert_eq!(std::fs::read_to_string(starts).expect("it was started"), "started\n");
}

/// A pod that notes, in the user's `shared/starts`, each time that it is started.
fn counted(site: &Site) -> String {
    let shared = site.user.home.path().join("shared");
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: counted}}, spec: {{
           terminationGracePeriodSeconds: 1,
           volumes: [{{name: shared, hostPath: {{path: '{}', type: DirectoryOrCreate}}}}],
           containers: [{{name: c, image: 'busybox:1',
             command: [sh, -c, 'echo started >> /shared/starts; exec sleep 100000'],
             volumeMounts: [{{name: shared, mountPath: /shared}}]}}]}}}}",
        shared.display()
    )
}
