//! Webhooks that the server calls, over TLS on loopback, while objects are written and read.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, CustomResource, CustomResourceExt as _, ResourceExt as _};
use kubewright::certificate::{self, Kept, Wanted};
use kubewright::operator::{Host, ServeError, Surrounding};
use kubewright::serve::Bind;
use kubewright::settings::Settings;
use kubewright::webhook::{
    Cause, Change, Conversion, ConversionError, Denied, Metrics, Operation, Place, Review, Server,
    Spoke, Trust, Webhook, Webhooks, install,
};
use kubewright::{Action, Context, Controller, Error, Operator, Reconciler};
use prometheus_client::registry::Registry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::mishaps::{get, place};
use crate::Cluster;

/// A server of webhooks in this process, of which a cluster has been told.
struct Site {
    registry: Registry,
    tasks: JoinSet<()>,
    shutdown: CancellationToken,
}

impl Site {
    async fn start(client: &Client, webhooks: Webhooks) -> Self {
        let mut registry = Registry::default();
        let metrics = Arc::new(Metrics::new(&mut registry));
        let webhooks = Arc::new(webhooks);
        let local = Server::local(Arc::clone(&webhooks), metrics, Timestamp::now()).await;
        let (server, place, trust) = local.expect("a server");
        let (check, shutdown) = (server.check(), CancellationToken::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(server.run(shutdown.clone()));
        check.ask().await.expect("it answers");
        let installed = install(client, "zoo", webhooks.registrations(), &place, &trust).await;
        installed.expect("the server knows of them");
        Site { registry, tasks, shutdown }
    }

    async fn end(self) -> String {
        self.shutdown.cancel();
        self.tasks.join_all().await;
        let mut counted = String::new();
        prometheus_client::encoding::text::encode(&mut counted, &self.registry).expect("metrics");
        counted
    }
}

fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(data.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()),
        ..ConfigMap::default()
    }
}

/// What the server says to a refused write.
fn refusal<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String, String) {
    match result {
        Err(kube::Error::Api(status)) => {
            (status.code, status.reason.clone(), status.message.clone())
        }
        other => panic!("it should be refused: {other:?}"),
    }
}

#[tokio::test]
async fn objects_are_completed_and_judged_as_they_are_written() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    // What is in every namespace is there, and nobody asks about it.
    let is_there = |map: Option<&ConfigMap>| map.is_some();
    cluster.eventually(Some("default"), "kube-root-ca.crt", is_there).await;
    let only_ours = || ("ours", "object.metadata.namespace == 'default'");
    let (name, expression) = only_ours();
    let webhooks = Webhooks::new()
        .with(
            Webhook::defaulting(|it: &mut ConfigMap, _: &Review| {
                it.data.get_or_insert_default().entry("kind".into()).or_insert("dog".into());
                Ok(())
            })
            .when(name, expression),
        )
        .with(
            Webhook::validating(|change: Change<'_, ConfigMap>, review: &Review| match change {
                Change::Create(it) if it.name_any() == "dragon" => {
                    Err(Denied::invalid([Cause::not_supported(
                        "metadata.name",
                        it.name_any(),
                        &["cat", "dog"],
                    )]))
                }
                Change::Update { old, new } if old.data != new.data => {
                    Err(Denied::new(format!("{} may not", user(review))))
                }
                Change::Delete(it)
                    if it.data.as_ref().is_some_and(|it| it.contains_key("kept")) =>
                {
                    Err(Denied::new("it is kept"))
                }
                _ => Ok(vec![]),
            })
            .operations([Operation::Create, Operation::Update, Operation::Delete])
            .registered(|it| it.namespace_selector = Some(in_default())),
        );
    let site = Site::start(&client, webhooks).await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let params = PostParams::default();

    let made = api.create(&params, &config_map("rex", &[("kept", "1")])).await.expect("allowed");
    let data: Vec<_> = made.data.into_iter().flatten().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(data, ["kept=1", "kind=dog"]);

    let (code, reason, message) = refusal(api.create(&params, &config_map("dragon", &[])).await);
    assert_eq!((code, reason.as_str()), (422, "Invalid"));
    assert_eq!(
        message,
        "admission webhook \"validate.configmaps.v1.core\" denied the request: \
         ConfigMap \"dragon\" is invalid: metadata.name: Unsupported value: \"dragon\": \
         supported values: \"cat\", \"dog\""
    );

    let patch = Patch::Merge(json!({"data": {"x": "y"}}));
    let refused = refusal(api.patch("rex", &PatchParams::default(), &patch).await);
    assert_eq!((refused.0, refused.1.as_str()), (403, "Forbidden"));
    assert!(refused.2.ends_with("denied the request: admin may not"), "{}", refused.2);

    let refused = refusal(api.delete("rex", &DeleteParams::default()).await);
    assert!(refused.2.ends_with("it is kept"), "{}", refused.2);
    let elsewhere: Api<ConfigMap> = Api::namespaced(client, "kube-system");
    let made = elsewhere.create(&params, &config_map("dragon", &[])).await.expect("not asked");
    assert_eq!(made.data, None);

    let counted = site.end().await;
    let mutating = r#"webhook_requests_total{webhook="/mutate--v1-configmap",code="200"} 3"#;
    assert!(counted.contains(mutating), "{counted}");
    cluster.shutdown().await;
}

fn user(review: &Review) -> &str {
    review.user_info.username.as_deref().unwrap_or_default()
}

fn in_default() -> k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
    let label = ("kubernetes.io/metadata.name".to_owned(), "default".to_owned());
    k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
        match_labels: Some([label].into_iter().collect()),
        match_expressions: None,
    }
}

#[tokio::test]
async fn a_webhook_that_panics_is_counted_and_answers_the_next() {
    let cluster = Cluster::start().await;
    let webhook = Webhook::defaulting(|it: &mut ConfigMap, _: &Review| {
        assert!(it.name_any() != "bad", "not this one");
        Ok(())
    });
    let webhook = webhook.registered(|it| it.namespace_selector = Some(in_default()));
    let site = Site::start(&cluster.client(), Webhooks::new().with(webhook)).await;
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let params = PostParams::default();
    let refused = refusal(api.create(&params, &config_map("bad", &[])).await);
    assert_eq!(refused.0, 500);
    assert!(refused.2.contains("panic: not this one [recovered]"), "{}", refused.2);
    api.create(&params, &config_map("good", &[])).await.expect("allowed");
    let counted = site.end().await;
    assert!(counted.contains("controller_runtime_webhook_panics_total 1"), "{counted}");
    cluster.shutdown().await;
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "zoo.example.com", version = "v1", kind = "Pet", namespaced)]
struct PetSpec {
    first: String,
    last: String,
}

mod alpha {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "zoo.example.com", version = "v1alpha1", kind = "Pet", namespaced)]
    pub(super) struct PetSpec {
        pub(super) name: String,
    }
}

impl Spoke for alpha::Pet {
    type Hub = Pet;

    fn into_hub(self) -> Result<Pet, ConversionError> {
        let (first, last) = self.spec.name.split_once(' ').ok_or("a pet has two names")?;
        let spec = PetSpec { first: first.to_owned(), last: last.to_owned() };
        Ok(Pet { metadata: self.metadata, spec })
    }

    fn from_hub(hub: Pet) -> Result<Self, ConversionError> {
        let name = format!("{} {}", hub.spec.first, hub.spec.last);
        Ok(alpha::Pet { metadata: hub.metadata, spec: alpha::PetSpec { name } })
    }
}

/// Defines pets in both versions, and waits until they are served.
async fn define(client: &Client) {
    let merged = kube::core::crd::merge_crds(vec![Pet::crd(), alpha::Pet::crd()], "v1");
    let definition = merged.expect("one definition");
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    api.create(&PostParams::default(), &definition).await.expect("defined");
    let pets: Api<Pet> = Api::default_namespaced(client.clone());
    while pets.list(&ListParams::default()).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_custom_resource_is_read_and_written_in_both_its_versions() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    define(&client).await;
    let webhooks = Webhooks::new().converting(Conversion::hub::<Pet>().spoke::<alpha::Pet>()).with(
        Webhook::defaulting(|pet: &mut Pet, _: &Review| {
            let last = pet.spec.last.clone();
            pet.labels_mut().insert("last".to_owned(), last);
            Ok(())
        }),
    );
    let site = Site::start(&client, webhooks).await;
    let old: Api<alpha::Pet> = Api::default_namespaced(client.clone());
    let new: Api<Pet> = Api::default_namespaced(client);
    let params = PostParams::default();

    // Defaulted in the version of the webhook, though written in another one.
    let mut rex = alpha::Pet::new("rex", alpha::PetSpec { name: "Rex Miller".to_owned() });
    rex.annotations_mut().insert("note".to_owned(), "kept".to_owned());
    let made = old.create(&params, &rex).await.expect("made");
    assert_eq!(made.spec.name, "Rex Miller");
    let read = new.get("rex").await.expect("there");
    assert_eq!((read.spec.first.as_str(), read.spec.last.as_str()), ("Rex", "Miller"));
    assert_eq!(read.uid(), made.uid());
    assert_eq!(read.labels(), &BTreeMap::from([("last".to_owned(), "Miller".to_owned())]));
    assert_eq!(read.annotations()["note"], "kept");

    let patch = Patch::Merge(json!({"spec": {"first": "Max"}}));
    new.patch("rex", &PatchParams::default(), &patch).await.expect("changed");
    let list = old.list(&ListParams::default()).await.expect("a list");
    assert_eq!(list.items[0].spec.name, "Max Miller");

    let refused = refusal(
        old.create(&params, &alpha::Pet::new("x", alpha::PetSpec { name: "X".into() })).await,
    );
    assert!(
        refused.2.contains(
            "convert Pet \"default/x\" from zoo.example.com/v1alpha1 to zoo.example.com/v1: \
             a pet has two names"
        ),
        "{}",
        refused.2
    );
    site.end().await;
    cluster.shutdown().await;
}

/// An operator that runs beside a cluster, as on a developer's machine.
struct Beside {
    shutdown: CancellationToken,
    tasks: JoinSet<Result<(), ServeError>>,
}

impl Beside {
    fn start(cluster: &Cluster, operator: Operator) -> Self {
        Beside::start_with(cluster, operator, |_| ())
    }

    fn start_with(
        cluster: &Cluster,
        operator: Operator,
        adapt: impl FnOnce(&mut Settings),
    ) -> Self {
        let mut settings = Settings::default();
        adapt(&mut settings);
        settings.metrics.bind = Bind::Nowhere;
        settings.probes = Bind::Nowhere;
        let host = Host {
            client: cluster.client(),
            clock: cluster.clock(),
            settings,
            namespace: "default".to_owned(),
            surrounding: Surrounding::Beside,
            registry: Registry::default(),
        };
        let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(operator.serve(host, shutdown.clone()));
        Beside { shutdown, tasks }
    }

    fn runs(&mut self) -> bool {
        self.tasks.try_join_next().is_none()
    }

    /// Waits for something that it is to do.
    async fn does<T>(&mut self, something: impl Future<Output = T>) -> T {
        tokio::select! {
            done = something => done,
            ended = self.tasks.join_next() => panic!("it ended: {ended:?}"),
        }
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.ended().await.expect("it could be run");
    }

    async fn ended(mut self) -> Result<(), ServeError> {
        self.tasks.join_next().await.expect("it ends").expect("it does not panic")
    }
}

fn is_converted(definition: Option<&CustomResourceDefinition>) -> bool {
    let conversion = definition.and_then(|it| it.spec.conversion.as_ref());
    let webhook = conversion.and_then(|it| it.webhook.as_ref()?.client_config.as_ref());
    webhook.is_some_and(|config| config.url.is_some())
}

/// A program that was started before its definition ended at once.
#[tokio::test]
async fn an_operator_waits_for_the_definition_whose_objects_it_converts() {
    let cluster = Cluster::start().await;
    let conversion = Conversion::hub::<Pet>().spoke::<alpha::Pet>();
    let operator = Operator::new("zoo").converting(conversion).without_leader();
    let mut running = Beside::start(&cluster, operator);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert!(running.runs(), "it waits");
    define(&cluster.client()).await;
    cluster.eventually(None, "pets.zoo.example.com", is_converted).await;
    running.end().await;
    cluster.shutdown().await;
}

/// Says no to what is called `bad`.
fn judge() -> Webhook {
    Webhook::validating(|change: Change<'_, ConfigMap>, _: &Review| match change {
        Change::Create(map) if map.name_any() == "bad" => Err(Denied::new("no")),
        _ => Ok(Default::default()),
    })
}

/// Its configuration stayed behind, and whatever it would have judged was refused from then on.
#[tokio::test]
async fn an_operator_of_webhooks_alone_serves_until_it_is_stopped() {
    let cluster = Cluster::start().await;
    let operator = Operator::new("judge").webhook(judge()).without_leader();
    let mut running = Beside::start(&cluster, operator);
    let webhooks = "judge-validating-webhook-configuration";
    let is_there = |it: Option<&ValidatingWebhookConfiguration>| it.is_some();
    running.does(cluster.eventually(None, webhooks, is_there)).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    for _ in 0..3 {
        let refused = maps.create(&PostParams::default(), &config_map("bad", &[])).await;
        assert_eq!(refusal(refused).0, 403);
    }
    assert!(running.runs(), "it has nothing else to do, and stays");
    running.end().await;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
    assert!(configurations.get_opt(webhooks).await.expect("it can be asked").is_none());
    let made = maps.create(&PostParams::default(), &config_map("bad", &[])).await;
    made.expect("nobody is asked any more");
    cluster.shutdown().await;
}

/// The operator is in the cluster already when its author runs it on their machine.
#[tokio::test]
async fn what_was_there_before_an_operator_is_there_after_it() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    define(&client).await;
    let deployed = json!({"service": {"namespace": "zoo-system", "name": "zoo", "port": 443}});
    let (name, definition) = ("zoo-validating-webhook-configuration", "pets.zoo.example.com");
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "validate.configmaps.v1.core", "clientConfig": deployed,
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore",
        }],
    });
    cluster.apply(&configuration).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let conversion = json!({
        "strategy": "Webhook",
        "webhook": {"clientConfig": deployed, "conversionReviewVersions": ["v1"]},
    });
    let patch = Patch::Merge(json!({"spec": {"conversion": conversion}}));
    definitions.patch(definition, &PatchParams::default(), &patch).await.expect("converted there");
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let before = configurations.get(name).await.expect("there").webhooks;

    let operator = || {
        let conversion = Conversion::hub::<Pet>().spoke::<alpha::Pet>();
        Operator::new("zoo").converting(conversion).webhook(judge()).without_leader()
    };
    let is_called_here = |it: Option<&ValidatingWebhookConfiguration>| {
        let mut webhooks = it.and_then(|it| it.webhooks.as_ref()).into_iter().flatten();
        webhooks.any(|it| it.client_config.url.is_some())
    };
    let mut running = Beside::start(&cluster, operator());
    running.does(cluster.eventually(None, name, is_called_here)).await;
    cluster.eventually(None, definition, is_converted).await;
    running.end().await;
    assert_eq!(configurations.get(name).await.expect("there").webhooks, before);
    let read = definitions.get(definition).await.expect("there").spec.conversion;
    assert_eq!(serde_json::to_value(read).expect("JSON"), conversion);

    // Somebody deploys it while it runs.
    let mut running = Beside::start(&cluster, operator());
    running.does(cluster.eventually(None, name, is_called_here)).await;
    let mut anew = configuration.clone();
    anew["webhooks"][0]["clientConfig"] = json!({"url": null, "service": {
        "namespace": "elsewhere", "name": "zoo",
    }});
    cluster.apply(&anew).await;
    let none = json!({"strategy": "None", "webhook": null});
    let patch = Patch::Merge(json!({"spec": {"conversion": none}}));
    definitions.patch(definition, &PatchParams::default(), &patch).await.expect("converted");
    let theirs = configurations.get(name).await.expect("there").webhooks;
    running.end().await;
    assert_eq!(configurations.get(name).await.expect("there").webhooks, theirs);
    let read = definitions.get(definition).await.expect("there").spec.conversion;
    assert_eq!(read.expect("it says").strategy, "None");
    cluster.shutdown().await;
}

/// Marks pets, which it reads in the version that is not stored.
struct Marker;

impl Reconciler<alpha::Pet> for Marker {
    async fn reconcile(&self, pet: &mut alpha::Pet, _: &Context) -> Result<Action, Error> {
        let name = pet.spec.name.replace(' ', "-");
        pet.labels_mut().insert("seen".to_owned(), name);
        Ok(Action::Done)
    }
}

/// Leads to a pod for as long as it is ready, as a Service does.
async fn service(listener: TcpListener, pod: SocketAddr, probes: SocketAddr) {
    let mut tasks = JoinSet::new();
    loop {
        let (mut caller, _) = listener.accept().await.expect("a connection");
        tasks.spawn(async move {
            if get(probes, "/readyz").await.starts_with("HTTP/1.1 200") {
                let mut pod = TcpStream::connect(pod).await.expect("the pod");
                // Either side may end it as it likes.
                let _ = copy_bidirectional(&mut caller, &mut pod).await;
            }
        });
    }
}

/// To list was to convert, to convert was to call the operator, and only who had listed was called.
#[tokio::test]
async fn an_operator_converts_what_it_must_read_before_it_can_work() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    define(&client).await;
    let pets: Api<Pet> = Api::default_namespaced(client.clone());
    let rex = Pet::new("rex", PetSpec { first: "Rex".to_owned(), last: "Miller".to_owned() });
    pets.create(&PostParams::default(), &rex).await.expect("stored");
    let now = cluster.clock().now();
    let kept = certificate::plan(&Kept::default(), &Wanted::for_localhost(), true, now);
    let kept = kept.expect("a certificate");
    let folder = tempfile::tempdir().expect("a folder");
    let serving = [("tls.crt", &kept.serving.certificate), ("tls.key", &kept.serving.key)];
    for (file, text) in serving {
        std::fs::write(folder.path().join(file), text).expect("written");
    }
    let (pod, probes) = (place(40), place(41));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a place");
    let url = Place::Url(format!("https://{}", listener.local_addr().expect("a place")));
    let mut network = JoinSet::new();
    network.spawn(service(listener, pod, probes));

    let conversion = || Conversion::hub::<Pet>().spoke::<alpha::Pet>();
    let webhooks = Webhooks::new().converting(conversion());
    let trust = Trust::Bundle(kept.bundle());
    let told = install(&client, "zoo", webhooks.registrations(), &url, &trust).await;
    told.expect("the server knows of them");
    let operator = Operator::new("zoo")
        .converting(conversion())
        .controller(Controller::new("marker", Marker))
        .without_leader();
    let mut settings = Settings { probes: Bind::At(probes), ..Settings::default() };
    settings.metrics.bind = Bind::Nowhere;
    settings.webhooks.bind = Some(Bind::At(pod));
    settings.webhooks.certificates = Some(folder.path().to_owned());
    let host = Host {
        client,
        clock: cluster.clock(),
        settings,
        namespace: "default".to_owned(),
        surrounding: Surrounding::Pod,
        registry: Registry::default(),
    };
    let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
    tasks.spawn(operator.serve(host, shutdown.clone()));
    let is_seen = |pet: Option<&Pet>| {
        pet.is_some_and(|pet| pet.labels().get("seen").is_some_and(|seen| seen == "Rex-Miller"))
    };
    cluster.eventually(Some("default"), "rex", is_seen).await;
    shutdown.cancel();
    let ended = tasks.join_next().await.expect("it ends").expect("it does not panic");
    ended.expect("it could be run");
    network.shutdown().await;
    cluster.shutdown().await;
}

/// Each review asked the server for what it had to know.
#[tokio::test]
async fn a_webhook_finds_in_the_cache_what_its_operator_reads() {
    let cluster = Cluster::start().await;
    let judge = |change: Change<'_, ConfigMap>, review: &Review| {
        if let Change::Create(map) = change
            && map.name_any() == "curious"
        {
            review.informer::<Pod>()?;
        }
        let permits = review.informer::<Secret>()?.list_in(&review.namespace)?;
        match permits.iter().any(|it| it.name_any() == "permit") {
            true => Ok(Default::default()),
            false => Err(Denied::new("there is no permit")),
        }
    };
    let operator = || {
        let webhook = Webhook::validating(judge).namespaces(in_default());
        Operator::new("judge").webhook(webhook).reads::<Secret>()
    };
    // For its rights alone.
    cluster.run(operator()).await.stop().await;
    let running = cluster.call_webhooks(operator()).await;
    let (maps, params) = (Api::default_namespaced(cluster.client()), PostParams::default());
    let refused = refusal(maps.create(&params, &config_map("one", &[])).await);
    assert!(refused.2.ends_with("there is no permit"), "{}", refused.2);
    let refused = refusal(maps.create(&params, &config_map("curious", &[])).await);
    let undeclared = "Pod is not declared: say `.reads::<Pod>()` of the operator";
    assert!(refused.0 == 500 && refused.2.ends_with(undeclared), "{refused:?}");
    let permit = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "permit"}});
    cluster.apply(&permit).await;
    // It hears of it soon.
    let allowed = async {
        while maps.create(&params, &config_map("one", &[])).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), allowed).await.expect("it is allowed");
    running.stop().await;
    cluster.shutdown().await;
}

/// A cluster that seems to be on the same machine may be in a container there.
#[tokio::test]
async fn a_cluster_calls_webhooks_at_the_host_that_it_is_told() {
    let cluster = Cluster::start().await;
    let judged = || Operator::new("judge").webhook(judge()).without_leader();
    let name = "judge-validating-webhook-configuration";
    let at = Bind::At(([127, 0, 0, 1], 0).into());
    for (host, bind, expected) in [
        ("localhost", None, "https://localhost:"),
        ("localhost", Some(at.clone()), "https://localhost:"),
        ("127.0.0.1", Some(at.clone()), "https://127.0.0.1:"),
    ] {
        let mut running = Beside::start_with(&cluster, judged(), |settings| {
            settings.webhooks.url_host = Some(host.to_owned());
            settings.webhooks.bind = bind;
        });
        let is_called = |it: Option<&ValidatingWebhookConfiguration>| {
            let mut webhooks = it.and_then(|it| it.webhooks.as_ref()).into_iter().flatten();
            let url = webhooks.next().and_then(|it| it.client_config.url.clone());
            url.is_some_and(|url| url.starts_with(expected))
        };
        running.does(cluster.eventually(None, name, is_called)).await;
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
        let refused = maps.create(&PostParams::default(), &config_map("bad", &[])).await;
        assert_eq!(refusal(refused).0, 403, "{host}");
        running.end().await;
    }

    let running = Beside::start_with(&cluster, judged(), |settings| {
        settings.webhooks.url_host = Some("nowhere.invalid".to_owned());
        settings.webhooks.bind = Some(at);
    });
    let error = running.ended().await.expect_err("nobody is there").to_string();
    let told = error.starts_with("have the cluster call webhooks at https://nowhere.invalid:")
        && error.contains("--webhook-url-host")
        && error.contains("--webhook-bind-address=0");
    assert!(told, "{error}");
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
    let left = configurations.list(&ListParams::default()).await.expect("a list");
    assert!(left.items.is_empty(), "{left:?}");
    cluster.shutdown().await;
}
