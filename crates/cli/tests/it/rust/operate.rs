//! Operators: what they own, what they clean up, what they share.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::channel::mpsc;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, ResourceExt as _};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt as _, predicates, reflector, watcher};
use kube::{Client, CustomResourceExt as _, Resource as _};
use serde_json::json;

use super::custom::{Boat, boat, define};
use super::{run, typed};

/// Until a controller has nothing left to do; its own work goes on meanwhile.
async fn while_working<T>(
    controller: impl Future<Output = ()>,
    program: impl Future<Output = T>,
) -> T {
    tokio::select! {
        () = controller => panic!("a controller does not end"),
        done = program => done,
    }
}

#[test]
fn what_an_operator_owns_follows_its_object() {
    run(|client| async move {
        define(&client, &Boat::crd()).await;
        let boats: Api<Boat> = Api::default_namespaced(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let controller = Controller::new(boats.clone(), watcher::Config::default())
            .owns(maps.clone(), watcher::Config::default())
            .with_config(Config::default().concurrency(2))
            .run(log, |_, error, _| panic!("{error}"), Arc::new(client))
            .for_each(async |_| ());
        while_working(controller, async {
            boats.create(&PostParams::default(), &boat("one", "Oslo")).await.expect("created");
            let at = |port: &'static str| {
                move |map: Option<&ConfigMap>| {
                    let data = map.and_then(|map| map.data.as_ref());
                    data.is_some_and(|data| data["port"] == port)
                }
            };
            await_condition(maps.clone(), "one", at("Oslo")).await.expect("made");
            let port = Patch::Merge(json!({"spec": {"port": "Bergen"}}));
            boats.patch("one", &PatchParams::default(), &port).await.expect("patched");
            await_condition(maps.clone(), "one", at("Bergen")).await.expect("changed");

            // What others break or delete is mended.
            let broken = Patch::Merge(json!({"data": {"port": "Atlantis"}}));
            maps.patch("one", &PatchParams::default(), &broken).await.expect("patched");
            await_condition(maps.clone(), "one", at("Bergen")).await.expect("mended");
            let uid = maps.get("one").await.expect("read").uid().expect("a UID");
            maps.delete("one", &DeleteParams::default()).await.expect("deleted");
            let other =
                |map: Option<&ConfigMap>| map.is_some_and(|map| map.uid() != Some(uid.clone()));
            let other = await_condition(maps.clone(), "one", other).await.expect("made again");

            boats.delete("one", &DeleteParams::background()).await.expect("deleted");
            let uid = other.expect("it is there").uid().expect("a UID");
            await_condition(maps, "one", conditions::is_deleted(&uid)).await.expect("collected");
        })
        .await;
    });
}

/// Writes down where a boat is.
async fn log(boat: Arc<Boat>, client: Arc<Client>) -> kube::Result<Action> {
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: boat.metadata.name.clone(),
            owner_references: Some(vec![boat.controller_owner_ref(&()).expect("it is stored")]),
            ..ObjectMeta::default()
        },
        data: Some([("port".to_owned(), boat.spec.port.clone())].into()),
        ..ConfigMap::default()
    };
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &boat.namespace().expect("one"));
    let params = PatchParams::apply("boats").force();
    maps.patch(&boat.name_any(), &params, &Patch::Apply(&map)).await?;
    Ok(Action::await_change())
}

const CLEANUP: &str = "rust.example.com/cleanup";

#[test]
fn an_operator_cleans_up_before_its_object_goes() {
    run(|client| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let secrets: Api<Secret> = Api::default_namespaced(client.clone());
        let copies = Arc::new((maps.clone(), secrets.clone()));
        let controller =
            Controller::new(maps.clone(), watcher::Config::default().labels("copy=yes"))
                .run(
                    |map, copies| async move {
                        let (maps, secrets) = &*copies;
                        finalizer(maps, CLEANUP, map, |event| copy(event, secrets)).await
                    },
                    |_, _, _| Action::requeue(Duration::from_millis(10)),
                    copies,
                )
                .for_each(async |_| ());
        while_working(controller, async {
            let object = json!({
                "metadata": {"name": "one", "labels": {"copy": "yes"}},
                "data": {"k": "v"},
            });
            let map = maps.create(&PostParams::default(), &typed(object)).await.expect("created");
            let copied = await_condition(secrets.clone(), "copy-of-one", conditions::is_created());
            let copied = copied.await.expect("copied").expect("it is there");
            assert_eq!(copied.data.expect("data")["k"].0, b"v");
            assert_eq!(maps.get("one").await.expect("read").finalizers(), [CLEANUP]);

            let going = maps.delete("one", &DeleteParams::default()).await.expect("deleted");
            let going = going.left().expect("it is held");
            assert!(going.metadata.deletion_timestamp.is_some());
            let uid = map.uid().expect("a UID");
            await_condition(maps, "one", conditions::is_deleted(&uid)).await.expect("it goes");
            assert_eq!(secrets.get_opt("copy-of-one").await.expect("asked"), None);
        })
        .await;
    });
}

async fn copy(event: finalizer::Event<ConfigMap>, secrets: &Api<Secret>) -> kube::Result<Action> {
    match event {
        finalizer::Event::Apply(map) => {
            let name = format!("copy-of-{}", map.name_any());
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            let string_data = map.data.clone();
            let secret = Secret { metadata, string_data, ..Secret::default() };
            let params = PatchParams::apply("copies");
            secrets.patch(&name, &params, &Patch::Apply(&secret)).await?;
        }
        finalizer::Event::Cleanup(map) => {
            let name = format!("copy-of-{}", map.name_any());
            match secrets.delete(&name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => (),
                outcome => drop(outcome?),
            }
        }
    }
    Ok(Action::await_change())
}

#[test]
fn operators_share_one_watch() {
    run(|client| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let (reader, writer) = reflector::store_shared::<ConfigMap>(16);
        let (told, mut seen) = mpsc::unbounded();
        let follow = |name: &'static str| {
            let changes = writer.subscribe().expect("the store is shared");
            let changes = changes
                .map(|map| Ok((*map).clone()))
                .predicate_filter(predicates::labels, Default::default())
                .filter_map(async |map| map.ok().map(Arc::new));
            Controller::for_shared_stream(changes, reader.clone())
                .run(
                    move |map: Arc<ConfigMap>, told: Arc<mpsc::UnboundedSender<_>>| async move {
                        told.unbounded_send((name, map.labels().clone())).expect("it is read");
                        Ok::<_, Infallible>(Action::await_change())
                    },
                    |_, _, _| Action::await_change(),
                    Arc::new(told.clone()),
                )
                .for_each(async |_| ())
        };
        let (one, two) = (follow("one"), follow("two"));
        let config = watcher::Config::default().labels("of=us");
        let source = watcher(maps.clone(), config).reflect_shared(writer).for_each(async |_| ());
        let work = async {
            futures::join!(one, two, source);
        };
        while_working(work, async {
            let object = json!({"metadata": {"name": "m", "labels": {"of": "us"}}});
            maps.create(&PostParams::default(), &typed(object)).await.expect("created");
            let mut both = async || {
                let mut told = [seen.next().await.expect("told"), seen.next().await.expect("told")];
                told.sort();
                told
            };
            let told = both().await;
            assert_eq!(told.each_ref().map(|(who, _)| *who), ["one", "two"]);
            // Changes that leave the labels alone are of no interest.
            for patch in [json!({"data": {"k": "v"}}), json!({"metadata": {"labels": {"n": "1"}}})]
            {
                let patch = Patch::Merge(patch);
                maps.patch("m", &PatchParams::default(), &patch).await.expect("patched");
            }
            let told = both().await;
            assert!(told.iter().all(|(_, labels)| labels.len() == 2), "{told:?}");
        })
        .await;
    });
}
