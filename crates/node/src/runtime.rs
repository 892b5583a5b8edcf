//! What runs containers: the seam between the life of pods and whatever machine they live on.
//!
//! A [`Runtime`] is told what to do and tells what became of it; when, in which order and how often
//! is decided in `pod`. What it is asked twice must be the same as once, since the
//! agent may be killed between a deed and its record.

// They need the kernel's own ways of watching processes and files.
#[cfg(target_os = "linux")]
mod cri;
#[cfg(not(target_os = "linux"))]
#[path = "runtime/cri_disabled.rs"]
mod cri;
mod fake;
#[cfg(target_os = "linux")]
mod growth;
#[cfg(target_os = "linux")]
mod last_words;
#[cfg(target_os = "linux")]
mod names;
mod output;
#[cfg(target_os = "linux")]
mod process;
#[cfg(not(target_os = "linux"))]
#[path = "runtime/process_disabled.rs"]
mod process;
#[cfg(target_os = "linux")]
mod supply;

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerImage, HTTPGetAction, Pod, Probe, ResourceRequirements,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};

pub use self::cri::{
    CriConfig, CriError, LoadError, cri, end_containers, load_images, unmount_volumes,
};
pub use self::fake::{Fake, Stage, StagesError, parse_stages};
use self::output::Output;
pub use self::process::{ProcessConfig, end_processes, process, shim};

/// Runs containers.
pub trait Runtime: Send + Sync + 'static {
    /// Its name and version, as nodes show them: `containerd://1.6.20`.
    fn version(&self) -> String;

    /// What already runs of a pod, from before the agent was started.
    fn adopt<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Found>;

    /// Ends and forgets all pods but these, by their uids: what an earlier agent left.
    fn sweep<'a>(&'a self, known: &'a HashSet<String>) -> BoxFuture<'a, ()>;

    /// Makes the place where a pod's containers will be: addresses, volumes, directories.
    fn prepare<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Result<Vec<IpAddr>, PrepareError>>;

    /// Keeps up to date what a pod was given: contents of volumes, tokens. `pod` is as it is by now.
    /// Does not end by itself: it is dropped with the pod.
    fn tend(&self, pod: watch::Receiver<Arc<Pod>>) -> BoxFuture<'_, ()>;

    /// Something for each time that an object appears or changes that a pod is made of, and perhaps
    /// for those that are there. By default nobody is told.
    fn news(&self, _pod: &Pod) -> BoxStream<'static, ()> {
        Box::pin(futures::stream::pending())
    }

    /// Waits until the place of a pod is gone, whoever took it away. By default nobody can.
    fn lose<'a>(&'a self, _pod: &'a Pod) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }

    /// Sees that an image is there, as the container's pull policy says. `tell` is called before
    /// anything is fetched.
    fn pull<'a>(
        &'a self,
        pod: &'a Pod,
        container: &'a Container,
        tell: &'a (dyn Fn() + Send + Sync),
    ) -> BoxFuture<'a, Result<Pulled, StartError>>;

    /// Starts a container whose image is there.
    fn start(&self, order: Order) -> BoxFuture<'_, Result<Started, StartError>>;

    /// Waits for the end of a container.
    fn wait<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Ended>;

    /// Asks a container to end, and ends it when `grace` is over.
    fn stop<'a>(&'a self, id: &'a Id, grace: Duration) -> BoxFuture<'a, Result<(), RuntimeError>>;

    /// Gives a container that runs what its specification says by now that it may use, instead of
    /// what it was given before. Who limits nothing has nothing to do.
    fn resize<'a>(
        &'a self,
        _id: &'a Id,
        _pod: &'a Pod,
        _container: &'a Container,
        _before: &'a ResourceRequirements,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Takes a pod's place away, when all its containers have ended. What they wrote stays.
    fn release<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, Result<(), RuntimeError>>;

    /// Forgets a pod that is no longer in the API, and all that is left of it.
    fn forget<'a>(&'a self, pod: &'a Pod) -> BoxFuture<'a, ()>;

    /// Looks whether a container is well.
    fn probe<'a>(&'a self, target: &'a Target, probe: &'a Probe) -> BoxFuture<'a, Health>;

    /// Calls what a hook of a container names over HTTP, however long that takes. Any answer will
    /// do.
    fn call<'a>(
        &'a self,
        target: &'a Target,
        get: &'a HTTPGetAction,
    ) -> BoxFuture<'a, Result<(), RuntimeError>>;

    /// Runs a command in a container until it ends, and gives its exit code.
    fn exec<'a>(
        &'a self,
        id: &'a Id,
        command: &'a [String],
        streams: Streams,
    ) -> BoxFuture<'a, Result<i32, RuntimeError>>;

    /// Runs a command in a container without input, and gives its exit code and what it wrote. When
    /// `timeout` is over, a runtime that can end the command does; others are not waited for.
    fn ask<'a>(
        &'a self,
        id: &'a Id,
        command: &'a [String],
        _timeout: Option<Duration>,
    ) -> BoxFuture<'a, Result<(i32, Vec<u8>), RuntimeError>> {
        Box::pin(async move {
            let output = Output::default();
            let streams = Streams {
                stdout: Some(Box::new(output.clone())),
                stderr: Some(Box::new(output.clone())),
                ..Streams::default()
            };
            let code = self.exec(id, command, streams).await?;
            Ok((code, output.take()))
        })
    }

    /// Connects streams with those of a container's own process, until it ends.
    fn attach<'a>(
        &'a self,
        id: &'a Id,
        streams: Streams,
    ) -> BoxFuture<'a, Result<(), RuntimeError>>;

    /// A connection to a port of a pod.
    fn connect<'a>(
        &'a self,
        pod: &'a Pod,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, RuntimeError>>;

    /// What a container has written, in the format of CRI, from its beginning. The stream ends when
    /// there is no more; if `follow`, only after the container has ended.
    fn logs<'a>(
        &'a self,
        attempt: &'a Attempt,
        follow: bool,
    ) -> BoxFuture<'a, Result<BoxStream<'static, std::io::Result<Vec<u8>>>, RuntimeError>>;

    /// Whether containers can be run.
    fn health(&self) -> BoxFuture<'_, Result<(), Unwell>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The images that are there, as nodes show them.
    fn images(&self) -> BoxFuture<'_, Vec<ContainerImage>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// What a container uses by now; none if nobody counts.
    fn usage<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Option<Usage>>;

    /// What the machine uses as a whole; none if that is what its containers do.
    fn machine_usage(&self) -> Option<Usage> {
        None
    }

    /// Where on this machine a pod is reached that is shown at an address.
    fn reach(&self, shown: SocketAddr) -> SocketAddr {
        shown
    }
}

/// How a runtime calls a container, with the runtime's name before it: `fake://1234`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(Arc<str>);

/// One run of a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub pod: String,
    pub container: String,
    /// Zero for the first.
    pub number: u32,
}

/// A container to start.
#[derive(Debug, Clone)]
pub struct Order {
    pub pod: Arc<Pod>,
    pub container: Arc<Container>,
    /// Whether it must end before others start.
    pub is_init: bool,
    pub number: u32,
    pub addresses: Vec<IpAddr>,
    pub host: IpAddr,
}

/// An image that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// None if it was there before.
    pub fetched: Option<Fetched>,
    /// What should be said about it besides, as that something stands in for it.
    pub remark: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    pub took: Duration,
    pub bytes: u64,
}

/// A container that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub id: Id,
    /// By what it can be told from another image of the same name.
    pub image_id: String,
    pub at: Timestamp,
}

/// A container that runs no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub code: i32,
    /// `Completed`, `Error`, or what the runtime knows better.
    pub reason: String,
    /// What it left as its last word.
    pub message: Option<String>,
    pub at: Timestamp,
}

/// A container that was started, and whose process never began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRun {
    pub started: Started,
    pub ended: Ended,
}

/// What there is of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The place where its containers are, if there is one.
    pub addresses: Option<Vec<IpAddr>>,
    /// There was one, and it was taken away behind the agent's back.
    pub is_lost: bool,
    /// The newest run of each container.
    pub containers: Vec<FoundContainer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundContainer {
    pub name: String,
    pub number: u32,
    pub started: Started,
    /// None if it runs.
    pub ended: Option<Ended>,
}

/// What a probe is to find out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeKind {
    /// Whether the container has started.
    Startup,
    /// Whether it still works.
    Liveness,
    /// Whether it can be asked to work.
    Readiness,
}

/// What is to be probed.
#[derive(Debug, Clone)]
pub struct Target {
    pub kind: ProbeKind,
    pub pod: Arc<Pod>,
    pub container: Arc<Container>,
    pub id: Id,
    pub since: Timestamp,
    pub address: Option<IpAddr>,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Well,
    /// It is well, but somebody should know something.
    Warned(String),
    Ill(String),
    /// It could not be found out. That counts for nothing.
    Unknown(String),
}

/// Where the input of a process comes from and its output goes.
#[derive(Default)]
pub struct Streams {
    pub stdin: Option<Box<dyn AsyncRead + Send + Unpin>>,
    pub stdout: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    pub stderr: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// It has a terminal, whose size may change.
    pub terminal: Option<mpsc::Receiver<Size>>,
}

/// Of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Size {
    pub width: u16,
    pub height: u16,
}

/// A connection of bytes in both directions.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// What a container uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time of a processor since the container started.
    pub cpu: Duration,
    /// What it cannot do without, in bytes.
    pub memory: u64,
}

/// Why no containers can be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwell {
    /// What runs containers does not answer. It may be about to be started again.
    #[error("container runtime is down")]
    Silent,
    /// It says itself that it cannot.
    #[error("container runtime {0}")]
    NotReady(String),
}

/// Why a pod has no place. All are tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    #[error("MountVolume.SetUp failed for volume {volume:?} : {why}")]
    Volume { volume: String, why: String },
    /// What it is made of is not there.
    #[error("MountVolume.NewMounter initialization failed for volume {volume:?} : {why}")]
    Mounter { volume: String, why: String },
    /// It is not known what it is made of.
    #[error(
        "Unable to attach or mount volumes: unmounted volumes=[{volume}], unattached volumes=[], \
         failed to process volumes=[{volume}]: {why}"
    )]
    Unprocessed { volume: String, why: String },
    #[error("Failed to create pod sandbox: {0}")]
    Sandbox(String),
}

/// Why a container does not run. All are tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// No image can be called so.
    #[error(
        "Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: {why}"
    )]
    Name { image: String, why: String },
    /// Its image cannot be had.
    #[error("{0}")]
    Pull(String),
    /// It cannot be found out whether its image is there.
    #[error("{0}")]
    Inspect(String),
    /// Its image is not there, and may not be fetched.
    #[error("Container image {0:?} is not present with pull policy of Never")]
    NeverPull(String),
    /// What it is to be given is not there.
    #[error("{0}")]
    Config(String),
    #[error("{0}")]
    Create(String),
    /// Its process did not begin.
    #[error("{why}")]
    Run {
        why: String,
        /// That run, if there was one by the account of the runtime: it has ended.
        run: Option<Box<FailedRun>>,
    },
    /// The place of its pod is gone, and must be prepared again.
    #[error("the sandbox of the pod is gone")]
    Sandbox,
}

/// What a runtime could not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// What is asked about is not there any more.
    #[error("{0}")]
    NotFound(String),
    /// The runtime does not do such things.
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}")]
    Failed(String),
}

impl Id {
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Id(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StartError {
    /// As status shows it while the container waits.
    pub fn reason(&self) -> &'static str {
        match self {
            StartError::Name { .. } => "InvalidImageName",
            StartError::Pull(_) => "ErrImagePull",
            StartError::Inspect(_) => "ImageInspectError",
            StartError::NeverPull(_) => "ErrImageNeverPull",
            StartError::Config(_) => "CreateContainerConfigError",
            StartError::Create(_) | StartError::Sandbox => "CreateContainerError",
            StartError::Run { .. } => "RunContainerError",
        }
    }
}

impl PrepareError {
    /// As events call it.
    pub fn reason(&self) -> &'static str {
        match self {
            PrepareError::Volume { .. }
            | PrepareError::Mounter { .. }
            | PrepareError::Unprocessed { .. } => "FailedMount",
            PrepareError::Sandbox(_) => "FailedCreatePodSandBox",
        }
    }
}

impl Ended {
    /// The end of a process with this exit code.
    pub fn with_code(code: i32, at: Timestamp) -> Self {
        let reason = if code == 0 { "Completed" } else { "Error" };
        Ended { code, reason: reason.to_owned(), message: None, at }
    }

    /// The end of a container whose process never began, as containerd tells of it.
    #[cfg(any(test, target_os = "linux"))]
    pub(crate) fn before_it_began(why: String, at: Timestamp) -> Self {
        Ended { code: 128, reason: "StartError".to_owned(), message: Some(why), at }
    }
}
