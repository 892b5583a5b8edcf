//! Every behaviour that makes a Kubernetes API, over TLS, on disk and on etcd. In memory, without a
//! socket: the tests of `cluster`.

use std::path::Path;

use kubewright_conformance::endpoint::Endpoint;
use kubewright_conformance::judge;
use kubewright_conformance::scenario::{self, Scenario};

use crate::server::{self, Upstream};

/// Scenarios at a time: some of them wait for most of theirs.
const MANNER: judge::Manner = judge::Manner { jobs: 8, is_patient: false };

#[tokio::test]
async fn the_program_passes_every_scenario_on_disk() {
    let home = tempfile::tempdir().expect("a directory");
    check(home.path(), &["--store", "embedded"], scenario::all()).await;
}

#[tokio::test]
async fn the_program_passes_every_scenario_of_routing() {
    if scenario::own_address().is_none() {
        eprintln!("skipped: this machine has no address but loopback, which no endpoint may have");
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    check(home.path(), &["--store", "embedded"], scenario::routing()).await;
}

#[tokio::test]
async fn the_program_passes_every_scenario_of_entering_pods() {
    let home = tempfile::tempdir().expect("a directory");
    let args = ["--ephemeral", "--node", "process", "--ingress-port", "0"];
    check(home.path(), &args, scenario::entering()).await;
}

#[tokio::test]
async fn the_program_passes_every_scenario_on_etcd() {
    let Some(upstream) = Upstream::find() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let etcd = upstream.etcd(&home.path().join("etcd"));
    let mut scenarios = scenario::all();
    if scenario::own_address().is_some() {
        scenarios.extend(scenario::routing());
    }
    check(home.path(), &["--store", &format!("etcd={}", etcd.url)], scenarios).await;
}

async fn check(home: &Path, args: &[&str], scenarios: Vec<Scenario>) {
    // The process may hold two cryptographic libraries; rustls wants to be told which one it uses.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let kubeconfig = home.join("config");
    let mut all = vec!["--port", "0", "--kubeconfig", kubeconfig.to_str().expect("text")];
    all.extend(args);
    let (mut program, _) = server::up(home, "judged", &all);
    let endpoint = Endpoint::from_file(&kubeconfig).await.expect("a kubeconfig");
    let expected = judge::expected_failures("kubewright").expect("a list");
    let verdict = judge::run_these(&endpoint, scenarios, None, &expected, MANNER).await;
    program.stop().await;
    let verdict = verdict.expect("a verdict");
    assert!(verdict.is_pass(), "{verdict}");
}
