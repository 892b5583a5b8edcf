//! A scheduler in a cluster whose nodes are objects only: who goes where, and what is told.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod, PodCondition, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kubewright_conformance::endpoint::Endpoint;
use kubewright_conformance::{judge, scenario};
use kubewright_scheduler::plugin::{
    Assignment, Filter, Permit, Point, Prepared, Rejection, Score, Work,
};
use kubewright_scheduler::{Around, Config, Plugin, Scheduler, Snapshot};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Cluster;

/// A scheduler that runs. Dropped, it is killed.
pub(super) struct Running {
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

impl Running {
    pub(super) fn start(cluster: &Cluster, scheduler: Scheduler) -> Self {
        let (shutdown, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let client = cluster.client_as("system:kube-scheduler", &["system:authenticated"]);
        let (clock, stop) = (cluster.clock(), shutdown.clone());
        tasks.spawn(async move {
            scheduler.run_alone(client, clock, stop).await.expect("the configuration is good");
        });
        Running { shutdown, tasks }
    }

    pub(super) async fn stop(mut self) {
        self.shutdown.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn start() -> (Cluster, Running) {
    let cluster = Cluster::start().await;
    // Without it no pod is let in.
    cluster.eventually::<ServiceAccount>(Some("default"), "default", |found| found.is_some()).await;
    let running = Running::start(&cluster, Scheduler::new(Config::default()));
    (cluster, running)
}

async fn node(cluster: &Cluster, name: &str, cpu: &str) {
    let object = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
    });
    cluster.apply(&object).await;
    let nodes: Api<Node> = Api::all(cluster.client());
    let amounts = json!({"cpu": cpu, "memory": "8Gi", "pods": "110"});
    let status = json!({"status": {"capacity": amounts, "allocatable": amounts}});
    let patch = Patch::Merge(status);
    nodes.patch_status(name, &PatchParams::default(), &patch).await.expect("a status");
}

async fn pod(cluster: &Cluster, name: &str, cpu: &str, more: Value) {
    // Nodes that are objects only are soon taken for dead.
    let mut spec = json!({"tolerations": [{"operator": "Exists"}], "containers": [
        {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}},
    ]});
    for (name, value) in more.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    let metadata = json!({"name": name, "labels": {"app": name}});
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
        .await;
}

/// Waits until a pod has a node, and tells which.
async fn placed(cluster: &Cluster, name: &str) -> String {
    let has_node = |pod: Option<&Pod>| pod.is_some_and(|pod| node_of(pod).is_some());
    let pod = cluster.eventually(Some("default"), name, has_node).await;
    pod.as_deref().and_then(node_of).expect("it was waited for").to_owned()
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

fn scheduled(pod: &Pod) -> Option<&PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "PodScheduled")
}

/// Waits until a pod is told why it has no node, and gives what it is told.
async fn refused(cluster: &Cluster, name: &str) -> (String, String) {
    let is_told = |pod: Option<&Pod>| {
        pod.and_then(scheduled).is_some_and(|it| it.status == "False" && it.message.is_some())
    };
    let pod = cluster.eventually(Some("default"), name, is_told).await;
    let condition = pod.as_deref().and_then(scheduled).expect("it was waited for").clone();
    (condition.reason.unwrap_or_default(), condition.message.unwrap_or_default())
}

/// What was told about a pod: `Type Reason: note`.
async fn events(cluster: &Cluster, name: &str) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(cluster.client(), "default");
    let listed = events.list(&ListParams::default()).await.expect("events");
    let about = |event: &Event| {
        event.regarding.as_ref().is_some_and(|about| about.name.as_deref() == Some(name))
    };
    let line = |event: Event| {
        let part = |part: Option<String>| part.unwrap_or_default();
        format!("{} {}: {}", part(event.type_), part(event.reason), part(event.note))
    };
    listed.into_iter().filter(about).map(line).collect()
}

async fn delete(cluster: &Cluster, name: &str) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    pods.delete(name, &now).await.expect("deleted");
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_the_emptier_node_and_people_are_told() {
    let (cluster, running) = start().await;
    node(&cluster, "small", "1").await;
    node(&cluster, "large", "4").await;
    pod(&cluster, "p", "500m", json!({})).await;
    assert_eq!(placed(&cluster, "p").await, "large");
    let pod = cluster.eventually::<Pod>(Some("default"), "p", |pod| pod.is_some()).await;
    assert_eq!(pod.as_deref().and_then(scheduled).map(|it| it.status.as_str()), Some("True"));
    running.stop().await;
    assert_eq!(
        events(&cluster, "p").await,
        ["Normal Scheduled: Successfully assigned default/p to large"]
    );
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_nowhere_is_told_why_and_goes_when_a_node_comes() {
    let (cluster, running) = start().await;
    pod(&cluster, "p", "2", json!({})).await;
    let none = ("Unschedulable".to_owned(), "no nodes available to schedule pods".to_owned());
    assert_eq!(refused(&cluster, "p").await, none);
    node(&cluster, "small", "1").await;
    let told = |pod: Option<&Pod>| {
        let message = pod.and_then(scheduled).and_then(|it| it.message.as_deref());
        message
            == Some(
                "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, \
                 preemption: 0/1 nodes are \
                 available: 1 Preemption is not helpful for scheduling.",
            )
    };
    // A node without room helps nobody, so the pod hears of it when it is tried anyway.
    cluster.pass(Duration::from_secs(301)).await;
    cluster.eventually(Some("default"), "p", told).await;
    node(&cluster, "large", "4").await;
    assert_eq!(placed(&cluster, "p").await, "large");
    running.stop().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_pod_goes_as_soon_as_there_is_room() {
    let (cluster, running) = start().await;
    node(&cluster, "only", "1").await;
    pod(&cluster, "first", "1", json!({})).await;
    placed(&cluster, "first").await;
    pod(&cluster, "second", "1", json!({})).await;
    let (reason, message) = refused(&cluster, "second").await;
    assert_eq!(reason, "Unschedulable");
    assert_eq!(
        message,
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, \
         preemption: 0/1 nodes are available: 1 No \
         preemption victims found for incoming pod."
    );
    let before = tokio::time::Instant::now();
    delete(&cluster, "first").await;
    assert_eq!(placed(&cluster, "second").await, "only");
    assert!(before.elapsed() < Duration::from_secs(11), "nothing was polled");
    running.stop().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn many_pods_never_crowd_a_node() {
    let (cluster, running) = start().await;
    for name in ["a", "b", "c"] {
        node(&cluster, name, "2").await;
    }
    for number in 0..12 {
        pod(&cluster, &format!("p{number}"), "500m", json!({})).await;
    }
    let mut counts = std::collections::BTreeMap::new();
    for number in 0..12 {
        *counts.entry(placed(&cluster, &format!("p{number}")).await).or_insert(0) += 1;
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [4, 4, 4]);
    running.stop().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_gated_pod_waits_for_its_gates() {
    let (cluster, running) = start().await;
    node(&cluster, "only", "1").await;
    pod(&cluster, "p", "1", json!({"schedulingGates": [{"name": "example.com/later"}]})).await;
    cluster.pass(Duration::from_secs(60)).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    assert_eq!(node_of(&pods.get("p").await.expect("the pod")), None);
    let open = Patch::Merge(json!({"spec": {"schedulingGates": []}}));
    pods.patch("p", &PatchParams::default(), &open).await.expect("the gates are gone");
    assert_eq!(placed(&cluster, "p").await, "only");
    running.stop().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_more_important_pod_takes_the_place_of_another() {
    let (cluster, running) = start().await;
    for (name, value) in [("low", 1), ("high", 1000)] {
        cluster
            .apply(&json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name}, "value": value,
            }))
            .await;
    }
    node(&cluster, "only", "1").await;
    pod(&cluster, "victim", "1", json!({"priorityClassName": "low"})).await;
    placed(&cluster, "victim").await;
    pod(&cluster, "urgent", "1", json!({"priorityClassName": "high"})).await;
    let is_nominated = |pod: Option<&Pod>| {
        let status = pod.and_then(|pod| pod.status.as_ref());
        status.and_then(|it| it.nominated_node_name.as_deref()) == Some("only")
    };
    cluster.eventually(Some("default"), "urgent", is_nominated).await;
    // Nobody runs it, so nobody ends it: it is asked to go, and told why.
    let is_going = |pod: Option<&Pod>| {
        let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some())
            && (pod.is_none()
                || conditions.any(|it| {
                    it.type_ == "DisruptionTarget"
                        && it.reason.as_deref() == Some("PreemptionByScheduler")
                }))
    };
    let victim = cluster.eventually(Some("default"), "victim", is_going).await;
    if victim.is_some() {
        delete(&cluster, "victim").await;
    }
    assert_eq!(placed(&cluster, "urgent").await, "only");
    running.stop().await;
    let told = events(&cluster, "victim").await;
    assert!(told.iter().any(|event| event.starts_with("Normal Preempted: Preempted by pod ")));
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_takes_only_pods_that_name_it() {
    let cluster = Cluster::start().await;
    cluster.eventually::<ServiceAccount>(Some("default"), "default", |found| found.is_some()).await;
    node(&cluster, "a", "4").await;
    node(&cluster, "b", "1").await;
    let config = Config::parse(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: spreading
- schedulerName: packing
  plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit}]}}
  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]
",
    )
    .expect("a configuration");
    let running = Running::start(&cluster, Scheduler::new(config));
    pod(&cluster, "spread", "1", json!({"schedulerName": "spreading"})).await;
    assert_eq!(placed(&cluster, "spread").await, "a");
    pod(&cluster, "packed", "1", json!({"schedulerName": "packing"})).await;
    assert_eq!(placed(&cluster, "packed").await, "b");
    pod(&cluster, "other", "1", json!({})).await;
    cluster.pass(Duration::from_secs(60)).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    assert_eq!(node_of(&pods.get("other").await.expect("the pod")), None);
    running.stop().await;
    cluster.shutdown().await;
}

/// Lets pods go to their nodes when somebody says so.
struct Patience(watch::Receiver<bool>);

impl Plugin for Patience {
    fn name(&self) -> &str {
        "Patience"
    }

    fn points(&self) -> &[Point] {
        &[Point::Permit]
    }

    fn permit(&self, _pod: &kubewright_scheduler::Pod, _node: &str) -> Permit {
        let mut may_go = self.0.clone();
        let until = async move {
            let gone = |_| Rejection::unschedulable("nobody says so any more");
            may_go.wait_for(|may_go| *may_go).await.map(drop).map_err(gone)
        };
        Permit::Wait(Box::pin(until), Duration::from_secs(30))
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_of_ones_own_has_a_say() {
    let cluster = Cluster::start().await;
    cluster.eventually::<ServiceAccount>(Some("default"), "default", |found| found.is_some()).await;
    node(&cluster, "only", "4").await;
    let (say, said) = watch::channel(false);
    let config = Config::parse(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {permit: {enabled: [{name: Patience}]}}}]
",
    )
    .expect("a configuration");
    let make = move |_: &Value, _: &_| Ok(Arc::new(Patience(said.clone())) as Arc<dyn Plugin>);
    let scheduler = Scheduler::new(config).with_plugin("Patience", make);
    let running = Running::start(&cluster, scheduler);
    pod(&cluster, "p", "1", json!({})).await;
    let (reason, message) = refused(&cluster, "p").await;
    assert_eq!(reason, "Unschedulable");
    assert_eq!(
        message,
        "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin Patience."
    );
    say.send_replace(true);
    // Nothing that is followed has changed, so it is tried anyway, after its time.
    cluster.pass(Duration::from_secs(301)).await;
    assert_eq!(placed(&cluster, "p").await, "only");
    running.stop().await;
    cluster.shutdown().await;
}

/// Pods go to nodes with a licence, to the newest best, and are bound at the second try. All that
/// it is asked is written down.
struct Licences {
    client: kube::Client,
    asked: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Licensed;

impl Licences {
    fn note(&self, what: &str, node: &str) -> usize {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(format!("{what} {node}"));
        asked.iter().filter(|it| it.starts_with(what)).count()
    }
}

impl Plugin for Licences {
    fn name(&self) -> &str {
        "Licences"
    }

    fn points(&self) -> &[Point] {
        &[Point::Filter, Point::Score, Point::Reserve, Point::Bind]
    }

    fn filter<'a>(
        &'a self,
        _pod: &'a kubewright_scheduler::Pod,
        _snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        Ok(Prepared::Check(Box::new(Licensed)))
    }

    fn score<'a>(
        &'a self,
        _pod: &'a kubewright_scheduler::Pod,
        _snapshot: &'a Snapshot,
        _nodes: &[&kubewright_scheduler::Node],
    ) -> Option<Box<dyn Score + 'a>> {
        Some(Box::new(Licensed))
    }

    fn reserve(
        &self,
        _pod: &kubewright_scheduler::Pod,
        node: &str,
        _snapshot: &mut Snapshot,
    ) -> Result<(), Rejection> {
        self.note("reserve", node);
        Ok(())
    }

    fn unreserve(&self, _: &kubewright_scheduler::Pod, node: &str, _: &mut Snapshot) {
        self.note("unreserve", node);
    }

    fn bind(&self, assignment: &Arc<Assignment>) -> Option<Work> {
        let tries = self.note("bind", &assignment.node);
        let (client, assignment) = (self.client.clone(), Arc::clone(assignment));
        Some(Box::pin(async move {
            if tries == 1 {
                return Err("the office is closed".to_owned());
            }
            let pod = &assignment.pod.object.metadata;
            let namespace = pod.namespace.as_deref().unwrap_or_default();
            let name = pod.name.as_deref().unwrap_or_default();
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"kind": "Node", "name": &*assignment.node},
            });
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
            let request = http::Request::post(path).header("content-type", "application/json");
            let request = request.body(binding.to_string().into_bytes()).expect("a request");
            client.request_text(request).await.map(drop).map_err(|error| error.to_string())
        }))
    }
}

impl Filter for Licensed {
    fn check(&self, node: &kubewright_scheduler::Node) -> Result<(), Rejection> {
        match &*node.name {
            "bare" => Err(Rejection::unresolvable("node(s) had no licence")),
            _ => Ok(()),
        }
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

impl Score for Licensed {
    fn score(&self, node: &kubewright_scheduler::Node) -> i64 {
        if &*node.name == "new" { 100 } else { 0 }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_of_ones_own_filters_scores_reserves_and_binds() {
    let cluster = Cluster::start().await;
    cluster.eventually::<ServiceAccount>(Some("default"), "default", |found| found.is_some()).await;
    node(&cluster, "bare", "4").await;
    let config = Config::parse(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Licences, weight: 1000}]}
    bind: {disabled: [{name: DefaultBinder}]}
",
    )
    .expect("a configuration");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&asked);
    let make = move |_: &Value, around: &Around| {
        let client = around.client.clone().expect("something is written");
        Ok(Arc::new(Licences { client, asked: Arc::clone(&told) }) as Arc<dyn Plugin>)
    };
    let scheduler = Scheduler::new(config).with_plugin("Licences", make);
    let running = Running::start(&cluster, scheduler);
    pod(&cluster, "p", "1", json!({})).await;
    let (_, message) = refused(&cluster, "p").await;
    assert!(message.starts_with("0/1 nodes are available: 1 node(s) had no licence."), "{message}");
    node(&cluster, "old", "32").await;
    node(&cluster, "new", "4").await;
    assert_eq!(placed(&cluster, "p").await, "new");
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // Which of the two nodes came first does not matter: the first try is given up.
    let kinds: Vec<&str> = asked.iter().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(kinds[..5], ["reserve", "bind", "unreserve", "reserve", "bind"], "{asked:?}");
    assert_eq!(asked[4], "bind new");
    running.stop().await;
    cluster.shutdown().await;
}

/// Answers filters and priorities of an extender: not `a`, and rather `c` than `b`.
async fn extend(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = Vec::new();
        let (head, body) = loop {
            let mut part = [0; 4096];
            let length = stream.read(&mut part).await.expect("a request");
            request.extend(&part[..length]);
            let text = String::from_utf8_lossy(&request).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && serde_json::from_str::<Value>(body).is_ok()
            {
                break (head.to_owned(), body.to_owned());
            }
        };
        let asked: Value = serde_json::from_str(&body).expect("JSON");
        let names = asked["NodeNames"].as_array().cloned().unwrap_or_default();
        let answer = match head.split(' ').nth(1) {
            Some("/filter") => {
                let left: Vec<Value> = names.into_iter().filter(|name| name != "a").collect();
                json!({"NodeNames": left, "FailedNodes": {"a": "not today"}})
            }
            _ => names
                .iter()
                .map(|name| json!({"Host": name, "Score": if name == "c" { 10 } else { 0 }}))
                .collect(),
        };
        let answer = answer.to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        let response = format!("{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
        stream.write_all(response.as_bytes()).await.expect("answered");
    }
}

/// Over real sockets, so time does not stand still.
#[tokio::test]
async fn an_extender_has_a_say() {
    let cluster = Cluster::start().await;
    cluster.eventually::<ServiceAccount>(Some("default"), "default", |found| found.is_some()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let place = listener.local_addr().expect("an address");
    let mut tasks = JoinSet::new();
    tasks.spawn(extend(listener));
    let config = Config::parse(&format!(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: http://{place}
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 100
  nodeCacheCapable: true
"
    ))
    .expect("a configuration");
    node(&cluster, "a", "32").await;
    let running = Running::start(&cluster, Scheduler::new(config));
    pod(&cluster, "p", "1", json!({})).await;
    let (_, message) = refused(&cluster, "p").await;
    assert!(message.starts_with("0/1 nodes are available: 1 not today."), "{message}");
    node(&cluster, "b", "32").await;
    assert_eq!(placed(&cluster, "p").await, "b");
    node(&cluster, "c", "4").await;
    pod(&cluster, "q", "1", json!({})).await;
    assert_eq!(placed(&cluster, "q").await, "c");
    running.stop().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_bound_where_its_first_pod_goes() {
    let (cluster, running) = start().await;
    node(&cluster, "a", "4").await;
    node(&cluster, "b", "1").await;
    let objects = [
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
            "spec": {
                "storageClassName": "local", "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"}, "local": {"path": "/mnt"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]},
                ]}]}},
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
            "spec": {
                "storageClassName": "local", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }),
    ];
    for object in &objects {
        cluster.apply(object).await;
    }
    use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let available = Patch::Merge(json!({"status": {"phase": "Available"}}));
    volumes.patch_status("v", &PatchParams::default(), &available).await.expect("a phase");
    let uses = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
    pod(&cluster, "p", "500m", json!({"volumes": uses})).await;
    let is_taken = |volume: Option<&PersistentVolume>| {
        let spec = volume.and_then(|volume| volume.spec.as_ref());
        let claim = spec.and_then(|spec| spec.claim_ref.as_ref());
        claim.is_some_and(|claim| claim.name.as_deref() == Some("c"))
    };
    cluster.eventually(None, "v", is_taken).await;
    // What the binder of volumes does, who is not here.
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), "default");
    let bound = Patch::Merge(json!({
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v"},
    }));
    claims.patch("c", &PatchParams::default(), &bound).await.expect("bound");
    assert_eq!(placed(&cluster, "p").await, "b");
    running.stop().await;
    cluster.shutdown().await;
}

/// What upstream's scheduler does, ours does: the same scenarios judge both.
#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_of_scheduling_passes() {
    let (cluster, running) = start().await;
    let endpoint = Endpoint::new(cluster.client(), cluster.client());
    let manner = judge::Manner { jobs: 1, is_patient: false };
    let expected = judge::expected_failures("kubewright").expect("a list");
    let scenarios = scenario::scheduling();
    let verdict = judge::run_these(&endpoint, scenarios, None, &expected, manner).await;
    let verdict = verdict.expect("a verdict");
    assert!(verdict.is_pass(), "{verdict}");
    running.stop().await;
    cluster.shutdown().await;
}
