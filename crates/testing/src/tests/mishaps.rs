//! An operator to which everything happens that can: it says so where people look, and goes on.

use std::net::{Ipv4Addr, SocketAddr};
use std::task::Poll;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, PostParams};
use kube::client::Body;
use kube::{Client, CustomResource, CustomResourceExt as _};
use kubewright::manifest::{Package, Part};
use kubewright::operator::{Host, ServeError, Surrounding};
use kubewright::serve::{Bind, Check};
use kubewright::settings::Settings;
use kubewright::webhook::{Change, Review, Warnings, Webhook};
use kubewright::{Action, Context, Controller, Error, Operator, Reconciler};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use super::Random;
use crate::Cluster;

/// A kind whose definition comes and goes.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Comet", namespaced)]
#[kube(status = "CometStatus")]
struct CometSpec {}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct CometStatus {
    seen: bool,
}

/// Marks what it sees, and panics at what is called so.
struct Astronomer;

impl Reconciler<Comet> for Astronomer {
    async fn reconcile(&self, comet: &mut Comet, _: &Context) -> Result<Action, Error> {
        comet.status = Some(CometStatus { seen: true });
        Ok(Action::Done)
    }
}

impl Reconciler<ConfigMap> for Astronomer {
    async fn reconcile(&self, map: &mut ConfigMap, _: &Context) -> Result<Action, Error> {
        assert_ne!(map.metadata.name.as_deref(), Some("black-hole"), "nothing can be seen");
        map.metadata.labels.get_or_insert_default().insert("seen".into(), "yes".into());
        Ok(Action::Done)
    }
}

impl Reconciler<Secret> for Astronomer {
    async fn reconcile(&self, _: &mut Secret, _: &Context) -> Result<Action, Error> {
        unreachable!("no secret can be read")
    }
}

/// The operator, with pages that everybody may see.
struct Observatory {
    cluster: Cluster,
    probes: SocketAddr,
    metrics: SocketAddr,
    shutdown: CancellationToken,
    tasks: JoinSet<Result<(), ServeError>>,
}

impl Observatory {
    /// Each has a number, since they may be open at the same time.
    async fn open(number: u64, operator: Operator) -> Self {
        Observatory::open_with(number, operator, &["secrets"], |host| {
            host.settings.leader_election.wanted = Some(false);
        })
        .await
    }

    /// One that may do nothing with some resources, and is run as `adapt` says.
    async fn open_with(
        number: u64,
        operator: Operator,
        forbidden: &[&str],
        adapt: impl FnOnce(&mut Host),
    ) -> Self {
        let cluster = Cluster::start().await;
        let package = operator.package();
        allow(&cluster, &package, forbidden).await;
        let (probes, metrics) = (place(2 * number), place(2 * number + 1));
        let mut host = host(&cluster, &package, probes, metrics);
        adapt(&mut host);
        let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(operator.serve(host, shutdown.clone()));
        Observatory { cluster, probes, metrics, shutdown, tasks }
    }

    /// Waits until a page has all of these texts.
    async fn says(&self, place: SocketAddr, path: &str, texts: &[&str]) {
        let says_all = |page: &str| texts.iter().all(|text| page.contains(text));
        if let Err(page) = until(place, path, says_all).await {
            panic!("{path} never says all of {texts:?}: {page}");
        }
    }

    async fn counts(&self, texts: &[&str]) {
        self.says(self.metrics, "/metrics", texts).await;
    }

    /// Waits until something was counted more than once.
    async fn counts_more(&self, what: &str) {
        let is_more = |page: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(what));
            line.is_some_and(|count| count.trim().parse::<u64>().is_ok_and(|count| count > 1))
        };
        if let Err(page) = until(self.metrics, "/metrics", is_more).await {
            panic!("{what} never grows: {page}");
        }
    }

    async fn create<K>(&self, name: &str)
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + Serialize
            + serde::de::DeserializeOwned,
    {
        let object = json!({ "metadata": { "name": name }, "spec": {} });
        let object: K = serde_json::from_value(object).expect("an object");
        let api: Api<K> = Api::default_namespaced(self.cluster.client());
        api.create(&PostParams::default(), &object).await.expect("created");
    }

    /// Waits until another object is seen: nothing has stopped.
    async fn goes_on(&self, name: &str) {
        self.create::<ConfigMap>(name).await;
        self.is_labelled(name).await;
    }

    async fn is_labelled(&self, name: &str) {
        let is_seen = |map: Option<&ConfigMap>| {
            let labels = map.and_then(|map| map.metadata.labels.as_ref());
            labels.is_some_and(|labels| labels.contains_key("seen"))
        };
        self.cluster.eventually(Some("default"), name, is_seen).await;
    }

    /// Has the definition of comets served, and one seen.
    async fn comet_comes(&self) {
        self.comets_are_served().await;
        self.create::<Comet>("halley").await;
        self.is_seen("halley").await;
    }

    async fn comets_are_served(&self) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.cluster.client());
        let definition = Comet::crd();
        definitions.create(&PostParams::default(), &definition).await.expect("created");
        self.cluster.served("comets.example.com").await;
    }

    async fn is_seen(&self, name: &str) {
        let is_seen = |comet: Option<&Comet>| {
            comet.and_then(|comet| comet.status.as_ref()).is_some_and(|status| status.seen)
        };
        self.cluster.eventually(Some("default"), name, is_seen).await;
    }

    async fn comets_go(&self) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.cluster.client());
        let (name, params) = ("comets.example.com", DeleteParams::default());
        definitions.delete(name, &params).await.expect("deleted");
        let is_gone = |it: Option<&CustomResourceDefinition>| it.is_none();
        self.cluster.eventually(None, name, is_gone).await;
    }

    async fn close(mut self) {
        self.shutdown.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("it does not panic").expect("it was served");
        }
        self.cluster.shutdown().await;
    }
}

/// A place where nobody listens, and where no connection begins.
pub(super) fn place(number: u64) -> SocketAddr {
    let mut random = Random(u64::from(std::process::id()) * 7 + number);
    let mut places = std::iter::repeat_with(|| {
        let port = 10_000 + u16::try_from(random.below(22_000)).expect("a port");
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    });
    places.find(|place| std::net::TcpListener::bind(place).is_ok()).expect("one of them is free")
}

fn host(cluster: &Cluster, package: &Package, probes: SocketAddr, metrics: SocketAddr) -> Host {
    let mut settings = Settings { probes: Bind::At(probes), ..Settings::default() };
    settings.metrics.bind = Bind::At(metrics);
    settings.metrics.secure = false;
    Host {
        client: cluster.client_of(package),
        clock: cluster.clock(),
        settings,
        namespace: package.namespace.clone(),
        surrounding: Surrounding::Pod,
        registry: Registry::default(),
    }
}

/// Gives an operator the rights that its manifests give it, but none to some resources.
async fn allow(cluster: &Cluster, package: &Package, forbidden: &[&str]) {
    let manifests = package.render().expect("manifests");
    for mut manifest in manifests {
        if !matches!(manifest.part, Part::Namespace | Part::Rbac) {
            continue;
        }
        if let Some(rules) = manifest.object.get_mut("rules").and_then(Value::as_array_mut) {
            rules.retain_mut(|rule| {
                let resources = rule.get_mut("resources").and_then(Value::as_array_mut);
                let Some(resources) = resources else { return true };
                let is_forbidden = |it: &Value| {
                    it.as_str().is_some_and(|it| forbidden.iter().any(|no| it.starts_with(no)))
                };
                resources.retain(|resource| !is_forbidden(resource));
                !resources.is_empty()
            });
        }
        cluster.apply(&manifest.object).await;
    }
}

/// Waits until a page is so; the page as it was last if it never is.
async fn until(place: SocketAddr, path: &str, is_so: impl Fn(&str) -> bool) -> Result<(), String> {
    let mut page = String::new();
    for _ in 0..6_000 {
        page = get(place, path).await;
        if is_so(&page) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(page)
}

/// A page, or nothing if there is none yet.
pub(super) async fn get(place: SocketAddr, path: &str) -> String {
    let asked = async {
        let mut stream = TcpStream::connect(place).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    asked.await.unwrap_or_default()
}

#[tokio::test]
async fn whatever_happens_to_one_controller_is_told_and_the_others_go_on() {
    let operator = Operator::new("observatory")
        .controller(Controller::<Comet, _>::new("comets", Astronomer))
        .controller(Controller::<ConfigMap, _>::new("maps", Astronomer))
        .controller(Controller::<Secret, _>::new("secrets", Astronomer));
    let site = Observatory::open(1, operator).await;
    // A definition that is missing, and a kind that may not be read.
    let [missing, forbidden] =
        ["Comet.example.com: is not served", "Secret: is forbidden: secrets"];
    site.says(site.probes, "/readyz/caches", &["500 ", missing, forbidden]).await;
    site.says(site.probes, "/readyz", &["500 ", "[-]caches failed"]).await;
    site.says(site.probes, "/healthz", &["200 OK"]).await;
    site.counts(&[
        r#"kubewright_cache_watches{kind="Comet.example.com",state="missing"} 1"#,
        r#"kubewright_cache_watches{kind="Secret",state="forbidden"} 1"#,
        r#"kubewright_cache_watches{kind="ConfigMap",state="live"} 1"#,
    ])
    .await;
    site.goes_on("one").await;
    site.counts(&[
        r#"kubewright_reconcile_causes_total{controller="maps",source="watch ConfigMap"}"#,
    ])
    .await;
    let [idle, live] = ["state is not served", "state live"];
    let done = ["key default/one", "ended Success", "causes watch ConfigMap default/one@"];
    let page = ["name maps", "running true", "kind Comet.example.com", idle, live];
    site.says(site.metrics, "/debug/controllers", &[&page[..], &done[..]].concat()).await;

    // A panic is counted, and tried again.
    site.create::<ConfigMap>("black-hole").await;
    site.counts_more(r#"controller_runtime_reconcile_panics_total{controller="maps"}"#).await;
    site.goes_on("two").await;
    let failure = "lastFailure default/black-hole: Panicked";
    site.says(site.metrics, "/debug/controllers", &[failure]).await;
    // It is told, and yet the others are served as ever.
    let panics = ["500 ", "maps panics at default/black-hole"];
    site.says(site.probes, "/readyz/reconciles", &panics).await;
    let told = ["200 OK", "[-]reconciles failed, which does not count", "healthz check passed"];
    site.says(site.probes, "/readyz?verbose&exclude=caches", &told).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(site.cluster.client());
    maps.delete("black-hole", &DeleteParams::default()).await.expect("deleted");
    site.says(site.probes, "/readyz/reconciles", &["200 OK"]).await;

    // A definition that comes, goes while the operator runs, and comes back.
    site.comet_comes().await;
    let live = r#"kubewright_cache_watches{kind="Comet.example.com",state="live"} 1"#;
    site.counts(&[live]).await;
    site.comets_go().await;
    site.says(site.probes, "/readyz/caches", &["500 ", missing]).await;
    site.goes_on("three").await;
    site.comet_comes().await;
    site.counts(&[live]).await;
    site.close().await;
}

/// What wakes those who wait for a definition is a watch that no manifest grants, and as it was
/// forbidden the operator was never ready.
#[tokio::test]
async fn an_operator_with_the_rights_of_its_manifests_is_ready_once_its_definition_is_there() {
    let comets = Controller::<Comet, _>::new("comets", Astronomer);
    let nights = Counter::<u64>::default();
    let counted = nights.clone();
    let operator = Operator::new("observatory")
        .controller(comets)
        .counting(move |registry| registry.register("nights", "How many nights", counted))
        .ready_when("sky", Check::new(|| async { Ok(()) }));
    let site = Observatory::open(2, operator).await;
    nights.inc();
    site.counts(&["nights_total 1"]).await;
    site.says(site.probes, "/readyz/sky", &["200 OK"]).await;
    let missing = "Comet.example.com: is not served";
    site.says(site.probes, "/readyz/caches", &["500 ", missing]).await;
    site.comet_comes().await;
    site.says(site.probes, "/readyz", &["200 OK"]).await;
    site.close().await;
}

/// It said that it was ready, and never did anything.
#[tokio::test]
async fn an_operator_that_may_not_write_leases_is_not_ready_and_says_why() {
    type Adapt = fn(Operator) -> Operator;
    let kinds: [(u64, &str, &str, Adapt); 2] = [
        (3, "/readyz/leader-election", "cannot get resource", |operator| operator),
        (4, "/readyz/share", "cannot list resource", Operator::sharded),
    ];
    for (number, page, why, adapt) in kinds {
        let maps = Controller::<ConfigMap, _>::new("maps", Astronomer);
        let operator = adapt(Operator::new("observatory").controller(maps));
        let site = Observatory::open_with(number, operator, &["leases"], |_| ()).await;
        site.says(site.probes, page, &["500 ", "leases", why]).await;
        site.says(site.probes, "/readyz", &["500 "]).await;
        site.counts_more(r#"kubewright_lease_failures_total{name="observatory"}"#).await;
        let package = Operator::new("observatory").package();
        allow(&site.cluster, &package, &[]).await;
        site.says(site.probes, page, &["200 OK"]).await;
        site.close().await;
    }
}

/// Beside a cluster that does not answer, nobody could ask how it was: the cluster was told of
/// webhooks first.
#[tokio::test]
async fn an_operator_says_how_it_is_before_the_cluster_answers() {
    let judge = |_: Change<'_, ConfigMap>, _: &Review| Ok(Warnings::new());
    let operator = Operator::new("observatory").webhook(Webhook::validating(judge));
    let site = Observatory::open_with(5, operator, &[], |host| {
        host.surrounding = Surrounding::Beside;
        host.client = silent();
    })
    .await;
    site.says(site.probes, "/healthz", &["200 OK"]).await;
    site.says(site.probes, "/readyz/webhooks-installed", &["500 ", "it is being told"]).await;
    site.says(site.metrics, "/metrics", &["controller_runtime_webhook_panics_total 0"]).await;
    site.close().await;
}

/// A client that is never answered.
fn silent() -> Client {
    Client::new(Silent, "default")
}

#[derive(Clone)]
struct Silent;

impl Service<http::Request<Body>> for Silent {
    type Response = http::Response<Body>;
    type Error = std::convert::Infallible;
    type Future = std::future::Pending<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<Body>) -> Self::Future {
        std::future::pending()
    }
}

#[tokio::test]
async fn what_an_operator_runs_and_fails_is_told() {
    let operator = Operator::new("observatory")
        .runs("tide", |_, _| async { Err(Error::retry("it is ebb")) })
        .runs("moon", |_, stop| async move {
            stop.cancelled().await;
            Ok(())
        });
    let site = Observatory::open(6, operator).await;
    site.says(site.probes, "/readyz/tide", &["500 ", "it is ebb"]).await;
    site.says(site.probes, "/readyz/moon", &["200 OK"]).await;
    site.close().await;
}

/// One kind that could not be read took the operator out of its Service, and with it the webhook
/// that everybody else's writes wait for.
#[tokio::test]
async fn webhooks_are_called_whatever_becomes_of_the_rest_of_their_operator() {
    let judge = |_: Change<'_, ConfigMap>, _: &Review| Ok(Warnings::new());
    let operator = Operator::new("observatory")
        .webhook(Webhook::validating(judge))
        .controller(Controller::<Comet, _>::new("comets", Astronomer))
        .controller(Controller::<ConfigMap, _>::new("maps", Astronomer).reads::<Node>())
        .runs("tide", |_, _| async { Err(Error::retry("it is ebb")) });
    let site = Observatory::open_with(7, operator, &["nodes", "leases"], |host| {
        host.settings.webhooks.bind = Some(Bind::At(place(16)));
    })
    .await;
    let troubles = ["500 ", "Comet.example.com: is not served", "Node: is forbidden: nodes"];
    site.says(site.probes, "/readyz/caches", &troubles).await;
    site.says(site.probes, "/readyz/leader-election", &["500 ", "leases"]).await;
    site.says(site.probes, "/readyz/tide", &["500 ", "it is ebb"]).await;
    // All of it is told, and the pod stays behind its Service.
    let told = [
        "200 OK",
        "[-]caches failed, which does not count",
        "[-]leader-election failed, which does not count",
        "[-]tide failed, which does not count",
        "[+]certificate ok",
        "[+]webhooks ok",
    ];
    site.says(site.probes, "/readyz?verbose", &told).await;
    site.close().await;
}

#[tokio::test]
async fn a_kind_that_need_not_be_served_is_told_of_and_makes_nothing_less_ready() {
    let maps = Controller::<ConfigMap, _>::new("maps", Astronomer);
    let maps = maps.watches_if_served::<Comet>(|_| Vec::new());
    let site = Observatory::open(9, Operator::new("observatory").controller(maps)).await;
    site.goes_on("one").await;
    let missing = "Comet.example.com: is not served";
    site.says(site.probes, "/readyz/caches-if-served", &["500 ", missing]).await;
    let told = ["200 OK", "[-]caches-if-served failed, which does not count", "[+]caches ok"];
    site.says(site.probes, "/readyz?verbose", &told).await;
    site.counts(&[r#"kubewright_cache_watches{kind="Comet.example.com",state="missing"} 1"#]).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(site.cluster.client());
    definitions.create(&PostParams::default(), &Comet::crd()).await.expect("created");
    site.says(site.probes, "/readyz/caches-if-served", &["200 OK"]).await;
    site.counts(&[r#"kubewright_cache_watches{kind="Comet.example.com",state="live"} 1"#]).await;
    site.close().await;
}

/// Has a map for each comet, and says so.
struct Cartographer;

impl Reconciler<Comet> for Cartographer {
    async fn reconcile(&self, comet: &mut Comet, ctx: &Context) -> Result<Action, Error> {
        let mut map = ConfigMap::default();
        map.metadata.name.clone_from(&comet.metadata.name);
        ctx.apply(map).await?;
        comet.status = Some(CometStatus { seen: true });
        Ok(Action::Done)
    }
}

/// Whatever the server says to a write, the object comes back to the queue, and it is counted.
#[tokio::test]
async fn a_write_that_the_server_puts_off_is_tried_again_by_way_of_the_queue() {
    let comets = Controller::<Comet, _>::new("comets", Cartographer).owns::<ConfigMap>();
    let operator = Operator::new("observatory").kind::<Comet>().controller(comets);
    let site = Observatory::open(11, operator).await;
    site.comets_are_served().await;
    let counted = async |result: &str| {
        let what = format!(
            r#"controller_runtime_reconcile_total{{controller="comets",result="{result}"}} "#
        );
        let page = get(site.metrics, "/metrics").await;
        let count = page.lines().find_map(|line| line.strip_prefix(&what)?.parse::<u64>().ok());
        count.unwrap_or_else(|| panic!("{what} is not in {page}"))
    };
    site.counts(&[r#"controller_runtime_reconcile_total{controller="comets",result="success"}"#])
        .await;
    // To lose against somebody else is no error, if what is lost is a write of the object itself.
    let fates = [
        (409, "/configmaps/", "error"),
        (409, "/status", "requeue"),
        (429, "/configmaps/", "error"),
        (429, "/status", "error"),
        (500, "/configmaps/", "error"),
        (500, "/status", "error"),
        (503, "/status", "error"),
    ];
    for (number, (code, place, result)) in fates.into_iter().enumerate() {
        let name = format!("comet-{number}");
        let before = (counted(result).await, counted("success").await);
        let about = name.clone();
        site.cluster.faults().answer(code, 2, move |request| {
            let path = request.uri.path();
            request.method == "PATCH" && path.contains(&about) && path.contains(place)
        });
        site.create::<Comet>(&name).await;
        site.is_seen(&name).await;
        let what = format!(
            r#"controller_runtime_reconcile_total{{controller="comets",result="{result}"}} {}"#,
            before.0 + 2
        );
        site.counts(&[&what]).await;
        assert!(counted("success").await > before.1, "after {code} of {place}");
    }
    site.counts(&[r#"workqueue_retries_total{name="comets",controller="comets"} 14"#]).await;
    site.close().await;
}

/// What is known of a kind may be old: that is told, and it is caught up with when the server can be
/// watched again, whether it broke off, refused or had forgotten.
#[tokio::test]
async fn a_kind_that_cannot_be_watched_is_stale_until_it_can() {
    let maps = Controller::<ConfigMap, _>::new("maps", Astronomer);
    let site = Observatory::open(13, Operator::new("observatory").controller(maps)).await;
    let state =
        |state: &str| format!(r#"kubewright_cache_watches{{kind="ConfigMap",state="{state}"}} 1"#);
    site.goes_on("one").await;
    site.counts(&[&state("live")]).await;
    for code in [429, 500, 503] {
        let is_followed = |request: &http::request::Parts| {
            let is_watch = request.uri.query().is_some_and(|query| query.contains("watch=1"));
            is_watch && request.uri.path() == "/api/v1/configmaps"
        };
        site.cluster.faults().answer(code, usize::MAX, is_followed);
        site.cluster.faults().cut_watches();
        site.counts(&[&state("stale")]).await;
        let why = "ConfigMap: is stale: a fault that a test asked for";
        site.says(site.probes, "/readyz/caches", &["500 ", why]).await;
        site.create::<ConfigMap>(&format!("meanwhile-{code}")).await;
        site.cluster.faults().heal();
        site.is_labelled(&format!("meanwhile-{code}")).await;
        site.counts(&[&state("live")]).await;
        site.says(site.probes, "/readyz/caches", &["200 OK"]).await;
    }
    // A watch that is told that it is too old lists everything again.
    let lists = |page: &str| {
        let what = r#"kubewright_cache_lists_total{kind="ConfigMap"} "#;
        page.lines().find_map(|line| line.strip_prefix(what)?.parse::<u64>().ok())
    };
    let before = lists(&get(site.metrics, "/metrics").await).expect("it is counted");
    site.cluster.faults().expire_watches();
    let is_listed = |page: &str| lists(page).is_some_and(|count| count > before);
    until(site.metrics, "/metrics", is_listed).await.expect("it is listed again");
    site.goes_on("two").await;
    site.counts(&[&state("live")]).await;
    site.close().await;
}
