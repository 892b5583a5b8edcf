//! Pods and what is done to them, with a node that only says that it runs them.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenReview};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::Client;
use kube::api::entry::Entry;
use kube::api::{Api, DeleteParams, EvictParams, Patch, PatchParams, PostParams, ResourceExt as _};
use kube::runtime::wait::delete::delete_and_finalize;
use kube::runtime::wait::{Condition as _, await_condition, conditions};
use serde_json::{Value, json};

use super::{node, refusal, run, typed};

/// Runs a program beside a node.
fn run_with_node<F: Future<Output = ()>>(program: impl FnOnce(Client) -> F) {
    run(|client| async move {
        tokio::select! {
            () = node::play(client.clone()) => panic!("a node does not end"),
            () = program(client) => (),
        }
    });
}

fn pod(name: &str) -> Pod {
    let resources = json!({
        "requests": {"cpu": "100m", "memory": "64Mi"},
        "limits": {"cpu": "200m", "memory": "128Mi"},
    });
    typed(json!({
        "metadata": {"name": name, "labels": {"app": "rust"}},
        "spec": {"containers": [{"name": "c", "image": "busybox", "resources": resources}]},
    }))
}

#[test]
fn a_pod_runs_and_goes() {
    run_with_node(|client| async move {
        let pods: Api<Pod> = Api::default_namespaced(client);
        let post = PostParams::default();
        pods.create(&post, &pod("one")).await.expect("created");
        assert_eq!(refusal(pods.create(&post, &pod("one")).await).0, 409);
        let ready = |pod: Option<&Pod>| {
            let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
            let ready = |conditions: &Vec<_>| {
                conditions.iter().any(|condition: &k8s_openapi::api::core::v1::PodCondition| {
                    condition.type_ == "Ready" && condition.status == "True"
                })
            };
            conditions.is_some_and(ready)
        };
        let running = conditions::is_pod_running().and(ready);
        await_condition(pods.clone(), "one", running).await.expect("it runs");
        let patch = Patch::Merge(json!({"spec": {"activeDeadlineSeconds": 5}}));
        let patched = pods.patch("one", &PatchParams::default(), &patch).await.expect("patched");
        assert_eq!(patched.spec.expect("a spec").active_deadline_seconds, Some(5));
        let patch = Patch::Merge(json!({"spec": {"restartPolicy": "Never"}}));
        assert_eq!(refusal(pods.patch("one", &PatchParams::default(), &patch).await).0, 422);
        delete_and_finalize(pods.clone(), "one", &DeleteParams::default()).await.expect("gone");

        pods.create(&post, &pod("two")).await.expect("created");
        await_condition(pods.clone(), "two", conditions::is_pod_running()).await.expect("it runs");
        let evicted = pods.evict("two", &EvictParams::default()).await.expect("evicted");
        assert!(evicted.is_success());
        let gone = |pod: Option<&Pod>| pod.is_none();
        await_condition(pods, "two", gone).await.expect("it goes");
    });
}

#[test]
fn a_running_pod_is_resized_and_debugged() {
    run_with_node(|client| async move {
        let pods: Api<Pod> = Api::default_namespaced(client);
        let params = PatchParams::default();
        pods.create(&PostParams::default(), &pod("one")).await.expect("created");
        await_condition(pods.clone(), "one", conditions::is_pod_running()).await.expect("it runs");
        let more = Patch::Strategic(json!({"spec": {"containers": [{
            "name": "c",
            "resources": {"requests": {"cpu": "150m"}, "limits": {"memory": "256Mi"}},
        }]}}));
        assert_eq!(refusal(pods.patch("one", &params, &more).await).0, 422);
        let resized = pods.patch_resize("one", &params, &more).await.expect("resized");
        let resources = |pod: &Pod| pod.spec.as_ref()?.containers[0].resources.clone();
        let shown = serde_json::to_value(resources(&resized)).expect("JSON");
        let expected = json!({
            "limits": {"cpu": "200m", "memory": "256Mi"},
            "requests": {"cpu": "150m", "memory": "64Mi"},
        });
        assert_eq!(shown, expected);
        let read = pods.get_resize("one").await.expect("read");
        assert_eq!(resources(&read), resources(&resized));

        let debugger = Patch::Strategic(json!({"spec": {"ephemeralContainers": [
            {"name": "debugger", "image": "busybox", "targetContainerName": "c"},
        ]}}));
        pods.patch_ephemeral_containers("one", &params, &debugger).await.expect("added");
        let mut read = pods.get_ephemeral_containers("one").await.expect("read");
        let containers = &mut read.spec.as_mut().expect("a spec").ephemeral_containers;
        assert_eq!(containers.take().expect("containers").len(), 1);
        let taken = pods.replace_ephemeral_containers("one", &PostParams::default(), &read).await;
        let (code, message) = refusal(taken);
        assert_eq!(code, 422);
        assert!(message.contains("existing ephemeral containers"), "{message}");
    });
}

#[test]
fn a_job_that_is_done_is_waited_for() {
    run(|client| async move {
        let jobs: Api<Job> = Api::default_namespaced(client);
        let job = typed(json!({
            "metadata": {"name": "job"},
            "spec": {"template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "busybox"}],
            }}},
        }));
        jobs.create(&PostParams::default(), &job).await.expect("created");
        let done = await_condition(jobs.clone(), "job", conditions::is_job_completed());
        let finish = async {
            let time = "2026-01-01T00:00:00Z";
            let condition = |kind| {
                json!({
                    "type": kind, "status": "True", "lastProbeTime": time, "lastTransitionTime": time,
                })
            };
            let conditions = ["SuccessCriteriaMet", "Complete"].map(condition);
            let status = Patch::Merge(json!({"status": {
                "startTime": time,
                "completionTime": time,
                "succeeded": 1,
                "conditions": conditions,
            }}));
            jobs.patch_status("job", &PatchParams::default(), &status).await.expect("patched");
        };
        let (done, ()) = futures::join!(done, finish);
        assert_eq!(
            done.expect("done").expect("it is there").spec.expect("a spec").completions,
            Some(1)
        );
        // Its pods are not orphaned, so nothing waits for a finalizer.
        let deleted = jobs.delete("job", &DeleteParams::background()).await.expect("deleted");
        assert!(deleted.is_right());
    });
}

#[test]
fn an_entry_is_read_changed_and_committed() {
    run(|client| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let post = PostParams::default();
        let entry = maps.entry("one").await.expect("asked");
        assert!(matches!(entry, Entry::Vacant(_)));
        let mut entry = entry.or_insert(ConfigMap::default);
        entry.commit(&post).await.expect("created");
        let mut stale = maps.entry("one").await.expect("asked").or_insert(ConfigMap::default);
        entry.get_mut().data = Some([("k".to_owned(), "v".to_owned())].into());
        entry.commit(&post).await.expect("replaced");
        let version = entry.get().resource_version();
        entry.commit(&post).await.expect("nothing to do");
        assert_eq!(entry.get().resource_version(), version);
        stale.get_mut().data = None;
        stale.get_mut().labels_mut().insert("k".to_owned(), "v".to_owned());
        stale.commit(&post).await.expect_err("another was first");
        let fresh = maps.entry("one").await.expect("asked").and_modify(|map| map.data = None);
        let mut fresh = fresh.or_insert(ConfigMap::default);
        fresh.commit(&post).await.expect("replaced");
        assert_eq!(maps.get("one").await.expect("read").data, None);
    });
}

#[test]
fn tokens_certificates_and_restarts_have_calls_of_their_own() {
    run(|client| async move {
        let post = PostParams::default();
        let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
        let account = typed(json!({"metadata": {"name": "robot"}}));
        accounts.create(&post, &account).await.expect("created");
        let wish: TokenRequest = typed(json!({"spec": {"audiences": ["rust"]}}));
        let issued = accounts.create_token_request("robot", &post, &wish).await.expect("issued");
        let token = issued.status.expect("a status").token;
        let reviews: Api<TokenReview> = Api::all(client.clone());
        let review = typed(json!({"spec": {"token": token, "audiences": ["rust"]}}));
        let status = reviews.create(&post, &review).await.expect("reviewed").status;
        let user = status.expect("a status").user.expect("a user");
        assert_eq!(user.username.as_deref(), Some("system:serviceaccount:default:robot"));

        let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
        let request: CertificateSigningRequest = typed(json!({
            "metadata": {"name": "rust"},
            "spec": {
                "request": REQUEST,
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["client auth"],
            },
        }));
        requests.create(&post, &request).await.expect("created");
        let approval: Value = json!({"status": {"conditions": [{
            "type": "Approved",
            "status": "True",
            "reason": "ByRust",
            "message": "as wished",
        }]}});
        let approval = Patch::Merge(approval);
        requests
            .patch_approval("rust", &PatchParams::default(), &approval)
            .await
            .expect("approved");
        let status = requests.get_approval("rust").await.expect("read").status.expect("a status");
        assert_eq!(status.conditions.expect("conditions")[0].type_, "Approved");

        let deployments: Api<Deployment> = Api::default_namespaced(client);
        let web = typed(json!({
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
                },
            },
        }));
        deployments.create(&post, &web).await.expect("created");
        let restarted = deployments.restart("web").await.expect("restarted");
        assert_eq!(restarted.metadata.generation, Some(2));
    });
}

/// A request for a certificate of `CN=rust`, base64 of PEM.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISU1IRUNBUUF3RHpFTk1Bc0dBMVVFQXd3RWNuVnpkREJaTUJNR0J5cUdTTTQ5QWdFR0NDcUdTTTQ5QXdFSApBMElBQkVoNDc1aStWeFNVL3hOakhVWFpQdjB4RlU4TUJLY1F3Wi9DMldUL2VYbWU1WWt5NVkwK1lhWWhVWStnCkxDNkpjR2hlczNBQXFRNDh6ek93Q2dFNnE5Q2dBREFLQmdncWhrak9QUVFEQWdOSEFEQkVBaUFqVGdTVFpzOXYKbDFmcVVNRGdzaTRrV1V3NW9ZRTlQVjhmOW02NjdSQ3cwUUlnTDNhajZJNmREZjNGQkF6c0Q2aEF1bnNqbEpMWQpjbnA0SG45cGlBT2xXa1U9Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";
