//! Stands in for nodes: no pod runs in a test, but whoever waits for one cannot tell.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use kubewright::informer::{Informer, Scope, Source};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{Cluster, Running};

impl Cluster {
    /// Has every pod of the test's namespace run and be ready, at once and for as long as this is
    /// there. What becomes of their Deployments and StatefulSets is for the cluster's controllers
    /// to say.
    pub fn run_pods(&self) -> Running {
        self.run_pods_in(self.namespace())
    }

    /// The same in another namespace.
    pub fn run_pods_in(&self, namespace: &str) -> Running {
        let (client, namespace) = (self.plain_client(), namespace.to_owned());
        let (shutdown, mut task) = (CancellationToken::new(), JoinSet::new());
        let stop = shutdown.clone();
        task.spawn(async move {
            stop.run_until_cancelled(attend(&client, &namespace)).await;
        });
        Running::new(shutdown, task)
    }
}

/// What is to be said of a pod, unless it is said.
fn news(pod: &Pod) -> Option<Value> {
    let status = pod.status.as_ref();
    let is_said = status.and_then(|status| status.phase.as_deref()) != Some("Pending");
    let conditions = ["Initialized", "ContainersReady", "Ready"]
        .map(|kind| json!({"type": kind, "status": "True"}));
    (!is_said).then(|| json!({"phase": "Running", "conditions": conditions}))
}

/// Says what is to be said of all pods.
async fn attend(client: &Client, namespace: &str) {
    let scope = Scope::within([namespace]);
    let (informer, run) = Informer::<Pod>::new(Source::new(client.clone(), (), scope));
    let (tell, mut told) = watch::channel(());
    let _subscription = informer.subscribe(move |_| {
        tell.send_replace(());
    });
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let saying = async {
        while told.changed().await.is_ok() {
            for pod in informer.list().unwrap_or_default() {
                let Some(news) = news(&pod) else { continue };
                let patch = Patch::Merge(json!({"status": news}));
                // It may be gone by now.
                let _ = pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await;
            }
        }
    };
    tokio::join!(run, saying);
}
