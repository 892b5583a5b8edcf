//! What the controllers of a cluster keep in order, seen by a client.

use std::fmt::Debug;
use std::pin::pin;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, PersistentVolumeClaim, Pod, ResourceQuota, Secret, Service,
    ServiceAccount,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams, PropagationPolicy, WatchEvent, WatchParams,
};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

/// How many watches an object is waited for.
const WATCHES_MAX: usize = 1000;

/// A client with all rights.
pub(super) fn client(cluster: &Cluster) -> Client {
    Client::new(cluster.server().as_user(User::new("admin", [MASTERS.to_owned()])), "default")
}

pub(super) async fn start() -> (Cluster, Client) {
    let cluster = Cluster::start(config(Storage::Memory)).await.expect("started");
    let client = client(&cluster);
    (cluster, client)
}

/// Waits until the object of this name is as it should be, `None` being that it is not there.
pub(super) async fn until<K>(api: &Api<K>, name: &str, right: impl Fn(Option<&K>) -> bool)
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let field = format!("metadata.name={name}");
    let parameters = WatchParams::default().fields(&field);
    // The server ends a watch after minutes, which pass at once where time is virtual.
    for _ in 0..WATCHES_MAX {
        let list = api.list(&ListParams::default().fields(&field)).await.expect("listed");
        if right(list.items.first()) {
            return;
        }
        let version = list.metadata.resource_version.expect("a version");
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
    }
    panic!("it does not become right");
}

pub(super) async fn create<K>(api: &Api<K>, object: Value) -> K
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

/// A quota in the default namespace.
async fn quota(client: &Client, spec: Value) -> Api<ResourceQuota> {
    let quotas: Api<ResourceQuota> = Api::default_namespaced(client.clone());
    create(&quotas, json!({ "metadata": { "name": "q" }, "spec": spec })).await;
    quotas
}

/// Waits until this is used, and no more.
async fn until_used(quotas: &Api<ResourceQuota>, used: Value) {
    let is_used = |quota: Option<&ResourceQuota>| {
        let status = quota.and_then(|quota| quota.status.as_ref());
        status.is_some_and(|status| json!(status.used) == used)
    };
    until(quotas, "q", is_used).await;
}

fn pod(name: &str) -> Pod {
    let container = json!({ "name": "a", "image": "a" });
    let spec = json!({ "containers": [container], "automountServiceAccountToken": false });
    let pod = json!({ "metadata": { "name": name }, "spec": spec });
    serde_json::from_value(pod).expect("a pod")
}

#[tokio::test]
async fn a_quota_has_room_again_when_a_pod_is_gone_or_over() {
    let (cluster, client) = start().await;
    let quotas = quota(&client, json!({ "hard": { "pods": "1" } })).await;
    until_used(&quotas, json!({ "pods": "0" })).await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    let parameters = PostParams::default();
    pods.create(&parameters, &pod("first")).await.expect("there is room");
    let refused = pods.create(&parameters, &pod("second")).await.expect_err("there is none");
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    let expected = "pods \"second\" is forbidden: exceeded quota: q, requested: pods=1, used: \
                    pods=1, limited: pods=1";
    assert_eq!((status.code, status.message.as_str()), (403, expected));

    let over = json!({ "status": { "phase": "Succeeded" } });
    let patch = Patch::Merge(over);
    pods.patch_status("first", &PatchParams::default(), &patch).await.expect("it is over");
    until_used(&quotas, json!({ "pods": "0" })).await;
    pods.create(&parameters, &pod("second")).await.expect("there is room");

    pods.delete("second", &DeleteParams::default().grace_period(0)).await.expect("deleted");
    until_used(&quotas, json!({ "pods": "0" })).await;
    pods.create(&parameters, &pod("third")).await.expect("there is room");
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_quota_follows_its_limits() {
    let (cluster, client) = start().await;
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    create(&secrets, json!({ "metadata": { "name": "a" } })).await;
    let quotas = quota(&client, json!({ "hard": { "secrets": "5" } })).await;
    until_used(&quotas, json!({ "secrets": "1" })).await;
    let limits = json!({ "spec": { "hard": { "secrets": null, "count/secrets": "1" } } });
    quotas.patch("q", &PatchParams::default(), &Patch::Merge(limits)).await.expect("patched");
    until_used(&quotas, json!({ "count/secrets": "1" })).await;
    let status = quotas.get("q").await.expect("read").status.expect("a status");
    assert_eq!(json!(status.hard), json!({ "count/secrets": "1" }));
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_quota_counts_what_services_and_claims_give_back() {
    let (cluster, client) = start().await;
    let hard = json!({ "services.nodeports": "2", "requests.storage": "3Gi" });
    let quotas = quota(&client, json!({ "hard": hard })).await;
    until_used(&quotas, json!({ "services.nodeports": "0", "requests.storage": "0" })).await;
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let spec = json!({ "type": "NodePort", "ports": [{ "port": 1 }] });
    create(&services, json!({ "metadata": { "name": "a" }, "spec": spec })).await;
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client);
    let spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "2Gi" } },
    });
    create(&claims, json!({ "metadata": { "name": "a" }, "spec": spec })).await;
    until_used(&quotas, json!({ "services.nodeports": "1", "requests.storage": "2Gi" })).await;

    let plain = json!({ "spec": { "type": "ClusterIP", "ports": [{ "port": 1 }] } });
    let parameters = PatchParams::default();
    services.patch("a", &parameters, &Patch::Merge(plain)).await.expect("patched");
    let free = json!({ "metadata": { "finalizers": null } });
    claims.patch("a", &parameters, &Patch::Merge(free)).await.expect("nothing uses it");
    claims.delete("a", &DeleteParams::default()).await.expect("deleted");
    until_used(&quotas, json!({ "services.nodeports": "0", "requests.storage": "0" })).await;
    cluster.shutdown().await;
}

#[tokio::test]
async fn a_quota_counts_custom_resources_from_their_definition_on() {
    let (cluster, client) = start().await;
    let limited = "count/widgets.example.com";
    let quotas = quota(&client, json!({ "hard": { limited: "1" } })).await;
    until(&quotas, "q", |quota| quota.is_some_and(|quota| quota.status.is_some())).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
    });
    let spec = json!({
        "group": "example.com",
        "names": { "plural": "widgets", "kind": "Widget" },
        "scope": "Namespaced",
        "versions": [version],
    });
    let name = "widgets.example.com";
    create(&definitions, json!({ "metadata": { "name": name }, "spec": spec })).await;
    until_used(&quotas, json!({ limited: "0" })).await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let widgets: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let parameters = PostParams::default();
    let widget = |name: &str| DynamicObject::new(name, &resource);
    widgets.create(&parameters, &widget("a")).await.expect("there is room");
    widgets.create(&parameters, &widget("b")).await.expect_err("there is none");
    widgets.delete("a", &DeleteParams::default()).await.expect("deleted");
    until_used(&quotas, json!({ limited: "0" })).await;
    widgets.create(&parameters, &widget("b")).await.expect("there is room");
    cluster.shutdown().await;
}
