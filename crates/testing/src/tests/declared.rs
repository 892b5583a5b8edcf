//! What controllers declare besides what they own, and operators besides controllers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kubewright::access::Access;
use kubewright::informer::Scope;
use kubewright::{Action, Context, Controller, Error, ObjectKey, Operator, Reconciler, predicate};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{Cluster, Running};

/// Tells what it reconciles.
struct Teller(mpsc::UnboundedSender<String>);

impl Reconciler<ConfigMap> for Teller {
    async fn reconcile(&self, object: &mut ConfigMap, _: &Context) -> Result<Action, Error> {
        let _ = self.0.send(object.name_any());
        Ok(Action::Done)
    }
}

/// A ConfigMap `it` that is reconciled, and Secrets.
struct Site {
    cluster: Cluster,
    running: Running,
    told: mpsc::UnboundedReceiver<String>,
}

impl Site {
    async fn start(
        declare: impl FnOnce(Controller<ConfigMap, Teller>) -> Controller<ConfigMap, Teller>,
    ) -> Self {
        let cluster = Cluster::start().await;
        create_it(&cluster).await;
        let (tell, told) = mpsc::unbounded_channel();
        let controller = declare(Controller::new("teller", Teller(tell)).labelled("app=test"));
        let running = cluster.run(Operator::new("teller").controller(controller)).await;
        let mut site = Site { cluster, running, told };
        site.told().await;
        site
    }

    /// Waits for a reconcile.
    async fn told(&mut self) {
        let told = tokio::time::timeout(Duration::from_secs(60), self.told.recv());
        assert_eq!(told.await.expect("in a minute").as_deref(), Some("it"));
    }

    /// Makes sure that nothing is reconciled for a while.
    async fn is_silent(&mut self) {
        let told = tokio::time::timeout(Duration::from_secs(60), self.told.recv());
        assert_eq!(told.await.ok(), None);
    }

    async fn patch(&self, patch: Value) {
        let secrets: Api<Secret> = Api::default_namespaced(self.cluster.client());
        let patch = Patch::Merge(patch);
        secrets.patch("other", &PatchParams::default(), &patch).await.expect("changed");
    }

    async fn end(self) {
        self.running.stop().await;
        self.cluster.shutdown().await;
    }
}

async fn create_it(cluster: &Cluster) {
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let map = json!({"metadata": {"name": "it", "labels": {"app": "test"}}});
    let map = serde_json::from_value(map).expect("an object");
    maps.create(&PostParams::default(), &map).await.expect("created");
}

async fn create_secret(cluster: &Cluster, object: Value) {
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client());
    let secret = serde_json::from_value(object).expect("an object");
    secrets.create(&PostParams::default(), &secret).await.expect("created");
}

fn it() -> ObjectKey {
    ObjectKey::new(Some("default"), "it")
}

#[tokio::test(start_paused = true)]
async fn of_changes_of_others_those_count_that_matter() {
    let mut site =
        Site::start(|it_| it_.watches_when::<Secret>(predicate::labels(), |_| vec![it()])).await;
    create_secret(&site.cluster, json!({"metadata": {"name": "other"}})).await;
    site.told().await;
    site.patch(json!({"stringData": {"x": "1"}})).await;
    site.is_silent().await;
    site.patch(json!({"metadata": {"labels": {"x": "1"}}})).await;
    site.told().await;
    // That it goes always matters.
    let secrets: Api<Secret> = Api::default_namespaced(site.cluster.client());
    secrets.delete("other", &Default::default()).await.expect("deleted");
    site.told().await;
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn of_changes_of_children_those_count_that_matter() {
    let mut site = Site::start(|it_| it_.owns_when::<Secret>(predicate::labels())).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(site.cluster.client());
    let uid = maps.get("it").await.expect("it").metadata.uid;
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "it", "uid": uid, "controller": true,
    });
    let child = json!({"metadata": {"name": "other", "ownerReferences": [owner]}});
    create_secret(&site.cluster, child).await;
    site.told().await;
    site.patch(json!({"stringData": {"x": "1"}})).await;
    site.is_silent().await;
    site.patch(json!({"metadata": {"labels": {"x": "1"}}})).await;
    site.told().await;
    site.end().await;
}

/// Writes down what it finds of Secrets.
struct Finder;

impl Reconciler<ConfigMap> for Finder {
    async fn reconcile(&self, object: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
        let found = match object.name_any().as_str() {
            "by-color" => {
                let red = ctx.by_index::<Secret>("color", "red").await?;
                let names: Vec<String> = red.iter().map(|secret| secret.name_any()).collect();
                let wrong = ctx.by_index::<Secret>("size", "1").await.expect_err("it has none");
                format!("{names:?}; {wrong}")
            }
            "metadata" => {
                let outline = ctx.get::<PartialObjectMeta<Secret>>(None, "rose").await?;
                let labels = outline.and_then(|it| it.metadata.labels.clone());
                format!("{:?}", labels.unwrap_or_default())
            }
            "projected" => {
                let rose = ctx.get::<Secret>(None, "rose").await?.expect("it is there");
                let reports = ctx.cache().report();
                let bytes = reports.iter().find(|it| it.kind == "Secret").map(|it| it.bytes);
                let is_small = bytes.is_some_and(|bytes| bytes < 2_000);
                let seen = rose.annotations().get("seen");
                format!("data: {}, seen: {seen:?}, small: {is_small}", rose.data.is_some())
            }
            _ => return Ok(Action::Done),
        };
        object.data = Some(BTreeMap::from([("found".to_owned(), found)]));
        Ok(Action::Done)
    }
}

/// What is found about Secrets, in a cluster with a few.
async fn found(
    name: &str,
    declare: impl FnOnce(Controller<ConfigMap, Finder>) -> Operator,
) -> String {
    let cluster = Cluster::start().await;
    for (secret, color) in [("rose", "red"), ("tulip", "red"), ("violet", "blue")] {
        let secret = json!({
            "metadata": {"name": secret, "labels": {"color": color}},
            "stringData": {"x": "1".repeat(10_000)},
        });
        create_secret(&cluster, secret).await;
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let map = ConfigMap { metadata, ..ConfigMap::default() };
    maps.create(&PostParams::default(), &map).await.expect("created");
    let running = cluster.run(declare(Controller::new("finder", Finder))).await;
    let found = |map: Option<&ConfigMap>| map?.data.as_ref()?.get("found").cloned();
    let map = cluster.eventually(Some("default"), name, |map| found(map).is_some()).await;
    let found = found(map.as_deref()).expect("it is found");
    running.stop().await;
    cluster.shutdown().await;
    found
}

#[tokio::test(start_paused = true)]
async fn objects_are_found_by_the_indexes_of_a_controller() {
    let found = found("by-color", |finder| {
        let color = |secret: &Secret| secret.labels().get("color").cloned().into_iter().collect();
        let finder = finder.reads::<Secret>().indexed::<Secret>("color", color);
        // Another one may call its own the same.
        let other = Controller::<ConfigMap, _>::new("other", Finder)
            .labelled("app=none")
            .reads::<Secret>()
            .indexed::<Secret>("color", |_| vec!["red".to_owned()]);
        Operator::new("finder").controller(finder).controller(other)
    });
    let wrong =
        r#"Secret has no index "size": say `.indexed::<Secret>("size", …)` of the controller"#;
    assert_eq!(found.await, format!(r#"["rose", "tulip"]; {wrong}"#));
}

#[tokio::test(start_paused = true)]
async fn of_some_kinds_only_metadata_is_looked_at() {
    let mut site = Site::start(|it_| it_.watches_metadata::<Secret>(|_| vec![it()])).await;
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let noting = Arc::clone(&asked);
    // It only listens.
    site.cluster.faults().answer(500, 1, move |request| {
        if request.uri.path().ends_with("/secrets") && request.method == http::Method::GET {
            let accept = request.headers.get("accept").and_then(|it| it.to_str().ok());
            noting.lock().unwrap().push(accept.unwrap_or_default().to_owned());
        }
        false
    });
    create_secret(&site.cluster, json!({"metadata": {"name": "other"}})).await;
    site.told().await;
    site.patch(json!({"stringData": {"x": "1"}})).await;
    site.told().await;
    site.cluster.faults().cut_watches();
    site.is_silent().await;
    let asked = asked.lock().unwrap().clone();
    assert!(!asked.is_empty());
    assert!(asked.iter().all(|accept| accept.contains("as=PartialObjectMetadata")), "{asked:?}");
    site.end().await;
    let found = found("metadata", |finder| {
        let finder = finder.watches_metadata::<Secret>(|_| Vec::new());
        Operator::new("finder").controller(finder)
    });
    assert_eq!(found.await, r#"{"color": "red"}"#);
}

/// Of what nobody reads nothing is kept, once and for all.
#[tokio::test(start_paused = true)]
async fn objects_lose_what_an_operator_does_not_want() {
    let operator = |finder: Controller<ConfigMap, Finder>| {
        let finder = finder.reads::<Secret>();
        Operator::new("finder").controller(finder).projecting(|secret: &mut Secret| {
            secret.data = None;
            let annotations = secret.metadata.annotations.get_or_insert_default();
            annotations.entry("seen".to_owned()).or_default().push('!');
        })
    };
    let of_texts = found("projected", operator).await;
    assert_eq!(of_texts, r#"data: false, seen: Some("!"), small: true"#);
    let of_objects = found("projected", |finder| operator(finder).keeping_objects()).await;
    assert_eq!(of_objects, r#"data: false, seen: Some("!"), small: false"#);
}

/// A diary of what runs.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn what_every_replica_runs_begins_before_controllers_and_ends_after_them() {
    let (cluster, diary) = (Cluster::start().await, Diary::default());
    create_it(&cluster).await;
    let accounts = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ServiceAccount"));
    let (tell, mut told) = mpsc::unbounded_channel();
    let (everywhere, leading) = (diary.clone(), diary.clone());
    let operator = Operator::new("test")
        .may(Access::read::<ServiceAccount>())
        .runs("census", move |around, stop| {
            let (diary, accounts) = (everywhere.clone(), accounts.clone());
            async move {
                diary.note("census begins");
                let scope = Scope::within(["default"]);
                let accounts = around.cache.informer_of::<DynamicObject>(accounts, &scope);
                accounts.synced(Duration::from_secs(60)).await?;
                let names = accounts.list()?.iter().map(|it| it.name_any()).collect::<Vec<_>>();
                diary.note(format!("census finds {names:?}"));
                stop.cancelled().await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                diary.note("census ends");
                Ok(())
            }
        })
        .runs_leading("chores", move |_, stop| {
            let diary = leading.clone();
            async move {
                diary.note("chores begin");
                stop.cancelled().await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                diary.note("chores end");
                Ok(())
            }
        })
        .controller(Controller::new("teller", Teller(tell)).labelled("app=test"));
    let running = cluster.run(operator).await;
    assert_eq!(told.recv().await.as_deref(), Some("it"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.stop().await;
    let mut diary = diary.all();
    diary[..3].sort();
    assert_eq!(
        diary,
        [
            "census begins",
            r#"census finds ["default"]"#,
            "chores begin",
            "chores end",
            "census ends"
        ]
    );
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_fails_or_panics_is_started_again_and_what_is_done_is_not() {
    let (cluster, diary) = (Cluster::start().await, Diary::default());
    let notes = diary.clone();
    let operator = Operator::new("test").runs("tide", move |_, _| {
        notes.note("comes");
        let times = notes.all().len();
        async move {
            match times {
                1 => Err(Error::retry("it is ebb")),
                2 => panic!("a wave too high"),
                _ => Ok(()),
            }
        }
    });
    let running = cluster.run(operator).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(diary.all(), ["comes"; 3]);
    running.stop().await;
    cluster.shutdown().await;
}

#[test]
#[should_panic(expected = "there is a controller \"teller\" already")]
fn two_controllers_of_one_name_are_refused() {
    let (tell, _) = mpsc::unbounded_channel();
    let controller = || Controller::<ConfigMap, _>::new("teller", Teller(tell.clone()));
    let _ = Operator::new("test").controller(controller()).controller(controller());
}

#[test]
fn how_long_it_may_take_to_stop_is_said_to_the_program_and_to_its_pod() {
    let operator = Operator::new("test").graceful_shutdown(Duration::from_millis(90_500));
    let manifests = operator.package().render().expect("manifests");
    let mut deployments = manifests.iter().filter(|it| it.kind() == "Deployment");
    let pod = &deployments.next().expect("a Deployment").object["spec"]["template"]["spec"];
    assert_eq!(pod["terminationGracePeriodSeconds"], 101);
    let arguments = pod["containers"][0]["args"].as_array().expect("arguments");
    assert!(arguments.contains(&json!("--graceful-shutdown-timeout=90.5s")), "{arguments:?}");
}
