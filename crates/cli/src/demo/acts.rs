//! What is shown of each operator, and whether it is so.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;

use anyhow::{Context as _, Result, bail, ensure};
use at::{At, Phase};
use foo::Foo;
use futures::TryStreamExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod, ResourceQuota, Secret, Service};
use kube::api::{Api, LogParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Resource, ResourceExt as _};
use kubewright::Clock;
use kubewright::condition::{Conditions as _, READY};
use kubewright_apimachinery::yaml;
use petstore::pet::{v1alpha1, v1beta1};
use petstore::proto::{self, SearchPetsRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenancy::AcmeNamespace;
use webapp::WebApp;
use wordpress::Wordpress;

use super::stage::{self, LOOK_AGAIN, MANAGER, Stage};
use super::tale::Tale;

/// Every browser knows that what ends so is this machine.
pub(super) const WEB_HOST: &str = "webapp.localhost";
/// How far ahead a command is scheduled.
const AHEAD: SignedDuration = SignedDuration::from_secs(3);

type Act<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// All acts, by the operators that they show.
pub(super) fn all<'a>(stage: &'a Stage, tale: &'a Tale) -> Vec<(&'static str, Act<'a>)> {
    let show = |who: &'static str| move |what: String| tale.tell(who, what);
    vec![
        ("at", Box::pin(at(stage, show("at")))),
        ("petstore", Box::pin(petstore(stage, show("petstore")))),
        ("tenancy", Box::pin(tenancy(stage, show("tenancy")))),
        ("webapp", Box::pin(webapp(stage, show("webapp")))),
        ("wordpress", Box::pin(wordpress(stage, show("wordpress")))),
        ("foo", Box::pin(foo(stage, show("foo")))),
        ("podpolicy", Box::pin(podpolicy(stage, show("podpolicy")))),
    ]
}

async fn at(stage: &Stage, tell: impl Fn(String)) -> Result<()> {
    let mut sample: At = sample(at::SAMPLE)?;
    let due = Clock::system().now() + AHEAD;
    // A schedule has whole seconds.
    let due = Timestamp::from_second(due.as_second()).context("a schedule")?;
    sample.spec.schedule = Some(due.to_string());
    let namespace = sample.namespace().context("the sample has a namespace")?;
    make_namespace(stage, &namespace, json!({})).await?;
    let ats: Api<At> = Api::namespaced(stage.client.clone(), &namespace);
    let name = apply(&ats, &sample).await?;
    tell(format!("{name} waits until {due}"));
    let phase = |it: &At| it.status.as_ref().and_then(|status| status.phase.clone());
    wait(&ats, &name, |it| matches!(phase(it), Some(Phase::Running | Phase::Done))).await?;
    let now = Clock::system().now();
    ensure!(now >= due, "it ran {:#} too early", due - now);
    let command = sample.spec.command.as_deref().unwrap_or_default();
    tell(format!("it is time: a pod runs {command:?}"));
    wait(&ats, &name, |it| phase(it) == Some(Phase::Done)).await?;
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), &namespace);
    let log = pods.logs(&at::pod_name(&sample), &LogParams::default()).await;
    let log = log.context("read what it printed")?;
    ensure!(log.trim() == "YAY", "the pod printed {log:?}, and not YAY");
    tell(format!("{name} is done, its pod printed {}", log.trim()));
    Ok(())
}

async fn petstore(stage: &Stage, tell: impl Fn(String)) -> Result<()> {
    let pets: Api<v1alpha1::Pet> = Api::default_namespaced(stage.client.clone());
    for sample in petstore::SAMPLES {
        let sample: v1alpha1::Pet = self::sample(sample)?;
        let name = apply(&pets, &sample).await?;
        let id = |it: &v1alpha1::Pet| it.status.as_ref().and_then(|status| status.id.clone());
        let pet = wait(&pets, &name, |it| id(it).is_some()).await?;
        let kept = stored(stage, &sample.spec.name).await?;
        ensure!(Some(&kept.id) == id(&pet).as_ref(), "the store knows it as {}", kept.id);
        tell(format!("{} is in the store, as {}", kept.name, kept.id));
    }
    let change = Patch::Merge(json!({"spec": {"name": "Thorbert"}}));
    let changed = pets.patch("pet-sample1", &PatchParams::default(), &change).await;
    changed.context("rename Thor")?;
    let kept = stored(stage, "Thorbert").await?;
    tell(format!("Thor becomes {}, in the store too", kept.name));
    let others: Api<v1beta1::Pet> = Api::default_namespaced(stage.client.clone());
    let other = others.get("pet-sample1").await.context("read it as v1beta1")?;
    tell(format!("as v1beta1, {} was born on {}", other.spec.name, other.spec.birthday));
    Ok(())
}

/// A pet of this name, as soon as the store has it.
async fn stored(stage: &Stage, name: &str) -> Result<proto::Pet> {
    let mut pets = stage.pets.clone();
    loop {
        let wanted = SearchPetsRequest { names: vec![name.to_owned()], ..Default::default() };
        let found = pets.search_pets(wanted).await.context("ask the store")?;
        let mut found = found.into_inner();
        if let Some(pet) = found.try_next().await.context("ask the store")? {
            return Ok(pet);
        }
        // The store tells nobody what changes.
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn tenancy(stage: &Stage, tell: impl Fn(String)) -> Result<()> {
    let teams: Api<AcmeNamespace> = Api::all(stage.client.clone());
    let sample: AcmeNamespace = sample(tenancy::SAMPLE)?;
    let name = apply(&teams, &sample).await?;
    let team = wait(&teams, &name, |it: &AcmeNamespace| {
        it.status.as_ref().is_some_and(|status| status.conditions.is_true(READY))
    })
    .await?;
    let namespace = &team.spec.namespace_name;
    let quotas: Api<ResourceQuota> = Api::namespaced(stage.client.clone(), namespace);
    let quota = quotas.get("dev").await.context("read its quota")?;
    let hard = quota.spec.and_then(|spec| spec.hard).unwrap_or_default();
    let limits: Vec<String> =
        hard.iter().map(|(what, limit)| format!("{what} {}", limit.0)).collect();
    ensure!(hard.get("pods").is_some_and(|pods| pods.0 == "10"), "the quota is {limits:?}");
    let admin = &team.spec.admin_username;
    tell(format!("{name} has namespace {namespace} for {admin}, with {}", limits.join(", ")));
    let mut taken = sample;
    taken.metadata.name = Some("intruder".to_owned());
    taken.spec.namespace_name = "kube-system".to_owned();
    judged(stage, "tenancy").await?;
    tell(format!("kube-system is nobody's: {}", refused(&teams, &taken).await?));
    Ok(())
}

async fn webapp(stage: &Stage, tell: impl Fn(String)) -> Result<()> {
    let apps: Api<WebApp> = Api::default_namespaced(stage.client.clone());
    let mut sample: WebApp = sample(webapp::SAMPLE)?;
    sample.spec.web_app_hostname = WEB_HOST.to_owned();
    let name = apply(&apps, &sample).await?;
    let app = wait(&apps, &name, |it: &WebApp| {
        it.status.as_ref().is_some_and(|status| status.conditions.is_true(READY))
    })
    .await?;
    tell(format!("{name} runs {} times beside its database", app.spec.web_app_replicas));
    let server = stage.web_server(WEB_HOST).await?;
    ensure!(server.starts_with(&name), "{server} answers, which is not of {name}");
    tell(format!("{} answers: {server}", stage.web(WEB_HOST)));
    Ok(())
}

async fn wordpress(stage: &Stage, tell: impl Fn(String)) -> Result<()> {
    let mut documents = yaml::documents(wordpress::SAMPLE).context("the sample")?.into_iter();
    let secrets: Api<Secret> = Api::default_namespaced(stage.client.clone());
    let secret: Secret = sample(documents.next().context("the sample has a Secret")?)?;
    apply(&secrets, &secret).await?;
    let sites: Api<Wordpress> = Api::default_namespaced(stage.client.clone());
    let site: Wordpress = sample(documents.next().context("the sample has a Wordpress")?)?;
    let name = apply(&sites, &site).await?;
    wait(&sites, &name, |it: &Wordpress| {
        it.status.as_ref().is_some_and(|status| status.conditions.is_true(READY))
    })
    .await?;
    let services: Api<Service> = Api::default_namespaced(stage.client.clone());
    let service = services.get("wordpress").await.context("find its Service")?;
    let ports = service.spec.and_then(|spec| spec.ports).unwrap_or_default();
    let port = ports.first().and_then(|port| port.node_port).context("it has a node port")?;
    let place = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port).context("a port")?));
    tell(format!("{name} has a database and volumes"));
    let server = stage::server(place, "localhost").await?;
    tell(format!("http://{place}/ answers: {server}"));
    Ok(())
}

async fn foo(stage: &Stage, tell: impl Fn(String)) -> Result<()> {
    let foos: Api<Foo> = Api::default_namespaced(stage.client.clone());
    let sample: Foo = sample(foo::SAMPLE)?;
    let name = apply(&foos, &sample).await?;
    let deployments: Api<Deployment> = Api::default_namespaced(stage.client.clone());
    let is_available = |it: &Deployment| {
        let status = it.status.as_ref();
        status.and_then(|status| status.available_replicas).is_some_and(|count| count > 0)
    };
    let deployment = sample.spec.deployment_name.context("the sample names its Deployment")?;
    let made = wait(&deployments, &deployment, is_available).await?;
    tell(format!("{name} made Deployment {}, which is available", made.name_any()));
    Ok(())
}

async fn podpolicy(stage: &Stage, tell: impl Fn(String)) -> Result<()> {
    let namespace = "guarded";
    let labels = json!({podpolicy::INJECT: "enabled", podpolicy::ENFORCE: "enabled"});
    make_namespace(stage, namespace, labels).await?;
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), namespace);
    let pod = |image: &str| {
        let containers = json!([{"name": "app", "image": image}]);
        let pod = json!({"metadata": {"name": "app"}, "spec": {"containers": containers}});
        serde_json::from_value::<Pod>(pod).context("a pod")
    };
    judged(stage, "podpolicy").await?;
    tell(format!("strange images stay out: {}", refused(&pods, &pod("evil/miner")?).await?));
    let tried = PostParams { dry_run: true, ..PostParams::default() };
    let allowed = pod("registry.acme.com/app/app:v1.4")?;
    let made = pods.create(&tried, &allowed).await.context("try an image that is allowed")?;
    let containers = made.spec.map(|spec| spec.containers).unwrap_or_default();
    let names: Vec<&str> = containers.iter().map(|it| it.name.as_str()).collect();
    ensure!(names.contains(&podpolicy::SIDECAR), "the containers are {names:?}");
    tell(format!("a pod that is let in has containers {}", names.join(" and ")));
    Ok(())
}

fn sample<K: DeserializeOwned>(text: &str) -> Result<K> {
    let sample = yaml::decode(text).context("a sample is YAML")?;
    serde_json::from_value(sample.value).context("a sample is of its kind")
}

/// Applies an object and gives its name.
async fn apply<K>(api: &Api<K>, object: &K) -> Result<String>
where
    K: Clone + Resource<DynamicType = ()> + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let name = object.name_any();
    let params = PatchParams::apply(MANAGER).force();
    let applied = api.patch(&name, &params, &Patch::Apply(object)).await;
    applied.with_context(|| format!("apply {} {name}", K::kind(&())))?;
    Ok(name)
}

/// Waits until the cluster asks an operator about objects.
async fn judged(stage: &Stage, operator: &str) -> Result<()> {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(stage.client.clone());
    let name = format!("{operator}-validating-webhook-configuration");
    wait(&configurations, &name, |_| true).await.map(drop)
}

async fn make_namespace(stage: &Stage, name: &str, labels: Value) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    let labels = serde_json::from_value(labels).context("labels")?;
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels, ..ObjectMeta::default() };
    apply(&namespaces, &Namespace { metadata, ..Namespace::default() }).await.map(drop)
}

/// An object, once it is as it should be.
async fn wait<K>(api: &Api<K>, name: &str, is_so: impl Fn(&K) -> bool) -> Result<K>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Resource<DynamicType = ()> + Send + 'static,
{
    let is_so = |object: Option<&K>| object.is_some_and(&is_so);
    let waited = await_condition(api.clone(), name, is_so).await;
    let waited = waited.with_context(|| format!("wait for {} {name}", K::kind(&())))?;
    waited.with_context(|| format!("{} {name} is gone", K::kind(&())))
}

/// What is said to whoever creates what must not be.
async fn refused<K>(api: &Api<K>, object: &K) -> Result<String>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    match api.create(&PostParams::default(), object).await {
        // Whoever cannot judge has not refused.
        Err(kube::Error::Api(status)) if status.code < 500 => {
            // Which object it is about was just told.
            let message = status.message.as_str();
            Ok(message.split_once(" is invalid: ").map_or(message, |(_, why)| why).to_owned())
        }
        Err(error) => Err(error).context("be refused"),
        Ok(_) => bail!("what must be refused was taken"),
    }
}
