//! Whole operators: what they write, what they do not, and what they make of deletions.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::events::v1::Event as StoredEvent;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{CustomResource, CustomResourceExt as _};
use kubewright::access::Access;
use kubewright::condition::Conditions as _;
use kubewright::informer::{Change, Informer, Scope, Source};
use kubewright::manifest::Part;
use kubewright::operator::{Host, Surrounding};
use kubewright::serve::Bind;
use kubewright::settings::Settings;
use kubewright::{Action, Context, Controller, Error, Event, ObjectKey, Operator, Reconciler};
use prometheus_client::registry::Registry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Cluster, Running};

/// A greeting that is kept in a ConfigMap.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
#[kube(status = "GreetingStatus")]
struct GreetingSpec {
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct GreetingStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Clone, Default)]
struct Greeter {
    reconciles: Arc<AtomicU32>,
    cleanups: Arc<AtomicU32>,
}

impl Reconciler<Greeting> for Greeter {
    async fn reconcile(&self, greeting: &mut Greeting, ctx: &Context) -> Result<Action, Error> {
        self.reconciles.fetch_add(1, Ordering::SeqCst);
        let text = format!("Hello, {}!", greeting.spec.name);
        let name = greeting.metadata.name.clone();
        ctx.apply(ConfigMap {
            metadata: ObjectMeta { name, ..ObjectMeta::default() },
            data: Some(BTreeMap::from([("text".to_owned(), text)])),
            ..ConfigMap::default()
        })
        .await?;
        let status = greeting.status.get_or_insert_default();
        if greeting.spec.name == "nobody" {
            status.conditions.set(ctx.condition("Ready", false, "Nobody", "nobody is greeted"));
            ctx.event(Event::warning("Nobody", "there is nobody to greet"));
            return Err(Error::terminal("nobody is greeted"));
        }
        status.conditions.set(ctx.condition("Ready", true, "Greeted", "it is said"));
        Ok(Action::Done)
    }

    async fn cleanup(&self, _: &mut Greeting, _: &Context) -> Result<Action, Error> {
        match self.cleanups.fetch_add(1, Ordering::SeqCst) {
            0 => Ok(Action::RequeueAfter(Duration::from_secs(30))),
            _ => Ok(Action::Done),
        }
    }
}

/// A cluster in which greetings are served, and an operator at work.
struct Site {
    cluster: Cluster,
    greeter: Greeter,
    running: Option<Running>,
}

impl Site {
    async fn start() -> Self {
        let mut site = Site::empty().await;
        let operator = site.operator().kind::<Greeting>();
        site.running = Some(site.cluster.run(operator).await);
        site
    }

    async fn empty() -> Self {
        Site { cluster: Cluster::start().await, greeter: Greeter::default(), running: None }
    }

    fn operator(&self) -> Operator {
        let controller = Controller::new("greeter", self.greeter.clone())
            .finalizer("example.com/greeter")
            .owns::<ConfigMap>();
        Operator::new("greeter").controller(controller)
    }

    fn greetings(&self) -> Api<Greeting> {
        Api::default_namespaced(self.cluster.client())
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.cluster.client())
    }

    async fn greet(&self, name: &str) -> Greeting {
        let greeting = Greeting::new("first", GreetingSpec { name: name.to_owned() });
        self.greetings().create(&PostParams::default(), &greeting).await.expect("created")
    }

    async fn ready(&self) -> Arc<Greeting> {
        self.until(|greeting| greeting.is_some_and(|it| condition(it, "True"))).await.expect("it")
    }

    async fn until(&self, is_so: impl Fn(Option<&Greeting>) -> bool) -> Option<Arc<Greeting>> {
        self.cluster.eventually(Some("default"), "first", is_so).await
    }

    /// Waits until the child says something.
    async fn says(&self, text: &str) {
        let says = |child: Option<&ConfigMap>| {
            let data = child.and_then(|child| child.data.as_ref());
            data.is_some_and(|data| data["text"] == text)
        };
        self.cluster.eventually(Some("default"), "first", says).await;
    }

    async fn end(self) {
        if let Some(running) = self.running {
            running.stop().await;
        }
        self.cluster.shutdown().await;
    }
}

fn condition(greeting: &Greeting, status: &str) -> bool {
    let ready = greeting.status.as_ref().and_then(|status| status.conditions.find("Ready"));
    ready.is_some_and(|ready| ready.status == status)
}

#[tokio::test(start_paused = true)]
async fn an_object_is_brought_about_once_and_then_left_alone() {
    let site = Site::start().await;
    site.greet("Ada").await;
    let greeting = site.ready().await;
    assert_eq!(greeting.metadata.finalizers, Some(vec!["example.com/greeter".to_owned()]));
    let status = greeting.status.as_ref().expect("a status");
    assert_eq!(status.conditions[0].observed_generation, Some(1));
    let child = site.config_maps().get("first").await.expect("the child");
    assert_eq!(child.data.expect("data")["text"], "Hello, Ada!");
    let owners = child.metadata.owner_references.expect("an owner");
    assert_eq!(Some(&owners[0].uid), greeting.metadata.uid.as_ref());

    // An hour later nothing has been written again, and nobody has looked again but for the child
    // that came.
    let version = child.metadata.resource_version;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let child = site.config_maps().get("first").await.expect("the child");
    assert_eq!(child.metadata.resource_version, version);
    assert_eq!(site.greeter.reconciles.load(Ordering::SeqCst), 2);
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_edited_and_what_is_tampered_with_is_brought_about_again() {
    let site = Site::start().await;
    site.greet("Ada").await;
    site.ready().await;
    let patch = Patch::Merge(json!({"spec": {"name": "Grace"}}));
    site.greetings().patch("first", &PatchParams::default(), &patch).await.expect("edited");
    site.says("Hello, Grace!").await;
    let patch = Patch::Merge(json!({"data": {"text": "nonsense"}}));
    site.config_maps().patch("first", &PatchParams::default(), &patch).await.expect("tampered");
    site.says("Hello, Grace!").await;
    site.config_maps().delete("first", &DeleteParams::default()).await.expect("deleted");
    site.says("Hello, Grace!").await;
    site.end().await;
}

/// What an operator does with one greeting, from its beginning to its end.
async fn life(adapt: impl FnOnce(Operator) -> Operator) -> (u32, Option<String>, u32) {
    let mut site = Site::empty().await;
    let operator = adapt(site.operator().kind::<Greeting>());
    site.running = Some(site.cluster.run(operator).await);
    site.greet("Ada").await;
    let reason = site.ready().await.status.clone().map(|it| it.conditions[0].reason.clone());
    tokio::time::sleep(Duration::from_secs(600)).await;
    let reconciles = site.greeter.reconciles.load(Ordering::SeqCst);
    let patch = Patch::Merge(json!({"spec": {"name": "Grace"}}));
    site.greetings().patch("first", &PatchParams::default(), &patch).await.expect("edited");
    site.says("Hello, Grace!").await;
    let patch = Patch::Merge(json!({"data": {"text": "nonsense"}}));
    site.config_maps().patch("first", &PatchParams::default(), &patch).await.expect("tampered");
    site.says("Hello, Grace!").await;
    site.greetings().delete("first", &DeleteParams::default()).await.expect("deleted");
    site.until(|greeting| greeting.is_none()).await;
    let cleanups = site.greeter.cleanups.load(Ordering::SeqCst);
    site.end().await;
    (reconciles, reason, cleanups)
}

#[tokio::test(start_paused = true)]
async fn an_operator_does_the_same_however_its_cache_keeps_objects() {
    let expected = (2, Some("Greeted".to_owned()), 2);
    assert_eq!(life(|operator| operator).await, expected);
    assert_eq!(life(Operator::keeping_objects).await, expected);
}

#[tokio::test(start_paused = true)]
async fn an_object_goes_when_its_cleanup_is_done() {
    let site = Site::start().await;
    site.greet("Ada").await;
    site.ready().await;
    site.greetings().delete("first", &DeleteParams::default()).await.expect("deleted");
    site.until(|greeting| greeting.is_none()).await;
    assert_eq!(site.greeter.cleanups.load(Ordering::SeqCst), 2);
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_and_an_event_told_also_when_a_reconcile_fails() {
    let site = Site::start().await;
    site.greet("nobody").await;
    let is_refused =
        |greeting: Option<&Greeting>| greeting.is_some_and(|it| condition(it, "False"));
    let greeting = site.until(is_refused).await.expect("a greeting");
    let status = greeting.status.as_ref().expect("a status");
    assert_eq!(status.conditions[0].reason, "Nobody");
    // It failed for good; its own child that came is the one reason to look again.
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(site.greeter.reconciles.load(Ordering::SeqCst), 2);
    let events: Api<StoredEvent> = Api::default_namespaced(site.cluster.client());
    let events = events.list(&ListParams::default()).await.expect("a list");
    assert_eq!(events.items[0].reason.as_deref(), Some("Nobody"));
    assert_eq!(events.items[0].type_.as_deref(), Some("Warning"));
    assert_eq!(events.items[0].series.as_ref().map(|series| series.count), Some(2));
    site.end().await;
}

/// Says that it will not, and has no children whose changes would have it look again.
struct Refuser(Arc<AtomicU32>);

impl Reconciler<Greeting> for Refuser {
    async fn reconcile(&self, greeting: &mut Greeting, ctx: &Context) -> Result<Action, Error> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let status = greeting.status.get_or_insert_default();
        status.conditions.set(ctx.condition("Ready", false, "Refused", "it is not said"));
        Err(Error::terminal("it is not said"))
    }
}

/// The write was not tried again, and nobody ever learned what was wrong.
#[tokio::test(start_paused = true)]
async fn what_is_wrong_for_good_is_written_though_the_server_fails_at_first() {
    for code in [409, 429, 500] {
        let mut site = Site::empty().await;
        let is_status = |request: &http::request::Parts| {
            request.uri.path().ends_with("/greetings/first/status")
        };
        site.cluster.faults().answer(code, 2, is_status);
        let reconciles = Arc::new(AtomicU32::new(0));
        let controller = Controller::new("refuser", Refuser(Arc::clone(&reconciles)));
        let operator = Operator::new("refuser").kind::<Greeting>().controller(controller);
        site.running = Some(site.cluster.run(operator).await);
        site.greet("Ada").await;
        site.until(|greeting| greeting.is_some_and(|it| condition(it, "False"))).await;
        // Twice in vain, and no more once it is written.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(reconciles.load(Ordering::SeqCst), 3, "after {code}");
        site.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_is_told_what_is_and_what_was_done_about_it() {
    let site = Site::start().await;
    site.greet("nobody").await;
    site.until(|greeting| greeting.is_some_and(|it| condition(it, "False"))).await;
    // What is done about others comes later, and is told later.
    for number in 0..10 {
        let greeting =
            Greeting::new(&format!("other-{number}"), GreetingSpec { name: "Ada".into() });
        site.greetings().create(&PostParams::default(), &greeting).await.expect("created");
    }
    let told = AssertUnwindSafe(site.ready()).catch_unwind().await.expect_err("it is never ready");
    let told = told.downcast_ref::<String>().expect("a text");
    let place = |text: &str| told.find(text).unwrap_or_else(|| panic!("{text:?} is not in {told}"));
    let object = place("message: \"nobody is greeted\"");
    let event = place("greeter: Warning Nobody: there is nobody to greet");
    let own = place("greeter reconciled default/first: Terminal: nobody is greeted (because");
    let other = place("greeter reconciled default/other-");
    assert!(object < event && event < own && own < other, "{told}");
    site.end().await;
}

/// Controllers had so long to end, and then whoever wrote events and answered requests had as long
/// as they liked.
#[tokio::test(start_paused = true)]
async fn an_operator_ends_in_time_whatever_keeps_it() {
    let seconds = Duration::from_secs;
    assert_eq!(ended_after(|operator| operator, None).await, 30);
    assert_eq!(ended_after(|operator| operator.graceful_shutdown(seconds(12)), None).await, 12);
    let told = Some(seconds(7));
    assert_eq!(ended_after(|operator| operator.graceful_shutdown(seconds(12)), told).await, 7);
}

/// How many seconds an operator takes to end if it can.
async fn ended_after(adapt: impl FnOnce(Operator) -> Operator, told: Option<Duration>) -> u64 {
    let site = Site::empty().await;
    let definition = serde_json::to_value(Greeting::crd()).expect("a definition");
    site.cluster.apply(&definition).await;
    site.cluster.served("greetings.example.com").await;
    let is_event = |request: &http::request::Parts| request.uri.path().ends_with("/events");
    site.cluster.faults().delay(Duration::from_secs(3600), usize::MAX, is_event);
    let mut settings = Settings::default();
    settings.leader_election.wanted = Some(false);
    settings.metrics.bind = Bind::Nowhere;
    settings.probes = Bind::Nowhere;
    settings.graceful_shutdown = told;
    let host = Host {
        client: site.cluster.client(),
        clock: site.cluster.clock(),
        settings,
        namespace: "default".to_owned(),
        surrounding: Surrounding::Pod,
        registry: Registry::default(),
    };
    let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
    tasks.spawn(adapt(site.operator()).serve(host, shutdown.clone()));
    site.greet("nobody").await;
    site.until(|greeting| greeting.is_some_and(|it| condition(it, "False"))).await;
    let begun = Instant::now();
    shutdown.cancel();
    let ended = tasks.join_next().await.expect("it ends").expect("it does not panic");
    ended.expect("it could be run");
    let elapsed = begun.elapsed().as_secs();
    site.end().await;
    elapsed
}

/// What client-go writes when it leads, whoever looks at the lease finds here, too.
#[tokio::test(start_paused = true)]
async fn who_leads_and_who_does_no_more_is_told_by_events_about_the_lease() {
    let site = Site::empty().await;
    let operator = site.operator().kind::<Greeting>();
    let package = operator.package();
    for manifest in package.render().expect("manifests") {
        if matches!(manifest.part, Part::Namespace | Part::Crds | Part::Rbac) {
            site.cluster.apply(&manifest.object).await;
        }
    }
    let mut settings = Settings::default();
    settings.metrics.bind = Bind::Nowhere;
    settings.probes = Bind::Nowhere;
    let host = Host {
        client: site.cluster.client_of(&package),
        clock: site.cluster.clock(),
        settings,
        namespace: package.namespace.clone(),
        surrounding: Surrounding::Pod,
        registry: Registry::default(),
    };
    let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
    tasks.spawn(operator.serve(host, shutdown.clone()));
    site.cluster.served("greetings.example.com").await;
    site.greet("Ada").await;
    site.ready().await;
    shutdown.cancel();
    while tasks.join_next().await.is_some() {}
    let leases: Api<Lease> = Api::namespaced(site.cluster.client(), &package.namespace);
    let lease = leases.get("greeter").await.expect("a lease");
    let events: Api<StoredEvent> = Api::namespaced(site.cluster.client(), &package.namespace);
    let mut events = events.list(&ListParams::default()).await.expect("a list").items;
    events.retain(|event| event.reason.as_deref() == Some("LeaderElection"));
    events.sort_by_key(|event| event.event_time.clone().map(|time| time.0));
    let told = |event: &StoredEvent| {
        let about = event.regarding.clone().unwrap_or_default();
        assert_eq!((about.kind.as_deref(), &about.uid), (Some("Lease"), &lease.metadata.uid));
        event.note.as_deref().and_then(|note| note.split_once(' ')).unwrap_or_default().1.to_owned()
    };
    let told: Vec<String> = events.iter().map(told).collect();
    assert_eq!(told, ["became leader", "stopped leading"]);
    site.end().await;
}

/// Labels what it greets, and says so.
struct Labeller;

impl Reconciler<Greeting> for Labeller {
    async fn reconcile(&self, greeting: &mut Greeting, ctx: &Context) -> Result<Action, Error> {
        let labels = greeting.metadata.labels.get_or_insert_default();
        labels.insert("greeted".to_owned(), "yes".to_owned());
        let status = greeting.status.get_or_insert_default();
        status.conditions.set(ctx.condition("Ready", true, "Labelled", "it has its label"));
        Ok(Action::Done)
    }
}

/// A claim was seen that was bound and named no volume: its status had been written first.
#[tokio::test(start_paused = true)]
async fn a_status_is_written_after_what_it_tells_of() {
    let mut site = Site::empty().await;
    let labeller = Controller::new("labeller", Labeller);
    let operator = Operator::new("labeller").kind::<Greeting>().controller(labeller);
    site.running = Some(site.cluster.run(operator).await);
    let (informer, run) = Informer::<Greeting>::new(Source::all(site.cluster.client()));
    let (tell, mut told) = mpsc::unbounded_channel();
    let subscription = informer.subscribe(move |change| {
        if let Change::Applied { object, .. } = change {
            tell.send(Arc::clone(object)).expect("somebody listens");
        }
    });
    let mut tasks = JoinSet::new();
    tasks.spawn(run);
    site.greet("Ada").await;
    let ready = loop {
        let greeting = told.recv().await.expect("a greeting");
        if condition(&greeting, "True") {
            break greeting;
        }
    };
    assert_eq!(
        ready.metadata.labels.as_ref().map(|labels| labels["greeted"].as_str()),
        Some("yes")
    );
    drop((subscription, tasks));
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_controller_waits_for_its_definition() {
    let mut site = Site::empty().await;
    site.running = Some(site.cluster.run(site.operator()).await);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let definition = serde_json::to_value(Greeting::crd()).expect("a definition");
    site.cluster.apply(&definition).await;
    site.cluster.served("greetings.example.com").await;
    site.greet("Ada").await;
    site.ready().await;
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn who_may_watch_definitions_looks_as_soon_as_one_is_there() {
    let mut site = Site::empty().await;
    let definitions = Access::of::<CustomResourceDefinition>().and(&["list", "watch"]);
    let controller = Controller::new("greeter", site.greeter.clone())
        .finalizer("example.com/greeter")
        .owns::<ConfigMap>()
        .may(definitions);
    let operator = Operator::new("greeter").controller(controller);
    site.running = Some(site.cluster.run(operator).await);
    // By now it would look by itself every half minute at most.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let definition = serde_json::to_value(Greeting::crd()).expect("a definition");
    site.cluster.apply(&definition).await;
    site.cluster.served("greetings.example.com").await;
    let begun = Instant::now();
    site.greet("Ada").await;
    site.ready().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "it took {:?}", begun.elapsed());
    site.end().await;
}

struct Nosy;

impl Reconciler<ConfigMap> for Nosy {
    async fn reconcile(&self, object: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
        let error = ctx.get::<Secret>(None, "any").await.expect_err("it is not declared");
        let told = BTreeMap::from([("told".to_owned(), error.to_string())]);
        object.data = Some(told);
        Ok(Action::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_declared_is_not_read() {
    let mut site = Site::empty().await;
    let object: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "nosy"}})).unwrap();
    site.config_maps().create(&PostParams::default(), &object).await.expect("created");
    let operator = Operator::new("nosy").controller(Controller::new("nosy", Nosy));
    site.running = Some(site.cluster.run(operator).await);
    let is_told = |object: Option<&ConfigMap>| object.is_some_and(|object| object.data.is_some());
    let object = site.cluster.eventually(Some("default"), "nosy", is_told).await.expect("it");
    assert_eq!(
        object.data.as_ref().expect("data")["told"],
        "Secret is not declared: say `.reads::<Secret>()` or `.owns::<Secret>()` of the controller"
    );
    site.end().await;
}

/// Says in its status how it went; its definition forgot that it has one.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Silent", namespaced)]
#[kube(status = "GreetingStatus")]
struct SilentSpec {}

struct Talkative(mpsc::UnboundedSender<u32>);

impl Reconciler<Silent> for Talkative {
    async fn reconcile(&self, object: &mut Silent, ctx: &Context) -> Result<Action, Error> {
        let status = object.status.get_or_insert_default();
        status.conditions.set(ctx.condition("Ready", true, "Said", "it is said"));
        let _ = self.0.send(1);
        Ok(Action::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_is_not_passed_over() {
    let mut site = Site::empty().await;
    let mut definition = Silent::crd();
    definition.spec.versions[0].subresources = None;
    let (tell, mut told) = mpsc::unbounded_channel();
    let operator = Operator::new("talkative")
        .definition(definition)
        .controller(Controller::new("talkative", Talkative(tell)));
    site.running = Some(site.cluster.run(operator).await);
    let silent: Api<Silent> = Api::default_namespaced(site.cluster.client());
    let object = Silent::new("one", SilentSpec {});
    silent.create(&PostParams::default(), &object).await.expect("created");
    // It is tried again and again, so somebody sees the error.
    for _ in 0..3 {
        told.recv().await.expect("it is reconciled");
    }
    site.end().await;
}

/// Has a silent child for each ConfigMap, where there can be any.
struct Chorus;

impl Reconciler<ConfigMap> for Chorus {
    async fn reconcile(&self, map: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
        let told = match ctx.apply(Silent::new("child", SilentSpec {})).await {
            Ok(_) => "silent",
            Err(error) if error.is_missing() || error.is_forbidden() => "alone",
            Err(error) => return Err(error.into()),
        };
        map.data = Some(BTreeMap::from([("is".to_owned(), told.to_owned())]));
        Ok(Action::Done)
    }
}

/// An optional kind that was missing stopped its controller.
#[tokio::test(start_paused = true)]
async fn a_kind_that_need_not_be_served_is_done_without_until_it_is() {
    for is_there in [false, true] {
        let mut site = Site::empty().await;
        let map = json!({"metadata": {"name": "map", "labels": {"app": "test"}}});
        let map = serde_json::from_value(map).expect("an object");
        site.config_maps().create(&PostParams::default(), &map).await.expect("created");
        let definition = serde_json::to_value(Silent::crd()).expect("a definition");
        if is_there {
            site.cluster.apply(&definition).await;
            site.cluster.served("silents.example.com").await;
        }
        let controller = Controller::new("chorus", Chorus).labelled("app=test");
        let controller = controller.owns_if_served::<Silent>();
        site.running = Some(site.cluster.run(Operator::new("chorus").controller(controller)).await);
        let is = |told: &'static str| {
            move |map: Option<&ConfigMap>| {
                let data = map.and_then(|map| map.data.as_ref());
                data.is_some_and(|data| data["is"] == told)
            }
        };
        if !is_there {
            site.cluster.eventually(Some("default"), "map", is("alone")).await;
            site.cluster.apply(&definition).await;
            site.cluster.served("silents.example.com").await;
        }
        site.cluster.eventually(Some("default"), "map", is("silent")).await;
        let silents: Api<Silent> = Api::default_namespaced(site.cluster.client());
        let child = silents.get("child").await.expect("the child");
        // It is a child as any other.
        silents.delete("child", &DeleteParams::default()).await.expect("deleted");
        let is_another = |found: Option<&Silent>| {
            found.is_some_and(|found| found.metadata.uid != child.metadata.uid)
        };
        site.cluster.eventually(Some("default"), "child", is_another).await;
        site.end().await;
    }
}

/// An administrator who left an optional kind out of the operator's role stopped its controller.
#[tokio::test(start_paused = true)]
async fn a_kind_that_need_not_be_served_is_done_without_until_it_may_be_read() {
    let site = Site::empty().await;
    let (cluster, user) = (&site.cluster, "chorus");
    let map = json!({"metadata": {"name": "map", "labels": {"app": "test"}}});
    let map = serde_json::from_value(map).expect("an object");
    site.config_maps().create(&PostParams::default(), &map).await.expect("created");
    cluster.apply(&serde_json::to_value(Silent::crd()).expect("a definition")).await;
    cluster.served("silents.example.com").await;
    let allow = async |name: &str, group: &str, resource: &str| {
        let version = "rbac.authorization.k8s.io/v1";
        let rule = json!({"apiGroups": [group], "resources": [resource], "verbs": ["*"]});
        let role = json!({
            "apiVersion": version, "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": [rule],
        });
        let binding = json!({
            "apiVersion": version, "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        cluster.apply(&role).await;
        cluster.apply(&binding).await;
    };
    let is = |told: &'static str| {
        move |map: Option<&ConfigMap>| {
            let data = map.and_then(|map| map.data.as_ref());
            data.is_some_and(|data| data["is"] == told)
        }
    };
    allow("chorus-maps", "", "configmaps").await;
    let controller = Controller::new("chorus", Chorus).labelled("app=test");
    let operator = Operator::new("chorus").controller(controller.owns_if_served::<Silent>());
    let shutdown = CancellationToken::new();
    let run = operator.run(cluster.client_as(user, &[]), cluster.clock(), shutdown.clone());
    let look = async {
        cluster.eventually(Some("default"), "map", is("alone")).await;
        allow("chorus-silents", "example.com", "silents").await;
        cluster.eventually(Some("default"), "map", is("silent")).await;
        shutdown.cancel();
    };
    tokio::join!(run, look);
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_of_some_namespaces_works_in_these_alone() {
    let mut site = Site::empty().await;
    let namespaces: Api<Namespace> = Api::all(site.cluster.client());
    for name in ["lab", "shop", "elsewhere"] {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).expect("one");
        namespaces.create(&PostParams::default(), &namespace).await.expect("created");
    }
    // It has roles in these two only: to look at all of them would be refused.
    let operator = site.operator().kind::<Greeting>().only_in(["shop", "lab"]);
    site.running = Some(site.cluster.run(operator).await);
    let greeting = Greeting::new("first", GreetingSpec { name: "Ada".to_owned() });
    for namespace in ["elsewhere", "lab", "shop"] {
        let greetings: Api<Greeting> = Api::namespaced(site.cluster.client(), namespace);
        greetings.create(&PostParams::default(), &greeting).await.expect("created");
    }
    let is_ready = |greeting: Option<&Greeting>| greeting.is_some_and(|it| condition(it, "True"));
    for namespace in ["lab", "shop"] {
        site.cluster.eventually(Some(namespace), "first", is_ready).await;
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    let greetings: Api<Greeting> = Api::namespaced(site.cluster.client(), "elsewhere");
    assert_eq!(greetings.get("first").await.expect("it").metadata.finalizers, None);
    site.end().await;
}

/// Tells which objects it is given.
struct Teller(mpsc::UnboundedSender<String>);

impl Reconciler<ConfigMap> for Teller {
    async fn reconcile(&self, object: &mut ConfigMap, _: &Context) -> Result<Action, Error> {
        let _ = self.0.send(object.metadata.name.clone().unwrap_or_default());
        Ok(Action::Done)
    }
}

/// A teller of ConfigMaps `a` and `b`, and what it told of them at first.
async fn told_of(
    adapt: impl FnOnce(Controller<ConfigMap, Teller>) -> Controller<ConfigMap, Teller>,
) -> (Site, mpsc::UnboundedReceiver<String>) {
    let mut site = Site::empty().await;
    for name in ["a", "b"] {
        let labels = json!({"metadata": {"name": name, "labels": {"app": "test"}}});
        let object = serde_json::from_value(labels).expect("an object");
        site.config_maps().create(&PostParams::default(), &object).await.expect("created");
    }
    let (tell, mut told) = mpsc::unbounded_channel();
    let controller = adapt(Controller::new("teller", Teller(tell)).labelled("app=test"));
    site.running = Some(site.cluster.run(Operator::new("teller").controller(controller)).await);
    let mut first = [told.recv().await.expect("one"), told.recv().await.expect("another")];
    first.sort();
    assert_eq!(first, ["a", "b"]);
    (site, told)
}

#[tokio::test(start_paused = true)]
async fn everything_is_looked_at_again_now_and_then() {
    let (site, mut told) = told_of(|it| it.resync(Duration::from_secs(100))).await;
    for _ in 0..3 {
        let begun = Instant::now();
        let mut again = [told.recv().await.expect("one"), told.recv().await.expect("another")];
        again.sort();
        assert_eq!(again, ["a", "b"]);
        let passed = begun.elapsed().as_secs();
        assert!((89..=110).contains(&passed), "it took {passed} seconds");
    }
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_timer_has_those_reconciled_that_are_due() {
    let minute = Duration::from_secs(60);
    let (site, mut told) = told_of(|controller| {
        controller.timer("minutely", minute, |object| object.metadata.name.as_deref() == Some("b"))
    })
    .await;
    let begun = Instant::now();
    for _ in 0..3 {
        assert_eq!(told.recv().await.as_deref(), Some("b"));
    }
    assert_eq!(begun.elapsed().as_secs(), 3 * 60);
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_panics_goes_on_and_has_those_reconciled_of_which_it_cannot_tell() {
    let minute = Duration::from_secs(60);
    let (site, mut told) = told_of(|controller| {
        controller.timer("minutely", minute, |object| {
            assert_ne!(object.metadata.name.as_deref(), Some("a"), "a test asked for it");
            false
        })
    })
    .await;
    let begun = Instant::now();
    for _ in 0..3 {
        assert_eq!(told.recv().await.as_deref(), Some("a"));
    }
    assert_eq!(begun.elapsed().as_secs(), 3 * 60);
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_has_those_reconciled_that_are_said_to_be_different() {
    let answers = [
        Some(vec![("a", 1), ("b", 1)]),
        Some(vec![("a", 1), ("b", 2)]),
        // An answer that fails says nothing of anybody.
        None,
        Some(vec![("a", 1), ("b", 2)]),
        Some(vec![("b", 2)]),
    ];
    let asked = Arc::new(AtomicU32::new(0));
    let asking = Arc::clone(&asked);
    let minute = Duration::from_secs(60);
    let (site, mut told) = told_of(|controller| {
        controller.poll("elsewhere", minute, move || {
            let at = asking.fetch_add(1, Ordering::SeqCst) as usize;
            let answer = answers[at.min(answers.len() - 1)].clone();
            async move {
                let answer = answer.ok_or_else(|| Error::retry("nobody is there"))?.into_iter();
                let key = |name| ObjectKey::new(Some("default"), name);
                Ok(answer.map(|(name, version)| (key(name), version)).collect())
            }
        })
    })
    .await;
    let begun = Instant::now();
    // The first answer may be news, whether or not it came after the objects.
    while begun.elapsed() < Duration::from_secs(30) {
        let soon = tokio::time::timeout(Duration::from_secs(30), told.recv());
        if soon.await.is_err() {
            break;
        }
    }
    assert_eq!(told.recv().await.as_deref(), Some("b"));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(told.recv().await.as_deref(), Some("a"));
    assert_eq!(asked.load(Ordering::SeqCst), 5);
    site.end().await;
}

/// Makes a Secret of a colour.
async fn paint(site: &Site, color: &str) {
    let object = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": color, "labels": {"color": color}},
    });
    site.cluster.apply(&object).await;
}

fn colored(color: &str) -> Scope {
    Scope { labels: Some(format!("color={color}")), ..Scope::default() }
}

/// The last scope of a kind was the only one that was watched.
#[tokio::test(start_paused = true)]
async fn a_kind_can_be_watched_in_several_scopes() {
    let key = |name| move |_: &Secret| vec![ObjectKey::new(Some("default"), name)];
    let (site, mut told) = told_of(|controller| {
        controller
            .watches_among::<Secret>(colored("red"), key("a"))
            .watches_among::<Secret>(colored("blue"), key("b"))
    })
    .await;
    paint(&site, "red").await;
    assert_eq!(told.recv().await.as_deref(), Some("a"));
    paint(&site, "blue").await;
    assert_eq!(told.recv().await.as_deref(), Some("b"));
    site.end().await;
}

/// Says how many coloured Secrets it sees.
struct Census;

impl Reconciler<ConfigMap> for Census {
    async fn reconcile(&self, object: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
        let secrets = ctx.list::<Secret>().await?.into_iter();
        let colored = secrets.filter(|secret| {
            let labels = secret.metadata.labels.as_ref();
            labels.is_some_and(|labels| labels.contains_key("color"))
        });
        object.data = Some(BTreeMap::from([("seen".to_owned(), colored.count().to_string())]));
        Ok(Action::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_scopes_of_a_kind_reconciles_read_the_widest() {
    type Adapt = fn(Controller<ConfigMap, Census>) -> Controller<ConfigMap, Census>;
    let orders: [Adapt; 2] = [
        |it| it.reads::<Secret>().watches_among::<Secret>(colored("red"), |_| Vec::new()),
        |it| it.watches_among::<Secret>(colored("red"), |_| Vec::new()).reads::<Secret>(),
    ];
    for declare in orders {
        let mut site = Site::empty().await;
        for color in ["red", "blue"] {
            paint(&site, color).await;
        }
        let map = json!({"metadata": {"name": "census", "labels": {"app": "test"}}});
        let map = serde_json::from_value(map).expect("an object");
        site.config_maps().create(&PostParams::default(), &map).await.expect("created");
        let controller = declare(Controller::new("census", Census).labelled("app=test"));
        let operator = Operator::new("census").controller(controller);
        site.running = Some(site.cluster.run(operator).await);
        let is_counted = |map: Option<&ConfigMap>| {
            let data = map.and_then(|map| map.data.as_ref());
            data.is_some_and(|data| data["seen"] == "2")
        };
        site.cluster.eventually(Some("default"), "census", is_counted).await;
        site.end().await;
    }
}

/// Asks for the children of a kind that it only reads, and writes down what it is told.
struct Foster;

impl Reconciler<ConfigMap> for Foster {
    async fn reconcile(&self, object: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
        let children = ctx.children::<Secret>().await.expect_err("it owns none");
        let orphans = ctx.orphans::<Secret>().await.expect_err("it owns none");
        assert_eq!(children.to_string(), orphans.to_string());
        object.data = Some(BTreeMap::from([("told".to_owned(), children.to_string())]));
        Ok(Action::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_only_read_has_no_children() {
    let mut site = Site::empty().await;
    let map = json!({"metadata": {"name": "foster", "labels": {"app": "test"}}});
    let map = serde_json::from_value(map).expect("an object");
    site.config_maps().create(&PostParams::default(), &map).await.expect("created");
    let controller = Controller::new("foster", Foster).labelled("app=test").reads::<Secret>();
    site.running = Some(site.cluster.run(Operator::new("foster").controller(controller)).await);
    let is_told = |map: Option<&ConfigMap>| map.is_some_and(|map| map.data.is_some());
    let map = site.cluster.eventually(Some("default"), "foster", is_told).await.expect("it");
    assert_eq!(
        map.data.as_ref().expect("data")["told"],
        "the owners of Secret are not known: say `.owns::<Secret>()` of the controller"
    );
    site.end().await;
}
