//! The loop that lives a pod's life: plans, does, listens, and tells the API.
//!
//! There is one for each pod, and all that is under way for a pod is polled by its loop, so that a
//! node with many pods needs no more tasks than pods. It ends when the pod is not in the API any
//! more and nothing of it is left; or on shutdown, which leaves containers as they are, to be
//! adopted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{BoxFuture, OptionFuture};
use futures::stream::{BoxStream, FuturesUnordered};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodStatus, ResourceRequirements};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use kubewright::event::Recorder;
use kubewright::{Clock, Event};
use kubewright_apimachinery::image::Reference;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::admit::{Rejection, Verdict, misfit};
use super::hook;
use super::life::{End, Life, Role, Sandbox, post_start};
use super::notice::Notice;
use super::plan::{Action, plan};
use super::resize::{self, Standing};
use super::status::{Host, status};
use crate::patch;
use crate::runtime::{
    Ended, Found, Health, Id, Order, PrepareError, ProbeKind, Runtime, RuntimeError, StartError,
    Started, Target,
};

/// What a container always gets to end in.
const GRACE_MIN: Duration = Duration::from_secs(2);
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// What the pods of a node have in common.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) client: Client,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) host: Host,
}

/// What others read of a pod's life.
pub(crate) type SharedLife = Arc<Mutex<Life>>;

/// A pod as the API has it, or had it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// With the resources that are allocated to it.
    pub(crate) pod: Arc<Pod>,
    pub(crate) standing: Standing,
    pub(crate) is_gone: bool,
}

pub(crate) struct Worker {
    around: Surroundings,
    verdict: Verdict,
    seen: watch::Receiver<Seen>,
    /// The pod as it was last seen, for whoever keeps what it was given up to date.
    now: watch::Sender<Arc<Pod>>,
    life: SharedLife,
    under_way: FuturesUnordered<BoxFuture<'static, Outcome>>,
    /// How many places the pod has had.
    places: u32,
    /// What the API shows, or will when what is being written is.
    reported: PodStatus,
    report: Option<BoxFuture<'static, Result<Written, kube::Error>>>,
    /// The version of the pod that our last report made: what is older does not show it.
    written: Written,
    failures: u32,
    /// Tells of what the pod is made of, while something of that is missing.
    news: Option<BoxStream<'static, ()>>,
}

/// A version of a pod, if it is known and a number, as those of Kubernetes are.
type Written = Option<u64>;

fn version(pod: &Pod) -> Written {
    pod.metadata.resource_version.as_ref()?.parse().ok()
}

/// What a container may use, as its specification has it.
type Resources = Option<ResourceRequirements>;

/// What became of something.
enum Outcome {
    Prepared(Result<Vec<std::net::IpAddr>, PrepareError>),
    Started {
        container: String,
        started: Result<Started, StartError>,
    },
    Hooked {
        container: String,
        id: Id,
        done: Result<(), RuntimeError>,
    },
    Ended {
        container: String,
        id: Id,
        ended: Ended,
    },
    Stopped {
        container: String,
        id: Id,
        stopped: Result<(), RuntimeError>,
    },
    Resized {
        container: String,
        id: Id,
        resized: Result<Resources, RuntimeError>,
    },
    Probed {
        container: String,
        id: Id,
        kind: ProbeKind,
        health: Health,
    },
    Released(Result<(), RuntimeError>),
    /// The place of this number is gone.
    Lost(u32),
    Deleted(Result<(), kube::Error>),
}

impl Worker {
    /// A worker for a pod, and what others may read of it.
    pub(crate) fn new(
        around: Surroundings,
        seen: watch::Receiver<Seen>,
        verdict: Verdict,
    ) -> (Self, SharedLife) {
        let pod = Arc::clone(&seen.borrow().pod);
        let reported = pod.status.clone().unwrap_or_default();
        let now = around.clock.now();
        let mut life = Life::new(Arc::clone(&pod), Found::default(), now);
        // At once, so that the next pod has the room.
        if let Verdict::Refused(rejection) = &verdict {
            life.reject(rejection.clone(), now);
        }
        let life = Arc::new(Mutex::new(life));
        let worker = Worker {
            around,
            verdict,
            seen,
            now: watch::Sender::new(pod),
            life: Arc::clone(&life),
            under_way: FuturesUnordered::new(),
            places: 0,
            reported,
            report: None,
            written: None,
            failures: 0,
            news: None,
        };
        (worker, life)
    }

    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let Seen { pod, standing, .. } = self.seen.borrow_and_update().clone();
        let looking = futures::future::join(
            self.around.runtime.adopt(&pod),
            rejection(self.around.client.clone(), &pod, self.verdict.clone()),
        );
        let Some((found, rejection)) = shutdown.run_until_cancelled(looking).await else {
            return;
        };
        let now = self.around.clock.now();
        let mut life = Life::new(pod, found, now);
        life.stands(standing, now);
        if let Some(rejection) = &rejection {
            life.reject(rejection.clone(), now);
        }
        *self.life() = life;
        if let Some(Rejection { reason, message }) = rejection {
            self.tell(&Notice::of_pod(Event::warning(&reason, message)));
        }
        self.await_adopted();
        let is_lost = matches!(self.life().sandbox, Sandbox::Lost(_));
        if is_lost {
            self.tell_lost();
        }
        // Nobody tells any more of a pod that is gone.
        let mut is_told = true;
        loop {
            let wake = self.step();
            if self.is_forgotten() {
                break;
            }
            self.listen();
            let is_due = self.report.is_none() && self.is_news();
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                Some(outcome) = self.under_way.next() => self.note(outcome),
                changed = self.seen.changed(), if is_told => match changed {
                    Ok(()) => self.look(),
                    Err(_) => is_told = false,
                },
                Some(Some(())) = OptionFuture::from(self.news.as_mut().map(|news| news.next())) => {
                    self.life().hurry();
                }
                Some(written) = OptionFuture::from(self.report.as_mut()) => {
                    self.report = None;
                    self.written(written);
                }
                // Last, so that what is over at once is told at once, and in one go.
                () = std::future::ready(()), if is_due => self.begin_report(),
                () = sleep_until(wake, self.around.clock.now()) => {}
            }
        }
        let pod = Arc::clone(&self.life().pod);
        self.around.runtime.forget(&pod).await;
    }

    /// Listens for what is missing until it is there. Whoever begins to listen is told of what is there
    /// already, and tries again once for that.
    fn listen(&mut self) {
        let (is_wanting, is_content) = {
            let life = self.life();
            (life.is_wanting(), life.is_content())
        };
        if is_content {
            self.news = None;
        } else if is_wanting && self.news.is_none() {
            self.news = Some(self.around.runtime.news(&self.seen.borrow().pod));
        }
    }

    /// Waits for the ends of containers that ran before the agent did.
    fn await_adopted(&mut self) {
        let running = |life: &Life| -> Vec<(String, Id)> {
            let members = life.containers.iter();
            let running = members.filter_map(|member| {
                Some((member.spec.name.clone(), member.running()?.started.id.clone()))
            });
            running.collect()
        };
        let running = running(&self.life());
        for (container, id) in running {
            self.await_end(container, id);
        }
        let has_place = matches!(self.life().sandbox, Sandbox::Ready(_));
        if has_place {
            self.tend();
        }
    }

    /// Looks after a new place, as long as it is there.
    fn tend(&mut self) {
        self.places += 1;
        let (runtime, place) = (Arc::clone(&self.around.runtime), self.places);
        let (now, pod) = (self.now.subscribe(), Arc::clone(&self.life().pod));
        self.under_way.push(Box::pin(async move {
            tokio::select! {
                () = runtime.lose(&pod) => {}
                () = runtime.tend(now) => std::future::pending().await,
            }
            Outcome::Lost(place)
        }));
    }

    /// Tells that there will be another place, if there will.
    fn tell_lost(&self) {
        let needs_place = self.life().needs_place();
        if needs_place {
            let note = "Pod sandbox changed, it will be killed and re-created.";
            self.tell(&Notice::of_pod(Event::normal("SandboxChanged", note)));
        }
    }

    /// Begins all that is to be done now, and says when to look again.
    fn step(&mut self) -> Option<Timestamp> {
        loop {
            let now = self.around.clock.now();
            let mut plan = plan(&self.life(), now);
            // The last word is said after everything else is.
            if self.report.is_some() || self.is_news() {
                plan.actions.retain(|action| *action != Action::Delete);
            }
            for notice in plan.notices {
                self.tell(&notice);
            }
            if plan.actions.is_empty() {
                return plan.wake;
            }
            for action in plan.actions {
                self.life().begin(&action, now);
                self.begin(action);
            }
        }
    }

    fn begin(&mut self, action: Action) {
        let runtime = Arc::clone(&self.around.runtime);
        let pod = Arc::clone(&self.life().pod);
        let doing: BoxFuture<'static, Outcome> = match action {
            Action::End { .. } | Action::Hold { .. } | Action::Renew | Action::Settle => return,
            Action::Prepare => {
                Box::pin(async move { Outcome::Prepared(runtime.prepare(&pod).await) })
            }
            Action::Release => {
                Box::pin(async move { Outcome::Released(runtime.release(&pod).await) })
            }
            Action::Delete => {
                let (client, failures) = (self.around.client.clone(), self.failures);
                Box::pin(async move { Outcome::Deleted(delete(client, &pod, failures).await) })
            }
            Action::Start { container } => match self.start(&container) {
                Some(starting) => starting,
                None => return,
            },
            Action::Stop { container, grace, message } => {
                if let Some(message) = &message {
                    self.tell(&Notice::of(&container, Event::normal("Killing", message)));
                }
                match self.stop(container, grace, message.is_some()) {
                    Some(stopping) => stopping,
                    None => return,
                }
            }
            Action::Resize { container } => match self.resize(container) {
                Some(resizing) => resizing,
                None => return,
            },
            Action::Probe { container, kind } => match self.probe(container, kind) {
                Some(probing) => probing,
                None => return,
            },
        };
        self.under_way.push(doing);
    }

    fn start(&self, container: &str) -> Option<BoxFuture<'static, Outcome>> {
        let life = self.life();
        let member = life.member(container)?;
        let order = Order {
            pod: Arc::clone(&life.pod),
            container: Arc::clone(&member.spec),
            is_init: member.role == Role::Init,
            number: member.starts,
            addresses: life.addresses().to_vec(),
            host: self.around.host.address,
        };
        let regarding = Notice::of(container, Event::normal("", "")).regarding(&life);
        let (container, around) = (container.to_owned(), self.around.clone());
        Some(Box::pin(async move {
            let tell = |event| around.recorder.record(&regarding, event);
            let started = start(around.runtime.as_ref(), order, &tell).await;
            Outcome::Started { container, started }
        }))
    }

    fn stop(
        &self,
        container: String,
        grace: Duration,
        is_first: bool,
    ) -> Option<BoxFuture<'static, Outcome>> {
        let target = self.target(&container, ProbeKind::Liveness)?;
        let regarding = Notice::of(&container, Event::normal("", "")).regarding(&self.life());
        let around = self.around.clone();
        Some(Box::pin(async move {
            let tell = |event| around.recorder.record(&regarding, event);
            let stopped = stop(around.runtime.as_ref(), &target, grace, is_first, &tell).await;
            Outcome::Stopped { container, id: target.id, stopped }
        }))
    }

    fn resize(&self, container: String) -> Option<BoxFuture<'static, Outcome>> {
        let target = self.target(&container, ProbeKind::Liveness)?;
        let before = self.life().member(&container)?.given.clone().unwrap_or_default();
        let runtime = Arc::clone(&self.around.runtime);
        Some(Box::pin(async move {
            let Target { pod, container: spec, id, .. } = target;
            let resized = runtime.resize(&id, &pod, &spec, &before).await;
            Outcome::Resized { container, id, resized: resized.map(|()| spec.resources.clone()) }
        }))
    }

    fn probe(&self, container: String, kind: ProbeKind) -> Option<BoxFuture<'static, Outcome>> {
        let target = self.target(&container, kind)?;
        let probe = kind.of(&target.container)?.clone();
        let runtime = Arc::clone(&self.around.runtime);
        Some(Box::pin(async move {
            let health = runtime.probe(&target, &probe).await;
            Outcome::Probed { container, id: target.id, kind, health }
        }))
    }

    fn target(&self, container: &str, kind: ProbeKind) -> Option<Target> {
        let life = self.life();
        let member = life.member(container)?;
        let started = &member.up()?.started;
        let is_on_host = life.spec().host_network == Some(true);
        let address = life.addresses().first().copied();
        Some(Target {
            kind,
            pod: Arc::clone(&life.pod),
            container: Arc::clone(&member.spec),
            id: started.id.clone(),
            since: started.at,
            address: if is_on_host { Some(self.around.host.address) } else { address },
        })
    }

    fn await_end(&self, container: String, id: Id) {
        let runtime = Arc::clone(&self.around.runtime);
        self.under_way.push(Box::pin(async move {
            let ended = runtime.wait(&id).await;
            Outcome::Ended { container, id, ended }
        }));
    }

    /// Does what a container wants done when it has started.
    fn run_hook(&self, container: String) {
        let Some(target) = self.target(&container, ProbeKind::Startup) else { return };
        let Some(handler) = post_start(&target.container).cloned() else { return };
        let runtime = Arc::clone(&self.around.runtime);
        self.under_way.push(Box::pin(async move {
            let done = hook::run(runtime.as_ref(), &target, &handler).await;
            Outcome::Hooked { container, id: target.id, done }
        }));
    }

    fn note(&mut self, outcome: Outcome) {
        let now = self.around.clock.now();
        match outcome {
            Outcome::Prepared(prepared) => {
                if let Err(error) = &prepared {
                    let event = Event::warning(error.reason(), error.to_string());
                    self.tell(&Notice::of_pod(event));
                }
                let is_ready = prepared.is_ok();
                self.life().prepared(&prepared, now);
                if is_ready {
                    self.tend();
                }
            }
            Outcome::Started { container, started } => {
                let had_place = matches!(self.life().sandbox, Sandbox::Ready(_));
                let is_lost = had_place && matches!(started, Err(StartError::Sandbox));
                let id = started.as_ref().ok().map(|started| started.id.clone());
                self.life().started(&container, started, now);
                if is_lost {
                    self.tell_lost();
                }
                if let Some(id) = id {
                    self.await_end(container.clone(), id);
                    self.run_hook(container);
                }
            }
            Outcome::Hooked { container, id, done } => {
                if let Err(error) = &done {
                    debug!(%id, %error, "a hook failed");
                    let event = Event::warning("FailedPostStartHook", "PostStartHook failed");
                    self.tell(&Notice::of(&container, event));
                }
                self.life().hooked(&container, &id, done.is_err());
            }
            Outcome::Ended { container, id, ended } => self.life().ended(&container, &id, ended),
            Outcome::Stopped { container, id, stopped } => {
                if let Err(error) = stopped
                    && !matches!(error, RuntimeError::NotFound(_))
                {
                    warn!(%id, %error, "a container was not stopped");
                    self.life().not_stopped(&container, &id);
                }
            }
            Outcome::Resized { container, id, resized } => match resized {
                Ok(given) => self.life().resized(&container, &id, given),
                Err(error) => {
                    warn!(%id, %error, "a container was not given other resources");
                    let why = error.to_string();
                    let news = self.life().not_resized(&container, &id, &why, now);
                    if let Some(generation) = news {
                        let event = resize::failed(&self.life().pod, generation, &why);
                        self.tell(&Notice::of_pod(event));
                    }
                }
            },
            Outcome::Probed { container, id, kind, health } => {
                let event = match &health {
                    Health::Well => None,
                    Health::Warned(why) => Some(Event::warning(
                        "ProbeWarning",
                        format!("{kind:?} probe warning: {why}"),
                    )),
                    Health::Ill(why) => {
                        Some(Event::warning("Unhealthy", format!("{kind:?} probe failed: {why}")))
                    }
                    Health::Unknown(why) => {
                        let why =
                            format!("{kind:?} probe errored and resulted in unknown state: {why}");
                        Some(Event::warning("Unhealthy", why))
                    }
                };
                if let Some(event) = event {
                    self.tell(&Notice::of(&container, event));
                }
                self.life().probed(&container, &id, kind, &health, now);
            }
            Outcome::Released(released) => {
                if let Err(error) = released {
                    warn!(%error, "the place of a pod was not taken away");
                }
                self.life().released();
            }
            Outcome::Lost(place) => {
                let is_news = place == self.places && self.life().lose_place(now);
                if is_news {
                    self.tell_lost();
                }
            }
            Outcome::Deleted(Ok(())) => {}
            Outcome::Deleted(Err(error)) => {
                debug!(%error, "a pod was not deleted");
                self.failures = self.failures.saturating_add(1);
                self.life().not_deleted();
            }
        }
    }

    /// Takes note of how the API has the pod now.
    fn look(&mut self) {
        let Seen { pod, standing, is_gone } = self.seen.borrow_and_update().clone();
        patch::take_foreign(&mut self.reported, pod.status.as_ref());
        if self.report.is_none() && version(&pod) >= self.written {
            patch::take_altered(&mut self.reported, pod.status.as_ref());
        }
        let mut life = self.life();
        if is_gone {
            let grace = pod.metadata.deletion_grace_period_seconds;
            let grace = grace.or(life.spec().termination_grace_period_seconds).unwrap_or(30);
            let grace = Duration::from_secs(grace.max(0).unsigned_abs());
            life.begin(&Action::End { why: End::Gone, grace }, self.around.clock.now());
        } else {
            let is_other = is_other(&life.pod, &pod);
            life.seen(Arc::clone(&pod));
            if is_other && life.is_wanting() {
                life.hurry();
            }
            life.stands(standing, self.around.clock.now());
            self.now.send_replace(pod);
        }
    }

    fn is_forgotten(&self) -> bool {
        let life = self.life();
        let is_gone = life.end.as_ref().is_some_and(|end| end.why == End::Gone);
        is_gone && life.is_over()
    }

    fn status(&self) -> PodStatus {
        status(&self.life(), &self.around.host, &self.reported, self.around.clock.now())
    }

    /// Whether the API does not show yet how it is.
    fn is_news(&self) -> bool {
        let is_gone = self.life().end.as_ref().is_some_and(|end| end.why == End::Gone);
        !is_gone && self.status() != self.reported
    }

    fn begin_report(&mut self) {
        let status = self.status();
        let pod = Arc::clone(&self.life().pod);
        let patch = patch::status(&pod, &self.reported, &status);
        self.reported = status;
        let (client, failures) = (self.around.client.clone(), self.failures);
        self.report = Some(Box::pin(async move {
            back_off(failures).await;
            let (namespace, name) = names(&pod);
            let pods: Api<Pod> = Api::namespaced(client, namespace);
            let patch = Patch::Strategic(patch);
            match pods.patch_status(name, &PatchParams::default(), &patch).await {
                Ok(pod) => Ok(version(&pod)),
                Err(error) if is_moot(&error) => Ok(None),
                Err(error) => Err(error),
            }
        }));
    }

    fn written(&mut self, written: Result<Written, kube::Error>) {
        match written {
            Ok(version) => {
                self.failures = 0;
                self.written = self.written.max(version);
            }
            Err(error) => {
                debug!(%error, "a status was not written");
                self.failures = self.failures.saturating_add(1);
                // What the API shows is what was last seen there.
                let shown = self.life().pod.status.clone();
                self.reported = shown.unwrap_or_default();
            }
        }
    }

    fn tell(&self, notice: &Notice) {
        let regarding = notice.regarding(&self.life());
        self.around.recorder.record(&regarding, notice.event.clone());
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        lock(&self.life)
    }
}

pub(crate) fn lock(life: &Mutex<Life>) -> MutexGuard<'_, Life> {
    // Nothing that holds it panics half-way.
    life.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether there is more that is new of a pod than its status.
fn is_other(old: &Pod, new: &Pod) -> bool {
    let marks = |pod: &Pod| (pod.metadata.labels.clone(), pod.metadata.annotations.clone());
    old.spec != new.spec || marks(old) != marks(new)
}

/// Why a node does not take a pod, if it does not.
async fn rejection(client: Client, pod: &Pod, verdict: Verdict) -> Option<Rejection> {
    match verdict {
        Verdict::Admitted => None,
        Verdict::Refused(rejection) => Some(rejection),
        Verdict::Doubted(rejection) => {
            let nodes: Api<Node> = Api::all(client);
            let name = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            match nodes.get(name.unwrap_or_default()).await {
                Ok(node) => misfit(pod, &node),
                Err(error) => {
                    debug!(%error, "a node was not read again");
                    Some(rejection)
                }
            }
        }
    }
}

/// Gets an image, and starts the container.
async fn start(
    runtime: &dyn Runtime,
    order: Order,
    tell: &(dyn Fn(Event) + Send + Sync),
) -> Result<Started, StartError> {
    let (pod, container) = (Arc::clone(&order.pod), Arc::clone(&order.container));
    let image = container.image.clone().unwrap_or_default();
    let pulling = || tell(Event::normal("Pulling", format!("Pulling image {image:?}")));
    let pulled = match Reference::parse(&image) {
        Err(error) => Err(StartError::Name { image: image.clone(), why: error.to_string() }),
        Ok(_) => runtime.pull(&pod, &container, &pulling).await,
    };
    match pulled {
        Ok(pulled) => {
            let note = match pulled.fetched {
                None => format!(
                    "Container image {image:?} already present on machine and can be accessed by \
                     the pod"
                ),
                Some(fetched) => format!(
                    "Successfully pulled image {image:?} in {took:?} ({took:?} including waiting). \
                     Image size: {bytes} bytes.",
                    took = fetched.took,
                    bytes = fetched.bytes
                ),
            };
            tell(Event::normal("Pulled", note));
            if let Some(remark) = pulled.remark {
                tell(Event::normal("StandIn", remark));
            }
        }
        Err(error) => {
            match &error {
                StartError::Pull(why) => {
                    let why = format!("Failed to pull image {image:?}: {why}");
                    tell(Event::warning("Failed", why));
                }
                StartError::NeverPull(_) => {
                    tell(Event::warning("ErrImageNeverPull", error.to_string()));
                }
                StartError::Name { .. } | StartError::Inspect(_) => {
                    tell(Event::warning("InspectFailed", error.to_string()));
                }
                StartError::Config(_)
                | StartError::Create(_)
                | StartError::Run { .. }
                | StartError::Sandbox => {}
            }
            tell(Event::warning("Failed", format!("Error: {}", error.reason())));
            return Err(error);
        }
    }
    let started = match runtime.start(order).await {
        Ok(started) => started,
        // It is made anew, and the container started then.
        Err(StartError::Sandbox) => return Err(StartError::Sandbox),
        Err(error) => {
            if let StartError::Run { .. } = error {
                tell(Event::normal("Created", "Container created"));
            }
            tell(Event::warning("Failed", format!("Error: {error}")));
            return Err(error);
        }
    };
    tell(Event::normal("Created", "Container created"));
    tell(Event::normal("Started", "Container started"));
    Ok(started)
}

/// Runs what a container wants done before it ends, and ends it.
async fn stop(
    runtime: &dyn Runtime,
    target: &Target,
    grace: Duration,
    is_first: bool,
    tell: &(dyn Fn(Event) + Send + Sync),
) -> Result<(), RuntimeError> {
    let begun = tokio::time::Instant::now();
    let handler = target.container.lifecycle.as_ref().and_then(|hooks| hooks.pre_stop.as_ref());
    if let Some(handler) = handler.filter(|_| is_first && !grace.is_zero()) {
        match tokio::time::timeout(grace, hook::run(runtime, target, handler)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                debug!(id = %target.id, %error, "a hook failed");
                tell(Event::warning("FailedPreStopHook", "PreStopHook failed"));
            }
            Err(_) => debug!(id = %target.id, "a hook took too long"),
        }
    }
    let left = grace.saturating_sub(begun.elapsed()).max(GRACE_MIN);
    runtime.stop(&target.id, left).await
}

async fn delete(client: Client, pod: &Pod, failures: u32) -> Result<(), kube::Error> {
    back_off(failures).await;
    let (namespace, name) = names(pod);
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let uid = pod.metadata.uid.clone();
    let preconditions = Some(Preconditions { uid, resource_version: None });
    let params = DeleteParams { preconditions, ..DeleteParams::default() }.grace_period(0);
    match pods.delete(name, &params).await {
        Ok(_) => Ok(()),
        Err(error) if is_moot(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a write failed because the pod is not there any more, or another has its name.
fn is_moot(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    status.code == 404 || (status.code == 409 && status.message.contains("UID in precondition"))
}

async fn back_off(failures: u32) {
    if let Some(doublings) = failures.checked_sub(1) {
        let pause = RETRY_FIRST.saturating_mul(2_u32.saturating_pow(doublings)).min(RETRY_MAX);
        tokio::time::sleep(pause).await;
    }
}

fn names(pod: &Pod) -> (&str, &str) {
    (
        pod.metadata.namespace.as_deref().unwrap_or("default"),
        pod.metadata.name.as_deref().unwrap_or_default(),
    )
}

async fn sleep_until(wake: Option<Timestamp>, now: Timestamp) {
    match wake {
        Some(wake) => {
            let pause = Duration::try_from(wake.duration_since(now)).unwrap_or_default();
            // Not earlier: what is due a moment later would be planned for nothing.
            tokio::time::sleep(pause + Duration::from_millis(1)).await;
        }
        None => std::future::pending().await,
    }
}
