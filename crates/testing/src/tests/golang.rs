//! One Lease, and those who stand for it: we, and a program on client-go.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kubewright::Clock;
use kubewright::election::{Election, Status, Terms};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::Cluster;

/// Long enough for a machine under load.
const PATIENCE: Duration = Duration::from_secs(60);

/// One of ours that stands for the lease.
struct Ours {
    status: watch::Receiver<Status>,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

impl Ours {
    fn stand(cluster: &Cluster) -> Self {
        let terms =
            Terms::new(Duration::from_secs(3), Duration::from_secs(2), Duration::from_millis(200));
        let election =
            Election::new(cluster.client(), "default", "shared", "ours", Clock::system())
                .terms(terms.expect("times that fit"));
        let (status, shutdown) = (election.status(), CancellationToken::new());
        let run = election.run(shutdown.clone(), |leadership| async move {
            leadership.lost().cancelled().await;
            Ok::<(), std::convert::Infallible>(())
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { run.await.expect("it never fails") });
        Ours { status, shutdown, tasks }
    }

    async fn leads(&mut self) {
        let leads = self.status.wait_for(|status| status.leading);
        timeout(PATIENCE, leads).await.expect("in time").expect("it runs");
    }

    async fn stop(mut self) {
        self.shutdown.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// A program on client-go that stands for the lease. It resigns when its input ends.
struct Theirs(Child);

impl Theirs {
    async fn stand(program: &Path, cluster: &Cluster) -> Self {
        let child = Command::new(program)
            .arg(cluster.kubeconfig().await)
            .args(["default", "shared", "theirs"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        Theirs(child.expect("the program runs"))
    }

    fn resign(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("it ends");
    }
}

/// Ends it as a loss of power would.
impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Who leads, and how often that has changed, when it is `who`.
async fn led_by(cluster: &Cluster, who: &str) -> i32 {
    let is_so = |lease: Option<&Lease>| {
        let spec = lease.and_then(|lease| lease.spec.as_ref());
        spec.is_some_and(|spec| spec.holder_identity.as_deref() == Some(who))
    };
    let lease = cluster.eventually(Some("default"), "shared", is_so).await.expect("a lease");
    lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or_default()
}

#[tokio::test]
async fn we_and_client_go_take_turns_with_one_lease() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = build(folder.path()) else { return };
    let cluster = Cluster::start().await;
    let mut ours = Ours::stand(&cluster);
    ours.leads().await;
    let theirs = Theirs::stand(&program, &cluster).await;
    let before = led_by(&cluster, "ours").await;

    // Given away, and taken at once.
    ours.stop().await;
    assert_eq!(led_by(&cluster, "theirs").await, before + 1);
    let mut ours = Ours::stand(&cluster);
    theirs.resign();
    ours.leads().await;
    assert_eq!(led_by(&cluster, "ours").await, before + 2);

    // Left behind, and taken when it has ended.
    let theirs = Theirs::stand(&program, &cluster).await;
    drop(ours);
    assert_eq!(led_by(&cluster, "theirs").await, before + 3);
    let mut ours = Ours::stand(&cluster);
    drop(theirs);
    ours.leads().await;
    assert_eq!(led_by(&cluster, "ours").await, before + 4);
    ours.stop().await;
    cluster.shutdown().await;
}

/// The program, where there is Go with all that it is made of. Nothing is fetched here.
fn build(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/clients/go");
    let program = folder.join("client");
    let build = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .env("GOPROXY", "off")
        .env("GOFLAGS", "-mod=readonly")
        .current_dir(&source)
        .output();
    match build {
        Ok(output) if output.status.success() => return Some(program),
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            // What is not in the cache of modules cannot be had; anything else is our mistake.
            assert!(why.contains("module lookup disabled"), "{why}");
            eprintln!("skipped: `go mod download` in {} brings the modules", source.display());
        }
        Err(_) => eprintln!("skipped: there is no `go`"),
    }
    None
}
