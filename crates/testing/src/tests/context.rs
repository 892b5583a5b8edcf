//! What reconciles do by their context, where it is not what they should.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use kube::core::{Expression, Selector};
use kubewright::access::Access;
use kubewright::{Action, Context, Controller, Error, ObjectKey, Operator, Reconciler};
use serde_json::json;
use tokio::time::Instant;

use crate::{Cluster, Faults, Log, Running};

/// Writes down something in the data of what is reconciled.
fn say(object: &mut ConfigMap, what: &str, text: impl Into<String>) {
    let text = BTreeMap::from([(what.to_owned(), text.into())]);
    object.data.get_or_insert_default().extend(text);
}

/// Has ConfigMaps of these names, labelled `app=test`, reconciled.
async fn run<R: Reconciler<ConfigMap>>(
    cluster: &Cluster,
    names: &[&str],
    controller: Controller<ConfigMap, R>,
) -> Running {
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    for name in names {
        let map = json!({"metadata": {"name": name, "labels": {"app": "test"}}});
        let map = serde_json::from_value(map).expect("an object");
        maps.create(&PostParams::default(), &map).await.expect("created");
    }
    let controller = controller.labelled("app=test");
    cluster.run(Operator::new("test").controller(controller)).await
}

/// What was said of something, once it is.
async fn said(cluster: &Cluster, name: &str, what: &str) -> String {
    let text = |map: Option<&ConfigMap>| map?.data.as_ref()?.get(what).cloned();
    let map = cluster.eventually(Some("default"), name, |map| text(map).is_some()).await;
    text(map.as_deref()).expect("it is said")
}

/// Makes a Secret for each object, and takes some back.
struct Maker;

impl Reconciler<ConfigMap> for Maker {
    async fn reconcile(&self, object: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
        let generate_name = Some(format!("{}-", object.name_any()));
        let metadata = ObjectMeta { generate_name, ..ObjectMeta::default() };
        let made = ctx.create(Secret { metadata, ..Secret::default() }).await?;
        if object.name_any() == "taken" {
            ctx.delete(&*made).await?;
        }
        say(object, "made", made.name_any());
        Ok(Action::Done)
    }
}

/// They were written, and then failed since nobody looks at Secrets, and were written again.
#[tokio::test(start_paused = true)]
async fn what_is_only_written_need_not_be_read() {
    let cluster = Cluster::start().await;
    let controller = Controller::new("maker", Maker).may(Access::written::<Secret>());
    let running = run(&cluster, &["kept", "taken"], controller).await;
    let kept = said(&cluster, "kept", "made").await;
    said(&cluster, "taken", "made").await;
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client());
    let there = secrets.list(&ListParams::default()).await.expect("listed").items;
    let there: Vec<String> = there.iter().map(Secret::name_any).collect();
    assert_eq!(there, [kept]);
    running.stop().await;
    cluster.shutdown().await;
}

/// Writes while watches tell nothing, and says how long it waited to read it.
struct Impatient(Faults);

impl Reconciler<ConfigMap> for Impatient {
    async fn reconcile(&self, object: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
        if object.data.is_some() {
            return Ok(Action::Done);
        }
        let name = Some(object.name_any());
        let metadata = ObjectMeta { name, ..ObjectMeta::default() };
        let held = self.0.hold_watches();
        ctx.create(Secret { metadata, ..Secret::default() }).await?;
        let begun = Instant::now();
        let seen = ctx.list::<Secret>().await?.len();
        let again = ctx.list::<Secret>().await?.len();
        say(object, "waited", format!("{seen} and {again} after {:?}", begun.elapsed()));
        drop(held);
        Ok(Action::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_waits_for_what_was_written_but_not_for_ever() {
    let (cluster, log) = (Cluster::start().await, Log::of("kubewright"));
    let impatient = Impatient(cluster.faults().clone());
    let controller = Controller::new("impatient", impatient).owns::<Secret>();
    let running = run(&cluster, &["it"], controller).await;
    let said = said(&cluster, "it", "waited").await;
    assert!(said.starts_with("0 and 0 after 10"), "{said}");
    let gave_up = |line: &String| {
        line.starts_with("what was written has not been seen") && line.contains("kind=Secret")
    };
    assert_eq!(log.lines().iter().filter(|line| gave_up(line)).count(), 1, "{:#?}", log.lines());
    running.stop().await;
    cluster.shutdown().await;
}

/// Writes with the client what its controller has not declared.
struct Smuggler;

impl Reconciler<ConfigMap> for Smuggler {
    async fn reconcile(&self, object: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
        let secrets: Api<Secret> = Api::namespaced(ctx.client().clone(), "default");
        let metadata = ObjectMeta { name: object.metadata.name.clone(), ..ObjectMeta::default() };
        let secret = Secret { metadata, ..Secret::default() };
        secrets.create(&PostParams::default(), &secret).await?;
        Ok(Action::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_written_with_the_client_must_be_declared_too() {
    let cluster = Cluster::start().await;
    let running = run(&cluster, &["it"], Controller::new("smuggler", Smuggler)).await;
    let key = ObjectKey::new(Some("default"), "it");
    let mut told = cluster.operators().report(&key);
    for _ in 0..1000 {
        if told.contains("smuggler reconciled") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        told = cluster.operators().report(&key);
    }
    for text in ["smuggler reconciled default/it: Error: secrets is forbidden: ", "cannot create"] {
        assert!(told.contains(text), "{text:?} is not in {told}");
    }
    running.stop().await;
    cluster.shutdown().await;
}

/// Says which Secrets it finds, by where they are and by what they are labelled with.
struct Chooser;

impl Reconciler<ConfigMap> for Chooser {
    async fn reconcile(&self, object: &mut ConfigMap, ctx: &Context) -> Result<Action, Error> {
        let red: Selector = [("color", "red")].into_iter().collect();
        let mut dull = red.clone();
        dull.extend([Expression::DoesNotExist("bright".to_owned())]);
        let found = [
            ("there", ctx.list_in::<Secret>("lab").await?),
            ("red", ctx.select(&red).await?),
            ("red-there", ctx.select_in("lab", &red).await?),
            ("dull", ctx.select(&dull).await?),
            ("nowhere", ctx.select_in("elsewhere", &Selector::default()).await?),
        ];
        for (what, secrets) in found {
            let keys: Vec<ObjectKey> =
                secrets.iter().map(|secret| ObjectKey::of(&secret.metadata)).collect();
            let keys: Vec<&str> = keys.iter().map(ObjectKey::as_str).collect();
            say(object, what, keys.join(" "));
        }
        Ok(Action::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_cached_is_found_by_namespace_and_by_labels() {
    let cluster = Cluster::start().await;
    for namespace in ["lab", "shop"] {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        });
        cluster.apply(&namespace).await;
    }
    let secrets = [
        ("lab", "apple", json!({"color": "red"})),
        ("lab", "pear", json!({"color": "green"})),
        ("shop", "cherry", json!({"color": "red", "bright": "yes"})),
        ("shop", "plain", json!(null)),
    ];
    for (namespace, name, labels) in secrets {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": namespace, "name": name, "labels": labels},
        });
        cluster.apply(&secret).await;
    }
    let controller = Controller::new("chooser", Chooser).reads::<Secret>();
    let running = run(&cluster, &["it"], controller).await;
    let expected = [
        ("there", "lab/apple lab/pear"),
        ("red", "lab/apple shop/cherry"),
        ("red-there", "lab/apple"),
        ("dull", "lab/apple"),
        ("nowhere", ""),
    ];
    for (what, keys) in expected {
        assert_eq!(said(&cluster, "it", what).await, keys, "{what}");
    }
    running.stop().await;
    cluster.shutdown().await;
}
