//! What the controllers of workloads bring about, seen by a client. Nothing runs pods: they become
//! ready by a status patch.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{
    ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
};
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod, ReplicationController};
use k8s_openapi::api::events::v1::Event;
use kube::Resource;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kubewright::informer::{Change, Informer, Source};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Cluster;

/// A cluster in which every pod is ready as soon as it is there, for as long as the second is held.
async fn living() -> (Cluster, JoinSet<()>) {
    let cluster = Cluster::start().await;
    let (informer, run) = Informer::<Pod>::new(Source::all(cluster.client()));
    let (tell, mut told) = mpsc::unbounded_channel();
    let subscription = informer.subscribe(move |change| {
        if let Change::Applied { object, .. } = change {
            // The test is over: nobody waits any more.
            let _ = tell.send(Arc::clone(object));
        }
    });
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let mut tasks = JoinSet::new();
    tasks.spawn(run);
    tasks.spawn(async move {
        let _subscription = subscription;
        while let Some(pod) = told.recv().await {
            let is_deleted = pod.metadata.deletion_timestamp.is_some();
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            if !is_deleted && phase != Some("Running") {
                make_ready(&pods, pod.metadata.name.as_deref().unwrap_or_default()).await;
            }
        }
    });
    (cluster, tasks)
}

async fn make_ready(pods: &Api<Pod>, name: &str) {
    let ready = json!({ "type": "Ready", "status": "True",
                        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let status = json!({ "status": { "phase": "Running", "conditions": [ready] } });
    // It may be gone already.
    let _ = pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await;
}

async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize,
{
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("created")
}

async fn merge<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
}

/// The names of all objects there are, in order.
async fn names<K>(api: &Api<K>) -> Vec<String>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let list = api.list(&ListParams::default()).await.expect("listed");
    list.into_iter().filter_map(|object| object.meta().name.clone()).collect()
}

/// What was told of objects of a kind, in order, by whom and in which words.
async fn told(cluster: &Cluster, kind: &str) -> Vec<String> {
    let events: Api<Event> = Api::default_namespaced(cluster.client());
    let list = events.list(&ListParams::default()).await.expect("listed");
    let mut about: Vec<Event> = list
        .into_iter()
        .filter(|event| event.regarding.as_ref().and_then(|it| it.kind.as_deref()) == Some(kind))
        .collect();
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    // Names end in the moment; times have no parts of seconds.
    about.sort_by_key(|event| part(&event.metadata.name).rsplit('.').next().map(str::to_owned));
    about
        .iter()
        .map(|it| {
            format!("{} {} {}", part(&it.reporting_controller), part(&it.reason), part(&it.note))
        })
        .collect()
}

fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": image }] },
    })
}

fn workload(kind: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": "web" },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": template("v1") },
    });
    for (key, value) in spec.as_object().expect("fields") {
        object["spec"][key] = value.clone();
    }
    object
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_has_as_many_pods_as_it_says() {
    let (cluster, _living) = living().await;
    let sets: Api<ReplicaSet> = Api::default_namespaced(cluster.client());
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    create(&sets, workload("ReplicaSet", json!({ "replicas": 3 }))).await;
    let has = |count: i32| {
        move |set: Option<&ReplicaSet>| {
            let status = set.and_then(|set| set.status.as_ref());
            status.is_some_and(|status| {
                status.replicas == count && status.available_replicas.unwrap_or_default() == count
            })
        }
    };
    cluster.eventually(Some("default"), "web", has(3)).await;
    let first = names(&pods).await;
    assert_eq!(first.len(), 3);

    // One that is deleted is replaced, one that is not selected any more is let go and replaced.
    pods.delete(&first[0], &DeleteParams::default()).await.expect("deleted");
    cluster.eventually::<Pod>(Some("default"), &first[0], |pod| pod.is_none()).await;
    merge(&pods, &first[1], json!({ "metadata": { "labels": { "app": "other" } } })).await;
    let is_free = |pod: Option<&Pod>| {
        pod.is_some_and(|pod| {
            pod.metadata.owner_references.as_deref().unwrap_or_default().is_empty()
        })
    };
    cluster.eventually(Some("default"), &first[1], is_free).await;
    cluster.eventually(Some("default"), "web", has(3)).await;
    assert_eq!(names(&pods).await.len(), 4);

    // It comes back to one that looks for it.
    merge(&sets, "web", json!({ "spec": { "replicas": 1 } })).await;
    cluster.eventually(Some("default"), "web", has(1)).await;
    merge(&pods, &first[1], json!({ "metadata": { "labels": { "app": "web" } } })).await;
    let is_owned =
        |pod: Option<&Pod>| pod.is_none_or(|pod| pod.metadata.owner_references.is_some());
    cluster.eventually(Some("default"), &first[1], is_owned).await;
    cluster.eventually(Some("default"), "web", has(1)).await;
    let told = told(&cluster, "ReplicaSet").await;
    let created = format!("replicaset-controller SuccessfulCreate Created pod: {}", first[0]);
    assert!(told.contains(&created), "{told:?}");
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_replication_controller_says_why_it_has_no_pods() {
    let cluster = Cluster::start().await;
    let controllers: Api<ReplicationController> = Api::default_namespaced(cluster.client());
    let mut object = workload("ReplicationController", json!({ "selector": { "app": "web" } }));
    object["apiVersion"] = "v1".into();
    object["spec"]["template"]["spec"]["serviceAccountName"] = "nobody".into();
    create(&controllers, object).await;
    let has_failed = |controller: Option<&ReplicationController>| {
        let status = controller.and_then(|controller| controller.status.as_ref());
        let conditions = status.and_then(|status| status.conditions.as_deref());
        conditions.unwrap_or_default().iter().any(|condition| {
            condition.type_ == "ReplicaFailure"
                && condition.reason.as_deref() == Some("FailedCreate")
                && condition.message.as_deref().is_some_and(|it| it.contains("serviceaccount"))
        })
    };
    cluster.eventually(Some("default"), "web", has_failed).await;
    cluster.shutdown().await;
}

fn progress(deployment: Option<&Deployment>) -> Option<&str> {
    let status = deployment?.status.as_ref()?;
    let conditions = status.conditions.as_deref()?;
    let progress = conditions.iter().find(|condition| condition.type_ == "Progressing");
    progress?.reason.as_deref()
}

fn is_rolled_out(revision: &'static str) -> impl Fn(Option<&Deployment>) -> bool {
    move |deployment| {
        let Some(it) = deployment else { return false };
        let annotations = it.metadata.annotations.clone().unwrap_or_default();
        let found = annotations.get("deployment.kubernetes.io/revision");
        let status = it.status.clone().unwrap_or_default();
        found.is_some_and(|found| found == revision)
            && status.observed_generation == it.metadata.generation
            && status.replicas == Some(3)
            && status.updated_replicas == Some(3)
            && status.available_replicas == Some(3)
            && progress(deployment) == Some("NewReplicaSetAvailable")
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_rolls_to_a_new_template_and_back() {
    let (cluster, _living) = living().await;
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    let sets: Api<ReplicaSet> = Api::default_namespaced(cluster.client());
    create(&deployments, workload("Deployment", json!({ "replicas": 3 }))).await;
    cluster.eventually(Some("default"), "web", is_rolled_out("1")).await;
    let first = names(&sets).await;

    merge(&deployments, "web", json!({ "spec": { "template": template("v2") } })).await;
    cluster.eventually(Some("default"), "web", is_rolled_out("2")).await;
    let is_empty = |set: Option<&ReplicaSet>| {
        set.and_then(|set| set.status.as_ref()).is_some_and(|status| status.replicas == 0)
    };
    cluster.eventually(Some("default"), &first[0], is_empty).await;
    assert_eq!(names(&sets).await.len(), 2);

    merge(&deployments, "web", json!({ "spec": { "template": template("v1") } })).await;
    cluster.eventually(Some("default"), "web", is_rolled_out("3")).await;
    let back = sets.get(&first[0]).await.expect("it is there again");
    let annotations = back.metadata.annotations.expect("annotations");
    assert_eq!(annotations["deployment.kubernetes.io/revision-history"], "1");
    let told = told(&cluster, "Deployment").await;
    let scaled = |what: &str| format!("deployment-controller ScalingReplicaSet {what}");
    let name = &first[0];
    assert_eq!(told[0], scaled(&format!("Scaled up replica set {name} from 0 to 3")));
    assert!(
        told.contains(&scaled(&format!("Scaled down replica set {name} from 1 to 0"))),
        "{told:?}"
    );
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_does_not_get_on_says_so() {
    let cluster = Cluster::start().await;
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    let spec = json!({ "replicas": 1, "progressDeadlineSeconds": 10 });
    create(&deployments, workload("Deployment", spec)).await;
    let is_late = |it: Option<&Deployment>| progress(it) == Some("ProgressDeadlineExceeded");
    cluster.eventually(Some("default"), "web", is_late).await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_has_a_pod_for_each_node_that_fits() {
    let (cluster, _living) = living().await;
    let nodes: Api<Node> = Api::all(cluster.client());
    let sets: Api<DaemonSet> = Api::default_namespaced(cluster.client());
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    for name in ["a", "b"] {
        create(&nodes, json!({ "metadata": { "name": name } })).await;
    }
    create(&sets, workload("DaemonSet", json!({}))).await;
    let serves = |nodes: i32, updated: i32| {
        move |set: Option<&DaemonSet>| {
            let status = set.and_then(|set| set.status.clone()).unwrap_or_default();
            status.desired_number_scheduled == nodes
                && status.number_ready == nodes
                && status.updated_number_scheduled == Some(updated)
                && status.observed_generation == set.and_then(|set| set.metadata.generation)
        }
    };
    cluster.eventually(Some("default"), "web", serves(2, 2)).await;
    // A node that keeps pods away drives out the one it has.
    let taint = json!({ "key": "mine", "effect": "NoExecute" });
    merge(&nodes, "b", json!({ "spec": { "taints": [taint] } })).await;
    cluster.eventually(Some("default"), "web", serves(1, 1)).await;
    create(&nodes, json!({ "metadata": { "name": "c" } })).await;
    cluster.eventually(Some("default"), "web", serves(2, 2)).await;
    let before = names(&pods).await;
    merge(&sets, "web", json!({ "spec": { "template": template("v2") } })).await;
    cluster.eventually(Some("default"), "web", serves(2, 2)).await;
    assert!(names(&pods).await.iter().all(|name| !before.contains(name)));
    let revisions: Api<ControllerRevision> = Api::default_namespaced(cluster.client());
    assert_eq!(names(&revisions).await.len(), 2);
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_numbers_its_pods_and_keeps_their_claims() {
    let (cluster, _living) = living().await;
    let sets: Api<StatefulSet> = Api::default_namespaced(cluster.client());
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(cluster.client());
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"],
                  "resources": { "requests": { "storage": "1Gi" } } },
    });
    let spec = json!({
        "replicas": 3, "serviceName": "web", "volumeClaimTemplates": [claim],
        "persistentVolumeClaimRetentionPolicy": { "whenScaled": "Delete" },
    });
    create(&sets, workload("StatefulSet", spec)).await;
    let serves = |replicas: i32| {
        move |set: Option<&StatefulSet>| {
            let status = set.and_then(|set| set.status.clone()).unwrap_or_default();
            status.replicas == replicas
                && status.available_replicas == Some(replicas)
                && status.current_revision == status.update_revision
                && status.observed_generation == set.and_then(|set| set.metadata.generation)
        }
    };
    cluster.eventually(Some("default"), "web", serves(3)).await;
    assert_eq!(names(&pods).await, ["web-0", "web-1", "web-2"]);
    assert_eq!(names(&claims).await, ["data-web-0", "data-web-1", "data-web-2"]);

    merge(&sets, "web", json!({ "spec": { "template": template("v2") } })).await;
    cluster.eventually(Some("default"), "web", serves(3)).await;
    let pod = pods.get("web-0").await.expect("read");
    let image = pod.spec.and_then(|spec| spec.containers.into_iter().next()?.image);
    assert_eq!(image.as_deref(), Some("v2"));

    merge(&sets, "web", json!({ "spec": { "replicas": 1 } })).await;
    cluster.eventually(Some("default"), "web", serves(1)).await;
    cluster
        .eventually::<PersistentVolumeClaim>(Some("default"), "data-web-1", |it| it.is_none())
        .await;
    assert!(claims.get_opt("data-web-0").await.expect("read").is_some());
    let told = told(&cluster, "StatefulSet").await;
    let first = "statefulset-controller SuccessfulCreate Create Claim data-web-0 Pod web-0 in \
                 StatefulSet web success";
    assert_eq!(told[0], first);
    cluster.shutdown().await;
}

/// A pod was deleted at once because another had been on the same missing node before.
#[tokio::test(start_paused = true)]
async fn each_pod_waits_its_own_time_for_a_node_that_is_missing() {
    let cluster = Cluster::start().await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let pod = |name: &str| {
        json!({
            "metadata": { "name": name },
            "spec": { "nodeName": "nowhere", "containers": [{ "name": "c", "image": "i" }] },
        })
    };
    let names = async || -> Vec<String> {
        let listed = pods.list(&ListParams::default()).await.expect("a list");
        listed.items.into_iter().filter_map(|pod| pod.metadata.name).collect()
    };
    create(&pods, pod("early")).await;
    tokio::time::sleep(Duration::from_secs(35)).await;
    create(&pods, pod("late")).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(names().await, ["late"]);
    tokio::time::sleep(Duration::from_secs(35)).await;
    assert_eq!(names().await, [""; 0]);
    cluster.shutdown().await;
}
