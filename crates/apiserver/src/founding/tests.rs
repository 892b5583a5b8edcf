//! On a store in memory.

use std::time::Duration;

use kubewright_store::{Change, Config, Query};
use serde_json::json;

use super::*;
use crate::index;

fn store() -> Store {
    let clock = || Duration::from_secs(1_700_000_000);
    Store::memory(Config::new(index::extract, index::resource_of, clock))
}

fn settings(port: u16) -> genesis::Settings<'static> {
    genesis::Settings {
        now: Timestamp::from_second(1_700_000_000).expect("a time"),
        address: [127, 0, 0, 1].into(),
        port,
        service_cidrs: &["10.0.0.0/24"],
        client_ca: None,
        proxy: None,
        hostname: "here",
        process: "2f9e1f9e-0000-4000-8000-000000000000",
    }
}

fn get(store: &Store, key: &str) -> Value {
    index::object(&store.get(key).unwrap_or_else(|| panic!("{key} is there")))
}

async fn change(store: &Store, key: &str, edit: impl Fn(&mut Value) + Copy) {
    let key = store.get(key).expect("it is there").key.clone();
    let edited = store.update(&key, |rev| async move {
        let mut object = index::object(&rev.expect("it is there"));
        edit(&mut object);
        let value = index::to_bytes(&object);
        Ok::<_, std::convert::Infallible>(Change::Put {
            value,
            ttl: None,
            durability: Durability::Synced,
        })
    });
    edited.await.expect("written");
}

#[tokio::test]
async fn a_second_start_changes_nothing() {
    let store = store();
    found(&store, &settings(6443)).await.expect("founded");
    let everything = store.range(&Query::prefix("/registry/")).expect("a list").len();
    assert!(everything > 150, "{everything}");
    let revision = store.revision();
    found(&store, &settings(6443)).await.expect("founded");
    assert_eq!(store.revision(), revision);
}

#[tokio::test]
async fn objects_have_an_identity_and_a_manager() {
    let store = store();
    found(&store, &settings(6443)).await.expect("founded");
    let namespace = get(&store, "/registry/namespaces/default");
    let metadata = &namespace["metadata"];
    assert_eq!(metadata["creationTimestamp"], "2023-11-14T22:13:20Z");
    assert_eq!(metadata["uid"].as_str().map(str::len), Some(36));
    assert_eq!(metadata["managedFields"][0]["manager"], "kube-apiserver");
    assert_eq!(namespace["status"]["phase"], "Active");
    let role = get(&store, "/registry/clusterroles/cluster-admin");
    assert_eq!(role["rules"][0]["verbs"], json!(["*"]));
}

#[tokio::test]
async fn what_is_the_servers_is_put_right_and_the_rest_is_left_alone() {
    let store = store();
    found(&store, &settings(6443)).await.expect("founded");
    let service = "/registry/services/specs/default/kubernetes";
    change(&store, service, |object| object["metadata"]["labels"]["mine"] = "yes".into()).await;
    let namespace = "/registry/namespaces/default";
    change(&store, namespace, |object| object["metadata"]["labels"] = json!({"a": "b"})).await;

    found(&store, &settings(7443)).await.expect("founded");
    let found = get(&store, service);
    assert_eq!(found["spec"]["ports"][0]["targetPort"], 7443);
    assert_eq!(found["metadata"]["labels"]["mine"], "yes");
    assert_eq!(found["metadata"]["labels"]["component"], "apiserver");
    assert_eq!(get(&store, namespace)["metadata"]["labels"], json!({"a": "b"}));
}
