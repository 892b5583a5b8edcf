//! The operator on a cluster, ours in virtual time, or one that is there already.

#![expect(clippy::disallowed_names, reason = "its authors call it so")]

use std::sync::Arc;

use foo::{Foo, FooSpec};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kubewright_testing::{Cluster, Running, on_cluster, yaml};
use serde_json::{Value, json};

struct Site<'c> {
    cluster: &'c Cluster,
    running: Running,
}

/// Runs a test on a cluster with the operator at work, and the sample.
fn on_site(test: impl AsyncFnOnce(&mut Site<'_>)) {
    on_cluster(async |cluster| {
        let running = cluster.run(foo::operator()).await;
        let mut site = Site { cluster, running };
        site.cluster.apply(&yaml(include_str!("../../samples/example-foo.yaml"))[0]).await;
        test(&mut site).await;
        site.running.stop().await;
    });
}

impl Site<'_> {
    fn foos(&self) -> Api<Foo> {
        Api::default_namespaced(self.cluster.client())
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::default_namespaced(self.cluster.client())
    }

    async fn edit(&self, foo: &str, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.foos().patch(foo, &PatchParams::default(), &patch).await.expect("edited");
    }

    async fn deployment(
        &self,
        name: &str,
        is_so: impl Fn(Option<&Deployment>) -> bool,
    ) -> Option<Arc<Deployment>> {
        self.cluster.eventually(Some(self.cluster.namespace()), name, is_so).await
    }

    async fn has_replicas(&self, name: &str, count: i32) -> Arc<Deployment> {
        let is_so = |it: Option<&Deployment>| it.is_some_and(|it| replicas(it) == Some(count));
        self.deployment(name, is_so).await.expect("a Deployment")
    }

    /// Waits until something was told of a Foo.
    async fn told(&self, foo: &str, reason: &str, note: &str) {
        let events: Api<Event> = Api::default_namespaced(self.cluster.client());
        let listed = events.list(&ListParams::default()).await.expect("events");
        let is_it = |it: &Event| {
            it.regarding.as_ref().is_some_and(|about| about.name.as_deref() == Some(foo))
                && it.reason.as_deref() == Some(reason)
        };
        let known = listed.items.into_iter().find(is_it);
        let event = known.unwrap_or_else(|| panic!("no {reason} of {foo}"));
        assert_eq!(event.note.as_deref(), Some(note));
    }
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

#[test]
fn the_sample_makes_a_deployment_and_follows_it() {
    on_site(async |site| {
        let made = site.has_replicas("example-foo", 1).await;
        let foo = site.foos().get("example-foo").await.expect("a Foo");
        assert_eq!(made.owner_references()[0].uid, foo.uid().expect("a uid"));
        let labels = json!({"app": "nginx", "controller": "example-foo"});
        assert_eq!(json!(made.spec.as_ref().expect("a spec").selector.match_labels), labels);

        let pods = site.cluster.run_pods();
        let is_available = |foo: Option<&Foo>| {
            foo.and_then(|foo| foo.status.as_ref()).is_some_and(|it| it.available_replicas == 1)
        };
        let namespace = Some(site.cluster.namespace());
        site.cluster.eventually(namespace, "example-foo", is_available).await;
        pods.stop().await;
    });
}

#[test]
fn replicas_are_the_foos_to_say() {
    on_site(async |site| {
        site.has_replicas("example-foo", 1).await;
        site.edit("example-foo", json!({"replicas": 2})).await;
        site.has_replicas("example-foo", 2).await;
        let patch = Patch::Merge(json!({"spec": {"replicas": 7}}));
        let params = PatchParams::default();
        site.deployments().patch("example-foo", &params, &patch).await.expect("scaled");
        site.has_replicas("example-foo", 2).await;
    });
}

#[test]
fn another_name_moves_the_deployment() {
    on_site(async |site| {
        site.has_replicas("example-foo", 1).await;
        site.edit("example-foo", json!({"deploymentName": "other"})).await;
        site.has_replicas("other", 1).await;
        site.deployment("example-foo", |it| it.is_none()).await;
    });
}

#[test]
fn a_deployment_that_is_deleted_is_made_again_and_goes_with_its_foo() {
    on_site(async |site| {
        let before = site.has_replicas("example-foo", 1).await.uid();
        let delete = DeleteParams::default();
        site.deployments().delete("example-foo", &delete).await.expect("deleted");
        let is_new = |it: Option<&Deployment>| it.is_some_and(|it| it.uid() != before);
        site.deployment("example-foo", is_new).await;
        site.foos().delete("example-foo", &delete).await.expect("deleted");
        site.deployment("example-foo", |it| it.is_none()).await;
    });
}

#[test]
fn a_deployment_of_somebody_else_is_left_alone() {
    on_site(async |site| {
        let spec = FooSpec { deployment_name: Some("theirs".to_owned()), replicas: Some(3) };
        let mine = Foo::new("mine", spec);
        let mut theirs = foo::deployment(&mine, "theirs");
        theirs.spec.as_mut().expect("a spec").replicas = Some(5);
        site.deployments().create(&PostParams::default(), &theirs).await.expect("created");
        site.foos().create(&PostParams::default(), &mine).await.expect("created");
        site.has_replicas("example-foo", 1).await;
        site.cluster.pass(std::time::Duration::from_secs(5)).await;
        let found = site.deployments().get("theirs").await.expect("a Deployment");
        assert_eq!((replicas(&found), found.owner_references().len()), (Some(5), 0));
        site.deployments().delete("theirs", &DeleteParams::default()).await.expect("deleted");
        site.has_replicas("theirs", 3).await;
        let note = r#"Resource "theirs" already exists and is not managed by Foo"#;
        site.told("mine", "ErrResourceExists", note).await;
    });
}

#[test]
fn what_cannot_be_is_refused() {
    on_site(async |site| {
        let sample = yaml(foo::SAMPLE).remove(0);
        let check = async |change: Value, told: &str| {
            let refusal = site.cluster.refusal(&sample, change).await;
            assert!(refusal.contains(told), "{refusal}");
        };
        let many = json!({"spec": {"replicas": 11}});
        check(many, "spec.replicas in body should be less than or equal to 10").await;
        let typo = json!({"spec": {"replica": 2}});
        check(typo, r#"strict decoding error: unknown field "spec.replica""#).await;
        let name = "must be the name of a Deployment, as example-foo";
        check(json!({"spec": {"deploymentName": "Example Foo"}}), name).await;
        let long = json!({"metadata": {"name": "x".repeat(64)}});
        check(long, "metadata.name: must have at most 63 characters").await;
    });
}

#[test]
fn a_crash_before_the_deployment_is_made_good_by_the_next_one() {
    on_cluster(async |cluster| {
        cluster.faults().answer(500, 3, |request| {
            request.method == "PATCH" && request.uri.path().contains("/deployments/")
        });
        let killed = cluster.run(foo::operator()).await;
        cluster.apply(&yaml(foo::SAMPLE)[0]).await;
        // Killed, not stopped, whether or not it has tried yet.
        drop(killed);
        let site = Site { cluster, running: cluster.run(foo::operator()).await };
        site.has_replicas("example-foo", 1).await;
        site.running.stop().await;
    });
}

#[test]
fn a_cluster_that_takes_no_deployments_is_asked_again() {
    on_site(async |site| {
        site.has_replicas("example-foo", 1).await;
        site.cluster.faults().answer(500, 4, |request| {
            request.method == "PATCH" && request.uri.path().contains("/deployments/")
        });
        site.edit("example-foo", json!({"replicas": 3})).await;
        site.has_replicas("example-foo", 3).await;
    });
}

#[test]
fn its_samples_are_those_of_its_folder() {
    let manifests = foo::operator().package().render().expect("manifests");
    let samples = manifests.iter().filter(|it| it.part == kubewright::manifest::Part::Samples);
    let names: Vec<&str> = samples.map(|it| it.name()).collect();
    assert_eq!(names, ["example-foo"]);
}
