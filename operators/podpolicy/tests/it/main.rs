//! The webhooks on a cluster, ours or one that is there already, which calls them over TLS.

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kubewright_testing::{Cluster, Running, yaml};
use podpolicy::{ENFORCE, INJECT, Policy, SIDECAR, operator};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

struct Site {
    cluster: Cluster,
    webhooks: Option<Running>,
    _turn: Option<MutexGuard<'static, ()>>,
}

/// A cluster calls webhooks in one place, and tests may share a cluster.
static TURN: Mutex<()> = Mutex::const_new(());

impl Site {
    /// A cluster that calls the webhooks for the test's namespace, which is labelled so.
    async fn start(labels: &[&str]) -> Self {
        let cluster = Cluster::from_env().await;
        let turn = if cluster.is_virtual() { None } else { Some(TURN.lock().await) };
        let webhooks = Some(cluster.call_webhooks(operator(&policy())).await);
        let site = Site { cluster, webhooks, _turn: turn };
        for label in labels {
            site.label(label, Some("enabled")).await;
        }
        site
    }

    async fn label(&self, label: &str, value: Option<&str>) {
        let namespaces: Api<Namespace> = Api::all(self.cluster.client());
        let patch = Patch::Merge(json!({"metadata": {"labels": {label: value}}}));
        let namespace = self.cluster.namespace();
        namespaces.patch(namespace, &PatchParams::default(), &patch).await.expect("labelled");
        tokio::time::sleep(self.cluster.lag()).await;
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.cluster.client())
    }

    async fn create(&self, name: &str, spec: Value) -> Result<Pod, String> {
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let pod = serde_json::from_value(pod).expect("a pod");
        let created = self.pods().create(&PostParams::default(), &pod).await;
        created.map_err(|error| error.to_string())
    }

    async fn end(self) {
        if let Some(webhooks) = self.webhooks {
            webhooks.stop().await;
        }
        self.cluster.shutdown().await;
    }
}

fn policy() -> Policy {
    Policy {
        sidecar_image: "registry.acme.com/agent:1".to_owned(),
        allowed: vec!["registry.acme.com".to_owned()],
    }
}

fn app(image: &str) -> Value {
    json!({"containers": [{"name": "app", "image": image}]})
}

fn containers(pod: &Pod) -> Vec<&str> {
    let spec = pod.spec.as_ref().expect("a spec");
    spec.containers.iter().map(|container| container.name.as_str()).collect()
}

#[tokio::test]
async fn pods_of_labelled_namespaces_get_a_sidecar() {
    let site = Site::start(&[INJECT]).await;
    // Nobody judges here.
    let pod = site.create("one", app("nginx")).await.expect("created");
    assert_eq!(containers(&pod), ["app", SIDECAR]);
    let spec = pod.spec.expect("a spec");
    assert_eq!(spec.containers[1].image.as_deref(), Some("registry.acme.com/agent:1"));
    assert!(spec.volumes.iter().flatten().any(|volume| volume.name == "podpolicy-logs"));

    site.label(INJECT, None).await;
    let pod = site.create("two", app("nginx")).await.expect("created");
    assert_eq!(containers(&pod), ["app"]);
    site.end().await;
}

#[tokio::test]
async fn the_sample_is_taken_and_gets_a_sidecar() {
    let [namespace, pod] = &yaml(include_str!("../../samples/guarded.yaml"))[..] else {
        panic!("it is a namespace and a pod")
    };
    assert_eq!(namespace["metadata"]["labels"], json!({INJECT: "enabled", ENFORCE: "enabled"}));
    let site = Site::start(&[INJECT, ENFORCE]).await;
    let pod = site.create("app", pod["spec"].clone()).await.expect("created");
    assert_eq!(containers(&pod), ["app", SIDECAR]);
    site.end().await;
}

#[tokio::test]
async fn images_that_are_not_allowed_are_refused() {
    let site = Site::start(&[INJECT, ENFORCE]).await;
    let refused = site.create("one", app("nginx")).await.expect_err("it is refused");
    let told = "spec.containers[0].image: Invalid value: \"nginx\": is not allowed: take one from \
                registry.acme.com";
    assert!(refused.contains(told), "{refused}");
    let pod = site.create("one", app("registry.acme.com/app:1")).await.expect("created");
    assert_eq!(containers(&pod), ["app", SIDECAR]);

    // Not later, and not by the back door.
    let patch = json!({"spec": {"containers": [{"name": "app", "image": "nginx"}]}});
    let refused = site.pods().patch("one", &PatchParams::default(), &Patch::Strategic(patch)).await;
    let refused = refused.expect_err("it is refused").to_string();
    assert!(refused.contains(told), "{refused}");
    let debugger =
        json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}});
    let (patch, params) = (Patch::Strategic(debugger), PatchParams::default());
    let pods = site.pods();
    let added = pods.patch_subresource("ephemeralcontainers", "one", &params, &patch).await;
    let refused = added.expect_err("it is refused").to_string();
    assert!(refused.contains("spec.ephemeralContainers[0].image: Invalid value"), "{refused}");
    site.end().await;
}

#[tokio::test]
async fn fields_that_contradict_each_other_are_refused_together() {
    let site = Site::start(&[ENFORCE]).await;
    let spec = json!({
        "securityContext": {"runAsNonRoot": true, "runAsUser": 0},
        "containers": [{
            "name": "app", "image": "registry.acme.com/app", "imagePullPolicy": "IfNotPresent",
            "readinessProbe": {"httpGet": {"port": "web"}},
        }],
    });
    let refused = site.create("one", spec).await.expect_err("it is refused");
    for field in ["imagePullPolicy", "securityContext.runAsUser", "readinessProbe.httpGet.port"] {
        assert!(
            refused.contains(&format!("spec.containers[0].{field}: Invalid value")),
            "{refused}"
        );
    }
    site.end().await;
}

/// A list that lets everything in when nobody looks is none.
#[tokio::test]
async fn while_nobody_judges_nothing_is_let_in_where_it_must_be_judged() {
    let mut site = Site::start(&[ENFORCE]).await;
    // Killed, so that the cluster still calls them.
    site.webhooks = None;
    let refused = site.create("one", app("registry.acme.com/app:1")).await;
    let refused = refused.expect_err("it is refused");
    assert!(refused.contains("failed calling webhook \"validate.pods.v1.core\""), "{refused}");
    site.label(ENFORCE, None).await;
    site.create("one", app("nginx")).await.expect("nobody has to judge here");

    site.webhooks = Some(site.cluster.call_webhooks(operator(&policy())).await);
    site.label(ENFORCE, Some("enabled")).await;
    site.create("two", app("registry.acme.com/app:1")).await.expect("somebody judges again");
    site.end().await;
}

/// A policy that comes later does not take hold of what is there.
#[tokio::test]
async fn a_pod_that_was_there_before_can_be_changed_and_deleted() {
    let site = Site::start(&[]).await;
    site.create("old", app("nginx")).await.expect("created");
    site.label(ENFORCE, Some("enabled")).await;
    site.create("new", app("nginx")).await.expect_err("it is refused");
    let patch = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
    site.pods().patch("old", &PatchParams::default(), &patch).await.expect("labelled");
    site.pods().delete("old", &DeleteParams::default()).await.expect("deleted");
    site.end().await;
}

#[test]
fn its_samples_are_those_of_its_folder() {
    let manifests = operator(&policy()).package().render().expect("manifests");
    let samples = manifests.iter().filter(|it| it.part == kubewright::manifest::Part::Samples);
    let names: Vec<&str> = samples.map(|it| it.name()).collect();
    assert_eq!(names, ["guarded", "app"]);
}
