//! The operator on a cluster, ours in virtual time, or one that is there already. No pod runs:
//! tests end it as a node would.

mod program;
mod raw;
mod told;

use std::sync::Arc;
use std::time::Duration;

use at::{At, AtSpec, Phase};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kubewright::condition::Conditions as _;
use kubewright_testing::{Cluster, Running, on_cluster};
use serde_json::json;

struct Site<'c> {
    cluster: &'c Cluster,
    running: Running,
}

/// Runs a test on a cluster with the operator at work.
fn on_site(test: impl AsyncFnOnce(Site<'_>)) {
    on_cluster(async |cluster| {
        let running = cluster.run(at::operator()).await;
        test(Site { cluster, running }).await;
    });
}

impl Site<'_> {
    async fn eventually<K>(&self, name: &str, is_so: impl Fn(Option<&K>) -> bool) -> Option<Arc<K>>
    where
        K: kubewright::informer::Object<DynamicType = ()> + std::fmt::Debug,
    {
        self.cluster.eventually(Some(self.cluster.namespace()), name, is_so).await
    }

    fn ats(&self) -> Api<At> {
        Api::default_namespaced(self.cluster.client())
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.cluster.client())
    }

    /// Makes an `At` that is due in so many seconds.
    async fn schedule(&self, seconds: i64, command: Option<&str>) -> Timestamp {
        let due = self.cluster.clock().now() + SignedDuration::from_secs(seconds);
        self.create(&due.to_string(), command).await;
        due
    }

    async fn create(&self, schedule: &str, command: Option<&str>) {
        let spec =
            AtSpec { schedule: Some(schedule.to_owned()), command: command.map(str::to_owned) };
        let at = At::new("tea", spec);
        self.ats().create(&PostParams::default(), &at).await.expect("created");
    }

    async fn becomes(&self, phase: Phase) -> At {
        let is_so =
            |at: Option<&At>| at.is_some_and(|at| at.status.is_some() && at.phase() == phase);
        let at = self.eventually("tea", is_so).await;
        At::clone(&at.expect("it is there"))
    }

    /// Waits for the pod to come.
    async fn pod(&self) -> Pod {
        let pod = self.eventually::<Pod>("tea-pod", |pod| pod.is_some()).await;
        Pod::clone(&pod.expect("it is there"))
    }

    /// Ends the pod, as a node would.
    async fn end_pod(&self, phase: &str) {
        let patch = Patch::Merge(json!({"status": {"phase": phase}}));
        let ended = self.pods().patch_status("tea-pod", &PatchParams::default(), &patch).await;
        ended.expect("a status");
    }

    async fn events(&self) -> Vec<String> {
        let events: Api<Event> = Api::default_namespaced(self.cluster.client());
        let events = events.list(&ListParams::default()).await.expect("a list");
        events.into_iter().filter_map(|event| event.reason).collect()
    }

    async fn end(self) {
        self.running.stop().await;
    }
}

#[test]
fn a_command_runs_when_its_time_has_come() {
    on_site(async |site| {
        let due = site.schedule(30, Some("echo YAY")).await;
        site.becomes(Phase::Pending).await;
        site.becomes(Phase::Running).await;
        let late = site.cluster.clock().now().duration_since(due);
        assert!(late >= SignedDuration::ZERO && late < SignedDuration::from_secs(2), "{late} late");

        let pod = site.pod().await;
        let spec = pod.spec.expect("a spec");
        let container = &spec.containers[0];
        assert_eq!(
            (container.name.as_str(), container.image.as_deref()),
            ("busybox", Some("busybox"))
        );
        assert_eq!(container.command, Some(vec!["echo".to_owned(), "YAY".to_owned()]));
        assert_eq!(spec.restart_policy.as_deref(), Some("OnFailure"));
        assert_eq!(pod.metadata.labels.expect("labels")["app"], "tea");
        let owner = &pod.metadata.owner_references.expect("an owner")[0];
        assert_eq!((owner.kind.as_str(), owner.controller), ("At", Some(true)));

        site.end_pod("Succeeded").await;
        let done = site.becomes(Phase::Done).await;
        assert!(done.status.expect("a status").conditions.is_true("Scheduled"));
        site.end().await;
    });
}

#[test]
fn what_is_done_stays_done_and_starts_nothing_again() {
    on_site(async |site| {
        site.schedule(0, Some("echo YAY")).await;
        site.pod().await;
        site.end_pod("Failed").await;
        let done = site.becomes(Phase::Done).await;
        site.pods().delete("tea-pod", &DeleteParams::default()).await.expect("deleted");
        let gone = site.eventually::<Pod>("tea-pod", |pod| pod.is_none());
        gone.await;
        site.cluster.pass(Duration::from_secs(2 * 60 * 60)).await;
        assert!(site.pods().get_opt("tea-pod").await.expect("an answer").is_none());
        let later = site.ats().get("tea").await.expect("it is there");
        assert_eq!(later.metadata.resource_version, done.metadata.resource_version);
        site.end().await;
    });
}

#[test]
fn a_pod_that_is_taken_away_while_it_runs_comes_back() {
    on_site(async |site| {
        site.schedule(0, Some("sleep 1000")).await;
        let first = site.pod().await.metadata.uid;
        site.pods().delete("tea-pod", &DeleteParams::default()).await.expect("deleted");
        let is_another = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.metadata.uid != first);
        site.eventually("tea-pod", is_another).await;
        site.end().await;
    });
}

#[test]
fn a_time_that_is_changed_is_the_one_that_counts() {
    on_site(async |site| {
        site.schedule(7200, Some("echo YAY")).await;
        site.becomes(Phase::Pending).await;
        let soon = site.cluster.clock().now() + SignedDuration::from_secs(5);
        let patch = Patch::Merge(json!({"spec": {"schedule": soon.to_string()}}));
        site.ats().patch("tea", &PatchParams::default(), &patch).await.expect("edited");
        site.becomes(Phase::Running).await;
        assert!(site.cluster.clock().now() < soon + SignedDuration::from_secs(2));
        site.end().await;
    });
}

#[test]
fn without_a_command_nothing_runs_and_people_are_told() {
    on_site(async |site| {
        site.schedule(0, None).await;
        site.becomes(Phase::Done).await;
        site.cluster.pass(Duration::from_secs(1)).await;
        assert_eq!(site.events().await, ["NoCommand"]);
        assert!(site.pods().get_opt("tea-pod").await.expect("an answer").is_none());
        site.end().await;
    });
}

#[test]
fn a_time_that_does_not_parse_is_told_and_waits_for_a_change() {
    on_site(async |site| {
        site.create("at tea time", Some("echo YAY")).await;
        let at = site.becomes(Phase::Pending).await;
        let status = at.status.expect("a status");
        let scheduled = status.conditions.find("Scheduled").expect("a condition");
        assert_eq!(
            scheduled.message,
            "spec.schedule: \"at tea time\" is no time: write it in UTC, as 2019-07-03T02:00:00Z"
        );
        site.cluster.pass(Duration::from_secs(600)).await;
        assert_eq!(site.events().await, ["BadSchedule"]);
        let patch = Patch::Merge(json!({"spec": {"schedule": "2019-07-03T02:00:00Z"}}));
        site.ats().patch("tea", &PatchParams::default(), &patch).await.expect("edited");
        site.becomes(Phase::Running).await;
        site.end().await;
    });
}

#[test]
fn an_operator_that_dies_half_way_goes_on_where_it_was() {
    on_site(async |site| {
        site.schedule(0, Some("echo YAY")).await;
        site.pod().await;
        // Killed, not stopped.
        drop(site.running);
        let site = Site { running: site.cluster.run(at::operator()).await, cluster: site.cluster };
        site.end_pod("Succeeded").await;
        site.becomes(Phase::Done).await;
        site.end().await;
    });
}

#[test]
fn a_cluster_that_takes_no_pods_is_asked_again() {
    on_site(async |site| {
        site.cluster.faults().answer(500, 5, |request| {
            request.method == "PATCH" && request.uri.path().contains("/pods/")
        });
        site.schedule(0, Some("echo YAY")).await;
        // Not before the pod is there: nothing was run.
        site.pod().await;
        assert_eq!(site.becomes(Phase::Running).await.phase(), Phase::Running);
        site.end().await;
    });
}

#[test]
fn an_at_takes_its_pod_with_it() {
    on_site(async |site| {
        site.schedule(0, Some("sleep 1000")).await;
        site.pod().await;
        site.ats().delete("tea", &DeleteParams::default()).await.expect("deleted");
        site.eventually::<Pod>("tea-pod", |pod| pod.is_none()).await;
        site.end().await;
    });
}

#[test]
fn a_phase_of_somebody_else_is_left_alone() {
    on_site(async |site| {
        site.schedule(3600, Some("echo YAY")).await;
        site.becomes(Phase::Pending).await;
        let patch = Patch::Merge(json!({"status": {"phase": "SLEEPING"}}));
        site.ats().patch_status("tea", &PatchParams::default(), &patch).await.expect("a status");
        site.cluster.pass(Duration::from_secs(7200)).await;
        let at = site.ats().get("tea").await.expect("it is there");
        assert_eq!(at.phase(), Phase::Unknown("SLEEPING".to_owned()));
        assert!(site.pods().get_opt("tea-pod").await.expect("an answer").is_none());
        site.end().await;
    });
}

#[test]
fn the_sample_is_taken() {
    on_site(async |site| {
        let mut sample = kubewright_testing::yaml(include_str!("../../samples/at.yaml"));
        sample[0]["metadata"]["namespace"] = json!(site.cluster.namespace());
        site.cluster.apply(&sample[0]).await;
        let runs = |at: Option<&At>| at.is_some_and(|at| at.phase() == Phase::Running);
        site.eventually("example-at", runs).await;
        site.end().await;
    });
}

#[tokio::test]
async fn a_time_that_is_none_is_refused_where_webhooks_are_called() {
    let cluster = Cluster::from_env().await;
    let running = cluster.run(at::operator()).await;
    let webhooks = cluster.call_webhooks(at::operator()).await;
    let ats: Api<At> = Api::default_namespaced(cluster.client());
    let at = |schedule: &str| {
        At::new("tea", AtSpec { schedule: Some(schedule.to_owned()), ..AtSpec::default() })
    };
    // A cluster may take a moment before it calls them.
    let trial = PostParams { dry_run: true, ..PostParams::default() };
    let mut tries = 0..100;
    let refused = loop {
        match ats.create(&trial, &at("at tea time")).await {
            Err(refused) => break refused.to_string(),
            Ok(_) => tries.next().expect("it is refused at some time"),
        };
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let told = r#"spec.schedule: Invalid value: "at tea time": must be a time in UTC, as 2019"#;
    assert!(refused.contains(told), "{refused}");
    ats.create(&PostParams::default(), &at("2999-07-03T02:00:00Z")).await.expect("created");
    let patch = Patch::Merge(json!({"spec": {"schedule": "later"}}));
    ats.patch("tea", &PatchParams::default(), &patch).await.expect_err("it is refused");
    webhooks.stop().await;
    running.stop().await;
    cluster.shutdown().await;
}
