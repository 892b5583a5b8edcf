//! The operator as a program of its own, which finds its cluster by a kubeconfig.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use at::{At, AtSpec};
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::CustomResourceExt as _;
use kube::api::{Api, PostParams};
use kubewright_testing::Cluster;
use serde_json::json;

/// A program that does not outlive the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    /// One with nothing that others could be in the way of.
    fn start(adapt: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let nowhere = ["metrics", "health-probe", "webhook"];
        let nowhere = nowhere.map(|it| format!("--{it}-bind-address=0"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_at"));
        Program(adapt(command.args(nowhere)).spawn().expect("it starts"))
    }

    /// Sends it what a kubelet sends.
    fn terminate(&self) {
        let sent =
            Command::new("sh").args(["-c", "kill -TERM $0"]).arg(self.0.id().to_string()).status();
        assert!(sent.expect("there is such a program").success(), "it runs no more");
    }

    fn ended(mut self) -> ExitStatus {
        self.0.wait().expect("it is a child")
    }
}

#[tokio::test]
async fn the_program_works_on_the_cluster_of_its_kubeconfig() {
    let cluster = Cluster::from_env().await;
    cluster.apply(&json!(At::crd())).await;
    cluster.served("ats.cnat.programming-kubernetes.info").await;
    let kubeconfig = cluster.kubeconfig().await;
    let program = Program::start(|command| {
        command
            .env("KUBECONFIG", kubeconfig)
            .arg(format!("--namespace={}", cluster.namespace()))
            .arg("--log-level=warn")
    });
    let due = cluster.clock().now() - SignedDuration::from_secs(1);
    let spec = AtSpec { schedule: Some(due.to_string()), command: Some("echo YAY".to_owned()) };
    let ats: Api<At> = Api::default_namespaced(cluster.client());
    ats.create(&PostParams::default(), &At::new("tea", spec)).await.expect("created");
    let namespace = Some(cluster.namespace());
    let made = cluster.eventually::<Pod>(namespace, "tea-pod", |pod| pod.is_some());
    tokio::time::timeout(Duration::from_secs(60), made).await.expect("in time");
    drop(program);
    cluster.shutdown().await;
}

/// Whoever takes over does not wait for a lease to end.
#[tokio::test]
async fn a_signal_ends_the_program_gently_and_it_gives_its_lease_away() {
    let cluster = Cluster::from_env().await;
    cluster.apply(&json!(At::crd())).await;
    cluster.served("ats.cnat.programming-kubernetes.info").await;
    let (kubeconfig, namespace) = (cluster.kubeconfig().await, cluster.namespace().to_owned());
    let program = Program::start(|command| {
        command
            .env("KUBECONFIG", kubeconfig)
            .arg(format!("--namespace={namespace}"))
            .args(["--leader-elect", "--log-level=warn"])
            .arg(format!("--leader-elect-resource-namespace={namespace}"))
    });
    let holder = |lease: Option<&Lease>| {
        let spec = lease.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        spec.holder_identity.unwrap_or_default()
    };
    cluster.eventually(Some(&namespace), "at", |it| !holder(it).is_empty()).await;
    program.terminate();
    let ended = tokio::task::spawn_blocking(|| program.ended()).await.expect("it ends");
    assert_eq!(ended.code(), Some(0));
    // Without waiting: it did so before it ended.
    let leases: Api<Lease> = Api::default_namespaced(cluster.client());
    assert_eq!(holder(Some(&leases.get("at").await.expect("a lease"))), "");
    cluster.shutdown().await;
}

/// It waits for a server that does not answer, which nobody else needs to.
#[test]
fn a_second_signal_ends_the_program_at_once() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a place");
    let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join("silent-kubeconfig");
    let address = silent.local_addr().expect("an address");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "silent",
        "clusters": [{"name": "silent", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "silent", "context": {"cluster": "silent", "user": "nobody"}}],
    });
    std::fs::write(&kubeconfig, text.to_string()).expect("written");
    let mut program = Program::start(|command| {
        command
            .env("KUBECONFIG", kubeconfig)
            .args(["--leader-elect", "--leader-elect-resource-namespace=default"])
            // It tries for so long to get a lease, and does not leave off half-way.
            .args(["--leader-elect-lease-duration=3h", "--leader-elect-renew-deadline=2h"])
            .args(["--leader-elect-retry-period=1h", "--graceful-shutdown-timeout=1h"])
            .args(["--log-format=json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
    });
    // It has asked something, and is never told.
    let (mut asked, _) = silent.accept().expect("a connection");
    asked.read_exact(&mut [0; 4]).expect("a request");
    let mut log = BufReader::new(program.0.stderr.take().expect("its log"));
    program.terminate();
    let mut line = String::new();
    while !line.contains("a second signal ends it at once") {
        line.clear();
        assert_ne!(log.read_line(&mut line).expect("a line"), 0, "it ended at the first");
    }
    program.terminate();
    let mut rest = String::new();
    log.read_to_string(&mut rest).expect("a text");
    assert!(rest.ends_with("error: ended by a second signal\n"), "{rest}");
    assert_eq!(program.ended().code(), Some(1));
}

#[test]
fn its_manifests_say_at_which_path_it_is_called() {
    let manifests = at::operator().package().render().expect("manifests");
    let mut called = manifests.iter().filter(|it| it.kind() == "ValidatingWebhookConfiguration");
    let called = &called.next().expect("a configuration").object["webhooks"][0]["clientConfig"];
    assert_eq!(called["service"]["path"], "/validate-cnat-programming-kubernetes-info-v1alpha1-at");
    assert_eq!(called["service"]["namespace"], "at-system");
}

#[test]
fn its_manifests_have_the_sample_of_its_folder() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_at"));
    let told = program.args(["manifests", "--only", "samples"]).output().expect("it runs");
    let told = String::from_utf8(told.stdout).expect("a text");
    let samples = kubewright_testing::yaml(&told);
    let [sample] = &samples[..] else { panic!("one sample, and not {told}") };
    assert_eq!(sample["metadata"]["name"], "example-at");
    assert_eq!(sample["spec"], kubewright_testing::yaml(at::SAMPLE)[0]["spec"]);
}
