//! The agent of one or many nodes: one watch on pods, a loop for each pod, a heartbeat for each
//! node.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::Client;
use kubewright::event::Recorder;
use kubewright::informer::{Change, Informer, Scope, State};
use kubewright::queue::{Outcome, Queue};
use kubewright::{Cache, Clock, ObjectKey};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::heartbeat::Heartbeat;
use crate::metrics;
use crate::node::{Machine, Profile};
use crate::pod::Host;
use crate::pod::worker::{Seen, SharedLife, Surroundings, Worker};
use crate::runtime::Runtime;
use crate::server::{self, Pods, Server};

/// What events say they come from.
const COMPONENT: &str = "kubelet";

/// Which nodes an agent plays, and how.
pub struct Config {
    /// The names of the nodes.
    pub nodes: Vec<String>,
    /// What they are labelled with, besides what all nodes are.
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// What they say they are.
    pub machine: Machine,
    pub runtime: Arc<dyn Runtime>,
    /// Whether all pods are followed, as others in this process do, or only those of these nodes,
    /// which is all that a node that joins alone may see.
    pub sees_all: bool,
    /// What answers questions about them; without it there are no logs and no commands.
    pub server: Option<Server>,
    /// Where `metrics.k8s.io` is served, at any port that is free; none for nowhere.
    pub metrics: Option<IpAddr>,
    pub clock: Clock,
}

/// Plays nodes until `shutdown`; returns when everything it started has ended. Containers that run
/// are left to run: who plays the node next adopts them.
///
/// What is read comes from `cache`, which may be shared; what is written goes through `client`.
pub async fn run(client: Client, cache: &Cache, mut config: Config, shutdown: CancellationToken) {
    let stop = shutdown.child_token();
    let mut tasks = JoinSet::new();
    let mut nodes = HashMap::new();
    let lives = Pods::default();
    let server = config.server.take();
    let port = server.as_ref().map_or(0, |server| server.address().port());
    let shown = cache.informer::<Node>(&scope(&config, "metadata.name"));
    for name in &config.nodes {
        let (recorder, scribe) = Recorder::new(client.clone(), name, config.clock.clone());
        let recorder = recorder.of(COMPONENT);
        // Ends with the last recorder, when all is written.
        tasks.spawn(scribe);
        let heartbeat = Heartbeat {
            client: client.clone(),
            profile: profile(name, &config, port),
            recorder: recorder.clone(),
            clock: config.clock.clone(),
            runtime: Arc::clone(&config.runtime),
            shown: shown.clone(),
        };
        tasks.spawn(heartbeat.run(stop.clone()));
        let around = Surroundings {
            client: client.clone(),
            runtime: Arc::clone(&config.runtime),
            recorder,
            clock: config.clock.clone(),
            host: Host { address: config.machine.address },
        };
        nodes.insert(name.clone(), around);
    }
    let state = server::State {
        pods: Arc::clone(&lives),
        runtime: Arc::clone(&config.runtime),
        client: client.clone(),
        clock: config.clock.clone(),
        node: config.nodes.first().cloned().unwrap_or_default(),
    };
    if let Some(address) = config.metrics {
        let (state, nodes) = (state.clone(), config.nodes.clone());
        tasks.spawn(metrics::run(state, nodes, address, client, stop.clone()));
    }
    if let Some(server) = server {
        tasks.spawn(server.run(state, stop.clone()));
    }
    let dispatch = Dispatch {
        informer: cache.informer::<Pod>(&scope(&config, "spec.nodeName")),
        nodes,
        pods: HashMap::new(),
        lives,
        workers: JoinSet::new(),
        shutdown: stop.clone(),
    };
    dispatch.run().await;
    stop.cancel();
    while tasks.join_next().await.is_some() {}
}

fn profile(name: &str, config: &Config, port: u16) -> Profile {
    Profile {
        name: name.to_owned(),
        labels: config.labels.clone(),
        taints: config.taints.clone(),
        machine: config.machine.clone(),
        runtime_version: config.runtime.version(),
        port,
    }
}

/// Those of these nodes, by the field that has the name of one.
fn scope(config: &Config, field: &str) -> Scope {
    let fields = match config.nodes.as_slice() {
        _ if config.sees_all => None,
        [node] => Some(format!("{field}={node}")),
        _ => Some(format!("{field}!=")),
    };
    Scope { fields, ..Scope::default() }
}

/// Hands pods to their workers.
struct Dispatch {
    informer: Informer<Pod>,
    nodes: HashMap<String, Surroundings>,
    pods: HashMap<ObjectKey, Entry>,
    /// For those who ask about pods.
    lives: Pods,
    workers: JoinSet<()>,
    shutdown: CancellationToken,
}

/// A pod that has a worker.
struct Entry {
    uid: Option<String>,
    tell: watch::Sender<Seen>,
}

impl Dispatch {
    async fn run(mut self) {
        let queue: Arc<Queue<ObjectKey>> = Arc::default();
        let changed = Arc::clone(&queue);
        let subscription = self.informer.subscribe(move |change| {
            let (Change::Applied { object, .. } | Change::Deleted(object)) = change;
            changed.add(ObjectKey::of(&object.metadata));
        });
        let shutdown = self.shutdown.clone();
        shutdown.run_until_cancelled(self.sweep()).await;
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                Some(ended) = self.workers.join_next() => {
                    if let Err(error) = ended {
                        error!(%error, "the loop of a pod has failed");
                    }
                }
                Some(work) = queue.take() => {
                    // Before it is synced nobody is told of anything.
                    let pod = self.informer.get(work.key()).ok().flatten();
                    self.hand(work.key(), pod);
                    work.finish(Outcome::Done);
                }
            }
        }
        drop(subscription);
        while self.workers.join_next().await.is_some() {}
    }

    /// Has the runtime forget pods that are no longer ours, once it is known which are.
    async fn sweep(&self) {
        self.informer.until(|state| *state == State::Live).await;
        let ours = |pod: &&Arc<Pod>| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
            node.is_some_and(|node| self.nodes.contains_key(node))
        };
        let pods = self.informer.list().unwrap_or_default();
        let known = pods.iter().filter(ours).filter_map(|pod| pod.metadata.uid.clone()).collect();
        if let Some(around) = self.nodes.values().next() {
            around.runtime.sweep(&known).await;
        }
    }

    fn hand(&mut self, key: &ObjectKey, pod: Option<Arc<Pod>>) {
        let around = pod.as_ref().and_then(|pod| {
            let node = pod.spec.as_ref()?.node_name.as_ref()?;
            self.nodes.get(node)
        });
        if let Some(known) = self.pods.get(key) {
            let uid = pod.as_ref().and_then(|pod| pod.metadata.uid.as_ref());
            if let (Some(pod), true) = (&pod, known.uid.as_ref() == uid) {
                known.tell.send_replace(Seen { pod: Arc::clone(pod), is_gone: false });
                return;
            }
            // It is gone; there may be another of that name.
            known.tell.send_modify(|seen| seen.is_gone = true);
            self.pods.remove(key);
            self.lives().remove(key);
        }
        if let (Some(pod), Some(around)) = (pod, around) {
            let uid = pod.metadata.uid.clone();
            let (tell, seen) = watch::channel(Seen { pod, is_gone: false });
            let (worker, life) = Worker::new(around.clone(), seen);
            self.workers.spawn(worker.run(self.shutdown.clone()));
            self.pods.insert(key.clone(), Entry { uid, tell });
            self.lives().insert(key.clone(), life);
        }
    }

    fn lives(&self) -> MutexGuard<'_, HashMap<ObjectKey, SharedLife>> {
        // Nothing that holds it panics half-way.
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
