//! `kube`, the client of Rust operators, unchanged: over TLS with the kubeconfig that users get,
//! and in memory.

use std::time::Duration;

use futures::TryStreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Discovery};
use kubewright_apiserver::edge::Limits;
use kubewright_apiserver::user::{MASTERS, User};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::{Cluster, Config, Listen, Storage};
use crate::kubeconfig::Access;
use crate::{Clock, Pki, Terms};

/// Long enough for a machine under load: what is waited for is sure to come.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn kube_works_in_memory() {
    let config = Config {
        storage: Storage::Memory,
        listen: None,
        clock: Clock::System,
        controllers: kubewright_controllers::Names::all(),
        nodes: None,
        audit: None,
        terms: Terms::default(),
    };
    let cluster = Cluster::start(config).await.expect("started");
    let admin = cluster.server().as_user(User::new("admin", [MASTERS.to_owned()]));
    use_everything(Client::new(admin, "default")).await;
    cluster.shutdown().await;
}

#[tokio::test]
async fn kube_works_over_tls_with_the_kubeconfig_of_users() {
    // The process may hold two cryptographic libraries; rustls wants to be told which one it uses.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let clock = Clock::System;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let pki = Pki::in_memory(address.ip(), clock.now()).expect("keys");
    let text = Access {
        name: "kubewright",
        server: &format!("https://{address}"),
        ca_pem: &pki.ca.certificate,
        user: &pki.admin,
    }
    .alone();
    let listen = Listen { listener, credentials: pki.into(), limits: Limits::default() };
    let config = Config {
        storage: Storage::Memory,
        listen: Some(listen),
        clock,
        controllers: kubewright_controllers::Names::all(),
        nodes: None,
        audit: None,
        terms: Terms::default(),
    };
    let cluster = Cluster::start(config).await.expect("started");

    let kubeconfig = Kubeconfig::from_yaml(&text).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let client = Client::try_from(config.expect("a context")).expect("a client");
    use_everything(client).await;
    cluster.shutdown().await;
}

async fn use_everything(client: Client) {
    let work = async {
        let namespace: Namespace = typed(json!({"metadata": {"name": "rust"}}));
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &namespace).await.expect("created");
        typed_objects(client.clone()).await;
        reflected_objects(client.clone()).await;
        own_kinds(client).await;
    };
    tokio::time::timeout(PATIENCE, work).await.expect("nothing waits for ever");
}

async fn typed_objects(client: Client) {
    let deployments: Api<Deployment> = Api::namespaced(client, "rust");
    let web = typed(json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        },
    }));
    let made = deployments.create(&PostParams::default(), &web).await.expect("created");
    assert_eq!(made.spec.expect("a spec").replicas, Some(1), "defaults are filled in");
    let again = deployments.create(&PostParams::default(), &web).await.expect_err("it is there");
    assert_eq!(code(&again), 409);

    let more = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let scale = deployments.patch_scale("web", &PatchParams::default(), &more).await;
    assert_eq!(scale.expect("scaled").spec.expect("a spec").replicas, Some(3));

    let mine = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"replicas": 5},
    });
    let params = PatchParams::apply("mine");
    let conflict = deployments.patch("web", &params, &Patch::Apply(&mine)).await;
    assert_eq!(code(&conflict.expect_err("the scale is another's")), 409);
    let forced = deployments.patch("web", &params.force(), &Patch::Apply(&mine)).await;
    assert_eq!(forced.expect("applied").spec.expect("a spec").replicas, Some(5));

    let listed = deployments.list_metadata(&ListParams::default()).await.expect("listed");
    assert_eq!(listed.items.len(), 1);
    let deleted = deployments.delete("web", &DeleteParams::background()).await.expect("deleted");
    assert!(deleted.is_right(), "nothing holds it");
    assert_eq!(deployments.get_opt("web").await.expect("asked"), None);
}

/// A cache follows every change, however the watch begins.
async fn reflected_objects(client: Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client, "rust");
    let named = |name: &str| typed(json!({"metadata": {"name": name, "labels": {"of": "us"}}}));
    maps.create(&PostParams::default(), &named("before")).await.expect("created");
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let (reader, writer) = reflector::store();
        let watching = watcher(maps.clone(), config.labels("of=us")).default_backoff();
        let mut events = Box::pin(watching.reflect(writer).applied_objects());
        let mut next = async || events.try_next().await.expect("no error").expect("no end");

        assert_eq!(next().await.metadata.name.as_deref(), Some("before"));
        maps.create(&PostParams::default(), &named("after")).await.expect("created");
        assert_eq!(next().await.metadata.name.as_deref(), Some("after"));
        let data = Patch::Merge(json!({"data": {"k": "v"}}));
        maps.patch("after", &PatchParams::default(), &data).await.expect("patched");
        let changed = next().await;
        assert_eq!(changed.data.expect("data")["k"], "v");
        let after = ObjectRef::new("after").within("rust");
        assert_eq!(reader.get(&after).expect("cached").data.as_ref().expect("data")["k"], "v");

        maps.delete("after", &DeleteParams::default()).await.expect("deleted");
        maps.create(&PostParams::default(), &named("last")).await.expect("created");
        assert_eq!(next().await.metadata.name.as_deref(), Some("last"));
        assert_eq!(reader.get(&after), None, "what is deleted leaves the cache");
        maps.delete("last", &DeleteParams::default()).await.expect("deleted");
    }
}

async fn own_kinds(client: Client) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = typed(json!({
        "metadata": {"name": "rafts.rust.example.com"},
        "spec": {
            "group": "rust.example.com",
            "scope": "Namespaced",
            "names": {"plural": "rafts", "kind": "Raft"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "properties": {
                            "logs": {"type": "integer", "default": 3},
                        }},
                        "status": {"type": "object", "properties": {
                            "afloat": {"type": "boolean"},
                        }},
                    },
                }},
            }],
        },
    }));
    crds.create(&PostParams::default(), &crd).await.expect("created");
    let established = conditions::is_crd_established();
    await_condition(crds.clone(), "rafts.rust.example.com", established)
        .await
        .expect("established");

    let discovered = Discovery::new(client.clone()).run_aggregated().await.expect("discovery");
    let kind = GroupVersionKind::gvk("rust.example.com", "v1", "Raft");
    let (resource, _): (ApiResource, _) = discovered.resolve_gvk(&kind).expect("discovered");
    let rafts: Api<DynamicObject> = Api::namespaced_with(client, "rust", &resource);
    let raft = json!({
        "apiVersion": "rust.example.com/v1",
        "kind": "Raft",
        "metadata": {"name": "one"},
        "spec": {},
    });
    let params = PatchParams::apply("mine");
    let made = rafts.patch("one", &params, &Patch::Apply(&raft)).await.expect("applied");
    assert_eq!(made.data["spec"]["logs"], 3);
    let status = Patch::Merge(json!({"status": {"afloat": true}, "spec": {"logs": 9}}));
    let changed = rafts.patch_status("one", &params, &status).await;
    let changed = changed.expect("patched").data;
    assert_eq!((&changed["spec"]["logs"], &changed["status"]["afloat"]), (&json!(3), &json!(true)));

    // Its objects go first, and then the definition goes.
    let definition = crds.get("rafts.rust.example.com").await.expect("it is there");
    let uid = definition.metadata.uid.expect("a UID");
    crds.delete("rafts.rust.example.com", &DeleteParams::default()).await.expect("deleted");
    let gone = conditions::is_deleted(&uid);
    await_condition(crds, "rafts.rust.example.com", gone).await.expect("it goes");
    assert_eq!(code(&rafts.get("one").await.expect_err("it is gone")), 404);
}

fn typed<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("an object of its type")
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    }
}
