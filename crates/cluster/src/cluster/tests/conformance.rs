//! Every behaviour that makes a Kubernetes API, in memory and without a socket.

use kube::Client;
use kubewright_apiserver::user::{MASTERS, User};
use kubewright_conformance::endpoint::Endpoint;
use kubewright_conformance::judge;
use kubewright_conformance::scenario::{self, Scenario};

use super::super::{Cluster, Config, Storage};
use super::config;
use crate::Clock;

/// Scenarios at a time: some of them wait for most of theirs.
const MANNER: judge::Manner = judge::Manner { jobs: 8, is_patient: false };

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_in_memory_passes_every_scenario() {
    check(scenario::all()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_in_memory_passes_every_scenario_of_routing() {
    if scenario::own_address().is_none() {
        eprintln!("skipped: this machine has no address but loopback, which no endpoint may have");
        return;
    }
    check(scenario::routing()).await;
}

async fn check(scenarios: Vec<Scenario>) {
    let config = Config { clock: Clock::System, ..config(Storage::Memory) };
    let cluster = Cluster::start(config).await.expect("started");
    let admin = cluster.server().as_user(User::new("admin", [MASTERS.to_owned()]));
    let anybody = cluster.server().as_anybody();
    let endpoint = Endpoint::new(Client::new(admin, "default"), Client::new(anybody, "default"));

    let expected = judge::expected_failures("kubewright").expect("a list");
    let verdict = judge::run_these(&endpoint, scenarios, None, &expected, MANNER).await;
    let verdict = verdict.expect("a verdict");
    assert!(verdict.is_pass(), "{verdict}");
    cluster.shutdown().await;
}
