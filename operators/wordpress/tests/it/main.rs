//! The operator on a cluster, ours in virtual time, or one that is there already. No pod runs: the
//! tests stand in for nodes.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret, Service};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kubewright::condition::{Conditions as _, READY};
use kubewright::informer::Object;
use kubewright_testing::{Cluster, Log, Running, on_cluster, yaml};
use serde_json::{Value, json};
use wordpress::{Wordpress, WordpressSpec, operator};

struct Site<'c> {
    cluster: &'c Cluster,
    running: Option<Running>,
}

const NAME: &str = "example-wordpress";
const SECRET: &str = "example-wordpress-mysql";

/// Runs a test on a cluster with the operator at work, and the sample.
fn on_site(test: impl AsyncFnOnce(&mut Site<'_>)) {
    on_cluster(async |cluster| {
        let running = Some(cluster.run(operator()).await);
        let mut site = Site { cluster, running };
        for object in sample() {
            cluster.apply(&object).await;
        }
        test(&mut site).await;
        if let Some(running) = site.running {
            running.stop().await;
        }
    });
}

fn sample() -> Vec<Value> {
    yaml(include_str!("../../samples/example-wordpress.yaml"))
}

impl Site<'_> {
    fn sites(&self) -> Api<Wordpress> {
        Api::default_namespaced(self.cluster.client())
    }

    async fn eventually<K>(&self, name: &str, is_so: impl Fn(Option<&K>) -> bool) -> Option<Arc<K>>
    where
        K: Object<DynamicType = ()> + Debug,
    {
        self.cluster.eventually(Some(self.cluster.namespace()), name, is_so).await
    }

    async fn comes<K: Object<DynamicType = ()> + Debug>(&self, name: &str) -> Arc<K> {
        self.eventually::<K>(name, |object| object.is_some()).await.expect("it is there")
    }

    async fn goes<K: Object<DynamicType = ()> + Debug>(&self, name: &str) {
        self.eventually::<K>(name, |object| object.is_none()).await;
    }

    /// Waits until this is said of a site as it is described now.
    async fn told(&self, name: &str, reason: &str) -> Arc<Wordpress> {
        let is_told = |site: Option<&Wordpress>| {
            let Some(site) = site else { return false };
            let ready = site.status.as_ref().and_then(|status| status.conditions.find(READY));
            ready.is_some_and(|ready| {
                ready.reason == reason && ready.observed_generation == site.metadata.generation
            })
        };
        self.eventually(name, is_told).await.expect("it is there")
    }

    async fn create(&self, name: &str, password: &str) {
        let sqlrootpassword = Some(password.to_owned());
        let spec = WordpressSpec { sqlrootpassword, ..WordpressSpec::default() };
        let site = Wordpress::new(name, spec);
        self.sites().create(&PostParams::default(), &site).await.expect("created");
    }
}

fn template(deployment: &Deployment) -> Value {
    json!(deployment.spec.as_ref().expect("a spec").template)
}

#[test]
fn the_front_end_waits_for_the_database() {
    on_site(async |site| {
        site.told(NAME, "DatabaseStarting").await;
        let mysql = site.comes::<Deployment>("wordpress-mysql").await;
        let container = template(&mysql)["spec"]["containers"][0].clone();
        assert_eq!(container["image"], "mysql:5.6");
        assert_eq!(container["env"][0]["valueFrom"]["secretKeyRef"]["name"], SECRET);
        let claim = site.comes::<PersistentVolumeClaim>("mysql-pv-claim").await;
        let spec = claim.spec.as_ref().expect("a spec");
        assert_eq!(spec.storage_class_name.as_deref(), Some("standard"));
        let service = site.comes::<Service>("wordpress-mysql").await;
        let cluster_ip = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref());
        assert_eq!(cluster_ip, Some("None"));
        let deployments: Api<Deployment> = Api::default_namespaced(site.cluster.client());
        assert!(deployments.get_opt("wordpress").await.expect("an answer").is_none());

        let pods = site.cluster.run_pods();
        let open = site.told(NAME, "Open").await;
        let service = open.status.as_ref().and_then(|status| status.service.as_deref());
        assert_eq!(service, Some("wordpress"));
        let service = site.comes::<Service>("wordpress").await;
        let kind = service.spec.as_ref().and_then(|spec| spec.type_.as_deref());
        assert_eq!(kind, Some("NodePort"));
        site.comes::<PersistentVolumeClaim>("wp-pv-claim").await;
        pods.stop().await;
    });
}

#[test]
fn two_sites_live_in_one_namespace() {
    on_site(async |site| {
        let pods = site.cluster.run_pods();
        site.told(NAME, "Open").await;
        site.create("second", "hush").await;
        let second = site.told("second", "Open").await;
        let service = second.status.as_ref().and_then(|status| status.service.as_deref());
        assert_eq!(service, Some("second-wordpress"));
        let mysql = site.comes::<Deployment>("second-wordpress-mysql").await;
        assert_eq!(template(&mysql)["metadata"]["labels"]["app"], "second");
        let front = site.comes::<Deployment>("second-wordpress").await;
        let env = template(&front)["spec"]["containers"][0]["env"].clone();
        let host = json!({"name": "WORDPRESS_DB_HOST", "value": "second-wordpress-mysql"});
        assert_eq!(env[0], host);

        // The other one keeps its names when the first goes, and all that is its own.
        site.sites().delete(NAME, &DeleteParams::default()).await.expect("deleted");
        site.goes::<Deployment>("wordpress-mysql").await;
        site.goes::<Deployment>("wordpress").await;
        site.goes::<Service>("wordpress").await;
        site.goes::<Service>("wordpress-mysql").await;
        let ends = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_none_or(|claim| claim.metadata.deletion_timestamp.is_some())
        };
        site.eventually("mysql-pv-claim", ends).await;
        site.eventually("wp-pv-claim", ends).await;
        let patch = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
        site.sites().patch("second", &PatchParams::default(), &patch).await.expect("labelled");
        let second = site.told("second", "Open").await;
        let service = second.status.as_ref().and_then(|status| status.service.as_deref());
        assert_eq!(service, Some("second-wordpress"));
        pods.stop().await;
    });
}

#[test]
fn a_new_password_makes_new_pods() {
    on_site(async |site| {
        let pods = site.cluster.run_pods();
        site.told(NAME, "Open").await;
        let checksum = |it: &Deployment| template(it)["metadata"]["annotations"].clone();
        let mysql = checksum(&*site.comes("wordpress-mysql").await);
        let front = checksum(&*site.comes("wordpress").await);
        assert_eq!(mysql, front);
        let secrets: Api<Secret> = Api::default_namespaced(site.cluster.client());
        let patch = Patch::Merge(json!({"stringData": {"password": "rotated"}}));
        secrets.patch(SECRET, &PatchParams::default(), &patch).await.expect("changed");
        for name in ["wordpress-mysql", "wordpress"] {
            let is_new = |it: Option<&Deployment>| it.is_some_and(|it| checksum(it) != mysql);
            site.eventually(name, is_new).await;
        }
        pods.stop().await;
    });
}

#[test]
fn a_secret_that_is_missing_is_waited_for() {
    on_site(async |site| {
        site.told(NAME, "DatabaseStarting").await;
        let spec = json!({"sqlRootPasswordSecretRef": {"name": "later", "key": "root"}});
        let patch = Patch::Merge(json!({"spec": spec}));
        site.sites().patch(NAME, &PatchParams::default(), &patch).await.expect("edited");
        let told = site.told(NAME, "NoPassword").await;
        let ready = told.status.as_ref().and_then(|status| status.conditions.find(READY));
        let message = "spec.sqlRootPasswordSecretRef.name: there is no Secret \"later\"";
        assert_eq!(ready.map(|ready| ready.message.as_str()), Some(message));
        let secret = |data: Value| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "later"},
                "stringData": data,
            })
        };
        site.cluster.apply(&secret(json!({"toor": "hush"}))).await;
        let is_told = |site: Option<&Wordpress>| {
            let status = site.and_then(|site| site.status.as_ref());
            let ready = status.and_then(|status| status.conditions.find(READY));
            ready.is_some_and(|ready| ready.message.ends_with("has no key \"root\""))
        };
        site.eventually(NAME, is_told).await;
        site.cluster.apply(&secret(json!({"root": "hush"}))).await;
        site.told(NAME, "DatabaseStarting").await;
    });
}

#[test]
fn a_child_that_is_tampered_with_comes_back_also_after_a_crash() {
    on_site(async |site| {
        let pods = site.cluster.run_pods();
        site.told(NAME, "Open").await;
        // Killed, not stopped.
        site.running = None;
        let services: Api<Service> = Api::default_namespaced(site.cluster.client());
        services.delete("wordpress", &DeleteParams::default()).await.expect("deleted");
        let deployments: Api<Deployment> = Api::default_namespaced(site.cluster.client());
        let patch = Patch::Merge(json!({"spec": {"replicas": 0}}));
        let params = PatchParams::default();
        deployments.patch("wordpress", &params, &patch).await.expect("changed");
        site.running = Some(site.cluster.run(operator()).await);
        site.comes::<Service>("wordpress").await;
        let is_back = |it: Option<&Deployment>| {
            it.and_then(|it| it.spec.as_ref()?.replicas).is_some_and(|count| count == 1)
        };
        site.eventually("wordpress", is_back).await;
        pods.stop().await;
    });
}

#[test]
fn a_crash_between_the_database_and_the_front_end_is_repaired() {
    on_site(async |site| {
        site.told(NAME, "DatabaseStarting").await;
        // Killed, not stopped: nobody sees the database become available.
        site.running = None;
        let pods = site.cluster.run_pods();
        let is_available = |it: Option<&Deployment>| {
            it.and_then(|it| it.status.as_ref()?.available_replicas).is_some_and(|count| count == 1)
        };
        site.eventually("wordpress-mysql", is_available).await;
        let deployments: Api<Deployment> = Api::default_namespaced(site.cluster.client());
        assert!(deployments.get_opt("wordpress").await.expect("an answer").is_none());
        site.running = Some(site.cluster.run(operator()).await);
        site.told(NAME, "Open").await;
        pods.stop().await;
    });
}

#[test]
fn one_of_the_passwords_is_required() {
    on_site(async |site| {
        let none = Wordpress::new("none", WordpressSpec::default());
        let refused = site.sites().create(&PostParams::default(), &none).await;
        let refused = refused.expect_err("it is refused").to_string();
        let told = "say where the password of the database is: sqlRootPasswordSecretRef";
        assert!(refused.contains(told), "{refused}");
        site.create("plain", "hush").await;
        let mysql = site.comes::<Deployment>("plain-wordpress-mysql").await;
        let env = template(&mysql)["spec"]["containers"][0]["env"].clone();
        assert_eq!(env, json!([{"name": "MYSQL_ROOT_PASSWORD", "value": "hush"}]));
        assert_eq!(mysql.labels()["app"], "plain");
    });
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    on_site(async |site| {
        let sample = sample().remove(1);
        let check = async |change: Value, told: &str| {
            let refusal = site.cluster.refusal(&sample, change).await;
            assert!(refusal.contains(told), "{refusal}");
        };
        let typo = json!({"spec": {"sqlRootPassword": "hush"}});
        check(typo, r#"strict decoding error: unknown field "spec.sqlRootPassword""#).await;
        let empty = json!({"spec": {"sqlrootpassword": ""}});
        check(empty, "spec.sqlrootpassword in body should be at least 1 chars long").await;
        let nameless = json!({"spec": {"sqlRootPasswordSecretRef": {"name": null}}});
        check(nameless, "spec.sqlRootPasswordSecretRef.name: Required value").await;
        // Services could not be named after either.
        for name in ["my.site".to_owned(), "x".repeat(48)] {
            let told = "metadata.name: must have at most 47 lower case letters, digits and -";
            check(json!({"metadata": {"name": name}}), told).await;
        }
    });
}

#[test]
fn a_cluster_that_takes_no_claims_is_asked_again() {
    on_cluster(async |cluster| {
        cluster.faults().answer(500, 4, |request| {
            request.method == "PATCH" && request.uri.path().contains("/persistentvolumeclaims/")
        });
        let mut site = Site { cluster, running: Some(cluster.run(operator()).await) };
        for object in sample() {
            cluster.apply(&object).await;
        }
        site.told(NAME, "Incomplete").await;
        site.told(NAME, "DatabaseStarting").await;
        site.comes::<PersistentVolumeClaim>("mysql-pv-claim").await;
        site.running.take().expect("it runs").stop().await;
    });
}

#[test]
fn each_part_is_logged_in_the_words_of_the_original() {
    on_cluster(async |cluster| {
        let log = Log::of("wordpress");
        let mut site = Site { cluster, running: Some(cluster.run(operator()).await) };
        let pods = cluster.run_pods();
        for object in sample() {
            cluster.apply(&object).await;
        }
        site.told(NAME, "Open").await;
        log.has_in_order(&[
            "Reconciling Wordpress",
            "Creating a new PVC name=mysql-pv-claim",
            "Creating a new Service name=wordpress-mysql",
            "Creating a new Deployment name=wordpress-mysql",
            "Creating a new PVC name=wp-pv-claim",
            "Creating a new Service name=wordpress",
            "Creating a new Deployment name=wordpress",
        ]);
        pods.stop().await;
        site.running.take().expect("it runs").stop().await;
    });
}

mod warnings {
    //! What kubectl shows as `Warning:`.

    use kube::client::Body;
    use kubewright_testing::Cluster;
    use serde_json::json;
    use wordpress::operator;

    #[tokio::test]
    async fn a_password_for_everybody_to_read_is_warned_of() {
        let cluster = Cluster::from_env().await;
        let running = cluster.run(operator()).await;
        let webhooks = cluster.call_webhooks(operator()).await;
        let warnings = async |name: &str, spec: serde_json::Value| {
            let object = json!({
                "apiVersion": "example.com/v1", "kind": "Wordpress",
                "metadata": {"name": name}, "spec": spec,
            });
            let namespace = cluster.namespace();
            let request = kube::core::Request::new(format!(
                "/apis/example.com/v1/namespaces/{namespace}/wordpresses"
            ));
            let body = object.to_string().into_bytes();
            let request = request.create(&kube::api::PostParams::default(), body).expect("one");
            let answer = cluster.client().send(request.map(Body::from)).await.expect("an answer");
            assert!(answer.status().is_success(), "{}", answer.status());
            let told = answer.headers().get_all("warning").iter();
            told.filter_map(|it| it.to_str().ok()).map(str::to_owned).collect::<Vec<_>>()
        };
        let plain = json!({"sqlrootpassword": "hush"});
        let told = warnings("plain", plain).await.concat();
        assert!(
            told.contains("everybody who can read this object can read the password"),
            "{told}"
        );
        let reference = json!({"sqlRootPasswordSecretRef": {"name": "keys"}});
        assert_eq!(warnings("reference", reference).await, [""; 0]);
        webhooks.stop().await;
        running.stop().await;
        cluster.shutdown().await;
    }
}

#[test]
fn its_samples_are_those_of_its_folder() {
    let manifests = operator().package().render().expect("manifests");
    let samples = manifests.iter().filter(|it| it.part == kubewright::manifest::Part::Samples);
    let names: Vec<&str> = samples.map(|it| it.name()).collect();
    assert_eq!(names, [SECRET, NAME]);
}
