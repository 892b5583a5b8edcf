//! Stands in for nodes: no pod runs in a test, but whoever waits for one cannot tell.

use std::future::pending;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt as _};
use kubewright::informer::{Informer, Object, Scope, Source};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{Cluster, Running};

impl Cluster {
    /// Has every pod of the test's namespace run and be ready, at once and for as long as this is
    /// there. In memory, Deployments and StatefulSets say so of their pods, too; elsewhere there
    /// are controllers that do.
    pub fn run_pods(&self) -> Running {
        self.run_pods_in(self.namespace())
    }

    /// The same in another namespace.
    pub fn run_pods_in(&self, namespace: &str) -> Running {
        let (client, namespace) = (self.plain_client(), namespace.to_owned());
        let (shutdown, mut task) = (CancellationToken::new(), JoinSet::new());
        let (stop, is_alone) = (shutdown.clone(), self.is_virtual());
        task.spawn(async move {
            let workloads = async {
                if !is_alone {
                    pending::<()>().await;
                }
                let deployments = attend::<Deployment>(&client, &namespace);
                tokio::join!(deployments, attend::<StatefulSet>(&client, &namespace));
            };
            let attending = async { tokio::join!(attend::<Pod>(&client, &namespace), workloads) };
            stop.run_until_cancelled(attending).await;
        });
        Running::new(shutdown, task)
    }
}

/// A kind whose status somebody must write.
trait Attended: Object<DynamicType = ()> + Resource<Scope = NamespaceResourceScope> {
    /// What is to be said of it, unless it is said.
    fn news(&self) -> Option<Value>;
}

impl Attended for Pod {
    fn news(&self) -> Option<Value> {
        let status = self.status.as_ref();
        let is_said = status.and_then(|status| status.phase.as_deref()) != Some("Pending");
        let conditions = ["Initialized", "ContainersReady", "Ready"]
            .map(|kind| json!({"type": kind, "status": "True"}));
        (!is_said).then(|| json!({"phase": "Running", "conditions": conditions}))
    }
}

impl Attended for Deployment {
    fn news(&self) -> Option<Value> {
        let seen = self.status.as_ref().and_then(|status| status.observed_generation);
        let count = self.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        (seen != self.metadata.generation).then(|| {
            json!({
                "observedGeneration": self.metadata.generation, "replicas": count,
                "updatedReplicas": count, "readyReplicas": count, "availableReplicas": count,
                "conditions": [{
                    "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                    "message": "Deployment has minimum availability.",
                }],
            })
        })
    }
}

impl Attended for StatefulSet {
    fn news(&self) -> Option<Value> {
        let seen = self.status.as_ref().and_then(|status| status.observed_generation);
        let count = self.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        (seen != self.metadata.generation).then(|| {
            json!({
                "observedGeneration": self.metadata.generation, "replicas": count,
                "updatedReplicas": count, "currentReplicas": count, "readyReplicas": count,
                "availableReplicas": count,
            })
        })
    }
}

/// Says what is to be said of all objects of a kind.
async fn attend<K: Attended + Clone>(client: &Client, namespace: &str) {
    let scope = Scope::within([namespace]);
    let (informer, run) = Informer::<K>::new(Source::new(client.clone(), (), scope));
    let (tell, mut told) = watch::channel(());
    let _subscription = informer.subscribe(move |_| {
        tell.send_replace(());
    });
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let saying = async {
        while told.changed().await.is_ok() {
            for object in informer.list().unwrap_or_default() {
                let Some(news) = object.news() else { continue };
                let patch = Patch::Merge(json!({"status": news}));
                // It may be gone by now.
                let _ = api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await;
            }
        }
    };
    tokio::join!(run, saying);
}
