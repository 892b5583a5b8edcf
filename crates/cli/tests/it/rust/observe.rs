//! Watchers and caches.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret, Service};
use k8s_openapi::api::events::v1::Event as EventObject;
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, PartialObjectMeta, Patch, PatchParams, PostParams,
    ResourceExt as _,
};
use kube::core::DeserializeGuard;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, CustomResourceExt as _, Resource};
use serde::Deserialize;
use serde_json::json;

use super::custom::{Boat, boat, define};
use super::{run, typed};

async fn create<K>(api: &Api<K>, object: serde_json::Value) -> K
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    api.create(&PostParams::default(), &typed(object)).await.expect("created")
}

/// How a watch may begin.
fn beginnings() -> [watcher::Config; 3] {
    let config = watcher::Config::default;
    [config().page_size(2), config().any_semantic(), config().streaming_lists()]
}

#[test]
fn a_cache_of_secrets_outlives_its_watches() {
    run(|client| async move {
        let secrets: Api<Secret> = Api::default_namespaced(client);
        for name in ["a", "b", "c"] {
            create(&secrets, json!({"metadata": {"name": name}, "stringData": {"k": name}})).await;
        }
        for config in beginnings() {
            let (reader, writer) = reflector::store();
            // Every watch ends after a second, and the next goes on where it was.
            let watching = watcher(secrets.clone(), config.timeout(1)).reflect(writer);
            let mut events = Box::pin(watching.default_backoff().applied_objects());
            let mut next = async || events.try_next().await.expect("no error").expect("no end");
            let mut first = BTreeSet::new();
            for _ in 0..3 {
                first.insert(next().await.name_any());
            }
            assert_eq!(first, ["a", "b", "c"].map(str::to_owned).into());
            for n in 0..5 {
                let data = Patch::Merge(json!({"stringData": {"n": n.to_string()}}));
                secrets.patch("b", &PatchParams::default(), &data).await.expect("patched");
                let data = next().await.data.expect("data");
                assert_eq!(data["n"].0, n.to_string().as_bytes());
            }
            let cached = reader.get(&ObjectRef::new("b").within("default")).expect("cached");
            assert_eq!(cached.data.as_ref().expect("data")["k"].0, b"b");
            assert_eq!(reader.state().len(), 3);
            let data = Patch::Merge(json!({"data": {"n": null}}));
            secrets.patch("b", &PatchParams::default(), &data).await.expect("patched");
        }
    });
}

#[test]
fn nodes_are_followed_by_their_metadata() {
    run(|client| async move {
        let nodes: Api<Node> = Api::all(client.clone());
        let partial: Api<PartialObjectMeta<Node>> = Api::all(client);
        let config = watcher::Config::default().labels("kubernetes.io/os in (linux, other)");
        let mut events = Box::pin(watcher(partial, config).touched_objects());
        let mut next = async || events.try_next().await.expect("no error").expect("no end");
        let labels = json!({"kubernetes.io/os": "linux"});
        create(&nodes, json!({"metadata": {"name": "n", "labels": labels}})).await;
        assert_eq!(next().await.labels()["kubernetes.io/os"], "linux");
        let heartbeat = Patch::Strategic(json!({
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }));
        nodes.patch_status("n", &PatchParams::default(), &heartbeat).await.expect("patched");
        let seen = next().await;
        let managers = seen.managed_fields().iter();
        let status = managers.filter(|entry| entry.subresource.as_deref() == Some("status"));
        assert_eq!(status.count(), 1);
        nodes.cordon("n").await.expect("cordoned");
        next().await;
        let idle = ListParams::default().fields("spec.unschedulable!=true");
        assert_eq!(nodes.list(&idle).await.expect("listed").items.len(), 0);
        // What leaves a selection is deleted to whoever watches it.
        let other = Patch::Merge(json!({"metadata": {"labels": {"kubernetes.io/os": null}}}));
        nodes.patch("n", &PatchParams::default(), &other).await.expect("patched");
        assert_eq!(next().await.labels()["kubernetes.io/os"], "linux");
    });
}

/// Only what has this entry is one.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ConfigMap)]
struct Recipe {
    metadata: ObjectMeta,
    data: Steps,
}

#[derive(Clone, Debug, Deserialize)]
struct Steps {
    steps: String,
}

#[test]
fn an_object_that_cannot_be_read_does_not_end_a_watch() {
    run(|client| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let guarded: Api<DeserializeGuard<Recipe>> = Api::default_namespaced(client);
        let object = |name: &str, key: &str| {
            json!({
                "metadata": {"name": name, "labels": {"kind": "recipe"}},
                "data": {key: "stir"},
            })
        };
        create(&maps, object("bread", "steps")).await;
        create(&maps, object("broken", "other")).await;
        for config in beginnings() {
            let recipes = watcher(guarded.clone(), config.labels("kind=recipe"));
            let seen: Vec<_> = recipes.applied_objects().take(2).try_collect().await.expect("seen");
            let named =
                |name| seen.iter().find(|recipe| recipe.meta().name.as_deref() == Some(name));
            let bread = named("bread").expect("seen").0.as_ref().expect("it has steps");
            assert_eq!((bread.data.steps.as_str(), bread.metadata.generation), ("stir", None));
            let broken = named("broken").expect("seen").0.as_ref().expect_err("it has none");
            assert_eq!(broken.error, "Missing field steps");
        }
    });
}

/// What several watchers have in common.
#[derive(Debug, PartialEq)]
enum Watched {
    Boat(String),
    Map(String),
    Secret(String),
}

#[test]
fn watchers_of_several_kinds_become_one_stream() {
    run(|client| async move {
        define(&client, &Boat::crd()).await;
        let boats: Api<Boat> = Api::default_namespaced(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let secrets: Api<Secret> = Api::default_namespaced(client);
        let mine = || watcher::Config::default().labels("of=us");
        let watched = [
            watcher(boats.clone(), mine())
                .applied_objects()
                .map_ok(|object| Watched::Boat(object.name_any()))
                .boxed(),
            watcher(maps.clone(), mine())
                .applied_objects()
                .map_ok(|object| Watched::Map(object.name_any()))
                .boxed(),
            watcher(secrets.clone(), mine())
                .applied_objects()
                .map_ok(|object| Watched::Secret(object.name_any()))
                .boxed(),
        ];
        let mut events = stream::select_all(watched);
        let mut next = async || events.try_next().await.expect("no error").expect("no end");
        let metadata = json!({"metadata": {"name": "one", "labels": {"of": "us"}}});
        create(&maps, metadata.clone()).await;
        assert_eq!(next().await, Watched::Map("one".to_owned()));
        let mut one = boat("one", "Oslo");
        one.labels_mut().insert("of".to_owned(), "us".to_owned());
        boats.create(&PostParams::default(), &one).await.expect("created");
        assert_eq!(next().await, Watched::Boat("one".to_owned()));
        create(&secrets, metadata).await;
        assert_eq!(next().await, Watched::Secret("one".to_owned()));
    });
}

#[test]
fn events_that_are_recorded_are_found_by_their_object() {
    run(|client| async move {
        let services: Api<Service> = Api::default_namespaced(client.clone());
        let service = services.get("kubernetes").await.expect("read");
        let reporter = Reporter { controller: "rust".to_owned(), instance: None };
        let recorder = Recorder::new(client.clone(), reporter);
        let event = |reason: &str| Event {
            type_: EventType::Normal,
            reason: reason.to_owned(),
            note: Some("as wished".to_owned()),
            action: "Tested".to_owned(),
            secondary: None,
        };
        let events: Api<EventObject> = Api::default_namespaced(client);
        let about = "regarding.kind=Service,regarding.name=kubernetes,reason=Served";
        let config = watcher::Config::default().fields(about);
        let mut stream = Box::pin(watcher(events.clone(), config).applied_objects());
        let mut next = async || stream.try_next().await.expect("no error").expect("no end");
        let regarding = service.object_ref(&());
        recorder.publish(&event("Other"), &regarding).await.expect("published");
        recorder.publish(&event("Served"), &regarding).await.expect("published");
        let first = next().await;
        assert_eq!((first.note.as_deref(), first.series), (Some("as wished"), None));
        // The same again is told once, with a count.
        recorder.publish(&event("Served"), &regarding).await.expect("published");
        assert_eq!(next().await.series.expect("a series").count, 2);
        let old = ListParams::default().fields("reason=Served");
        assert_eq!(events.list(&old).await.expect("listed").items.len(), 1);
    });
}

#[test]
fn pages_of_a_list_follow_each_other() {
    run(|client| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        for n in 0..25 {
            create(&maps, json!({"metadata": {"name": format!("m-{n:02}"), "labels": {"n": "1"}}}))
                .await;
        }
        let mut page = ListParams::default().labels("n=1").limit(10);
        let mut sizes = Vec::new();
        let mut names = Vec::new();
        loop {
            let list = maps.list(&page).await.expect("listed");
            sizes.push((list.items.len(), list.metadata.remaining_item_count));
            names.extend(list.items.iter().map(|map| map.name_any()));
            // What comes later is not in a list that began before.
            create(
                &maps,
                json!({"metadata": {"name": format!("m-{}x", names.len()), "labels": {"n": "1"}}}),
            )
            .await;
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => break,
            }
        }
        assert_eq!(sizes, [(10, None), (10, None), (5, None)]);
        assert!(names.is_sorted() && names.iter().all(|name| !name.ends_with('x')), "{names:?}");
        let all = ListParams::default().labels("n=1");
        let gone = maps.delete_collection(&DeleteParams::default(), &all).await.expect("deleted");
        assert_eq!(gone.left().expect("a list").items.len(), 28);
        accepts_metadata(client).await;
    });
}

/// Metadata of what has just been deleted is not listed.
async fn accepts_metadata(client: Client) {
    let partial: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
    let left = partial.list(&ListParams::default().labels("n=1")).await.expect("listed");
    assert_eq!(left.items.len(), 0);
}
