//! Nodes that fall silent and pods that are left over, which takes minutes that pass at once.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ComponentStatus, Endpoints, Node, Pod, Service};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kubewright::{Cache, Clock};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::controllers::{create, start, until};
use super::*;
use crate::nodes::{Nodes, Runtime};

/// A node that says it is ready.
async fn node(client: &Client, name: &str) -> Api<Node> {
    let nodes: Api<Node> = Api::all(client.clone());
    create(&nodes, json!({ "metadata": { "name": name } })).await;
    beat(&nodes, name, "2026-01-01T00:00:00Z").await;
    until(&nodes, name, |node| node.is_some_and(|node| taints(node).is_empty())).await;
    nodes
}

async fn beat(nodes: &Api<Node>, name: &str, at: &str) {
    let condition = json!({
        "type": "Ready", "status": "True", "lastHeartbeatTime": at, "lastTransitionTime": at,
    });
    let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
    nodes.patch_status(name, &PatchParams::default(), &patch).await.expect("patched");
}

async fn run_pod(client: &Client, name: &str, node: &str) -> Api<Pod> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let spec = json!({ "nodeName": node, "containers": [{ "name": "main", "image": "i" }] });
    let metadata = json!({ "name": name, "labels": { "app": "web" } });
    create(&pods, json!({ "metadata": metadata, "spec": spec })).await;
    let ready = json!({ "type": "Ready", "status": "True" });
    let status = json!({
        "phase": "Running", "podIP": "10.1.0.1", "podIPs": [{ "ip": "10.1.0.1" }], "conditions": [ready],
    });
    let patch = Patch::Strategic(json!({ "status": status }));
    pods.patch_status(name, &PatchParams::default(), &patch).await.expect("patched");
    pods
}

fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|it| it.type_ == "Ready" && it.status == "True")
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_loses_its_pods_if_others_are_heard_of() {
    let (cluster, client) = start().await;
    let nodes = node(&client, "silent").await;
    node(&client, "loud").await;
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let spec = json!({ "selector": { "app": "web" }, "ports": [{ "port": 80 }] });
    create(&services, json!({ "metadata": { "name": "web" }, "spec": spec })).await;
    let pods = run_pod(&client, "web", "silent").await;
    let endpoints: Api<Endpoints> = Api::default_namespaced(client.clone());
    let serves = |it: &Endpoints| it.subsets.iter().flatten().any(|it| it.addresses.is_some());
    until(&endpoints, "web", |it| it.is_some_and(serves)).await;

    // Only this one renews its lease.
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    create(&leases, json!({ "metadata": { "name": "loud" }, "spec": {} })).await;
    let beats = async {
        for second in 0.. {
            tokio::time::sleep(std::time::Duration::from_secs(10)).await;
            let at = format!("2026-01-01T{:02}:{:02}:00.000000Z", second / 60, second % 60);
            let patch = Patch::Merge(json!({ "spec": { "renewTime": at } }));
            leases.patch("loud", &PatchParams::default(), &patch).await.expect("renewed");
        }
    };
    let fate = async {
        let begin = tokio::time::Instant::now();
        let falls = [
            "node.kubernetes.io/unreachable:NoSchedule",
            "node.kubernetes.io/unreachable:NoExecute",
        ];
        until(&nodes, "silent", |node| node.is_some_and(|node| taints(node) == falls)).await;
        assert!((40..70).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
        until(&pods, "web", |pod| pod.is_some_and(|pod| !is_ready(pod))).await;
        until(&endpoints, "web", |it| it.is_some_and(|it| !serves(it))).await;
        until(&pods, "web", |pod| pod.is_none_or(|it| it.metadata.deletion_timestamp.is_some()))
            .await;
        // Every pod bears it for five minutes, unless it says otherwise.
        assert!((330..400).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
        assert!(taints(&nodes.get("loud").await.expect("read")).is_empty());
    };
    tokio::select! {
        () = fate => {}
        () = beats => unreachable!("hearts do not stop"),
    }
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn when_no_node_is_heard_of_no_pod_leaves() {
    let (cluster, client) = start().await;
    let nodes = node(&client, "only").await;
    let pods = run_pod(&client, "stays", "only").await;
    let marked = ["node.kubernetes.io/unreachable:NoSchedule"];
    until(&nodes, "only", |node| node.is_some_and(|node| taints(node) == marked)).await;
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    assert_eq!(taints(&nodes.get("only").await.expect("read")), marked);
    assert_eq!(pods.get("stays").await.expect("read").metadata.deletion_timestamp, None);
    beat(&nodes, "only", "2026-01-01T02:00:00Z").await;
    until(&nodes, "only", |node| node.is_some_and(|node| taints(node).is_empty())).await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_node_that_is_gone_are_collected() {
    let (cluster, client) = start().await;
    let nodes = node(&client, "gone").await;
    let pods = run_pod(&client, "orphan", "gone").await;
    nodes.delete("gone", &DeleteParams::default()).await.expect("deleted");
    let begin = tokio::time::Instant::now();
    until(&pods, "orphan", |pod| pod.is_none()).await;
    assert!((39..60).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
    cluster.shutdown().await;
}

/// A cluster with a simulated node of its own, and an agent that plays another.
async fn with_agent(names: [&str; 2]) -> (Cluster, Client, CancellationToken, JoinSet<()>) {
    let nodes = Nodes {
        names: vec![names[0].to_owned()],
        runtime: Runtime::Fake { stages: Vec::new() },
        volumes: std::env::temp_dir(),
        ingress: None,
        scheduler: Default::default(),
    };
    let config = Config { nodes: Some(nodes), ..config(Storage::Memory) };
    let cluster = Cluster::start(config).await.expect("started");
    let client = super::controllers::client(&cluster);
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    let (cache, informing) = Cache::new(client.clone());
    tasks.spawn(informing);
    let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let fake = kubewright_node::runtime::Fake::new(clock.clone(), Vec::new()).called(names[1]);
    let config = kubewright_node::Config {
        nodes: vec![names[1].to_owned()],
        labels: Default::default(),
        taints: Vec::new(),
        machine: kubewright_node::Machine::simulated(),
        runtime: Arc::new(fake),
        sees_all: false,
        server: None,
        metrics: None,
        clock,
    };
    let (agents, shutdown) = (client.clone(), stop.clone());
    tasks.spawn(async move { kubewright_node::run(agents, &cache, config, shutdown).await });
    (cluster, client, stop, tasks)
}

/// Pods that are there to stay, by their node; none if not all run.
async fn running(pods: &Api<Pod>) -> Option<Vec<String>> {
    let all = pods.list(&Default::default()).await.expect("listed").items;
    let staying = all.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    staying
        .map(|pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            phase.filter(|phase| *phase == "Running")?;
            pod.spec.as_ref()?.node_name.clone()
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_falls_silent_are_replaced_on_another() {
    let (cluster, client, stop, mut tasks) = with_agent(["loud", "silent"]).await;
    let nodes: Api<Node> = Api::all(client.clone());
    let is_ready = |node: &Node| {
        let mut conditions = node.status.iter().flat_map(|it| it.conditions.iter().flatten());
        conditions.any(|it| it.type_ == "Ready" && it.status == "True") && taints(node).is_empty()
    };
    for name in ["loud", "silent"] {
        until(&nodes, name, |node| node.is_some_and(is_ready)).await;
    }
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "i" }] },
    });
    let spec = json!({
        "replicas": 4, "selector": { "matchLabels": { "app": "web" } }, "template": template,
    });
    create(&deployments, json!({ "metadata": { "name": "web" }, "spec": spec })).await;
    let is_up = |it: Option<&Deployment>| {
        let status = it.and_then(|it| it.status.as_ref());
        status.and_then(|status| status.available_replicas) == Some(4)
    };
    until(&deployments, "web", is_up).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut before = running(&pods).await.expect("all run");
    before.sort();
    assert_eq!(before, ["loud", "loud", "silent", "silent"]);
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    until(&deployments, "web", |it| !is_up(it)).await;
    until(&deployments, "web", is_up).await;
    assert_eq!(running(&pods).await.expect("all run"), ["loud"; 4]);
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_puts_right_what_others_say_of_it_and_of_its_pods() {
    let (cluster, client, stop, mut tasks) = with_agent(["other", "own"]).await;
    let nodes: Api<Node> = Api::all(client.clone());
    let is_ready = |node: &Node| {
        let mut conditions = node.status.iter().flat_map(|it| it.conditions.iter().flatten());
        conditions.any(|it| it.type_ == "Ready" && it.status == "True")
    };
    until(&nodes, "own", |node| node.is_some_and(is_ready)).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let spec = json!({ "nodeName": "own", "containers": [{ "name": "main", "image": "i" }] });
    create(&pods, json!({ "metadata": { "name": "web" }, "spec": spec })).await;
    let runs = |pod: &Pod| {
        let status = pod.status.as_ref();
        let mut containers = status.iter().flat_map(|it| it.container_statuses.iter().flatten());
        status.and_then(|it| it.phase.as_deref()) == Some("Running")
            && containers.any(|it| it.ready)
    };
    until(&pods, "web", |pod| pod.is_some_and(runs)).await;
    let gone = json!({ "type": "Ready", "status": "Unknown" });
    let wrong = Patch::Strategic(json!({ "status": { "conditions": [gone] } }));
    let altered = nodes.patch_status("own", &PatchParams::default(), &wrong).await;
    assert!(!is_ready(&altered.expect("patched")));
    until(&nodes, "own", |node| node.is_some_and(is_ready)).await;
    let wrong = Patch::Merge(json!({ "status": { "phase": "Pending", "containerStatuses": [] } }));
    let altered = pods.patch_status("web", &PatchParams::default(), &wrong).await;
    assert!(!runs(&altered.expect("patched")));
    until(&pods, "web", |pod| pod.is_some_and(runs)).await;
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_scheduler_is_healthy_where_nodes_are() {
    let scheduler = |client: Client| async move {
        let parts: Api<ComponentStatus> = Api::all(client);
        let found = parts.get("scheduler").await.expect("it is told of");
        found.conditions.unwrap_or_default()[0].status.clone()
    };
    let (cluster, client) = start().await;
    assert_eq!(scheduler(client).await, "False");
    cluster.shutdown().await;
    let (cluster, client, stop, mut tasks) = with_agent(["own", "other"]).await;
    assert_eq!(scheduler(client).await, "True");
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    cluster.shutdown().await;
}
