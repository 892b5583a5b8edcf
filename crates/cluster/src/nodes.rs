//! The nodes of a cluster, the scheduler that gives pods to them, and the ways to reach pods.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::storage::v1::StorageClass;
use kube::Client;
use kube::api::{Api, PostParams};
use kubewright::certificate::{self, Current};
use kubewright::event::Recorder;
use kubewright::{Cache, Clock};
use kubewright_apiserver::server::Server;
use kubewright_apiserver::user::User;
use kubewright_node::runtime::{self, CriConfig, CriError, ProcessConfig, Stage};
use kubewright_node::{
    BalancerConfig, Dns, LocalAddresses, Machine, ServeError, ServerConfig, balance,
};
use kubewright_scheduler::Scheduler;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::{Credentials, SchedulerConfig, SchedulerConfigError};

/// Where pods are reached.
pub(crate) const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Where a node of containers is, if the machine can have another address than [`ADDRESS`], which in a
/// pod is the pod's own. So many clusters can have one beside each other, in the half of the network
/// for measuring devices in which no processes are shown.
const NODE_ADDRESSES: [Ipv4Addr; 4] = [
    Ipv4Addr::new(198, 19, 0, 1),
    Ipv4Addr::new(198, 19, 0, 2),
    Ipv4Addr::new(198, 19, 0, 3),
    Ipv4Addr::new(198, 19, 0, 4),
];
/// Where pods ask for names, as they do of kube-dns' caches on nodes.
const DNS_ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 20, 10);
/// How long programs may take to end when their cluster does.
const GRACE: Duration = Duration::from_secs(5);
/// As kubelet rotates logs of containers.
const LOG_BYTES_MAX: u64 = 10 << 20;

/// Nodes of a cluster.
#[derive(Debug, Clone)]
pub struct Nodes {
    pub names: Vec<String>,
    pub runtime: Runtime,
    /// Where claims of the standard class get directories.
    pub volumes: PathBuf,
    /// Where Ingresses are served; none for nowhere. Only where something runs is anything reached.
    pub ingress: Option<Arc<std::net::TcpListener>>,
    /// How pods are given to them, and by which names pods ask for that.
    pub scheduler: SchedulerConfig,
}

/// What runs the pods of nodes.
#[derive(Debug, Clone)]
pub enum Runtime {
    /// Nothing, though pods live and end as if something did, as stages say.
    Fake { stages: Vec<Stage> },
    /// This machine: containers are processes, which end with the cluster. A process that is killed
    /// leaves them to the next one.
    Process {
        /// Holds all that is known of pods.
        directory: PathBuf,
        /// The command that calls [`crate::shim`] with the words that follow.
        shim: Vec<OsString>,
        /// What else is the cluster's own, and not for pods to see.
        hidden: Vec<PathBuf>,
    },
    /// A container runtime of this machine that speaks CRI. Containers end with the cluster too.
    Cri {
        /// Holds what the runtime does not keep of pods.
        directory: PathBuf,
        /// Where the runtime listens.
        socket: PathBuf,
        /// Whether ended containers stay, for a cluster that comes back.
        is_kept: bool,
    },
}

impl Runtime {
    /// The node whose host ports are to be served, if its runtime leaves that to us.
    pub(crate) fn host_ports_of(&self, names: &[String]) -> Option<String> {
        match self {
            Runtime::Process { .. } => names.first().cloned(),
            Runtime::Fake { .. } | Runtime::Cri { .. } => None,
        }
    }

    /// Whether anything runs.
    pub(crate) fn runs(&self) -> bool {
        !matches!(self, Runtime::Fake { .. })
    }

    /// Ends what runs, and waits for it.
    pub(crate) async fn end(&self) {
        match self {
            Runtime::Fake { .. } => {}
            Runtime::Process { directory, .. } => end(directory, true).await,
            Runtime::Cri { directory, is_kept, .. } => end(directory, *is_kept).await,
        }
    }
}

/// What nodes need of their cluster.
pub(crate) struct Surroundings<'a> {
    pub(crate) server: &'a Server,
    pub(crate) cache: &'a Cache,
    /// Where the server is reached from outside, if it is.
    pub(crate) place: Option<(SocketAddr, &'a Credentials)>,
    pub(crate) clock: Clock,
}

/// Why there are no nodes.
#[derive(Debug, thiserror::Error)]
pub enum NodesError {
    #[error("show a certificate")]
    Certificate(#[source] certificate::PairError),
    #[error("know clients by their certificates")]
    Authority(#[source] rustls::pki_types::pem::Error),
    #[error("serve Ingresses")]
    Ingress(#[source] io::Error),
    #[error("run processes")]
    Process(#[source] io::Error),
    #[error("schedule pods")]
    Scheduler(#[from] SchedulerConfigError),
    #[error(transparent)]
    Cri(#[from] CriError),
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl Nodes {
    /// Takes what nodes need. The future plays them and schedules pods until `shutdown`, both by
    /// what is in the cache.
    pub(crate) async fn start(
        self,
        around: Surroundings<'_>,
        shutdown: CancellationToken,
    ) -> Result<impl Future<Output = ()> + Send + 'static, NodesError> {
        let Nodes { names, runtime, ingress, scheduler, .. } = self;
        let scheduler = Scheduler::new(scheduler);
        scheduler.check()?;
        let Surroundings { server, cache, place, clock } = around;
        let mut tasks = JoinSet::new();
        // One agent for all nodes: it may do what any of them may.
        let client = client(server, "system:nodes", "system:masters", "kubelet");
        let ingress = ingress.map(|listener| reuse(&listener)).transpose();
        let ingress = ingress.map_err(NodesError::Ingress)?;
        let at = place.map(|(at, _)| (at.ip().to_string(), at.port()));
        let places = Places { node: ADDRESS, server: at, agent: None };
        let Engine { machine, runtime: engine, locals } =
            Engine::start(&runtime, &client, places, &clock, &mut tasks, &shutdown).await?;
        let listener = match place {
            Some((_, credentials)) => Some(listen(machine.address, credentials).await?),
            None => None,
        };
        schedule(&mut tasks, scheduler, (server, cache, &clock), &shutdown);
        if runtime.runs() {
            let config = BalancerConfig {
                addresses: BTreeSet::from([ADDRESS, machine.address]).into_iter().collect(),
                ingress,
                locals,
                runtime: Arc::clone(&engine),
                server: None,
                nodes: names.clone(),
                node: runtime.host_ports_of(&names),
                client: client.clone(),
                clock: clock.clone(),
            };
            let (cache, stop) = (cache.clone(), shutdown.clone());
            tasks.spawn(async move { balance(&cache, config, stop).await });
        }
        let config = kubewright_node::Config {
            nodes: names,
            labels: Default::default(),
            taints: Vec::new(),
            machine,
            runtime: engine,
            sees_all: true,
            server: listener,
            metrics: place.map(|_| ADDRESS),
            clock,
        };
        let cache = cache.clone();
        Ok(async move {
            if !runtime.runs() {
                withdraw_ingresses(&client).await;
            }
            offer_volumes(&client).await;
            kubewright_node::run(client, &cache, config, shutdown).await;
            runtime.end().await;
            while tasks.join_next().await.is_some() {}
        })
    }
}

/// What runs pods, and the machine that it runs them on.
pub(crate) struct Engine {
    pub(crate) machine: Machine,
    pub(crate) runtime: Arc<dyn runtime::Runtime>,
    /// Addresses of pods and Services, where this machine can have them.
    pub(crate) locals: Option<Arc<LocalAddresses>>,
}

/// Where those are that pods and others look for.
pub(crate) struct Places {
    /// The node, unless it gets an address of its own.
    pub(crate) node: IpAddr,
    /// The API server, where it is reached from outside.
    pub(crate) server: Option<(String, u16)>,
    /// What tells this agent from others in the same cluster; none for the cluster's own.
    pub(crate) agent: Option<String>,
}

impl Engine {
    /// As `client` of the API server, pods get what they are given.
    pub(crate) async fn start(
        runtime: &Runtime,
        client: &Client,
        Places { node, server, agent }: Places,
        clock: &Clock,
        tasks: &mut JoinSet<()>,
        shutdown: &CancellationToken,
    ) -> Result<Self, NodesError> {
        match runtime {
            Runtime::Fake { stages } => {
                let fake = runtime::Fake::new(clock.clone(), stages.clone());
                let runtime = Arc::new(match agent {
                    Some(agent) => fake.called(&agent),
                    None => fake,
                });
                let machine = Machine { address: node, ..Machine::simulated() };
                Ok(Engine { machine, runtime, locals: None })
            }
            Runtime::Process { directory, shim, hidden } => {
                let locals = LocalAddresses::of(directory).map(Arc::new);
                let config = ProcessConfig {
                    directory: directory.clone(),
                    hidden: hidden.clone(),
                    shim: shim.clone(),
                    server,
                    log_bytes_max: LOG_BYTES_MAX,
                    locals: locals.clone(),
                };
                // It reads what only a node may, so it has a cache with a node's rights.
                let (cache, informing) = Cache::new(client.clone());
                tasks.spawn(informing);
                let runtime = runtime::process(config, cache, clock.clone()).await;
                let runtime = runtime.map_err(NodesError::Process)?;
                let machine = Machine { address: node, ..Machine::this() };
                Ok(Engine { machine, runtime, locals })
            }
            Runtime::Cri { directory, socket, .. } => {
                let locals = LocalAddresses::of(directory).map(Arc::new);
                // The cluster's own node need not be where its server is.
                let own = locals.as_ref().filter(|_| agent.is_none());
                let own = own.and_then(|locals| locals.add_one_of(NODE_ADDRESSES.into_iter()));
                let node = own.map_or(node, IpAddr::V4);
                let machine = Machine { address: node, ..Machine::this() };
                // It reads what only a node may, so it has a cache with a node's rights.
                let (cache, informing) = Cache::new(client.clone());
                tasks.spawn(informing);
                let dns = match &locals {
                    Some(locals) => answer_names(locals, &cache, tasks, shutdown).await,
                    None => None,
                };
                let config = CriConfig {
                    socket: socket.clone(),
                    directory: directory.clone(),
                    // Pods reach what this machine answers at, but not its loopback.
                    server: server.filter(|_| locals.is_none()),
                    host: node,
                    dns,
                    log_bytes_max: LOG_BYTES_MAX,
                };
                let runtime = runtime::cri(config, cache, clock.clone()).await?;
                Ok(Engine { machine, runtime, locals })
            }
        }
    }
}

/// Has names of Services answered for pods, at an address that only this machine and its pods know.
async fn answer_names(
    locals: &LocalAddresses,
    cache: &Cache,
    tasks: &mut JoinSet<()>,
    shutdown: &CancellationToken,
) -> Option<IpAddr> {
    let bound = async {
        locals.add(DNS_ADDRESS).map_err(|error| error.to_string())?;
        Dns::bind(DNS_ADDRESS.into()).await.map_err(|error| error.to_string())
    };
    match bound.await {
        Ok(dns) => {
            let (cache, stop) = (cache.clone(), shutdown.clone());
            tasks.spawn(async move { dns.run(&cache, stop).await });
            Some(DNS_ADDRESS.into())
        }
        Err(why) => {
            warn!(why, "pods do not find Services by their names");
            None
        }
    }
}

/// Ends the processes and containers that a cluster left behind, and waits for it; then nothing of it
/// is left on this machine but files, and what the runtime knows of containers if it `is_kept`.
pub(crate) async fn end(directory: &Path, is_kept: bool) {
    runtime::end_processes(directory, GRACE).await;
    runtime::end_containers(directory, GRACE, !is_kept).await;
    drop(LocalAddresses::of(directory));
}

/// Takes off the API what nodes of an earlier process have registered there.
pub(crate) fn withdraw(server: &Server) -> impl Future<Output = ()> + Send + 'static {
    let client = client(server, "system:nodes", "system:masters", "kubelet");
    async move {
        if let Err(error) = kubewright_node::metrics::withdraw(&client).await {
            warn!(%error, "metrics.k8s.io stays in the API, though nobody serves it");
        }
        withdraw_ingresses(&client).await;
    }
}

/// Has Ingresses no longer say that they are served, which an earlier process has told.
async fn withdraw_ingresses(client: &Client) {
    if let Err(error) = kubewright_node::withdraw_ingresses(client, ADDRESS).await {
        warn!(%error, "Ingresses show an address, though nobody serves them");
    }
}

/// What a node that is this machine is called, as kubelet calls it.
pub(crate) fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().trim().to_lowercase()
}

/// Where the server asks nodes for logs.
async fn listen(
    address: IpAddr,
    credentials: &Credentials,
) -> Result<kubewright_node::Server, NodesError> {
    let current = Current::new();
    let pair = certificate::Pair {
        certificate: credentials.server.certificate.clone(),
        key: credentials.server.key.clone(),
    };
    current.show(pair).map_err(NodesError::Certificate)?;
    let authorities = credentials.client_ca.as_deref().unwrap_or_default().as_bytes();
    let authorities = CertificateDer::pem_slice_iter(authorities).collect::<Result<_, _>>();
    let config = ServerConfig {
        address: SocketAddr::new(address, 0),
        certificate: current,
        client_authorities: authorities.map_err(NodesError::Authority)?,
    };
    Ok(kubewright_node::Server::bind(config).await?)
}

/// A listener of our own at a place that stays taken when we end.
fn reuse(listener: &std::net::TcpListener) -> io::Result<TcpListener> {
    let listener = listener.try_clone()?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Gives pods to nodes until `shutdown`.
fn schedule(
    tasks: &mut JoinSet<()>,
    scheduler: Scheduler,
    (server, cache, clock): (&Server, &Cache, &Clock),
    shutdown: &CancellationToken,
) {
    let client = client(server, "system:kube-scheduler", "", "kube-scheduler");
    let (recorder, recording) = Recorder::new(client.clone(), "kubewright", clock.clone());
    tasks.spawn(recording);
    let around =
        kubewright_scheduler::Surroundings { cache: cache.clone(), recorder, clock: clock.clone() };
    let stop = shutdown.clone();
    tasks.spawn(async move {
        if let Err(error) = scheduler.run(client, around, stop).await {
            error!(%error, "pods are not scheduled");
        }
    });
}

/// Has a class for claims that ask for none. One that is there is somebody's, whatever it says.
async fn offer_volumes(client: &Client) {
    let classes: Api<StorageClass> = Api::all(client.clone());
    let class = kubewright_controllers::standard_class();
    match classes.create(&PostParams::default(), &class).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => warn!(%error, "claims get no class of their own"),
        Ok(_) => {}
    }
}

/// The server as a part of the cluster sees it.
fn client(server: &Server, user: &str, group: &str, manager: &'static str) -> Client {
    let groups = Some(group).filter(|group| !group.is_empty()).map(str::to_owned);
    Client::new(server.as_user(User::new(user, groups)).known_as(manager), "default")
}
