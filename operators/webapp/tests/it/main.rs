//! The operator on a cluster, ours in virtual time, or one that is there already. No pod runs: the
//! tests stand in for nodes.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kubewright::condition::{Conditions as _, READY};
use kubewright::informer::Object;
use kubewright_testing::{Cluster, Running, on_cluster, yaml};
use serde_json::{Value, json};
use webapp::{WebApp, operator};

struct Site<'c> {
    cluster: &'c Cluster,
    running: Option<Running>,
}

const APP: &str = "webapp-sample";
const DATABASE: &str = "webapp-sample-database";

/// Runs a test on a cluster with the operator at work, and the sample.
fn on_site(test: impl AsyncFnOnce(&mut Site<'_>)) {
    on_cluster(async |cluster| {
        let running = Some(cluster.run(operator()).await);
        let mut site = Site { cluster, running };
        cluster.apply(&sample()).await;
        test(&mut site).await;
        if let Some(running) = site.running {
            running.stop().await;
        }
    });
}

fn sample() -> Value {
    yaml(include_str!("../../samples/webapp-sample.yaml")).remove(0)
}

impl Site<'_> {
    fn apps(&self) -> Api<WebApp> {
        Api::default_namespaced(self.cluster.client())
    }

    async fn try_edit(&self, spec: Value) -> Result<WebApp, kube::Error> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.apps().patch(APP, &PatchParams::default(), &patch).await
    }

    async fn eventually<K>(&self, name: &str, is_so: impl Fn(Option<&K>) -> bool) -> Option<Arc<K>>
    where
        K: Object<DynamicType = ()> + Debug,
    {
        self.cluster.eventually(Some(self.cluster.namespace()), name, is_so).await
    }

    /// Waits for an object to come.
    async fn comes<K: Object<DynamicType = ()> + Debug>(&self, name: &str) -> Arc<K> {
        self.eventually::<K>(name, |object| object.is_some()).await.expect("it is there")
    }

    /// Waits until this is said of the application as it is described now.
    async fn told(&self, reason: &str) -> Arc<WebApp> {
        let is_told = |app: Option<&WebApp>| {
            let Some(app) = app else { return false };
            let ready = app.status.as_ref().and_then(|status| status.conditions.find(READY));
            ready.is_some_and(|ready| {
                ready.reason == reason && ready.observed_generation == app.metadata.generation
            })
        };
        self.eventually(APP, is_told).await.expect("it is there")
    }
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

fn image(deployment: &Deployment) -> Option<&str> {
    deployment.spec.as_ref()?.template.spec.as_ref()?.containers[0].image.as_deref()
}

#[test]
fn the_sample_becomes_a_whole_application() {
    on_site(async |site| {
        let app = site.told("DatabaseStarting").await;
        assert!(app.status.as_ref().is_some_and(|status| status.created));
        let deployment = site.comes::<Deployment>(APP).await;
        assert_eq!(replicas(&deployment), Some(2));
        assert_eq!(image(&deployment), Some("registry.acme.com/app/app:v1.4"));
        let ingress = site.comes::<Ingress>(APP).await;
        let rules = ingress.spec.as_ref().and_then(|spec| spec.rules.as_deref());
        assert_eq!(rules.expect("rules")[0].host.as_deref(), Some("app.acme.com"));
        let owners = [
            deployment.owner_references().to_owned(),
            ingress.owner_references().to_owned(),
            site.comes::<StatefulSet>(DATABASE).await.owner_references().to_owned(),
            site.comes::<ConfigMap>("webapp-sample-config").await.owner_references().to_owned(),
            site.comes::<Secret>(DATABASE).await.owner_references().to_owned(),
            site.comes::<Service>(APP).await.owner_references().to_owned(),
            site.comes::<Service>(DATABASE).await.owner_references().to_owned(),
        ];
        for owners in owners {
            assert_eq!(owners.len(), 1);
            assert_eq!(owners[0].uid, app.uid().expect("a uid"));
        }

        let pods = site.cluster.run_pods();
        let app = site.told("Available").await;
        let status = app.status.as_ref().expect("a status");
        assert_eq!((status.available_replicas, status.database_ready), (2, true));
        pods.stop().await;
    });
}

#[test]
fn a_new_image_rolls_out_and_the_status_follows() {
    on_site(async |site| {
        let pods = site.cluster.run_pods();
        site.told("Available").await;
        pods.stop().await;

        site.try_edit(json!({"webAppImage": "registry.acme.com/app/app:v1.5"})).await.expect("ok");
        site.told("RollingOut").await;
        let is_new =
            |it: Option<&Deployment>| it.and_then(image) == Some("registry.acme.com/app/app:v1.5");
        site.eventually(APP, is_new).await;
        let pods = site.cluster.run_pods();
        site.told("Available").await;
        pods.stop().await;
    });
}

#[test]
fn it_is_scaled_by_its_scale() {
    on_site(async |site| {
        site.told("DatabaseStarting").await;
        let scale: Scale = site.apps().get_scale_as(APP).await;
        assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(2));
        let selector = scale.status.and_then(|status| status.selector);
        assert_eq!(selector.as_deref(), Some("app=webapp-sample,tier=web"));
        let patch = Patch::Merge(json!({"spec": {"replicas": 5}}));
        site.apps().patch_scale(APP, &PatchParams::default(), &patch).await.expect("scaled");
        let is_scaled = |it: Option<&Deployment>| it.and_then(replicas) == Some(5);
        site.eventually(APP, is_scaled).await;
    });
}

#[test]
fn fewer_replicas_than_the_tier_needs_are_refused() {
    on_site(async |site| {
        site.told("DatabaseStarting").await;
        let check = async |spec: Value, told: &str| {
            let refused = site.try_edit(spec).await.expect_err("it is refused").to_string();
            assert!(refused.contains(told), "{refused}");
        };
        check(json!({"deploymentTier": "prod"}), "spec.webAppReplicas: Invalid value").await;
        check(json!({"deploymentTier": "prod"}), "the tier prod needs at least 3 replicas").await;
        let one = json!({"deploymentTier": "stg", "webAppReplicas": 1});
        check(one, "the tier stg needs at least 2 replicas").await;
        check(json!({"webAppReplicas": 0}), "spec.webAppReplicas").await;
        check(json!({"webAppHostname": "no host"}), "spec.webAppHostname").await;
        check(json!({"deploymentTier": "test"}), "spec.deploymentTier").await;
        site.try_edit(json!({"deploymentTier": "prod", "webAppReplicas": 3})).await.expect("taken");
        // Nor by the scale.
        let patch = Patch::Merge(json!({"spec": {"replicas": 1}}));
        let scaled = site.apps().patch_scale(APP, &PatchParams::default(), &patch).await;
        let refused = scaled.expect_err("it is refused").to_string();
        assert!(refused.contains("the tier prod needs at least 3 replicas"), "{refused}");
    });
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    on_site(async |site| {
        let check = async |change: Value, told: &str| {
            let refusal = site.cluster.refusal(&sample(), change).await;
            assert!(refusal.contains(told), "{refusal}");
        };
        let typo = json!({"spec": {"webAppImag": "app"}});
        check(typo, r#"strict decoding error: unknown field "spec.webAppImag""#).await;
        check(json!({"spec": {"webAppImage": null}}), "spec.webAppImage: Required value").await;
        let image = "must be an image, as registry.acme.com/app/app:v1.4, without spaces";
        check(json!({"spec": {"webAppImage": ""}}), image).await;
        check(json!({"spec": {"webAppImage": "my app"}}), image).await;
        let host = "must be the name of a host in lower case, as app.acme.com";
        check(json!({"spec": {"webAppHostname": "App.acme.com"}}), host).await;
        let tier = r#"supported values: "dev", "stg", "prod""#;
        check(json!({"spec": {"deploymentTier": "test"}}), tier).await;
        // Services could not be named after either.
        for name in ["my.app".to_owned(), "x".repeat(44)] {
            let told = "metadata.name: must have at most 43 lower case letters, digits and -";
            check(json!({"metadata": {"name": name}}), told).await;
        }
    });
}

#[test]
fn replicas_are_two_unless_it_is_said() {
    on_site(async |site| {
        let mut other = sample();
        other["metadata"]["name"] = json!("other");
        other["spec"].as_object_mut().expect("fields").remove("webAppReplicas");
        site.cluster.apply(&other).await;
        let deployment = site.comes::<Deployment>("other").await;
        assert_eq!(replicas(&deployment), Some(2));
    });
}

/// The database has the password that it began with.
#[test]
fn credentials_are_made_once() {
    on_site(async |site| {
        site.told("DatabaseStarting").await;
        let before = site.comes::<Secret>(DATABASE).await;
        site.try_edit(json!({"webAppHostname": "shop.acme.com"})).await.expect("edited");
        let is_moved = |it: Option<&Ingress>| {
            let rules = it.and_then(|it| it.spec.as_ref()?.rules.as_deref());
            rules.is_some_and(|rules| rules[0].host.as_deref() == Some("shop.acme.com"))
        };
        site.eventually(APP, is_moved).await;
        site.running.take().expect("it runs").stop().await;
        site.running = Some(site.cluster.run(operator()).await);
        site.told("DatabaseStarting").await;
        assert_eq!(site.comes::<Secret>(DATABASE).await.data, before.data);
    });
}

#[test]
fn a_child_that_is_tampered_with_comes_back() {
    on_site(async |site| {
        site.told("DatabaseStarting").await;
        let (client, delete) = (site.cluster.client(), DeleteParams::default());
        let services: Api<Service> = Api::default_namespaced(client.clone());
        let before = site.comes::<Service>(APP).await.uid();
        services.delete(APP, &delete).await.expect("deleted");
        let is_new = |it: Option<&Service>| it.is_some_and(|it| it.uid() != before);
        site.eventually(APP, is_new).await;

        let deployments: Api<Deployment> = Api::default_namespaced(client);
        let patch = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "app", "image": "evil"},
        ]}}}});
        let params = PatchParams::default();
        deployments.patch(APP, &params, &Patch::Strategic(patch)).await.expect("changed");
        let is_whole =
            |it: Option<&Deployment>| it.and_then(image) == Some("registry.acme.com/app/app:v1.4");
        site.eventually(APP, is_whole).await;
    });
}

#[test]
fn a_crash_half_way_is_repaired() {
    on_cluster(async |cluster| {
        cluster.faults().answer(500, 3, |request| {
            request.method == "PATCH" && request.uri.path().contains("/ingresses/")
        });
        let running = cluster.run(operator()).await;
        cluster.apply(&sample()).await;
        let mut site = Site { cluster, running: None };
        site.comes::<Deployment>(APP).await;
        drop(running);
        site.running = Some(cluster.run(operator()).await);
        site.comes::<Ingress>(APP).await;
        let secrets: Api<Secret> = Api::default_namespaced(cluster.client());
        let secret = secrets.get(DATABASE).await.expect("a Secret");
        assert_eq!(secret.data.expect("data")["password"].0.len(), 32);
        site.running.take().expect("it runs").stop().await;
    });
}

/// Its pods are there, and the database is not.
#[test]
fn an_application_whose_database_is_gone_says_so_until_it_is_back() {
    on_site(async |site| {
        let pods = site.cluster.run_pods();
        site.told("Available").await;
        pods.stop().await;
        let databases: Api<StatefulSet> = Api::default_namespaced(site.cluster.client());
        databases.delete(DATABASE, &DeleteParams::default()).await.expect("deleted");
        let app = site.told("DatabaseStarting").await;
        assert!(app.status.as_ref().is_some_and(|status| !status.database_ready));
        let pods = site.cluster.run_pods();
        site.told("Available").await;
        pods.stop().await;
    });
}

#[test]
fn it_takes_all_of_it_along() {
    on_site(async |site| {
        site.told("DatabaseStarting").await;
        site.apps().delete(APP, &DeleteParams::default()).await.expect("deleted");
        site.eventually::<Deployment>(APP, |it| it.is_none()).await;
        site.eventually::<StatefulSet>(DATABASE, |it| it.is_none()).await;
        site.eventually::<Secret>(DATABASE, |it| it.is_none()).await;
        site.eventually::<ConfigMap>("webapp-sample-config", |it| it.is_none()).await;
        site.eventually::<Service>(APP, |it| it.is_none()).await;
        site.eventually::<Ingress>(APP, |it| it.is_none()).await;
    });
}

/// `kube` has a type of its own for scales, without a selector.
trait ScaleOf {
    async fn get_scale_as(&self, name: &str) -> Scale;
}

impl ScaleOf for Api<WebApp> {
    async fn get_scale_as(&self, name: &str) -> Scale {
        let scale = self.get_scale(name).await.expect("a scale");
        serde_json::from_value(json!(scale)).expect("a scale")
    }
}

#[test]
fn its_samples_are_those_of_its_folder() {
    let manifests = operator().package().render().expect("manifests");
    let samples = manifests.iter().filter(|it| it.part == kubewright::manifest::Part::Samples);
    let names: Vec<&str> = samples.map(|it| it.name()).collect();
    assert_eq!(names, [APP]);
}
