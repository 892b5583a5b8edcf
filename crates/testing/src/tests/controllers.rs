//! ControlLoops of ConfigMaps: what they reconcile, when, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::CustomResource;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kubewright::informer::{Change, Informer, Object, Scope, Source};
use kubewright::metrics::Metrics;
use kubewright::predicate::Predicate;
use kubewright::{
    Action, Context, ControlLoop, Controller, Error, ObjectKey, Operator, Reconciler, Request,
    predicate,
};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Cluster;

/// An informer of what is labelled `app=test` in the namespace `default`.
fn informer<K: Object<DynamicType = ()>>(
    cluster: &Cluster,
    tasks: &mut JoinSet<()>,
) -> Informer<K> {
    let scope = Scope { labels: Some("app=test".to_owned()), ..Scope::within(["default"]) };
    let (informer, run) = Informer::new(Source::new(cluster.client(), (), scope));
    tasks.spawn(run);
    informer
}

fn object<K: Object>(name: &str, more: Value) -> K {
    let mut object = json!({"metadata": {"name": name, "labels": {"app": "test"}}});
    json_patch(&mut object, more);
    serde_json::from_value(object).expect("an object")
}

/// Merges one object into another.
fn json_patch(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                json_patch(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn config_maps(cluster: &Cluster) -> Api<ConfigMap> {
    Api::default_namespaced(cluster.client())
}

async fn create(cluster: &Cluster, name: impl AsRef<str>) -> ConfigMap {
    let object = object(name.as_ref(), json!({}));
    config_maps(cluster).create(&PostParams::default(), &object).await.expect("created")
}

async fn set(cluster: &Cluster, name: impl AsRef<str>, patch: Value) {
    let patch = Patch::Merge(patch);
    config_maps(cluster)
        .patch(name.as_ref(), &PatchParams::default(), &patch)
        .await
        .expect("changed");
}

/// A controller of ConfigMaps whose reconciles are told of, and end as `judge` says.
struct Site {
    tasks: JoinSet<()>,
    told: mpsc::UnboundedReceiver<(String, Option<Arc<ConfigMap>>)>,
    shutdown: CancellationToken,
}

impl Site {
    fn start(
        cluster: &Cluster,
        adapt: impl FnOnce(ControlLoop<ConfigMap>, &mut JoinSet<()>) -> ControlLoop<ConfigMap>,
        judge: impl Fn(&Request<ConfigMap>) -> Result<Action, Error> + Send + Sync + 'static,
    ) -> Self {
        let mut tasks = JoinSet::new();
        let informer = informer::<ConfigMap>(cluster, &mut tasks);
        let controller = adapt(ControlLoop::new("test", &informer), &mut tasks);
        let (tell, told) = mpsc::unbounded_channel();
        let shutdown = CancellationToken::new();
        let running = controller.run(shutdown.clone(), move |request: Request<ConfigMap>| {
            let _ = tell.send((request.key.name().to_owned(), request.object.clone()));
            let judged = judge(&request);
            async move { judged }
        });
        tasks.spawn(async move { running.await.expect("its informers are ready") });
        Site { tasks, told, shutdown }
    }

    /// Which object was reconciled next, and whether it was there.
    async fn next(&mut self) -> String {
        let next = tokio::time::timeout(Duration::from_secs(3600), self.told.recv());
        let (name, object) = next.await.expect("in an hour").expect("it runs");
        format!("{name} {}", if object.is_some() { "is there" } else { "is gone" })
    }

    async fn end(mut self) {
        self.shutdown.cancel();
        drop(self.told);
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_there_what_changes_and_what_goes_is_reconciled() {
    let cluster = Cluster::start().await;
    create(&cluster, "a").await;
    let mut site = Site::start(&cluster, |controller, _| controller, |_| Ok(Action::Done));
    assert_eq!(site.next().await, "a is there");
    create(&cluster, "b").await;
    assert_eq!(site.next().await, "b is there");
    set(&cluster, "a", json!({"data": {"x": "1"}})).await;
    assert_eq!(site.next().await, "a is there");
    config_maps(&cluster).delete("a", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(site.next().await, "a is gone");
    site.end().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn failures_and_panics_are_tried_again_and_terminal_errors_are_not() {
    let cluster = Cluster::start().await;
    for name in ["fails", "ends", "panics"] {
        create(&cluster, name).await;
    }
    let mut site = Site::start(
        &cluster,
        |controller, _| controller,
        |request| match request.key.name() {
            _ if request.failures > 1 => Ok(Action::Done),
            "fails" => Err(Error::retry("not yet")),
            "ends" => Err(Error::terminal("never")),
            _ => panic!("a reconcile that panics"),
        },
    );
    let mut counts = BTreeMap::<String, u32>::new();
    for _ in 0..7 {
        *counts.entry(site.next().await).or_default() += 1;
    }
    let counts: Vec<_> = counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(counts, [("ends is there", 1), ("fails is there", 3), ("panics is there", 3)]);
    site.end().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_changes_has_its_owner_reconciled() {
    let cluster = Cluster::start().await;
    let owner = create(&cluster, "owner").await;
    let adapt = |controller: ControlLoop<ConfigMap>, tasks: &mut JoinSet<()>| {
        controller.owns(&informer::<Secret>(&cluster, tasks))
    };
    let mut site = Site::start(&cluster, adapt, |_| Ok(Action::Done));
    assert_eq!(site.next().await, "owner is there");
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client());
    let child = object(
        "child",
        json!({"metadata": {"ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "controller": true,
            "uid": owner.metadata.uid,
        }]}}),
    );
    secrets.create(&PostParams::default(), &child).await.expect("created");
    assert_eq!(site.next().await, "owner is there");
    secrets.delete("child", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(site.next().await, "owner is there");
    site.end().await;
    cluster.shutdown().await;
}

/// What came or changed while nobody could watch was as urgent as what had been there all along.
#[tokio::test(start_paused = true)]
async fn what_is_found_when_everything_is_listed_again_is_as_urgent_as_any_news() {
    let cluster = Cluster::start().await;
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client());
    for name in ["old", "older"] {
        create(&cluster, name).await;
        let secret = object(name, json!({}));
        secrets.create(&PostParams::default(), &secret).await.expect("created");
    }
    let mut tasks = JoinSet::new();
    let primary = informer::<ConfigMap>(&cluster, &mut tasks);
    let others = informer::<Secret>(&cluster, &mut tasks);
    let related = informer::<Secret>(&cluster, &mut tasks);
    let control = ControlLoop::new("test", &primary)
        .watches(&others, |secret: &Secret| {
            vec![ObjectKey::new(
                Some("mapped"),
                secret.metadata.name.as_deref().unwrap_or_default(),
            )]
        })
        .depends_on(&related, |_: &Change<Secret>, own: &ConfigMap| {
            own.metadata.name.as_deref() == Some("older")
        });
    let (queue, shutdown) = (control.queue(), CancellationToken::new());
    // The first reconcile never ends, so that the others can be seen to wait.
    tasks.spawn({
        let running = control.run(shutdown.clone(), |_| std::future::pending());
        async move { running.await.expect("its informers are ready") }
    });
    let waiting = || queue.upgrade().map(|queue| queue.stats().depth).unwrap_or_default();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(waiting(), BTreeMap::from([(-100, 3)]));

    let held = cluster.faults().hold_watches();
    set(&cluster, "old", json!({"data": {"x": "1"}})).await;
    create(&cluster, "new").await;
    let changed = Patch::Merge(json!({"stringData": {"x": "1"}}));
    secrets.patch("older", &PatchParams::default(), &changed).await.expect("changed");
    // They begin again, from too long ago.
    cluster.faults().answer(410, 3, |request| {
        request.uri.query().is_some_and(|query| query.contains("watch="))
    });
    cluster.faults().cut_watches();
    drop(held);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(waiting(), BTreeMap::from([(-100, 1), (0, 4)]));
    tasks.shutdown().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn changes_that_do_not_matter_are_passed_over_and_deletions_never() {
    let cluster = Cluster::start().await;
    create(&cluster, "a").await;
    let adapt = |controller: ControlLoop<ConfigMap>, _: &mut JoinSet<()>| {
        controller.when(predicate::annotations())
    };
    let mut site = Site::start(&cluster, adapt, |_| Ok(Action::Done));
    assert_eq!(site.next().await, "a is there");
    set(&cluster, "a", json!({"data": {"x": "1"}})).await;
    create(&cluster, "b").await;
    assert_eq!(site.next().await, "b is there");
    set(&cluster, "a", json!({"metadata": {"annotations": {"x": "1"}}})).await;
    assert_eq!(site.next().await, "a is there");
    config_maps(&cluster).delete("a", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(site.next().await, "a is gone");
    site.end().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_takes_too_long_is_counted_and_tried_again() {
    let cluster = Cluster::start().await;
    create(&cluster, "a").await;
    let mut tasks = JoinSet::new();
    let informer = informer::<ConfigMap>(&cluster, &mut tasks);
    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::new(&mut registry));
    let (tell, mut told) = mpsc::unbounded_channel();
    let shutdown = CancellationToken::new();
    let control = ControlLoop::new("test", &informer).deadline(Duration::from_secs(5));
    let running =
        control.metrics(&metrics).run(shutdown.clone(), move |request: Request<ConfigMap>| {
            let tell = tell.clone();
            async move {
                let _ = tell.send(request.failures);
                if request.failures < 2 {
                    std::future::pending::<()>().await;
                }
                Ok(Action::Done)
            }
        });
    tasks.spawn(async move { running.await.expect("its informers are ready") });
    let begun = Instant::now();
    for failures in 0..3 {
        assert_eq!(told.recv().await, Some(failures));
    }
    assert_eq!(begun.elapsed().as_secs(), 10);
    let mut counted = String::new();
    encode(&mut counted, &registry).expect("a text");
    let line = r#"controller_runtime_reconcile_timeouts_total{controller="test"} 2"#;
    assert!(counted.lines().any(|counted| counted == line), "{counted}");
    shutdown.cancel();
    drop(informer);
    while tasks.join_next().await.is_some() {}
    cluster.shutdown().await;
}

/// A leader that had lost its lease went on with what it had begun, and so did the next one with the
/// same.
#[tokio::test(start_paused = true)]
async fn reconciles_under_way_end_when_they_are_to_and_are_given_up_when_they_are_revoked() {
    for is_revoked in [false, true] {
        let cluster = Cluster::start().await;
        create(&cluster, "a").await;
        let mut tasks = JoinSet::new();
        let informer = informer::<ConfigMap>(&cluster, &mut tasks);
        let (tell, mut told) = mpsc::unbounded_channel();
        let (shutdown, revoked) = (CancellationToken::new(), CancellationToken::new());
        let control = ControlLoop::new("test", &informer).revoked_by(revoked.clone());
        let running = control.run(shutdown.clone(), move |_: Request<ConfigMap>| {
            let tell = tell.clone();
            async move {
                let _ = tell.send("begun");
                tokio::time::sleep(Duration::from_secs(20)).await;
                let _ = tell.send("done");
                Ok(Action::Done)
            }
        });
        tasks.spawn(async move { running.await.expect("its informers are ready") });
        assert_eq!(told.recv().await, Some("begun"));
        if is_revoked {
            revoked.cancel();
        }
        shutdown.cancel();
        let rest = told.recv().await;
        assert_eq!(rest, (!is_revoked).then_some("done"));
        assert_eq!(told.recv().await, None);
        drop(informer);
        while tasks.join_next().await.is_some() {}
        cluster.shutdown().await;
    }
}

/// A change came while the controller's own objects could not be read, and nobody looked at them
/// again when they could.
#[tokio::test(start_paused = true)]
async fn a_change_is_not_lost_while_those_whom_it_matters_to_cannot_be_read() {
    let cluster = Cluster::start().await;
    create(&cluster, "a").await;
    let adapt = |controller: ControlLoop<ConfigMap>, tasks: &mut JoinSet<()>| {
        controller.depends_on(&informer::<Secret>(&cluster, tasks), |_, _| true)
    };
    let mut site = Site::start(&cluster, adapt, |_| Ok(Action::Done));
    assert_eq!(site.next().await, "a is there");
    let is_own = |request: &http::request::Parts| request.uri.path().ends_with("/configmaps");
    let is_watch = |request: &http::request::Parts| {
        request.uri.query().is_some_and(|query| query.contains("watch=1"))
    };
    cluster.faults().answer(403, 10, move |request| is_own(request) && is_watch(request));
    cluster.faults().cut_watches();
    // By now it is forbidden, and Secrets are watched again.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client());
    let secret = object("other", json!({}));
    secrets.create(&PostParams::default(), &secret).await.expect("created");
    assert_eq!(site.next().await, "a is there");
    site.end().await;
    cluster.shutdown().await;
}

/// They are called by whoever watches for all, who died of it.
#[tokio::test(start_paused = true)]
async fn predicates_and_mappings_that_panic_stop_nobody() {
    let cluster = Cluster::start().await;
    create(&cluster, "a").await;
    let adapt = |controller: ControlLoop<ConfigMap>, tasks: &mut JoinSet<()>| {
        let secrets = informer::<Secret>(&cluster, tasks);
        controller
            .when(Predicate::new(|_: &ConfigMap, _: &ConfigMap| panic!("a predicate")))
            .watches(&secrets, |_: &Secret| panic!("a mapping"))
            .depends_on(&secrets, |_: &Change<Secret>, _: &ConfigMap| panic!("a dependency"))
    };
    let mut site = Site::start(&cluster, adapt, |_| Ok(Action::Done));
    assert_eq!(site.next().await, "a is there");
    // What cannot tell whether a change matters does not keep anybody from looking.
    set(&cluster, "a", json!({"data": {"x": "1"}})).await;
    assert_eq!(site.next().await, "a is there");
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client());
    let secret = object("other", json!({}));
    secrets.create(&PostParams::default(), &secret).await.expect("created");
    assert_eq!(site.next().await, "a is there");
    create(&cluster, "b").await;
    assert_eq!(site.next().await, "b is there");
    site.end().await;
    cluster.shutdown().await;
}

/// What a reconcile saw last of each object, and who is being reconciled.
#[derive(Default)]
struct Ledger {
    last: BTreeMap<ObjectKey, Option<String>>,
    busy: BTreeSet<ObjectKey>,
    /// Who was reconciled twice at once. A panic there would be taken for a failed reconcile.
    twice: Vec<ObjectKey>,
}

/// How many are created or changed at the same time.
const AT_ONCE: usize = 50;

/// Changes a third of the objects at a time, in six rounds, while watches drop, stall and are too
/// late; deletes one in each round.
async fn shake(
    cluster: &Cluster,
    objects: usize,
    change: impl AsyncFn(usize, usize),
    delete: impl AsyncFn(usize),
) {
    for round in 0..6 {
        let held = (round % 2 == 0).then(|| cluster.faults().hold_watches());
        let changed: Vec<usize> = (round..objects).step_by(3).collect();
        for (count, batch) in changed.chunks(AT_ONCE).enumerate() {
            join_all(batch.iter().map(|&number| change(number, round))).await;
            // Also in the middle of it.
            if count % 7 == 3 {
                cluster.faults().cut_watches();
            }
        }
        match round % 3 {
            0 => {
                let is_resumed = |request: &http::request::Parts| {
                    request.uri.query().is_some_and(|query| query.contains("&resourceVersion="))
                };
                cluster.faults().answer(410, 1, is_resumed);
            }
            // The same while it is open.
            1 => cluster.faults().expire_watches(),
            _ => {}
        }
        cluster.faults().cut_watches();
        drop(held);
        delete(round).await;
    }
}

/// Two thousand, or as many as `KUBEWRIGHT_OBJECTS` says; `cargo xtask long` says ten thousand.
fn objects() -> usize {
    std::env::var("KUBEWRIGHT_OBJECTS")
        .map_or(2_000, |count| count.parse().expect("KUBEWRIGHT_OBJECTS is a number"))
}

#[tokio::test(start_paused = true)]
async fn every_object_is_reconciled_at_its_last_version_whatever_watches_do() {
    let objects = objects();
    let cluster = Cluster::start().await;
    let mut tasks = JoinSet::new();
    let informer = informer::<ConfigMap>(&cluster, &mut tasks);
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let shutdown = CancellationToken::new();
    let keeping = Arc::clone(&ledger);
    let running = ControlLoop::new("test", &informer).at_once(8).run(
        shutdown.clone(),
        move |request: Request<ConfigMap>| {
            let ledger = Arc::clone(&keeping);
            async move {
                {
                    let mut ledger = ledger.lock().unwrap();
                    if !ledger.busy.insert(request.key.clone()) {
                        ledger.twice.push(request.key.clone());
                    }
                }
                tokio::task::yield_now().await;
                let version = request.object.and_then(|it| it.metadata.resource_version.clone());
                let mut ledger = ledger.lock().unwrap();
                ledger.busy.remove(&request.key);
                ledger.last.insert(request.key, version);
                Ok(Action::Done)
            }
        },
    );
    tasks.spawn(async move { running.await.expect("its informers are ready") });

    let name = |number: usize| format!("object-{number}");
    let numbers: Vec<usize> = (0..objects).collect();
    for batch in numbers.chunks(AT_ONCE) {
        join_all(batch.iter().map(|&number| create(&cluster, name(number)))).await;
    }
    let change = async |number, round: usize| {
        let patch = json!({"data": {"round": round.to_string()}});
        set(&cluster, name(number), patch).await;
    };
    let delete = async |number| {
        let deleted = config_maps(&cluster).delete(&name(number), &DeleteParams::default()).await;
        deleted.expect("deleted");
    };
    shake(&cluster, objects, change, delete).await;

    let expected: BTreeMap<ObjectKey, Option<String>> = {
        let labelled = ListParams::default().labels("app=test");
        let list = config_maps(&cluster).list(&labelled).await.expect("a list");
        let there = list
            .items
            .into_iter()
            .map(|it| (ObjectKey::of(&it.metadata), it.metadata.resource_version));
        let gone = (0..6).map(|round| (ObjectKey::new(Some("default"), &name(round)), None));
        there.chain(gone).collect()
    };
    let agreed = async {
        while ledger.lock().unwrap().last != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let agreed = tokio::time::timeout(Duration::from_secs(600), agreed).await;
    assert!(agreed.is_ok(), "some object was not reconciled at its last version");
    let twice = std::mem::take(&mut ledger.lock().unwrap().twice);
    assert!(twice.is_empty(), "{twice:?} were reconciled twice at once");
    // What is kept is what the server has.
    let kept = informer.list().expect("it is ready").into_iter();
    let kept = kept.map(|it| (ObjectKey::of(&it.metadata), it.metadata.resource_version.clone()));
    let there = expected.into_iter().filter(|(_, version)| version.is_some());
    assert_eq!(kept.collect::<BTreeMap<_, _>>(), there.collect::<BTreeMap<_, _>>());
    shutdown.cancel();
    drop(informer);
    while tasks.join_next().await.is_some() {}
    cluster.shutdown().await;
}

/// What is wanted, and what a reconcile found of it and of its child.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Echo", namespaced)]
#[kube(status = "EchoStatus")]
struct EchoSpec {
    said: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct EchoStatus {
    heard: String,
}

/// Has a ConfigMap repeat what is said.
#[derive(Clone, Default)]
struct Valley(Arc<Mutex<Ledger>>);

impl Reconciler<Echo> for Valley {
    async fn reconcile(&self, echo: &mut Echo, ctx: &Context) -> Result<Action, Error> {
        let key = ObjectKey::of(&echo.metadata);
        {
            let mut ledger = self.0.lock().unwrap();
            if !ledger.busy.insert(key.clone()) {
                ledger.twice.push(key.clone());
            }
        }
        let child = ConfigMap {
            metadata: ObjectMeta { name: echo.metadata.name.clone(), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([("said".to_owned(), echo.spec.said.clone())])),
            ..ConfigMap::default()
        };
        let applied = ctx.apply(child).await;
        self.0.lock().unwrap().busy.remove(&key);
        applied?;
        echo.status.get_or_insert_default().heard.clone_from(&echo.spec.said);
        Ok(Action::Done)
    }
}

/// The same through a whole operator, which writes children and status meanwhile; people spoil
/// children, too.
async fn echo_all(adapt: impl FnOnce(Operator) -> Operator) {
    // Each costs as much as a handful of those above.
    let objects = objects() / 4;
    let cluster = Cluster::start().await;
    let valley = Valley::default();
    let controller = Controller::new("valley", valley.clone()).owns::<ConfigMap>().at_once(8);
    let operator = Operator::new("valley").kind::<Echo>().controller(controller);
    let running = cluster.run(adapt(operator)).await;
    let echoes: Api<Echo> = Api::default_namespaced(cluster.client());
    let name = |number: usize| format!("echo-{number}");
    let numbers: Vec<usize> = (0..objects).collect();
    for batch in numbers.chunks(AT_ONCE) {
        join_all(batch.iter().map(|&number| {
            let (echoes, name) = (&echoes, name(number));
            async move {
                let echo = Echo::new(&name, EchoSpec { said: "first".to_owned() });
                echoes.create(&PostParams::default(), &echo).await.expect("created");
            }
        }))
        .await;
    }
    let change = async |number, round: usize| {
        let patch = Patch::Merge(json!({"spec": {"said": round.to_string()}}));
        let changed = echoes.patch(&name(number), &PatchParams::default(), &patch).await;
        changed.expect("changed");
        if number % 10 == round {
            let spoilt = Patch::Merge(json!({"data": {"said": "nonsense"}}));
            // It may not be there yet.
            let params = PatchParams::default();
            let _ = config_maps(&cluster).patch(&name(number), &params, &spoilt).await;
        }
    };
    let delete = async |number| {
        let deleted = echoes.delete(&name(number), &DeleteParams::default()).await;
        deleted.expect("deleted");
    };
    shake(&cluster, objects, change, delete).await;

    let begun = Instant::now();
    loop {
        let all = echoes.list(&ListParams::default()).await.expect("a list").items;
        let children = config_maps(&cluster).list(&ListParams::default()).await.expect("a list");
        let children: BTreeMap<String, String> = children
            .items
            .into_iter()
            .filter_map(|it| Some((it.metadata.name?, it.data?.remove("said")?)))
            .collect();
        let is_done = |echo: &Echo| {
            let said = &echo.spec.said;
            echo.status.as_ref().is_some_and(|status| status.heard == *said)
                && children.get(echo.metadata.name.as_deref().unwrap_or_default()) == Some(said)
        };
        if all.iter().all(is_done) {
            assert_eq!(all.len(), objects - 6);
            break;
        }
        let undone = || all.iter().find(|echo| !is_done(echo));
        assert!(begun.elapsed() < Duration::from_secs(600), "it stays so: {:#?}", undone());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let twice = std::mem::take(&mut valley.0.lock().unwrap().twice);
    assert!(twice.is_empty(), "{twice:?} were reconciled twice at once");
    running.stop().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_brings_every_object_about_whatever_watches_do() {
    echo_all(|operator| operator).await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_keeps_objects_brings_every_object_about_whatever_watches_do() {
    echo_all(Operator::keeping_objects).await;
}
