//! Containers as processes of this machine, for machines without a container engine.
//!
//! A container's command runs in a process group of its own, under a *shim*: a small process that
//! outlives the agent, writes the container's log, and keeps its exit code. Everything is kept in
//! files, by which an agent that is started later adopts what runs.
//!
//! There are no images. Programs are those of this machine; a few images have stand-ins, and
//! events say so. Where mount namespaces and overlays can be had, a pod sees the machine's files
//! through a copy of its own, with volumes and tokens at their usual paths; where not, volumes are
//! below the directory that `KUBEWRIGHT_POD_ROOT` names. The network is the machine's: each pod has
//! an address of its own in it, which it should listen at.

mod address;
mod attach;
mod exec;
mod jail;
mod place;
mod shim;
mod sockets;
mod stand_in;
#[cfg(test)]
mod tests;
mod tree;
pub(super) mod usage;
mod whom;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Pod, Probe};
use kubewright::{Cache, Clock};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::watch;
use tracing::{debug, warn};

use super::names::{self, hostname};
use super::supply::{Supply, Whereabouts, files_of, refuse_users, uid};
use super::{
    Attempt, Connection, Ended, FailedRun, Found, FoundContainer, Health, Id, Order, PrepareError,
    Pulled, Runtime, RuntimeError, StartError, Started, Streams, Target, Usage, growth,
};
use crate::dns::DOMAIN;
use crate::environment::{self, environment, expand, expand_all};
use crate::local::LocalAddresses;
use crate::probe;

use self::address::Addresses;
use self::jail::{Input, Jail, View};
use self::place::{Place, PodPlace};
pub use self::shim::main as shim;
use self::whom::Whom;

const NAME: &str = "process://";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where processes are kept, and how they are started.
#[derive(Debug, Clone)]
pub struct ProcessConfig {
    /// Holds all that is known of pods.
    pub directory: PathBuf,
    /// What else is the cluster's own, and hidden from pods where they have views of their own.
    pub hidden: Vec<PathBuf>,
    /// The command that calls [`shim`] with what is appended to it.
    pub shim: Vec<OsString>,
    /// Where pods find the API server, since addresses of Services lead nowhere here.
    pub server: Option<(String, u16)>,
    /// So much is kept of what a container writes, and as much again of what it wrote before.
    pub log_bytes_max: u64,
    /// Gives pods addresses of this machine, where that is possible; without, they are on loopback.
    pub locals: Option<Arc<LocalAddresses>>,
}

/// What runs containers as processes, after a look at what this machine can do and at what is left
/// of an earlier agent.
///
/// # Errors
/// If the directory cannot be used.
pub async fn process(
    config: ProcessConfig,
    cache: Cache,
    clock: Clock,
) -> io::Result<Arc<dyn Runtime>> {
    Ok(Arc::new(Process::new(config, cache, clock).await?))
}

/// Ends all that runs in a directory, after `grace` by force. What is known of it stays: who looks
/// there next finds containers that have ended.
pub async fn end_processes(directory: &Path, grace: Duration) {
    let mut places = Vec::new();
    for entry in std::fs::read_dir(directory.join("pods")).into_iter().flatten().flatten() {
        let pod = PodPlace::new(directory, &entry.file_name().to_string_lossy());
        let newest = pod.newest().into_iter();
        places.extend(newest.map(|(name, number)| pod.container(&name, number)));
    }
    futures::future::join_all(places.iter().map(|place| stop_at(place, grace))).await;
}

/// Runs containers as processes.
struct Process {
    config: ProcessConfig,
    supply: Supply,
    clock: Clock,
    jail: Option<Jail>,
    /// Whether containers end with their shims where there are no views.
    has_leash: bool,
    addresses: Addresses,
}

impl Process {
    async fn new(config: ProcessConfig, cache: Cache, clock: Clock) -> io::Result<Self> {
        let pods = config.directory.join("pods");
        std::fs::create_dir_all(&pods)?;
        let mut addresses = HashMap::new();
        for entry in std::fs::read_dir(&pods)? {
            let uid = entry?.file_name().to_string_lossy().into_owned();
            if let Some(address) = PodPlace::new(&config.directory, &uid).address() {
                addresses.insert(uid, address);
            }
        }
        let jail = Jail::find().await;
        debug!(is_jailed = jail.is_some(), "the process runtime begins");
        let (locals, ports) = (config.locals.clone(), address::free_ports());
        let addresses = Addresses::new(&config.directory, locals, addresses, ports);
        let supply = Supply::new(cache, clock.clone(), config.server.clone());
        let has_leash = jail::has_leash().await;
        Ok(Process { config, supply, clock, jail, has_leash, addresses })
    }

    fn pod(&self, pod: &Pod) -> PodPlace {
        PodPlace::new(&self.config.directory, uid(pod))
    }

    fn place(&self, id: &Id) -> Option<Place> {
        let mut parts = id.as_str().strip_prefix(NAME)?.split('/');
        let (uid, container, number) = (parts.next()?, parts.next()?, parts.next()?);
        let pod = PodPlace::new(&self.config.directory, uid);
        Some(pod.container(container, number.parse().ok()?))
    }

    /// Where a pod's programs listen.
    fn own(&self, pod: &Pod) -> IpAddr {
        let shown = self.addresses.of(uid(pod)).unwrap_or(Ipv4Addr::LOCALHOST);
        self.addresses.own(shown)
    }

    fn whereabouts(&self, pod: &Pod) -> Whereabouts {
        Whereabouts { addresses: vec![self.own(pod)], host: Some(Ipv4Addr::LOCALHOST.into()) }
    }

    /// What is to be run for a container.
    async fn order(&self, order: &Order) -> Result<shim::Order, StartError> {
        let Order { pod, container, number, .. } = order;
        let address = self.own(pod);
        let references = environment::references(container);
        let config = |error: kube::Error| StartError::Config(error.to_string());
        let sources = self.supply.sources(pod, references, &self.whereabouts(pod)).await;
        let mut sources = sources.map_err(config)?;
        let place = self.pod(pod);
        sources.files = files_of(container, |volume| place.volume(volume));
        let mut variables = BTreeMap::from([
            ("PATH".to_owned(), PATH.to_owned()),
            ("HOSTNAME".to_owned(), hostname(pod)),
            ("POD_IP".to_owned(), address.to_string()),
        ]);
        let there = place.container(&container.name, *number);
        std::fs::create_dir_all(there.directory()).map_err(create)?;
        let last_words = there.make_last_words().map_err(create)?;
        if self.jail.is_none() {
            let text = |path: &Path| path.to_string_lossy().into_owned();
            variables.insert("KUBEWRIGHT_POD_ROOT".to_owned(), text(&place.root()));
            variables.insert("KUBEWRIGHT_TERMINATION_LOG".to_owned(), text(&last_words));
        }
        let own = environment(pod, container, &sources);
        variables.extend(own.map_err(|missing| StartError::Config(missing.to_string()))?);
        let is_root = rustix::process::geteuid().is_root();
        let whom = Whom::of(pod, container, is_root).map_err(StartError::Config)?;
        variables.entry("HOME".to_owned()).or_insert_with(|| {
            let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
            // Who names another user gets it only as root, and in a view.
            let named = Some(&whom).filter(|_| is_root && self.jail.is_some());
            let agent = rustix::process::geteuid().as_raw();
            whom::home(&users, named.and_then(Whom::user).unwrap_or_else(|| agent.into()))
        });
        let command = self.command(container, address, &variables)?;
        let mut mounts = mounts(&place, pod, container, &variables).map_err(StartError::Config)?;
        let log_bytes_max = self.config.log_bytes_max;
        let policy = container.termination_message_policy.as_deref();
        let says_last_what_it_logs = policy == Some("FallbackToLogsOnError");
        let wanted = container.working_dir.clone().unwrap_or_default();
        let channel = shim::Channel::of(container);
        let input = match channel {
            shim::Channel { has_terminal: true, .. } => Input::Terminal,
            shim::Channel { has_input: true, .. } => Input::Pipe(there.input()),
            _ => Input::Nowhere,
        };
        if channel.has_terminal {
            variables.entry("TERM".to_owned()).or_insert_with(|| "xterm".to_owned());
        }
        let (command, directory, has_init) = match &self.jail {
            Some(jail) => {
                let file = |source, target: &str| jail::Mount {
                    source,
                    target: target.to_owned(),
                    is_read_only: false,
                };
                if !mounts.iter().any(|mount| mount.target == "/etc/hosts") {
                    let machine = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
                    let hosts = names::hosts(pod, &[address], DOMAIN, &machine);
                    mounts.push(file(place.hosts(&hosts).map_err(create)?, "/etc/hosts"));
                }
                let path = container.termination_message_path.as_deref().unwrap_or_default();
                if !path.is_empty() {
                    mounts.push(file(last_words, path));
                }
                let security = container.security_context.as_ref();
                let is = |flag: Option<bool>| flag == Some(true);
                let view = View {
                    mounts,
                    hidden: self.hidden(),
                    directory: wanted,
                    is_read_only: is(security.and_then(|it| it.read_only_root_filesystem)),
                    is_privileged: is(security.and_then(|it| it.privileged)),
                    has_machines_processes: is(pod.spec.as_ref().and_then(|it| it.host_pid)),
                    whom: whom.clone(),
                    input,
                };
                (jail.wrap(&there, &view, &command), there.directory(), jail.has_init(&view))
            }
            None => {
                for mount in &mounts {
                    place.expose(&mount.target, &mount.source).map_err(create)?;
                }
                let directory = place.working_directory(&wanted).map_err(create)?;
                let command = place.found(command, &mounts);
                (jail::without(&directory, self.has_leash, &input, &command), directory, false)
            }
        };
        Ok(shim::Order {
            command,
            variables,
            directory,
            log_bytes_max,
            whom,
            has_init,
            says_last_what_it_logs,
            channel,
        })
    }

    /// What pods are not to see: the keys of their cluster, and each other's files.
    fn hidden(&self) -> Vec<PathBuf> {
        let all = self.config.hidden.iter().chain([&self.config.directory]);
        // A link is not followed in the view, where it may lead elsewhere.
        let mut real: Vec<PathBuf> = all.filter_map(|path| path.canonicalize().ok()).collect();
        real.sort();
        // What is below a hidden one is not there any more.
        real.dedup_by(|path, above| path.starts_with(&*above));
        real
    }

    /// The program of a container and its arguments.
    fn command(
        &self,
        container: &Container,
        address: IpAddr,
        variables: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, StartError> {
        let known = |name: &str| variables.get(name).cloned();
        let expanded = |words: &Option<Vec<String>>| -> Vec<String> {
            words.iter().flatten().map(|word| expand(word, known)).collect()
        };
        let (mut command, arguments) = (expanded(&container.command), expanded(&container.args));
        if command.is_empty() {
            let image = container.image.as_deref().unwrap_or_default();
            let Some(stand_in) = stand_in::of(image) else {
                return Err(StartError::Pull(no_stand_in(image)));
            };
            let at = |port: u16| SocketAddr::new(address, self.addresses.port(port));
            command = match stand_in.program.words(at, container) {
                Some(words) => {
                    let shim = self.config.shim.iter();
                    let shim = shim.map(|word| word.to_string_lossy().into_owned());
                    shim.chain(words).collect()
                }
                None if arguments.is_empty() => vec!["sh".to_owned()],
                None => Vec::new(),
            };
        }
        command.extend(arguments);
        if command.is_empty() {
            return Err(StartError::Create("no command specified".to_owned()));
        }
        Ok(command)
    }

    /// Starts a shim, and says why the program does not begin, if it does not.
    async fn spawn(
        &self,
        place: &Place,
        order: &shim::Order,
    ) -> Result<Result<(), String>, StartError> {
        place.write_order(order).map_err(create)?;
        let (program, arguments) = self
            .config
            .shim
            .split_first()
            .ok_or_else(|| StartError::Create("no shim".to_owned()))?;
        let mut child = Command::new(program)
            .args(arguments)
            .arg("run")
            .arg(place.directory())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(create)?;
        let stdout = child.stdout.take().expect("it is piped");
        // It is not waited for: tokio takes note of its end, and the shim tells of the container's.
        let mut lines = BufReader::new(stdout).lines();
        while let Some(line) = lines.next_line().await.map_err(create)? {
            match line.split_once(' ') {
                Some(("started", _)) => return Ok(Ok(())),
                Some(("failed", why)) => return Ok(Err(why.to_owned())),
                _ => {}
            }
        }
        Ok(Err("the shim ended before it said anything".to_owned()))
    }

    /// The processes of a pod.
    fn processes(&self, pod: &Pod) -> Vec<i32> {
        let (place, all) = (self.pod(pod), tree::all());
        let places = place.newest().into_iter().map(|(name, run)| place.container(&name, run));
        let found: HashSet<i32> = places.flat_map(|place| processes_of(&place, &all)).collect();
        found.into_iter().collect()
    }

    /// Where a port of a pod may be: where its processes listen, and where it says that they do.
    /// Other programs of this machine are none of its own.
    fn places(&self, pod: &Pod, port: u16) -> Vec<SocketAddr> {
        let own = self.own(pod);
        let (lower, higher) = (port, self.addresses.port(port));
        let listening = sockets::of(&self.processes(pod)).into_iter();
        let listening = listening.filter(|place| [lower, higher].contains(&place.port()));
        let mut places: Vec<SocketAddr> = listening
            .map(|place| match place.ip().is_unspecified() {
                true => SocketAddr::new(own, place.port()),
                false => place,
            })
            .collect();
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let mut named = containers.flat_map(|it| it.ports.iter().flatten());
        let has_address = self.addresses.of(uid(pod)).is_some();
        if has_address && named.any(|it| it.container_port == i32::from(port)) {
            places.push(SocketAddr::new(own, higher));
        }
        places
    }

    /// Ends what is left of a pod, and removes it.
    async fn remove(&self, uid: &str) {
        let place = PodPlace::new(&self.config.directory, uid);
        for (name, number) in place.newest() {
            stop_at(&place.container(&name, number), Duration::ZERO).await;
        }
        if let Err(error) = place.remove() {
            warn!(pod = uid, %error, "what is left of a pod was not removed");
        }
        self.addresses.take_back(uid);
        self.supply.forget(uid);
    }
}

impl Runtime for Process {
    fn version(&self) -> String {
        format!("{NAME}{}", env!("CARGO_PKG_VERSION"))
    }

    fn adopt<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Found> {
        Box::pin(async move {
            let place = self.pod(pod);
            let mut found = Found {
                addresses: place.address().map(|address| vec![address.into()]),
                ..Found::default()
            };
            for (name, number) in place.newest() {
                let there = place.container(&name, number);
                let Some(started) = there.started() else { continue };
                let ended = match is_alive(&there) {
                    true => None,
                    false => Some(there.ended()),
                };
                found.containers.push(FoundContainer { name, number, started, ended });
            }
            found
        })
    }

    fn prepare<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Result<Vec<IpAddr>, PrepareError>> {
        Box::pin(async move {
            refuse_users(pod)?;
            let given = self.addresses.give(uid(pod));
            let address = given.map_err(|error| PrepareError::Sandbox(error.to_string()))?;
            let failed = |error: io::Error| PrepareError::Sandbox(error.to_string());
            self.pod(pod).make(address).map_err(failed)?;
            let place = self.pod(pod);
            self.supply.fill(pod, &self.whereabouts(pod), |name| place.volume(name)).await?;
            Ok(vec![address.into()])
        })
    }

    fn tend(&self, now: watch::Receiver<Arc<Pod>>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let pod = Arc::clone(&now.borrow());
            let place = self.pod(&pod);
            self.supply.tend(now, &self.whereabouts(&pod), |name| place.volume(name)).await;
        })
    }

    fn news(&self, pod: &Pod) -> BoxStream<'static, ()> {
        self.supply.news(pod)
    }

    fn pull<'a>(
        &'a self,
        _: &'a Pod,
        container: &'a Container,
        _: &'a (dyn Fn() + Send + Sync),
    ) -> BoxFuture<'a, Result<Pulled, StartError>> {
        let image = container.image.as_deref().unwrap_or_default();
        let has_command = container.command.as_ref().is_some_and(|command| !command.is_empty());
        let remark = match stand_in::of(image) {
            Some(stand_in) => Ok(stand_in.remark(image)),
            None if has_command => {
                Ok(format!("No image is used: the command of {image:?} is run as a process"))
            }
            None => Err(StartError::Pull(no_stand_in(image))),
        };
        let pulled = remark.map(|remark| Pulled { fetched: None, remark: Some(remark) });
        std::future::ready(pulled).boxed()
    }

    fn start(&self, order: Order) -> BoxFuture<'_, Result<Started, StartError>> {
        Box::pin(async move {
            let job = self.order(&order).await?;
            let (pod, name) = (self.pod(&order.pod), &order.container.name);
            let is_over = |place: &Place| !is_alive(place);
            if let Err(error) = pod.remove_older(name, order.number, is_over) {
                warn!(pod = uid(&order.pod), %error, "old runs of a container were not removed");
            }
            let place = pod.container(name, order.number);
            place.reserve_started().map_err(create)?;
            let begun = self.spawn(&place, &job).await?;
            let id = format!("{NAME}{}/{}/{}", uid(&order.pod), order.container.name, order.number);
            let image_id = order.container.image.clone().unwrap_or_default();
            let (id, now) = (Id::new(id), self.clock.now());
            let Err(why) = begun else {
                let started = Started { id, image_id, at: now };
                place.write_started(&started).map_err(create)?;
                return Ok(started);
            };
            // It began at no time, which is how runtimes of containers tell of it.
            let started = Started { id, image_id, at: Timestamp::UNIX_EPOCH };
            let ended = Ended::before_it_began(why.clone(), now);
            let exit = shim::Exit { code: ended.code, at: now, failure: Some(why.clone()) };
            place.write_exit(&exit).and_then(|()| place.write_started(&started)).map_err(create)?;
            Err(StartError::Run { why, run: Some(Box::new(FailedRun { started, ended })) })
        })
    }

    fn wait<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            match self.place(id) {
                Some(place) => {
                    until_ended(&place).await;
                    place.ended()
                }
                None => Ended::with_code(137, self.clock.now()),
            }
        })
    }

    fn stop<'a>(&'a self, id: &'a Id, grace: Duration) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            let Some(place) = self.place(id) else { return Ok(()) };
            stop_at(&place, grace).await;
            Ok(())
        })
    }

    fn sweep<'a>(&'a self, known: &'a HashSet<String>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let pods = std::fs::read_dir(self.config.directory.join("pods"));
            for entry in pods.into_iter().flatten().flatten() {
                let uid = entry.file_name().to_string_lossy().into_owned();
                if !known.contains(&uid) {
                    self.remove(&uid).await;
                }
            }
            self.addresses.sweep();
        })
    }

    fn release<'a>(&'a self, _: &'a Pod) -> BoxFuture<'a, Result<(), RuntimeError>> {
        // Its address stays its own until it is forgotten: others may still believe in it.
        std::future::ready(Ok(())).boxed()
    }

    fn forget<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, ()> {
        Box::pin(self.remove(uid(pod)))
    }

    fn probe<'a>(&'a self, target: &'a Target, probe: &'a Probe) -> BoxFuture<'a, Health> {
        Box::pin(probe::run(self, target, probe))
    }

    fn call<'a>(
        &'a self,
        target: &'a Target,
        get: &'a HTTPGetAction,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(probe::call(self, target, get))
    }

    fn exec<'a>(
        &'a self,
        id: &'a Id,
        command: &'a [String],
        streams: Streams,
    ) -> BoxFuture<'a, Result<i32, RuntimeError>> {
        Box::pin(async move {
            let place = self.place(id).filter(is_alive);
            let place =
                place.ok_or_else(|| RuntimeError::NotFound(format!("{id} does not run")))?;
            exec::run(&place, self.jail.as_ref(), command, streams).await
        })
    }

    fn attach<'a>(
        &'a self,
        id: &'a Id,
        streams: Streams,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            let place = self.place(id).filter(is_alive);
            let place =
                place.ok_or_else(|| RuntimeError::NotFound(format!("{id} does not run")))?;
            attach::run(&place, streams).await
        })
    }

    fn connect<'a>(
        &'a self,
        pod: &'a Pod,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, RuntimeError>> {
        Box::pin(async move {
            for place in self.places(pod, port) {
                if let Ok(stream) = TcpStream::connect(place).await {
                    return Ok(Box::new(stream) as Box<dyn Connection>);
                }
            }
            Err(RuntimeError::Failed(format!("failed to connect to port {port}: refused")))
        })
    }

    fn logs<'a>(
        &'a self,
        attempt: &'a Attempt,
        follow: bool,
    ) -> BoxFuture<'a, Result<BoxStream<'static, io::Result<Vec<u8>>>, RuntimeError>> {
        let pod = PodPlace::new(&self.config.directory, &attempt.pod);
        let place = pod.container(&attempt.container, attempt.number);
        let stream = growth::follow(place.log(), place.exit_file(), follow);
        std::future::ready(Ok(stream)).boxed()
    }

    fn usage<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Option<Usage>> {
        let place = self.place(id);
        let used = place.and_then(|place| usage::of(processes_of(&place, &tree::all())));
        std::future::ready(used).boxed()
    }

    fn machine_usage(&self) -> Option<Usage> {
        usage::of_machine()
    }

    fn reach(&self, shown: SocketAddr) -> SocketAddr {
        self.addresses.reach(shown)
    }
}

/// The processes of a container, `all` being those of this machine; none if it has ended.
fn processes_of(place: &Place, all: &[(i32, i32)]) -> HashSet<i32> {
    let Some(pid) = place.pid().filter(|_| is_alive(place)) else { return HashSet::new() };
    // What left its parents belongs to the shim, which is above all others.
    let shim = all.iter().find(|(own, _)| *own == pid).map(|(_, parent)| *parent);
    let mut found: HashSet<i32> = tree::descendants(shim.unwrap_or(pid), all).into_iter().collect();
    // What others started in it is known by the processes that it sees.
    let spaces: HashSet<PathBuf> = found.iter().filter_map(|pid| tree::namespace(*pid)).collect();
    let agents = tree::namespace(rustix::process::getpid().as_raw_nonzero().get());
    let is_own = |pid: &i32| {
        let space = tree::namespace(*pid).filter(|space| Some(space) != agents.as_ref());
        space.is_some_and(|space| spaces.contains(&space))
    };
    found.extend(all.iter().map(|(pid, _)| *pid).filter(is_own));
    found
}

async fn stop_at(place: &Place, grace: Duration) {
    // A number that nobody holds any more may be another's by now.
    let Some(pid) = place.pid().filter(|_| is_alive(place)) else { return };
    // It may have ended meanwhile.
    let Some(group) = Pid::from_raw(pid) else { return };
    if place.order().is_ok_and(|order| order.channel.has_terminal) {
        // Who has a terminal to itself is in a group of its own, and who waits for it in this one.
        for pid in tree::descendants(pid, &tree::all()).into_iter().filter_map(Pid::from_raw) {
            if rustix::process::getpgid(Some(pid)) != Ok(group) {
                let _ = rustix::process::kill_process(pid, Signal::TERM);
            }
        }
    } else {
        let _ = rustix::process::kill_process_group(group, Signal::TERM);
    }
    if tokio::time::timeout(grace, until_ended(place)).await.is_err() {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        until_ended(place).await;
    }
}

/// Whether a container's shim lives: it holds the pipe open for as long as it does.
fn is_alive(place: &Place) -> bool {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(pipe) = rustix::fs::open(place.alive(), flags, Mode::empty()) else { return false };
    let mut nothing = [0_u8; 1];
    // Nothing is ever written: what can be read at once is the end.
    rustix::io::read(&pipe, &mut nothing).is_err()
}

async fn until_ended(place: &Place) {
    let Ok(mut alive) = pipe::OpenOptions::new().open_receiver(place.alive()) else { return };
    // Who opens a pipe that was let go of before is not told so.
    if is_alive(place) {
        let mut nothing = [0_u8; 1];
        while let Ok(1..) = alive.read(&mut nothing).await {}
    }
}

/// Where volumes are to be seen in a container.
///
/// # Errors
/// Which of them cannot be.
fn mounts(
    place: &PodPlace,
    pod: &Pod,
    container: &Container,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<jail::Mount>, String> {
    let mounts = container.volume_mounts.iter().flatten().map(|mount| {
        crate::volume::refuse_recursive(mount)?;
        let path = match mount.sub_path_expr.as_deref().filter(|it| !it.is_empty()) {
            Some(expression) => expand_all(expression, variables)?,
            None => mount.sub_path.clone().unwrap_or_default(),
        };
        let source = match path.is_empty() {
            true => Ok(place.volume(&mount.name)),
            false => crate::volume::part(&place.volume(&mount.name), &path).map(|part| part.path),
        };
        let refused = |error: io::Error| {
            let (volume, name) = (&mount.name, &container.name);
            format!("failed to prepare subPath for volumeMount {volume:?} of container {name:?}: {error}")
        };
        let source = source.map_err(refused)?;
        let target = format!("/{}", mount.mount_path.trim_start_matches('/'));
        let is_read_only =
            mount.read_only == Some(true) || crate::volume::is_read_only(pod, &mount.name);
        Ok(jail::Mount { source, target, is_read_only })
    });
    let mut mounts = mounts.collect::<Result<Vec<_>, String>>()?;
    // What is in another one is mounted after it.
    mounts.sort_by(|one, other| one.target.cmp(&other.target));
    Ok(mounts)
}

fn no_stand_in(image: &str) -> String {
    format!(
        "the process runtime has no images and no stand-in for {image:?}: \
         give the container a command of this machine"
    )
}

fn create(error: io::Error) -> StartError {
    StartError::Create(error.to_string())
}
