//! Certificates that an operator makes itself, and what happens when it cannot.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use kubewright::Clock;
use kubewright::certificate::{Current, KeepError, Kept, Lifetimes, SelfMade, Targets, Wanted};
use kubewright::serve::Bind;
use kubewright::webhook::{Metrics, Place, Review, Server, Trust, Webhook, Webhooks, install};
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Cluster;

const CONFIGURATION: &str = "zoo-mutating-webhook-configuration";

/// Marks ConfigMaps in a namespace.
fn webhooks(namespace: &str) -> Arc<Webhooks> {
    let marking = Webhook::defaulting(|it: &mut ConfigMap, _: &Review| {
        it.labels_mut().insert("marked".to_owned(), "yes".to_owned());
        Ok(())
    });
    let label = ("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
    let labels = LabelSelector {
        match_labels: Some([label].into_iter().collect()),
        ..LabelSelector::default()
    };
    Arc::new(Webhooks::new().with(marking.namespaces(labels)))
}

/// Somebody who keeps certificates of a process on this machine.
fn keeper(client: Client, clock: Clock, lifetimes: Lifetimes) -> SelfMade {
    let wanted = Wanted { lifetimes, ..Wanted::for_localhost() };
    let namespace = client.default_namespace().to_owned();
    let targets = Targets::of("zoo", webhooks(&namespace).registrations());
    SelfMade::new(client, (namespace.as_str(), "zoo-webhook-server-cert"), wanted, targets, clock)
}

fn usual(client: Client) -> SelfMade {
    keeper(client, Clock::starting_at(Timestamp::now()), Lifetimes::default())
}

fn secrets(cluster: &Cluster) -> Api<Secret> {
    Api::default_namespaced(cluster.client())
}

async fn kept(cluster: &Cluster) -> Kept {
    let secret = secrets(cluster).get("zoo-webhook-server-cert").await.expect("there");
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/tls"));
    Kept::read(&secret.data.expect("data"))
}

async fn configuration(cluster: &Cluster) -> MutatingWebhookConfiguration {
    Api::all(cluster.client()).get(CONFIGURATION).await.expect("there")
}

async fn told(cluster: &Cluster) -> Option<ByteString> {
    let webhooks = configuration(cluster).await.webhooks.expect("webhooks");
    webhooks[0].client_config.ca_bundle.clone()
}

/// Has the cluster call webhooks of which it does not know whom to believe.
async fn configure(cluster: &Cluster, place: &Place) {
    let webhooks = webhooks(cluster.namespace());
    let registrations = webhooks.registrations();
    install(&cluster.client(), "zoo", registrations, place, &Trust::Later).await.expect("told");
}

fn nowhere() -> Place {
    Place::Url("https://127.0.0.1:1".to_owned())
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_at_once_agree() {
    let cluster = Cluster::start().await;
    let (mut one, mut other) = (usual(cluster.client()), usual(cluster.client()));
    let (shown, too) = (Current::new(), Current::new());
    let (first, second) = tokio::join!(one.tend(&shown), other.tend(&too));
    first.expect("kept");
    second.expect("kept");
    let kept = kept(&cluster).await;
    assert_eq!(shown.certificate(), Some(kept.serving.certificate));
    assert_eq!(too.certificate(), shown.certificate());
    assert_eq!(shown.problem(), None);
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_server_is_told_whom_to_believe_and_told_again() {
    let cluster = Cluster::start().await;
    let (mut keeper, current) = (usual(cluster.client()), Current::new());
    // There is nobody to tell yet.
    keeper.tend(&current).await.expect("kept");
    let bundle = Some(ByteString(kept(&cluster).await.bundle().into_bytes()));
    configure(&cluster, &nowhere()).await;
    keeper.tend(&current).await.expect("kept");
    assert_eq!(told(&cluster).await, bundle);
    // Who knows is left alone.
    let version = configuration(&cluster).await.resource_version();
    keeper.tend(&current).await.expect("kept");
    assert_eq!(configuration(&cluster).await.resource_version(), version);
    let api: Api<MutatingWebhookConfiguration> = Api::all(cluster.client());
    let patch = Patch::Strategic(json!({"webhooks": [{
        "name": "mutate.configmaps.v1.core", "clientConfig": {"caBundle": null},
    }]}));
    api.patch(CONFIGURATION, &PatchParams::default(), &patch).await.expect("changed");
    keeper.tend(&current).await.expect("kept");
    assert_eq!(told(&cluster).await, bundle);
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_gone_or_broken_is_made_anew() {
    let cluster = Cluster::start().await;
    let (mut keeper, current) = (usual(cluster.client()), Current::new());
    keeper.tend(&current).await.expect("kept");
    let first = current.certificate();
    let name = "zoo-webhook-server-cert";
    secrets(&cluster).delete(name, &DeleteParams::default()).await.expect("deleted");
    keeper.tend(&current).await.expect("kept");
    let second = current.certificate();
    assert_ne!(first, second);
    let patch = Patch::Merge(json!({"data": {"tls.key": "bm9uc2Vuc2U="}}));
    secrets(&cluster).patch(name, &PatchParams::default(), &patch).await.expect("changed");
    keeper.tend(&current).await.expect("kept");
    assert_ne!(current.certificate(), second);
    assert_eq!(current.certificate(), Some(kept(&cluster).await.serving.certificate));
    cluster.shutdown().await;
}

/// Lets a user do something with the Secrets of the namespace `default`.
async fn allow(cluster: &Cluster, user: &str, verbs: &[&str]) {
    let role: Role = serde_json::from_value(json!({
        "metadata": {"name": verbs[0]},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}],
    }))
    .expect("a role");
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": verbs[0]},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": verbs[0]},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }))
    .expect("a binding");
    let params = PostParams::default();
    let client = cluster.client();
    Api::default_namespaced(client.clone()).create(&params, &role).await.expect("made");
    Api::default_namespaced(client).create(&params, &binding).await.expect("made");
}

#[tokio::test(start_paused = true)]
async fn without_its_secret_a_server_shows_something_and_says_what_is_missing() {
    let cluster = Cluster::start().await;
    let client = cluster.client_as("operator", &["system:authenticated"]);
    let wanted = Wanted::for_localhost();
    let clock = Clock::starting_at(Timestamp::now());
    let secret = ("default", "zoo-webhook-server-cert");
    let mut keeper = SelfMade::new(client, secret, wanted, Targets::default(), clock);
    let current = Current::new();
    let error = keeper.tend(&current).await.expect_err("it may not read");
    assert!(matches!(error, KeepError::Read { .. }), "{error:?}");
    let makeshift = current.certificate();
    assert!(makeshift.is_some());
    let problem = current.check().ask().await.expect_err("not ready");
    assert!(
        problem.starts_with("read the Secret default/zoo-webhook-server-cert of certificates: ")
            && problem.contains("cannot get resource \"secrets\""),
        "{problem}"
    );

    allow(&cluster, "operator", &["get"]).await;
    let error = keeper.tend(&current).await.expect_err("it may not write");
    assert!(matches!(error, KeepError::Write { .. }), "{error:?}");
    assert_eq!(current.certificate(), makeshift, "it is the same one");
    let problem = current.problem().expect("not ready");
    assert!(problem.contains("cannot create resource \"secrets\""), "{problem}");

    allow(&cluster, "operator", &["create"]).await;
    keeper.tend(&current).await.expect("kept");
    assert_eq!(current.problem(), None);
    assert_eq!(current.certificate(), Some(kept(&cluster).await.serving.certificate));
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_renewed_is_shown_for_as_long_as_it_is_good() {
    let cluster = Cluster::start().await;
    let lifetimes = Lifetimes::default();
    let now = Timestamp::now();
    let first = Current::new();
    keeper(cluster.client(), Clock::starting_at(now), lifetimes).tend(&first).await.expect("kept");

    let user = || cluster.client_as("operator", &["system:authenticated"]);
    allow(&cluster, "operator", &["get"]).await;
    let after = |days: i64| {
        let clock = Clock::starting_at(now + jiff::SignedDuration::from_hours(24 * days));
        let wanted = Wanted::for_localhost();
        let secret = ("default", "zoo-webhook-server-cert");
        SelfMade::new(user(), secret, wanted, Targets::default(), clock)
    };
    let current = Current::new();
    after(70).tend(&current).await.expect_err("it may not renew");
    assert_eq!(current.certificate(), first.certificate());
    assert_eq!(current.problem(), None, "it is good for three more weeks");
    after(91).tend(&current).await.expect_err("it may not renew");
    assert_ne!(current.certificate(), first.certificate());
    assert!(current.problem().is_some(), "now it is over");
    cluster.shutdown().await;
}

/// Five minutes of an operator whose authorities last two and whose certificates last one, while
/// objects are created that it must see. Certificates are backdated by five minutes, which is why
/// clients whose time does not pass believe them. On a cluster that was there before, the server
/// takes a moment to hear whom to believe, and five minutes are enough for one authority to be
/// followed by another.
#[tokio::test]
async fn certificates_are_replaced_while_requests_flow() {
    let cluster = Cluster::from_env().await;
    let (until, expected) = if cluster.is_virtual() { (280, (3, 6)) } else { (130, (2, 3)) };
    let lifetimes = Lifetimes {
        authority: Duration::from_secs(120),
        serving: Duration::from_secs(60),
        overlap: Duration::from_secs(10),
    };
    let (current, shutdown) = (Current::new(), CancellationToken::new());
    let metrics = Arc::new(Metrics::new(&mut Registry::default()));
    let bind = Bind::At((Ipv4Addr::LOCALHOST, 0).into());
    let server = Server::bind(&bind, webhooks(cluster.namespace()), metrics, current.clone());
    let server = server.await.expect("a place");
    configure(&cluster, &Place::Url(format!("https://{}", server.address()))).await;
    let mut tasks = JoinSet::new();
    tasks.spawn(server.run(shutdown.clone()));

    let start = Timestamp::now();
    let at = |seconds: i64| {
        let clock = Clock::starting_at(start + jiff::SignedDuration::from_secs(seconds));
        keeper(cluster.client(), clock, lifetimes)
    };
    at(0).tend(&current).await.expect("kept");
    tokio::time::sleep(cluster.lag()).await;

    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let is_over = AtomicBool::new(false);
    let write = async || {
        let object = json!({"metadata": {"generateName": "it-"}});
        let object: ConfigMap = serde_json::from_value(object).expect("an object");
        let made = api.create(&PostParams::default(), &object).await;
        assert_eq!(made.expect("it was seen").labels()["marked"], "yes");
    };
    let writing = async {
        let mut count = 0;
        while !is_over.load(Ordering::Relaxed) {
            write().await;
            count += 1;
        }
        count
    };
    let passing = async {
        let (mut authorities, mut certificates) = (Vec::new(), Vec::new());
        for seconds in (10..=until).step_by(10) {
            let mut keeper = at(seconds);
            // One who has just told everybody, and one who knows that.
            keeper.tend(&current).await.expect("kept");
            keeper.tend(&current).await.expect("kept");
            let kept = kept(&cluster).await;
            authorities.push(kept.authority.certificate);
            certificates.push(current.certificate());
            tokio::time::sleep(cluster.lag()).await;
            write().await;
        }
        is_over.store(true, Ordering::Relaxed);
        authorities.dedup();
        certificates.dedup();
        (authorities.len(), certificates.len())
    };
    let (count, (authorities, certificates)) = tokio::join!(writing, passing);
    assert!(count > 0);
    let enough = authorities >= expected.0 && certificates >= expected.1;
    assert!(enough, "{authorities} and {certificates}");
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(cluster.client());
    configurations.delete(CONFIGURATION, &DeleteParams::default()).await.expect("deleted");
    shutdown.cancel();
    tasks.join_all().await;
    cluster.shutdown().await;
}
