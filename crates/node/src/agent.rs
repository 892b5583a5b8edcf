//! The agent of one or many nodes: one watch on pods, a loop for each pod, a heartbeat for each
//! node.

mod resize;

use std::collections::{BTreeMap, HashMap, HashSet};
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
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::heartbeat::Heartbeat;
use crate::metrics;
use crate::node::{Machine, Profile};
use crate::pod::Host;
use crate::pod::admit::{Needs, Verdict, admit};
use crate::pod::resize::{Allocation, Standing};
use crate::pod::worker::{Seen, SharedLife, Surroundings, Worker, lock};
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
        let (recorder, scribe) =
            Recorder::counting(client.clone(), COMPONENT, Some(name), config.clock.clone());
        // Ends with the last recorder, when all is written.
        tasks.spawn(scribe);
        let profile = Arc::new(profile(name, &config, port));
        let heartbeat = Heartbeat {
            client: client.clone(),
            profile: Arc::clone(&profile),
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
        let home = Home { around, profile, pods: HashSet::new(), resizing: HashSet::new() };
        nodes.insert(name.clone(), home);
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
        shown,
        clock: config.clock.clone(),
        nodes,
        pods: HashMap::new(),
        lives,
        workers: JoinSet::new(),
        is_complete: false,
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
    /// Nodes as the API shows them.
    shown: Informer<Node>,
    clock: Clock,
    nodes: HashMap<String, Home>,
    pods: HashMap<ObjectKey, Entry>,
    /// For those who ask about pods.
    lives: Pods,
    workers: JoinSet<()>,
    /// All pods are known that were there when the agent began.
    is_complete: bool,
    shutdown: CancellationToken,
}

/// A node, and the pods that it has.
struct Home {
    around: Surroundings,
    profile: Arc<Profile>,
    pods: HashSet<ObjectKey>,
    /// Those that want other resources than they are allocated.
    resizing: HashSet<ObjectKey>,
}

/// A pod that has a worker.
struct Entry {
    uid: Option<String>,
    node: String,
    /// As the API has it.
    pod: Arc<Pod>,
    allocation: Allocation,
    standing: Standing,
    /// Its containers have no more than is allocated to them.
    is_settled: bool,
    needs: Needs,
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
        self.begin();
        let mut retry = tokio::time::interval(resize::RETRY);
        retry.set_missed_tick_behavior(MissedTickBehavior::Delay);
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
                _ = retry.tick(), if self.has_pending() => self.retry_all(),
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
        if let Some(home) = self.nodes.values().next() {
            home.around.runtime.sweep(&known).await;
        }
    }

    /// Takes up the pods that are there, those that run first: what they have is not free for others.
    fn begin(&mut self) {
        let mut pods = self.informer.list().unwrap_or_default();
        pods.sort_by_key(|pod| is_new(pod));
        for pod in pods {
            self.hand(&ObjectKey::of(&pod.metadata), Some(pod));
        }
        self.is_complete = true;
        self.retry_all();
    }

    fn hand(&mut self, key: &ObjectKey, pod: Option<Arc<Pod>>) {
        if let Some(known) = self.pods.get(key) {
            let uid = pod.as_ref().and_then(|pod| pod.metadata.uid.as_ref());
            match pod {
                Some(pod) if known.uid.as_ref() == uid => return self.update(key, pod),
                // It is gone; there may be another of that name.
                _ => self.lose(key),
            }
        }
        let Some(pod) = pod else { return };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let Some(around) = self.nodes.get(&node).map(|home| home.around.clone()) else { return };
        let needs = Needs::of(&pod);
        let verdict = self.admit(&node, &pod, &needs);
        let uid = pod.metadata.uid.clone();
        let (allocation, standing) = match is_new(&pod) {
            true => (Allocation::wanted(&pod), Standing::default()),
            false => (Allocation::recalled(&pod), Standing::recalled(&pod, self.clock.now())),
        };
        let seen = Seen { pod: Arc::clone(&pod), standing: standing.clone(), is_gone: false };
        let (tell, seen) = watch::channel(seen);
        let is_settled = true;
        let mut entry = Entry { uid, node, pod, allocation, standing, is_settled, needs, tell };
        entry.count();
        entry.tell();
        let (worker, life) = Worker::new(around, seen, verdict);
        self.workers.spawn(worker.run(self.shutdown.clone()));
        if let Some(home) = self.nodes.get_mut(&entry.node) {
            home.pods.insert(key.clone());
        }
        self.pods.insert(key.clone(), entry);
        self.lives().insert(key.clone(), life);
        self.consider(key);
    }

    /// A pod that has a worker is not as it was.
    fn update(&mut self, key: &ObjectKey, pod: Arc<Pod>) {
        let Some(known) = self.pods.get_mut(key) else { return };
        let before = std::mem::replace(&mut known.pod, pod);
        let is_other = before.metadata.generation != known.pod.metadata.generation;
        let is_settled = known.allocation.is_given(known.pod.status.as_ref());
        let mut has_room = is_over(&known.pod) && !is_over(&before);
        if is_other || !known.is_settled || !is_settled {
            let needs = known.needs.clone();
            known.count();
            has_room |= known.needs.is_less(&needs);
        }
        let node = known.node.clone();
        if is_other && !Allocation::wanted(&before).is_wanted(&known.pod) {
            self.consider(key);
        }
        if let Some(known) = self.pods.get(key) {
            known.tell();
        }
        if has_room {
            self.retry(&node);
        }
    }

    fn lose(&mut self, key: &ObjectKey) {
        let Some(known) = self.pods.remove(key) else { return };
        known.tell.send_modify(|seen| seen.is_gone = true);
        if let Some(home) = self.nodes.get_mut(&known.node) {
            home.pods.remove(key);
            home.resizing.remove(key);
        }
        self.lives().remove(key);
        self.retry(&known.node);
    }

    /// Whether a node takes a pod. One that was taken before is not asked about again.
    fn admit(&self, node: &str, pod: &Pod, needs: &Needs) -> Verdict {
        let home = self.nodes.get(node).filter(|_| is_new(pod));
        home.map_or(Verdict::Admitted, |home| self.judge(home, pod, needs, |_| true))
    }

    /// Whether a node has room for a pod beside these others.
    fn judge(
        &self,
        home: &Home,
        pod: &Pod,
        needs: &Needs,
        is_other: impl Fn(&ObjectKey) -> bool,
    ) -> Verdict {
        let shown = self.shown.get(&ObjectKey::new(None, &home.profile.name)).ok().flatten();
        let shown =
            shown.filter(|it| it.status.as_ref().is_some_and(|it| it.allocatable.is_some()));
        // Before it is registered, a node is what it will be registered as.
        let node = shown.unwrap_or_else(|| Arc::new(home.profile.node(self.clock.now())));
        match admit(pod, needs, &self.neighbours(home, &is_other), &node) {
            // The cache may know by now that a pod has gone of which nobody has told us yet.
            Verdict::Refused(_) => {
                let is_there = |key: &ObjectKey| {
                    let found = self.informer.get(key).ok().flatten();
                    let known = self.pods.get(key);
                    found.zip(known).is_some_and(|(found, known)| found.metadata.uid == known.uid)
                };
                let is_there = |key: &ObjectKey| is_other(key) && is_there(key);
                admit(pod, needs, &self.neighbours(home, is_there), &node)
            }
            verdict => verdict,
        }
    }

    /// What the pods take that have room on a node.
    fn neighbours(&self, home: &Home, is_there: impl Fn(&ObjectKey) -> bool) -> Vec<&Needs> {
        let lives = self.lives();
        let is_active = |key: &&ObjectKey| {
            lives.get(*key).is_some_and(|life| lock(life).is_active()) && is_there(key)
        };
        let others = home.pods.iter().filter(is_active).filter_map(|key| self.pods.get(key));
        others.map(|entry| &entry.needs).collect()
    }

    fn lives(&self) -> MutexGuard<'_, HashMap<ObjectKey, SharedLife>> {
        // Nothing that holds it panics half-way.
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether no node has taken a pod yet.
fn is_new(pod: &Pod) -> bool {
    pod.status.as_ref().is_none_or(|status| status.start_time.is_none())
}

fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}
