//! Pods that run on this machine, and nodes and schedulers that are processes of their own.
//!
//! Programs are kubectl and what `kubewright` starts; where there is no kubectl the sessions say so
//! and pass.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{self, Ours};
use crate::{User, transcript};

const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(100);

/// Waits for a state, and says what was instead.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let limit = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) if Instant::now() > limit => panic!("{what}: {why}"),
            Err(_) => std::thread::park_timeout(LOOK),
        }
    }
}

fn when(is_so: bool, otherwise: &str) -> Result<(), String> {
    is_so.then_some(()).ok_or_else(|| otherwise.to_owned())
}

/// What a server on this machine answers.
fn fetch(url: &str) -> Result<String, String> {
    let text = |error: std::io::Error| format!("{url}: {error}");
    let rest = url.strip_prefix("http://").ok_or("no URL")?;
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(place).map_err(text)?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(text)?;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(text)?;
    // The other side may well keep the connection.
    let (mut reader, mut answer, mut length) = (BufReader::new(stream), String::new(), 0_usize);
    loop {
        let start = answer.len();
        reader.read_line(&mut answer).map_err(text)?;
        let line = answer[start..].trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(|_| format!("{url}: a length of {value}"))?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).map_err(text)?;
    answer.push_str(&String::from_utf8_lossy(&body));
    when(answer.starts_with("HTTP/1.1 200"), &format!("{url} answers {answer:?}"))?;
    Ok(answer)
}

/// A user of kubectl.
struct Session {
    user: User,
    kubectl: PathBuf,
}

impl Session {
    /// A cluster whose pods run on this machine; none without kubectl.
    fn start() -> Option<Self> {
        let kubectl = kubectl()?;
        let user = User::new();
        let up = "up --detach --port 0 --ingress-port 0 --node process --ephemeral";
        let up: Vec<&str> = up.split(' ').collect();
        user.run(&up).expect("up");
        Some(Session { user, kubectl })
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .args(args.split(' '))
            .current_dir(self.user.home.path())
            .env("HOME", self.user.home.path())
            .env("KUBECONFIG", self.user.home.path().join(".kube/config"))
            .stdin(Stdio::null());
        command
    }

    fn try_run(&self, args: &str) -> Result<String, String> {
        let output = self.command(args).output().expect("kubectl runs");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(format!("kubectl {args}: {}", text(&output.stderr))),
        }
    }

    fn run(&self, args: &str) -> String {
        self.try_run(args).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a command that goes on, and gives the lines that it prints.
    fn begin(&self, args: &str) -> Going {
        Going::start(&mut self.command(args))
    }

    fn pods(&self) -> Vec<String> {
        let template = "jsonpath={range.items[*]}{.metadata.name}{\"\\n\"}{end}";
        let listed = self.run(&format!("get pods --selector app=hello --output {template}"));
        listed.lines().map(str::to_owned).collect()
    }
}

struct Going {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Going {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("kubectl runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Going { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The one that upstream's tools were built with, or the one of this machine.
fn kubectl() -> Option<PathBuf> {
    let found = transcript::kubectl().or_else(|| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let all = std::env::split_paths(&folders).map(|folder| folder.join("kubectl"));
        all.into_iter().find(|path| path.is_file())
    });
    if found.is_none() {
        eprintln!("skipped: there is no kubectl; `cargo xtask upstream build` makes one");
    }
    found
}

#[test]
fn deployments_are_made_reached_scaled_rolled_read_entered_drained_and_measured() {
    let Some(session) = Session::start() else { return };
    session.run("create deployment hello --image=nginxdemos/hello --port=8080 --replicas=2");
    session.run("expose deployment hello --type=NodePort --port=80 --target-port=8080");
    let rolled = session.run("rollout status deployment/hello --timeout=120s");
    assert!(rolled.ends_with("deployment \"hello\" successfully rolled out\n"), "{rolled}");

    let url = session.user.run(&["service", "hello", "--url"]).expect("a URL");
    let url = url.trim();
    let mut names = Vec::new();
    for _ in 0..2 {
        let answer = eventually("the Service answers", || fetch(url));
        let name = answer.lines().find(|line| line.contains("Server name:")).map(str::to_owned);
        names.push(name.unwrap_or_else(|| panic!("no server name in {answer:?}")));
    }
    // Two pods, in turn.
    assert_ne!(names[0], names[1]);

    session.run("scale deployment/hello --replicas=3");
    session.run("rollout status deployment/hello --timeout=120s");
    assert_eq!(session.pods().len(), 3);

    session.run("set image deployment/hello hello=nginx");
    session.run("rollout status deployment/hello --timeout=120s");
    let history = session.run("rollout history deployment/hello");
    assert!(history.contains("\n1 ") && history.contains("\n2 "), "{history}");
    session.run("rollout undo deployment/hello");
    session.run("rollout status deployment/hello --timeout=120s");
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    let image = session.run(&format!("get deployment hello --output {image}"));
    assert_eq!(image, "nginxdemos/hello");
    // Those of the template before may still be on their way out.
    let pods = eventually("three pods are left", || {
        let pods = session.pods();
        when(pods.len() == 3, &format!("{pods:?}")).map(|()| pods)
    });

    let mut following = session.begin(&format!("logs -f {}", pods[0]));
    let mut forwarding = session.begin(&format!("port-forward pod/{} :8080", pods[0]));
    let told = forwarding.line();
    let place = told.strip_prefix("Forwarding from ").and_then(|it| it.split(' ').next());
    let place = place.unwrap_or_else(|| panic!("{told}"));
    let answer = fetch(&format!("http://{place}/through-a-forwarded-port")).expect("an answer");
    assert!(answer.contains(&pods[0]), "{answer}");
    while !following.line().contains("/through-a-forwarded-port") {}
    drop((following, forwarding));

    // Older clients speak SPDY without WebSockets around it.
    let mut by_spdy = session.command(&format!("port-forward pod/{} :8080", pods[0]));
    let by_spdy = by_spdy.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", "false");
    let mut by_spdy = Going::start(by_spdy);
    let told = by_spdy.line();
    let place = told.strip_prefix("Forwarding from ").and_then(|it| it.split(' ').next());
    let place = place.unwrap_or_else(|| panic!("{told}"));
    let answer = fetch(&format!("http://{place}/by-spdy")).expect("an answer");
    assert!(answer.contains(&pods[0]), "{answer}");
    drop(by_spdy);

    let hostname = session.run(&format!("exec {} -- printenv HOSTNAME", pods[0]));
    assert_eq!(hostname.trim(), pods[0]);

    // Older clients, and upstream's API servers, speak SPDY.
    let mut by_spdy = session.command(&format!("exec {} -- printenv HOSTNAME", pods[0]));
    let by_spdy = by_spdy.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false").output();
    let by_spdy = by_spdy.expect("kubectl runs");
    assert_eq!(String::from_utf8_lossy(&by_spdy.stdout).trim(), pods[0], "{by_spdy:?}");

    eventually("pods are measured", || {
        let top = session.try_run("top pods --no-headers")?;
        when(top.lines().count() == 3, &top)
    });
    let top = session.run("top nodes --no-headers");
    assert_eq!(top.lines().count(), 1, "{top}");
    assert!(top.contains("Mi") && top.contains('%'), "{top}");

    let node = session.run("get nodes --output jsonpath={.items[0].metadata.name}");
    let drained =
        session.run(&format!("drain {node} --delete-emptydir-data --force --timeout=120s"));
    assert!(drained.ends_with(&format!("node/{node} drained\n")), "{drained}");
    session.run(&format!("uncordon {node}"));
    session.run("rollout status deployment/hello --timeout=120s");
}

#[test]
fn ingresses_say_where_they_are_served() {
    let Some(session) = Session::start() else { return };
    session.run("create deployment hello --image=nginxdemos/hello --port=8080");
    session.run("expose deployment hello --port=80 --target-port=8080");
    session.run("create ingress hello --rule=/hi*=hello:80");
    let first = ".status.loadBalancer.ingress[0]";
    let place = format!("jsonpath={{{first}.ip}}:{{{first}.ports[0].port}}");
    let place = eventually("the Ingress says where it is", || {
        let place = session.try_run(&format!("get ingress hello --output {place}"))?;
        when(place.starts_with("127.0.0.1:"), &place).map(|()| place)
    });
    let listed = session.run("get ingress hello --no-headers");
    assert!(listed.contains(" 127.0.0.1 "), "{listed}");
    eventually("it is served there", || fetch(&format!("http://{place}/hi")));
}

#[test]
fn people_talk_with_what_they_run() {
    let Some(session) = Session::start() else { return };
    let run = "run talk -i --rm --quiet --restart=Never --image=busybox --command -- cat";
    let mut talking = session.command(run);
    let talking = talking.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut talking = talking.expect("kubectl runs");
    let mut said = talking.stdin.take().expect("a pipe");
    said.write_all(b"hello, container\n").expect("it listens");
    drop(said);
    let heard = talking.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&heard.stdout), "hello, container\n");
    assert!(heard.status.success());
}

/// Where the network can be administered, by the user or in a namespace of the user's own, Services
/// answer at their own addresses and pods are where they are shown.
#[test]
fn services_have_addresses_where_the_network_allows() {
    let Some(kubectl) = kubectl() else { return };
    let user = User::new();
    let script = r#"
        set -e
        ip link set lo up
        "$KUBEWRIGHT" up --detach --port 0 --ingress-port 0 --node process --ephemeral > up.log
        trap '"$KUBEWRIGHT" down > down.log' EXIT
        k() { "$KUBECTL" "$@"; }
        k create deployment hello --image=nginxdemos/hello --port=8080 > /dev/null
        k expose deployment hello --port=80 --target-port=8080 > /dev/null
        k rollout status deployment/hello --timeout=120s > /dev/null
        "$KUBEWRIGHT" service hello --url
        k get service hello --output 'jsonpath={.spec.clusterIP}{"\n"}'
        ip=$(k get service hello --output 'jsonpath={.spec.clusterIP}')
        k exec deployment/hello -- sh -c "exec 3<>/dev/tcp/$ip/80" 2> /dev/null ||
            k exec deployment/hello -- bash -c "exec 3<>/dev/tcp/$ip/80"
        echo reached
        "$KUBEWRIGHT" down > down.log
        trap - EXIT
        ip -4 -o address show dev lo | grep -c . || true
    "#;
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "bash", "-c", script])
        .current_dir(user.home.path())
        .env("HOME", user.home.path())
        .env("KUBECONFIG", user.home.path().join(".kube/config"))
        .env("KUBEWRIGHT", env!("CARGO_BIN_EXE_kubewright"))
        .env("KUBECTL", kubectl)
        .env_remove("XDG_DATA_HOME")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return eprintln!("skipped: there is no unshare: {error}"),
    };
    let told = String::from_utf8_lossy(&output.stderr);
    if told.starts_with("unshare: ") || told.contains("ip: command not found") {
        return eprintln!("skipped: there is no network to be had: {told}");
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    let [url, address, "reached", "1"] = lines[..] else { panic!("{said}\n{told}") };
    assert_eq!(url, format!("http://{address}:80"), "{told}");
}

/// A part of a cluster that is a process of its own.
fn part(home: &Path, args: &str) -> server::Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command
        .args(args.split(' '))
        .args(["--kubeconfig", "config"])
        .current_dir(home)
        .env("HOME", home)
        .env_remove("XDG_DATA_HOME")
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    server::Program::start(&mut command)
}

/// Waits until what is at a path is there, or gone.
async fn wait_for(ours: &Ours, path: &str, status: u16) {
    let limit = Instant::now() + PATIENCE;
    while ours.access.client().await.send("GET", path, &Value::Null).await.0 != status {
        assert!(Instant::now() < limit, "{path} is not {status}");
        tokio::time::sleep(LOOK).await;
    }
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn deployment(image: &str) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 6,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {
                    "labels": {"app": "web"},
                    "annotations": {"fake.kubewright.dev/start-after": "300ms"},
                },
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    })
}

/// Waits until all pods are of the newest template and nothing else is left.
async fn rolled_out(ours: &Ours, image: &str) {
    let limit = Instant::now() + PATIENCE;
    loop {
        let mut client = ours.access.client().await;
        let deployment = client.get(&format!("{DEPLOYMENTS}/web")).await;
        let pods = client.get(PODS).await;
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let is_new = |pod: &Value| {
            pod["spec"]["containers"][0]["image"] == image && pod["status"]["phase"] == "Running"
        };
        let status = &deployment["status"];
        if status["observedGeneration"] == deployment["metadata"]["generation"]
            && status["availableReplicas"] == 6
            && status["updatedReplicas"] == 6
            && pods.len() == 6
            && pods.iter().all(is_new)
        {
            return;
        }
        assert!(Instant::now() < limit, "{status}, {} pods", pods.len());
        tokio::time::sleep(LOOK).await;
    }
}

/// The API server with its controllers is killed in the middle of a rolling update, and comes up
/// again: nodes and scheduler, which are other processes, go on as if nothing had been.
#[tokio::test]
async fn a_rolling_update_outlives_the_api_server() {
    let home = tempfile::tempdir().expect("a directory");
    let port = server::free_port().to_string();
    let args = ["--port", &port, "--kubeconfig", "config"];
    let ours = Ours::up(home.path(), "kubewright", &args);
    let _node = part(home.path(), "node --nodes 3 --name fake");
    let _scheduler = part(home.path(), "scheduler --leader-elect=false");
    ours.access.client().await.create(DEPLOYMENTS, &deployment("app:1")).await;
    rolled_out(&ours, "app:1").await;
    let mut client = ours.access.client().await;
    let mut wanted = client.get(&format!("{DEPLOYMENTS}/web")).await;
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:2");
    let (code, answer) = client.send("PUT", &format!("{DEPLOYMENTS}/web"), &wanted).await;
    assert_eq!(code, 200, "{answer}");
    // Some are new, some are old.
    let limit = Instant::now() + PATIENCE;
    loop {
        let status = client.get(&format!("{DEPLOYMENTS}/web")).await["status"].clone();
        if (1..6).contains(&status["updatedReplicas"].as_u64().unwrap_or_default()) {
            break;
        }
        assert!(Instant::now() < limit, "{status}");
    }
    ours.kill();
    let ours = Ours::up(home.path(), "kubewright", &args);
    rolled_out(&ours, "app:2").await;
}

/// The whole cluster is killed: its pods run on, and the next one takes them over as they are.
#[tokio::test]
async fn what_runs_outlives_a_killed_cluster_and_is_not_doubled() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("starts");
    let args = ["--port", "0", "--node", "process", "--ingress-port", "0"];
    let ours = Ours::up(home.path(), "kubewright", &args);
    let mut client = ours.access.client().await;
    wait_for(&ours, "/api/v1/namespaces/default/serviceaccounts/default", 200).await;
    let script = format!("echo started >> {}; exec sleep 100000", file.display());
    let mounted = json!({"name": "home", "hostPath": {"path": home.path()}});
    client
        .create(
            PODS,
            &json!({
                "metadata": {"name": "web"},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "main", "image": "busybox", "command": ["sh", "-c", script],
                        "volumeMounts": [{"name": "home", "mountPath": home.path()}],
                    }],
                    "volumes": [mounted],
                },
            }),
        )
        .await;
    let id = "/status/containerStatuses/0/containerID";
    let before = running(&ours).await;
    ours.kill();
    let ours = Ours::up(home.path(), "kubewright", &args);
    let after = running(&ours).await;
    assert_eq!(before.pointer(id), after.pointer(id));
    assert_eq!(after["status"]["containerStatuses"][0]["restartCount"], 0);
    assert_eq!(std::fs::read_to_string(&file).expect("it ran"), "started\n");
    let mut client = ours.access.client().await;
    client.send("DELETE", &format!("{PODS}/web"), &Value::Null).await;
    wait_for(&ours, &format!("{PODS}/web"), 404).await;
    // Killed again, it would leave what it has of the network to nobody.
    let mut down = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    down.arg("down").env("HOME", home.path()).env_remove("XDG_DATA_HOME").stdout(Stdio::null());
    assert!(down.status().expect("the command runs").success());
}

/// The pod, once its agent has said lately that it runs.
async fn running(ours: &Ours) -> Value {
    let limit = Instant::now() + PATIENCE;
    loop {
        let mut client = ours.access.client().await;
        let pod = client.get(&format!("{PODS}/web")).await;
        // A cluster that has just come up knows of the pod; that its node is back says its events.
        let nodes = client.get("/api/v1/nodes").await;
        let ready = nodes["items"][0]["status"]["conditions"].as_array().cloned();
        let ready = ready.unwrap_or_default();
        let is_ready = ready.iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
        if is_ready && pod["status"]["phase"] == "Running" {
            return pod;
        }
        assert!(Instant::now() < limit, "{}", pod["status"]);
        tokio::time::sleep(LOOK).await;
    }
}

async fn placed(ours: &Ours, name: &str) -> String {
    let limit = Instant::now() + PATIENCE;
    loop {
        let pod = ours.access.client().await.get(&format!("{PODS}/{name}")).await;
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            return node.to_owned();
        }
        assert!(Instant::now() < limit, "{}", pod["status"]);
        tokio::time::sleep(LOOK).await;
    }
}

fn policy(presence: bool) -> String {
    let labels = json!({"labelsPresence": {"labels": ["selectable"], "presence": presence}});
    json!({
        "kind": "Policy", "apiVersion": "v1",
        "predicates": [
            {"name": "PodMatchNodeSelector"},
            {"name": "NodeLabelPredicate", "argument": labels},
        ],
        "priorities": [],
    })
    .to_string()
}

/// Two schedulers of ours beside each other, each with a legacy policy: one in the cluster, one in a
/// file.
#[tokio::test]
async fn schedulers_follow_legacy_policies() {
    let home = tempfile::tempdir().expect("a directory");
    let args = ["--port", "0", "--kubeconfig", "config"];
    let ours = Ours::up(home.path(), "kubewright", &args);
    let mut client = ours.access.client().await;
    for (name, labels) in [
        ("gpu", json!({"device": "gpu"})),
        ("selectable", json!({"selectable": "yes"})),
        ("both", json!({"device": "gpu", "selectable": "yes"})),
    ] {
        let node = json!({"metadata": {"name": name, "labels": labels}});
        client.create("/api/v1/nodes", &node).await;
    }
    let map = json!({
        "metadata": {"name": "scheduler-policy-config"}, "data": {"policy.cfg": policy(true)},
    });
    client.create("/api/v1/namespaces/kube-system/configmaps", &map).await;
    std::fs::write(home.path().join("policy.json"), policy(false)).expect("written");
    let _present = part(home.path(), "scheduler --scheduler-name present --policy-configmap");
    let absent = "scheduler --scheduler-name absent --policy-config-file policy.json";
    let _absent = part(home.path(), absent);
    wait_for(&ours, "/api/v1/namespaces/default/serviceaccounts/default", 200).await;
    for scheduler in ["present", "absent"] {
        let pod = json!({
            "metadata": {"name": format!("terminator-{scheduler}")},
            "spec": {
                "schedulerName": scheduler,
                "nodeSelector": {"device": "gpu"},
                // Nobody speaks for these nodes, and others taint them.
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "main", "image": "example.com/terminator"}],
            },
        });
        client.create(PODS, &pod).await;
    }
    assert_eq!(placed(&ours, "terminator-present").await, "both");
    assert_eq!(placed(&ours, "terminator-absent").await, "gpu");
}

/// The cluster's own scheduler fills a node before it takes another, for those who ask for that.
#[tokio::test]
async fn pods_go_where_a_configuration_of_the_cluster_says() {
    let home = tempfile::tempdir().expect("a directory");
    let config = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packed
  pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}
";
    std::fs::write(home.path().join("scheduler.yaml"), config).expect("it is written");
    let args = "--port 0 --node fake --nodes 2 --scheduler-config scheduler.yaml";
    let args: Vec<&str> = args.split(' ').collect();
    let ours = Ours::up(home.path(), "kubewright", &args);
    let mut client = ours.access.client().await;
    wait_for(&ours, "/api/v1/namespaces/default/serviceaccounts/default", 200).await;
    let mut places = Vec::new();
    for (name, scheduler) in [
        ("first", "default-scheduler"),
        ("packed-1", "packed"),
        ("packed-2", "packed"),
        ("spread", "default-scheduler"),
    ] {
        let requests = json!({"cpu": "2", "memory": "2Gi"});
        let container = json!({
            "name": "main", "image": "example.com/image", "resources": {"requests": requests},
        });
        let spec = json!({"schedulerName": scheduler, "containers": [container]});
        client.create(PODS, &json!({"metadata": {"name": name}, "spec": spec})).await;
        places.push(placed(&ours, name).await);
    }
    assert!(places[..3].iter().all(|place| *place == places[0]), "{places:?}");
    assert_ne!(places[3], places[0]);
}

#[tokio::test]
async fn simulated_pods_do_what_a_file_says() {
    let home = tempfile::tempdir().expect("a directory");
    let stages = "- container: broken\n  runsFor: 10ms\n  exitCode: 3\n";
    std::fs::write(home.path().join("stages.yaml"), stages).expect("it is written");
    let args = ["--port", "0", "--node", "fake", "--stages", "stages.yaml"];
    let ours = Ours::up(home.path(), "kubewright", &args);
    let mut client = ours.access.client().await;
    let container = json!({"name": "broken", "image": "example.com/broken"});
    let spec = json!({"restartPolicy": "Never", "containers": [container]});
    client.create(PODS, &json!({"metadata": {"name": "broken"}, "spec": spec})).await;
    let limit = Instant::now() + PATIENCE;
    loop {
        let status = client.get(&format!("{PODS}/broken")).await["status"].clone();
        if status["phase"] == "Failed" {
            let ended = &status["containerStatuses"][0]["state"]["terminated"];
            assert_eq!(ended["exitCode"], 3, "{status}");
            break;
        }
        assert!(Instant::now() < limit, "{status}");
        tokio::time::sleep(LOOK).await;
    }
}

#[test]
fn what_cannot_be_joined_is_said_at_once() {
    let user = User::new();
    let check = |args: &[&str], expected: &str| {
        let told = user.run(args).expect_err("it cannot");
        assert!(told.contains(expected), "{args:?}: {told}");
    };
    check(&["node", "--kubeconfig", "none"], "find a cluster: ");
    check(&["scheduler", "--kubeconfig", "none"], "find a cluster: ");
    check(&["node", "--runtime", "docker"], "use `fake`, `process` or `cri=SOCKET`");
    check(&["node", "--runtime", "cri=/no/such.sock"], "give its socket as --runtime cri=SOCKET");
    check(&["node", "--runtime", "process", "--nodes", "2"], "this is one machine");
    check(&["node", "--runtime", "process", "--stages", "x"], "--stages is for --runtime fake");
    check(&["node", "--stages", "none.yaml"], "read --stages none.yaml: ");
    check(&["up", "--node", "none", "--stages", "none.yaml"], "--stages is for --node fake");
    let wrong = "- owner: Job\n- runFor: 2s\n";
    std::fs::write(user.home.path().join("wrong.yaml"), wrong).expect("it is written");
    let told = "read --stages wrong.yaml: line 2: stage 2: unknown field `runFor`";
    check(&["node", "--stages", "wrong.yaml"], told);
    check(&["up", "--detach", "--stages", "wrong.yaml"], told);
    let unknown = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {score: {enabled: [{name: Wisdom}]}}}]
";
    std::fs::write(user.home.path().join("unknown.yaml"), unknown).expect("it is written");
    let told = "use --scheduler-config unknown.yaml: ";
    check(&["up", "--scheduler-config", "unknown.yaml"], told);
    check(&["up", "--detach", "--scheduler-config", "unknown.yaml"], told);
    check(&["up", "--scheduler-config", "none.yaml"], "read --scheduler-config none.yaml: ");
    let told = "--scheduler-config is for clusters with nodes";
    check(&["up", "--node", "none", "--scheduler-config", "unknown.yaml"], told);
    check(&["node", "--register-with-taints", "a=b"], "a taint is KEY[=VALUE]:EFFECT");
    check(&["node", "--node-labels", "a b=c"], "--node-labels");
    check(&["scheduler", "--config", "a", "--policy-configmap", "b"], "cannot be used with");
    check(&["service", "web"], "there is no cluster \"kubewright\"");
}
