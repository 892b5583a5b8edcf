//! Clusters for tests, a line of YAML for each object.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use kubewright::ObjectKey;
use kubewright_apimachinery::yaml;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::config;
use crate::pod::Pod;
use crate::profile::Profile;
use crate::profile::registry::{Around, Registry};
use crate::snapshot::Snapshot;

/// The profile that everybody has.
pub(crate) fn profile() -> Profile {
    profile_of("{schedulerName: default-scheduler}")
}

/// A profile, as configuration has it.
pub(crate) fn profile_of(text: &str) -> Profile {
    let config: config::Profile = read(text);
    Profile::new(&config, &Registry::builtin(), &Around::default()).expect("a profile")
}

/// A pod. It has a container, if it does not say which.
pub(crate) fn pod(text: &str) -> Arc<Pod> {
    let mut value = tree(text);
    let name = value["metadata"]["name"].as_str().unwrap_or("new").to_owned();
    let metadata = &mut value["metadata"];
    for (field, default) in [("name", &name), ("namespace", &"default".to_owned()), ("uid", &name)]
    {
        if metadata[field].is_null() {
            metadata[field] = json!(default);
        }
    }
    quote_amounts(&mut value);
    if value["spec"]["containers"].is_null() {
        value["spec"]["containers"] = json!([{"name": "main", "image": "app"}]);
    }
    Arc::new(Pod::new(Arc::new(serde_json::from_value::<core::Pod>(value).expect("a pod"))))
}

/// A cluster of nodes, pods and what they refer to. A node has four processors, 8 GiB of memory
/// and room for 110 pods, if it does not say so.
pub(crate) fn snapshot(text: &str) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let value = tree(line);
        match value["kind"].as_str().unwrap_or_default() {
            "Node" => snapshot.set_node(node(line)),
            "Pod" => {
                let pod = pod(line);
                match (pod.node_name(), pod.nominated_node().map(Arc::from)) {
                    (Some(_), _) => snapshot.set_pod(pod),
                    (None, Some(node)) => snapshot.nominated.set(pod, node),
                    (None, None) => panic!("the pod has no node: {line}"),
                }
            }
            "Namespace" => snapshot.set_namespace(&read(line)),
            "Service" => snapshot.workloads.set_service(&Arc::new(read(line))),
            "ReplicaSet" => snapshot.workloads.set_replica_set(&read(line)),
            "PersistentVolumeClaim" => {
                let claim: core::PersistentVolumeClaim = read(line);
                snapshot.storage.claims.insert(ObjectKey::of(&claim.metadata), Arc::new(claim));
            }
            "PersistentVolume" => {
                let volume: core::PersistentVolume = read(line);
                let name = volume.metadata.name.clone().expect("a name");
                snapshot.storage.volumes.insert(name, Arc::new(volume));
            }
            "StorageClass" => {
                let class: k8s_openapi::api::storage::v1::StorageClass = read(line);
                let name = class.metadata.name.clone().expect("a name");
                snapshot.storage.classes.insert(name, Arc::new(class));
            }
            "CSINode" => {
                let node: k8s_openapi::api::storage::v1::CSINode = read(line);
                let name = node.metadata.name.clone().expect("a name");
                snapshot.storage.csi_nodes.insert(name, Arc::new(node));
            }
            "PodDisruptionBudget" => {
                let budget: k8s_openapi::api::policy::v1::PodDisruptionBudget = read(line);
                snapshot.budgets.insert(ObjectKey::of(&budget.metadata), Arc::new(budget));
            }
            other => panic!("no {other} in tests: {line}"),
        }
    }
    snapshot.arrange();
    snapshot
}

pub(crate) fn node(text: &str) -> Arc<core::Node> {
    let mut value = tree(text);
    quote_amounts(&mut value);
    let allocatable = &mut value["status"]["allocatable"];
    for (name, amount) in [("cpu", "4"), ("memory", "8Gi"), ("pods", "110")] {
        if allocatable[name].is_null() {
            allocatable[name] = json!(amount);
        }
    }
    Arc::new(serde_json::from_value(value).expect("a node"))
}

/// Amounts may be written as numbers, which only servers understand.
fn quote_amounts(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let are_amounts =
                    matches!(name.as_str(), "allocatable" | "limits" | "overhead" | "requests");
                let amounts = field.as_object_mut().filter(|_| are_amounts);
                for amount in amounts.into_iter().flat_map(|amounts| amounts.values_mut()) {
                    if amount.is_number() {
                        *amount = json!(amount.to_string());
                    }
                }
                quote_amounts(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(quote_amounts),
        _ => {}
    }
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_value(tree(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn tree(text: &str) -> Value {
    yaml::decode(text).unwrap_or_else(|error| panic!("{text}: {error}")).value
}
