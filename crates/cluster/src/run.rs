//! A named cluster, from its start to its end.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kubewright_apiserver::audit;
use kubewright_apiserver::edge::Limits;
use kubewright_apiserver::server::Server;
use kubewright_controllers::Names;
use kubewright_store::{Revision, embedded, etcd};
use tokio::sync::mpsc;
use tracing::warn;

use crate::control::{Answer, Command, Socket};
use crate::home::{self, Hold, HoldError, Home, Record};
use crate::kubeconfig::{self, Access};
use crate::nodes;
use crate::process::{Signals, raise_file_limit};
use crate::roots;
use crate::{
    Clock, Cluster, Config, Listen, Nodes, Pki, Runtime, SchedulerConfig, Stage, Storage, Terms,
};

/// Where a cluster is served unless somebody says otherwise, or it was served elsewhere before.
const DEFAULT_PORT: u16 = 6443;
/// Where Ingresses are served, unless somebody says otherwise.
const INGRESS_PORT: u16 = 8080;
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Where pods find the keys that verify tokens, below the issuer's name.
const KEYS_URL_IN_PODS: &str = "https://kubernetes.default.svc.cluster.local/openid/v1/jwks";
/// How long whoever said stop has to read the answer.
const GOODBYE: Duration = Duration::from_secs(1);

/// What a named cluster is to be.
pub struct Options {
    pub name: String,
    pub home: Home,
    /// None for where it was before, or else 6443; 0 for any that is free.
    pub port: Option<u16>,
    pub keep: Keep,
    /// The file to add the context to, if any.
    pub kubeconfig: Option<PathBuf>,
    /// Which controllers run.
    pub controllers: Names,
    pub node: Node,
    /// Where Ingresses are served if pods run: none for 8080; 0 for any port that is free.
    pub ingress_port: Option<u16>,
    /// How pods are given to nodes, if there are any.
    pub scheduler: SchedulerConfig,
    /// None for no audit log.
    pub audit: Option<audit::Config>,
}

/// What runs the pods of a cluster.
#[derive(Debug, Clone)]
pub enum Node {
    /// Somebody else: they wait for a scheduler and nodes.
    None,
    /// So many nodes on which nothing runs, and what their containers are said to do.
    Fake { count: usize, stages: Vec<Stage> },
    /// This machine, as processes. `shim` is the command that calls [`crate::shim`] with the words
    /// that follow.
    Process { shim: Vec<OsString> },
    /// This machine, as containers of the runtime that listens at this socket.
    Cri { socket: PathBuf },
}

/// What remains of a cluster when it ends.
pub enum Keep {
    /// Nothing: keys and objects are in memory.
    Nothing,
    /// Keys and objects, in this directory or else where they were before, or else in the
    /// cluster's own.
    Everything { dir: Option<PathBuf> },
    /// Keys, likewise. Objects are in etcd.
    Keys { dir: Option<PathBuf>, etcd: Box<etcd::Config> },
}

/// Runs a cluster until it is told to stop, by a signal or by [`Command::Stop`]. `ready` is called
/// once, when it answers.
pub async fn run(options: Options, ready: impl FnOnce(&Record)) -> Result<()> {
    let for_ever = async move |record: &Record| {
        ready(record);
        std::future::pending::<Infallible>().await
    };
    run_while(options, for_ever).await.map(drop)
}

/// Runs a cluster, once it answers, for as long as `work` takes, unless it is told to stop before
/// that: then there is no outcome.
pub async fn run_while<T>(
    options: Options,
    work: impl AsyncFnOnce(&Record) -> T,
) -> Result<Option<T>> {
    raise_file_limit();
    let mut signals = Signals::new()?;
    let dir = options.home.dir(&options.name)?;
    let (site, store) = Site::prepare(options).await.inspect_err(|_| home::leave(&dir))?;
    let mut cluster = site.start(store).await?;
    if let Err(error) = site.announce() {
        site.withdraw();
        cluster.shutdown().await;
        site.end();
        return Err(error);
    }
    let mut work = Box::pin(work(&site.record));
    let mut outcome = None;
    let (order_sender, mut orders) = mpsc::channel(1);
    let mut commands = std::pin::pin!(site.socket.run(order_sender));
    let mut answered = false;
    loop {
        tokio::select! {
            () = signals.stop() => break,
            worked = &mut work => {
                outcome = Some(worked);
                break;
            }
            () = &mut commands => bail!("the control socket is gone"),
            Some((command, answer)) = orders.recv() => {
                if command == Command::Stop {
                    // Who waits for the end waits for the directory.
                    let _ = answer.send(Answer::Done);
                    answered = true;
                    break;
                }
                let obeyed;
                (cluster, obeyed) = site.obey(cluster, command).await?;
                // Whoever asked may have gone.
                let _ = answer.send(match obeyed {
                    Ok(()) => Answer::Done,
                    Err(error) => Answer::Failed(format!("{error:#}")),
                });
            }
        }
    }
    drop((orders, work));
    site.withdraw();
    let goodbye = async {
        if answered {
            let _ = tokio::time::timeout(GOODBYE, commands).await;
        }
    };
    tokio::join!(cluster.shutdown(), goodbye);
    site.end();
    Ok(outcome)
}

/// Takes what a cluster that does not run left in kubeconfigs, and ends what it left running; with
/// `data`, also its keys and objects.
pub async fn clear(home: &Home, record: &Record, data: bool) -> Result<()> {
    let dir = home.dir(&record.name)?;
    let _hold = Hold::take(&dir)?;
    if let Some(path) = &record.kubeconfig {
        kubeconfig::remove(path, &record.name)?;
    }
    let node_dir = node_dir(&dir, record.data_dir.as_deref());
    nodes::end(&node_dir, !data && record.data_dir.is_some()).await;
    unmount(&node_dir)?;
    if let Some(data_dir) = record.data_dir.as_deref().filter(|_| data) {
        for part in ["pki", "store", NODE_DIR, VOLUMES] {
            remove_dir(&data_dir.join(part))?;
        }
    }
    if data || record.data_dir.is_none() {
        // The lock goes last, and with it the hold.
        remove_dir(&dir)?;
    }
    Ok(())
}

/// Forgets the objects of a cluster that does not run.
pub fn reset(home: &Home, record: &Record) -> Result<()> {
    let _hold = Hold::take(&home.dir(&record.name)?)?;
    empty(&store_dir(record)?)?;
    record.data_dir.as_deref().map_or(Ok(()), |dir| remove_dir(&dir.join(VOLUMES)))
}

/// Puts an empty store in the place of one that is not open. It counts on where that one ended, so
/// that no client takes what it knows for what is.
fn empty(store: &Path) -> Result<()> {
    let used = embedded::last_used(store).context("see where the store ended")?;
    remove_dir(store)?;
    match used {
        Some(used) => embedded::begin_after(store, used).context("begin an empty store"),
        None => Ok(()),
    }
}

/// Puts the objects of a snapshot in the place of those of a cluster that does not run, and need
/// not have run before.
pub fn restore(home: &Home, name: &str, snapshot: &Path) -> Result<()> {
    let dir = home.dir(name)?;
    let _hold = Hold::take(&dir)?;
    let store = match Record::read(&dir)? {
        Some(record) => store_dir(&record)?,
        None => dir.join("store"),
    };
    let used = embedded::last_used(&store).context("see where the store ended")?;
    let draft = Draft::of(snapshot, &store, used.unwrap_or(Revision::FIRST))?;
    draft.put()
}

fn store_dir(record: &Record) -> Result<PathBuf> {
    match &record.data_dir {
        Some(dir) if record.store == EMBEDDED => Ok(dir.join("store")),
        _ => bail!(
            "the objects of {:?} are in {}, not in a store of its own",
            record.name,
            record.store
        ),
    }
}

const EMBEDDED: &str = "embedded";
const NODE_DIR: &str = "node";
/// Where in a data directory volumes are.
const VOLUMES: &str = "volumes";

/// Where a node of a cluster keeps what it knows of pods.
fn node_dir(dir: &Path, data_dir: Option<&Path>) -> PathBuf {
    data_dir.unwrap_or(dir).join(NODE_DIR)
}

/// A cluster's place in the world: everything but the cluster itself.
struct Site {
    dir: PathBuf,
    storage: StorageChoice,
    controllers: Names,
    nodes: Option<Nodes>,
    audit: Option<audit::Config>,
    /// Kept open, so that nobody takes the port while the cluster starts anew.
    listener: TcpListener,
    pki: Pki,
    socket: Socket,
    record: Record,
    /// Until the end.
    _holds: Vec<Hold>,
}

enum StorageChoice {
    Memory,
    Embedded(PathBuf),
    Etcd(Box<etcd::Config>),
}

impl Site {
    /// Takes what the cluster needs of the machine. Also gives its storage, where that can be opened
    /// while keys are made.
    async fn prepare(options: Options) -> Result<(Self, Option<Storage>)> {
        let Options { name, home, port, keep, kubeconfig, .. } = options;
        let Options { controllers, node, ingress_port, scheduler, audit, .. } = options;
        let dir = home.dir(&name)?;
        let mut holds = vec![hold(&dir, || {
            format!(
                "cluster {name:?} is running: `kubewright down {name}` ends it, and --name \
                     gives you another one"
            )
        })?];
        let before = Record::read(&dir)?;
        let before_dir = before.as_ref().and_then(|record| record.data_dir.clone());
        let (data_dir, storage, store) = match keep {
            Keep::Nothing => (None, StorageChoice::Memory, "memory".to_owned()),
            Keep::Everything { dir: asked } => {
                let data_dir = asked.or(before_dir).unwrap_or_else(|| dir.clone());
                let storage = StorageChoice::Embedded(data_dir.join("store"));
                (Some(data_dir), storage, EMBEDDED.to_owned())
            }
            Keep::Keys { dir: asked, etcd } => {
                let data_dir = asked.or(before_dir).unwrap_or_else(|| dir.clone());
                let store = format!("etcd={}", etcd.endpoints.join(","));
                (Some(data_dir), StorageChoice::Etcd(etcd), store)
            }
        };
        let data_dir = match data_dir {
            // A record must hold wherever it is read.
            Some(path) => Some(std::path::absolute(path).context("find the data directory")?),
            None => None,
        };
        if let Some(data_dir) = data_dir.as_deref().filter(|data_dir| *data_dir != dir) {
            holds.push(hold(data_dir, || {
                format!(
                    "{} belongs to a cluster that is running: choose another --data-dir",
                    data_dir.display()
                )
            })?);
        }
        let port = port.or(before.map(|record| record.port)).unwrap_or(DEFAULT_PORT);
        let listener = listen(port, "--port")?;
        let node_dir = node_dir(&dir, data_dir.as_deref());
        let volumes = data_dir.as_deref().unwrap_or(&dir).join(VOLUMES);
        let is_kept = data_dir.is_some();
        // Keys of this cluster and of others of the same user.
        let hidden = dir.parent().map(Path::to_owned).into_iter().chain(data_dir.clone()).collect();
        let places = Places { directory: node_dir, hidden, volumes, is_kept, ingress_port };
        let nodes = nodes(node, &name, places, scheduler)?;
        let ingress = nodes.as_ref().and_then(|nodes| nodes.ingress.as_ref());
        let ingress = ingress.map(|listener| listener.local_addr().context("find the port"));
        let ingress = ingress.transpose()?.map(|place| format!("http://{place}"));
        let cri = match nodes.as_ref().map(|nodes| &nodes.runtime) {
            Some(Runtime::Cri { socket, .. }) => Some(socket.clone()),
            _ => None,
        };
        let port = listener.local_addr().context("find the port")?.port();
        // Disks keep one waiting, and keys and tables keep one busy.
        let opening = async {
            match &storage {
                StorageChoice::Embedded(dir) => {
                    let opening = Storage::Embedded(dir.clone()).open(Clock::System);
                    Ok(Some(opening.await.context("start the cluster")?))
                }
                StorageChoice::Memory | StorageChoice::Etcd(_) => Ok(None),
            }
        };
        let making = async {
            let now = Clock::System.now();
            let pki = match &data_dir {
                Some(data_dir) => keys(&data_dir.join("pki"), &storage, now).await,
                None => Pki::in_memory(ADDRESS, now),
            };
            Server::prepare();
            pki
        };
        let (opened, pki): (Result<_>, _) = tokio::join!(opening, making);
        let (opened, pki) = (opened?, pki?);
        let socket = Socket::bind(&dir)?;
        let record = Record {
            server: format!("https://{}", SocketAddr::new(ADDRESS, port)),
            name,
            port,
            pid: std::process::id(),
            data_dir,
            store,
            kubeconfig: kubeconfig
                .map(std::path::absolute)
                .transpose()
                .context("find the kubeconfig")?,
            ingress,
            cri,
            control: socket.path().to_owned(),
        };
        let site = Site {
            dir,
            storage,
            controllers,
            nodes,
            audit,
            listener,
            pki,
            socket,
            record,
            _holds: holds,
        };
        Ok((site, opened.map(Storage::Open)))
    }

    /// Starts the cluster on this storage, or on its own, which nobody has open.
    async fn start(&self, storage: Option<Storage>) -> Result<Cluster> {
        let config = Config {
            storage: storage.unwrap_or_else(|| match &self.storage {
                StorageChoice::Memory => Storage::Memory,
                StorageChoice::Embedded(dir) => Storage::Embedded(dir.clone()),
                StorageChoice::Etcd(config) => Storage::Etcd(config.clone()),
            }),
            listen: Some(Listen {
                listener: self.listener.try_clone().context("listen")?,
                credentials: self.pki.clone().into(),
                limits: Limits::default(),
            }),
            clock: Clock::System,
            controllers: self.controllers.clone(),
            nodes: self.nodes.clone(),
            audit: self.audit.clone(),
            // Pods in containers do not reach the server where it listens, which is loopback.
            terms: Terms {
                keys_url: self.record.cri.as_ref().map(|_| KEYS_URL_IN_PODS.to_owned()),
                ..Terms::default()
            },
        };
        Cluster::start(config).await.context("start the cluster")
    }

    /// Lets others find the cluster.
    fn announce(&self) -> Result<()> {
        let access = Access {
            name: &self.record.name,
            server: &self.record.server,
            ca_pem: &self.pki.ca.certificate,
            user: &self.pki.admin,
        };
        self.record.write(&self.dir)?;
        home::write_private(&kubeconfig_path(&self.dir), access.alone().as_bytes())?;
        if let Some(path) = &self.record.kubeconfig {
            access.add_to(path)?;
        }
        Ok(())
    }

    /// Sends no more clients to it. The cluster ends whatever happens here.
    fn withdraw(&self) {
        let path = self.record.kubeconfig.as_deref();
        if let Some(Err(error)) = path.map(|path| kubeconfig::remove(path, &self.record.name)) {
            warn!(%error, "the kubeconfig keeps the context");
        }
    }

    /// Nothing runs any more.
    fn end(&self) {
        let node_dir = node_dir(&self.dir, self.record.data_dir.as_deref());
        if self.record.data_dir.is_none()
            && let Err(error) = unmount(&node_dir).and_then(|()| remove_dir(&self.dir))
        {
            warn!(%error, "the cluster's directory stays");
        }
        home::leave_all(&self.dir);
    }

    /// No object knows them any more.
    fn empty_volumes(&self) -> Result<()> {
        self.nodes.as_ref().map_or(Ok(()), |nodes| remove_dir(&nodes.volumes))
    }

    /// Does as told with a running cluster and gives back a running one.
    async fn obey(&self, cluster: Cluster, command: Command) -> Result<(Cluster, Result<()>)> {
        let store = match &self.storage {
            StorageChoice::Embedded(store) => Some(store),
            StorageChoice::Memory | StorageChoice::Etcd(_) => None,
        };
        match (command, store) {
            (Command::Stop, _) => Ok((cluster, Ok(()))),
            (Command::Snapshot { path }, _) => {
                let written = cluster.snapshot(&path).await;
                Ok((cluster, written.map(drop).context("make a snapshot")))
            }
            (Command::Reset, _) if matches!(self.storage, StorageChoice::Memory) => {
                cluster.shutdown().await;
                let emptied = self.empty_volumes();
                Ok((self.start(None).await?, emptied))
            }
            (Command::Reset, Some(store)) => {
                cluster.shutdown().await;
                let emptied = empty(store).and_then(|()| self.empty_volumes());
                Ok((self.start(None).await?, emptied))
            }
            (Command::Restore { path }, Some(store)) => {
                match Draft::of(&path, store, cluster.revision()) {
                    Ok(draft) => {
                        cluster.shutdown().await;
                        let put = draft.put();
                        Ok((self.start(None).await?, put))
                    }
                    Err(error) => Ok((cluster, Err(error))),
                }
            }
            (Command::Reset | Command::Restore { .. }, None) => {
                Ok((cluster, store_dir(&self.record).map(drop)))
            }
        }
    }
}

/// The keys of a server: those in `dir`, unless the cluster has others.
async fn keys(dir: &Path, storage: &StorageChoice, now: Duration) -> Result<Pki> {
    let pki = Pki::in_dir(dir, ADDRESS, now)?;
    let StorageChoice::Etcd(config) = storage else { return Ok(pki) };
    let own = pki.roots();
    let roots = roots::agree(config, own.clone()).await.context("start the cluster")?;
    match roots == own {
        true => Ok(pki),
        false => Pki::adopt(dir, &roots, ADDRESS, now),
    }
}

/// The kubeconfig of one cluster and nothing else.
pub fn kubeconfig_path(dir: &Path) -> PathBuf {
    dir.join("kubeconfig")
}

fn hold(dir: &Path, taken: impl FnOnce() -> String) -> Result<Hold> {
    Hold::take(dir).map_err(|error| match error {
        HoldError::Taken { .. } => anyhow::Error::msg(taken()),
        error => error.into(),
    })
}

/// Where nodes have what is theirs.
struct Places {
    directory: PathBuf,
    /// What is the cluster's own besides.
    hidden: Vec<PathBuf>,
    volumes: PathBuf,
    /// Whether the cluster may come back.
    is_kept: bool,
    ingress_port: Option<u16>,
}

fn nodes(
    node: Node,
    cluster: &str,
    places: Places,
    scheduler: SchedulerConfig,
) -> Result<Option<Nodes>> {
    let Places { directory, hidden, volumes, is_kept, ingress_port } = places;
    let (names, runtime, ingress) = match node {
        Node::None | Node::Fake { count: 0, .. } => return Ok(None),
        Node::Fake { count, stages } => {
            let names = (1..=count).map(|number| format!("{cluster}-{number}")).collect();
            (names, Runtime::Fake { stages }, None)
        }
        Node::Process { shim } => {
            let runtime = Runtime::Process { directory, shim, hidden };
            (vec![nodes::hostname()], runtime, Some(ingress_port))
        }
        Node::Cri { socket } => {
            let runtime = Runtime::Cri { directory, socket, is_kept };
            (vec![nodes::hostname()], runtime, Some(ingress_port))
        }
    };
    let ingress = ingress.map(|port| listen(port.unwrap_or(INGRESS_PORT), "--ingress-port"));
    let ingress = ingress.transpose()?.map(Arc::new);
    Ok(Some(Nodes { names, runtime, volumes, ingress, scheduler }))
}

/// Takes a port, or says which flag changes it.
fn listen(port: u16, flag: &str) -> Result<TcpListener> {
    TcpListener::bind((ADDRESS, port)).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow::Error::msg(format!(
            "port {port} is in use: choose another with {flag}, or any that is free with {flag} 0"
        )),
        ErrorKind::PermissionDenied => anyhow::Error::msg(format!(
            "port {port} is not for everybody: choose one above 1023 with {flag}"
        )),
        _ => anyhow::Error::new(error).context(format!("listen on port {port}")),
    })
}

/// Has nothing of somebody else be in a directory that goes.
fn unmount(node_dir: &Path) -> Result<()> {
    kubewright_node::runtime::unmount_volumes(node_dir)
        .with_context(|| format!("unmount volumes of pods in {}", node_dir.display()))
}

fn remove_dir(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// A store made of a snapshot, beside the one whose place it is to take.
struct Draft {
    dir: PathBuf,
    store: PathBuf,
}

impl Draft {
    /// Fails without touching `store`, which has used numbers up to `used`, if the snapshot is no
    /// good.
    fn of(snapshot: &Path, store: &Path, used: Revision) -> Result<Self> {
        let dir = store.with_extension("new");
        remove_dir(&dir)?;
        kubewright_store::restore(snapshot, &dir, used).context("restore the snapshot")?;
        Ok(Draft { dir, store: store.into() })
    }

    fn put(self) -> Result<()> {
        remove_dir(&self.store)?;
        std::fs::rename(&self.dir, &self.store)
            .with_context(|| format!("put the restored store at {}", self.store.display()))
    }
}
