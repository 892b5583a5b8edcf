//! Volumes that are directories of this machine, from a claim to its end.

use std::path::Path;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams};
use serde_json::json;

use super::controllers::{client, create, until};
use super::*;
use crate::nodes::{Nodes, Runtime};

#[tokio::test(start_paused = true)]
async fn a_claim_gets_a_directory_where_its_first_pod_is_and_takes_it_along() {
    let root = tempfile::tempdir().expect("a directory");
    let nodes = Nodes {
        names: vec!["node".to_owned()],
        runtime: Runtime::Fake { stages: Vec::new() },
        volumes: root.path().to_owned(),
        ingress: None,
        scheduler: Default::default(),
    };
    let config = Config { nodes: Some(nodes), ..config(Storage::Memory) };
    let cluster = Cluster::start(config).await.expect("started");
    let client = client(&cluster);

    // Pods wait for the class as claims do: whoever comes first gets it later.
    let sets: Api<StatefulSet> = Api::default_namespaced(client.clone());
    let template = json!({
        "metadata": { "labels": { "app": "db" } },
        "spec": {
            "containers": [{
                "name": "db", "image": "db", "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
            }],
        },
    });
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let spec = json!({
        "replicas": 2, "serviceName": "db", "selector": { "matchLabels": { "app": "db" } },
        "template": template, "volumeClaimTemplates": [claim],
    });
    create(&sets, json!({ "metadata": { "name": "db" }, "spec": spec })).await;
    let ready = |set: &StatefulSet| set.status.as_ref().and_then(|status| status.ready_replicas);
    until(&sets, "db", |set| set.and_then(ready) == Some(2)).await;
    let classes: Api<StorageClass> = Api::all(client.clone());
    classes.get("standard").await.expect("there is a class");

    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client.clone());
    let claim = claims.get("data-db-1").await.expect("read");
    let status = claim.status.expect("a status");
    assert_eq!(status.phase.as_deref(), Some("Bound"));
    let name = claim.spec.and_then(|spec| spec.volume_name).expect("a volume");
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let volume = volumes.get(&name).await.expect("read");
    let path = volume.spec.and_then(|spec| spec.host_path).expect("a path").path;
    assert_eq!(Path::new(&path).parent(), Some(root.path()));
    std::fs::create_dir(&path).expect("whoever mounts it makes it");

    sets.delete("db", &DeleteParams::default()).await.expect("deleted");
    claims.delete("data-db-1", &DeleteParams::default()).await.expect("deleted");
    until(&volumes, &name, |volume| volume.is_none()).await;
    assert!(!Path::new(&path).exists(), "the directory is gone");
    cluster.shutdown().await;
}
