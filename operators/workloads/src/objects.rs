//! What the program makes.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What all of it is called.
pub const NAME: &str = "hello-world";

/// By which label its pods are known.
pub(crate) const SELECTOR: &str = "app=nginx";

pub fn namespace(name: &str) -> Namespace {
    let labels = BTreeMap::from([("app".to_owned(), "workloads".to_owned())]);
    Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}

/// Two replicas of a page that says which of them it comes from.
pub fn deployment() -> Deployment {
    let labels = json!({"app": "nginx"});
    object(json!({
        "metadata": {"name": NAME},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{
                    "name": NAME,
                    "image": "nginxdemos/hello:latest",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                }]},
            },
        },
    }))
}

pub fn service() -> Service {
    object(json!({
        "metadata": {"name": NAME},
        "spec": {
            "selector": {"app": "nginx"},
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        },
    }))
}

/// Without a class: whichever the cluster has by default.
pub fn ingress() -> Ingress {
    let backend = json!({"service": {"name": NAME, "port": {"name": "http"}}});
    object(json!({
        "metadata": {"name": NAME},
        "spec": {"rules": [{
            "http": {"paths": [{"path": "/hello", "pathType": "Prefix", "backend": backend}]},
        }]},
    }))
}

/// How many replicas of a Deployment are ready, and how many should be.
pub(crate) fn progress(deployment: &Deployment) -> (i32, i32) {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas);
    (ready.unwrap_or(0), wanted)
}

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("what is written here has the form of its kind")
}
