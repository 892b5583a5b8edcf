//! Containers as containers: by a runtime of this machine that speaks CRI, such as containerd.
//!
//! A pod has a sandbox, made by the runtime with the network that it is configured for; containers
//! run in it. The runtime remembers them: by labels, an agent that is started later finds its own
//! among those of others. What the runtime does not keep (volumes, logs, last words) is in a
//! directory of the agent's.

mod api;
mod container;
mod create;
mod credentials;
mod end;
mod found;
mod image;
mod load;
mod name;
mod place;
mod resources;
mod sandbox;
mod security;
mod sightings;
mod stream;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerImage, HTTPGetAction, Pod, Probe, ResourceRequirements,
};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::api::Api as Objects;
use kubewright::{Cache, Clock};
use tokio::sync::watch;
use tonic::{Code, Status};
use tracing::{debug, warn};

use self::api::{
    Api, AttachRequest, ContainerFilter, ContainerState, ContainerStatsRequest, ContainerStatus,
    ContainerStatusRequest, DnsConfig, ExecRequest, ExecSyncRequest, ListContainersRequest,
    ListImagesRequest, ListPodSandboxRequest, PodSandbox, PodSandboxFilter, PodSandboxState,
    PodSandboxStatusRequest, PortForwardRequest, RemovePodSandboxRequest,
    ReopenContainerLogRequest, RunPodSandboxRequest, StartContainerRequest, StatusRequest,
    StopContainerRequest, StopPodSandboxRequest, UpdateContainerResourcesRequest, VersionRequest,
};
pub use self::end::{end_containers, unmount_volumes};
use self::found::{lost, timestamp};
pub use self::load::{LoadError, load_images};
use self::place::Place;
use self::sandbox::Resolver;
use self::sightings::Sightings;
use super::names::is_on_host_network;
use super::process::usage;
use super::supply::{Supply, Whereabouts, refuse_users, uid};
use super::{
    Attempt, Connection, Ended, FailedRun, Found, Health, Id, Order, PrepareError, Pulled, Runtime,
    RuntimeError, StartError, Started, Streams, Target, Unwell, Usage, growth,
};
use crate::dns::{DOMAIN, ResolvConf, host_resolv_conf};
use crate::probe;

/// Where containers are run, and how.
#[derive(Debug, Clone)]
pub struct CriConfig {
    /// Where the runtime listens.
    pub socket: PathBuf,
    /// Holds what the runtime does not keep of pods.
    pub directory: PathBuf,
    /// Where pods find the API server, if addresses of Services lead nowhere.
    pub server: Option<(String, u16)>,
    /// The address of the node.
    pub host: IpAddr,
    /// What answers for names of Services in pods, if anything does.
    pub dns: Option<IpAddr>,
    /// So much is kept of what a container writes, and as much again of what it wrote before.
    pub log_bytes_max: u64,
}

/// Why containers cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum CriError {
    /// Start the runtime, or name another socket.
    #[error("find a container runtime at {}: no such socket", socket.display())]
    Missing { socket: PathBuf },
    #[error("speak CRI at {}", socket.display())]
    Connect { socket: PathBuf, source: tonic::transport::Error },
    /// It speaks, but not CRI v1, or is broken.
    #[error("ask the container runtime at {}: {why}", socket.display())]
    Refused { socket: PathBuf, why: String },
    /// Configure its network.
    #[error("run pods with the runtime at {}: {why}", socket.display())]
    NotReady { socket: PathBuf, why: String },
    #[error("use {}", directory.display())]
    Directory { directory: PathBuf, source: std::io::Error },
}

/// What runs containers by a runtime that speaks CRI.
///
/// # Errors
/// If there is none at the socket, or it is not ready.
pub async fn cri(
    config: CriConfig,
    cache: Cache,
    clock: Clock,
) -> Result<Arc<dyn Runtime>, CriError> {
    Ok(Arc::new(Cri::new(config, cache, clock).await?))
}

struct Cri {
    api: Api,
    /// `containerd` or the like, and its version.
    name: String,
    version: String,
    config: CriConfig,
    place: Place,
    owner: String,
    resolver: Resolver,
    memory_bytes: u64,
    supply: Supply,
    sightings: Sightings,
}

impl Cri {
    async fn new(config: CriConfig, cache: Cache, clock: Clock) -> Result<Self, CriError> {
        let socket = || config.socket.clone();
        if !config.socket.exists() {
            return Err(CriError::Missing { socket: socket() });
        }
        let api = Api::connect(&config.socket).await;
        let mut api = api.map_err(|source| CriError::Connect { socket: socket(), source })?;
        let refused =
            |status: Status| CriError::Refused { socket: socket(), why: message(&status) };
        let version = api.runtime.version(VersionRequest::default()).await.map_err(refused)?;
        let version = version.into_inner();
        let status = api.runtime.status(StatusRequest::default()).await.map_err(refused)?;
        if let Some(condition) = first_unmet(status.into_inner()) {
            let why = format!("{}: {}", condition.reason, condition.message);
            return Err(CriError::NotReady { socket: socket(), why });
        }
        let place = Place::new(config.directory.clone());
        place.keep_socket(&config.socket).map_err(|source| CriError::Directory {
            directory: config.directory.clone(),
            source,
        })?;
        let resolver =
            Resolver { cluster: config.dns, domain: DOMAIN.to_owned(), host: host_resolver() };
        let supply = Supply::new(cache, clock, config.server.clone()).mounting();
        Ok(Cri {
            name: version.runtime_name,
            version: version.runtime_version,
            owner: place.owner(),
            place,
            resolver,
            memory_bytes: rustix::system::sysinfo().totalram,
            supply,
            sightings: Sightings::default(),
            api,
            config,
        })
    }

    /// As the API calls a container that the runtime calls so.
    fn id(&self, own: &str) -> Id {
        Id::new(format!("{}://{own}", self.name))
    }

    fn whereabouts(&self, addresses: &[IpAddr]) -> Whereabouts {
        Whereabouts { addresses: addresses.to_vec(), host: Some(self.config.host) }
    }

    /// The sandboxes of a pod, the newest first.
    async fn sandboxes(&self, uid: &str) -> Result<Vec<PodSandbox>, Status> {
        let filter = PodSandboxFilter { label_selector: self.selector(uid), ..Default::default() };
        let request = ListPodSandboxRequest { filter: Some(filter) };
        let mut found =
            self.api.runtime.clone().list_pod_sandbox(request).await?.into_inner().items;
        found.sort_by_key(|sandbox| std::cmp::Reverse(attempt_of(sandbox)));
        Ok(found)
    }

    fn selector(&self, uid: &str) -> HashMap<String, String> {
        let labels = [(sandbox::POD_UID, uid), (sandbox::OWNER, self.owner.as_str())];
        labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    /// The containers of a pod.
    async fn containers(&self, uid: &str) -> Result<Vec<api::Container>, Status> {
        let filter = ContainerFilter { label_selector: self.selector(uid), ..Default::default() };
        let request = ListContainersRequest { filter: Some(filter) };
        Ok(self.api.runtime.clone().list_containers(request).await?.into_inner().containers)
    }

    async fn status(&self, own: &str) -> Result<ContainerStatus, Status> {
        let request = ContainerStatusRequest { container_id: own.to_owned(), verbose: false };
        let answer = self.api.runtime.clone().container_status(request).await?.into_inner();
        answer.status.ok_or_else(|| Status::not_found(format!("container {own:?}")))
    }

    /// The addresses of a sandbox.
    async fn addresses(&self, pod: &Pod, sandbox: &str) -> Result<Vec<IpAddr>, Status> {
        if is_on_host_network(pod) {
            return Ok(vec![self.config.host]);
        }
        let request =
            PodSandboxStatusRequest { pod_sandbox_id: sandbox.to_owned(), verbose: false };
        let answer = self.api.runtime.clone().pod_sandbox_status(request).await?.into_inner();
        let network = answer.status.and_then(|status| status.network).unwrap_or_default();
        let more = network.additional_ips.into_iter().map(|it| it.ip);
        let all = std::iter::once(network.ip).chain(more);
        Ok(all.filter_map(|address| address.parse().ok()).collect())
    }

    /// The sandbox of a pod, a new one if there is none that is ready.
    async fn sandbox(&self, pod: &Pod) -> Result<String, Status> {
        let found = self.sandboxes(uid(pod)).await?;
        if let Some(ready) = found.iter().find(|sandbox| is_ready(sandbox)) {
            return Ok(ready.id.clone());
        }
        // What is left of those before has addresses that others may need.
        for gone in &found {
            let request = StopPodSandboxRequest { pod_sandbox_id: gone.id.clone() };
            self.api.runtime.clone().stop_pod_sandbox(request).await?;
        }
        let attempt = found.first().map_or(0, |newest| attempt_of(newest) + 1);
        let handler = self.handler(pod).await?;
        let logs = self.place.logs(pod);
        let config = sandbox::config(pod, attempt, &self.owner, &logs, &self.resolver);
        let request = RunPodSandboxRequest { config: Some(config), runtime_handler: handler };
        let made = self.api.runtime.clone().run_pod_sandbox(request).await?.into_inner();
        Ok(made.pod_sandbox_id)
    }

    /// What the runtime calls the kind of sandbox that a pod wants.
    async fn handler(&self, pod: &Pod) -> Result<String, Status> {
        let class = pod.spec.as_ref().and_then(|spec| spec.runtime_class_name.as_deref());
        let Some(class) = class.filter(|class| !class.is_empty()) else { return Ok(String::new()) };
        let classes: Objects<RuntimeClass> = Objects::all(self.supply.client());
        let found = classes.get(class).await;
        found.map(|class| class.handler).map_err(|error| {
            Status::failed_precondition(format!("failed to get RuntimeClass {class:?}: {error}"))
        })
    }

    /// How much memory a container uses, what it could do without included.
    async fn memory(&self, own: &str) -> Result<Option<u64>, Status> {
        let request = ContainerStatsRequest { container_id: own.to_owned() };
        let answer = self.api.runtime.clone().container_stats(request).await?.into_inner();
        let memory = answer.stats.and_then(|stats| stats.memory);
        Ok(memory.and_then(|memory| memory.usage_bytes).map(|usage| usage.value))
    }

    /// Puts a log aside that has grown too long.
    async fn rotate(&self, status: &ContainerStatus) {
        let log = PathBuf::from(&status.log_path);
        let length = std::fs::metadata(&log).map_or(0, |metadata| metadata.len());
        if length <= self.config.log_bytes_max || std::fs::rename(&log, place::older(&log)).is_err()
        {
            return;
        }
        let request = ReopenContainerLogRequest { container_id: status.id.clone() };
        if let Err(status) = self.api.runtime.clone().reopen_container_log(request).await {
            warn!(log = %log.display(), why = message(&status), "a log was not begun anew");
        }
    }

    /// Takes away all that the runtime has of a pod.
    async fn remove(&self, uid: &str) {
        let removed = async {
            for sandbox in self.sandboxes(uid).await? {
                let pod_sandbox_id = sandbox.id;
                let mut runtime = self.api.runtime.clone();
                let stop = StopPodSandboxRequest { pod_sandbox_id: pod_sandbox_id.clone() };
                runtime.stop_pod_sandbox(stop).await?;
                runtime.remove_pod_sandbox(RemovePodSandboxRequest { pod_sandbox_id }).await?;
            }
            Ok::<(), Status>(())
        };
        if let Err(status) = removed.await {
            warn!(pod = uid, why = message(&status), "what is left of a pod was not removed");
        }
        if let Err(error) = self.place.remove(uid) {
            warn!(pod = uid, %error, "what is left of a pod was not removed");
        }
        self.supply.forget(uid);
    }
}

impl Runtime for Cri {
    fn version(&self) -> String {
        format!("{}://{}", self.name, self.version)
    }

    fn adopt<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Found> {
        Box::pin(async move {
            // As long as it takes: what is not found would be started a second time.
            loop {
                match self.find(pod).await {
                    Ok(found) => return found,
                    Err(status) => {
                        warn!(why = message(&status), "it is not known what runs of a pod");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
            }
        })
    }

    fn sweep<'a>(&'a self, known: &'a HashSet<String>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let label = HashMap::from([(sandbox::OWNER.to_owned(), self.owner.clone())]);
            let filter = PodSandboxFilter { label_selector: label, ..Default::default() };
            let request = ListPodSandboxRequest { filter: Some(filter) };
            let found = self.api.runtime.clone().list_pod_sandbox(request).await;
            let found = match found {
                Ok(found) => found.into_inner().items,
                Err(status) => {
                    warn!(why = message(&status), "pods of before are not looked for");
                    return;
                }
            };
            let uids = found.into_iter().filter_map(|it| it.metadata).map(|it| it.uid);
            let uids: HashSet<String> = uids.chain(self.place.pods()).collect();
            let left: Vec<String> = uids.into_iter().filter(|uid| !known.contains(uid)).collect();
            futures::future::join_all(left.iter().map(|uid| self.remove(uid))).await;
        })
    }

    fn prepare<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Result<Vec<IpAddr>, PrepareError>> {
        Box::pin(async move {
            refuse_users(pod)?;
            let failed = |error: std::io::Error| PrepareError::Sandbox(error.to_string());
            self.place.make(pod).map_err(failed)?;
            // Addresses are known later; volumes that show them are filled again.
            let (uid, nowhere) = (uid(pod), self.whereabouts(&[]));
            self.supply.fill(pod, &nowhere, |name| self.place.volume(uid, name)).await?;
            let refused = |status: Status| PrepareError::Sandbox(message(&status));
            let sandbox = self.sandbox(pod).await.map_err(refused)?;
            let addresses = self.addresses(pod, &sandbox).await.map_err(refused)?;
            let here = self.whereabouts(&addresses);
            self.supply.fill(pod, &here, |name| self.place.volume(uid, name)).await?;
            Ok(addresses)
        })
    }

    fn tend(&self, now: watch::Receiver<Arc<Pod>>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let pod = Arc::clone(&now.borrow());
            let addresses = self.find(&pod).await.ok().and_then(|found| found.addresses);
            let here = self.whereabouts(&addresses.unwrap_or_default());
            self.supply.tend(now, &here, |name| self.place.volume(uid(&pod), name)).await;
        })
    }

    fn news(&self, pod: &Pod) -> BoxStream<'static, ()> {
        self.supply.news(pod)
    }

    fn lose<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let ready = loop {
                match self.sandboxes(uid(pod)).await {
                    Ok(found) => break found.into_iter().find(is_ready),
                    Err(status) => {
                        debug!(why = message(&status), "a sandbox is not seen");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
            };
            let Some(ready) = ready else { return };
            while self.sightings.is_ready(&self.api, &ready.id).await {}
        })
    }

    fn pull<'a>(
        &'a self,
        pod: &'a Pod,
        container: &'a Container,
        tell: &'a (dyn Fn() + Send + Sync),
    ) -> BoxFuture<'a, Result<Pulled, StartError>> {
        Box::pin(async move {
            let logs = self.place.logs(pod);
            let sandbox = sandbox::config(pod, 0, &self.owner, &logs, &self.resolver);
            let names = credentials::secrets(pod);
            let references = (Vec::new(), names.clone());
            let sources = self.supply.sources(pod, references, &self.whereabouts(&[])).await;
            let sources = sources.map_err(|error| StartError::Pull(error.to_string()))?;
            let secrets = names.iter().filter_map(|name| sources.secrets.get(name));
            let image = container.image.as_deref().unwrap_or_default();
            let auths = credentials::find(image, secrets);
            image::ensure(&self.api, container, sandbox, auths, tell).await
        })
    }

    fn start(&self, order: Order) -> BoxFuture<'_, Result<Started, StartError>> {
        Box::pin(async move {
            let own = self.create(&order).await?;
            let request = StartContainerRequest { container_id: own.clone() };
            let failure = self.api.runtime.clone().start_container(request).await.err();
            let status = self.status(&own).await;
            let Some(failure) = failure else {
                let run = |status: Status| StartError::Run { why: message(&status), run: None };
                return Ok(self.started(&status.map_err(run)?));
            };
            let exited = status.ok().filter(|it| it.state() == ContainerState::ContainerExited);
            let run = exited.map(|status| {
                Box::new(FailedRun { started: self.started(&status), ended: self.ended(&status) })
            });
            Err(StartError::Run { why: failure.message().to_owned(), run })
        })
    }

    fn wait<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            let Some(own) = own(id) else { return lost(Timestamp::UNIX_EPOCH) };
            let mut since = Timestamp::UNIX_EPOCH;
            loop {
                let is_running = self.sightings.is_running(&self.api, own).await;
                match self.status(own).await {
                    Ok(status) if status.state() == ContainerState::ContainerExited => {
                        return self.ended(&status);
                    }
                    Ok(status) => {
                        since = timestamp(status.started_at);
                        self.rotate(&status).await;
                    }
                    // Somebody removed it behind our back.
                    Err(status) if status.code() == Code::NotFound && !is_running => {
                        return lost(since);
                    }
                    Err(status) => debug!(%id, why = message(&status), "a container is not seen"),
                }
            }
        })
    }

    fn stop<'a>(&'a self, id: &'a Id, grace: Duration) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            let Some(own) = own(id) else { return Ok(()) };
            let timeout = i64::try_from(grace.as_secs_f64().ceil() as u64).unwrap_or(i64::MAX);
            let request = StopContainerRequest { container_id: own.to_owned(), timeout };
            self.api.runtime.clone().stop_container(request).await.map_err(failed)?;
            self.sightings.hurry();
            Ok(())
        })
    }

    fn resize<'a>(
        &'a self,
        id: &'a Id,
        pod: &'a Pod,
        container: &'a Container,
        before: &'a ResourceRequirements,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            let container_id = own(id).unwrap_or_default().to_owned();
            let limits = resources::limits(pod, container, self.memory_bytes);
            let given = Container { resources: Some(before.clone()), ..container.clone() };
            let given = resources::limits(pod, &given, self.memory_bytes);
            // The kernel would end the container rather than refuse.
            if let Some(limit) = resources::smaller_memory(&given, &limits) {
                let used = self.memory(&container_id).await.map_err(failed)?;
                resources::is_enough(&container.name, limit, used).map_err(RuntimeError::Failed)?;
            }
            let request = UpdateContainerResourcesRequest { container_id, linux: Some(limits) };
            let resized = self.api.runtime.clone().update_container_resources(request).await;
            resized.map(drop).map_err(failed)
        })
    }

    fn release<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            for sandbox in self.sandboxes(uid(pod)).await.map_err(failed)? {
                let request = StopPodSandboxRequest { pod_sandbox_id: sandbox.id };
                self.api.runtime.clone().stop_pod_sandbox(request).await.map_err(failed)?;
            }
            let left = |error: std::io::Error| RuntimeError::Failed(error.to_string());
            self.place.unmount(uid(pod)).map_err(left)
        })
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
            let request = ExecRequest {
                container_id: own(id).unwrap_or_default().to_owned(),
                cmd: command.to_vec(),
                tty: streams.terminal.is_some(),
                stdin: streams.stdin.is_some(),
                stdout: streams.stdout.is_some(),
                stderr: streams.stderr.is_some(),
            };
            let answer = self.api.runtime.clone().exec(request).await.map_err(failed)?;
            stream::command(&answer.into_inner().url, streams).await
        })
    }

    fn ask<'a>(
        &'a self,
        id: &'a Id,
        command: &'a [String],
        timeout: Option<Duration>,
    ) -> BoxFuture<'a, Result<(i32, Vec<u8>), RuntimeError>> {
        Box::pin(async move {
            let request = ExecSyncRequest {
                container_id: own(id).unwrap_or_default().to_owned(),
                cmd: command.to_vec(),
                timeout: timeout.map_or(0, |it| i64::try_from(it.as_secs()).unwrap_or(i64::MAX)),
            };
            let answer = self.api.runtime.clone().exec_sync(request).await.map_err(failed)?;
            let api::ExecSyncResponse { mut stdout, stderr, exit_code } = answer.into_inner();
            stdout.extend(stderr);
            Ok((exit_code, stdout))
        })
    }

    fn attach<'a>(
        &'a self,
        id: &'a Id,
        streams: Streams,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move {
            let request = AttachRequest {
                container_id: own(id).unwrap_or_default().to_owned(),
                stdin: streams.stdin.is_some(),
                tty: streams.terminal.is_some(),
                stdout: streams.stdout.is_some(),
                stderr: streams.stderr.is_some(),
            };
            let answer = self.api.runtime.clone().attach(request).await.map_err(failed)?;
            stream::command(&answer.into_inner().url, streams).await.map(drop)
        })
    }

    fn connect<'a>(
        &'a self,
        pod: &'a Pod,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, RuntimeError>> {
        Box::pin(async move {
            let found = self.sandboxes(uid(pod)).await.map_err(failed)?;
            let Some(sandbox) = found.into_iter().find(is_ready) else {
                return Err(RuntimeError::NotFound("the pod has no sandbox".to_owned()));
            };
            let request =
                PortForwardRequest { pod_sandbox_id: sandbox.id, port: vec![port.into()] };
            let answer = self.api.runtime.clone().port_forward(request).await.map_err(failed)?;
            stream::forward(&answer.into_inner().url, port).await
        })
    }

    fn logs<'a>(
        &'a self,
        attempt: &'a Attempt,
        follow: bool,
    ) -> BoxFuture<'a, Result<BoxStream<'static, std::io::Result<Vec<u8>>>, RuntimeError>> {
        let log = self.place.log(&attempt.pod, &attempt.container, attempt.number);
        let stream = match log {
            Some(log) => growth::follow(log.clone(), place::ended(&log), follow),
            None => futures::stream::empty().boxed(),
        };
        std::future::ready(Ok(stream)).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Result<(), Unwell>> {
        Box::pin(async move {
            let answer = self.api.runtime.clone().status(StatusRequest::default()).await;
            let answer = answer.map_err(|status| {
                debug!(why = message(&status), "the container runtime does not answer");
                Unwell::Silent
            })?;
            let Some(unmet) = first_unmet(answer.into_inner()) else { return Ok(()) };
            let api::RuntimeCondition { r#type: kind, reason, message, .. } = unmet;
            let part = if kind == "NetworkReady" { "network " } else { "" };
            Err(Unwell::NotReady(format!(
                "{part}not ready: {kind}=false reason:{reason} message:{message}"
            )))
        })
    }

    fn images(&self) -> BoxFuture<'_, Vec<ContainerImage>> {
        Box::pin(async move {
            match self.api.images.clone().list_images(ListImagesRequest::default()).await {
                Ok(found) => image::shown(found.into_inner().images),
                Err(status) => {
                    debug!(why = message(&status), "it is not known which images are there");
                    Vec::new()
                }
            }
        })
    }

    fn usage<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Option<Usage>> {
        Box::pin(async move {
            let request = ContainerStatsRequest { container_id: own(id)?.to_owned() };
            let answer = self.api.runtime.clone().container_stats(request).await.ok()?;
            let stats = answer.into_inner().stats?;
            let cpu = stats.cpu?.usage_core_nano_seconds?.value;
            let memory = stats.memory?.working_set_bytes?.value;
            Some(Usage { cpu: Duration::from_nanos(cpu), memory })
        })
    }

    fn machine_usage(&self) -> Option<Usage> {
        usage::of_machine()
    }
}

/// The first of the conditions under which pods can be run that is not met.
fn first_unmet(answer: api::StatusResponse) -> Option<api::RuntimeCondition> {
    let conditions = answer.status.unwrap_or_default().conditions;
    conditions.into_iter().find(|condition| !condition.status)
}

/// As the runtime itself calls a container.
fn own(id: &Id) -> Option<&str> {
    Some(id.as_str().split_once("://")?.1)
}

fn name_of(container: &api::Container) -> &str {
    container.metadata.as_ref().map_or("", |metadata| metadata.name.as_str())
}

fn attempt_of(sandbox: &PodSandbox) -> u32 {
    sandbox.metadata.as_ref().map_or(0, |metadata| metadata.attempt)
}

fn is_ready(sandbox: &PodSandbox) -> bool {
    sandbox.state() == PodSandboxState::SandboxReady
}

/// What the runtime said, without what gRPC says about it.
fn message(status: &Status) -> String {
    format!("rpc error: code = {:?} desc = {}", status.code(), status.message())
}

fn failed(status: Status) -> RuntimeError {
    match status.code() {
        Code::NotFound => RuntimeError::NotFound(status.message().to_owned()),
        Code::Unimplemented => RuntimeError::Unsupported(status.message().to_owned()),
        _ => RuntimeError::Failed(message(&status)),
    }
}

/// How this machine finds names.
fn host_resolver() -> DnsConfig {
    let ResolvConf { servers, searches, options } = host_resolv_conf();
    DnsConfig { servers, searches, options }
}
