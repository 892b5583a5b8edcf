//! Nodes that fall silent and pods that are left over, which takes minutes that pass at once.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::controllers::{create, start, until};

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
