//! The same operator once more, small, on the raw layers: a queue, two informers, and a loop.

use std::sync::Arc;

use at::{At, Phase, Step, plan, pod_name};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource as _};
use kubewright::informer::{Change, Informer, Scope, Source};
use kubewright::queue::{Outcome, Queue};
use kubewright::{Clock, ObjectKey};
use kubewright_testing::{Cluster, on_cluster};
use serde_json::json;
use tokio::task::JoinSet;

struct Raw {
    client: Client,
    clock: Clock,
    ats: Informer<At>,
    pods: Informer<Pod>,
    queue: Arc<Queue<ObjectKey>>,
}

impl Raw {
    fn start(cluster: &Cluster, tasks: &mut JoinSet<()>) -> Self {
        let (client, clock) = (cluster.client(), cluster.clock());
        let scope = Scope::within([cluster.namespace()]);
        let (ats, run_ats) = Informer::new(Source::new(client.clone(), (), scope.clone()));
        let (pods, run_pods) = Informer::new(Source::new(client.clone(), (), scope));
        tasks.spawn(run_ats);
        tasks.spawn(run_pods);
        Raw { client, clock, ats, pods, queue: Arc::default() }
    }

    async fn run(self) {
        let queue = Arc::clone(&self.queue);
        let _ats = self.ats.subscribe(move |change: &Change<At>| {
            let (Change::Applied { object, .. } | Change::Deleted(object)) = change;
            queue.add(ObjectKey::of(object.meta()));
        });
        let queue = Arc::clone(&self.queue);
        let _pods = self.pods.subscribe(move |change: &Change<Pod>| {
            let (Change::Applied { object, .. } | Change::Deleted(object)) = change;
            for owner in object.metadata.owner_references.iter().flatten() {
                queue.add(ObjectKey::new(object.metadata.namespace.as_deref(), &owner.name));
            }
        });
        while let Some(work) = self.queue.take().await {
            // Later and later after an error; after a while if there is a time; else not again.
            let outcome = self.reconcile(work.key()).await.unwrap_or(Outcome::Failed);
            work.finish(outcome);
        }
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Box<dyn std::error::Error>> {
        let Some(at) = self.ats.get(key)? else { return Ok(Outcome::Done) };
        let namespace = key.namespace().unwrap_or_default();
        let pod = self.pods.get(&ObjectKey::new(Some(namespace), &pod_name(&at)))?;
        let phase = match plan(&at, pod.as_deref(), self.clock.now()) {
            Step::Rest | Step::Watch | Step::Refuse(_) => return Ok(Outcome::Done),
            Step::Wait(wait) => return Ok(Outcome::After(wait)),
            Step::Launch(mut pod) => {
                pod.metadata.owner_references =
                    at.controller_owner_ref(&()).map(|owner| vec![owner]);
                let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
                pods.create(&PostParams::default(), &pod).await?;
                return Ok(Outcome::Done);
            }
            Step::Begin => Phase::Running,
            Step::End { .. } | Step::EndWithoutCommand => Phase::Done,
        };
        let ats: Api<At> = Api::namespaced(self.client.clone(), namespace);
        let patch = Patch::Merge(json!({"status": {"phase": phase}}));
        ats.patch_status(key.name(), &PatchParams::default(), &patch).await?;
        Ok(Outcome::Done)
    }
}

#[test]
fn the_raw_layers_are_enough_for_an_operator() {
    on_cluster(async |cluster| {
        // For the definition alone.
        cluster.run(at::operator()).await.stop().await;
        let mut tasks = JoinSet::new();
        let raw = Raw::start(cluster, &mut tasks);
        tasks.spawn(raw.run());
        let mut sample = kubewright_testing::yaml(include_str!("../../samples/at.yaml"));
        sample[0]["metadata"]["namespace"] = json!(cluster.namespace());
        cluster.apply(&sample[0]).await;
        let namespace = Some(cluster.namespace());
        cluster.eventually::<Pod>(namespace, "example-at-pod", |pod| pod.is_some()).await;
        let pods: Api<Pod> = Api::default_namespaced(cluster.client());
        let patch = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
        let ended = pods.patch_status("example-at-pod", &PatchParams::default(), &patch).await;
        ended.expect("a status");
        let is_done = |at: Option<&At>| at.is_some_and(|at| at.phase() == Phase::Done);
        cluster.eventually(namespace, "example-at", is_done).await;
        tasks.shutdown().await;
    });
}
