//! A node of ours with real containers in a cluster that runs elsewhere: ours, and upstream's.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::network::{ANSWER, ASK_SERVER, asks};
use super::{Beside, Site, counted, socket};

/// Set where `KUBECONFIG` leads to a cluster that is there for tests.
const EXISTING: &str = "KUBEWRIGHT_TEST_EXISTING";
const NODE: &str = "box";

#[test]
fn a_node_joins_a_cluster_of_ours() {
    let Some(site) = Site::without_cluster() else { return };
    site.user.run(&["up", "--detach", "--port", "0", "--node", "none"]).expect("up");
    let scheduler = program(&site, &["scheduler", "--leader-elect=false"]).spawn();
    let _scheduler = Beside(scheduler.expect("it runs"));
    check(&site);
}

#[test]
fn a_node_joins_a_cluster_of_upstream() {
    if std::env::var_os(EXISTING).is_none() {
        eprintln!("skipped: {EXISTING} is not set; `cargo xtask long containers` has upstream");
        return;
    }
    let Some(site) = Site::without_cluster() else { return };
    let config = std::env::var_os("KUBECONFIG").expect("the way to a cluster");
    std::fs::create_dir(site.user.home.path().join(".kube")).expect("a directory");
    std::fs::copy(config, site.user.home.path().join(".kube/config")).expect("a kubeconfig");
    check(&site);
    site.kubectl(&["delete", "node", NODE]);
}

/// Pods live on a node that joins, are reached and looked into, outlive its agent, and end with it.
fn check(site: &Site) {
    let mut node = Node::start(site);
    site.load_images(&["--socket", &socket()]);
    let seen = site.until(&["node", NODE], |node| {
        let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True")
    });
    let version = &seen["status"]["nodeInfo"]["containerRuntimeVersion"];
    assert!(version.as_str().unwrap_or_default().starts_with("containerd://"), "{version}");
    site.until(&["serviceaccount", "default"], |account| !account.is_null());
    site.apply(&asks(site));
    site.apply(&counted(site));
    site.kubectl(&["create", "deployment", "web", "--image=nginxdemos/hello:latest", "--port=80"]);
    site.kubectl(&["expose", "deployment", "web", "--port=8000", "--target-port=80"]);
    site.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
    site.until_ready("asks");
    let before = site.until_ready("counted");
    site.until_says("asks", "wget -q -O - http://web:8000/", "Server name: web-");
    site.until_says("asks", ASK_SERVER, ANSWER);
    let logs = site.kubectl(&["logs", "deployment/web"]);
    assert!(logs.contains("200"), "{logs}");

    node.kill();
    let node = Node::start(site);
    // Who answers to this has taken the pod over.
    site.until_says("counted", "cat /shared/starts", "started\n");
    site.until_says("asks", "wget -q -O - http://web:8000/", "Server name: web-");
    let after = site.json(&["get", "pod", "counted"]);
    let container = |pod: &serde_json::Value| {
        let status = &pod["status"]["containerStatuses"][0];
        (status["containerID"].clone(), status["restartCount"].clone())
    };
    assert_eq!(container(&after), container(&before));
    let starts = std::fs::read_to_string(site.user.home.path().join("shared/starts"));
    assert_eq!(starts.expect("it was started"), "started\n");

    site.kubectl(&["delete", "service/web", "deployment/web", "pod/asks", "pod/counted"]);
    let is_empty = |list: &serde_json::Value| list["items"].as_array().is_some_and(Vec::is_empty);
    site.until(&["pods"], is_empty);
    node.stop();
}

/// A command of ours that goes on.
fn program(site: &Site, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command
        .args(words)
        .current_dir(site.user.home.path())
        .env("HOME", site.user.home.path())
        .env_remove("XDG_DATA_HOME")
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// `kubewright node`, which takes what runs on it along unless it is killed.
struct Node {
    child: Child,
    /// It may go on to say things.
    _said: BufReader<ChildStdout>,
}

impl Node {
    /// Returns when it has joined.
    fn start(site: &Site) -> Self {
        let runtime = format!("cri={}", socket());
        let words = ["node", "--name", NODE, "--runtime", &runtime, "--ingress-port", "0"];
        let mut child = program(site, &words).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        said.read_line(&mut line).expect("it says something");
        let node = Node { child, _said: said };
        assert!(line.starts_with(&format!("node {NODE:?} joins ")), "{line}");
        node
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    fn stop(mut self) {
        assert!(self.end().success(), "it ends ill");
    }

    fn end(&mut self) -> std::process::ExitStatus {
        let pid = self.child.id().to_string();
        // It may have ended by itself.
        let _ = Command::new("kill").args(["-TERM", &pid]).stderr(Stdio::null()).status();
        self.child.wait().expect("it ends")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.end();
        }
    }
}
