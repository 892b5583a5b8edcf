//! Programs on a cluster with real containers.

use std::sync::mpsc;

use at::At;
use kube::CustomResourceExt as _;
use kubewright::Clock;
use kubewright::operator::{Host, Surrounding};
use kubewright::serve::Bind;
use kubewright::settings::{Layer, Settings};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workloads::Show;

use super::{PATIENCE, Site, get};
use crate::rust::run_as;

#[test]
fn at_prints_yay() {
    let Some(site) = Site::new() else { return };
    site.apply(&json!(At::crd()).to_string());
    site.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    site.apply(
        "{apiVersion: cnat.programming-kubernetes.info/v1alpha1, kind: At, metadata: {name: tea},
          spec: {schedule: '2020-01-01T00:00:00Z', command: echo YAY}}",
    );
    run_as(&site.user, |client| async {
        let mut settings = Settings::load(&Layer::default(), |_| None).expect("settings");
        settings.metrics.bind = Bind::Nowhere;
        settings.probes = Bind::Nowhere;
        let host = Host {
            client,
            clock: Clock::system(),
            settings,
            namespace: "default".to_owned(),
            surrounding: Surrounding::Beside,
            registry: Default::default(),
        };
        let stop = CancellationToken::new();
        let mut running = JoinSet::new();
        running.spawn(at::operator().serve(host, stop.clone()));
        tokio::task::block_in_place(|| site.until_phase("tea-pod", "Succeeded"));
        stop.cancel();
        running.join_next().await.expect("it ran").expect("it ended").expect("and well");
    });
    assert_eq!(site.kubectl(&["logs", "tea-pod"]), "YAY\n");
}

#[test]
fn workloads_serves_its_page_and_shows_its_logs() {
    let Some(site) = Site::new() else { return };
    let clusters = site.user.json(&["clusters", "--output", "json"]);
    let ingress = clusters[0]["ingress"].as_str().expect("a router").to_owned();
    let port = ingress.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let (tell, lines) = mpsc::channel::<String>();
    let (asked, is_asked) = tokio::sync::oneshot::channel::<()>();
    let mut asked = Some(asked);
    let watching = std::thread::spawn(move || {
        let mut seen = Vec::new();
        while let Ok(line) = lines.recv_timeout(PATIENCE) {
            if line.contains("You can now see your running service") {
                // The router hears of pods a moment after everybody else.
                while !get(port, "/hello").contains("Server name: hello-world-") {}
            }
            let is_access = line.contains("200");
            seen.push(line);
            if is_access && let Some(asked) = asked.take() {
                let _ = asked.send(());
            }
        }
        seen
    });
    run_as(&site.user, |client| async move {
        let show = Show::new(move |line| {
            let _ = tell.send(line.to_owned());
        });
        let interrupted = async {
            let seen = tokio::time::timeout(PATIENCE, is_asked).await;
            seen.expect("an access is logged").expect("somebody watches");
            Ok(())
        };
        workloads::run(&client, "foo", show, interrupted).await.expect("it runs");
    });
    let seen = watching.join().expect("it watches");
    for line in
        ["Creating namespace \"foo\".", "replicas are ready!", "Deleting namespace \"foo\"."]
    {
        assert!(seen.iter().any(|it| it == line), "{line} is not among {seen:?}");
    }
}
