//! Informers, and what they know when the server makes their life hard.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use kube::api::{Api, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kubewright::informer::{Change, Informer, NotReady, Scope, Source, State};
use kubewright::{Cache, ObjectKey};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Cluster;

/// Nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// An informer of the ConfigMaps in the namespace `default`.
fn config_maps(cluster: &Cluster, tasks: &mut JoinSet<()>) -> Informer<ConfigMap> {
    let source = Source::new(cluster.client(), (), Scope::within(["default"]));
    let (informer, run) = Informer::new(source);
    tasks.spawn(run);
    informer
}

fn names(informer: &Informer<ConfigMap>) -> Vec<String> {
    let all = informer.list().expect("it is ready").into_iter();
    let names = all.filter_map(|object| object.metadata.name.clone());
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

async fn create(cluster: &Cluster, name: &str) -> ObjectMeta {
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).expect("an object");
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    api.create(&PostParams::default(), &object).await.expect("created").metadata
}

async fn delete(cluster: &Cluster, name: &str) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    api.delete(name, &DeleteParams::default()).await.expect("deleted");
}

/// Changes an object, and waits until the informer knows.
async fn change(cluster: &Cluster, informer: &Informer<ConfigMap>, name: &str, value: &str) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let patch = Patch::Merge(json!({"data": {"value": value}}));
    let changed = api.patch(name, &PatchParams::default(), &patch).await.expect("changed");
    let changed = changed.metadata;
    assert!(informer.caught_up(&changed, PATIENCE).await, "it did not hear of {changed:?}");
    let known = informer.get(&ObjectKey::new(Some("default"), name)).expect("it is ready");
    let data = known.and_then(|known| known.data.clone()).expect("it has data");
    assert_eq!(data["value"], value);
}

#[tokio::test(start_paused = true)]
async fn an_informer_knows_what_is_there_and_what_comes() {
    let cluster = Cluster::start().await;
    create(&cluster, "before").await;
    let mut tasks = JoinSet::new();
    let informer = config_maps(&cluster, &mut tasks);
    informer.synced(PATIENCE).await.expect("synced");
    assert_eq!(names(&informer), ["before"]);
    let later = create(&cluster, "later").await;
    assert!(informer.caught_up(&later, PATIENCE).await);
    assert_eq!(names(&informer), ["before", "later"]);
    change(&cluster, &informer, "later", "1").await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_happens_while_watches_are_cut_and_forgotten_is_not_lost() {
    let cluster = Cluster::start().await;
    for name in ["a", "b", "c"] {
        create(&cluster, name).await;
    }
    let mut tasks = JoinSet::new();
    let informer = config_maps(&cluster, &mut tasks);
    informer.synced(PATIENCE).await.expect("synced");
    let held = cluster.faults().hold_watches();
    delete(&cluster, "b").await;
    cluster.faults().cut_watches();
    drop(held);
    change(&cluster, &informer, "a", "resumed").await;
    assert_eq!(names(&informer), ["a", "c"]);

    // What the watch was to go on from is gone.
    let is_resumed = |request: &http::request::Parts| {
        request.uri.query().is_some_and(|query| query.contains("resourceVersion="))
    };
    cluster.faults().answer(410, 1, is_resumed);
    delete(&cluster, "c").await;
    cluster.faults().cut_watches();
    change(&cluster, &informer, "a", "listed again").await;
    assert_eq!(names(&informer), ["a"]);
    // Two that were cut, and one of which too much was asked.
    assert!(informer.report().failures >= 3, "{:?}", informer.report());
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_stream_is_listed() {
    let cluster = Cluster::start().await;
    create(&cluster, "there").await;
    let streams = |request: &http::request::Parts| {
        request.uri.query().is_some_and(|query| query.contains("sendInitialEvents"))
    };
    cluster.faults().answer(422, 1, streams);
    let mut tasks = JoinSet::new();
    let informer = config_maps(&cluster, &mut tasks);
    informer.synced(PATIENCE).await.expect("synced");
    assert_eq!(names(&informer), ["there"]);
    change(&cluster, &informer, "there", "1").await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn who_may_not_read_is_told_so() {
    let cluster = Cluster::start().await;
    let client = cluster.client_as("nobody", &[]);
    let (informer, run) = Informer::<ConfigMap>::new(Source::all(client));
    let mut tasks = JoinSet::new();
    tasks.spawn(run);
    let refused = informer.synced(PATIENCE).await.expect_err("it may not");
    let why = "configmaps is forbidden: User \"nobody\" cannot list resource \"configmaps\" in \
               API group \"\" at the cluster scope"
        .replace("list", "watch");
    assert_eq!(refused, NotReady::Forbidden { kind: "ConfigMap".to_owned(), why });
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_later_is_followed_from_then_on() {
    let cluster = Cluster::start().await;
    let kind = GroupVersionKind::gvk("example.com", "v1", "Pet");
    let pets = ApiResource::from_gvk_with_plural(&kind, "pets");
    let source = Source::<DynamicObject>::new(cluster.client(), pets.clone(), Scope::default());
    let (informer, run) = Informer::new(source);
    let mut tasks = JoinSet::new();
    tasks.spawn(run);
    let missing = informer.synced(PATIENCE).await.expect_err("nobody defined it");
    assert_eq!(missing, NotReady::Missing { kind: "Pet.example.com".to_owned() });

    let definition = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        "customresourcedefinitions",
    );
    let definitions: Api<DynamicObject> = Api::all_with(cluster.client(), &definition);
    let object = json!({
        "metadata": {"name": "pets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "pets", "singular": "pet", "kind": "Pet"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    let object = serde_json::from_value(object).expect("an object");
    definitions.create(&PostParams::default(), &object).await.expect("defined");
    informer.synced(PATIENCE).await.expect("it looks again by itself");
    assert_eq!(informer.state(), State::Live);
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_texts_tells_what_one_of_objects_tells() {
    let cluster = Cluster::start().await;
    for name in ["a", "b"] {
        create(&cluster, name).await;
    }
    let (mut tasks, mut told) = (JoinSet::new(), Vec::new());
    for is_text in [false, true] {
        let (cache, run) = match is_text {
            true => {
                let (cache, run) = Cache::of_texts(cluster.client());
                (cache, run.boxed())
            }
            false => {
                let (cache, run) = Cache::new(cluster.client());
                (cache, run.boxed())
            }
        };
        tasks.spawn(run);
        let informer = cache.informer::<ConfigMap>(&Scope::within(["default"]));
        let another = cache.informer::<ConfigMap>(&Scope::within(["default"]));
        informer.synced(PATIENCE).await.expect("synced");
        assert_eq!(cache.report().len(), 1, "they share one watch");
        change(&cluster, &another, "a", &format!("text: {is_text}")).await;
        change(&cluster, &another, "a", "the same").await;
        let maps = informer.list().expect("it is ready").into_iter();
        let maps = maps.filter(|map| map.metadata.name.as_deref() != Some("kube-root-ca.crt"));
        let without_version = |map: Arc<ConfigMap>| {
            let mut map = ConfigMap::clone(&map);
            map.metadata.resource_version = None;
            map
        };
        told.push(maps.map(without_version).collect::<Vec<_>>());
    }
    assert_eq!(told[0], told[1]);
    assert!(told[0].iter().all(|map| map.metadata.managed_fields.is_none()));
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_delayed_arrives_later_and_the_next_at_once() {
    let cluster = Cluster::start().await;
    let is_ours = |request: &http::request::Parts| request.uri.path().ends_with("/configmaps");
    cluster.faults().delay(Duration::from_secs(10), 1, is_ours);
    let begun = Instant::now();
    create(&cluster, "late").await;
    assert_eq!(begun.elapsed().as_secs(), 10);
    create(&cluster, "soon").await;
    assert_eq!(begun.elapsed().as_secs(), 10);
    cluster.shutdown().await;
}

/// A ConfigMap that says one of two words.
#[derive(Clone, Debug, Deserialize)]
struct Shirt {
    metadata: ObjectMeta,
    data: Label,
}

#[derive(Clone, Debug, Deserialize)]
struct Label {
    size: Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

impl Resource for Shirt {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        ConfigMap::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        ConfigMap::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        ConfigMap::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        ConfigMap::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// It stayed in the cache as it was when it could last be read.
#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_any_more_is_gone_however_it_is_kept() {
    for is_text in [false, true] {
        let cluster = Cluster::start().await;
        let sized = |size: &str| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": {"size": size},
                "metadata": {"name": "shirt", "labels": {"app": "test"}},
            })
        };
        cluster.apply(&sized("small")).await;
        let scope = Scope { labels: Some("app=test".to_owned()), ..Scope::default() };
        let source = Source::<Shirt>::new(cluster.client(), (), scope);
        let source = if is_text { source.as_text() } else { source };
        let (informer, run) = Informer::new(source);
        let (tell, mut told) = mpsc::unbounded_channel();
        let _subscription = informer.subscribe(move |change| {
            let (is_there, shirt) = match change {
                Change::Applied { object, .. } => (true, object),
                Change::Deleted(object) => (false, object),
            };
            let _ = tell.send((is_there, shirt.data.size));
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(run);
        assert_eq!(told.recv().await, Some((true, Size::Small)));
        cluster.apply(&sized("huge")).await;
        assert_eq!(told.recv().await, Some((false, Size::Small)), "kept as text: {is_text}");
        let key = ObjectKey::new(Some("default"), "shirt");
        assert!(informer.get(&key).expect("it is ready").is_none());
        cluster.apply(&sized("large")).await;
        assert_eq!(told.recv().await, Some((true, Size::Large)));
        cluster.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_may_not_be_read_hides_no_other() {
    let cluster = Cluster::start().await;
    create(&cluster, "there").await;
    for object in [
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
               "metadata": {"name": "reader", "namespace": "default"},
               "rules": [{"apiGroups": [""], "resources": ["configmaps"],
                          "verbs": ["get", "list", "watch"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
               "metadata": {"name": "reader", "namespace": "default"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                           "name": "reader"},
               "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
                             "name": "ada"}]}),
    ] {
        cluster.apply(&object).await;
    }
    let scope = Scope::within(["default", "kube-system"]);
    let source = Source::<ConfigMap>::new(cluster.client_as("ada", &[]), (), scope);
    let (informer, run) = Informer::new(source);
    let mut tasks = JoinSet::new();
    tasks.spawn(run);
    informer.synced(PATIENCE).await.expect_err("it may not read all");
    let there = informer.list_in("default").expect("it may read this one");
    assert!(there.iter().any(|it| it.metadata.name.as_deref() == Some("there")));
    let why = informer.list().expect_err("it may not read all").to_string();
    assert!(why.contains("in the namespace \"kube-system\""), "{why}");
    let unwatched = informer.list_in("kube-public").expect_err("it is not looked at");
    assert_eq!(unwatched.to_string(), "ConfigMap is not watched in namespace \"kube-public\"");
    change(&cluster, &informer, "there", "1").await;
    cluster.shutdown().await;
}
