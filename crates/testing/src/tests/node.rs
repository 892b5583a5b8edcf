//! Nodes of the fake runtime in a cluster: pods run, end and go, as time passes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, PodStatus, ServiceAccount};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kubewright::Cache;
use kubewright::certificate::{Authority, Current};
use kubewright_conformance::endpoint::Endpoint;
use kubewright_conformance::{judge, scenario};
use kubewright_node::runtime::Fake;
use kubewright_node::{Config, Machine, Server, ServerConfig};
use kubewright_scheduler::Scheduler;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::scheduler::Running;
use crate::{Cluster, Line};

/// An agent that plays nodes. Dropped, it is killed.
struct Agent {
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

impl Agent {
    fn start(cluster: &Cluster, nodes: &[&str]) -> Self {
        Agent::serving(cluster, cluster.client(), nodes, None)
    }

    fn serving(cluster: &Cluster, client: Client, nodes: &[&str], server: Option<Server>) -> Self {
        let (cache, run) = Cache::new(client.clone());
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(run);
        let config = Config {
            nodes: nodes.iter().map(|&name| name.to_owned()).collect(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            machine: Machine::simulated(),
            runtime: Arc::new(Fake::new(cluster.clock(), Vec::new())),
            sees_all: false,
            server,
            metrics: None,
            clock: cluster.clock(),
        };
        let stop = shutdown.clone();
        tasks.spawn(async move { kubewright_node::run(client, &cache, config, stop).await });
        Agent { shutdown, tasks }
    }

    async fn stop(mut self) {
        self.shutdown.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn start() -> Cluster {
    let cluster = Cluster::start().await;
    // Without it no pod is let in.
    cluster.eventually::<ServiceAccount>(Some("default"), "default", |found| found.is_some()).await;
    cluster
}

async fn create(
    cluster: &Cluster,
    node: &str,
    metadata: serde_json::Value,
    more: serde_json::Value,
) {
    let mut spec = json!({"nodeName": node, "containers": [{"name": "main", "image": "busybox"}]});
    for (name, value) in more.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
        .await;
}

fn phase(pod: &Pod) -> &str {
    status(pod).phase.as_deref().unwrap_or_default()
}

fn status(pod: &Pod) -> &PodStatus {
    pod.status.as_ref().expect("a pod has a status")
}

fn condition<'a>(pod: &'a Pod, type_: &str) -> &'a str {
    let mut conditions = status(pod).conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == type_).map_or("none", |it| it.status.as_str())
}

fn is_ready_node(node: Option<&Node>) -> bool {
    let status = node.and_then(|node| node.status.as_ref());
    let mut conditions = status.iter().flat_map(|it| it.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

async fn in_phase(cluster: &Cluster, name: &str, wanted: &str) -> Arc<Pod> {
    let is_so = |pod: Option<&Pod>| pod.is_some_and(|pod| phase(pod) == wanted);
    cluster.eventually(Some("default"), name, is_so).await.expect("it is there")
}

#[tokio::test(start_paused = true)]
async fn nodes_are_registered_and_stay_alive() {
    let cluster = start().await;
    let agent = Agent::start(&cluster, &["n1", "n2"]);
    for name in ["n1", "n2"] {
        cluster.eventually(None, name, is_ready_node).await;
        let lease = cluster
            .eventually::<Lease>(Some("kube-node-lease"), name, |lease| lease.is_some())
            .await
            .expect("it is there");
        let renewed = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
        let first = renewed(&lease);
        cluster
            .eventually::<Lease>(Some("kube-node-lease"), name, |lease| {
                lease.is_some_and(|lease| renewed(lease) > first)
            })
            .await;
    }
    agent.stop().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_runs_until_it_is_deleted() {
    let cluster = start().await;
    let agent = Agent::start(&cluster, &["n1", "n2"]);
    create(&cluster, "n2", json!({"name": "web"}), json!({})).await;
    create(&cluster, "elsewhere", json!({"name": "other"}), json!({})).await;
    let pod = in_phase(&cluster, "web", "Running").await;
    for type_ in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"] {
        assert_eq!(condition(&pod, type_), "True", "{type_}");
    }
    assert_eq!(status(&pod).host_ip.as_deref(), Some("127.0.0.1"));
    assert!(status(&pod).pod_ip.is_some());
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    pods.delete("web", &DeleteParams::default()).await.expect("it is deleted");
    cluster.eventually::<Pod>(Some("default"), "web", |pod| pod.is_none()).await;
    let other = pods.get("other").await.expect("it is there");
    assert_eq!(phase(&other), "Pending");
    agent.stop().await;
    cluster.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_ends_as_its_annotations_say() {
    let cluster = start().await;
    let agent = Agent::start(&cluster, &["n1"]);
    let metadata = |name: &str, code: &str| {
        json!({"name": name, "annotations": {
            "fake.kubewright.dev/runs-for": "20s", "fake.kubewright.dev/exit-code": code}})
    };
    let never = json!({"restartPolicy": "Never"});
    create(&cluster, "n1", metadata("good", "0"), never.clone()).await;
    create(&cluster, "n1", metadata("bad", "4"), never).await;
    create(&cluster, "n1", metadata("again", "4"), json!({})).await;
    in_phase(&cluster, "good", "Succeeded").await;
    in_phase(&cluster, "bad", "Failed").await;
    let is_waiting = |pod: Option<&Pod>| {
        let statuses = pod.iter().flat_map(|pod| status(pod).container_statuses.iter().flatten());
        let mut reasons = statuses.filter_map(|it| it.state.as_ref()?.waiting.as_ref());
        reasons.any(|waiting| waiting.reason.as_deref() == Some("CrashLoopBackOff"))
    };
    let pod = cluster.eventually::<Pod>(Some("default"), "again", is_waiting).await;
    assert_eq!(phase(&pod.expect("it is there")), "Running");
    agent.stop().await;
    cluster.shutdown().await;
}

/// The agent is killed while a pod runs: the next one goes on with the same containers.
#[tokio::test(start_paused = true)]
async fn what_ran_before_the_agent_is_adopted() {
    let cluster = start().await;
    let agent = Agent::start(&cluster, &["n1"]);
    create(&cluster, "n1", json!({"name": "web"}), json!({})).await;
    let before = in_phase(&cluster, "web", "Running").await;
    drop(agent);
    cluster.pass(Duration::from_secs(5)).await;
    let agent = Agent::start(&cluster, &["n1"]);
    cluster.pass(Duration::from_secs(60)).await;
    let after = in_phase(&cluster, "web", "Running").await;
    let shown = |pod: &Pod| {
        let statuses = status(pod).container_statuses.clone().expect("a status");
        (statuses[0].container_id.clone(), statuses[0].restart_count, status(pod).pod_ip.clone())
    };
    assert_eq!(shown(&before), shown(&after));
    agent.stop().await;
    cluster.shutdown().await;
}

/// A node falls silent: its pods are given up after five minutes, and others take their place.
#[tokio::test(start_paused = true)]
async fn pods_of_a_silent_node_are_replaced_elsewhere() {
    let cluster = start().await;
    let scheduler = Running::start(&cluster, Scheduler::new(Default::default()));
    let (silent, loud) = (Agent::start(&cluster, &["silent"]), Agent::start(&cluster, &["loud"]));
    let labels = json!({"app": "web"});
    cluster
        .apply(&json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
            "spec": {"replicas": 4, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "busybox"}]},
            }},
        }))
        .await;
    let all_ready = |set: Option<&ReplicaSet>| {
        let status = set.and_then(|set| set.status.as_ref());
        status.and_then(|status| status.ready_replicas) == Some(4)
    };
    cluster.eventually::<ReplicaSet>(Some("default"), "web", all_ready).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let on = async |node: &str| {
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        pods.list(&params).await.expect("a list").items
    };
    assert!(!on("silent").await.is_empty() && !on("loud").await.is_empty());
    // Killed: nobody says goodbye.
    drop(silent);
    cluster.pass(Duration::from_secs(60)).await;
    let not_ready = |set: Option<&ReplicaSet>| !all_ready(set);
    cluster.eventually::<ReplicaSet>(Some("default"), "web", not_ready).await;
    // Every pod bears it for five minutes, unless it says otherwise.
    cluster.pass(Duration::from_secs(5 * 60)).await;
    cluster.eventually::<ReplicaSet>(Some("default"), "web", all_ready).await;
    let stay = on("loud").await;
    assert_eq!(stay.iter().filter(|pod| condition(pod, "Ready") == "True").count(), 4);
    // Nobody is there to say that they have ended; that they are to is all that can be known.
    let left = on("silent").await;
    assert!(left.iter().all(|pod| pod.metadata.deletion_timestamp.is_some()), "{left:?}");
    scheduler.stop().await;
    loud.stop().await;
    cluster.shutdown().await;
}

/// A node is cut off for a while and taken for dead, its pods for not ready. Nothing had changed
/// there, so once nobody said so again: the pods served nobody for ever.
#[tokio::test(start_paused = true)]
async fn a_node_that_was_cut_off_and_its_pods_are_ready_again() {
    let cluster = start().await;
    let line = Line::default();
    let agent = Agent::serving(&cluster, cluster.client_over(&line), &["n1"], None);
    create(&cluster, "n1", json!({"name": "web"}), json!({})).await;
    in_phase(&cluster, "web", "Running").await;
    let is_ready_pod = |pod: Option<&Pod>| pod.is_some_and(|pod| condition(pod, "Ready") == "True");
    line.cut();
    cluster.pass(Duration::from_secs(60)).await;
    cluster.eventually(None, "n1", |node| !is_ready_node(node)).await;
    cluster.eventually(Some("default"), "web", |pod| !is_ready_pod(pod)).await;
    line.mend();
    // Long before the status is due, and before pods are given up.
    cluster.pass(Duration::from_secs(30)).await;
    let (nodes, pods): (Api<Node>, Api<Pod>) =
        (Api::all(cluster.client()), Api::namespaced(cluster.client(), "default"));
    assert!(is_ready_node(nodes.get("n1").await.ok().as_ref()));
    assert!(is_ready_pod(pods.get("web").await.ok().as_ref()));
    agent.stop().await;
    cluster.shutdown().await;
}

/// Whoever names a node in a pod asks no scheduler whether it fits there.
#[tokio::test(start_paused = true)]
async fn a_node_refuses_pods_that_do_not_fit() {
    let cluster = start().await;
    let agent = Agent::start(&cluster, &["n1"]);
    let asking = |cpu: &str| {
        json!({"containers": [
            {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}},
        ]})
    };
    create(&cluster, "n1", json!({"name": "first"}), asking("20")).await;
    in_phase(&cluster, "first", "Running").await;
    create(&cluster, "n1", json!({"name": "second"}), asking("20")).await;
    let pod = in_phase(&cluster, "second", "Failed").await;
    assert_eq!(status(&pod).reason.as_deref(), Some("OutOfcpu"));
    let message = "Pod was rejected: Node didn't have enough resource: cpu, requested: 20000, \
                   used: 20000, capacity: 32000";
    assert_eq!(status(&pod).message.as_deref(), Some(message));
    create(&cluster, "n1", json!({"name": "elsewhere"}), json!({"nodeSelector": {"a": "b"}})).await;
    let pod = in_phase(&cluster, "elsewhere", "Failed").await;
    assert_eq!(status(&pod).reason.as_deref(), Some("NodeAffinity"));
    // What was refused takes no room, and neither does what has gone.
    create(&cluster, "n1", json!({"name": "small"}), asking("12")).await;
    in_phase(&cluster, "small", "Running").await;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    pods.delete("first", &DeleteParams::default()).await.expect("deleted");
    cluster.eventually::<Pod>(Some("default"), "first", |pod| pod.is_none()).await;
    create(&cluster, "n1", json!({"name": "third"}), asking("20")).await;
    in_phase(&cluster, "third", "Running").await;
    agent.stop().await;
    cluster.shutdown().await;
}

/// What upstream's controllers and scheduler make of workloads with our nodes, ours do.
#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_of_running_passes() {
    let cluster = start().await;
    let scheduler = Running::start(&cluster, Scheduler::new(Default::default()));
    let agent = Agent::start(&cluster, &["n1", "n2"]);
    let endpoint = Endpoint::new(cluster.client(), cluster.client());
    let manner = judge::Manner { jobs: 4, is_patient: false };
    let expected = judge::expected_failures("kubewright").expect("a list");
    // There is no socket here, and so nobody to ask for logs.
    let mut scenarios = scenario::running();
    scenarios.retain(|scenario| !scenario.proves.contains(&"B7"));
    let verdict = judge::run_these(&endpoint, scenarios, None, &expected, manner).await;
    let verdict = verdict.expect("a verdict");
    assert!(verdict.is_pass(), "{verdict}");
    scheduler.stop().await;
    agent.stop().await;
    cluster.shutdown().await;
}

/// A server with a certificate of its own making, which believes tokens only.
async fn server(cluster: &Cluster) -> Server {
    let (hour, now) = (Duration::from_secs(3600), cluster.clock().now());
    let authority = Authority::new("nodes", hour, now).expect("an authority");
    let pair = authority.issue(&["127.0.0.1".to_owned()], hour, now).expect("a certificate");
    let certificate = Current::new();
    certificate.show(pair).expect("a certificate");
    let address = "127.0.0.1:0".parse().expect("an address");
    let config = ServerConfig { address, certificate, client_authorities: Vec::new() };
    Server::bind(config).await.expect("a port")
}

/// Somebody whom the cluster knows, as a client of a node.
async fn known(cluster: &Cluster, place: std::net::SocketAddr) -> Client {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), "default");
    let wish = TokenRequest { spec: Some(Default::default()), ..TokenRequest::default() };
    let issued = accounts.create_token_request("default", &PostParams::default(), &wish).await;
    let token = issued.expect("a token").status.and_then(|it| it.token).expect("one");
    let place = format!("https://{place}").parse().expect("a place");
    let mut config = kube::Config::new(place);
    config.accept_invalid_certs = true;
    config.auth_info.token = Some(token.into());
    Client::try_from(config).expect("a client")
}

/// With a socket, so time is real.
#[tokio::test]
async fn a_node_answers_those_who_may_ask() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let cluster = start().await;
    let server = server(&cluster).await;
    let place = server.address();
    let agent = Agent::serving(&cluster, cluster.client(), &["n1"], Some(server));
    create(&cluster, "n1", json!({"name": "web"}), json!({})).await;
    in_phase(&cluster, "web", "Running").await;
    let client = known(&cluster, place).await;
    let ask = async |path: &str| {
        let request = http::Request::get(path).body(Vec::new()).expect("a request");
        match client.request_text(request).await {
            Ok(text) => text,
            Err(kube::Error::Api(status)) => format!("{} {}", status.code, status.message),
            Err(error) => error.to_string(),
        }
    };
    let logs = "/containerLogs/default/web/main";
    let refused = ask(logs).await;
    assert!(refused.contains("Forbidden (user=system:serviceaccount:default:default"), "{refused}");
    cluster
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "asks-nodes"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "system:kubelet-api-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
        }))
        .await;
    assert_eq!(ask(logs).await, "this pod is simulated: nothing runs in it\n");
    assert_eq!(ask("/healthz").await, "ok");
    assert!(ask("/pods").await.contains("\"name\":\"web\""));
    let nobody = ask("/containerLogs/default/none/main").await;
    assert!(nobody.contains("pod \"default/none\" not found"), "{nobody}");
    agent.stop().await;
    cluster.shutdown().await;
}
