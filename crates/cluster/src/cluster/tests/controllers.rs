//! What the controllers of a cluster keep in order, seen by a client.

use std::fmt::Debug;
use std::pin::pin;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy, WatchEvent,
    WatchParams,
};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

/// A client with all rights.
fn client(cluster: &Cluster) -> Client {
    Client::new(cluster.server().as_user(User::new("admin", [MASTERS.to_owned()])), "default")
}

async fn start() -> (Cluster, Client) {
    let cluster = Cluster::start(config(Storage::Memory)).await.expect("started");
    let client = client(&cluster);
    (cluster, client)
}

/// Waits until the object of this name is as it should be, `None` being that it is not there.
async fn until<K>(api: &Api<K>, name: &str, right: impl Fn(Option<&K>) -> bool)
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let field = format!("metadata.name={name}");
    let list = api.list(&ListParams::default().fields(&field)).await.expect("listed");
    if right(list.items.first()) {
        return;
    }
    let version = list.metadata.resource_version.expect("a version");
    let parameters = WatchParams::default().fields(&field);
    let mut events = pin!(api.watch(&parameters, &version).await.expect("watched"));
    while let Some(event) = events.next().await {
        let is_right = match event.expect("an event") {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => right(Some(&object)),
            WatchEvent::Deleted(_) => right(None),
            WatchEvent::Bookmark(_) => false,
            WatchEvent::Error(status) => panic!("{status:?}"),
        };
        if is_right {
            return;
        }
    }
    panic!("the watch ended");
}

async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Resource + Clone + Debug + DeserializeOwned + serde::Serialize,
{
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("created")
}

/// A ConfigMap `owner`, and one `owned` that blocks it.
async fn family(client: &Client) -> Api<ConfigMap> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let owner = create(&maps, json!({ "metadata": { "name": "owner" } })).await;
    let reference = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner.metadata.uid,
        "blockOwnerDeletion": true,
    });
    let owned = json!({ "metadata": { "name": "owned", "ownerReferences": [reference] } });
    create(&maps, owned).await;
    maps
}

async fn delete_owner(maps: &Api<ConfigMap>, policy: PropagationPolicy) {
    let parameters = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    maps.delete("owner", &parameters).await.expect("deleted");
}

#[tokio::test]
async fn a_namespace_gets_its_service_account_and_gets_it_again() {
    let (cluster, client) = start().await;
    create(&Api::<Namespace>::all(client.clone()), json!({ "metadata": { "name": "a" } })).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(client, "a");
    until(&accounts, "default", |account| account.is_some()).await;
    let first = accounts.get("default").await.expect("read");
    accounts.delete("default", &DeleteParams::default()).await.expect("deleted");
    let is_new = |account: Option<&ServiceAccount>| {
        account.is_some_and(|account| account.metadata.uid != first.metadata.uid)
    };
    until(&accounts, "default", is_new).await;
    cluster.shutdown().await;
}

#[tokio::test]
async fn what_is_owned_goes_after_its_owner() {
    let (cluster, client) = start().await;
    let maps = family(&client).await;
    delete_owner(&maps, PropagationPolicy::Background).await;
    until(&maps, "owned", |owned| owned.is_none()).await;
    cluster.shutdown().await;
}

#[tokio::test]
async fn in_the_foreground_an_owner_waits() {
    let (cluster, client) = start().await;
    let maps = family(&client).await;
    let hold = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    let parameters = PatchParams::default();
    maps.patch("owned", &parameters, &Patch::Merge(hold)).await.expect("held");
    delete_owner(&maps, PropagationPolicy::Foreground).await;
    let is_dying = |owned: Option<&ConfigMap>| {
        owned.is_some_and(|owned| owned.metadata.deletion_timestamp.is_some())
    };
    until(&maps, "owned", is_dying).await;
    assert!(maps.get_opt("owner").await.expect("asked").is_some(), "it did not wait");
    let release = json!({ "metadata": { "finalizers": null } });
    maps.patch("owned", &parameters, &Patch::Merge(release)).await.expect("released");
    until(&maps, "owner", |owner| owner.is_none()).await;
    cluster.shutdown().await;
}

#[tokio::test]
async fn orphans_live_on_without_an_owner() {
    let (cluster, client) = start().await;
    let maps = family(&client).await;
    delete_owner(&maps, PropagationPolicy::Orphan).await;
    until(&maps, "owner", |owner| owner.is_none()).await;
    let owned = maps.get("owned").await.expect("it lives");
    assert_eq!(owned.metadata.owner_references, None);
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_namespace_ends_when_nothing_in_it_is_held() {
    let (cluster, client) = start().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    create(&namespaces, json!({ "metadata": { "name": "a" } })).await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "a");
    let held = json!({ "metadata": { "name": "held", "finalizers": ["example.com/hold"] } });
    create(&maps, held).await;
    namespaces.delete("a", &DeleteParams::default()).await.expect("deleted");
    let message = "Some resources are remaining: configmaps. has 1 resource instances";
    let says_so = |namespace: Option<&Namespace>| {
        let status = namespace.and_then(|namespace| namespace.status.as_ref());
        let mut conditions =
            status.into_iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|condition| condition.message.as_deref() == Some(message))
    };
    until(&namespaces, "a", says_so).await;
    let release = json!({ "metadata": { "finalizers": null } });
    maps.patch("held", &PatchParams::default(), &Patch::Merge(release)).await.expect("released");
    until(&namespaces, "a", |namespace| namespace.is_none()).await;
    cluster.shutdown().await;
}
